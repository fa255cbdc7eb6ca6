"""The MCP server: tools over stdio in both protocol eras, opened at once, stopped cleanly.

The only package that imports the SDK, and it uses the SDK's public low-level server, so that arguments,
schemas and errors are ours to the letter. Nothing but protocol reaches standard output; a traceback of
something unexpected goes to standard error and never to the client.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    DiscoverResult,
    RequestParams,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from vault_palace import __version__
from vault_palace.core.errors import VaultError
from vault_palace.surfaces.config import Settings, run_in_utf8
from vault_palace.surfaces.mcp import asking, render
from vault_palace.surfaces.mcp.answering import Context
from vault_palace.surfaces.mcp.completing import Completions
from vault_palace.surfaces.mcp.desk import INTERNAL, Desk, caller_of
from vault_palace.surfaces.mcp.door import Attendance, Door
from vault_palace.surfaces.mcp.metrics import KEEPER, REQUESTS, Metrics
from vault_palace.surfaces.mcp.prompts import Prompts
from vault_palace.surfaces.mcp.resources import Resources
from vault_palace.surfaces.mcp.texts import instructions
from vault_palace.surfaces.mcp.wire import FAREWELL_SECONDS, Wire, claim_standard_streams

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace
    from vault_palace.surfaces.watcher import Watch

logger = logging.getLogger(__name__)

NAME = "vault-palace"
SIGNAL_SECONDS = 5.0  # what calls under way get to finish after a signal


def build(desk: Desk) -> Server[None]:
    """The server around *desk*, for any transport."""

    @asynccontextmanager
    async def lifespan(_: Server[None]) -> AsyncIterator[None]:
        try:
            with desk.log.attached():
                async with desk.hub.running():
                    yield
        finally:
            desk.stopping.set()
            desk.end()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(desk.door.close)

    async def listen(ctx: Context, call_next: CallNext) -> HandlerResult:
        answer = await _counted(desk.metrics, _shaped(ctx), call_next)
        # The vault opens behind the first answer: its modules cost more than the handshake does.
        desk.door.start()
        return answer

    resources, prompts = Resources(desk.ask), Prompts(desk.ask, read_only=desk.read_only)
    lists = CacheHint(ttl_ms=3_600_000, scope="private")
    server = Server[None](
        NAME,
        version=__version__,
        title="Vault Palace",
        instructions=instructions(desk.tools, read_only=desk.read_only),
        lifespan=lifespan,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        # Else the SDK lists all tools, over HTTP and in the modern era, for each call of one.
        get_tool_input_schema=desk.input_schema,
        on_list_resources=resources.list,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read,
        on_subscribe_resource=desk.hub.subscribe,
        on_unsubscribe_resource=desk.hub.unsubscribe,
        on_subscriptions_listen=desk.hub.listen,
        on_list_prompts=prompts.list,
        on_get_prompt=prompts.get,
        on_completion=Completions(desk.ask).complete,
        cache_hints={
            "server/discover": lists,
            "tools/list": lists,
            "resources/list": lists,
            "resources/templates/list": lists,
            "prompts/list": lists,
            # A person may edit the note at any moment, and `if_rev` is only as good as the last read.
            "resources/read": CacheHint(ttl_ms=0, scope="private"),
        },
    )

    async def discover(context: Context, _: RequestParams | None) -> DiscoverResult:
        """What a modern client may rely on. That streams are served does not mean that the lists change."""
        held = server.get_capabilities(protocol_version=context.protocol_version)
        held.logging = None
        for listed in (held.tools, held.prompts, held.resources):
            if listed is not None:
                listed.list_changed = False
        return DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=held,
            instructions=server.instructions,
        )

    server.add_request_handler("server/discover", RequestParams, discover)
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, desk.log.set_level)
    server.middleware.append(listen)
    server.middleware.append(asking.boundary(NAME))
    return server


async def _counted(metrics: Metrics, context: Context, call_next: CallNext) -> HandlerResult:
    """What comes of the request, counted unless it is a tool's, which the desk counts by name."""
    if context.method not in REQUESTS:
        return await call_next(context)
    started = time.perf_counter()
    code = "cancelled"
    try:
        answer = await call_next(context)
        code = ""
    except MCPError as error:
        code = str(error.error.code)
        raise
    except Exception:
        code = INTERNAL
        raise
    finally:
        metrics.record(context.method, time.perf_counter() - started, code)
    uri = context.params.get("uri") if isinstance(context.params, Mapping) else None
    if isinstance(uri, str):
        metrics.followup.resource_read(caller_of(context), uri)
    return answer


