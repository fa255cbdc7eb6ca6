"""The real server with a client that is broken or hostile: the right answer, no harm to the vault, no end.

What a library's client cannot send: lines of megabytes, thousands of brackets, one id twice, an output that
nobody reads, an end in the middle of a write.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.mcp.rawclient import ENVELOPE, SECONDS, RawClient
from vault_palace.core import frontmatter
from vault_palace.surfaces.mcp import gate, wire

ID = 700071
WRITES = 20  # writes under way when the end comes


@pytest.fixture(scope="module", params=["legacy", "modern"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """One conversation with the real server on an empty vault, for all tests that write nothing."""
    root = tmp_path_factory.mktemp("vault")
    folders(root)
    state = {f"XDG_{name}_HOME": str(tmp_path_factory.mktemp(name)) for name in ("STATE", "CACHE")}
    with RawClient(root, modern=request.param == "modern", env=state) as raw:
        raw.open()
        raw.good("healthcheck")
        yield raw


def folders(root: Path) -> None:
    for name in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
        (root / name).mkdir(parents=True, exist_ok=True)


def call(client: RawClient, arguments: str, number: int | str = ID) -> bytes:
    """A call of write_memory as bytes, with *arguments* as they are."""
    envelope = f',"_meta":{json.dumps(ENVELOPE)}' if client.modern else ""
    params = f'{{"name":"write_memory","arguments":{arguments}{envelope}}}'
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}\n'.encode()


def refusal(client: RawClient) -> str:
    """What the server said to the odd request, as an error of the protocol or of the tool."""
    answer = client.answer(ID)
    if "error" in answer:
        return str(answer["error"]["message"])
    assert answer["result"]["isError"] is True
    return str(answer["result"]["content"][0]["text"])


def nested(depth: int) -> str:
    return '{"content":' + '{"a":' * depth + "1" + "}" * depth + "}"


LARGE = 4 * 1024 * 1024
TOO_LARGE = 10 * 1024 * 1024


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"content":"%s"}' % ("x" * LARGE), "budget_exceeded: "),
        ('{"content":"%s"}' % ("\\n" * (LARGE // 2)), "invalid_arguments: content is empty"),
        ('{"content":"x","title":"%s"}' % ("x" * LARGE), "budget_exceeded: "),
        ('{"content":"x","%s":1}' % ("k" * LARGE), "invalid_arguments: "),
        ('{"content":"x","density":%s}' % ("1" * LARGE), "invalid_arguments: "),
        ('{"content":"x","tags":"%s"}' % ("[" * LARGE), "invalid_arguments: "),
        ('{"content":"%s"}' % ("x" * TOO_LARGE), "invalid_arguments: a message has at most"),
        (nested(300), "invalid_arguments: "),
        (nested(90_000), "invalid_arguments: "),
        ('{"content":"%s' % ('\\"' * (LARGE // 2)), "invalid_arguments: the message is not JSON"),
        ('{"content":"x","density":NaN}', "invalid_arguments: density"),
        ('{"content":"x","density":1e999}', "invalid_arguments: density"),
        ('{"content":"a\\u0000b"}', "invalid_arguments: content"),
        ('{"content":"a\0b"}', "invalid_arguments: the message is not JSON"),
    ],
    ids=lambda value: value[:20] if len(value) < 60 else f"{value[:20]}~{len(value)}",
)
def test_mc_07_a_request_beyond_every_measure_is_refused_under_its_id(
    shared: RawClient, arguments: str, said: str
) -> None:
    shared.send_bytes(call(shared, arguments))

    assert refusal(shared).startswith(said)
    assert not shared.tool("read_map").get("isError")


@pytest.mark.parametrize(
    "line",
    [
        b"x" * TOO_LARGE + b"\n",
        b"[" * LARGE + b"\n",
        b'"' * LARGE + b"\n",
        b'"' + b"\\" * LARGE + b"\n",
        b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":true}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[],"progress":"x"}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/initialized","params":"x"}\n',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}\n',
        b'{"jsonrpc":"2.0","id":' + str(ID).encode() + b',"result":{},"error":{}}\n',
    ],
    ids=lambda line: f"{line[:40].decode()}~{len(line)}",
)
def test_what_asks_for_nothing_or_has_no_usable_id_is_passed_over(shared: RawClient, line: bytes) -> None:
    shared.send_bytes(line)

    assert not shared.tool("read_map").get("isError")


def test_an_id_written_last_is_found_in_a_line_that_is_too_long(shared: RawClient) -> None:
    shared.send_bytes(
        b'{"method":"ping","params":{"a":"' + b"x" * TOO_LARGE + b'"},"jsonrpc":"2.0","id":700071}\n'
    )

    assert refusal(shared).startswith("invalid_arguments: a message has at most")


def test_a_batch_of_any_length_is_refused_within_bounds(shared: RawClient) -> None:
    entry = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % ID

    shared.send_bytes(b"[" + b",".join([entry] * (wire.MOST_REFUSALS + 500)) + b"]\n")

    shared.request("tools/list")
    said = [shared.receive() for _ in range(wire.MOST_REFUSALS + 1)]
    assert [message["id"] for message in said if message is not None].count(ID) == wire.MOST_REFUSALS


def test_one_id_for_two_requests_is_answered_twice(shared: RawClient) -> None:
    shared.send_bytes(call(shared, '{"content":""}') * 2)

    assert refusal(shared).startswith("invalid_arguments: ")
    assert refusal(shared).startswith("invalid_arguments: ")
    assert not shared.tool("read_map").get("isError")


def test_both_transports_take_messages_of_the_same_length() -> None:
    assert gate.MOST_BODY == wire.MOST_LINE


def wholly_written(root: Path, number: int) -> bool:
    """Whether that memory is on disk, and if so whole: its text to the last line and its properties."""
    path = root / f"01_Shallow/n{number}.md"
    if not path.exists():
        return False
    header = frontmatter.read(path.read_text(encoding="utf-8"))
    assert header.body.strip() == text(number).strip(), path
    assert "id" in header.values, path
    return True


def text(number: int) -> str:
    return f"Note {number} begins.\n\n" + "More of it.\n" * 500 + f"\nNote {number} ends.\n"


def begin_writing(client: RawClient) -> list[int]:
    """Send many writes and wait for none but the first; answers their request ids."""
    ids = [
        client.request(
            "tools/call",
            {"name": "write_memory", "arguments": {"content": text(number), "path": f"n{number}"}},
        )
        for number in range(WRITES)
    ]
    client.answer(ids[0])
    return ids


def judge(client: RawClient, root: Path, ids: list[int], rest: list[dict[str, Any]]) -> None:
    """Every memory is there whole or not at all, and there where the answer said so."""
    answered = {message["id"] for message in rest if "result" in message} | {ids[0]}
    for number, request in enumerate(ids):
        there = wholly_written(root, number)
        assert there or request not in answered, number
    assert not list(root.rglob("*.tmp"))
    assert "Traceback" not in client.stderr()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("modern", "number"), [(False, signal.SIGTERM), (True, signal.SIGINT)], ids=["legacy", "modern"]
)
def test_a_signal_amid_many_writes_leaves_each_whole_and_none_promised_that_is_not_there(
    vault: Path, modern: bool, number: signal.Signals
) -> None:
    with RawClient(vault, modern=modern) as client:
        client.open()
        ids = begin_writing(client)

        client.signal(number)

        assert client.wait() == 128 + number
        judge(client, vault, ids, client.rest())


@pytest.mark.parametrize("modern", [False, True])
def test_input_that_ends_amid_many_writes_leaves_each_whole_and_none_promised_that_is_not_there(
    vault: Path, modern: bool
) -> None:
    with RawClient(vault, modern=modern) as client:
        client.open()
        ids = begin_writing(client)

        client.end_input()

        rest = client.rest()
        assert client.wait() == 0
        judge(client, vault, ids, rest)


@pytest.mark.skipif(sys.platform == "win32", reason="signals, and a pipe that does not block")
@pytest.mark.parametrize("ends", ["signal", "hanging up", "end of input"])
def test_a_client_that_never_reads_cannot_keep_the_server(vault: Path, ends: str) -> None:
    with RawClient(vault, module="tests.surfaces.mcp.hastyserver", listens=False) as client:
        client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
        fill(client)

        if ends == "signal":
            client.signal(signal.SIGTERM)
        elif ends == "end of input":
            client.end_input()
        else:
            assert client.process.stdout is not None
            client.process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                client.end_input()

        assert client.wait() == (128 + signal.SIGTERM if ends == "signal" else 0)
        assert "Traceback" not in client.stderr()


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "deaf", "version": "1"},
}


def fill(client: RawClient) -> None:
    """Ask until the answers, which nobody reads, must have filled the pipe."""
    for number in range(60):
        client.send({"jsonrpc": "2.0", "id": 10 + number, "method": "tools/list"})
    last = time.monotonic() + SECONDS
    assert client.process.stdout is not None
    while (
        waiting(client.process.stdout.fileno()) < 30_000
    ):  # most of what a pipe holds, and a small part of the answers
        assert time.monotonic() < last, "the answers never came"
        time.sleep(0.01)


def waiting(pipe: int) -> int:
    """How many bytes wait in *pipe*."""
    import array
    import fcntl
    import termios

    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
