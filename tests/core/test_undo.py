"""What an undo makes of a text, by tables and by generated edits."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core import frontmatter
from vault_palace.core.undo import (
    PLACE,
    because,
    cancelled,
    changed_lines,
    difference,
    in_place,
    reverted,
    target,
)


def note(body: str, **values: object) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in values.items())
    return f"---\nid: mem_1\n{lines}---\n{body}"


BODIES = [
    # before, after, now, what is expected (None: refused)
    ("one\n", "two\n", "two\n", "one\n"),
    ("one\n", "one\ntwo\n", "one\ntwo\n", "one\n"),
    ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n", "a\nb\nc\nd\n"),
    ("a\nb\nc\n", "a\nB\nc\n", "A\nB\nc\n", None),
    ("a\n\nb\n\nc\n", "a\n\nB\n\nc\n", "A\n\nB\n\nc\n", "A\n\nb\n\nc\n"),
    ("a\n", "b\n", "c\n", None),
    ("a\n", "b\n", "a\n", "a\n"),
    ("same\n", "same\n", "newer\n", "newer\n"),
    ("a\nb\nc\n", "a\nB\nc\n", "a\r\nB\r\nc\r\n", "a\r\nb\r\nc\r\n"),
]


@pytest.mark.parametrize(("before", "after", "now", "expected"), BODIES)
def test_a_body_is_taken_back_where_nothing_newer_stands(
    before: str, after: str, now: str, expected: str | None
) -> None:
    found = reverted(note(before), note(after), note(now))

    assert found.text == (None if expected is None else note(expected))
    assert bool(found.why) is (expected is None)


VALUES = [
    # before, after, now, expected now, left as newer
    ({"density": 0.2}, {"density": 0.9}, {"density": 0.9, "mine": "x"}, {"density": 0.2, "mine": "x"}, ()),
    ({}, {"pinned": "true"}, {"pinned": "true", "mine": "x"}, {"mine": "x"}, ()),
    ({"a": 1}, {}, {"mine": "x"}, {"mine": "x", "a": 1}, ()),
    ({"density": 0.2}, {"density": 0.9}, {"density": 0.5}, {"density": 0.5}, ("density",)),
    ({"density": 1.5}, {"density": "1.0"}, {"density": 1, "mine": "x"}, {"density": 1.5, "mine": "x"}, ()),
    ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 1}, ()),
]


@pytest.mark.parametrize(("before", "after", "now", "expected", "newer"), VALUES)
def test_a_property_is_taken_back_only_where_it_has_the_operation_s_value(
    before: dict[str, object],
    after: dict[str, object],
    now: dict[str, object],
    expected: dict[str, object],
    newer: tuple[str, ...],
) -> None:
    found = reverted(note("x\n", **before), note("x\n", **after), note("x\n", **now))

    assert found.text is not None
    assert dict(frontmatter.read(found.text).values) == {"id": "mem_1", **expected}
    assert found.newer == newer


def test_what_was_not_touched_since_comes_back_byte_for_byte() -> None:
    before = "---\nid: mem_1 # mine\nb: 'x'\n\na:   1\n---\nold\n"

    found = reverted(before, note("new\n", a=2), note("new\n", a=2))

    assert found.text == before


def test_an_id_is_never_taken_from_a_note() -> None:
    found = reverted(
        "plain\n", note("plain\nmore\n", created="2031-03-01"), note("plain\nmore\n", created="2031-03-01")
    )

    assert found.text is not None
    assert frontmatter.read(found.text).values == {"id": "mem_1", "created": "2031-03-01"}
    assert frontmatter.read(found.text).body == "plain\n"


def test_of_a_move_only_the_place_is_taken_back() -> None:
    before, after = note("[[a]]\n", layer="shallow", see="a"), note("[[b]]\n", layer="sediment", see="b")

    found = reverted(before, after, after, only=PLACE)

    assert found.text == note("[[b]]\n", layer="shallow", see="b")


@pytest.mark.parametrize(
    "broken", ["---\na: [\n---\nnew\n", "---\n<<<<<<< a\n=======\n>>>>>>> b\n---\nnew\n"]
)
def test_a_header_that_does_not_parse_is_not_written(broken: str) -> None:
    found = reverted(note("old\n", a=1), note("new\n", a=2), broken)

    assert found.text is None
    assert "does not parse" in found.why


LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "# e", "- f"]), max_size=8)


@given(LINES, LINES)
def test_an_undo_at_once_gives_what_was(before: list[str], after: list[str]) -> None:
    old, new = note("\n".join(before)), note("\n".join(after))

    found = reverted(old, new, new)

    assert found.text == old


@given(LINES, LINES, LINES)
def test_an_undo_loses_no_line_that_came_since(before: list[str], after: list[str], more: list[str]) -> None:
    """Lines that neither version of the operation had are somebody's newer words."""
    fresh = [f"newer {line}" for line in more]
    place = len(after) // 2
    now = [*after[:place], *fresh, *after[place:]]

    found = reverted(note("\n".join(before)), note("\n".join(after)), note("\n".join(now)))

    kept = now if found.text is None else frontmatter.read(found.text).body.split("\n")
    assert all(line in kept for line in fresh)


