"""Jobs that end in every way a job can end."""

import time
from pathlib import Path

import redrive


def never():
    raise ConnectionError("connection refused")


def second_time():
    job = redrive.current_job()
    if job.attempt == 1:
        raise ConnectionError("connection reset")
    return {"attempts": job.attempt}


def hopeless():
    raise redrive.Permanent("the order was cancelled by the customer")


def wait(until):
    """Until a file appears."""
    while not Path(until).exists():
        time.sleep(0.02)
