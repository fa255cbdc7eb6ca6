"""The stdio line between the client and the SDK: no request goes unanswered because a line was odd.

The SDK drops a line that it cannot parse without a word, and the client waits for ever. Here such a
request is answered: one that holds half a surrogate pair (which JSON may escape and UTF-8 cannot hold) is
passed on with that half made visible to the check of arguments, everything else is refused under its id.
At the end of input, calls already under way are given time to answer.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

Item: TypeAlias = SessionMessage | Exception
RequestId: TypeAlias = int | str

logger = logging.getLogger(__name__)

# What calls under way get to finish after the client has closed its end.
FAREWELL_SECONDS = 10.0
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_LONE = re.compile("[\ud800-\udfff]")


class Wire:
    """Both directions of one connection, relayed. Knows which requests have no answer yet."""

    def __init__(self) -> None:
        self._open: set[RequestId] = set()
        self._idle = anyio.Event()

    @asynccontextmanager
    async def relay(
        self, inward: MemoryObjectReceiveStream[Item], outward: MemoryObjectSendStream[SessionMessage]
    ) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Item], MemoryObjectSendStream[SessionMessage]]]:
        """The streams to serve on, in front of the transport's own."""
        to_server, server_reads = anyio.create_memory_object_stream[Item](0)
        server_writes, from_server = anyio.create_memory_object_stream[SessionMessage](0)

        async def read() -> None:
            async with to_server:
                async for item in inward:
                    for passed in self._received(item):
                        if isinstance(passed, JSONRPCError):
                            await outward.send(SessionMessage(passed))
                        else:
                            await to_server.send(passed)
                await self._farewell()

        async def write() -> None:
            async with from_server, outward:
                async for message in from_server:
                    await outward.send(message)
                    self._sent(message)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(write)
            yield server_reads, server_writes
            group.cancel_scope.cancel()

    async def wait_idle(self, seconds: float) -> None:
        """Until every request has its answer, but not longer than *seconds*."""
        with anyio.move_on_after(seconds):
            while self._open:
                self._idle = anyio.Event()
                await self._idle.wait()

    async def _farewell(self) -> None:
        await self.wait_idle(FAREWELL_SECONDS)

    def _received(self, item: Item) -> list[Item | JSONRPCError]:
        if isinstance(item, Exception):
            answers = unreadable(item)
            for answer in answers:
                if isinstance(answer, SessionMessage):
                    self._note(answer)
            return list(answers)
        self._note(item)
        return [item]

    def _note(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._open.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request is never answered.
            self._done((message.params or {}).get("requestId"))

    def _sent(self, item: SessionMessage) -> None:
        if isinstance(item.message, (JSONRPCResponse, JSONRPCError)):
            self._done(item.message.id)

    def _done(self, request_id: object) -> None:
        if isinstance(request_id, (int, str)):
            self._open.discard(request_id)
        if not self._open:
            self._idle.set()


def unreadable(error: Exception) -> list[SessionMessage | JSONRPCError]:
    """What becomes of a line the SDK could not parse: a message after all, refusals by id, or nothing."""
    line = _line_of(error)
    if line is None:
        logger.warning("A message could not be read: %s", type(error).__name__)
        return []
    if isinstance(line, str):
        if not line.strip():
            return []
        try:
            value = json.loads(line)
            scrubbed = _scrub(value)
        except (ValueError, RecursionError) as failure:
            deep = isinstance(failure, RecursionError)
            reason = "the message is nested too deeply" if deep else "the message is not JSON"
            return _refuse([_id_in(line)], PARSE_ERROR, reason)
        if scrubbed == value and isinstance(value, dict):
            # Valid JSON without lone surrogates that the parser refused: nested beyond its bound.
            return _refuse([value.get("id")], PARSE_ERROR, "the message is nested too deeply")
        try:
            return [SessionMessage(jsonrpc_message_adapter.validate_python(scrubbed, by_name=False))]
        except ValidationError:
            line = scrubbed
    if isinstance(line, list):
        ids = [entry.get("id") for entry in line if isinstance(entry, dict)]
        return _refuse(ids, INVALID_REQUEST, "batches are not served; send one message a line")
    if isinstance(line, dict):
        return _refuse([line.get("id")], INVALID_REQUEST, "the message is not a JSON-RPC 2.0 request")
    return _refuse([], INVALID_REQUEST, "the message is not an object")


def _line_of(error: Exception) -> Any:
    """The line as text where it was not JSON, else its value; None when the error does not say."""
    if not isinstance(error, ValidationError):
        return None
    for detail in error.errors(include_url=False, include_context=False):
        # Of the kinds of message that were tried, one always names the whole value as its input.
        if detail["type"] in ("json_invalid", "model_type", "missing") and len(detail["loc"]) <= 2:
            return detail["input"]
    return None


def _scrub(value: Any) -> Any:
    """*value* with each lone surrogate as NUL, which the check of arguments refuses by name."""
    if isinstance(value, str):
        return _LONE.sub("\0", value)
    if isinstance(value, list):
        return [_scrub(item) for item in value]
    if isinstance(value, dict):
        return {_scrub(key): _scrub(item) for key, item in value.items()}
    return value


def _id_in(line: str) -> Any:
    """The request id of a line that is no JSON as a whole, as far as its beginning shows one."""
    depth, pieces = 0, [match.group() for match in _PIECE.finditer(line)]
    for number, piece in enumerate(pieces):
        if piece in "[{":
            depth += 1
        elif piece in "]}":
            depth -= 1
        elif depth == 1 and piece == '"id"' and pieces[number + 1 : number + 2] == [":"]:
            try:
                return json.loads(pieces[number + 2])
            except (ValueError, IndexError):
                return None
    return None


def _refuse(ids: list[Any], code: int, reason: str) -> list[SessionMessage | JSONRPCError]:
    known = [entry for entry in ids if isinstance(entry, (int, str)) and not isinstance(entry, bool)]
    if not known:
        logger.warning("A message was ignored: %s", reason)
    return [
        JSONRPCError(
            jsonrpc="2.0", id=entry, error=ErrorData(code=code, message=f"invalid_arguments: {reason}")
        )
        for entry in known
    ]
