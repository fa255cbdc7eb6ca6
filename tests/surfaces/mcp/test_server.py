"""The server in this process, spoken to by the SDK's client in both protocol eras."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Implementation, TextContent

from tests.surfaces.mcp.fakepalace import FakePalace, match
from tests.surfaces.mcp.test_tools import CALLS
from vault_palace import __version__
from vault_palace.core import errors
from vault_palace.services.caller import CALLER, Caller
from vault_palace.surfaces.mcp.desk import Desk
from vault_palace.surfaces.mcp.door import Door
from vault_palace.surfaces.mcp.server import build
from vault_palace.surfaces.mcp.texts import PRESETS, TOOLS

SECONDS = 60.0
ERAS = ["legacy", "auto"]


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def talk(palace: FakePalace, era: str, conversation: Callable[[Client], Awaitable[None]]) -> Desk:
    """Hold *conversation* with a server around *palace*; answers the desk that served it."""
    desk = Desk(Door(lambda: palace.as_palace))

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                await conversation(client)

    anyio.run(main)
    return desk


def text_of(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text


def ask(palace: FakePalace, era: str, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """The result of one call."""
    results: list[CallToolResult] = []

    async def conversation(client: Client) -> None:
        results.append(await client.call_tool(name, arguments))

    talk(palace, era, conversation)
    return results[0]


def test_the_server_says_who_it_is_and_how_to_use_it(era: str) -> None:
    async def conversation(client: Client) -> None:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("vault-palace", __version__)
        assert "search_room" in (client.instructions or "")

    talk(FakePalace(), era, conversation)


def test_tools_are_listed_in_their_order_with_honest_hints(era: str) -> None:
    async def conversation(client: Client) -> None:
        listed = (await client.list_tools()).tools

        assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]
        for tool, text in zip(listed, TOOLS, strict=True):
            hints = tool.annotations
            assert hints is not None
            assert hints.open_world_hint is False
            assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (
                text.reads_only,
                text.destructive,
                text.idempotent,
            )
            assert tool.output_schema is not None

    talk(FakePalace(), era, conversation)


def test_a_vault_opened_read_only_offers_no_tool_that_writes(era: str) -> None:
    palace = FakePalace()
    palace.fail = errors.PolicyViolation("The vault is read-only.", hint="Ask its owner.")
    desk = Desk(Door(lambda: palace.as_palace), read_only=True)

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                listed = {tool.name for tool in (await client.list_tools()).tools}
                assert listed == {
                    "wake_up",
                    "read_memory",
                    "search_room",
                    "read_map",
                    "healthcheck",
                    "get_metrics",
                }
                refused = await client.call_tool("write_memory", {"content": "x"})
                assert text_of(refused).startswith("policy_violation: ")
                assert "read-only" in text_of(refused)
                assert "rate_memory" not in (client.instructions or "")

    anyio.run(main)


@pytest.mark.parametrize(
    ("tools", "read_only", "listed"),
    [
        (PRESETS["core"], False, list(PRESETS["core"])),
        (PRESETS["core"], True, ["wake_up", "read_memory", "search_room"]),
        (("search_room", "read_map"), False, ["search_room", "read_map"]),
        (("write_memory",), True, []),
        (None, False, [tool.name for tool in TOOLS]),
    ],
)
def test_a_server_lists_the_tools_that_it_was_started_with(
    era: str, tools: tuple[str, ...] | None, read_only: bool, listed: list[str]
) -> None:
    desk = Desk(Door(lambda: FakePalace().as_palace), read_only=read_only, tools=tools)
    seen: list[str] = []

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                seen.extend(tool.name for tool in (await client.list_tools()).tools)

    anyio.run(main)

    assert seen == listed


def test_a_tool_that_is_not_offered_is_refused(era: str) -> None:
    palace = FakePalace()
    desk = Desk(Door(lambda: palace.as_palace), tools=("search_room", "get_metrics"))
    answers: list[CallToolResult] = []

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                answers.append(await client.call_tool("purge_memory", {"path": "x.md", "confirm": True}))
                answers.append(await client.call_tool("get_metrics", {}))

    anyio.run(main)

    assert answers[0].is_error
    assert text_of(answers[0]).startswith("policy_violation: purge_memory is not offered here")
    assert "search_room" in text_of(answers[0])
    assert palace.calls == []
    assert "purge_memory" in (answers[1].structured_content or {})  # whoever watches sees that it was tried


@pytest.mark.parametrize(("name", "arguments", "verb", "says"), CALLS)
def test_every_tool_answers_in_both_forms(
    era: str, name: str, arguments: dict[str, Any], verb: object, says: tuple[str, ...]
) -> None:
    # The client checks the structured content against the declared schema and raises when it does not fit.
    async def conversation(client: Client) -> None:
        await client.list_tools()
        if name == "get_metrics":
            await client.call_tool("read_map", {})

        result = await client.call_tool(name, arguments)

        assert not result.is_error, text_of(result)
        assert isinstance(result.structured_content, dict)
        assert [part for part in says if part not in text_of(result)] == []

    talk(FakePalace(), era, conversation)


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidArguments("No.", hint="Do this.", argument="path"),
        errors.NotFound("No.", hint="Do this.", path="x.md"),
        errors.Exists("No.", hint="Do this.", path="x.md", rev="0123456789ab"),
        errors.Conflict("No.", hint="Do this."),
        errors.NoteChanged("No.", hint="Do this."),
        errors.Busy("No.", hint="Do this.", retry_after=600),
        errors.PathViolation("No.", hint="Do this."),
        errors.PolicyViolation("No.", hint="Do this."),
        errors.RateLimited("No.", hint="Do this."),
        errors.BudgetExceeded("No.", hint="Do this.", limit=512),
        errors.LockTimeout("No.", hint="Do this."),
        errors.MalformedNote("No.", hint="Do this.", path="caf\udce9.md"),
        errors.UnsafeContent("No.", hint="Do this."),
        errors.TimedOut("No.", hint="Do this."),
        errors.StorageFailed("No.", hint="Do this."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_mc_20_an_expected_failure_begins_with_its_code_and_names_the_next_step(
    era: str, error: errors.VaultError
) -> None:
    palace = FakePalace()
    palace.fail = error

    result = ask(palace, era, "read_memory", {"path": "x.md"})

    assert result.is_error is True
    assert result.structured_content is None
    assert text_of(result) == f"{error.code}: No. Do this."
    assert result.meta is not None
    told = {key: value for key, value in result.meta.items() if "/" not in key}
    assert told == {"code": error.code} | {
        key: "caf?.md" if value == "caf\udce9.md" else value for key, value in error.facts.items()
    }


def test_mc_20_something_unexpected_is_an_error_that_gives_nothing_away(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    palace = FakePalace()
    palace.fail = RuntimeError("the password is swordfish")

    result = ask(palace, era, "read_map", {})

    assert result.is_error is True
    assert text_of(result).startswith("internal: ")
    assert "swordfish" not in str(result)
    assert "swordfish" in caplog.text  # for whoever mends it


def test_mc_20_an_unknown_tool_is_an_error_that_names_the_known_ones(era: str) -> None:
    result = ask(FakePalace(), era, "delete_everything", {})

    assert result.is_error is True
    assert text_of(result).startswith("not_found: ")
    assert "write_memory" in text_of(result)


@pytest.mark.parametrize(
    ("name", "arguments", "argument"),
    [
        ("write_memory", {}, "content"),
        ("write_memory", {"content": None}, "content"),
        ("write_memory", {"content": "x", "title": []}, "title"),
        ("write_memory", {"content": "x", "title": {"a": 1}}, "title"),
        ("write_memory", {"content": "x", "title": 7}, "title"),
        ("write_memory", {"content": "x", "title": ""}, "title"),
        ("write_memory", {"content": "x", "bogus": 1}, "bogus"),
        ("write_memory", {"content": "a\0b"}, "content"),
        ("search_room", {"query": "x", "limit": 0}, "limit"),
        ("search_room", {"query": "x", "limit": -5}, "limit"),
        ("search_room", {"query": "x", "limit": 100_000}, "limit"),
        ("search_room", {"query": "x", "limit": True}, "limit"),
        ("search_room", {"query": "x", "max_tokens": 20_001}, "max_tokens"),
        ("update_map", {"action": "add_link", "details": {}}, "details.link"),
        ("read_map", {"max_tokens": 300}, "max_tokens"),
        ("metabolize", {"confirm": "yes"}, "confirm"),
    ],
)
def test_mc_07_a_bad_argument_is_named_and_nothing_is_done(
    era: str, name: str, arguments: dict[str, Any], argument: str
) -> None:
    palace = FakePalace()

    result = ask(palace, era, name, arguments)

    assert result.is_error is True
    assert text_of(result).startswith("invalid_arguments: ")
    assert argument.split(".")[-1] in text_of(result)
    assert result.meta is not None
    assert result.meta["argument"] == argument
    assert palace.calls == []


def test_metrics_count_successes_errors_and_codes(era: str) -> None:
    async def conversation(client: Client) -> None:
        await client.call_tool("read_map", {})
        await client.call_tool("read_memory", {"path": "01_Shallow/gone.md"})
        await client.call_tool("read_memory", {})
        await client.call_tool("no_such_tool", {})

        metrics = (await client.call_tool("get_metrics", {})).structured_content

        assert metrics is not None
        assert set(metrics) == {"read_map", "read_memory", "unknown_tool"}
        assert metrics["unknown_tool"]["errors_by_code"] == {"not_found": 1}
        assert (metrics["read_map"]["success"], metrics["read_map"]["error"]) == (1, 0)
        assert metrics["read_memory"]["errors_by_code"] == {"invalid_arguments": 1, "not_found": 1}

    talk(FakePalace(), era, conversation)


def test_metrics_say_whether_a_search_was_followed_by_a_read(era: str) -> None:
    palace = FakePalace()
    palace.hits = [match(1, path="01_Shallow/apollo.md")]

    async def conversation(client: Client) -> None:
        await client.call_tool("search_room", {"query": "events"})
        await client.call_tool("read_memory", {"path": "01_Shallow/apollo.md"})
        await client.call_tool("read_memory", {"query": "topics"})

        answer = await client.call_tool("get_metrics", {})

        assert answer.structured_content is not None
        searched = answer.structured_content["search_room"]
        assert (searched["followed"], searched["missed"], searched["hit_rate"]) == (1, 0, 1.0)
        assert answer.structured_content["read_memory"]["waiting"] == 1
        assert "1 of 1 decided search followed by a read (100%)" in text_of(answer)

    talk(palace, era, conversation)


def test_requests_that_are_no_tool_calls_are_counted_too(era: str) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.read_resource("palace://no/such/thing")

        metrics = (await client.call_tool("get_metrics", {})).structured_content

        assert metrics is not None
        assert metrics["resources/read"]["error"] == 1

    talk(FakePalace(), era, conversation)


def test_metabolize_reports_progress_to_whoever_asked_for_it(era: str) -> None:
    heard: list[tuple[float, float | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async def conversation(client: Client) -> None:
        await client.call_tool("metabolize", {"confirm": True}, progress_callback=listen)

    talk(FakePalace(), era, conversation)

    assert heard[-1] == (3, 3)


def test_mc_08_a_cancelled_metabolize_stops_between_notes() -> None:
    # In memory the modern era has no line to send a cancellation over; the real process is tested in both.
    palace = FakePalace()
    started, cancelled = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        assert cancelled.wait(SECONDS)

    palace.hook = hold
    seen: list[bool] = []
    real = palace.metabolize

    def watched(**arguments: Any) -> Any:
        answer = real(**arguments)
        seen.append(answer["cancelled"])
        return answer

    palace.metabolize = watched  # type: ignore[method-assign]

    async def conversation(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "metabolize", {"confirm": True})
            await anyio.to_thread.run_sync(started.wait, SECONDS)
            group.cancel_scope.cancel()
        # The notice of the cancellation travels before this request does.
        palace.hook = lambda: None
        await client.list_tools()
        cancelled.set()
        assert not (await client.call_tool("read_map", {})).is_error

    talk(palace, "legacy", conversation)

    assert seen == [True]


def test_the_client_is_who_calls(era: str) -> None:
    palace = FakePalace()
    seen: list[Caller | None] = []
    palace.hook = lambda: seen.append(CALLER.get())
    desk = Desk(Door(lambda: palace.as_palace))

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            client = Client(build(desk), mode=era, client_info=Implementation(name="an agent\n", version="1"))
            async with client:
                await client.call_tool("read_map", {})

    anyio.run(main)

    assert seen == [Caller(agent="an agent")]


def test_a_slow_call_keeps_nobody_else_waiting(era: str) -> None:
    palace = FakePalace()
    free = threading.Event()

    async def conversation(client: Client) -> None:
        palace.hook = lambda: None if free.wait(SECONDS) else pytest.fail("never freed")
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "read_map", {})
            while not palace.calls:
                await anyio.sleep(0.001)
            palace.hook = lambda: None

            assert (await client.list_tools()).tools
            assert not (await client.call_tool("healthcheck", {})).is_error
            free.set()

    talk(palace, era, conversation)


def test_the_vault_is_opened_once_and_closed_at_the_end(era: str) -> None:
    palace = FakePalace()
    opened: list[int] = []

    def open_palace() -> Any:
        opened.append(1)
        return palace.as_palace

    desk = Desk(Door(open_palace))

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                for _ in range(3):
                    await client.call_tool("read_map", {})

    anyio.run(main)

    assert opened == [1]
    assert palace.closed.is_set()


def test_the_handshake_does_not_wait_for_the_vault(era: str) -> None:
    palace = FakePalace()
    free = threading.Event()

    def open_palace() -> Any:
        assert free.wait(SECONDS)
        return palace.as_palace

    desk = Desk(Door(open_palace))

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                assert (await client.list_tools()).tools
                free.set()
                assert not (await client.call_tool("read_map", {})).is_error

    anyio.run(main)


def test_a_vault_that_could_not_be_opened_is_tried_again(era: str) -> None:
    palace = FakePalace()
    disk_is_back = threading.Event()

    def open_palace() -> Any:
        if not disk_is_back.is_set():
            raise errors.NotFound("The vault is not there.", hint="Mount its disk.", path="/vault")
        return palace.as_palace

    desk = Desk(Door(open_palace))
    answers: list[CallToolResult] = []

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                answers.append(await client.call_tool("read_map", {}))
                disk_is_back.set()
                answers.append(await client.call_tool("read_map", {}))

    anyio.run(main)

    assert [answer.is_error for answer in answers] == [True, False]
    assert text_of(answers[0]) == "not_found: The vault is not there. Mount its disk."
