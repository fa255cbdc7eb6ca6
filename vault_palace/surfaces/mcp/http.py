"""The server over HTTP: one process, one palace, several agents at once, each with a session of its own.

A token is asked for on loopback, too, unless the person says `--no-token`: other users of this machine and
every program in a browser's reach can connect to a loopback port, which nobody can do to a pipe. Beyond
loopback there is no way without it. Nothing here is loaded for a server on standard input and output.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Generator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager

import h11
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol

from vault_palace.core.errors import Exists, PolicyViolation, StorageFailed
from vault_palace.services import bearer
from vault_palace.surfaces.config import Settings, run_in_utf8
from vault_palace.surfaces.mcp import server
from vault_palace.surfaces.mcp.address import Address, Names
from vault_palace.surfaces.mcp.door import Door
from vault_palace.surfaces.mcp.gate import MOST_BODY, PATH, Gate
from vault_palace.surfaces.mcp.metrics import Counted

logger = logging.getLogger(__name__)

MOST_CONNECTIONS = 512  # above it a request is answered 503
MOST_SESSIONS = 1_000
SESSION_IDLE_SECONDS = 30 * 60.0
HEAD_SECONDS = 10.0  # in which a connection's next request line and headers must have come
KEEP_ALIVE_SECONDS = 65
MOST_HEAD = 16 * 1024  # bytes of request line and headers
HEALTH_SECONDS = 2.0  # how long a good answer of /health holds, and how long one may take


class Connection(H11Protocol):
    """uvicorn's connection, closed when a request's head does not come in time."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS + 64:
            transport.abort()
        else:
            self._head = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        waiting = self.conn.their_state is h11.IDLE
        if waiting and self._head is None:
            self._head = self.loop.call_later(HEAD_SECONDS, self._too_slow)
        elif not waiting:
            self._unset_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_head()
        super().connection_lost(exc)

    def _too_slow(self) -> None:
        self._head = None
        if not self.transport.is_closing() and self.conn.their_state is h11.IDLE:
            self.transport.abort()

    def _unset_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class Uvicorn(uvicorn.Server):
    """uvicorn with our signals, and asleep while nothing happens."""

    def __init__(self, config: uvicorn.Config, *, ready: str) -> None:
        super().__init__(config)
        self._ready = ready
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Stop taking connections, let calls under way finish, and return."""
        self.should_exit = True
        self._ended.set()

    def cut(self) -> None:
        """Close every connection, whether or not its client reads what it was sent."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sys.stderr.write(self._ready)
        sys.stderr.flush()

    async def main_loop(self) -> None:
        await self._ended.wait()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # ours are set by `_serve`


class Health:
    """Whether the vault is open and nothing is really wrong; looked at at most every other second.

    There is one look at a time, in a thread of its own: when all others are busy, or one hangs on a disk that
    is gone, that is not ok, and however often is asked no further thread hangs there.
    """

    def __init__(self, door: Door) -> None:
        self._door = door
        self._at = 0.0
        self._ok = False
        self._look: Future[bool] | None = None

    async def __call__(self) -> bool:
        if self._ok and time.monotonic() - self._at < HEALTH_SECONDS:
            return True
        if self._look is None:
            self._look = Future()
            threading.Thread(target=self._run, args=(self._look,), name="look-at-health", daemon=True).start()
        look = self._look
        await asyncio.wait({asyncio.wrap_future(look)}, timeout=HEALTH_SECONDS)
        self._ok, self._at = look.done() and look.result(), time.monotonic()
        if look.done() and self._look is look:
            self._look = None
        return self._ok

    def _run(self, look: Future[bool]) -> None:
        try:
            opening = self._door.start()
            opened = opening.done() and opening.exception() is None
            look.set_result(opened and not opening.result().faults())
        except Exception:
            # Whatever it is, it is not ok; whoever asks for more calls healthcheck.
            logger.exception("The health of the vault could not be looked at.")
            look.set_result(False)


class Redacting(logging.Formatter):
    """Lines of the log without the token, whoever wrote them."""

    def __init__(self, text: str, token: bearer.Bearer | None) -> None:
        super().__init__(text)
        self._token = token

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        token = self._token.token if self._token is not None else None
        return line.replace(token.decode("ascii"), "[token]") if token else line


def serve_http(
    settings: Settings, address: Address, *, with_token: bool = True, allowed_hosts: Sequence[str] = ()
) -> int:
    """Serve the vault of *settings* at *address* until a signal ends it.

    Refused before anything listens: a vault that is not there, an address beyond this machine without a
    token, a token's file that others can read, a port that is taken.
    """
    run_in_utf8()
    if not with_token and not address.loopback:
        raise PolicyViolation(
            f"{address.name} can be reached from other machines: a token is needed there.",
            hint="Leave out --no-token, or listen on 127.0.0.1.",
        )
    server.must_be_palace(settings)
    token = None
    if with_token:
        bearer.read_or_make(settings.state_dir, settings.root)
        token = bearer.Bearer(bearer.token_file(settings.state_dir, settings.root))
    _log_to_standard_error(token)
    listener = _listen(address)
    try:
        bound = Address(ip=address.ip, port=int(listener.getsockname()[1]), name=address.name)
        names = Names(bound, allowed_hosts)
        return asyncio.run(_serve(settings, bound, listener, names, token))
    finally:
        listener.close()


def _log_to_standard_error(token: bearer.Bearer | None) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacting("%(levelname)s %(name)s: %(message)s", token))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    # What strangers send is no event of ours: they could fill a disk with it.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.ip else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            # On Windows the option would let two servers take one port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address.ip, address.port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        where = f"{address.name}:{address.port}"
        if error.errno == errno.EADDRINUSE:
            raise Exists(
                f"{where} is in use by another program.", hint="Give another port; 0 takes any that is free."
            ) from error
        raise StorageFailed(
            f"The server cannot listen on {where}: {error.strerror or error}.",
            hint="Is the address one of this machine, and the port above 1023?",
        ) from error
    listener.setblocking(False)
    return listener


async def _serve(
    settings: Settings, address: Address, listener: socket.socket, names: Names, token: bearer.Bearer | None
) -> int:
    desk = server.desk_for(settings, transport=address.url)
    manager = StreamableHTTPSessionManager(
        server.build(desk),
        session_idle_timeout=SESSION_IDLE_SECONDS,
        max_sessions=MOST_SESSIONS,
        max_request_body_size=MOST_BODY,
    )

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with manager.run():
            desk.door.start()
            yield

    gate = Gate(
        manager.handle_request,
        names=names,
        fits=token.fits if token is not None else None,
        healthy=Health(desk.door),
        running=running,
    )
    config = uvicorn.Config(
        Counted(gate, desk.metrics),
        http=Connection,
        ws="none",
        loop="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=MOST_HEAD,
    )
    outer = Uvicorn(config, ready=f"vault-palace: listening on {address.url}{PATH}\n")
    ended_by: list[int] = []

    def end() -> None:
        gate.stop()
        outer.end()
        loop = asyncio.get_running_loop()
        loop.call_later(server.SIGNAL_SECONDS, gate.give_up)
        loop.call_later(server.SIGNAL_SECONDS + 1, outer.cut)

    server.end_on_signals(desk, end, ended_by)
    await outer.serve(sockets=[listener])
    return 128 + ended_by[0] if ended_by else 0
