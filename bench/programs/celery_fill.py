"""Enqueue so many jobs one by one on Redis: celery_fill.py COUNT"""

import os
import sys

from celery import Celery
from gate import at_the_signal

app = Celery(broker=os.environ["REDIS_URL"])


@app.task(ignore_result=True)
def noop() -> None:
    pass


at_the_signal(int(sys.argv[1]), noop.delay)
