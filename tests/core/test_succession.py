"""What holds now: the end of a chain of notes that replaced each other, circles and forks included."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.succession import Succession


@pytest.mark.parametrize(
    ("replaced", "archived", "by"),
    [
        ([], (), {"A": ""}),
        ([("A", "B")], (), {"A": "B", "B": ""}),
        ([("A", "B"), ("B", "C")], (), {"A": "C", "B": "C", "C": ""}),
        ([("A", "B"), ("B", "C")], ("B",), {"A": "C", "B": "C"}),
        ([("A", "B")], ("B",), {"A": "B"}),
        ([("A", "B"), ("A", "C")], ("B",), {"A": "C"}),
        ([("A", "A")], (), {"A": ""}),
        ([("A", "B"), ("B", "A")], (), {"A": "", "B": ""}),
        ([("A", "B"), ("B", "A"), ("B", "C")], (), {"A": "C", "B": "C", "C": ""}),
        ([("Z", "A"), ("A", "B"), ("B", "A")], (), {"Z": "A", "A": "", "B": ""}),
        ([("A", "C"), ("B", "C")], (), {"A": "C", "B": "C", "C": ""}),
    ],
)
def test_what_holds_now_stands_at_the_end_of_the_chain(
    replaced: Sequence[tuple[str, str]], archived: Sequence[str], by: dict[str, str]
) -> None:
    found = Succession(replaced, archived)

    assert {path: found.by(path) for path in by} == by


def test_a_superseded_note_stands_right_behind_what_replaced_it() -> None:
    found = Succession([("A", "B"), ("B", "C")])

    ranked = found.ranked({"A": -9.0, "B": -5.0, "C": -2.0})

    assert ranked == {"A": (-2.0, 2), "B": (-2.0, 1)}


def test_a_superseded_note_keeps_its_place_when_nothing_of_its_chain_matches() -> None:
    assert Succession([("A", "B")]).ranked({"A": -9.0}) == {"A": (-9.0, 1)}


def test_a_chain_of_any_length_is_followed() -> None:
    chain = [(f"{number:05d}", f"{number + 1:05d}") for number in range(20_000)]

    found = Succession(chain)

    assert found.by("00000") == "20000"
    assert found.ranked({"00000": -9.0, "20000": -1.0})["00000"] == (-1.0, 20_000)


NAMES = st.sampled_from("ABCDEFG")


@given(st.lists(st.tuples(NAMES, NAMES), max_size=14), st.dictionaries(NAMES, st.floats(-9, -1)))
def test_no_note_ranks_before_one_that_replaced_it(
    replaced: list[tuple[str, str]], scores: dict[str, float]
) -> None:
    found = Succession(replaced)

    ranked = {path: (score, 0) for path, score in scores.items()} | found.ranked(scores)

    assert all(
        ranked[new] < ranked[old]
        for old, new in replaced
        if {old, new} <= set(ranked) and old in found and not found.by(new) == found.by(old) == ""
        if not _in_one_circle(replaced, old, new)
    )


def _in_one_circle(replaced: Sequence[tuple[str, str]], one: str, other: str) -> bool:
    return one in _reached(replaced, other) and other in _reached(replaced, one)


def _reached(replaced: Sequence[tuple[str, str]], start: str) -> set[str]:
    found, open_ = {start}, [start]
    while open_:
        here = open_.pop()
        following = {new for old, new in replaced if old == here} - found
        found |= following
        open_ += following
    return found


def test_who_takes_part_is_worked_out_once_however_often_it_is_asked() -> None:
    replaced = Succession((f"{number}.md", "hub.md") for number in range(3))

    assert replaced.involved == {"0.md", "1.md", "2.md", "hub.md"}
    assert replaced.involved is replaced.involved
    assert replaced.old is replaced.old
