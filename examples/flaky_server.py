"""An HTTP server that fails by plan; the playbook and the campaign talk to it.

    python flaky_server.py --port 8399 --plan s4_campaign/plan.json

The playbook asks at port 8398, the campaign at 8399, so that both can be tried side by side.

A plan is a list of rules, and the first whose `path` (a regular expression) is found in the
path decides: the n-th request for a path gets the n-th of `answers`, those after it get `then`
(200 unless it says so), each after `takes` seconds. Whatever no rule matches is answered 200.

    GET /seen        what was answered so far, as {"GET /orders/7": [503, 503, 200]}
    PUT /plan        go by another plan
    PUT /outage      answer nothing any more; DELETE /outage drops the requests that hang
"""

import argparse
import json
import re
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zlib import crc32


class FlakyServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, plan=()):
        super().__init__(address, Answer)
        self.plan = list(plan)
        self.hanging = 0
        self._seen = defaultdict(list)
        self._lock = threading.Lock()
        self._works = threading.Event()
        self._works.set()

    def seen(self):
        with self._lock:
            return {"answers": dict(self._seen), "hanging": self.hanging}

    def next_answer(self, method, path):
        """The status for one more request, and how long it takes."""
        rule = next((rule for rule in self.plan if re.search(rule["path"], path)), {})
        with self._lock:
            before = self._seen[f"{method} {path}"]
            answers = rule.get("answers", [])
            later = rule.get("then", 200)
            status = answers[len(before)] if len(before) < len(answers) else later
            before.append(status)
        return status, rule.get("takes", 0)

    def set_outage(self, on):
        self._works.clear() if on else self._works.set()

    def hang_in_outage(self):
        """Whether there was one; a request that met it is never answered."""
        if self._works.is_set():
            return False
        with self._lock:
            self.hanging += 1
        self._works.wait()
        with self._lock:
            self.hanging -= 1
        return True


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FlakyServer

    def do_GET(self):
        if self.path == "/seen":
            return self.answer(200, self.server.seen())
        return self.answer_by_plan()

    def do_POST(self):
        self.body()
        return self.answer_by_plan()

    def do_PUT(self):
        match self.path:
            case "/plan":
                self.server.plan = json.loads(self.body())
            case "/outage":
                self.server.set_outage(True)
            case _:
                return self.answer(404, {"error": "not found"})
        return self.answer(200, {})

    def do_DELETE(self):
        self.server.set_outage(False)
        self.answer(200, {})

    def answer_by_plan(self):
        if self.server.hang_in_outage():
            self.close_connection = True
            return
        status, takes = self.server.next_answer(self.command, self.path)
        time.sleep(takes)
        if status == 200:
            self.answer(200, {"path": self.path, "amounts": amounts_of(self.path)})
        else:
            self.answer(status, {"error": "it fails by plan"})

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """`/seen` tells."""


def amounts_of(path):
    """Something to work with, the same each time."""
    return [crc32(f"{path} {place}".encode()) % 1000 for place in range(12)]


def main():
    parser = argparse.ArgumentParser(description="An HTTP server that fails by plan.")
    parser.add_argument("--port", type=int, default=8399)
    parser.add_argument("--plan", type=Path)
    options = parser.parse_args()
    plan = json.loads(options.plan.read_text()) if options.plan else []
    try:
        server = FlakyServer(("127.0.0.1", options.port), plan)
    except OSError as error:
        parser.exit(1, f"cannot listen on port {options.port}: {error.strerror}; see --port\n")
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
