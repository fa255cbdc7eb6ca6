"""The gate around an endpoint of a few lines: what passes, what is cut short, what a failure shows."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from vault_palace.surfaces.mcp import http
from vault_palace.surfaces.mcp.address import Address, Names
from vault_palace.surfaces.mcp.gate import App, Gate, Message, Receive, Scope, Send

SECONDS = 30.0


class Tokens:
    """The token that is right now."""

    def __init__(self) -> None:
        self.right = b"first"

    def fits(self, given: bytes) -> bool:
        return given == self.right


@asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    yield


async def healthy() -> bool:
    return True


def gate_of(endpoint: App, tokens: Tokens) -> Gate:
    names = Names(Address(ip="127.0.0.1", port=8000, name="127.0.0.1"))
    return Gate(endpoint, names=names, fits=tokens.fits, healthy=healthy, running=nothing)


def scope_of(method: str, token: bytes = b"first") -> Scope:
    return {
        "type": "http",
        "method": method,
        "path": "/mcp",
        "server": ("127.0.0.1", 8000),
        "headers": [
            (b"host", b"localhost:8000"),
            (b"authorization", b"Bearer " + token),
            (b"content-type", b"application/json"),
        ],
    }


async def received() -> Message:
    return {"type": "http.request", "body": b"{}", "more_body": False}


def ask(
    method: str, endpoint: App, during: Callable[[Gate, Tokens], Coroutine[Any, Any, None]]
) -> list[Message]:
    """What is sent for one request while *during* goes on beside it."""
    sent: list[Message] = []
    tokens = Tokens()

    async def send(message: Message) -> None:
        sent.append(message)

    async def main() -> None:
        gate = gate_of(endpoint, tokens)
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(during, gate, tokens)
                await gate(scope_of(method), received, send)

    anyio.run(main)
    return sent


async def nothing_else(_: Gate, __: Tokens) -> None:
    """Nothing happens beside the request."""


def endless(opened: list[anyio.Event], more: list[anyio.Event]) -> App:
    async def endpoint(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        opened[0].set()
        await more[0].wait()
        await send({"type": "http.response.body", "body": b"two", "more_body": True})
        await anyio.sleep_forever()

    return endpoint


@pytest.mark.parametrize("how", ["stop", "rotate"])
def test_a_stream_ends_well_and_says_no_more_when_its_time_is_over(how: str) -> None:
    opened: list[Any] = []
    more: list[Any] = []

    async def during(gate: Gate, tokens: Tokens) -> None:
        opened.append(anyio.Event())
        more.append(anyio.Event())
        await opened[0].wait()
        if how == "stop":
            gate.stop()
        else:
            tokens.right = b"second"
            more[0].set()

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        while not more:
            await anyio.sleep(0)
        await endless(opened, more)(scope, receive, send)

    sent = ask("GET", endpoint, during)

    assert [message.get("body") for message in sent] == [None, b"one", b""]
    assert sent[-1]["more_body"] is False


def test_a_call_goes_on_when_the_server_stops_until_it_is_given_up() -> None:
    seen: list[str] = []

    async def endpoint(_: Scope, __: Receive, ___: Send) -> None:
        seen.append("begun")
        await anyio.sleep_forever()

    async def during(gate: Gate, _: Tokens) -> None:
        while not seen:
            await anyio.sleep(0)
        gate.stop()
        for _turn in range(20):
            await anyio.sleep(0)
        seen.append("still there")
        gate.give_up()

    sent = ask("POST", endpoint, during)

    assert seen == ["begun", "still there"]
    assert sent[0]["status"] == 503


def test_a_failure_is_told_without_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def endpoint(_: Scope, __: Receive, ___: Send) -> None:
        raise RuntimeError("the password is swordfish")

    sent = ask("POST", endpoint, nothing_else)

    assert sent[0]["status"] == 500
    assert b"swordfish" not in sent[1]["body"]
    assert "swordfish" in caplog.text


def test_the_body_is_handed_on_whole_and_once() -> None:
    bodies: list[Message] = []

    async def endpoint(_: Scope, receive: Receive, __: Send) -> None:
        bodies.append(await receive())

    ask("POST", endpoint, nothing_else)

    assert bodies == [{"type": "http.request", "body": b"{}", "more_body": False}]


class Stuck:
    """A door to a vault on a disk that answers nobody until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked = 0

    def start(self) -> Future[Stuck]:
        opening: Future[Stuck] = Future()
        opening.set_result(self)
        return opening

    def faults(self) -> list[object]:
        self.asked += 1
        self.let_go.wait(SECONDS)
        return []


def test_health_of_a_disk_that_hangs_is_not_ok_and_costs_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "HEALTH_SECONDS", 0.02)
    door = Stuck()
    health = http.Health(door)  # type: ignore[arg-type]

    async def main() -> None:
        answers = [await health() for _ in range(5)]
        asked = door.asked
        door.let_go.set()
        with anyio.fail_after(SECONDS):
            while not await health():
                pass
        assert (answers, asked) == ([False] * 5, 1)

    anyio.run(main)
