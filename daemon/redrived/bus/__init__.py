"""The daemon's end of the bus: three sockets, so that file permissions are roles.

It carries bytes and says whose they are. What a request means is the business of `api`.
"""

from redrived.bus.bus import Bus
from redrived.bus.peers import Asker

__all__ = ["Asker", "Bus"]
