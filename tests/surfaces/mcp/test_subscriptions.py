"""Subscriptions with real processes, real edits of files and both eras; and what one hub does by itself."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

from tests.surfaces.mcp.rawclient import SECONDS, RawClient
from tests.surfaces.mcp.realvault import fading
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.surfaces.mcp import subscriptions
from vault_palace.surfaces.mcp.desk import Desk
from vault_palace.surfaces.mcp.door import Door
from vault_palace.surfaces.mcp.resources import Place
from vault_palace.surfaces.mcp.server import build
from vault_palace.surfaces.mcp.subscriptions import Subscriber

UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
KAFKA = "palace://memory/01_Shallow/ideas/Kafka.md"
MAP, DECAYING = "palace://map", "palace://decaying"
# After this a change that nobody hears of until a marker came is one that is not told.
MARKER = "palace://memory/01_Shallow/marker.md"


@pytest.fixture(params=[False, True], ids=["handshake", "modern"])
def modern(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def client(vault: Path, note: Callable[..., Path], modern: bool) -> Iterator[RawClient]:
    """An agent's client on a vault with one note."""
    note("_System/Policy.md", "---\nquiet_seconds: 0.2\ntimezone: UTC\n---\n")
    note("01_Shallow/ideas/Kafka.md", "Kafka keeps topics.\n")
    note("01_Shallow/marker.md", "0\n")
    with RawClient(vault, modern=modern) as connected:
        connected.open()
        connected.good("search_room", query="kafka")  # the vault is open and its index is filled
        yield connected


def subscribe(client: RawClient, *uris: str) -> int:
    """Subscribe in the client's own way, also to the marker; answers the number of the stream, if any."""
    wanted = [*uris, MARKER]
    if not client.modern:
        for uri in wanted:
            assert client.ask("resources/subscribe", {"uri": uri})["result"] == {}
        return 0
    number = client.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}})
    first = client.receive()
    assert first is not None
    assert first["method"] == ACKNOWLEDGED
    assert first["params"]["notifications"] == {"resourceSubscriptions": wanted}
    return number


def until(client: RawClient, *uris: str) -> list[str]:
    """What was told until each of *uris* was, in order."""
    told: list[str] = []
    while set(uris) - set(told):
        message = client.receive()
        assert message is not None, client.stderr()
        if message.get("method") == UPDATED:
            told.append(message["params"]["uri"])
    return told


def mark(vault: Path) -> None:
    """Change the marker, so that what is told before it can be counted."""
    (vault / "01_Shallow/marker.md").write_text(f"{time.monotonic_ns()}\n")


def edit(path: Path, words: str) -> None:
    """As a person's editor saves: a new file in the place of the old one."""
    temporary = path.with_name(f".{path.name}.swp")
    temporary.write_text(path.read_text() + words)
    os.replace(temporary, path)


def test_a_person_s_edit_is_told(vault: Path, client: RawClient) -> None:
    number = subscribe(client, KAFKA)

    edit(vault / "01_Shallow/ideas/Kafka.md", "A person adds this.\n")

    message = client.receive()
    assert message is not None
    assert message["method"] == UPDATED
    assert message["params"]["uri"] == KAFKA
    assert message["params"].get("_meta", {}) == (
        {"io.modelcontextprotocol/subscriptionId": number} if client.modern else {}
    )
    text = client.ask("resources/read", {"uri": KAFKA})["result"]["contents"][0]["text"]
    assert "A person adds this." in text


def test_a_deletion_is_told(vault: Path, client: RawClient) -> None:
    subscribe(client, KAFKA)

    (vault / "01_Shallow/ideas/Kafka.md").unlink()

    assert until(client, KAFKA) == [KAFKA]
    assert client.ask("resources/read", {"uri": KAFKA})["error"]["data"]["uri"] == KAFKA


def test_a_move_is_told_at_the_old_path_and_at_the_new_one(vault: Path, client: RawClient) -> None:
    new = "palace://memory/02_Sediment/Kafka.md"
    subscribe(client, KAFKA, new)

    os.replace(vault / "01_Shallow/ideas/Kafka.md", vault / "02_Sediment/Kafka.md")

    assert set(until(client, KAFKA, new)) == {KAFKA, new}
    refused = client.ask("resources/read", {"uri": KAFKA})["error"]
    assert refused["data"]["now_at"] == ["02_Sediment/Kafka.md"]


def test_another_agent_s_write_is_told_and_one_s_own_is_not(vault: Path, client: RawClient) -> None:
    subscribe(client, KAFKA)
    append = {"content": "One more.", "path": "ideas/Kafka", "mode": "append"}

    client.good("write_memory", **append)
    client.good("rate_memory", path="01_Shallow/ideas/Kafka.md", density=0.7)
    mark(vault)
    own = until(client, MARKER)
    with RawClient(vault, modern=not client.modern) as other:
        other.open()
        other.good("write_memory", **append)
        theirs = until(client, KAFKA)

    assert own == [MARKER]
    assert theirs == [KAFKA]


