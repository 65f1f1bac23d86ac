"""One of several clients that begin at the same moment: call so many times, one by one.

Says `ready`, waits for a line, calls, and tells when it began and when it was through.
"""

import sys
import time
from collections.abc import Callable

WARM = 20


def at_the_signal(count: int, call: Callable[[], object]) -> None:
    for _ in range(WARM):
        call()
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.time()
    for _ in range(count):
        call()
    print(began, time.time(), flush=True)
