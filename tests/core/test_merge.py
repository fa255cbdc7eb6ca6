"""Bodies merged by lines, properties by rule (SPEC §6.4, FS-14)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core import frontmatter, merge
from vault_palace.core.frontmatter import DELETE
from vault_palace.core.model import Layer, Memory
from vault_palace.core.policy import Policy

BASE = "# Plan\n\nfirst\n\nsecond\n\nthird\n"

# base, ours, theirs, and what comes of it
CLEAN = (
    pytest.param(BASE, BASE, BASE, BASE, id="nobody changed it"),
    pytest.param(BASE, BASE.replace("first", "FIRST"), BASE, BASE.replace("first", "FIRST"), id="ours"),
    pytest.param(BASE, BASE, BASE.replace("third", "THIRD"), BASE.replace("third", "THIRD"), id="theirs"),
    pytest.param(
        BASE,
        BASE.replace("first", "FIRST"),
        BASE.replace("third", "THIRD"),
        BASE.replace("first", "FIRST").replace("third", "THIRD"),
        id="both, apart",
    ),
    pytest.param(BASE, BASE + "\nours\n", BASE + "\ntheirs\n", BASE + "\nours\n\ntheirs\n", id="both append"),
    pytest.param(BASE, BASE.replace("second\n\n", ""), BASE, BASE.replace("second\n\n", ""), id="deletion"),
    pytest.param(None, BASE, BASE, BASE, id="no base, equal"),
    pytest.param(None, BASE, BASE + "more\n", BASE + "more\n", id="no base, theirs holds ours"),
    pytest.param(None, BASE + "more\n", BASE, BASE + "more\n", id="no base, ours holds theirs"),
    pytest.param(None, "", BASE, BASE, id="ours is empty"),
)


@pytest.mark.parametrize(("base", "ours", "theirs", "wanted"), CLEAN)
def test_what_does_not_clash_is_merged(base: str | None, ours: str, theirs: str, wanted: str) -> None:
    merged = merge.merge_bodies(base, ours, theirs)

    assert merged == merge.Merged(wanted, clean=True)


@pytest.mark.parametrize("base", [BASE, None])
def test_one_line_changed_by_both_is_left_to_a_person(base: str | None) -> None:
    ours, theirs = BASE.replace("second", "two"), BASE.replace("second", "zwei")

    merged = merge.merge_bodies(base, ours, theirs, our_name="a.md", their_name="b.md")

    assert not merged.clean
    assert merge.holds_markers(merged.text, ours, theirs)
    assert {"two", "zwei", "<<<<<<< a.md", ">>>>>>> b.md"} <= set(merged.text.splitlines())


@pytest.mark.parametrize(
    ("text", "sides", "holds"),
    [
        ("a\n<<<<<<< x\n", ("a\n",), True),
        ("a\n=======\nb\n", ("a\nb\n",), True),
        ("a\r\n>>>>>>> x\r\n", (), True),
        ("Title\n=======\n", ("Title\n=======\n",), False),
        ("a <<<<<<< b\n", (), False),
    ],
)
def test_markers_are_told_from_a_note_s_own_lines(text: str, sides: tuple[str, ...], holds: bool) -> None:
    assert merge.holds_markers(text, *sides) is holds


LINES = st.lists(st.sampled_from(["", "a", "b", "c", "- x", "## H", "ünï", "=======", "a "]), max_size=8)


def body(lines: list[str], eol: str, final: bool) -> str:
    return eol.join(lines) + (eol if final and lines else "")


@given(LINES, LINES, LINES)
def test_a_clean_merge_holds_every_line_that_either_side_added(
    base: list[str], ours: list[str], theirs: list[str]
) -> None:
    merged = merge.merge_bodies(*(body(lines, "\n", True) for lines in (base, ours, theirs)))

    if merged.clean:
        for side in (ours, theirs):
            added = Counter(side) - Counter(base)
            assert added.keys() - {""} <= set(merged.text.split("\n"))


@given(LINES, LINES, LINES)
def test_a_merge_that_is_not_clean_still_holds_every_line_of_both(
    base: list[str], ours: list[str], theirs: list[str]
) -> None:
    merged = merge.merge_bodies(*(body(lines, "\n", True) for lines in (base, ours, theirs)))

    if not merged.clean:
        added = (Counter(ours) - Counter(base)) | (Counter(theirs) - Counter(base))
        assert added.keys() - {""} <= set(merged.text.split("\n"))


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_who_alone_changed_the_text_gets_it_as_it_is(
    base: list[str], changed: list[str], eol: str, final: bool
) -> None:
    old, new = body(base, eol, final), body(changed, eol, final)

    ours = merge.merge_bodies(old, new, old)
    theirs = merge.merge_bodies(old, old, new)

    assert ours.clean
    assert theirs.clean
    assert merge.same_lines(ours.text, new)
    assert merge.same_lines(theirs.text, new)


@given(LINES, LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_line_ends_and_the_final_newline_stay_those_of_the_main_note(
    base: list[str], ours: list[str], theirs: list[str], eol: str, final: bool
) -> None:
    main = body([*ours, "last"], eol, final)

    merged = merge.merge_bodies(body(base, "\n", True), main, body([*theirs, "end"], "\n", True))

    if merged.text:
        ends = merged.text.count("\r\n") if main.count("\r\n") * 2 > main.count("\n") else 0
        assert merged.text.count("\n") == (ends or merged.text.count("\n"))
        assert ("\r\n" in merged.text) <= ("\r\n" in main)
        assert merged.text.endswith("\n") == final


# -- properties ---------------------------------------------------------------------------------------------


def header(text: str) -> frontmatter.Header:
    return frontmatter.read(f"---\n{text}---\n")


# base, main, copy: the changes that main gets, and how many words are told
PROPERTIES = (
    pytest.param(None, "a: 1\n", "a: 1\nb: 2\n", {"b": 2}, 0, id="new in the copy"),
    pytest.param(None, "a: 1\nb: 2\n", "a: 1\n", {}, 0, id="new in main"),
    pytest.param(None, "a: 1\n", "a: 2\n", {}, 1, id="both, no base"),
    pytest.param("a: 1\n", "a: 1\n", "a: 2\n", {"a": 2}, 0, id="copy changed it"),
    pytest.param("a: 1\n", "a: 3\n", "a: 1\n", {}, 0, id="main changed it"),
    pytest.param("a: 1\n", "a: 3\n", "a: 2\n", {}, 1, id="both changed it"),
    pytest.param("a: 1\n", "a: 2\n", "a: 2\n", {}, 0, id="both alike"),
    pytest.param("a: 1\n", "a: 1\n", "b: 1\n", {"a": DELETE, "b": 1}, 0, id="copy took it out"),
    pytest.param("a: 1\n", "a: 2\n", "", {}, 1, id="taken out and changed"),
    pytest.param("a: 1\n", "a: '1'\n", "a: 1\n", {}, 0, id="main made it a text"),
    pytest.param(
        None, "tags: [x, y]\n", "tags: [Y, z]\n", {"tags": ["x", "y", "z"]}, 0, id="tags are united"
    ),
    pytest.param(None, "Tags: x\n", "tags: [z]\n", {"Tags": ["x", "z"]}, 0, id="tags in other spelling"),
    pytest.param(None, "", "aliases:\n  - One\n", {"aliases": ["One"]}, 0, id="aliases of the copy"),
    pytest.param(
        None,
        'supersedes: ["[[A]]"]\n',
        'supersedes: ["[[B]]", "[[A]]"]\n',
        {"supersedes": ["[[A]]", "[[B]]"]},
        0,
        id="supersedes",
    ),
    pytest.param("density: 0.2\n", "density: 0.2\n", "density: 0.9\n", {"density": 0.9}, 0, id="rated there"),
    pytest.param("density: 0.2\n", "density: 0.9\n", "density: 0.2\n", {}, 0, id="rated here"),
    pytest.param(
        "density: 0.2\n",
        "density: 0.5\nrated_on: 2031-01-01\n",
        "density: 0.9\nrated_on: 2031-01-02\n",
        {"density": 0.9, "rated_on": "2031-01-02"},
        1,
        id="rated there later",
    ),
    pytest.param(
        None,
        "density: 0.5\nrated_on: 2031-01-02\n",
        "density: 0.9\nrated_on: 2031-01-01\n",
        {},
        1,
        id="rated here later",
    ),
    pytest.param(None, "density: 0.5\n", "density: 0.9\n", {}, 1, id="rated, nobody knows when"),
    pytest.param(None, "", "density: 0.9\n", {"density": 0.9}, 0, id="rated only there"),
    pytest.param(
        None,
        "density: 0.5\nrated_on: 2031-01-01\n",
        "density: 0.5\nrated_on: 2031-01-09\n",
        {"rated_on": "2031-01-09"},
        0,
        id="rated alike",
    ),
    pytest.param(
        None,
        "id: a\nlayer: shallow\nbacklinks: 1\ndecays_on: 2031-01-01\n",
        "id: a\nlayer: bedrock\nbacklinks: 9\ndecays_on: 2032-01-01\nlayer_since: 2031-01-01\n",
        {},
        0,
        id="where it lies is main's",
    ),
    pytest.param(None, "streak: 1\n", "streak: 4\nmissed: 2\n", {}, 0, id="use is merged elsewhere"),
)


@pytest.mark.parametrize(("base", "main", "copy", "changes", "told"), PROPERTIES)
def test_properties_are_merged_by_rule(
    base: str | None, main: str, copy: str, changes: dict[str, object], told: int
) -> None:
    merged = merge.merge_properties(
        None if base is None else header(base), header(main), header(copy), policy=Policy()
    )

    assert merged.changes == changes
    assert len(merged.told) == told


def test_a_value_that_loses_is_told_in_words() -> None:
    merged = merge.merge_properties(
        header("owner: Ann\n"), header("owner: Bo\n"), header("owner: Cy\n"), policy=Policy()
    )

    assert merged.told == ("owner was also 'Cy'",)


def memory(*, streak: int | None, backlinks: int = 0, day: int = 1, missed: int = 0) -> Memory:
    at = datetime(2031, 1, day, 12, tzinfo=UTC).replace(tzinfo=None)
    return Memory(
        path="01_Shallow/x.md",
        layer=Layer.SHALLOW,
        created=at,
        last_touched=at,
        streak=streak,
        backlinks=backlinks,
        missed=missed,
    )


@pytest.mark.parametrize(
    ("main", "copy", "streak"),
    [
        (memory(streak=2), memory(streak=5), 5),
        (memory(streak=5), memory(streak=2), 5),
        (memory(streak=4, backlinks=4), memory(streak=2), 6),  # no use, 4 links; 2 uses
        (memory(streak=3), memory(streak=7, backlinks=9), 3),  # 7 less 5 links is 2 uses
        (memory(streak=-2), memory(streak=-1), -1),
    ],
)
def test_the_larger_use_counts_with_the_links_of_the_main_note(
    main: Memory, copy: Memory, streak: int
) -> None:
    assert merge.merged_use(main, copy, touched=True)["streak"] == streak


def test_the_later_touch_brings_its_missed_lifetimes() -> None:
    main, copy = memory(streak=0, day=1, missed=2), memory(streak=0, day=9, missed=1)

    fields = merge.merged_use(main, copy, touched=True)

    assert fields["last_touched"] == copy.last_touched
    assert fields["missed"] == 1


@pytest.mark.parametrize(("main_day", "copy_day", "touched"), [(9, 1, True), (5, 5, True), (1, 9, False)])
def test_an_earlier_or_unreadable_touch_changes_nothing(main_day: int, copy_day: int, touched: bool) -> None:
    main, copy = memory(streak=0, day=main_day), memory(streak=0, day=copy_day)

    fields = merge.merged_use(main, copy, touched=touched)

    assert "last_touched" not in fields


def test_a_streak_that_cannot_be_read_is_left_as_it_is() -> None:
    assert "streak" not in merge.merged_use(memory(streak=None), memory(streak=3), touched=True)
