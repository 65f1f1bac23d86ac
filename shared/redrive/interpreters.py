"""Whether the interpreters of the pools start, and find the functions their tasks name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from redrive.config import Config
from redrive.config.sections import Pool
from redrive.protocol.rows import Check

PATIENCE = 20.0  # seconds to import everything a pool needs
_BEGUN = "importing "

# What a worker does before its first job; it lends `redrive` to an application without it.
_IMPORT = """
import importlib.util, json, sys
asked = json.loads(sys.argv[1])
sys.path = asked["path"] + [place for place in sys.path if place]
try:
    import redrive
except ImportError:
    spec = importlib.util.spec_from_file_location("redrive", asked["sdk"])
    sys.modules["redrive"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["redrive"])
for name in asked["names"]:
    module, _, function = name.partition(":")
    print("importing", module, flush=True)
    found = importlib.import_module(module)
    for part in filter(None, function.split(".")):
        found = getattr(found, part)
print("%d.%d" % sys.version_info[:2])
"""


def pool_checks(config: Config) -> Iterator[Check]:
    """One for each pool that a task uses."""
    for name in sorted({task.pool for task in config.tasks.values() if task.python}):
        pool = config.pools.get(name, Pool())
        wanted = [t.python for t in config.tasks.values() if t.python and t.pool == name]
        yield _check(name, pool, [*pool.preload, *wanted], config.folder)


def _check(name: str, pool: Pool, names: list[str], folder: str) -> Check:
    python = pool.python or sys.executable
    label = f"pool {name}"
    sdk = str(Path(__file__).with_name("__init__.py"))
    asked = json.dumps({"path": pool.path, "sdk": sdk, "names": names})
    try:
        code, out, err = _run([python, "-c", _IMPORT, asked], folder)
    except subprocess.TimeoutExpired as slow:
        text = f"{python}: {_stuck_in(slow)} has not ended after {PATIENCE:g} s"
        hint = "a module must not wait for anything while it is imported; workers would hang too"
        return Check(name=label, ok=False, text=text, hint=hint)
    except OSError as error:
        hint = f"[pools.{name}] python must name an interpreter that starts"
        return Check(name=label, ok=False, text=f"{python} does not run: {error}", hint=hint)
    said = (err if code else out).decode(errors="replace").strip().splitlines()
    last = said[-1] if said else "it said nothing"
    if code:
        hint = f"[pools.{name}] path must name the folders of its modules; see also `python`"
        return Check(name=label, ok=False, text=f"{python}: {last}", hint=hint)
    return Check(name=label, ok=True, text=f"Python {last} finds all {len(names)} names")


def _run(argv: list[str], folder: str) -> tuple[int, bytes, bytes]:
    """As `subprocess.run`, which would leave behind what a hanging import has started."""
    with subprocess.Popen(
        argv,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, out, err


def _stuck_in(slow: subprocess.TimeoutExpired) -> str:
    said = (slow.stdout or b"").decode(errors="replace").splitlines()
    begun = [line for line in said if line.startswith(_BEGUN)]
    return f"the import of {begun[-1].removeprefix(_BEGUN)}" if begun else "its start"
