"""Where calls are taken: who calls, with what arguments, what the tool answered, and how it is counted."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from vault_palace.core.errors import NotFound, PolicyViolation, VaultError
from vault_palace.services.caller import CALLER, Caller
from vault_palace.services.pace import PACE, Pace
from vault_palace.surfaces.mcp import asking, fit, render, strict, tools
from vault_palace.surfaces.mcp.answering import Context
from vault_palace.surfaces.mcp.door import Door
from vault_palace.surfaces.mcp.logs import Log
from vault_palace.surfaces.mcp.metrics import UNKNOWN, Metrics
from vault_palace.surfaces.mcp.subscriptions import Hub
from vault_palace.surfaces.mcp.tools import catalogue

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace

logger = logging.getLogger(__name__)

INTERNAL = "internal"
PROTOCOL = "protocol"  # a call that the protocol refuses, such as one with a state that is not ours
AGENT_NAME = 80  # characters of what a client calls itself
PROGRESS_SECONDS = 0.1  # at most one progress message in this time, and one at the end
_SALT = secrets.token_hex(16)

T = TypeVar("T")


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
            PACE.set(Pace(_progress(context), self._cancelled, _given_up))
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
        PACE.set(Pace(progress, self._cancelled, _given_up))
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
