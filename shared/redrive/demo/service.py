"""The flaky server that the demo's HTTP jobs talk to: slow, and in waves out of order."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from redrive.demo import background

FIRST = 15.0  # seconds until the first outage
WAVE = 90.0  # seconds from one outage to the next
OUTAGE = 25.0  # seconds it lasts
FAILURES = (500, 502, 503, 503, 429)


@contextmanager
def running() -> Generator[str]:
    """Its address, while it runs."""
    server = _Service(("127.0.0.1", 0), _Answer)
    background.start("demo service", server.serve_forever)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Service(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *address_and_handler: Any) -> None:
        super().__init__(*address_and_handler)
        self._began = time.monotonic()

    @property
    def is_out(self) -> bool:
        return (time.monotonic() - self._began - FIRST) % WAVE < OUTAGE


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(random.uniform(0.05, 0.6))
        status = self._status()
        amounts = [random.randrange(1000) for _ in range(12)] if status == 200 else []
        body = json.dumps({"path": self.path, "amounts": amounts}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def _status(self) -> int:
        if self.path.endswith("13"):
            return 404
        assert isinstance(self.server, _Service)
        share = 0.9 if self.server.is_out else 0.1
        return random.choice(FAILURES) if random.random() < share else 200

    def log_message(self, format: str, *args: object) -> None:
        """The jobs tell."""
