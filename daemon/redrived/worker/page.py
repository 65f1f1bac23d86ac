"""The page of memory that a worker shares with its daemon: what began last, where is printed.

It can still be read when the worker has died without a word, and the worker's own application
may have written anything into it by then: through a wrong descriptor, or in native code. So
what began last carries a check, and is believed only with it. Both sides import this.
"""

from __future__ import annotations

import mmap

SIZE = mmap.PAGESIZE

# The record: a job, its lease, its execution, when it began.
CHECK = 4
IMPORTING = 5  # 1 while the code of its task is being loaded
LIVE = 6  # the inode that is printed to; 0: what is printed is not kept

_SALT = 0x7265647269766521  # nothing at all, as on a page of zeros, is no record


def check_of(job: int, lease: int, execution: int, at: int) -> int:
    return job ^ lease ^ execution ^ at ^ _SALT
