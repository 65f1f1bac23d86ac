"""The HTTP side of a real daemon, from its start to its reload."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from support.daemon import Daemon, eventually, free_port

TOKEN = "0123456789abcdef0123456789abcdef"
CONFIG = """
[http]
listen = "127.0.0.1:{port}"
token_file = "token"
[tasks.hello]
command = ["echo", "hello"]
"""


def test_a_job_enqueued_over_http_runs_and_is_told_of(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    port = free_port()
    daemon = Daemon(tmp_path, CONFIG.format(port=port)).start()
    base = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=base, trust_env=False) as client:
            assert client.get("/readyz").json() == {"status": "ready"}
            headers = {"Authorization": f"Bearer {TOKEN}"}
            made = client.post("/v1/jobs", json={"task": "hello"}, headers=headers)
            where = made.headers["location"]
            eventually(lambda: client.get(where).json()["state"] == "done", "the job is done")
            assert 'redrive_jobs{queue="default",state="done",task="hello"} 1.0' in (
                client.get("/metrics").text
            )
            assert daemon.process is not None
            daemon.config.write_text(daemon.config.read_text() + "[tasks.more]\ncommand = 'true'\n")
            daemon.process.send_signal(signal.SIGHUP)
            more = {"task": "more"}
            eventually(
                lambda: client.post("/v1/jobs", json=more, headers=headers).status_code == 201,
                "the new task is known",
            )
    finally:
        assert daemon.stop() == 0
