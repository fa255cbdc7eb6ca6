"""The list of links in the index note: what is added and removed, and what is never touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.errors import InvalidArguments, MalformedNote
from vault_palace.core.mapnote import BEGIN, END, add_link, block_lines, remove_link, with_block

BLOCK = "%% palace:begin %%\n## Links\n\n- [[Generated]]\n%% palace:end %%\n"

ADDED = {
    "an empty note": ("", "## Links\n\n- [[X]]\n"),
    "no heading": ("# Map\n\ntext\n", "# Map\n\ntext\n\n## Links\n\n- [[X]]\n"),
    "no heading, no last line end": ("# Map", "# Map\n\n## Links\n\n- [[X]]\n"),
    "an empty list": ("# Map\n\n## Links\n", "# Map\n\n## Links\n\n- [[X]]\n"),
    "an empty list with a blank": ("# Map\n\n## Links\n\n", "# Map\n\n## Links\n\n- [[X]]\n"),
    "nothing behind the heading": ("# Map\n\n## Links", "# Map\n\n## Links\n\n- [[X]]\n"),
    "a list": ("## Links\n\n- [[A]]\n- [[B]]\n", "## Links\n\n- [[A]]\n- [[B]]\n- [[X]]\n"),
    "a list without a last line end": ("## Links\n\n- [[A]]", "## Links\n\n- [[A]]\n- [[X]]\n"),
    "a paragraph": ("## Links\n\nMine:\n", "## Links\n\nMine:\n\n- [[X]]\n"),
    "a section below": (
        "## Links\n\n- [[A]]\n\n## More\n\n- [[X]]\n",
        "## Links\n\n- [[A]]\n- [[X]]\n\n## More\n\n- [[X]]\n",
    ),
    "a section right below": ("## Links\n## More\n", "## Links\n\n- [[X]]\n\n## More\n"),
    "the generated block below": (
        f"## Links\n\n- [[A]]\n\n{BLOCK}",
        f"## Links\n\n- [[A]]\n- [[X]]\n\n{BLOCK}",
    ),
    "only the generated block": (f"# Map\n\n{BLOCK}", f"# Map\n\n{BLOCK}\n## Links\n\n- [[X]]\n"),
    "a heading in code": (
        "```\n## Links\n```\n",
        "```\n## Links\n```\n\n## Links\n\n- [[X]]\n",
    ),
    "code without an end": ("text\n\n```\n- [[A]]\n", "text\n\n\n## Links\n\n- [[X]]\n\n```\n- [[A]]\n"),
    "code without an end in the list": ("## Links\n\n```\nx\n", "## Links\n\n- [[X]]\n\n```\nx\n"),
    "a block without an end": (
        "## Links\n\n- [[A]]\n%% palace:begin %%\n- [[B]]\n",
        "## Links\n\n- [[A]]\n- [[X]]\n\n%% palace:begin %%\n- [[B]]\n",
    ),
    "code at the end": ("## Links\n\n```\nx\n```\n", "## Links\n\n```\nx\n```\n\n- [[X]]\n"),
    "a heading of another level": ("# links #\n\n- [[A]]\n", "# links #\n\n- [[A]]\n- [[X]]\n"),
    "Windows line ends": ("## Links\r\n\r\n- [[A]]\r\n", "## Links\r\n\r\n- [[A]]\r\n- [[X]]\r\n"),
}


@pytest.mark.parametrize(("before", "after"), ADDED.values(), ids=ADDED.keys())
def test_a_link_is_added_at_the_end_of_the_list(before: str, after: str) -> None:
    result = add_link(before, "[[X]]")

    assert result == (after, True)


@pytest.mark.parametrize("before", [before for before, _ in ADDED.values()], ids=ADDED.keys())
def test_a_link_is_added_once(before: str) -> None:
    once, _ = add_link(before, "[[X]]")

    twice = add_link(once, "[[X]]")

    assert twice == (once, False)


def test_a_link_in_the_generated_block_does_not_count_as_added() -> None:
    _, changed = add_link(f"{BLOCK}\n## Links\n", "[[Generated]]")

    assert changed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## Links\n\n- [[A]]\n- [[X]]\n- [[B]]\n", "## Links\n\n- [[A]]\n- [[B]]\n"),
        ("## Links\n\n- [[X]]\n- [[X]]", "## Links\n\n"),
        ("## Links\n\n* [[X]]  \n", "## Links\n\n"),
        ("## Links\r\n- [[X]]\r\n", "## Links\r\n"),
        # As Sediment Palace appends it: at the very end.
        ("## Links\n\n## More\n\ntext\n- [[X]]\n", "## Links\n\n## More\n\ntext\n"),
        # In the list and elsewhere: the list's alone.
        ("## Links\n\n- [[X]]\n\n## More\n\n- [[X]]\n", "## Links\n\n\n## More\n\n- [[X]]\n"),
    ],
)
def test_a_link_is_removed_from_the_list(before: str, after: str) -> None:
    result = remove_link(before, "[[X]]")

    assert result == (after, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Map\n\n- [[X]]\n",
        "- [[X]]\n\n## Links\n\n- [[A]]\n",
        "## Links\n\nsee - [[X]]\n- [[X]] and more\n",
        "## Links\n\n```\n- [[X]]\n```\n",
        "%% palace:begin %%\n- [[X]]\n%% palace:end %%\n\n## Links\n",
        "## Links\n\n%% palace:begin %%\n- [[X]]\n%% palace:end %%\n",
    ],
)
def test_no_other_line_is_removed(text: str) -> None:
    result = remove_link(text, "[[X]]")

    assert result == (text, False)


@pytest.mark.parametrize("change", [add_link, remove_link])
@pytest.mark.parametrize("link", ["", "  ", "a\nb", "a\rb", "%% palace:end %%"])
def test_a_link_that_is_not_one_line_is_refused(change: type(add_link), link: str) -> None:  # type: ignore[valid-type]
    with pytest.raises(InvalidArguments):
        change("## Links\n", link)


PIECES = [
    "## Links\n",
    "- [[A]]\n",
    "- [[X]]\n",
    "text\n",
    "\n",
    "```\n",
    BLOCK,
    "# More\n",
    "- [[B]]\r\n",
    "end",
]


@given(st.lists(st.sampled_from(PIECES), max_size=10))
def test_adding_and_removing_touches_no_other_text(pieces: list[str]) -> None:
    text = "".join(pieces)

    added, _ = add_link(text, "[[New]]")
    removed, _ = remove_link(added, "[[New]]")

    kept = removed.replace("\r\n", "\n").split()
    assert [word for word in kept if word not in {"##", "Links"}] == [
        word for word in text.split() if word not in {"##", "Links"}
    ]


@given(st.lists(st.sampled_from(PIECES), max_size=10))
def test_the_generated_block_stays_as_it_is(pieces: list[str]) -> None:
    text = "".join(pieces)

    added, _ = add_link(text, "[[Generated]]")

    # Glued to the end of another line, it is no block but text.
    assert f"\n{added}".count(f"\n{BLOCK}") == f"\n{text}".count(f"\n{BLOCK}")


# -- the generated block ------------------------------------------------------------------------------------

NEW = "![[PALACE_MAP.svg]]\n\n| a |\n| --- |"
MADE = f"{BEGIN}\n\n{NEW}\n\n{END}\n"

PLACED = {
    "an empty note": ("", MADE),
    "only a byte order mark": ("\ufeff", f"\ufeff{MADE}"),
    "a heading": ("# Map\n", f"# Map\n\n{MADE}"),
    "a heading without a line end": ("# Map", f"# Map\n\n{MADE}"),
    "a heading behind a byte order mark": ("\ufeff# Map\n", f"\ufeff# Map\n\n{MADE}"),
    "an underlined heading": ("My\nmap\n===\nText\n", f"My\nmap\n===\nText\n\n{MADE}"),
    "Sediment Palace's map": (
        "# PALACE MAP\n\n## Links\n- [[alpha]]\n",
        f"# PALACE MAP\n\n{MADE}\n## Links\n- [[alpha]]\n",
    ),
    "an opening": ("# Map\n\nMine,\nall.\n\nMore.\n", f"# Map\n\nMine,\nall.\n\n{MADE}\nMore.\n"),
    "an opening without a line end": ("# Map\n\nMine", f"# Map\n\nMine\n\n{MADE}"),
    "a list for an opening": ("# Map\n\n- a\n\n- b\n", f"# Map\n\n{MADE}\n- a\n\n- b\n"),
    "numbers for an opening": ("# Map\n1. a\n", f"# Map\n\n{MADE}\n1. a\n"),
    "a table for an opening": ("# Map\n\na | b\n- | -\n", f"# Map\n\n{MADE}\na | b\n- | -\n"),
    "a comment begun in the opening": ("# Map\na %%\n\nb %%\n", f"# Map\n\n{MADE}\na %%\n\nb %%\n"),
    "no heading": ("My notes\n", f"{MADE}\nMy notes\n"),
    "a heading in code": ("```\n# no\n```\n", f"{MADE}\n```\n# no\n```\n"),
    "a heading in a comment": ("%%\n# no\n%%\n", f"{MADE}\n%%\n# no\n%%\n"),
    "a heading in HTML": ("<!--\n# no\n-->\n", f"{MADE}\n<!--\n# no\n-->\n"),
    "properties": ("---\na: 1\n---\ntext\n", f"---\na: 1\n---\n\n{MADE}\ntext\n"),
    "a marker in a property": (
        f"---\na: |\n  {BEGIN}\n---\n# Map\n",
        f"---\na: |\n  {BEGIN}\n---\n# Map\n\n{MADE}",
    ),
    "markers in code": (
        f"# Map\n\n```\n{BEGIN}\n{END}\n```\n",
        f"# Map\n\n{MADE}\n```\n{BEGIN}\n{END}\n```\n",
    ),
    "markers in indented code": (
        f"# Map\n\n    {BEGIN}\n    {END}\n",
        f"# Map\n\n{MADE}\n    {BEGIN}\n    {END}\n",
    ),
    "markers within a line": (
        f"# Map\n\n- Never touch {BEGIN} or {END}\n",
        f"# Map\n\n{MADE}\n- Never touch {BEGIN} or {END}\n",
    ),
    "an old block": (f"# Map\n\n{BEGIN}\nold\n{END}\nmine\n", f"# Map\n\n{MADE}mine\n"),
    "an empty block": (f"{BEGIN}\n{END}\n", MADE),
    "an old block with code left open": (f"{BEGIN}\n```\n{END}\n", MADE),
    "a block at the end of the file": (f"{BEGIN}\n{END}", MADE.rstrip("\n")),
    "markers with blanks around": (f"  {BEGIN} \nold\n {END}  \n", f"  {BEGIN} \n\n{NEW}\n\n {END}  \n"),
    "a block behind a byte order mark": (f"\ufeff{BEGIN}\nold\n{END}\n", f"\ufeff{MADE}"),
}


@pytest.mark.parametrize(("before", "after"), PLACED.values(), ids=PLACED.keys())
def test_the_block_takes_its_place(before: str, after: str) -> None:
    result = with_block(before, NEW)

    assert result == after


@pytest.mark.parametrize(("before", "after"), PLACED.values(), ids=PLACED.keys())
def test_windows_line_ends_stay(before: str, after: str) -> None:
    result = with_block(before.replace("\n", "\r\n"), NEW)

    single_line = "\n" not in before
    assert result == (after if single_line else after.replace("\n", "\r\n"))


@pytest.mark.parametrize("before", [before for before, _ in PLACED.values()], ids=PLACED.keys())
def test_placing_the_same_block_again_changes_nothing(before: str) -> None:
    once = with_block(before, NEW)

    twice = with_block(once, NEW)

    assert twice == once


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{BEGIN}\n", 1),
        (f"# Map\n{END}\n", 2),
        (f"{END}\n{BEGIN}\n", 2),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", 3),
        (f"{BEGIN}\n{END}\n{END}\n", 3),
        (f"{BEGIN}\n{END}\n\n{BEGIN}\n{END}\n", 4),
        (f"{BEGIN}\nold\n```\n{BEGIN}\n", 4),
        (f"{BEGIN}\r\nold\r\n", 1),
        (f"---\na: 1\n---\n{END}\n", 4),
        (f"```\n{BEGIN}\n```\n{END}\n", 4),
    ],
)
def test_markers_that_are_no_pair_are_refused_with_their_line(text: str, line: int) -> None:
    with pytest.raises(MalformedNote) as refusal:
        with_block(text, NEW)

    assert refusal.value.facts["line"] == line


@pytest.mark.parametrize("block", [BEGIN, f"a\n  {END} \nb", f"a\r{END}"])
def test_a_block_that_holds_a_marker_is_a_mistake(block: str) -> None:
    with pytest.raises(ValueError, match="marker"):
        with_block("# Map\n", block)


@pytest.mark.parametrize("before", [before for before, _ in PLACED.values()], ids=PLACED.keys())
def test_a_link_added_beside_the_block_survives_the_next_block(before: str) -> None:
    added, _ = add_link(with_block(before, "old"), "[[Mine]]")

    after = with_block(added, NEW)

    assert "- [[Mine]]" in after
    assert remove_link(after, "[[Mine]]")[1]


TEXTS = st.lists(
    st.sampled_from(
        [
            *PIECES,
            *(f"{BEGIN}\n", f"{END}\n", "~~~\n", "---\n", "a: 1\n", "%%\n", "    code\n", "1. one\n"),
            *("\ufeff", "\r", "# Title\n", "Title\n===\n", "> quote\n", "a | b\n", "$$\n", "<!--\n", "  "),
        ]
    )
    | st.text(max_size=8),
    max_size=12,
).map("".join)
BLOCKS = st.lists(st.sampled_from(["a", "", "| a |", "```", "# Links", "\r"]), max_size=5).map("\n".join)


@given(TEXTS, BLOCKS)
def test_all_text_outside_the_block_stays_as_it_is(text: str, block: str) -> None:
    try:
        result = with_block(text, block)
    except MalformedNote:
        return

    begin, end = _region(result)
    if begin == end:
        pytest.fail("the markers are missing")
    before, after = result[:begin], result[end:]
    if _has_block(text):
        old_begin, old_end = _region(text)
        assert (before, after) == (text[:old_begin], text[old_end:])
    else:
        above = before.removesuffix(before[before.rindex(BEGIN) :])
        below = after[after.index(END) + len(END) :]
        assert _without_ends(above + below) == _without_ends(text)
        assert any(
            above.startswith(text[:at])
            and below.endswith(text[at:])
            and not (above[at:] + below[: len(below) - len(text) + at]).strip("\r\n")
            for at in range(len(text) + 1)
        )


def _without_ends(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")


def _has_block(text: str) -> bool:
    """Whether placing a block replaces one: no marker line is new then."""
    return with_block(text, "x").count(BEGIN) == text.count(BEGIN)


def _region(text: str) -> tuple[int, int]:
    """From behind the line that begins the block to the line that ends it, seen by what changes with it."""
    one, other = with_block(text, "1"), with_block(text, "2")
    at = next(place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
    begin = one.rindex(BEGIN, 0, at) + len(BEGIN)
    behind = len(one) - one.index(END, at)
    return begin, len(text) - behind


@given(TEXTS, BLOCKS)
def test_a_block_is_placed_for_good(text: str, block: str) -> None:
    try:
        once = with_block(text, block)
    except MalformedNote:
        return

    twice = with_block(once, block)

    assert twice == once


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("# Map\n", []),
        (f"# Map\n\n{BEGIN}\none\ntwo\n{END}\nmine\n", [4, 5]),
        (f"---\na: b\n---\n{BEGIN}\r\none\r\n{END}\r\n", [5]),
        (f"{BEGIN}\n{END}\n", []),
        (f"{BEGIN}\none\n", []),
        (f"```\n{BEGIN}\none\n{END}\n```\n", []),
    ],
)
def test_the_lines_of_the_block_are_those_between_its_markers(text: str, lines: list[int]) -> None:
    assert list(block_lines(text)) == lines
