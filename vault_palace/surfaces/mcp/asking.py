"""Asks the person before a destructive call, where the client can: by elicitation, in both protocol eras.

`confirm: true` always suffices, and a client that cannot ask gets the palace's own refusal. While somebody is
asked no thread waits and nothing is locked. An answer counts for exactly what was shown: if that is different
by then, it is asked again.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import anyio
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from vault_palace.core.errors import PolicyViolation
from vault_palace.core.model import ARCHIVE
from vault_palace.surfaces.mcp import render
from vault_palace.surfaces.mcp.answering import Ask, Context

if TYPE_CHECKING:
    from vault_palace.services.answers import MetabolizeAnswer
    from vault_palace.services.palace import Palace

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 300.0  # how long a person has
ROUNDS = 3  # how often it is asked anew because something changed meanwhile
MOST_OPEN = 1_000  # questions of modern clients that may be open at once; the oldest lapse
PATHS_SHOWN = 5
KEY = "confirm"
FIRST_WITH_FORMS = "2025-06-18"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {KEY: {"type": "boolean", "title": "Go ahead", "description": "Do it as described above"}},
    "required": [KEY],
}

Arguments = Mapping[str, Any]
Standing = Literal["unasked", "confirmed"]


def boundary(name: str) -> RequestStateBoundary:
    """The middleware that seals what a modern client carries for us; its key dies with this process."""
    return RequestStateBoundary(RequestStateSecurity.ephemeral(ttl=ANSWER_SECONDS), default_audience=name)


class Asking:
    """Who is asked what. All methods belong to the event loop."""

    def __init__(self, ask: Ask, *, seconds: float = ANSWER_SECONDS) -> None:
        self._ask = ask
        self._seconds = seconds
        self._open: OrderedDict[str, float] = OrderedDict()  # of modern clients: nonce -> until when
        self._scopes: set[anyio.CancelScope] = set()  # of handshake clients
        self._closed = False

    def close(self) -> None:
        """Ask no longer: the client has left, or the server ends."""
        self._closed = True
        for scope in [*self._scopes]:
            scope.cancel()

    async def settle(
        self, context: Context, params: CallToolRequestParams, arguments: Arguments
    ) -> Standing | InputRequiredResult:
        """Whether a person confirmed the call, it goes on as it is, or it has to come again with an answer.

        `PolicyViolation` when it was declined, or nobody answered.
        """
        show = QUESTIONS.get(params.name)
        if show is None or not _unconfirmed(params.name, arguments) or not can_ask(context):
            return "unasked"

        async def question() -> str:
            return await self._ask(context, lambda palace: _question(palace, show, arguments))

        asked = await question()
        if not asked:
            return "unasked"
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._by_return(params, asked)
        for _ in range(ROUNDS):
            _judge(await self._now(context, asked))
            again = await question()
            if again == asked:
                return "confirmed"
            asked = again
        raise PolicyViolation(
            "What would be done kept changing while it was asked for; nothing was done.",
            hint="Repeat the call.",
        )

    # -- handshake: a request of ours within the call --------------------------------------------------------

    async def _now(self, context: Context, asked: str) -> ElicitResult:
        scope = anyio.CancelScope()
        self._scopes.add(scope)
        try:
            with scope:
                if self._closed:
                    scope.cancel()
                return await context.session.send_request(
                    _request(asked),
                    ElicitResult,
                    request_read_timeout_seconds=self._seconds,
                    metadata=ServerMessageMetadata(related_request_id=context.request_id),
                )
        except (MCPError, ValidationError) as error:
            logger.info("Nobody could be asked: %s", error)
        finally:
            self._scopes.discard(scope)
        raise PolicyViolation(
            "Nobody answered whether to go ahead; nothing was done.",
            hint="Ask the person yourself, then repeat the call with confirm: true.",
        )

    # -- modern: the call comes again with the answer --------------------------------------------------------

    def _by_return(self, params: CallToolRequestParams, asked: str) -> Standing | InputRequiredResult:
        digest = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()
        if params.request_state is None:
            return self._put(asked, digest)
        # The boundary has seen to it that this is our own text, and for a call with these very arguments.
        nonce, _, shown = params.request_state.partition(" ")
        until = self._open.pop(nonce, None)
        if until is None or until < time.monotonic():
            raise MCPError(
                INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"}
            )
        answer = (params.input_responses or {}).get(KEY)
        if not isinstance(answer, ElicitResult) or shown != digest:
            return self._put(asked, digest)
        _judge(answer)
        return "confirmed"

    def _put(self, asked: str, digest: str) -> InputRequiredResult:
        nonce = secrets.token_hex(16)
        self._open[nonce] = time.monotonic() + self._seconds
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        return InputRequiredResult(input_requests={KEY: _request(asked)}, request_state=f"{nonce} {digest}")


def can_ask(context: Context) -> bool:
    """Whether this client shows forms to a person, and can be asked now."""
    capabilities = context.session.client_capabilities
    forms = capabilities.elicitation if capabilities is not None else None
    if forms is None or (forms.form is None and forms.url is not None):
        return False
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return True
    return context.protocol_version >= FIRST_WITH_FORMS and context.session.can_send_request


def _unconfirmed(name: str, arguments: Arguments) -> bool:
    return not arguments.get(KEY) and not (name == "metabolize" and arguments.get("dry_run"))


def _request(asked: str) -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=asked, requested_schema=_SCHEMA))


def _judge(answer: ElicitResult) -> None:
    """Return when the person agreed; else refuse in the name of what they said."""
    if answer.action == "accept" and (answer.content or {}).get(KEY) is True:
        return
    said = "dismissed the question" if answer.action == "cancel" else "declined"
    raise PolicyViolation(
        f"The person {said}; nothing was done.", hint="Do not repeat the call unless they ask for it."
    )


# -- what is asked ------------------------------------------------------------------------------------------


def _question(palace: Palace, show: Callable[[Palace, Arguments], str], arguments: Arguments) -> str:
    """What to ask; empty where Policy wants nothing confirmed. Refused where the call would be."""
    return render.plain(show(palace, arguments)) if palace.must_confirm() else ""


def _purge(palace: Palace, arguments: Arguments) -> str:
    reason = arguments.get("reason", "unspecified")
    seen = palace.before_purge(arguments["path"], reason=reason)
    count = seen["backlink_count"]
    shown = _listed(seen["backlinks"], count)
    linked = (
        f"{_number(count, 'memory links', 'memories link')} to it: {shown}"
        if count
        else "No memory links to it"
    )
    why = f" Reason given: {render.line(reason, 200)}." if reason != "unspecified" else ""
    return (
        f"Archive the note {render.path(seen['path'])} (rev {seen['rev']})? It moves to"
        f" {render.line(seen['archived_to'])}; nothing is deleted. {linked}.{why}"
    )


def _metabolize(palace: Palace, arguments: Arguments) -> str:
    given = {name: arguments[name] for name in ("days_threshold", "force") if name in arguments}
    plan: MetabolizeAnswer = palace.metabolize(dry_run=True, **given)
    leaving = [one["path"] for one in plan["decisions"] if one["to"] == ARCHIVE]
    archived = _listed(leaving[:PATHS_SHOWN], plan["archived_count"])
    waiting = len(plan["waiting"])
    scanned = _number(plan["scanned"], "memory", "memories")
    return (
        f"Age the vault now? Of {scanned}, {plan['promoted_count']} would rise a layer,"
        f" {plan['archived_count']} would go to the archive{f' ({archived})' if archived else ''}, nothing is"
        f" deleted, and {plan['decaying_count']} would be marked as decaying."
        + (f" {_number(waiting, 'archive waits', 'archives wait')}." if waiting else "")
        + (f" {render.line(plan['note'])}" if plan["note"] else "")
    )


def _listed(paths: list[str], count: int) -> str:
    more = count - len(paths)
    shown = ", ".join(render.line(path, 120) for path in paths)
    return f"{shown} and {more} more" if more > 0 and shown else shown


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


QUESTIONS: Mapping[str, Callable[[Palace, Arguments], str]] = {
    "purge_memory": _purge,
    "metabolize": _metabolize,
}
