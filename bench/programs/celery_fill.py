"""Enqueue so many jobs one by one on Redis, kept track of or not: celery_fill.py COUNT [results]"""

import os
import sys

from celery import Celery
from gate import at_the_signal

keeps_results = "results" in sys.argv
redis = os.environ["REDIS_URL"]
app = Celery(broker=redis, backend=redis if keeps_results else None)


@app.task(ignore_result=not keeps_results)
def noop() -> None:
    pass


at_the_signal(int(sys.argv[1]), noop.delay)
