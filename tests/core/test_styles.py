"""The program's items in `cssclasses` follow the note; whatever else stands in the list stays as it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.frontmatter import read
from vault_palace.core.memory import rev
from vault_palace.core.model import STYLES, Value
from vault_palace.core.policy import Policy
from vault_palace.core.styles import fitted, is_ours, out_of_step, styled, wanted

OURS = re.compile(r"""\s*- +["']?(palace-[a-z0-9-]+)["']?\s*(?:#.*)?""")


def note(classes: str, rest: str = "layer: shallow\ndensity: 0.4\nstatus: active\n") -> str:
    return f"---\n{rest}{classes}tags:\n  - palace-shallow\n---\n\n- palace-bedrock\n"


# -- what a note is styled as -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ()),
        ({"layer": "shallow", "density": 0.2, "status": "active"}, ("palace-shallow", "palace-density-2")),
        ({"layer": "Bedrock", "status": "crystallized"}, ("palace-bedrock",)),
        ({"layer": "shallow", "status": "archived", "density": 0}, ("palace-archive", "palace-density-0")),
        ({"layer": "sediment", "status": "decaying"}, ("palace-sediment", "palace-decaying")),
        ({"layer": "shallow", "status": "proposed"}, ("palace-shallow", "palace-proposed")),
        ({"pinned": True}, ("palace-pinned",)),
        ({"pinned": "no"}, ()),
        ({"superseded_by": "[[Newer]]"}, ("palace-superseded",)),
        ({"superseded_by": None}, ()),
        ({"layer": "lava", "density": "high"}, ()),
    ],
)
def test_each_property_has_its_item(values: dict[str, Value], expected: tuple[str, ...]) -> None:
    assert wanted(values) == expected


@pytest.mark.parametrize(
    ("density", "level"),
    [(0, 0), (0.04, 0), (0.05, 1), (0.149, 1), (0.15, 2), (0.55, 6), (0.949, 9), (0.95, 10), (1, 10)],
)
def test_a_density_is_rounded_to_tenths(density: float, level: int) -> None:
    assert wanted({"density": density}) == (f"palace-density-{level}",)


@pytest.mark.parametrize("density", [True, -0.1, 1.1, "0.5", None])
def test_a_density_that_counts_for_nothing_has_no_item(density: Value) -> None:
    assert wanted({"density": density}) == ()


def test_no_item_is_made_that_is_not_taken_out_again() -> None:
    made = {
        item
        for layer in ("shallow", "sediment", "bedrock")
        for status in ("active", "decaying", "archived", "proposed")
        for tenth in range(11)
        for item in wanted(
            {"layer": layer, "status": status, "density": tenth / 10, "pinned": True, "superseded_by": "x"}
        )
    }

    assert made == STYLES


# -- the list -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "ours", "expected"),
    [
        ([], ["palace-shallow"], ["palace-shallow"]),
        (["wide", 7], ["palace-shallow"], ["wide", 7, "palace-shallow"]),
        (["palace-shallow", "wide"], ["palace-sediment"], ["palace-sediment", "wide"]),
        (["palace-density-2", "a", "palace-density-3"], ["palace-density-4"], ["palace-density-4", "a"]),
        (["palace-pinned", "a", "palace-pinned"], ["palace-pinned"], ["palace-pinned", "a"]),
        (["palace-decaying", "a"], [], ["a"]),
        (["palace-wide", "palace-density-11"], [], ["palace-wide", "palace-density-11"]),
        (["palace-shallow"], ["palace-archive"], ["palace-archive"]),
    ],
)
def test_the_list_holds_what_it_should(items: list[Value], ours: list[str], expected: list[Value]) -> None:
    assert fitted(items, ours) == expected


ITEMS = st.lists(st.sampled_from([*sorted(STYLES), "wide", "palace-wide", 3, None]), max_size=8)


@given(ITEMS, st.lists(st.sampled_from(sorted(STYLES)), max_size=4, unique=True))
def test_all_other_items_keep_their_order(items: list[Value], ours: list[str]) -> None:
    made = fitted(items, ours)

    assert [one for one in made if one not in STYLES] == [one for one in items if one not in STYLES]
    assert sorted(str(one) for one in made if one in STYLES) == sorted(ours)


# -- the text -----------------------------------------------------------------------------------------------


def test_a_note_without_the_property_gets_it() -> None:
    text = "---\nlayer: shallow\ndensity: 0.4\n---\nbody\n"

    made = styled(text, True)

    added = "cssclasses:\n  - palace-shallow\n  - palace-density-4\n"
    assert made == f"---\nlayer: shallow\ndensity: 0.4\n{added}---\nbody\n"


