"""Log messages over the real pipes: to handshake clients that asked, from the level they asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.mcp.rawclient import RawClient

FAKE = "tests.surfaces.mcp.fakeserver"
UNREADABLE = b"hello\n"  # passed over with a warning


def heard(client: RawClient) -> list[dict[str, Any]]:
    """The log messages that came before the answer to the next request."""
    number = client.request("tools/list")
    messages: list[dict[str, Any]] = []
    while (message := client.receive()) is not None and message.get("id") != number:
        messages.append(message)
    return [one["params"] for one in messages if one["method"] == "notifications/message"]


@pytest.mark.parametrize(("level", "hears"), [("info", True), ("warning", True), ("error", False)])
def test_a_client_hears_warnings_from_the_level_it_asks_for(tmp_path: Path, level: str, hears: bool) -> None:
    with RawClient(tmp_path, module=FAKE) as client:
        client.open()
        assert client.ask("logging/setLevel", {"level": level})["result"] == {}

        client.send_bytes(UNREADABLE)

        messages = heard(client)
        assert [one["level"] for one in messages] == (["warning"] if hears else [])
        assert all("was passed over" in one["data"] for one in messages)


def test_a_failure_inside_the_server_is_told_without_its_traceback(tmp_path: Path) -> None:
    with RawClient(tmp_path, module=FAKE) as client:
        client.open()
        client.ask("logging/setLevel", {"level": "error"})

        client.bad("write_memory", content="x", title="crash")
        client.ask("tools/list")

        lines = b"".join(client.lines)
        assert b'"level":"error"' in lines
        assert b"write_memory failed" in lines
        assert b"Traceback" not in lines
        assert b"swordfish" not in lines


def test_a_client_that_asked_for_no_level_hears_nothing(tmp_path: Path) -> None:
    with RawClient(tmp_path, module=FAKE) as client:
        client.open()

        client.send_bytes(UNREADABLE)

        assert heard(client) == []


def test_a_level_that_is_none_is_refused(tmp_path: Path) -> None:
    with RawClient(tmp_path, module=FAKE) as client:
        client.open()

        assert client.ask("logging/setLevel", {"level": "loud"})["error"]["code"] == -32602


def test_a_modern_client_has_no_such_method(tmp_path: Path) -> None:
    with RawClient(tmp_path, module=FAKE, modern=True) as client:
        client.open()

        assert client.ask("logging/setLevel", {"level": "info"})["error"]["code"] == -32601
