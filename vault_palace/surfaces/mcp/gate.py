"""What stands before the MCP endpoint: who asks, and how much, is checked before anything reads it.

In this order: under which name the server was asked (`Host`), from which page (`Origin`), with which token;
only then which path, method and kind of body. Without the token every path answers alike, so nobody learns
what there is; only `/health` is open, and it says no more than ok.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel

from vault_palace.surfaces.mcp.address import Names
from vault_palace.surfaces.mcp.wire import storable

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger(__name__)

PATH, HEALTH = "/mcp", "/health"
METHODS = ("GET", "POST", "DELETE")
MOST_BODY = 8 * 1024 * 1024  # bytes; longer than the longest argument with every character escaped
BODY_SECONDS = 30.0  # in which a request's body must have come
MOST_HEADERS = 100
LISTEN = b"subscriptions/listen"


class Refused(Exception):
    """A request that is turned away: its status, a word for programs and a sentence for people."""

    def __init__(self, status: int, word: str, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.word, self.sentence = status, word, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Gate:
    """The ASGI application: checks, then hands the request to *endpoint*, and knows what is under way."""

    def __init__(
        self,
        endpoint: App,
        *,
        names: Names,
        fits: Callable[[bytes], bool] | None,
        healthy: Callable[[], Awaitable[bool]],
        running: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self._endpoint = endpoint
        self._names = names
        self._fits = fits  # None: no token is asked for
        self._healthy = healthy
        self._running = running
        self._stopping = False
        self._endless: set[anyio.CancelScope] = set()
        self._all: set[anyio.CancelScope] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    def stop(self) -> None:
        """Take nothing new, and end what would never end by itself."""
        self._stopping = True
        for scope in self._endless:
            scope.cancel()

    def give_up(self) -> None:
        """End what is still under way. A call in a thread is waited for all the same."""
        for scope in self._all:
            scope.cancel()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def tell(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._let_in(scope, receive, tell)
        except Refused as refused:
            await _refuse(refused, send)
        except Exception:
            # The outer edge: whoever asked learns that it failed, and no more.
            logger.exception("A request failed inside the server.")
            if not begun:
                await _refuse(Refused(500, "internal", "It failed inside the server."), send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _read_headers(scope)
        self._check_names(scope, headers)
        if self._stopping:
            raise Refused(503, "stopping", "The server is stopping.")
        if scope["path"] == HEALTH and scope["method"] in ("GET", "HEAD"):
            ok = await self._healthy()
            await _say(200 if ok else 503, {"status": "ok" if ok else "not ok"}, send)
            return
        token = self._checked_token(headers)
        if scope["path"] != PATH:
            raise Refused(404, "not_found", f"There is only {PATH}.")
        if scope["method"] not in METHODS:
            raise Refused(405, "method", f"Use {', '.join(METHODS)}.", allow=", ".join(METHODS))
        if scope["method"] == "POST":
            with self._held(endless=True) as held:
                receive = await _whole_body(headers, receive)
            if held.cancelled_caught:
                raise Refused(503, "stopping", "The server is stopping.")
        await self._hand_over(scope, headers, token, receive, send)

    def _check_names(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> None:
        local = str((scope.get("server") or ("",))[0])
        hosts = [value.decode("latin-1") for value in headers.get(b"host", ())]
        if len(hosts) != 1 or not self._names.host(hosts[0], local):
            raise Refused(421, "host", "The server is not asked under this name; see --allow-host.")
        origins = [value.decode("latin-1") for value in headers.get(b"origin", ())]
        if len(origins) > 1 or not all(self._names.origin(origin, local) for origin in origins):
            raise Refused(403, "origin", "A page from elsewhere may not ask.")

    def _checked_token(self, headers: dict[bytes, list[bytes]]) -> bytes:
        if self._fits is None:
            return b""
        given = headers.get(b"authorization", [])
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        token = token.strip(b" ")
        if scheme.lower() != b"bearer" or not self._fits(token):
            raise Refused(
                401,
                "unauthorized",
                "Send `Authorization: Bearer TOKEN`; `vault-palace token` prints it.",
                www_authenticate="Bearer",
            )
        return token

    @contextmanager
    def _held(self, *, endless: bool) -> Iterator[anyio.CancelScope]:
        """A part of a request that is known to be under way; *endless* if it need not end by itself."""
        with anyio.CancelScope() as cancel:
            kinds = (self._all, self._endless) if endless else (self._all,)
            for kind in kinds:
                kind.add(cancel)
            try:
                yield cancel
            finally:
                for kind in kinds:
                    kind.discard(cancel)

    async def _hand_over(
        self, scope: Scope, headers: dict[bytes, list[bytes]], token: bytes, receive: Receive, send: Send
    ) -> None:
        """The request to the endpoint. An answer that is cut short, since the server stops or since the
        token is no longer the one it was asked for with, is ended well."""
        begun = ended = False
        endless = scope["method"] == "GET" or LISTEN in headers.get(b"mcp-method", ())

        async def tell(message: Message) -> None:
            nonlocal begun, ended
            if self._fits is not None and not self._fits(token):
                held.cancel()
                await anyio.lowlevel.checkpoint()
            begun = begun or message["type"] == "http.response.start"
            ended = ended or (message["type"] == "http.response.body" and not message.get("more_body", False))
            await send(message)

        with self._held(endless=endless) as held:
            await self._endpoint(scope, receive, tell)
        if held.cancelled_caught and not begun:
            raise Refused(503, "ended", "The server is stopping, or the token has changed.")
        if held.cancelled_caught and not ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _read_headers(scope: Scope) -> dict[bytes, list[bytes]]:
    if len(scope["headers"]) > MOST_HEADERS:
        raise Refused(431, "headers", f"More than {MOST_HEADERS} headers.")
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name, []).append(value)
    if b"transfer-encoding" in headers and b"content-length" in headers:
        # Two readers on the way may disagree about where such a request ends.
        raise Refused(400, "framing", "A body has one length, not two.")
    return headers


async def _whole_body(headers: dict[bytes, list[bytes]], receive: Receive) -> Receive:
    """The body, all of it and in time, ready to be read again."""
    kinds = headers.get(b"content-type", [])
    if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
        raise Refused(415, "content_type", "A message is application/json.")
    if headers.get(b"content-encoding", [b"identity"]) != [b"identity"]:
        raise Refused(415, "content_encoding", "A message is not compressed.")
    too_long = Refused(413, "too_large", f"A message has at most {MOST_BODY} bytes.")
    length = headers.get(b"content-length", [b"0"])[0]
    if not length.isdigit() or len(length) > 15 or int(length) > MOST_BODY:
        raise too_long
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS) as late:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Refused(400, "left", "The client left before its message was whole.")
            body += message.get("body", b"")
            if len(body) > MOST_BODY:
                raise too_long
            if not message.get("more_body", False):
                break
    if late.cancelled_caught:
        raise Refused(408, "slow", f"The message was not whole within {BODY_SECONDS:.0f} s.")
    whole: list[Message] = [{"type": "http.request", "body": storable(bytes(body)), "more_body": False}]

    async def again() -> Message:
        return whole.pop() if whole else await receive()

    return again


async def _refuse(refused: Refused, send: Send) -> None:
    # The rest of a body that nobody reads must not be taken for the next request.
    await _say(
        refused.status,
        {"error": refused.word, "message": refused.sentence},
        send,
        {**refused.headers, "connection": "close"},
    )


async def _say(status: int, what: dict[str, str], send: Send, headers: dict[str, str] | None = None) -> None:
    body = json.dumps(what).encode("ascii")
    fields = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        **(headers or {}),
    }
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode("ascii"), value.encode("ascii")) for name, value in fields.items()],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