def test_the_program_s_own_upkeep_is_silent(vault: Path, client: RawClient) -> None:
    place = vault / "01_Shallow/ideas/Kafka.md"
    subscribe(client, KAFKA)

    # The keeper writes id, dates and counts; a link from elsewhere raises its count.
    (vault / "01_Shallow/linking.md").write_text("See [[Kafka]].\n")
    end = time.monotonic() + SECONDS
    while "backlinks: 1" not in place.read_text():
        assert time.monotonic() < end, place.read_text()
        time.sleep(0.05)
    client.good("read_memory", path="01_Shallow/ideas/Kafka.md")
    mark(vault)

    assert until(client, MARKER) == [MARKER]


def test_a_burst_of_saves_is_told_a_few_times(vault: Path, client: RawClient) -> None:
    subscribe(client, KAFKA)

    for number in range(200):
        edit(vault / "01_Shallow/ideas/Kafka.md", f"{number}\n")
        time.sleep(0.005)
    time.sleep(0.5)  # so that the marker does not come with the last of them
    mark(vault)

    told = until(client, KAFKA, MARKER)
    assert 1 <= told.count(KAFKA) <= 10


def test_the_map_and_what_fades_are_told_when_they_changed(vault: Path, client: RawClient) -> None:
    subscribe(client, MAP, DECAYING)
    until(client, MAP)  # the keeper has written its first map

    (vault / "01_Shallow/old.md").write_text(fading("old"))

    assert {MAP, DECAYING} <= set(until(client, MAP, DECAYING))
    assert (
        "01_Shallow/old.md"
        in (client.ask("resources/read", {"uri": DECAYING})["result"]["contents"][0]["text"])
    )


def test_who_unsubscribed_hears_no_more(vault: Path, client: RawClient) -> None:
    number = subscribe(client, KAFKA)
    if client.modern:
        client.notify("notifications/cancelled", {"requestId": number})
        subscribe(client)
    else:
        assert client.ask("resources/unsubscribe", {"uri": KAFKA})["result"] == {}
        assert client.ask("resources/unsubscribe", {"uri": KAFKA})["result"] == {}

    edit(vault / "01_Shallow/ideas/Kafka.md", "More.\n")
    client.good("search_room", query="more")
    mark(vault)

    assert until(client, MARKER) == [MARKER]


def test_only_what_can_be_told_is_acknowledged(client: RawClient) -> None:
    if not client.modern:
        refused = client.ask("resources/subscribe", {"uri": "palace://memory/../x.md"})["error"]
        assert (refused["code"], refused["data"]["uri"]) == (INVALID_PARAMS, "palace://memory/../x.md")
        assert client.ask("subscriptions/listen", {"notifications": {}})["error"]["code"] == METHOD_NOT_FOUND
        return
    wanted = {
        "resourceSubscriptions": [KAFKA, "palace://memory/../x.md", "http://elsewhere", KAFKA],
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
    }

    client.request("subscriptions/listen", {"notifications": wanted})
    first = client.receive()

    assert first is not None
    assert first["params"]["notifications"] == {"resourceSubscriptions": [KAFKA]}
    assert client.ask("resources/subscribe", {"uri": KAFKA})["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes")
def test_a_note_that_cannot_be_looked_at_is_told_of_when_it_can_and_hides_no_other(
    vault: Path, client: RawClient
) -> None:
    pipe, uri = vault / "01_Shallow/pipe.md", "palace://memory/01_Shallow/pipe.md"
    os.mkfifo(pipe)
    subscribe(client, uri, KAFKA)

    edit(vault / "01_Shallow/ideas/Kafka.md", "More.\n")
    told = until(client, KAFKA)
    pipe.unlink()
    pipe.write_text("A note after all.\n")

    assert told == [KAFKA]
    assert until(client, uri) == [uri]