@dataclass(frozen=True)
class Op:
    op: str
    verb: str = "write"
    why: str = "created"
    state: str = "done"


UNDONE = [
    ([Op("a")], set()),
    ([Op("a"), Op("u", "undo", because("a", "created"))], {"a"}),
    ([Op("a"), Op("u", "undo", because("a", "x")), Op("v", "undo", because("u", "of a: x"))], {"u"}),
    ([Op("a"), Op("u", "undo", because("a", "x"), "undone")], set()),
    ([Op("a"), Op("w", "write", "of a: x")], set()),
]


@pytest.mark.parametrize(("entries", "expected"), UNDONE)
def test_an_undone_undo_cancels_nothing(entries: list[Op], expected: set[str]) -> None:
    assert cancelled(entries) == expected


@given(st.from_regex(r"[0-9a-f]{16}", fullmatch=True), st.text())
def test_the_target_of_an_undo_reads_back(op: str, why: str) -> None:
    assert target(Op("u", "undo", because(op, why))) == op


def test_a_difference_shows_the_lines_that_change() -> None:
    assert difference("a\nb\n", "a\nc\n") == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]


def test_equal_texts_have_no_difference() -> None:
    assert difference("a\n", "a\n") == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("", "a\nb\n", "lines +2 −0"), ("a\nb\n", "a\n", "lines +0 −1"), ("a\n", "b\n", "lines +1 −1")],
)
def test_changed_lines_are_counted(before: str, after: str, expected: str) -> None:
    assert str(changed_lines(before, after)) == expected


# -- putting a version in a note's place --------------------------------------------------------------------

IN_PLACE = [
    # the version, the note now, what it becomes
    (note("old\n", streak=1), note("new\n", streak=5), note("old\n", streak=5)),
    (note("old\n", density=0.4), note("new\n", density=0.9), note("old\n", density=0.4)),
    (note("old\n"), note("new\n", tags="[b]"), note("old\n")),
    (note("old\n", tags="[a]"), note("new\n"), note("old\n", tags="[a]")),
    (note("old\n", tags="[a] # mine"), note("new\n"), note("old\n", tags="[a] # mine")),
    (note("old\n", rises_on="2031-01-01"), note("new\n"), note("old\n")),
    ("old\n", note("new\n"), note("old\n")),
    ("---\nid: other\n---\nold\n", note("new\n"), note("old\n")),
    (note("a\r\n").replace("\n", "\r\n"), note("new\n"), note("a\r\n").replace("\n", "\r\n")),
    (note("old\n"), "---\nid: [\n---\nnew\n", note("old\n")),
]


@pytest.mark.parametrize(("version", "now", "expected"), IN_PLACE)
def test_a_version_in_place_says_what_it_said_and_stands_where_the_note_stands(
    version: str, now: str, expected: str
) -> None:
    found = in_place(version, now)

    assert (found.text, found.newer) == (expected, ())


def test_of_a_version_with_a_broken_header_the_body_alone_is_taken() -> None:
    found = in_place("---\nid: mem_1\ntags: [half\n---\nold\n", note("new\n", streak=5))

    assert found.text == note("old\n", streak=5)
    assert found.newer


@given(body=st.text(max_size=80), other=st.text(max_size=80), streak=st.integers(-5, 5))
def test_a_note_put_in_its_own_place_stays_as_it_is(body: str, other: str, streak: int) -> None:
    there, now = note(body, streak=streak), note(other, streak=streak)

    assert in_place(there, now).text == there
