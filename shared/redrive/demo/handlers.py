"""What the demo's Python jobs do: a little real work, at a pace one can watch, with troubles.

Standard library only, as every handler that runs in a pool may be.
"""

from __future__ import annotations

import os
import random
import signal
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import redrive

WORDS = ("queue", "lease", "retry", "harbour", "orchard", "winter", "engine", "pilot", "letter")

HANGS, KILLS = 1, 2  # which letter of seven, and of eleven

TROUBLES = (
    ConnectionResetError("connection reset by peer"),
    TimeoutError("the database timed out after 5 s"),
    OSError("temporary failure in name resolution"),
    RuntimeError("too many requests, slow down"),
)


def store(upload: str, files: int) -> dict[str, Any]:
    """Keep an archive; one in eight was cut short on its way."""
    time.sleep(0.3)
    trouble(0.1)
    path = Path("uploads", f"{upload}.zip")
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for place in range(files):
            archive.writestr(f"{place:03}.conf", f"[input:{place}]\nindex = main\n")
    if random.random() < 1 / 8:
        os.truncate(path, path.stat().st_size - 30)
    return {"archive": str(path)}


def parse(archive: str) -> dict[str, Any]:
    job = redrive.current_job()
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        for name in job.remaining(names):
            time.sleep(random.uniform(0.1, 0.4))
            trouble(0.01)
            job.count("stanzas_created", opened.read(name).count(b"["))
            job.progress(names.index(name) + 1, len(names), name)
    return {"files": len(names)}


def read(document: str) -> dict[str, Any]:
    """A document of some pages."""
    time.sleep(0.4)
    trouble(0.1)
    return {"pages": random.Random(document).randint(10, 40)}


def embed(document: str, pages: int) -> dict[str, Any]:
    """A vector for each page; some documents hang, and some take their process with them."""
    job = redrive.current_job()
    number = int("".join(filter(str.isdigit, document)))
    for page in range(1, pages + 1):
        time.sleep(random.uniform(0.1, 0.3))
        job.progress(page, pages, f"page {page}")
        trouble(0.005)
        if page == pages // 2 and job.attempt == 1:
            if number % 7 == HANGS:
                time.sleep(3600)
            if number % 11 == KILLS:
                os.kill(os.getpid(), signal.SIGKILL)
    return {"vectors": pages}


def analyze(document: str) -> dict[str, Any]:
    time.sleep(0.5)
    if random.random() < 0.06:
        raise RuntimeError(f"no language could be made out in {document}")
    dice = random.Random(document)
    return {"keywords": [word for word, _ in Counter(dice.choices(WORDS, k=50)).most_common(3)]}


def charge(order: int) -> dict[str, Any]:
    """Money; the bank has its days."""
    print(f"charging order {order}")
    time.sleep(random.uniform(0.05, 0.5))
    if random.random() < 0.08:
        raise RuntimeError("card declined")
    trouble(0.35)
    return {"order": order, "receipt": random.randrange(10**6)}


def total(amounts: list[int]) -> dict[str, Any]:
    return {"total": sum(amounts)}


def trouble(share: float) -> None:
    """Fail as software fails, in this share of the calls."""
    if random.random() < share:
        raise random.choice(TROUBLES)
