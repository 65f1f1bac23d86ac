"""Asks a service for items, and downloads them once it has made them ready."""

import json
import os
from pathlib import Path
from urllib.request import Request, urlopen

import redrive

DOWNLOADS = Path("data/downloads")
PATIENCE = 30  # seconds


def request(item):
    """Order an item; the service takes its time."""
    redrive.current_job().heartbeat()
    return json.loads(call("POST", f"/requests/{item}"))


def download(item):
    """Fetch it, once: a file that is there is complete, because it got its name at the end."""
    target = DOWNLOADS / f"{item}.json"
    if target.exists():
        return {"status": "skipped", "reason": "already_downloaded"}
    content = call("GET", f"/downloads/{item}")
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")
    partial.write_bytes(content)
    partial.rename(target)
    return {"status": "downloaded", "bytes": len(content)}


def call(method, path):
    """What the service answers; anything but success is an error that names the status."""
    asked = Request(os.environ["SERVER"] + path, method=method)
    with urlopen(asked, timeout=PATIENCE) as answer:
        return answer.read()
