"""Standard input and output as a line of protocol: one message a line, and no request goes unanswered.

The SDK's own stdio transport drops what it cannot parse without a word, so that the client waits for ever,
and it cannot be stopped before the client leaves. This one answers: a request with text that no note can
hold (half a surrogate pair, bytes that are no UTF-8) reaches the check of arguments with that place marked,
any other odd request is refused under its id. When the input ends, calls under way may still answer.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, BinaryIO, TypeAlias

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

Reads: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Writes: TypeAlias = MemoryObjectSendStream[SessionMessage]

logger = logging.getLogger(__name__)

# What calls under way get to finish after the client has closed its end.
FAREWELL_SECONDS = 10.0
MOST_LINE = 8 * 1024 * 1024  # bytes; longer than the longest argument with every character escaped
MOST_REFUSALS = 1_000  # of one batch
_TAIL = 1_024  # bytes at the end of a line too long to keep, which hold the id of those who write it last
_MOST_PIECES = 500_000  # looked at to find the id of a message that is no JSON
# A text without an end goes to the end: each piece is looked at once, whatever a line is made of.
_PIECE = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}:,]|[^\s\[\]{}:,"]++', re.DOTALL)
_LAST_ID = re.compile(
    rb'"id"\s*:\s*(-?[0-9]{1,15}|"[^"\\]{0,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z'
)
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")


def claim_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """This process's standard input and output, for protocol alone from now on.

    What anything else prints goes to standard error, and what it reads is empty. They are not given back:
    text that waits in a buffer would come out at the end.
    """
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a standard error
        os.dup2(null, 1)
    os.close(null)
    # The thread that reads may be blocked at the end of the process, so nothing closes under it.
    return open(source, "rb", closefd=False), open(sink, "wb", buffering=0, closefd=False)


class Wire:
    """One connection over two byte streams. Knows which requests have no answer yet.

    *ending* is called when the client has closed its end: nothing it is asked will be answered any more.
    """

    def __init__(
        self, source: BinaryIO, sink: BinaryIO, *, ending: Callable[[], None] = lambda: None
    ) -> None:
        self._ending = ending
        self._source = source
        self._sink = sink
        self._writing = anyio.Lock()
        self._open: set[int | str] = set()
        self._idle = anyio.Event()

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Reads, Writes]]:
        """The streams a server is run on."""
        to_server, reads = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writes, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        # The read of a pipe cannot be interrupted; a daemon thread does not keep the process from ending.
        reader = threading.Thread(
            target=self._read, args=(to_server, asyncio.get_running_loop()), name="read-stdin", daemon=True
        )
        async with to_server, from_server, anyio.create_task_group() as group:
            group.start_soon(self._write_all, from_server)
            reader.start()
            yield reads, writes
            # The server has ended. A client that reads nothing and holds its end open must not keep it.
            stuck = asyncio.get_running_loop().call_later(FAREWELL_SECONDS, os._exit, 0)
        stuck.cancel()

    async def wait_idle(self, seconds: float) -> None:
        """Until every request has its answer on its way, but not longer than *seconds*."""
        with anyio.move_on_after(seconds):
            while self._open:
                self._idle = anyio.Event()
                await self._idle.wait()

    def _read(
        self, to_server: MemoryObjectSendStream[SessionMessage | Exception], loop: asyncio.AbstractEventLoop
    ) -> None:
        def run(work: Coroutine[Any, Any, None]) -> bool:
            try:
                asyncio.run_coroutine_threadsafe(work, loop).result()
            except RuntimeError:  # the loop has ended
                work.close()
                return False
            except (asyncio.CancelledError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return False
            return True

        try:
            while line := self._source.readline(MOST_LINE):
                # Here and not on the loop, which has others to serve meanwhile.
                whole = line.endswith(b"\n") or len(line) < MOST_LINE
                understanding = understood(line) if whole else (None, _too_long(line, self._rest_of_line()))
                if not run(self._received(*understanding, to_server)):
                    return
        except OSError:
            logger.debug("Standard input could not be read.", exc_info=True)
        run(self._ended(to_server))

    def _rest_of_line(self) -> bytes:
        """Read to the end of the line and keep only its last bytes."""
        tail = b""
        while piece := self._source.readline(1024 * 1024):
            tail = (tail + piece)[-_TAIL:]
            if piece.endswith(b"\n"):
                break
        return tail

    async def _received(
        self,
        message: JSONRPCMessage | None,
        refusals: list[JSONRPCError],
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        for refusal in refusals:
            await self._write(refusal)
        if message is None:
            return
        if isinstance(message, JSONRPCRequest):
            self._open.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request is never answered.
            self._done((message.params or {}).get("requestId"))
        await to_server.send(SessionMessage(message))

    async def _ended(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        self._ending()
        await self.wait_idle(FAREWELL_SECONDS)
        await to_server.aclose()

    async def _write_all(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for item in from_server:
            await self._write(item.message)
            if isinstance(item.message, (JSONRPCResponse, JSONRPCError)):
                self._done(item.message.id)

    async def _write(self, message: JSONRPCMessage) -> None:
        try:
            data = message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8")
        except ValueError:
            logger.exception("An answer could not be written as JSON.")
            if not isinstance(message, JSONRPCResponse):
                return
            data = (
                _error(message.id, INTERNAL_ERROR, "the answer could not be sent").model_dump_json().encode()
            )
        async with self._writing:
            await anyio.to_thread.run_sync(self._put, data + b"\n")

    def _put(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._sink.write(left) :]

    def _done(self, request_id: object) -> None:
        if isinstance(request_id, (int, str)):
            # A cancellation may name the number 5 as "5"; the SDK takes them for one, too.
            self._open -= {known for known in self._open if str(known) == str(request_id)}
        if not self._open:
            self._idle.set()


def understood(line: bytes) -> tuple[JSONRPCMessage | None, list[JSONRPCError]]:
    """What one line means: its message if it holds one, else the refusals that go back to the client."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False), []
    except ValidationError:
        pass
    text = line.decode("utf-8", "surrogateescape").lstrip("\ufeff")
    if not text.strip():
        return None, []
    try:
        value = json.loads(text)
        if isinstance(value, list):
            ids = [_scrub(entry.get("id")) for entry in value if isinstance(entry, dict)]
            return None, _refuse(ids, INVALID_REQUEST, "batches are not served; send one message a line")
        value = _scrub(value)
    except RecursionError:
        return None, _refuse([_id_in(text)], PARSE_ERROR, "the arguments are nested too deeply")
    except ValueError:
        return None, _refuse([_id_in(text)], PARSE_ERROR, "the message is not JSON")
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False), []
    except ValidationError:
        pass
    if isinstance(value, dict) and "method" not in value and ("result" in value or "error" in value):
        return _answer_of_no_use(value.get("id")), []
    ids = [value.get("id")] if isinstance(value, dict) else []
    return None, _refuse(ids, INVALID_REQUEST, "the message is not a JSON-RPC 2.0 request")


