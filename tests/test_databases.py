"""The databases of the tests leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.daemon import eventually
from support.server_watch import processes_of

HOLDING_A_SERVER = """
from support.databases import OtherServer

print(OtherServer().url, flush=True)
input()
"""


def test_a_test_process_that_is_killed_leaves_no_server_and_no_folder_behind() -> None:
    holding = subprocess.Popen(
        [sys.executable, "-c", HOLDING_A_SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        text=True,
    )
    assert holding.stdout is not None
    with holding:
        folder = Path(holding.stdout.readline().strip().rpartition("host=")[2])
        assert (folder / "postmaster.pid").exists()
        holding.kill()
    eventually(lambda: not folder.exists(), f"{folder} is gone")
    assert list(processes_of(str(folder))) == []
