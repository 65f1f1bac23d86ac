"""Jobs a second, from when a tenth of those that wait is gone: huey_drain.py"""

import time

from huey_tasks import huey


def until_left(most: int) -> int:
    while (left := huey.pending_count()) > most:
        time.sleep(0.005)
    return left


at_first = until_left(huey.pending_count() * 9 // 10)
began = time.perf_counter()
until_left(0)
print(at_first / (time.perf_counter() - began))
