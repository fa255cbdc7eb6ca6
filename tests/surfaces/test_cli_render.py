"""What a person sees of the answers that a healthy vault rarely gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.surfaces.stand_in import METABOLIZED
from vault_palace.surfaces.cli import render
from vault_palace.surfaces.cli.screen import Block, Says, Table

DECISION = {"path": "01_Shallow/a.md", "to": "_Archive", "rule": "2", "reason": "streak -1"}
STATUS: dict[str, Any] = {
    "vault": "/vault",
    "version": "0.1.0",
    "mode": "palace",
    "timezone": "",
    "layers": {"shallow": 1},
    "archived": 0,
    "decaying_soon": [DECISION],
    "rising_soon": [],
    "index": {"state": "behind", "notes": 3, "reason": ""},
    "watch": {"mode": "off", "keeper": False, "holder": "process 8 on host b"},
    "open_operations": 1,
    "problem_count": 2,
    "lock": "process 7 on host a",
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

    said = lines(render.status(answer))

    assert "palace · vault-palace 0.1.0" in said
    assert "01_Shallow/a.md | _Archive | streak -1" in said
    assert "Index: state behind, notes 3" in said
    assert "Keeper: process 8 on host b" in said
    assert "Write lock: process 7 on host a" in said
    assert "Unfinished operations: 1 (vault-palace recover)" in said
    assert "Problems: 2 (vault-palace check)" in said


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
