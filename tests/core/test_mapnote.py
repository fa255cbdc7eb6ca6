"""The list of links in the index note: what is added and removed, and what is never touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.errors import InvalidArguments
from vault_palace.core.mapnote import add_link, remove_link

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

    assert added.count(BLOCK) == text.count(BLOCK)
