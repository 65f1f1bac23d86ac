"""`redrived` as a program, on a machine whose name servers never answer."""

from __future__ import annotations

import socket
import threading
from typing import Any

from redrived.__main__ import main


def hang(*_: Any, **__: Any) -> Any:
    threading.Event().wait()


if __name__ == "__main__":
    socket.getaddrinfo = hang
    main()
