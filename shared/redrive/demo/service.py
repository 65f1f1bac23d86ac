"""The flaky server that the demo's HTTP jobs talk to: slow, and in waves out of order."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WAVE = 75.0  # seconds from one outage to the next
OUTAGE = 12.0  # seconds it lasts
FAILURES = (500, 502, 503, 503, 429)


@contextmanager
def running() -> Generator[str]:
    """Its address, while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="demo service", daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


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
        is_out = time.monotonic() % WAVE < OUTAGE
        return random.choice(FAILURES) if random.random() < (0.85 if is_out else 0.1) else 200

    def log_message(self, format: str, *args: object) -> None:
        """The jobs tell."""
