"""Counts and durations of tool calls since the server started, in memory and bounded."""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import TypedDict

KEPT = 512  # durations a tool that percentiles are taken of


class ToolMetrics(TypedDict):
    success: int
    error: int
    count: int
    p50_ms: float
    p95_ms: float
    errors_by_code: dict[str, int]


class Metrics:
    """What happened to calls, tool by tool. Safe to use from several threads."""

    def __init__(self, tools: tuple[str, ...]) -> None:
        self._lock = threading.Lock()
        self._success: Counter[str] = Counter()
        self._errors: dict[str, Counter[str]] = {tool: Counter() for tool in tools}
        self._durations: dict[str, deque[float]] = {tool: deque(maxlen=KEPT) for tool in tools}

    def record(self, tool: str, seconds: float, error: str = "") -> None:
        """One call ended: well, or with the code of an *error*."""
        with self._lock:
            if error:
                self._errors[tool][error] += 1
            else:
                self._success[tool] += 1
            self._durations[tool].append(seconds)

    def snapshot(self) -> dict[str, ToolMetrics]:
        """What was recorded so far, for the tools that were called."""
        with self._lock:
            return {tool: self._of(tool) for tool, seen in self._durations.items() if seen}

    def _of(self, tool: str) -> ToolMetrics:
        ordered = sorted(self._durations[tool])
        errors = self._errors[tool]
        return {
            "success": self._success[tool],
            "error": errors.total(),
            "count": self._success[tool] + errors.total(),
            "p50_ms": _percentile(ordered, 50),
            "p95_ms": _percentile(ordered, 95),
            "errors_by_code": dict(sorted(errors.items())),
        }


def _percentile(ordered: list[float], percent: int) -> float:
    """The nearest-rank percentile in milliseconds."""
    rank = -(-len(ordered) * percent // 100)
    return round(ordered[max(rank, 1) - 1] * 1000, 3)
