"""Starts a worker: `PYTHON main.py POOL SOCKET_FD MARK_FD`; the pool's name is for `ps`.

Old interpreters must be able to read this file as far as the sentence that turns them away.
"""

import os
import sys
from types import ModuleType

if sys.version_info < (3, 9):
    sys.exit(
        "a pool needs Python 3.9 or newer; %s is %s" % (sys.executable, sys.version.split()[0])
    )


def main() -> None:
    """Load this folder as a package that no search path leads to, and run it."""
    from importlib import import_module

    folder = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == folder:
        del sys.path[0]  # put there by Python, where it would hide modules of the application
    package = sys.modules["_redrive_worker"] = ModuleType("_redrive_worker")
    package.__path__ = [folder]
    start = import_module("_redrive_worker.start")
    start.run(socket_fd=int(sys.argv[2]), mark_fd=int(sys.argv[3]))


if __name__ == "__main__":
    main()