@pytest.mark.parametrize(
    ("before", "on", "after"),
    [
        ("cssclasses:\n", True, "cssclasses:\n  - palace-shallow\n  - palace-density-4\n"),
        ("cssclasses: []\n", True, "cssclasses:\n  - palace-shallow\n  - palace-density-4\n"),
        (
            "cssclasses: # mine\n- wide   # why\n# next\n- 'a b'\n",
            True,
            "cssclasses: # mine\n- wide   # why\n# next\n- 'a b'\n- palace-shallow\n- palace-density-4\n",
        ),
        (
            "cssclasses:\n  - palace-density-9 # old\n  - wide\n",
            True,
            "cssclasses:\n  # old\n  - palace-density-4\n  - wide\n  - palace-shallow\n",
        ),
        ("cssclasses:\n  - palace-shallow\n  - palace-density-4\n", False, ""),
        ("cssclasses:\n  - wide\n  - palace-shallow\n", False, "cssclasses:\n  - wide\n"),
        ("cssclasses: # mine\n  - palace-shallow\n", False, "cssclasses: # mine\n"),
        ("cssclasses:\n  - palace-shallow # mine\n", False, "cssclasses:\n  # mine\n"),
        ('cssclasses:\n  - "palace-shallow"\n  - wide\n', False, "cssclasses:\n  - wide\n"),
    ],
)
def test_only_the_lines_of_its_items_change(before: str, on: bool, after: str) -> None:
    assert styled(note(before), on) == note(after)


@pytest.mark.parametrize(
    "classes",
    [
        "cssclasses: [wide]\n",
        "cssclasses: [palace-shallow, wide]\n",
        "cssclasses: wide\n",
        "cssclasses: &c\n  - wide\n",
        "cssclasses:\n  - &c wide\nother: *c\n",
        "cssclasses: {wide: 1}\n",
        "? cssclasses\n: - wide\n",
        "cssclasses:\n  - wide\n broken: [\n",
    ],
)
@pytest.mark.parametrize("on", [True, False])
def test_a_form_that_is_a_persons_own_is_left(classes: str, on: bool) -> None:
    assert styled(note(classes), on) == note(classes)


def test_a_note_without_a_header_gets_none() -> None:
    assert styled("body\n", True) == "body\n"


def test_a_text_that_is_only_spoken_of_is_left() -> None:
    text = "---\nlayer: shallow\n---\n- palace-shallow\n"

    assert styled(text, False) == text


HEADS = ["cssclasses:", "cssclasses: # head", "cssclasses:   "]
LINES = [
    "- wide",
    "- 'single'   # why",
    '- "double \\u263a"',
    "- 012",
    "- 1.50",
    "- 1_000",
    "- no",
    "-",
    "- # later",
    "- 2026-11-30",
    "# a comment",
    "",
    "- palace-shallow",
    "- palace-density-7",
    "- 'palace-pinned'",
    '- "palace-decaying"   # how sad',
    "- palace-wide",
    "- |-\n      block\n      text",
    "- x: 1\n      y: 2",
]


@given(
    head=st.sampled_from(HEADS),
    lines=st.lists(st.sampled_from(LINES), max_size=9),
    indent=st.sampled_from(["  ", "    "]),
    eol=st.sampled_from(["\n", "\r\n"]),
    density=st.sampled_from([0, 0.31, 1]),
    status=st.sampled_from(["active", "decaying", "archived"]),
    on=st.booleans(),
)
def test_every_line_of_the_person_stays(
    head: str, lines: list[str], indent: str, eol: str, density: float, status: str, on: bool
) -> None:
    listed = "".join(f"{indent}{line}\n" if line else "\n" for line in lines)
    properties = f"layer: shallow\ndensity: {density}\nstatus: {status}\n"
    text = note(f"{head}\n{listed}", properties).replace("\n", eol)

    made = styled(text, on)

    assert styled(made, on) == made
    header = read(made)
    if made != text:
        classes = header.values.get("cssclasses") or []
        assert isinstance(classes, list)
        assert {str(one) for one in classes if is_ours(one)} == (set(wanted(header.values)) if on else set())
    assert _persons(made) == _persons(text)
    assert _comments(made) == _comments(text)
    assert rev(header, Policy()) == rev(read(text), Policy())


def _persons(text: str) -> list[str]:
    """The lines that are no items of the program's, without the property's own, blank ones and comments."""
    lines = text.splitlines(keepends=True)
    ours = [
        line
        for line in lines
        if (met := OURS.fullmatch(line.rstrip())) and met[1] in STYLES and line[0] == " "
    ]
    return [
        line
        for line in lines
        if line not in ours and line.strip() and not line.lstrip().startswith(("#", "cssclasses"))
    ]


def _comments(text: str) -> list[str]:
    return re.findall(r"(?<=\s)# .*", text)


def test_a_property_that_is_in_step_is_not_out_of_step() -> None:
    values: dict[str, Value] = {"layer": "shallow", "cssclasses": ["wide", "palace-shallow"]}

    assert (out_of_step(values, True), out_of_step(values, False)) == (False, True)
