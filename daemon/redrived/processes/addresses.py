"""Which addresses a call may go to, looked at where they are used: after the name is resolved.

Link-local addresses hold the credentials of cloud machines (169.254.169.254), so nothing
goes there unless the config says so. A redirect is the other side's choice: it may not
point into our own network.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")  # NAT64: an IPv4 address in its last bytes

# Threads of its own: a resolver that hangs holds up other calls at most.
_resolver = ThreadPoolExecutor(max_workers=4, thread_name_prefix="resolve")


async def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host, in the order to try them. Raises `socket.gaierror`."""
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(
        _resolver, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_link_local(address: str) -> bool:
    return _embedded(address).is_link_local


def is_private(address: str) -> bool:
    """Whether it is anything but a public address: loopback, a private network, reserved."""
    return not _embedded(address).is_global


def _embedded(address: str) -> Address:
    """The IPv4 address inside an IPv6 one that stands for it."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed
    if parsed in _TRANSLATED:
        return ipaddress.IPv4Address(parsed.packed[-4:])
    return parsed.ipv4_mapped or parsed.sixtofour or parsed
