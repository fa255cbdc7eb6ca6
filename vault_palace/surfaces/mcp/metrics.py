"""Counts and durations of what a server answers since it started, in memory and bounded.

One row a tool, and rows for what is no tool: the keeper's steps, and requests for resources, prompts,
completions and over HTTP. A row that has searched says how many of its searches were followed by a read.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, NotRequired, TypeAlias, TypedDict

from vault_palace.surfaces.mcp.followup import Followed, Followup

KEPT = 512  # durations a row that percentiles are taken of
CODES = 32  # kinds of errors a row; the codes are ours and fewer, but what the SDK raises may be anything
AGENTS = 32  # names of clients that are told apart
KEEPER = "keeper"  # the keeper's steps
HTTP = "http"  # requests over HTTP, whatever they asked for
UNKNOWN = "unknown_tool"  # calls of tools that there are not
REQUESTS = ("resources/read", "prompts/get", "completion/complete")
OTHER = "other"  # whatever else is counted: no caller makes new rows
ROWS = (KEEPER, HTTP, UNKNOWN, *REQUESTS)

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
_App: TypeAlias = Callable[[_Message, _Receive, _Send], Awaitable[None]]


class ToolMetrics(TypedDict):
    success: int
    error: int
    count: int
    p50_ms: float
    p95_ms: float
    errors_by_code: dict[str, int]
    followed: NotRequired[int]  # searches of which a note was read soon after
    missed: NotRequired[int]  # searches of which none was
    waiting: NotRequired[int]  # searches that may still be followed
    hit_rate: NotRequired[float | None]  # followed of those that are decided


class Metrics:
    """What happened to calls, row by row. Safe to use from several threads."""

    def __init__(self, tools: Iterable[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        rows = (*tools, *ROWS, OTHER)
        self._success: Counter[str] = Counter()
        self._errors: dict[str, Counter[str]] = {row: Counter() for row in rows}
        self._durations: dict[str, deque[float]] = {row: deque(maxlen=KEPT) for row in rows}
        self._agents: Counter[str] = Counter()
        self.followup = Followup(clock=clock)

    def record(self, row: str, seconds: float, error: str = "") -> None:
        """One call ended: well, or with the code of an *error*."""
        with self._lock:
            if row not in self._durations:
                row = OTHER
            errors = self._errors[row]
            if not error:
                self._success[row] += 1
            elif error in errors or len(errors) < CODES:
                errors[error] += 1
            else:
                errors[OTHER] += 1
            self._durations[row].append(max(seconds, 0.0))

    def called_by(self, agent: str) -> None:
        """A call came from the client that gives itself this name."""
        with self._lock:
            known = agent in self._agents or len(self._agents) < AGENTS
            self._agents[agent if known else OTHER] += 1

    def agents(self) -> dict[str, int]:
        """How many calls came from whom."""
        with self._lock:
            return dict(sorted(self._agents.items()))

    def snapshot(self) -> dict[str, ToolMetrics]:
        """What was recorded so far, for the rows that something was recorded of."""
        followed = self.followup.counts()
        with self._lock:
            return {row: self._of(row, followed) for row, seen in self._durations.items() if seen}

    def _of(self, row: str, followed: Mapping[str, Followed]) -> ToolMetrics:
        ordered = sorted(self._durations[row])
        errors = self._errors[row]
        seen: ToolMetrics = {
            "success": self._success[row],
            "error": errors.total(),
            "count": self._success[row] + errors.total(),
            "p50_ms": _percentile(ordered, 50),
            "p95_ms": _percentile(ordered, 95),
            "errors_by_code": dict(sorted(errors.items())),
        }
        if row in followed:
            its = followed[row]
            seen["followed"], seen["missed"], seen["waiting"] = its.followed, its.missed, its.waiting
            seen["hit_rate"] = its.rate
        return seen


def _percentile(ordered: list[float], percent: int) -> float:
    """The nearest-rank percentile in milliseconds."""
    rank = -(-len(ordered) * percent // 100)
    return round(ordered[max(rank, 1) - 1] * 1000, 3)


class Counted:
    """An ASGI app with each HTTP request counted: its time until the answer begins, its status as the error.

    Streams go on for as long as a client listens; that is no duration of ours.
    """

    def __init__(self, app: _App, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        answered = False

        async def told(message: _Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start" and not answered:
                answered = True
                status = message["status"]
                self._metrics.record(
                    HTTP, time.perf_counter() - started, str(status) if status >= 400 else ""
                )
            await send(message)

        try:
            await self._app(scope, receive, told)
        finally:
            if not answered:
                self._metrics.record(HTTP, time.perf_counter() - started, "unanswered")
