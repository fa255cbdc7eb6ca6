"""Long calls tell how far they are and stop between notes, with real processes, in both eras."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.mcp.rawclient import SECONDS, RawClient
from tests.surfaces.mcp.realvault import fading

LONG_AGO = (1_600_000_000, 1_600_000_000)
MANY = 400


@pytest.fixture(params=[False, True], ids=["handshake", "modern"])
def client(request: pytest.FixtureRequest, vault: Path) -> Iterator[RawClient]:
    """A client whose server does not keep the vault by itself: what moves, the call has moved."""
    with RawClient(vault, modern=bool(request.param), env={"VAULT_PALACE_WATCH": "off"}) as connected:
        connected.open()
        yield connected


def many(note: Callable[..., Path], text: Callable[[int], str], count: int = MANY) -> None:
    for number in range(count):
        os.utime(note(f"01_Shallow/n{number:03}.md", text(number)), LONG_AGO)


def begin(client: RawClient, name: str, **arguments: object) -> int:
    meta = {"progressToken": "t1"}
    return client.request("tools/call", {"name": name, "arguments": arguments, "_meta": meta})


def progress(message: dict[str, Any] | None) -> tuple[int, int] | None:
    if message is None or message.get("method") != "notifications/progress":
        return None
    params = message["params"]
    assert params["progressToken"] == "t1"
    return params["progress"], params["total"]


def to_the_end(client: RawClient, number: int) -> tuple[list[tuple[int, int]], dict[str, Any]]:
    told: list[tuple[int, int]] = []
    while True:
        message = client.receive()
        assert message is not None, client.stderr()
        if message.get("id") == number:
            return told, message
        if (step := progress(message)) is not None:
            told.append(step)


def assert_rises(told: list[tuple[int, int]]) -> None:
    assert told
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert all(done <= total for done, total in told)


def until_still(vault: Path) -> set[str]:
    """The memories in Shallow, once nothing moves any more and nobody holds the lock."""
    before: set[str] = set()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        now = {path.name for path in (vault / "01_Shallow").glob("n*.md")}
        if now == before:
            return now
        before = now
        time.sleep(1.0)
    raise AssertionError("notes go on moving")


def test_metabolize_tells_how_far_it_is(client: RawClient, note: Callable[..., Path]) -> None:
    many(note, lambda number: fading(f"n{number}"), 60)

    told, response = to_the_end(client, begin(client, "metabolize", confirm=True, force=True))

    assert_rises(told)
    assert told[-1][0] == told[-1][1]
    assert response["result"]["structuredContent"]["archived_count"] == 60


def test_mc_08_metabolize_stops_between_notes(
    client: RawClient, vault: Path, note: Callable[..., Path]
) -> None:
    many(note, lambda number: fading(f"n{number}"))

    number = begin(client, "metabolize", confirm=True, force=True)
    while not list((vault / "_Archive").glob("**/n*.md")):
        assert progress(client.receive()) is not None
    client.notify("notifications/cancelled", {"requestId": number})
    left = until_still(vault)

    archived = {path.name for path in (vault / "_Archive").glob("**/n*.md")}
    assert left
    assert left.isdisjoint(archived)
    assert len(left | archived) == MANY
    # The next run takes the rest, and nobody holds the lock.
    done = client.good("metabolize", confirm=True, force=True)
    assert done["archived_count"] == len(left)


def test_a_move_with_many_links_tells_how_far_it_is(client: RawClient, note: Callable[..., Path]) -> None:
    os.utime(note("01_Shallow/hub.md", "The hub.\n"), LONG_AGO)
    many(note, lambda number: f"See [[01_Shallow/hub|the hub]], {number}.\n", 150)
    client.good("search_room", query="hub")

    told, response = to_the_end(
        client, begin(client, "move_file", source="01_Shallow/hub.md", dest_layer="sediment")
    )

    assert_rises(told)
    assert response["result"]["structuredContent"]["links_rewritten"] == 150


def test_mc_08_a_cancelled_move_leaves_everything_as_it_was(
    client: RawClient, vault: Path, note: Callable[..., Path]
) -> None:
    os.utime(note("01_Shallow/hub.md", "The hub.\n"), LONG_AGO)
    many(note, lambda number: f"See [[01_Shallow/hub|the hub]], {number}.\n")
    client.good("search_room", query="hub")
    before = {path.name: path.read_text() for path in (vault / "01_Shallow").glob("*.md")}

    number = begin(client, "move_file", source="01_Shallow/hub.md", dest_layer="sediment")
    assert progress(client.receive()) is not None
    client.notify("notifications/cancelled", {"requestId": number})
    client.good("write_memory", content="x", title="Afterwards")  # nobody holds the lock

    after = {path.name: path.read_text() for path in (vault / "01_Shallow").glob("*.md")}
    assert {name: text for name, text in after.items() if name != "Afterwards.md"} == before
    assert not (vault / "02_Sediment/hub.md").exists()


def test_filling_the_index_within_a_call_is_told(client: RawClient, note: Callable[..., Path]) -> None:
    many(note, lambda number: f"Note {number}.\n", 900)

    told, response = to_the_end(client, begin(client, "search_room", query="note"))

    assert_rises(told)
    assert response["result"]["structuredContent"]["total"] == 900