def _answer_of_no_use(number: Any) -> JSONRPCError | None:
    """What stands for an answer to a question of ours that has no shape: whoever asked waits no longer.

    It is not refused to the client: under that id it would take it for the answer to a request of its own.
    """
    logger.warning("An answer was passed over: it is not a JSON-RPC 2.0 response.")
    if isinstance(number, bool) or not isinstance(number, (int, str)):
        return None
    return _error(number, INVALID_REQUEST, "the answer is not a JSON-RPC 2.0 response")


def storable(body: bytes) -> bytes:
    """A message's bytes with what no text can hold marked, so that the check of arguments refuses it.

    An answer without a shape comes back as one that says so, as it does on standard input.
    """
    if b'"method"' not in body and isinstance(answer := understood(body)[0], JSONRPCError):
        return answer.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8")
    if not _HALVES.search(body):
        try:
            body.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            return body
    try:
        return json.dumps(_scrub(json.loads(body.decode("utf-8", "surrogateescape")))).encode("ascii")
    except (ValueError, RecursionError):
        return body  # not JSON at all: whoever reads it says so


def _too_long(head: bytes, tail: bytes) -> list[JSONRPCError]:
    """The refusal of a line of which only the two ends were kept."""
    # Some clients write the id first and some last.
    found = _id_in(head[:_TAIL].rpartition(b",")[0].decode("utf-8", "replace"))
    if found is None and (last := _LAST_ID.search(tail)) is not None:
        found = json.loads(last[1])
    return _refuse([found], INVALID_REQUEST, f"a message has at most {MOST_LINE} bytes")


def _scrub(value: Any) -> Any:
    """*value* with NUL for what UTF-8 cannot hold: the check of arguments refuses that by name."""
    if isinstance(value, str):
        return _LONE.sub("\0", value)
    if isinstance(value, list):
        return [_scrub(item) for item in value]
    if isinstance(value, dict):
        return {_scrub(key): _scrub(item) for key, item in value.items()}
    return value


def _id_in(text: str) -> Any:
    """The request id of a line that is no JSON as a whole, as far as its beginning shows one."""
    depth = 0
    last = key = ""
    for match in itertools.islice(_PIECE.finditer(text), _MOST_PIECES):
        piece = match.group()
        if piece in "[{":
            depth += 1
        elif piece in "]}":
            depth -= 1
        elif depth == 1 and key == '"id"' and last == ":":
            return _plain_json(piece)
        key, last = last, piece
    return None


def _plain_json(piece: str) -> Any:
    try:
        return json.loads(piece)
    except ValueError:
        return None


def _refuse(ids: list[Any], code: int, reason: str) -> list[JSONRPCError]:
    known = [entry for entry in ids if isinstance(entry, (int, str)) and not isinstance(entry, bool)]
    if not known or len(known) > MOST_REFUSALS:
        logger.warning("A message was passed over: %s.", reason)
    return [_error(entry, code, f"invalid_arguments: {reason}") for entry in known[:MOST_REFUSALS]]


def _error(request_id: int | str, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))
