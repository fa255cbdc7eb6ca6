"""The real process over HTTP: both eras, several agents at once, and an end when it is asked for."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.mcp.rawclient import ENVELOPE, MODERN, ROOT, SECONDS
from tests.surfaces.mcp.rawhttp import BOTH, HttpClient, HttpServer, read_answer, request_bytes, status_of
from vault_palace import __version__

FAKE = "tests.surfaces.mcp.fakeserver"
SLOW_WRITE = {"name": "write_memory", "arguments": {"content": "x", "title": "slow"}}
METABOLIZE = {"name": "metabolize", "arguments": {"confirm": True}}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")


@pytest.fixture(params=["legacy", "modern"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HttpClient]:
    """A conversation that has begun, in each era, with a server of its own."""
    with HttpClient(tmp_path, module=FAKE, modern=request.param == "modern") as raw:
        raw.open()
        yield raw


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """One server for all tests that leave it as it was."""
    env = {"VAULT_PALACE_STATE_DIR": str(tmp_path_factory.mktemp("state"))}
    with HttpServer(tmp_path_factory.mktemp("vault"), module=FAKE, env=env) as server:
        server.ready()
        yield server


@pytest.fixture(params=["legacy", "modern"])
def shared(request: pytest.FixtureRequest, running: HttpServer) -> Iterator[HttpClient]:
    """A conversation in each era with the server of all."""
    with HttpClient(None, server=running, modern=request.param == "modern") as raw:
        raw.open()
        yield raw


def appears(path: Path) -> None:
    """Wait until *path* is there: the server made it."""
    last = time.monotonic() + SECONDS
    while not path.exists():
        assert time.monotonic() < last, f"{path.name} never came"
        time.sleep(0.002)


def test_the_server_presents_itself(shared: HttpClient) -> None:
    result = shared.open()

    info = result["_meta"]["io.modelcontextprotocol/serverInfo"] if shared.modern else result["serverInfo"]
    assert (info["name"], info["version"]) == ("vault-palace", __version__)
    assert "search_room" in result["instructions"]


def test_mc_01_nothing_ever_comes_over_standard_output(client: HttpClient) -> None:
    client.good("write_memory", content="x", title="noise")
    assert client.bad("write_memory", content="x", title="crash").startswith("internal: ")
    client.server.exchange(b"no HTTP at all\r\n\r\n")
    client.end_input()

    assert client.wait() == 0
    assert "swordfish" in client.stderr()
    assert b"swordfish" not in b"".join(client.lines)
    # What a print of ours or of a child says is no protocol here; the server itself adds nothing to it.
    said = client.server.stdout().splitlines()
    assert sorted(said) == ["a banner", "a child speaks", "a stray line", "closing noise"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_idle_ends_the_server_and_closes_the_vault(
    client: HttpClient, tmp_path: Path, number: signal.Signals
) -> None:
    client.good("read_map")

    client.server.signal(number)

    assert client.server.wait() == 128 + number
    assert (tmp_path / "closed").exists()


def test_a_signal_in_the_middle_of_a_write_lets_it_finish_and_answers_it(
    client: HttpClient, tmp_path: Path
) -> None:
    request = client.request("tools/call", SLOW_WRITE)
    appears(tmp_path / "started")

    client.server.signal(signal.SIGTERM)
    (tmp_path / "go").touch()

    assert client.server.wait() == 128 + signal.SIGTERM
    assert [message["id"] for message in client.rest()] == [request]
    assert (tmp_path / "finished").exists()
    assert (tmp_path / "closed").exists()


def test_a_signal_stops_metabolize_between_notes(client: HttpClient, tmp_path: Path) -> None:
    client.request("tools/call", METABOLIZE)
    appears(tmp_path / "started")

    client.server.signal(signal.SIGTERM)

    assert client.server.wait() == 128 + signal.SIGTERM
    assert (tmp_path / "finished").exists()
    assert (tmp_path / "closed").exists()


@pytest.mark.parametrize("modern", [False, True])
def test_a_call_that_never_ends_does_not_keep_the_server(tmp_path: Path, modern: bool) -> None:
    env = {"FAKE_CONSTANTS": json.dumps({"server.SIGNAL_SECONDS": 0.3})}
    with HttpClient(tmp_path, module=FAKE, modern=modern, env=env) as client:
        client.open()
        client.request("tools/call", SLOW_WRITE)
        appears(tmp_path / "started")

        client.server.signal(signal.SIGTERM)

        assert client.server.wait() == 128 + signal.SIGTERM
    assert not (tmp_path / "finished").exists()


def test_a_second_signal_ends_the_server_whatever_it_does(client: HttpClient, tmp_path: Path) -> None:
    client.request("tools/call", SLOW_WRITE)
    appears(tmp_path / "started")

    client.server.signal(signal.SIGTERM)
    client.server.signal(signal.SIGINT)

    assert client.server.wait() in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    assert not (tmp_path / "finished").exists()


def stream(server: HttpServer, session: str) -> socket.socket:
    """An open GET stream of a session, its head read."""
    line = server.connect()
    headers = {
        "Host": server.authority,
        "Authorization": f"Bearer {server.token}",
        "Accept": "text/event-stream",
        "Mcp-Session-Id": session,
    }
    line.sendall(request_bytes("GET", "/mcp", headers))
    head = b""
    while b"\r\n\r\n" not in head:
        more = line.recv(4096)
        assert more, head
        head += more
    assert status_of(head) == 200, head
    return line


def test_an_open_stream_does_not_keep_the_server(tmp_path: Path) -> None:
    with HttpClient(tmp_path, module=FAKE) as client:
        client.open()
        line = stream(client.server, client.session)

        client.server.signal(signal.SIGTERM)

        assert client.server.wait() == 128 + signal.SIGTERM
        assert read_answer(line).endswith(b"0\r\n\r\n")  # ended well, not cut
        line.close()
    assert (tmp_path / "closed").exists()


def test_a_client_that_has_not_finished_its_request_does_not_keep_the_server(tmp_path: Path) -> None:
    with HttpServer(tmp_path, module=FAKE) as server:
        server.ready()
        headers = {
            "Host": server.authority,
            "Authorization": f"Bearer {server.token}",
            "Content-Type": "application/json",
            "Content-Length": "1000",
        }
        with server.connect() as half, server.connect() as silent:
            half.sendall(request_bytes("POST", "/mcp", headers) + b'{"jsonrpc"')
            silent.sendall(b"GET /heal")

            server.signal(signal.SIGTERM)

            assert server.wait() == 128 + signal.SIGTERM
    assert (tmp_path / "closed").exists()


def test_mc_08_a_cancelled_metabolize_stops_and_the_server_hears_on(
    client: HttpClient, tmp_path: Path
) -> None:
    request = client.request("tools/call", METABOLIZE)
    appears(tmp_path / "started")

    client.notify("notifications/cancelled", {"requestId": request})
    assert client.ask("tools/list")["result"]["tools"]

    appears(tmp_path / "finished")
    client.notify("notifications/cancelled", {"requestId": request})
    client.notify("notifications/cancelled", {"requestId": 4711})
    assert not client.tool("read_map").get("isError")


def test_mc_08_the_end_of_a_session_stops_what_it_was_doing(tmp_path: Path) -> None:
    with HttpClient(tmp_path, module=FAKE) as client:
        client.open()
        client.request("tools/call", METABOLIZE)
        appears(tmp_path / "started")

        headers = {"Host": client.server.authority, **client.headers(None)}
        answer = client.server.exchange(request_bytes("DELETE", "/mcp", headers))

        assert status_of(answer) == 200
        appears(tmp_path / "finished")


def test_metabolize_reports_progress_under_the_token_it_was_given(client: HttpClient, tmp_path: Path) -> None:
    params = {**METABOLIZE, "_meta": {"progressToken": "p1"}}
    request = client.request("tools/call", params)

    message = client.receive()

    assert message is not None
    assert message["method"] == "notifications/progress"
    assert message["params"]["progressToken"] == "p1"
    client.notify("notifications/cancelled", {"requestId": request})
    appears(tmp_path / "finished")


@pytest.mark.parametrize("arguments", ["[]", '"x"', "5", "true", '["content"]'])
def test_mc_07_arguments_that_are_no_object_are_a_tool_error(shared: HttpClient, arguments: str) -> None:
    answer = shared.ask("tools/call", {"name": "write_memory", "arguments": json.loads(arguments)})

    assert answer["result"]["isError"] is True
    assert answer["result"]["content"][0]["text"].startswith("invalid_arguments: `arguments` must be")


@pytest.mark.parametrize("depth", [50, 300, 900, 5_000])
def test_mc_07_deep_nesting_is_refused_and_the_server_goes_on(shared: HttpClient, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    meta = f',"_meta":{json.dumps(ENVELOPE)}' if shared.modern else ""
    params = f'{{"name":"read_map","arguments":{{"x":{deep}}}{meta}}}'

    shared.send_bytes(f'{{"jsonrpc":"2.0","id":700,"method":"tools/call","params":{params}}}'.encode("ascii"))

    message = shared.receive()
    assert message is not None
    assert "error" in message or message["result"]["isError"] is True
    assert not shared.tool("read_map").get("isError")


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (r'{"content":"cut \ud83e here"}', "content"),
        (r'{"content":"ok","title":"cut \udd16"}', "title"),
        (r'{"content":"ok","tags":["\ud83e"]}', "tags"),
    ],
)
def test_mc_04_half_a_surrogate_pair_is_refused_by_name(
    shared: HttpClient, arguments: str, argument: str
) -> None:
    meta = f',"_meta":{json.dumps(ENVELOPE)}' if shared.modern else ""
    params = f'{{"name":"write_memory","arguments":{arguments}{meta}}}'

    shared.send_bytes(f'{{"jsonrpc":"2.0","id":700,"method":"tools/call","params":{params}}}'.encode("ascii"))

    text = shared.answer(700)["result"]["content"][0]["text"]
    assert text.startswith(f"invalid_arguments: {argument}")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"{",
        b"null",
        b"[]",
        b"5",
        b'"text"',
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf{}",
        b'{"jsonrpc":"2.0","id":7,"method":5}',
        b'{"jsonrpc":"1.0","id":7,"method":"tools/list"}',
        b'[{"jsonrpc":"2.0","id":7,"method":"tools/list"}]',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}',
        b'{"jsonrpc":"2.0","id":1' + b"0" * 5_000 + b',"method":"tools/list"}',
    ],
)
def test_mc_07_what_is_no_request_is_refused_and_the_server_goes_on(shared: HttpClient, body: bytes) -> None:
    headers = {"Host": shared.server.authority, **shared.headers(None)}
    if shared.modern:
        headers["Mcp-Method"] = "tools/list"

    answer = shared.server.exchange(request_bytes("POST", "/mcp", headers, body))

    assert 400 <= status_of(answer) < 500, answer
    assert b"Traceback" not in answer
    assert not shared.tool("read_map").get("isError")


def test_a_slow_call_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    with HttpClient(tmp_path, module=FAKE, name="slow one") as slow:
        slow.open()
        request = slow.request("tools/call", SLOW_WRITE)
        appears(tmp_path / "started")

        with HttpClient(None, server=slow.server, name="quick one") as quick:
            quick.open()
            assert not quick.tool("read_map").get("isError")
            assert not (tmp_path / "finished").exists()
        (tmp_path / "go").touch()

        assert not slow.answer(request)["result"].get("isError")


def test_a_port_that_is_taken_is_said_before_anything_is_opened(running: HttpServer, vault: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "vault_palace", "serve", "--vault", str(vault), "--http", str(running.port)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )

    assert ended.returncode == 11
    assert f"exists: 127.0.0.1:{running.port} is in use" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("address", ["localhost:0", "[::1]:0", "127.0.0.2:0"])
def test_an_address_of_this_machine_can_be_chosen(tmp_path: Path, address: str) -> None:
    if address.startswith("[") and not _has_ipv6():
        pytest.skip("this machine has no IPv6")

    with HttpServer(tmp_path, module=FAKE, address=address) as server:
        server.ready()

        assert server.get("/health")[0] == 200


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_health_is_not_ok_while_the_vault_cannot_be_opened(vault: Path) -> None:
    with HttpServer(vault) as server:
        server.ready()

        for folder in list(vault.iterdir()):
            folder.rename(vault.parent / f"away-{folder.name}")

        last = time.monotonic() + SECONDS
        while server.get("/health")[0] == 200:
            assert time.monotonic() < last, "it stayed ok"
            time.sleep(0.05)
        status, body = server.get("/health")
        assert (status, json.loads(body)) == (503, {"status": "not ok"})


@pytest.mark.parametrize("modern", [False, True])
def test_each_agents_writes_can_be_taken_back_alone(vault: Path, modern: bool) -> None:
    with HttpClient(vault, modern=modern, name="first agent") as first:
        first.open()
        with HttpClient(None, server=first.server, modern=modern, name="second agent") as second:
            second.open()
            first.good("write_memory", content="of the first", title="One")
            second.good("write_memory", content="of the second", title="Two")
            first.good("write_memory", content="of the first again", title="Three")

    sessions: dict[str, str] = {}
    for journal in (vault / "_System/journal").glob("*.jsonl"):
        for entry in map(json.loads, journal.read_text(encoding="utf-8").splitlines()):
            for title in ("One", "Two", "Three"):
                if f"{title}.md" in json.dumps(entry) and entry.get("session"):
                    sessions[title] = entry["session"]
    assert sessions["One"] == sessions["Three"] != sessions["Two"]
    assert all(session.startswith("mcp-") for session in sessions.values())
    assert first.session == "" or first.session not in "".join(sessions.values())


def test_a_vault_served_read_only_offers_and_does_nothing_that_writes(vault: Path) -> None:
    (vault / "01_Shallow/a.md").write_text("text\n", encoding="utf-8")
    with HttpClient(vault, options=["--read-only"]) as client:
        client.open()

        listed = {tool["name"] for tool in client.ask("tools/list")["result"]["tools"]}
        refused = client.bad("write_memory", content="x", title="t")
        read = client.good("read_memory", path="01_Shallow/a.md")

    assert not listed & {"write_memory", "rate_memory", "purge_memory", "metabolize", "move_file"}
    assert refused.startswith("policy_violation: ")
    assert read["content"].strip() == "text"
    assert [path.name for path in (vault / "01_Shallow").iterdir()] == ["a.md"]


def test_a_request_of_the_modern_era_needs_no_session(running: HttpServer) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
    headers = {
        "Host": running.authority,
        "Authorization": f"Bearer {running.token}",
        "Content-Type": "application/json",
        "Accept": BOTH,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/list",
    }

    answer = running.exchange(request_bytes("POST", "/mcp", headers, json.dumps(message).encode()))

    assert status_of(answer) == 200
    assert b"mcp-session-id" not in answer.lower().partition(b"\r\n\r\n")[0]
    body: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert body["result"]["tools"]


def test_a_server_on_standard_input_loads_nothing_of_this() -> None:
    """What HTTP needs is not paid for at the start of every other server."""
    names = [f"vault_palace.surfaces.mcp.{name}" for name in ("http", "gate", "address")]
    ask = f"import sys, vault_palace.surfaces.mcp.server; print(sorted({{*{names!r}}} & set(sys.modules)))"

    ended = subprocess.run(
        [sys.executable, "-c", ask],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=True,
    )

    assert ended.stdout.strip() == "[]"
