"""The MCP server: tools over stdio in both protocol eras, opened at once, stopped cleanly.

The only package that imports the SDK, and it uses the SDK's public low-level server, so that arguments,
schemas and errors are ours to the letter. Nothing but protocol reaches standard output; a traceback of
something unexpected goes to standard error and never to the client.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    DiscoverResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParams,
    SetLevelRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from vault_palace import __version__
from vault_palace.core.errors import NotFound, PolicyViolation, TimedOut, VaultError
from vault_palace.services.caller import CALLER, Caller
from vault_palace.services.pace import PACE, Pace
from vault_palace.surfaces.config import Settings, run_in_utf8
from vault_palace.surfaces.mcp import asking, fit, render, strict, tools
from vault_palace.surfaces.mcp.answering import Context
from vault_palace.surfaces.mcp.completing import Completions
from vault_palace.surfaces.mcp.logs import Log
from vault_palace.surfaces.mcp.metrics import KEEPER, REQUESTS, UNKNOWN, Metrics
from vault_palace.surfaces.mcp.prompts import Prompts
from vault_palace.surfaces.mcp.resources import Resources
from vault_palace.surfaces.mcp.subscriptions import Hub
from vault_palace.surfaces.mcp.texts import instructions
from vault_palace.surfaces.mcp.tools import catalogue
from vault_palace.surfaces.mcp.wire import Wire, claim_standard_streams

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace
    from vault_palace.surfaces.mcp.publishing import Publisher
    from vault_palace.surfaces.watcher import Watch

logger = logging.getLogger(__name__)

NAME = "vault-palace"
INTERNAL = "internal"
PROTOCOL = "protocol"  # a call that the protocol refuses, such as one with a state that is not ours
OPENING_SECONDS = 60.0  # how long a call waits for the vault to be open
SIGNAL_SECONDS = 5.0  # what calls under way get to finish after a signal
_SALT = secrets.token_hex(16)
AGENT_NAME = 80  # characters of what a client calls itself
PROGRESS_SECONDS = 0.1  # at most one progress message in this time, and one at the end

T = TypeVar("T")


class Door:
    """The palace behind the server: opened by a thread of its own, so that no client waits for it.

    A vault that cannot be opened answers every call with the reason, and is tried again at the next one:
    a disk that was away comes back.
    """

    def __init__(
        self, open_palace: Callable[[], Palace], attend: Callable[[Palace], Attendance] | None = None
    ) -> None:
        self._open = open_palace
        self._attend = attend
        self._attendance: Attendance | None = None
        self._lock = threading.Lock()
        self._opening: Future[Palace] | None = None
        self._closed = False

    def start(self) -> Future[Palace]:
        """Begin to open the palace, unless it is open or being opened."""
        with self._lock:
            failed = self._opening is not None and self._opening.done() and self._opening.exception()
            if self._opening is None or failed:
                self._opening = Future()
                threading.Thread(
                    target=self._run, args=(self._opening,), name="open-vault", daemon=True
                ).start()
            return self._opening

    def palace(self) -> Palace:
        """The open palace. Raises what kept it from opening."""
        try:
            return self.start().result(OPENING_SECONDS)
        except FutureTimeout:
            raise TimedOut("The vault is still being opened.", hint="Repeat the call in a minute.") from None

    def close(self) -> None:
        """Let the palace go, once."""
        with self._lock:
            opening, closed, self._closed = self._opening, self._closed, True
        if opening is None or closed:
            return
        try:
            palace = opening.result(OPENING_SECONDS)
            with self._lock:
                attendance, self._attendance = self._attendance, None
            if attendance is not None:
                attendance.stop()  # first: it asks the palace until the end
            palace.close()
        except Exception:
            logger.debug("The palace was not open at the end.", exc_info=True)

    def _run(self, opening: Future[Palace]) -> None:
        try:
            palace = self._open()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the palace gets it
            opening.set_exception(error)
            return
        opening.set_result(palace)
        with self._lock:
            if self._attend is not None and not self._closed:
                self._attendance = self._attend(palace)


class Desk:
    """Where calls are taken: arguments checked, the tool run in a thread, the outcome counted."""

    def __init__(self, door: Door, *, read_only: bool = False, tools: Collection[str] | None = None) -> None:
        self.door = door
        self.read_only = read_only
        everything = catalogue()
        self.tools = {
            name: tool
            for name, tool in everything.items()
            if (tools is None or name in tools) and (tool.text.offered_read_only or not read_only)
        }
        self.kept_back = frozenset(everything) - frozenset(self.tools)
        self.metrics = Metrics(everything)
        self.stopping = threading.Event()
        self.hub = Hub(lambda question: question(self.door.palace()))
        self.asking = asking.Asking(self.ask)
        self.log = Log()

    def end(self) -> None:
        """End the streams and ask the client nothing more: it left, or the server stops."""
        self.hub.close()
        self.asking.close()

    async def ask(self, context: Context, question: Callable[[Palace], T]) -> T:
        """What the palace answers to *question*, in a thread and in the name of the caller."""

        def run() -> T:
            CALLER.set(caller_of(context))
            PACE.set(Pace(_progress(context), self._cancelled))
            return question(self.door.palace())

        return await anyio.to_thread.run_sync(run)

    async def list_tools(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        """The tools that are offered, in their fixed order."""
        return ListToolsResult(tools=[_listed(tool) for tool in self.tools.values()])

    def input_schema(self, name: str) -> dict[str, object] | None:
        """The form of a tool's arguments, by which the SDK checks what a client repeats in its headers."""
        tool = self.tools.get(name)
        return None if tool is None else strict.schema_of(tool.text.arguments)

    async def call_tool(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Run one call to its end; every failure is a tool error that begins with its code.

        A destructive call may go back to the client first, with a question for the person.
        """
        tool = self.tools.get(params.name)
        if tool is None:
            refusal = self._refusal(params.name)
            self.metrics.record(params.name if params.name in self.kept_back else UNKNOWN, 0.0, refusal.code)
            return failure(refusal)
        started = time.perf_counter()
        code = ""
        given = params.arguments or {}
        try:
            if self.read_only and not tool.text.offered_read_only:
                raise PolicyViolation(
                    "The vault is served read-only.", hint=f"{tool.name} is not offered here."
                )
            if tool.text.destructive:
                arguments = strict.read_arguments(tool.name, tool.text.arguments, given)
                settled = await self.asking.settle(context, params, arguments)
                if isinstance(settled, InputRequiredResult):
                    return settled
                given = {**given, asking.KEY: True} if settled == "confirmed" else given
            # A cancelled call runs on in its thread until the tool looks up, so a write is never cut in half.
            answered = await anyio.to_thread.run_sync(self._run, tool, given, context)
        except VaultError as error:
            code = error.code
            return failure(error)
        except MCPError:
            code = PROTOCOL
            raise
        except Exception:
            code = INTERNAL
            logger.exception("%s failed", tool.name)
            return _error(
                f"{INTERNAL}: {tool.name} failed inside the server. "
                "Call healthcheck; the server's standard error has the details.",
                {"code": INTERNAL},
            )
        finally:
            self.metrics.record(tool.name, time.perf_counter() - started, code)
        self.hub.learnt(context, tools.revs_told(tool, answered.structured))
        if not tool.text.reads_only:
            self.hub.wake()
        return CallToolResult(
            content=[TextContent(type="text", text=answered.text)], structured_content=answered.structured
        )

    def _refusal(self, name: str) -> VaultError:
        """Why a tool that is not offered is not run."""
        offered = f"The tools are: {', '.join(self.tools)}."
        if name not in self.kept_back:
            return NotFound("There is no such tool.", hint=offered)
        writes = self.read_only and not catalogue()[name].text.offered_read_only
        why = "the vault is served read-only" if writes else "the server was started with other tools"
        return PolicyViolation(f"{name} is not offered here: {why}.", hint=offered)

    def _run(self, tool: tools.Tool, given: Mapping[str, object], context: Context) -> fit.Answered:
        # This thread works in a copy of the request's context variables, and so nothing has to be put back.
        caller = caller_of(context)
        CALLER.set(caller)
        progress = _progress(context)
        PACE.set(Pace(progress, self._cancelled))
        self.metrics.called_by(caller.agent)
        arguments = strict.read_arguments(tool.name, tool.text.arguments, given)
        call = tools.Call(
            palace=self.door.palace,
            arguments=arguments,
            metrics=self.metrics,
            progress=progress,
            cancelled=self._cancelled,
        )
        answered = tools.answer(tool, call)
        self.metrics.followup.answered(caller, tool.name, arguments, answered.structured)
        return answered

    def _cancelled(self) -> bool:
        return self.stopping.is_set() or _given_up()


def caller_of(context: Context) -> Caller:
    """Who calls: the client as it names itself, in the handshake or in the request (the SDK reads both)."""
    client = context.session.client_params
    agent = "" if client is None else render.line(render.plain(client.client_info.name), AGENT_NAME)
    return Caller(agent=agent, session=_session_over_http(context, agent))


def _session_over_http(context: Context, agent: str) -> str:
    """The journal's name of a session over HTTP; empty on standard input, where the process is the session.

    Requests of the modern era belong to no session: there, the calls of one agent are one. The id itself
    stays out of the vault, since whoever has it can speak in that session.
    """
    if context.request is None:
        return ""
    known = context.request.headers.get("mcp-session-id") or f"agent {agent}"
    return f"mcp-{hashlib.sha256(f'{_SALT} {known}'.encode('utf-8', 'replace')).hexdigest()[:8]}"


def failure(error: VaultError) -> CallToolResult:
    """*error* as a tool error: the code, the sentence, the next step; the facts beside it."""
    facts = render.plain({"code": error.code, **error.facts})
    said = [render.plain(f"{error.code}: {error}")]
    # What is in the note now, for a caller whose change came too late.
    said += [render.fenced(facts[key], key) for key in ("diff", "now") if facts.get(key)]
    return _error("\n".join(said), facts)


def _error(text: str, facts: dict[str, Any]) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True, _meta=facts)


def _given_up() -> bool:
    """Whether the client cancelled the call that this thread works on."""
    try:
        anyio.from_thread.check_cancelled()
    except asyncio.CancelledError:
        return True
    return False


def _progress(context: Context) -> Callable[[int, int, str], None]:
    """Progress messages for the caller, few enough not to slow the work down.

    The SDK sends them to callers that asked for progress and drops them for others.
    """
    last = -PROGRESS_SECONDS
    before, seen, sent = 0, -1, -1  # done in earlier stages, in this one, and as the caller was told

    def report(done: int, total: int, what: str) -> None:
        nonlocal last, before, seen, sent
        if done < seen:  # another stage of the work began to count: progress never goes back
            before += seen + 1
        seen = done
        now = time.monotonic()
        if before + done <= sent or (done < total and now - last < PROGRESS_SECONDS) or _given_up():
            return
        last, sent = now, before + done
        words = render.line(render.plain(what), 120)
        send = partial(context.session.report_progress, before + done, before + total, words)
        try:
            anyio.from_thread.run(send)
        except Exception:
            # Whether anyone hears of the progress does not matter to the work.
            logger.debug("A progress message was not sent.", exc_info=True)

    return report


def _listed(tool: tools.Tool) -> Tool:
    text = tool.text
    return Tool(
        name=text.name,
        title=text.title,
        description=text.about,
        input_schema=strict.schema_of(text.arguments),
        output_schema=tool.output,
        annotations=ToolAnnotations(
            read_only_hint=text.reads_only,
            destructive_hint=text.destructive,
            idempotent_hint=text.idempotent,
            open_world_hint=False,
        ),
    )


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
        instructions=instructions(desk.tools),
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
    wire = Wire(*claim_standard_streams(), ending=desk.end)
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


class Attendance:
    """What goes on beside the calls while a palace is open; the last to begin is the first to end."""

    def __init__(self, *parts: Watch | Publisher | None) -> None:
        self._parts = parts

    def stop(self) -> None:
        for part in reversed(self._parts):
            if part is not None:
                part.stop()


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
