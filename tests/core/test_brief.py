"""A briefing keeps to its budget, and its beginning does not depend on what comes behind it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core import budget
from vault_palace.core.brief import Line, Part, cost, fit


def part(name: str, count: int, *, share: float = 0.0, turn: int = 1, words: int = 5) -> Part:
    lines = [Line(f"01_Shallow/{name} {number}.md", ": word" * words) for number in range(count)]
    return Part(name=name, title=name, lines=lines, count=count, share=share, turn=turn)


def names(parts: list[Part], most: int) -> dict[str, int]:
    return {one.part.name: len(one.lines) for one in fit(parts, most)}


def test_everything_is_shown_where_there_is_room() -> None:
    parts = [part("a", 3, share=0.5), part("b", 2), part("c", 4, turn=2)]

    assert names(parts, 10_000) == {"a": 3, "b": 2, "c": 4}


def test_the_first_part_is_the_same_whatever_the_others_hold() -> None:
    few = fit([part("a", 50, share=0.4), part("b", 1)], 500)
    many = fit([part("a", 50, share=0.4), part("b", 300, words=9), part("c", 300)], 500)

    assert few[0].text == many[0].text


def test_parts_without_a_share_take_turns() -> None:
    shown = names([part("a", 100), part("b", 100), part("c", 1)], 300)

    assert shown["c"] == 1
    assert abs(shown["a"] - shown["b"]) <= 1


def test_a_later_turn_takes_what_is_left() -> None:
    shown = names([part("a", 2), part("b", 100, turn=2)], 300)

    assert shown["a"] == 2
    assert shown["b"] > 2


def test_a_part_that_does_not_fit_with_one_line_is_not_named() -> None:
    assert names([part("a", 5)], cost("a") + 3) == {}


def test_a_title_says_how_many_of_how_many_are_shown() -> None:
    [some] = fit([part("a", 100, words=1)], 100)
    [all_of_it] = fit([part("a", 1)], 100)

    assert some.text.startswith(f"a ({len(some.lines)} of 100):\n- 01_Shallow/a 0.md: word")
    assert all_of_it.text.startswith("a:\n")


def test_lines_are_chosen_in_their_order_and_shown_by_another() -> None:
    lines = [Line("best.md", order=(2,)), Line("second.md", order=(1,)), Line("third.md" * 99, order=(0,))]
    [shown] = fit([Part(name="a", title="a", lines=lines, count=3)], 60)

    assert [line.argument for line in shown.lines] == ["second.md", "best.md"]


def test_no_more_lines_are_made_than_are_asked_for() -> None:
    made: list[int] = []

    def lines() -> Iterator[Line]:
        for number in range(1000):
            made.append(number)
            yield Line(f"{number}.md")

    [shown] = fit([Part(name="a", title="a", lines=lines(), count=1000)], 50)

    assert len(made) == len(shown.lines) + 1


@pytest.mark.parametrize("most", [0, 1, 50, 200, 600, 2_000])
@given(counts=st.lists(st.integers(0, 30), min_size=1, max_size=6), words=st.integers(0, 40))
def test_the_text_costs_no_more_than_the_budget(most: int, counts: list[int], words: int) -> None:
    parts = [
        part(f"part {number}", count, share=0.4 if number == 0 else 0.0, turn=1 + number % 2, words=words)
        for number, count in enumerate(counts)
    ]

    text = "\n".join(one.text for one in fit(parts, most))

    assert budget.tokens(text) <= most
