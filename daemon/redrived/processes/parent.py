"""What the daemon does to itself once, before it has children.

The kernel then hands it the orphans of its jobs, tells it how each child ended, and gives
no child a descriptor or a file mode it should not have.
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_CHILD_SUBREAPER = 36


def become_parent() -> None:
    os.umask(0o077)
    # Inherited as "ignored", the kernel would throw every exit status away.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _keep_descriptors_to_ourselves()
    _adopt_orphans()


def _keep_descriptors_to_ourselves() -> None:
    """Python opens everything close-on-exec; what we were started with may not be."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if (descriptor := int(name)) > 2:
                os.set_inheritable(descriptor, False)
        except OSError:
            pass  # the listing's own descriptor, closed by now


def _adopt_orphans() -> None:
    """A grandchild whose parent exits comes to us instead of init, so we can end it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
