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
ENDED = 7  # the lease of the attempt that the daemon ends; written after
WHY = 8  # a place in `ENDINGS`

ENDINGS = {
    "cancel": "the job was cancelled",
    "restart": "the job is being restarted",
    "drain": "the daemon is being stopped",
    "timeout": "the attempt runs for longer than its timeout",
    "stalled": "the attempt has given no sign of life for too long",
    "log_limit": "the attempt has printed more than it may",
}
_WORDS = ("the attempt is being ended", *ENDINGS.values())

_SALT = 0x7265647269766521  # nothing at all, as on a page of zeros, is no record


def why_of(ending: str) -> int:
    """Its place; 0 for what needs no words, as nobody is left to hear them."""
    return [*ENDINGS].index(ending) + 1 if ending in ENDINGS else 0


def why_in_words(lease: int, ended: int, why: int) -> str:
    """Why the attempt with that lease is ended, if the page says so and makes sense."""
    return _WORDS[why] if ended == lease and why < len(_WORDS) else _WORDS[0]


def check_of(job: int, lease: int, execution: int, at: int) -> int:
    return job ^ lease ^ execution ^ at ^ _SALT
