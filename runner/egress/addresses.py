"""Which addresses no agent may reach, whatever name leads there, and the one place where names become addresses."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], list[str]]

METADATA = frozenset(
    ip_address(text) for text in ("169.254.169.254", "168.63.129.16", "100.100.100.200", "fd00:ec2::254")
)
"""Where clouds tell a machine its secrets. One of them has an address that looks like any other on the internet."""

NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
RESERVED = tuple(
    ip_network(text)
    for text in ("192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "64:ff9b:1::/48", "100::/64", "5f00::/16")
)
COMPATIBLE = IPv6Network("::/96")


def resolve(host: str, port: int) -> list[str]:
    """Addresses of a host, in the order the system prefers.

    Raises
    ------
    OSError
        It has none.
    """
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def forbidden(text: str) -> str | None:
    """What an address is that no agent may reach, in words; None when it may be reached."""
    address = ip_address(text.partition("%")[0])
    every = (address, *_inside(address))
    if any(one in METADATA for one in every):
        return "a cloud's metadata service"
    if any(one.is_loopback or one.is_unspecified for one in every) or _is_own(address):
        return "the machine that runs the benchmark"
    if any(not one.is_global or one.is_multicast or _is_reserved(one) for one in every):
        return "a private or reserved network"
    return None


def _is_reserved(address: Address) -> bool:
    """What some versions of Python take for global."""
    return any(address.version == network.version and address in network for network in RESERVED)


def _inside(address: Address) -> Iterator[Address]:
    """IPv4 addresses that an IPv6 address stands for, by mapping, tunnel or translation."""
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if any(address in network for network in (*NAT64, COMPATIBLE)):
        yield IPv4Address(int(address) & 0xFFFF_FFFF)


def _is_own(address: Address) -> bool:
    """Whether this machine has the address: then its local services would be behind it, firewall or not."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True