def _shaped(context: Context) -> Context:
    """A call whose name or arguments have the wrong shape, so that it reaches our own refusal."""
    params = context.params
    if context.method != "tools/call" or not isinstance(params, Mapping):
        return context
    arguments = params.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        params = {**params, "arguments": {"arguments": None}}
    if not isinstance(params.get("name"), str):
        params = {**params, "name": ""}
    return context if params is context.params else replace(context, params=params)


async def _serve(desk: Desk, wire: Wire, ended_by: list[int]) -> None:
    server = build(desk)
    with anyio.CancelScope() as scope:
        _stop_on_signals(desk, wire, scope, ended_by)
        async with wire.streams() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())


def _stop_on_signals(desk: Desk, wire: Wire, scope: anyio.CancelScope, ended_by: list[int]) -> None:
    """SIGTERM and SIGINT let calls under way answer for a moment, then end the server as its input would.

    A second signal, or a call that does not end, ends the process at once: every write is safe against
    that. The signals go to *ended_by*.
    """
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()  # the loop itself does not keep a task alive

    async def end() -> None:
        await wire.wait_idle(SIGNAL_SECONDS)
        scope.cancel()

    end_on_signals(desk, lambda: tasks.add(loop.create_task(end())), ended_by)


def end_on_signals(desk: Desk, end: Callable[[], object], ended_by: list[int]) -> None:
    """The first SIGTERM or SIGINT tells *desk* to stop and calls *end*; what has not ended soon is ended."""
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        ended_by.append(number)
        if len(ended_by) > 1:
            os._exit(128 + number)
        desk.stopping.set()
        desk.end()
        # Not the loop's own clock: a call in a thread can outlive the loop, and keeps the process then.
        last = threading.Timer(2 * SIGNAL_SECONDS, os._exit, (128 + number,))
        last.daemon = True
        last.start()
        end()

    def wake(number: int, _: object) -> None:
        loop.call_soon_threadsafe(stop, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop, number)
        except NotImplementedError:  # Windows, where the loop takes no signals: not tested there
            signal.signal(number, wake)


def _client_left(desk: Desk) -> None:
    """Its calls may still answer, but one that does not end keeps nobody: a write is safe against that."""
    desk.end()
    last = threading.Timer(2 * FAREWELL_SECONDS, os._exit, (0,))
    last.daemon = True
    last.start()


def serve(settings: Settings) -> int:
    """Serve the vault of *settings* on standard input and output until the client leaves.

    A vault that is not there ends the server before it speaks: a message on standard error and the
    error's exit status.
    """
    run_in_utf8()
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        must_be_palace(settings)
    except VaultError as error:
        sys.stderr.write(f"vault-palace: {render.plain(f'{error.code}: {error}')}\n")
        return error.exit_status
    desk = desk_for(settings)
    wire = Wire(*claim_standard_streams(), ending=partial(_client_left, desk))
    ended_by: list[int] = []
    try:
        anyio.run(_serve, desk, wire, ended_by)
    except* (BrokenPipeError, ConnectionResetError):
        logger.debug("The client left without reading its answers.")
    return 128 + ended_by[0] if ended_by else 0


def desk_for(settings: Settings, *, transport: str = "stdio") -> Desk:
    """The desk in front of the vault of *settings*, which nobody has opened yet."""
    door = Door(partial(_open, settings), lambda palace: _attend(palace, settings, desk, transport))
    desk = Desk(door, read_only=settings.read_only, tools=settings.tools)
    return desk


def must_be_palace(settings: Settings) -> None:
    from vault_palace.storage.vault import find_palace

    find_palace(settings.root)


def _open(settings: Settings) -> Palace:
    from vault_palace.services.palace import Palace

    return Palace.open(settings.root, settings=settings.for_palace())


def _attend(palace: Palace, settings: Settings, desk: Desk, transport: str) -> Attendance:
    """The watcher of an open palace, and the notices of what this server does."""
    from vault_palace.surfaces.mcp.publishing import Publisher

    watch = _watch(palace, settings, desk)
    publisher = Publisher(palace.house, desk.metrics, transport=transport, read_only=settings.read_only)
    publisher.start()
    return Attendance(watch, publisher)


def _watch(palace: Palace, settings: Settings, desk: Desk) -> Watch:
    """The watcher of an open palace, begun; it is the vault's keeper while no other process is."""
    from vault_palace.surfaces.watcher import Watch

    watch = Watch(
        palace.house,
        how=settings.watch,
        record=partial(desk.metrics.record, KEEPER),
        heard=desk.hub.wake,
    )
    watch.start()
    return watch
