"""Addresses to listen on and names to be asked under: tables of what is ours and what is not."""

from __future__ import annotations

import pytest

from vault_palace.core.errors import InvalidArguments
from vault_palace.surfaces.mcp.address import Address, Names, read_address


@pytest.mark.parametrize(
    ("text", "ip", "port", "loopback"),
    [
        ("8000", "127.0.0.1", 8000, True),
        ("0", "127.0.0.1", 0, True),
        (" 8000 ", "127.0.0.1", 8000, True),
        ("65535", "127.0.0.1", 65535, True),
        ("127.0.0.1:8000", "127.0.0.1", 8000, True),
        ("127.8.9.1:8000", "127.8.9.1", 8000, True),
        ("localhost:8000", "127.0.0.1", 8000, True),
        ("LOCALHOST:8000", "127.0.0.1", 8000, True),
        ("[::1]:8000", "::1", 8000, True),
        ("[::ffff:127.0.0.1]:8000", "::ffff:127.0.0.1", 8000, True),
        ("0.0.0.0:8000", "0.0.0.0", 8000, False),
        ("[::]:8000", "::", 8000, False),
        ("10.0.0.5:8000", "10.0.0.5", 8000, False),
        ("[::ffff:10.0.0.5]:8000", "::ffff:10.0.0.5", 8000, False),
        ("[fe80::1]:8000", "fe80::1", 8000, False),
    ],
)
def test_an_address_is_read(text: str, ip: str, port: int, loopback: bool) -> None:
    address = read_address(text)

    assert address.port == port
    assert address.ip.replace("7f00:1", "127.0.0.1").replace("a00:5", "10.0.0.5") == ip
    assert address.loopback is loopback


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":8000",
        "*:8000",
        "::1:8000",
        "[::1]",
        "localhost",
        "localhost:",
        "65536",
        "99999",
        "100000",
        "-1",
        "80 00",
        "٨٠٠٠",
        "http://localhost:8000",
        "user@localhost:8000",
        "localhost:8000/mcp",
        "no-such-name.invalid:8000",
        "a..b:80",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments):
        read_address(text)


LOOPBACK = Address(ip="127.0.0.1", port=8000, name="127.0.0.1")


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8000", True),
        ("localhost:8000", True),
        ("LocalHost:8000", True),
        ("[::1]:8000", True),
        ("localhost", False),
        ("localhost:8001", False),
        ("localhost:80000", False),
        ("localhost:8000.evil.example", False),
        ("localhost.evil.example:8000", False),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("127.0.0.1:8000@evil.example", False),
        ("evil.example@127.0.0.1:8000", False),
        ("127.0.0.1:8000, evil.example", False),
        ("10.0.0.5:8000", False),
        ("localhost:8000\n", False),
        (" localhost:8000", False),
        ("", False),
        ("::1:8000", False),
        ("0.0.0.0:8000", False),
    ],
)
def test_a_host_is_ours_by_name_and_port(host: str, ours: bool) -> None:
    assert Names(LOOPBACK).host(host) is ours


@pytest.mark.parametrize(
    ("origin", "ours"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("https://localhost:8000", True),
        ("http://localhost", False),
        ("http://localhost:3000", False),
        ("http://evil.example", False),
        ("http://localhost:8000.evil.example", False),
        ("http://localhost:8000/", False),
        ("file://", False),
        ("file://localhost:8000", False),
        ("chrome-extension://localhost:8000", False),
        ("null", False),
        ("", False),
        ("localhost:8000", False),
    ],
)
def test_an_origin_is_ours_by_scheme_name_and_port(origin: str, ours: bool) -> None:
    assert Names(LOOPBACK).origin(origin) is ours


@pytest.mark.parametrize(
    ("allowed", "host", "ours"),
    [
        ("palace.example", "palace.example", True),
        ("palace.example", "palace.example:9000", True),
        ("Palace.Example", "PALACE.example", True),
        ("palace.example:9000", "palace.example:9000", True),
        ("palace.example:9000", "palace.example", False),
        ("palace.example", "sub.palace.example", False),
        ("palace.example", "localhost:8000", True),
        ("[2001:db8::1]", "[2001:db8::1]:9000", True),
    ],
)
def test_a_person_can_allow_a_name(allowed: str, host: str, ours: bool) -> None:
    assert Names(LOOPBACK, [allowed]).host(host) is ours


@pytest.mark.parametrize("allowed", ["", "*", "http://palace.example", "a b", "a/b", "a:b"])
def test_what_is_no_name_cannot_be_allowed(allowed: str) -> None:
    with pytest.raises(InvalidArguments):
        Names(LOOPBACK, [allowed])


def test_the_address_a_connection_came_in_on_is_a_name_of_ours() -> None:
    names = Names(Address(ip="0.0.0.0", port=8000, name="0.0.0.0"))

    assert names.host("10.0.0.5:8000", local="10.0.0.5")
    assert not names.host("10.0.0.6:8000", local="10.0.0.5")
    assert names.host("localhost:8000", local="10.0.0.5")
