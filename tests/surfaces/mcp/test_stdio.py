"""The real process over its pipes: nothing but protocol comes out, nothing that goes in makes it deaf."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.surfaces.mcp.rawclient import ENVELOPE, ROOT, SECONDS, RawClient
from vault_palace import __version__
from vault_palace.surfaces.mcp.texts import TOOLS

FAKE = "tests.surfaces.mcp.fakeserver"
SLOW_WRITE = {"name": "write_memory", "arguments": {"content": "x", "title": "slow"}}


@pytest.fixture(params=["legacy", "modern"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RawClient]:
    """A conversation that has begun, in each era."""
    with RawClient(tmp_path, module=FAKE, modern=request.param == "modern") as raw:
        raw.open()
        yield raw


@pytest.fixture(scope="module", params=["legacy", "modern"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """One conversation for all tests that leave the server as it was, since a start takes its time."""
    modern = request.param == "modern"
    with RawClient(tmp_path_factory.mktemp("vault"), module=FAKE, modern=modern) as raw:
        raw.open()
        yield raw


def appears(path: Path) -> None:
    """Wait until *path* is there: the server made it."""
    last = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < last, f"{path.name} never came"
        time.sleep(0.002)


def only_protocol(client: RawClient) -> None:
    """Every line that came is one JSON-RPC message."""
    assert client.lines
    for line in client.lines:
        assert json.loads(line.decode("utf-8"))["jsonrpc"] == "2.0"


@pytest.mark.parametrize("modern", [False, True])
def test_the_server_presents_itself(tmp_path: Path, modern: bool) -> None:
    with RawClient(tmp_path, module=FAKE, modern=modern) as client:
        result = client.open()

        info = result["_meta"]["io.modelcontextprotocol/serverInfo"] if modern else result["serverInfo"]
        assert (info["name"], info["version"]) == ("vault-palace", __version__)
        assert "search_room" in result["instructions"]
        capabilities = result["capabilities"]
        logging = [] if modern else ["logging"]
        assert sorted(capabilities) == ["completions", *logging, "prompts", "resources", "tools"]
        # The lists never change, in neither era; what can be subscribed to are resources.
        assert capabilities["resources"] == {"subscribe": True, "listChanged": False}
        assert capabilities["prompts"] == capabilities["tools"] == {"listChanged": False}


def test_mc_01_noise_of_any_origin_stays_off_standard_output(client: RawClient) -> None:
    client.good("write_memory", content="x", title="noise")
    assert client.bad("write_memory", content="x", title="crash").startswith("internal: ")
    client.good("read_map")
    client.end_input()
    client.rest()

    assert client.wait() == 0
    only_protocol(client)
    assert "a child speaks" in client.stderr()
    assert "swordfish" in client.stderr()
    assert b"swordfish" not in b"".join(client.lines)


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b"\n",
        b"   \n",
        b"{\n",
        b"null\n",
        b"[]\n",
        b"[1, 2]\n",
        b'"text"\n',
        b"\xff\xfe\x00\n",
        b'{"jsonrpc":"2.0","method":"notifications/no_such_thing"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99999}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}\n',
        b'{"jsonrpc":"2.0","id":777,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
    ],
)
def test_a_line_that_asks_for_nothing_is_passed_over(shared: RawClient, line: bytes) -> None:
    shared.send_bytes(line)

    assert not shared.tool("read_map").get("isError")
    only_protocol(shared)


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        (b'{"jsonrpc":"2.0","id":700071,"method":5}\n', [700071]),
        (b'{"jsonrpc":"2.0","id":700071,"method":"ping","params":[]}\n', [700071]),
        (b'{"id":"a b","method":"tools/list"}\n', ["a b"]),
        (b'{"jsonrpc":"1.0","id":700071,"method":"tools/list"}\n', [700071]),
        (b'{"jsonrpc":"2.0","id":700071,"method":"tools/list"\n', [700071]),
        (b'{"jsonrpc":"2.0","params":{"id":5,"a":"}"},"id":700071,"method":"tools/list",}\n', [700071]),
        (
            b'[{"jsonrpc":"2.0","id":700071,"method":"tools/list"},{"jsonrpc":"2.0","id":700072,"method":"ping"}]\n',
            [700071, 700072],
        ),
        (
            b'{"jsonrpc":"2.0","id":700071,"method":"tools/call","params":{"name":"write_memory","arguments":{"content":'
            + b"[" * 5_000
            + b"]" * 5_000
            + b"}}}\n",
            [700071],
        ),
    ],
)
def test_mc_07_a_request_that_cannot_be_read_is_refused_under_its_id(
    shared: RawClient, line: bytes, ids: list[int | str]
) -> None:
    shared.send_bytes(line)

    for expected in ids:
        message = shared.receive()
        assert message is not None
        assert message["id"] == expected
        assert message["error"]["message"].startswith("invalid_arguments: ")
    assert not shared.tool("read_map").get("isError")


@pytest.mark.parametrize("arguments", ["[]", '"x"', "5", "true", '["content"]'])
def test_mc_07_arguments_that_are_no_object_are_a_tool_error(shared: RawClient, arguments: str) -> None:
    answer = shared.ask("tools/call", {"name": "write_memory", "arguments": json.loads(arguments)})

    assert answer["result"]["isError"] is True
    assert answer["result"]["content"][0]["text"].startswith("invalid_arguments: `arguments` must be")


@pytest.mark.parametrize("params", [{"name": "write_memory"}, {"name": "write_memory", "arguments": None}])
def test_mc_07_missing_arguments_name_what_is_needed(shared: RawClient, params: dict[str, Any]) -> None:
    answer = shared.ask("tools/call", params)

    assert answer["result"]["isError"] is True
    assert "content" in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}, {"name": ["read_map"]}])
def test_mc_20_a_call_without_a_name_is_an_error(shared: RawClient, params: dict[str, Any]) -> None:
    answer = shared.ask("tools/call", params)

    assert answer["result"]["isError"] is True
    assert answer["result"]["content"][0]["text"].startswith("not_found: ")


@pytest.mark.parametrize(
    ("tool", "arguments", "argument"),
    [
        ("write_memory", r'{"content":"cut \ud83e here"}', "content"),
        ("write_memory", r'{"content":"ok","title":"cut \udd16"}', "title"),
        ("write_memory", r'{"content":"ok","tags":["\ud83e"]}', "tags"),
        ("search_room", r'{"query":"\ud83e"}', "query"),
        ("read_memory", r'{"path":"01_Shallow/\ud83e.md"}', "path"),
        ("read_memory", r'{"\ud83e":"x"}', ""),
    ],
)
def test_mc_04_half_a_surrogate_pair_is_refused_by_name(
    shared: RawClient, tool: str, arguments: str, argument: str
) -> None:
    envelope = f',"_meta":{json.dumps(ENVELOPE)}' if shared.modern else ""
    line = '{"jsonrpc":"2.0","id":700071,"method":"tools/call","params":{"name":"%s","arguments":%s%s}}\n'

    shared.send_bytes((line % (tool, arguments, envelope)).encode("ascii"))

    result = shared.answer(700071)["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith(f"invalid_arguments: {argument}")
    assert not shared.tool("read_map").get("isError")


def test_mc_04_a_whole_surrogate_pair_is_one_character(shared: RawClient) -> None:
    envelope = f',"_meta":{json.dumps(ENVELOPE)}' if shared.modern else ""
    line = (
        '{"jsonrpc":"2.0","id":700071,"method":"tools/call","params":{"name":"search_room",'
        r'"arguments":{"query":"\ud83e\uddad"}' + envelope + "}}\n"
    )

    shared.send_bytes(line.encode("ascii"))

    assert shared.answer(700071)["result"]["structuredContent"]["query"] == "🦭"


def test_input_that_ends_while_idle_ends_the_server_well(client: RawClient, tmp_path: Path) -> None:
    client.good("read_map")

    client.end_input()

    assert client.rest() == []
    assert client.wait() == 0
    assert (tmp_path / "closed").exists()


def test_input_that_ends_in_the_middle_of_a_write_lets_it_finish_and_answers_it(
    client: RawClient, tmp_path: Path
) -> None:
    request = client.request(
        "tools/call", {"name": "write_memory", "arguments": {"content": "x", "title": "slow"}}
    )
    appears(tmp_path / "started")

    client.end_input()
    (tmp_path / "go").touch()

    assert [message["id"] for message in client.rest()] == [request]
    assert client.wait() == 0
    assert (tmp_path / "finished").exists()
    assert (tmp_path / "closed").exists()


def test_a_call_that_never_ends_does_not_keep_a_server_whose_client_left(tmp_path: Path) -> None:
    soon = {"server.FAREWELL_SECONDS": 0.2, "wire.FAREWELL_SECONDS": 0.2}
    with RawClient(tmp_path, module=FAKE, env={"FAKE_CONSTANTS": json.dumps(soon)}) as client:
        client.open()
        client.request("tools/call", {"name": "write_memory", "arguments": {"content": "x", "title": "slow"}})
        appears(tmp_path / "started")

        client.end_input()

        assert client.wait() == 0
    assert not (tmp_path / "finished").exists()


def test_a_whole_conversation_through_a_pipe_is_answered(client: RawClient) -> None:
    wanted = [client.request("tools/call", {"name": "read_map", "arguments": {}}) for _ in range(20)]

    client.end_input()

    assert sorted(message["id"] for message in client.rest()) == wanted
    assert client.wait() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_idle_ends_the_server_at_once_and_closes_the_vault(
    client: RawClient, tmp_path: Path, number: signal.Signals
) -> None:
    client.good("read_map")

    client.signal(number)

    assert client.wait() == 128 + number
    assert client.rest() == []
    assert (tmp_path / "closed").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_write_lets_it_finish_and_answers_it(
    client: RawClient, tmp_path: Path, number: signal.Signals
) -> None:
    request = client.request(
        "tools/call", {"name": "write_memory", "arguments": {"content": "x", "title": "slow"}}
    )
    appears(tmp_path / "started")

    client.signal(number)
    (tmp_path / "go").touch()

    assert client.wait() == 128 + number
    assert [message["id"] for message in client.rest()] == [request]
    assert (tmp_path / "finished").exists()
    assert (tmp_path / "closed").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_second_signal_ends_the_server_whatever_it_does(client: RawClient, tmp_path: Path) -> None:
    client.request("tools/call", SLOW_WRITE)
    appears(tmp_path / "started")

    client.signal(signal.SIGTERM)
    client.signal(signal.SIGINT)

    assert client.wait() in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    assert not (tmp_path / "finished").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_signal_stops_metabolize_between_notes(client: RawClient, tmp_path: Path) -> None:
    client.request("tools/call", {"name": "metabolize", "arguments": {"confirm": True}})
    appears(tmp_path / "started")

    client.signal(signal.SIGTERM)

    assert client.wait() == 128 + signal.SIGTERM
    assert (tmp_path / "finished").exists()


def test_mc_08_a_cancelled_metabolize_stops_and_the_server_hears_on(
    client: RawClient, tmp_path: Path
) -> None:
    request = client.request("tools/call", {"name": "metabolize", "arguments": {"confirm": True}})
    appears(tmp_path / "started")

    client.notify("notifications/cancelled", {"requestId": request})
    assert client.ask("tools/list")["result"]["tools"]

    appears(tmp_path / "finished")
    client.notify("notifications/cancelled", {"requestId": request})
    client.notify("notifications/cancelled", {"requestId": 4711})
    assert not client.tool("read_map").get("isError")
    client.end_input()
    assert all(message.get("id") != request for message in client.rest())
    assert client.wait() == 0


def test_metabolize_reports_progress_under_the_token_it_was_given(client: RawClient, tmp_path: Path) -> None:
    params = {"name": "metabolize", "arguments": {"confirm": True}, "_meta": {"progressToken": "p1"}}
    request = client.request("tools/call", params)

    message = client.receive()

    assert message is not None
    assert message["method"] == "notifications/progress"
    assert message["params"]["progressToken"] == "p1"
    assert message["params"]["total"] == 1_000_000
    client.notify("notifications/cancelled", {"requestId": request})
    appears(tmp_path / "finished")


def test_a_call_of_the_other_era_is_refused_and_the_first_era_goes_on(shared: RawClient) -> None:
    if shared.modern:
        params: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
        method = "initialize"
    else:
        params, method = {"_meta": ENVELOPE}, "tools/list"

    shared.send({"jsonrpc": "2.0", "id": 700071, "method": method, "params": params})

    assert "error" in shared.answer(700071)
    assert not shared.tool("read_map").get("isError")


@pytest.mark.parametrize("modern", [False, True])
def test_a_client_that_hangs_up_without_reading_ends_the_server_quietly(tmp_path: Path, modern: bool) -> None:
    with RawClient(tmp_path, module=FAKE, modern=modern, listens=False) as client:
        assert client.process.stdout is not None
        client.process.stdout.close()

        with contextlib.suppress(BrokenPipeError):
            while client.process.poll() is None:
                client.request("tools/list")

        assert client.wait() == 0
        assert "Traceback" not in client.stderr()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdks_own_client_is_served(tmp_path: Path, mode: str) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", FAKE, "--vault", str(tmp_path)], cwd=str(ROOT)
    )

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(stdio_client(server), mode=mode) as client:
                assert len((await client.list_tools()).tools) == len(TOOLS)
                result = await client.call_tool("write_memory", {"content": "x", "title": "Apollo"})
                assert result.structured_content is not None
                assert result.structured_content["saved_path"] == "01_Shallow/apollo.md"
                assert (await client.call_tool("write_memory", {})).is_error

    anyio.run(main)
