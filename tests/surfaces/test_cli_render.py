"""What a person sees of the answers that a healthy vault rarely gives."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pytest
from rich.console import Console

from tests.surfaces.stand_in import METABOLIZED
from vault_palace.surfaces.cli import render, screen, standing, watching
from vault_palace.surfaces.cli.screen import Block, Says, Table

DECISION = {"path": "01_Shallow/a.md", "to": "_Archive", "rule": "2", "reason": "streak -1"}
STATUS: dict[str, Any] = {
    "vault": "/vault",
    "version": "0.1.0",
    "mode": "palace",
    "timezone": "",
    "layers": {"shallow": 1},
    "archived": 0,
    "proposed": 0,
    "decaying_soon": [DECISION],
    "rising_soon": [],
    "index": {"state": "behind", "notes": 3, "reason": ""},
    "watch": {"mode": "off", "keeper": False, "holder": "process 8 on host b"},
    "open_operations": 1,
    "problem_count": 2,
    "lock": "process 7 on host a",
    "faults": [{"path": "", "line": 0, "code": "lock_dead", "message": "The write lock is a dead one's."}],
    "servers": [],
}
CALLS: dict[str, Any] = {"count": 3, "success": 2, "error": 1, "p50_ms": 1.5, "p95_ms": 9.25}
SERVER: dict[str, Any] = {
    "pid": 8,
    "at": "2026-12-01T12:00:05+00:00",
    "started": "2026-12-01T12:00:00+00:00",
    "version": "0.1.0",
    "transport": "stdio",
    "read_only": False,
    "agents": {"claude-code": 4, "": 1},
    "calls": {
        "search_room": {**CALLS, "errors_by_code": {"busy": 1}, "followed": 1, "missed": 2, "waiting": 1},
        "read_memory": {**CALLS, "errors_by_code": {}},
    },
    "index": {"state": "ready"},
    "watch": {"mode": "events", "keeper": True, "lag": 3},
}
READ: dict[str, Any] = {
    "path": "a.md",
    "title": "a",
    "metadata": {"tags": ["x", 1], "pinned": True, "density": None},
    "content": "text\n",
    "rev": "r",
    "backlinks": [],
    "truncated": True,
    "more": "Ask for the section Rest.",
    "warnings": ["density:: stands in the text"],
}


def lines(blocks: list[Block]) -> list[str]:
    """The texts, and the rows of the tables as one line each."""
    said: list[str] = []
    for block in blocks:
        if isinstance(block, Table):
            said += [block.title] if block.title else []
            said += [" | ".join(row) for row in block.rows]
        else:
            said.append(block.text)
    return said


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"waiting": [DECISION], "note": "Too many."}, ["Held back", "Too many."]),
        ({"cancelled": True}, ["Stopped between two notes; what is listed was done."]),
        ({}, ["Skipped, taken next time", "01_Shallow/b.md | open in Obsidian"]),
        (
            {"dry_run": True},
            ["Dry run: 2 notes looked at; 1 would rise, 0 would go to the archive, 0 decaying."],
        ),
    ],
)
def test_a_run_says_what_waits_what_was_skipped_and_where_it_stopped(
    changes: dict[str, object], expected: list[str]
) -> None:
    answer: Any = {**METABOLIZED, **changes}

    said = lines(render.metabolized(answer))

    assert [line for line in expected if line not in said] == []


def test_status_names_what_needs_a_look() -> None:
    answer: Any = STATUS

    said = lines(standing.status(answer))

    assert "palace · vault-palace 0.1.0" in said
    assert "01_Shallow/a.md | _Archive | streak -1" in said
    assert "Fault lock_dead: The write lock is a dead one's." in said
    assert "Index: behind, notes 3" in said
    assert "Keeper: process 8 on host b" in said
    assert "Servers: none is running" in said
    assert "Write lock: process 7 on host a" in said
    assert "Unfinished operations: 1 (vault-palace recover)" in said
    assert "Problems: 2 (vault-palace check)" in said


def test_status_shows_servers_their_calls_and_whether_searches_helped() -> None:
    slower = {**SERVER, "pid": 9, "transport": "http://127.0.0.1:7", "read_only": True, "watch": {}}
    slower["calls"] = {"read_memory": {**CALLS, "p95_ms": 80.0, "errors_by_code": {"not_found": 2}}}
    answer: Any = {**STATUS, "servers": [SERVER, slower]}

    said = lines(standing.status(answer))

    assert "Keeper: process 8 on host b, mode events, 3 s behind" in said
    assert "8 | stdio | 2026-12-01T12:00:00+00:00 | claude-code, unnamed | 5" in said
    assert "9 | http://127.0.0.1:7 read-only | 2026-12-01T12:00:00+00:00 | claude-code, unnamed | 5" in said
    assert "search_room | 3 | busy 1 | 1.5 | 9.25" in said
    assert "read_memory | 6 | not_found 2 | 1.5 | 80" in said
    assert "Searches followed by a read: 1 of 3 (33%), 1 undecided" in said


@pytest.mark.parametrize(("faults", "head"), [(0, "/v: ok"), (1, "/v: failing")])
def test_healthcheck_names_faults_and_counts_what_is_odd(faults: int, head: str) -> None:
    problems = STATUS["faults"][:faults]
    answer: Any = {
        "status": "failing" if faults else "ok",
        "vault": "/v",
        "fault_count": faults,
        "problems": [*problems, {"path": "a.md", "line": 2, "code": "bad_value", "message": "odd"}],
        "problem_count": faults + 1,
        "index": {"state": "ready", "bytes": 1_230_000},
        "watch": {"mode": "off", "keeper": False, "holder": ""},
        "note": "The notes are still being looked at.",
    }

    said = lines(standing.health(answer))

    assert said[0] == head
    assert [line for line in said if line.startswith("Fault")] == [
        "Fault lock_dead: The write lock is a dead one's." for _ in problems
    ]
    assert said[-4:] == [
        "Index: ready, 1.2 MB",
        "Keeper: none (vault-palace watch)",
        "The notes are still being looked at.",
        "Problems in notes: 1 (vault-palace check)",
    ]


@pytest.mark.parametrize("columns", [60, 120])
def test_status_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=columns, force_terminal=True, color_system="standard")
    answer: Any = {**STATUS, "servers": [SERVER]}

    screen._print(
        [block for block in standing.status(answer) if isinstance(block, Table)], console, sys.stdout
    )

    shown = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]
    assert max(map(len, shown.splitlines())) <= columns
    assert "claude-code" in shown
    assert "search_room" in shown


def test_a_note_that_was_cut_says_how_to_get_the_rest() -> None:
    answer: Any = READ

    said = lines(render.read(answer))

    assert "tags | x, 1" in said
    assert "pinned | true" in said
    assert "density | –" in said
    assert said[-2:] == ["Ask for the section Rest.", "Warning: density:: stands in the text"]


def test_a_link_that_could_not_be_rewritten_is_named() -> None:
    answer: Any = {
        "source": "a.md",
        "destination": "b.md",
        "links_rewritten": 2,
        "links_left": ["c.md: busy"],
    }

    said = lines(render.moved(answer))

    assert said == ["Moved a.md to b.md", "Links rewritten: 2", "Not rewritten: c.md: busy"]


def test_the_way_back_can_be_pasted_into_a_shell() -> None:
    answer: Any = {"path": "a b.md", "archived_to": "_Archive/a 'b'.md", "reason": ""}

    said = lines(render.purged(answer))

    assert said[-1] == """Back: vault-palace restore '_Archive/a '"'"'b'"'"'.md'"""


@pytest.mark.parametrize(("dry_run", "word"), [(True, "would be created"), (False, "created")])
def test_init_names_what_is_new_and_counts_what_stays(dry_run: bool, word: str) -> None:
    answer: Any = {
        "vault": "/vault",
        "dry_run": dry_run,
        "timezone": "UTC",
        "files": [
            {"path": "_System/Policy.md", "done": "created", "detail": "timezone UTC"},
            {"path": "PALACE_MAP.md", "done": "kept", "detail": ""},
        ],
        "notes": ["Restart Obsidian."],
    }

    blocks = render.laid_out(answer)

    assert lines(blocks) == [
        "/vault · time zone UTC",
        f"_System/Policy.md | {word} | timezone UTC",
        "Already there and left as they are: 1",
        "Restart Obsidian.",
    ]
    assert isinstance(blocks[0], Says)


def test_more_hits_are_one_option_away() -> None:
    answer: Any = {"room": "", "query": "x", "matches": [], "total": 3, "cursor": "abc", "note": "cut"}

    said = lines(render.found(answer))

    assert said == ["Nothing found.", "cut", "More: --cursor abc"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "120 min"), (7_200, "2 h"), (69_538, "19 h")],
)
def test_a_span_is_told_in_the_unit_a_person_would_use(seconds: float, said: str) -> None:
    assert watching.span(seconds) == said
