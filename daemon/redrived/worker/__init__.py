"""The worker: a child process that runs Python handlers in the application's interpreter.

Standard library only, Python 3.9 and later. `main.py` is started by its path and loads this
folder as a private package, so nothing here can shadow a module of the application; the
files import each other relatively for the same reason.

The main thread runs handlers (`runner`), because only it can be interrupted; one thread
beside it listens to the daemon and keeps time (`reader`). They share `hand`, the jobs that
are here, and `outbox`, what is still to be said.
"""
