"""Where the console gets what it shows and sends what it wishes: the one seam to the daemon.

It speaks the protocol's own questions and replies. The real one is the link over the bus;
tests hand in recorded replies. Every method may raise `redrive.errors.RedriveError`, which
is shown to the operator as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from redrive.protocol.envelope import Request

if TYPE_CHECKING:
    from redrive_tui.mirror import Mirror


class Source(Protocol):
    @property
    def address(self) -> str:
        """Where the daemon is looked for, as people write it."""
        ...

    async def follow(self, mirror: Mirror) -> None:
        """Keep the mirror true until cancelled: who is there, status, events, the link."""
        ...

    async def ask(self, query: Request) -> Any:
        """The reply that belongs to the query."""
        ...

    async def command(self, command: Request, *, key: str) -> Any:
        """Have something changed; asking twice with one key does it once."""
        ...
