"""A way to a PostgreSQL server that can fall silent: connections stay open, nothing comes."""

from __future__ import annotations

import select
import socket
import threading
from types import TracebackType
from typing import Self

from sqlalchemy import make_url


class Proxy:
    """Forwards 127.0.0.1 to the server of a URL, until told to freeze what is connected."""

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self._to = f"{parsed.query['host']}/.s.PGSQL.{parsed.port or 5432}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        host = parsed.set(host="127.0.0.1", port=port, query={})
        self.url = host.render_as_string(hide_password=False)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._frozen: set[socket.socket] = set()
        self.lets_in = True  # False: whoever connects is heard by nobody, until it is True again
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _1: type[BaseException] | None, _2: BaseException | None, _3: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for pair in self._pairs:
            for each in pair:
                each.close()

    def freeze(self) -> None:
        """What is connected now never hears anything again; new connections work."""
        self._frozen.update(each for pair in self._pairs for each in pair)

    def _run(self) -> None:
        while True:
            others = {a: b for pair in self._pairs for a, b in (pair, pair[::-1])}
            awake = [each for each in others if each not in self._frozen]
            door = [self._listener] if self.lets_in else []
            readable, _, _ = select.select([*door, *awake], [], [], 0.05)
            for each in readable:
                if each is self._listener:
                    if not self.lets_in:
                        continue
                    try:
                        client, _ = self._listener.accept()
                    except OSError:
                        return
                    server = socket.socket(socket.AF_UNIX)
                    try:
                        server.connect(self._to)
                    except OSError:  # it is down
                        server.close()
                        client.close()
                    else:
                        self._pairs.append((client, server))
                elif each not in self._frozen:
                    self._forward(each, others[each])

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            data = source.recv(65536)
            target.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._pairs = [pair for pair in self._pairs if source not in pair]
            source.close()
            target.close()
