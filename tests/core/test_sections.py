"""Parts of a note: its outline with sizes, sections by every name, and any note read to its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core import budget
from vault_palace.core.errors import InvalidArguments, NotFound
from vault_palace.core.sections import Entry, count, headings, part
from vault_palace.core.sections import outline as sized


def outline(text: str) -> list[str]:
    return [entry.name for entry in sized(text)]


def read_part(text: str, wanted: str) -> str:
    return part(text, wanted).text


NOTE = """\
Before any heading.

# Apollo

Intro.

## Goals

One.

### Later

Two.

## Risks

```sh
# not a heading
```

Setext
------

Three.

# Borealis

## Goals

Four.

> ## Quoted
"""


def test_an_outline_lists_headings_with_paths_where_titles_repeat() -> None:
    names = outline(NOTE)

    assert names == ["Apollo", "Apollo > Goals", "Later", "Risks", "Setext", "Borealis", "Borealis > Goals"]


@pytest.mark.parametrize(
    ("heading", "first", "last"),
    [
        ("Apollo", "# Apollo", "Three."),
        ("Apollo/Goals", "## Goals", "Two."),
        ("Apollo > Goals", "## Goals", "Two."),
        ("Goals #1", "## Goals", "Two."),
        ("Goals #2", "## Goals", "> ## Quoted"),
        ("Risks (17)", "## Risks", "```"),
        ("borealis>goals", "## Goals", "> ## Quoted"),
        ("Later", "### Later", "Two."),
        ("Goals/Later", "### Later", "Two."),
        ("Risks", "## Risks", "```"),
        ("## Risks", "## Risks", "```"),
        ("risks", "## Risks", "```"),
        ("apollo/goals", "## Goals", "Two."),
        ("Setext", "Setext", "Three."),
        ("Borealis/Goals", "## Goals", "> ## Quoted"),
    ],
)
def test_a_section_reaches_from_its_heading_to_the_next_that_is_not_below(
    heading: str, first: str, last: str
) -> None:
    lines = read_part(NOTE, heading).strip().splitlines()

    assert (lines[0], lines[-1]) == (first, last)


@pytest.mark.parametrize("heading", ["not a heading", "Quoted", "# Risks", "Borealis/Risks", "Goal"])
def test_a_missing_section_is_answered_with_the_outline(heading: str) -> None:
    with pytest.raises(NotFound) as refused:
        read_part(NOTE, heading)

    assert refused.value.facts["outline"] == outline(NOTE)


def test_an_ambiguous_section_is_refused_with_the_candidates() -> None:
    with pytest.raises(InvalidArguments) as refused:
        read_part(NOTE, "Goals")

    assert refused.value.facts["candidates"] == ["Apollo > Goals (line 7)", "Borealis > Goals (line 28)"]


def test_the_exact_title_wins_over_another_case() -> None:
    text = "# goals\n\na\n\n# Goals\n\nb\n"

    found = read_part(text, "Goals")

    assert found == "# Goals\n\nb\n"


def test_a_title_with_a_slash_is_found_as_it_stands() -> None:
    text = "# Input/Output\n\na\n\n# Input\n\n## Output\n\nb\n"

    found = read_part(text, "Input/Output")

    assert found == "# Input/Output\n\na\n\n"


def test_windows_line_ends_are_kept() -> None:
    text = "# A\r\n\r\na\r\n\r\n# B\r\n\r\nb\r\n"

    found = read_part(text, "A")

    assert found == "# A\r\n\r\na\r\n\r\n"


def test_unusual_line_separators_do_not_shift_a_read_part() -> None:
    text = "a\u2028b\x0bc\n\n# A\n\nx\u2028y\n\n# B\n"

    found = read_part(text, "A")

    assert found == "# A\n\nx\u2028y\n\n"


@given(
    st.lists(st.sampled_from(["# A\n", "## B\n", "text\n", "\n", "```\n", "# C\r\n", "- # D\n"]), max_size=12)
)
def test_every_heading_of_the_outline_is_known(parts: list[str]) -> None:
    text = "".join(parts)
    answers = []

    for name in outline(text):
        try:
            answers.append(read_part(text, name))
        except InvalidArguments as refused:
            answers.append(str(refused))

    assert all(answers)


def test_an_outline_tells_what_each_section_costs_with_what_lies_below_it() -> None:
    text = "intro\n\n# A\n\none two\n\n## B\n\nthree four five\n\n# C\n"

    found = {entry.name: entry.tokens for entry in sized(text)}

    assert found["A"] >= found["B"] >= budget.tokens("three four five")
    assert abs(found["A"] - budget.tokens(part(text, "A").text)) <= 2
    assert str(Entry("A > B", 2, 31)) == "A > B (31)"


def test_an_outline_of_many_headings_keeps_the_upper_ones() -> None:
    text = "".join(f"# Top {top}\n\n" + "## Below\n\nx\n\n" * 30 for top in range(20))

    assert outline(text) == [f"Top {top}" for top in range(20)]


def test_an_outline_below_a_lone_title_keeps_what_the_note_begins_and_ends_with() -> None:
    days = "".join(f"## Day {day}\n\nx\n\n" for day in range(60))
    text = f"# Log\n\n{days}## Decisions\n\n### Queue\n\nKafka\n"

    found = outline(text)

    assert len(found) == 40
    assert found[:3] == ["Log", "Day 0", "Day 1"]
    assert found[-2:] == ["Day 59", "Decisions"]
    assert count(text) == 63


@pytest.mark.parametrize("wanted", ["from 3", "From 3", " from  3 "])
def test_a_text_is_read_from_a_character_on(wanted: str) -> None:
    found = part("0123456", wanted)

    assert (found.name, found.start, found.text) == ("", 3, "3456")


def test_a_section_is_read_from_a_character_on() -> None:
    found = part("x\n\n# A\n\nbody\n\n# B\n", "A > from 4")

    assert (found.name, found.start, found.text) == ("A", 4, "\nbody\n\n")


def test_beyond_the_end_there_is_nothing() -> None:
    assert part("0123", "from 999").text == ""


def test_a_heading_that_reads_like_a_place_is_a_heading() -> None:
    assert part("# from 3\n\nx\n\n# B\n", "from 3").text == "# from 3\n\nx\n\n"


LINES = st.sampled_from(
    ["# A\n", "## B\n", "## B\n", "# A > B\n", "text\n", "\n", "### from 2\n", "# A #2\n", "##\n"]
)


@given(st.lists(LINES, max_size=14))
def test_every_name_of_an_outline_means_its_own_section(lines: list[str]) -> None:
    text = "".join(lines)
    titled = [heading for heading in headings(text) if heading.title]

    found = [part(text, name) for name in outline(text)]

    assert [one.text for one in found] == [text[heading.start : heading.end] for heading in titled]
    assert [part(text, str(entry)).text for entry in sized(text)] == [one.text for one in found]


@pytest.mark.parametrize("name", ["", "Huge"])
@given(st.text(max_size=400), st.integers(min_value=8, max_value=60))
def test_any_text_is_read_to_its_end_piece_by_piece(name: str, body: str, most: int) -> None:
    text = f"# Huge\n\n{body}" if name else body
    read, wanted = [], name
    for _ in range(2_000):
        found = part(text, wanted) if wanted else part(text, "from 0")
        shown, more = budget.cut(found.text, most)
        read.append(shown)
        if not more:
            break
        assert shown, "a piece was empty"
        wanted = found.onward(len(shown))

    assert "".join("".join(read).split()) == "".join((part(text, name).text if name else text).split())
