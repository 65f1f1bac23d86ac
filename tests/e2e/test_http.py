"""The HTTP side of a real daemon, from its start to its reload; and its calls to others."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx

from support.daemon import Daemon, eventually, free_port
from support.trial import Trial

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


class Nameless(Trial):
    program = (str(Path(__file__).parents[1] / "support/nameless_redrived.py"),)


CALLS = """
[tasks.nowhere]
http = { url = "http://name-{{ args.n }}.example/" }
timeout = "500ms"
[tasks.here]
http = { url = "{url}" }
timeout = "20s"
"""


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def answering() -> Iterator[str]:
    """The url of a server that has nothing against any request."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_name_servers_that_never_answer_hold_up_neither_addresses_nor_the_end(
    tmp_path: Path,
) -> None:
    with answering() as url:
        daemon = Nameless(tmp_path, CALLS.replace("{url}", url))
        daemon.start()
        try:
            nowhere = [daemon.enqueue("nowhere", n=n) for n in range(5)]
            ended = [daemon.until_ended(id) for id in nowhere]
            assert {job.error and job.error.error_type for job in ended} == {"timeout"}
            here = daemon.until_ended(daemon.enqueue("here"))
            assert (here.state, here.attempts) == ("done", 1)
        finally:
            daemon.hang_up()
            assert daemon.stop() == 0  # and at once, with five look-ups that never end
