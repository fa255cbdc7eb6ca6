"""A palace for the tests of the command line that answers and raises whatever a test puts in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vault_palace.surfaces.cli import app as commands

MATCH = {
    "path": "01_Shallow/kafka.md",
    "snippet": "topics  are\nlogs",
    "id": "mem_0a1b2c3d4e5f",
    "title": "Kafka [bold]topics[/bold]",
    "layer": "shallow",
    "density": 0.2,
    "age_days": 3,
    "decays_on": "2026-12-08",
    "why": "all words in the title",
}
FOUND = {"room": "", "query": "kafka", "matches": [MATCH], "total": 1, "cursor": None, "note": ""}
METABOLIZED = {
    "dry_run": False,
    "scanned": 2,
    "promoted_count": 1,
    "archived_count": 0,
    "decaying_count": 0,
    "promoted": ["02_Sediment/a.md"],
    "archived": [],
    "decaying": [],
    "decisions": [{"path": "01_Shallow/a.md", "to": "sediment", "rule": "1", "reason": "density 0.6"}],
    "waiting": [],
    "skipped": [{"path": "01_Shallow/b.md", "reason": "open in Obsidian"}],
    "note": "",
    "cancelled": False,
}


class StandIn:
    """A palace that answers what a test put in, raises what it put in, and remembers its calls."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"search": FOUND, "metabolize": METABOLIZED, "check": []}
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self.calls.append((verb, args, named))
            answer = self.answers[verb]
            if isinstance(answer, BaseException):
                raise answer
            return answer(**named) if callable(answer) else answer

        return call


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Let every command open the stand-in instead of a vault."""
    stand_in = StandIn()

    @contextmanager
    def opened(vault: str | None, **_: object) -> Iterator[StandIn]:
        yield stand_in

    monkeypatch.setattr(commands, "opened", opened)
    return stand_in
