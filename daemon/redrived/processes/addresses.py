"""Which addresses a call may go to, looked at where they are used: after the name is resolved.

Link-local addresses hold the credentials of cloud machines (169.254.169.254), so nothing
goes there unless the config says so. A redirect is the other side's choice: it may not
point into our own network.
"""

from __future__ import annotations

import ipaddress

from redrived.processes.lookups import Lookups

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")  # NAT64: an IPv4 address in its last bytes

_lookups = Lookups()


async def resolve(host: str) -> list[str]:
    """All addresses of a host, in the order to try them. Raises `socket.gaierror`."""
    try:
        return [str(ipaddress.ip_address(host))]  # nobody needs to be asked
    except ValueError:
        return await _lookups.addresses(host)


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