def test_too_many_are_refused(client: RawClient) -> None:
    uris = [f"palace://memory/01_Shallow/{number}.md" for number in range(1_001)]
    if client.modern:
        answer = client.ask("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
    else:
        for uri in uris[:-1]:
            client.ask("resources/subscribe", {"uri": uri})  # one by one: the server takes many at once
        answer = client.ask("resources/subscribe", {"uri": uris[-1]})

    assert answer["error"]["code"] == INVALID_PARAMS
    assert client.good("read_map") is not None


def test_the_end_of_the_input_ends_the_server_and_its_streams(client: RawClient) -> None:
    number = subscribe(client, KAFKA)

    client.end_input()
    rest = client.rest()

    assert client.wait() == 0
    assert [message["id"] for message in rest if "result" in message] == ([number] if client.modern else [])
    assert client.stderr() == ""


def test_a_client_that_never_reads_hinders_nobody_else(vault: Path, note: Callable[..., Path]) -> None:
    note("_System/Policy.md", "---\nquiet_seconds: 0.2\n---\n")
    note("01_Shallow/ideas/Kafka.md", "Kafka.\n")
    with RawClient(vault, listens=False) as deaf, RawClient(vault) as other:
        deaf.request(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "d", "version": "1"},
            },
        )
        deaf.notify("notifications/initialized", {})
        for number in range(300):  # more than its pipe holds
            deaf.request("resources/subscribe", {"uri": f"palace://memory/01_Shallow/{number}.md"})
            deaf.request("tools/list")
        other.open()
        subscribe(other, KAFKA)

        for number in range(300):
            note(f"01_Shallow/{number}.md", "x\n")
        edit(vault / "01_Shallow/ideas/Kafka.md", "More.\n")

        assert KAFKA in until(other, KAFKA)
        assert other.good("search_room", query="kafka")["total"] >= 1
        deaf.end_input()


def test_nobody_watches_the_vault_and_changes_are_told_all_the_same(
    vault: Path, note: Callable[..., Path], modern: bool
) -> None:
    note("01_Shallow/ideas/Kafka.md", "Kafka.\n")
    note("01_Shallow/marker.md", "0\n")
    with RawClient(vault, modern=modern, env={"VAULT_PALACE_WATCH": "off"}) as client:
        client.open()
        subscribe(client, KAFKA)

        edit(vault / "01_Shallow/ideas/Kafka.md", "More.\n")

        assert until(client, KAFKA) == [KAFKA]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_client_that_left_leaves_nothing_behind(vault: Path, note: Callable[..., Path], era: str) -> None:
    note("01_Shallow/ideas/Kafka.md", "Kafka.\n")
    settings = PalaceSettings(cache_dir=vault.parent / "cache", state_dir=vault.parent / "state")
    desk = Desk(Door(lambda: Palace.open(vault, settings=settings)))
    held: list[int] = []

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                if era == "legacy":
                    with pytest.warns(MCPDeprecationWarning):
                        await client.subscribe_resource(KAFKA)
                    held.append(len(desk.hub._subscribers))
                else:
                    async with client.listen(resource_subscriptions=[KAFKA]):
                        held.append(len(desk.hub._subscribers))
            held.append(len(desk.hub._subscribers))

    anyio.run(main)

    assert held == [1, 0]
    assert desk.hub._seen == {}
    assert desk.hub._of_connection == {}


def test_all_subscribers_together_hold_a_bounded_number_and_give_it_back(
    vault: Path, note: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MOST_IN_ALL", 5)
    settings = PalaceSettings(cache_dir=vault.parent / "cache", state_dir=vault.parent / "state")
    desk = Desk(Door(lambda: Palace.open(vault, settings=settings)))
    uris = [f"palace://memory/01_Shallow/{number}.md" for number in range(5)]

    async def falls_to(number: int) -> None:
        while desk.hub._held.total() != number:
            await anyio.sleep(0.001)

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode="2026-07-28") as client:
                async with client.listen(resource_subscriptions=uris[:3]):
                    async with client.listen(resource_subscriptions=uris[2:4]):
                        assert set(desk.hub._held.values()) == {1, 2}
                        with pytest.raises(MCPError, match="more than 5"):
                            async with client.listen(resource_subscriptions=[MAP]):
                                pass
                    await falls_to(3)
                await falls_to(0)
                async with client.listen(resource_subscriptions=uris):
                    assert desk.hub._held.total() == 5

    anyio.run(main)

    assert (desk.hub._held.total(), desk.hub._seen, desk.hub._subscribers) == (0, {}, set())


# -- one subscriber -----------------------------------------------------------------------------------------


def test_a_subscriber_that_does_not_read_holds_each_uri_once() -> None:
    place = Place("memory", "01_Shallow/a.md")
    subscriber = Subscriber(None, places={"u": place}, known={"u": "0"})
    posted: list[str] = []

    async def main() -> None:
        for number in range(1, 1_000):
            subscriber.tell({place: str(number)})
        assert list(subscriber.pending) == ["u"]

        async def post(uri: str) -> None:
            posted.append(uri)
            subscriber.close()

        with anyio.fail_after(SECONDS):
            await subscriber.deliver(post)

    anyio.run(main)

    assert posted == ["u"]


@pytest.mark.parametrize(("known", "now", "told"), [("a", "a", []), ("a", "b", ["u"]), ("a", "", ["u"])])
def test_only_another_state_is_news(known: str, now: str, told: list[str]) -> None:
    place = Place("memory", "01_Shallow/a.md")
    subscriber = Subscriber(None, places={"u": place}, known={"u": known})

    subscriber.tell({place: now, Place("map"): "x"})

    assert list(subscriber.pending) == told
