"""Where the server listens over HTTP, and under which names it may be asked there.

Knows nothing of the SDK, so that a wrong address is refused before anything heavy is loaded.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from vault_palace.core.errors import InvalidArguments

LOOPBACK = "127.0.0.1"
_HINT = "Give PORT, HOST:PORT or [IPV6]:PORT; port 0 takes any that is free."
_AUTHORITY = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?"
)
_NAMES_OF_LOOPBACK = frozenset({"localhost", LOOPBACK, "::1"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address and a port to listen on, and the name it was given by."""

    ip: str
    port: int
    name: str

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return _is_loopback(self.ip)

    @property
    def wildcard(self) -> bool:
        """Whether it stands for all addresses of this machine."""
        return ipaddress.ip_address(self.ip).is_unspecified

    @property
    def url(self) -> str:
        """The base of the URLs under which this machine reaches it."""
        six = ":" in self.ip
        host = ("::1" if six else LOOPBACK) if self.wildcard else self.ip
        return f"http://[{host}]:{self.port}" if six else f"http://{host}:{self.port}"


def read_address(text: str) -> Address:
    """The address that `[HOST:]PORT` means; the host is this machine's loopback when not said."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        text = f"{LOOPBACK}:{text}"
    name, port = _parts(text)
    if port is None or port > 65_535:
        raise InvalidArguments(f"{text!r} is no address to listen on.", hint=_HINT, argument="http")
    return Address(ip=_ip_of(name), port=port, name=name)


def _parts(text: str) -> tuple[str, int | None]:
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        raise InvalidArguments(f"{text!r} is no address to listen on.", hint=_HINT, argument="http")
    port = found["port"]
    return (found["six"] or found["name"]).lower(), None if port is None else int(port)


def _ip_of(name: str) -> str:
    if name == "localhost":
        return LOOPBACK  # whatever a resolver makes of it
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InvalidArguments(
            f"There is no address of the name {name!r}.", hint=_HINT, argument="http"
        ) from None
    return str(found[0][4][0])


def _is_loopback(ip: str) -> bool:
    address = ipaddress.ip_address(ip)
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


class Names:
    """The names under which a request may ask for this server: what keeps a page in a browser out.

    A page whose own name was made to point at this machine still sends that name, in `Host` as in
    `Origin`. Accepted are the names of the address listened on with its port, the very address a
    connection came in on, and what the person allowed (`NAME`, any port, or `NAME:PORT`).
    """

    def __init__(self, address: Address, allowed: Iterable[str] = ()) -> None:
        names = {address.name, address.ip}
        if address.loopback or address.wildcard:
            names |= _NAMES_OF_LOOPBACK
        self._port = address.port
        self._own = frozenset(names)
        self._allowed = frozenset(_read_allowed(name) for name in allowed)

    def host(self, value: str, local: str = "") -> bool:
        """Whether a `Host` is one of ours; *local* is the address on which the connection came in."""
        return self._ours(value, "http", local)

    def origin(self, value: str, local: str = "") -> bool:
        """Whether an `Origin` is one of ours."""
        scheme, separator, rest = value.partition("://")
        return bool(separator) and scheme in _DEFAULT_PORTS and self._ours(rest, scheme, local)

    def _ours(self, authority: str, scheme: str, local: str) -> bool:
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            return False
        name = (found["six"] or found["name"]).lower()
        port = int(found["port"]) if found["port"] else _DEFAULT_PORTS[scheme]
        if (name, None) in self._allowed or (name, port) in self._allowed:
            return True
        return port == self._port and (name in self._own or (local != "" and name == local))


def _read_allowed(text: str) -> tuple[str, int | None]:
    found = _AUTHORITY.fullmatch(text.strip())
    if found is None:
        raise InvalidArguments(
            f"{text!r} is no name of a host.",
            hint="Give NAME or NAME:PORT, without http://.",
            argument="allow_host",
        )
    return (found["six"] or found["name"]).lower(), int(found["port"]) if found["port"] else None
