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


FOLDER = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    if sys.path and os.path.abspath(sys.path[0]) == FOLDER:
        del sys.path[0]  # put there by Python, where it would hide modules of the application
    load("start").run(socket_fd=int(sys.argv[2]), mark_fd=int(sys.argv[3]))


def load(name: str) -> ModuleType:
    """A module of this folder, which is a package that no search path leads to."""
    from importlib import import_module

    package = sys.modules["_redrive_worker"] = ModuleType("_redrive_worker")
    package.__path__ = [FOLDER]
    return import_module("_redrive_worker." + name)


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__" and "REDRIVE_SDK" in os.environ:
    # A process that multiprocessing has started for a handler, about to import what that is made of.
    load("sdk").lend(os.environ["REDRIVE_SDK"])
