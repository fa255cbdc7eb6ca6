"""The block of the index note: what it shows, its bounds, and that no text of a note breaks out of it."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from vault_palace.core.content import inline_fields, unsafe
from vault_palace.core.links import find, scan
from vault_palace.core.mapnote import BEGIN, END, with_block
from vault_palace.core.palacemap import Facts, RoomRow, Row, Trouble, block

DAY = date(2026, 12, 1)
LAYERS = {"shallow": 24, "sediment": 100, "bedrock": 1_200}
ROW = Row(
    link="[[Kafka topics]]",
    layer="shallow",
    room="ideas",
    density=0.2,
    streak=-1,
    day=date(2026, 12, 8),
    why="a lifetime without use",
)
TROUBLE = Trouble(link="[[Kafka topics]]", line=3, code="bad_date", message="30 February is no day")
FULL = Facts(
    layers=LAYERS,
    archived=112,
    picture="PALACE_MAP.svg",
    decaying=(ROW,),
    decaying_count=1,
    rising=(replace(ROW, why="to Sediment"),),
    rising_count=1,
    strongest=(ROW,),
    newest=(ROW,),
    changed=(replace(ROW, why="renamed from 01_Shallow/old.md"),),
    changed_count=1,
    rooms=(RoomRow(layer="shallow", room="ideas", count=12, density=0.345),),
    room_count=1,
    orphans=(ROW,),
    orphan_count=1,
    unresolved=(Trouble(link="[[Kafka topics]]", line=4, code="", message="Gone"),),
    unresolved_count=1,
    conflicts=(Row(link="[[Plan.sync-conflict-20261201-120000-ABCDEFG]]", why="[[Plan]]"),),
    conflict_count=1,
    problems=(TROUBLE,),
    problem_count=1,
    waiting=(ROW,),
    waiting_count=31,
    brake="nobody touched any memory for 7 days",
    tomorrow=(ROW,),
    tomorrow_count=1,
    notes=("The disk of this vault is missing.",),
)
LISTS = [
    *("decaying", "rising", "strongest", "newest", "changed", "orphans", "conflicts", "waiting", "tomorrow"),
    *("rooms", "unresolved", "problems"),
]


def tables(text: str) -> list[list[str]]:
    """The cells of every row of every table, as a reader of Markdown sees them."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    rows: list[list[str]] = []
    for at, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        if token.type in ("td_open", "th_open"):
            rows[-1].append(tokens[at + 1].content)
    return rows


def shown_headings(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.split("\n") if line.startswith("#")]


# -- what is shown ------------------------------------------------------------------------------------------


def test_the_picture_comes_first() -> None:
    text = block(FULL)

    assert text.startswith("![[PALACE_MAP.svg]]\n\n")


@pytest.mark.parametrize("name", ["", "a]].svg", "../PALACE_MAP.svg", "PALACE_MAP.svg\n# x", "map.png"])
def test_only_the_name_of_a_picture_is_embedded(name: str) -> None:
    text = block(replace(FULL, picture=name))

    assert "![[" not in text


def test_the_counts_stand_in_one_sentence() -> None:
    text = block(FULL)

    assert (
        "**1,324 memories**: 24 in Shallow, 100 in Sediment, 1,200 in Bedrock. 112 more rest in the archive."
    ) in text.split("\n")


@pytest.mark.parametrize(
    ("layers", "archived", "sentence"),
    [
        ({"shallow": 1}, 0, "**1 memory**: 1 in Shallow, 0 in Sediment, 0 in Bedrock."),
        ({"shallow": 2}, 1, "0 in Bedrock. One more rests in the archive."),
        ({}, 0, "No memories yet."),
    ],
)
def test_the_sentence_of_counts_agrees_in_number(
    layers: dict[str, int], archived: int, sentence: str
) -> None:
    text = block(Facts(layers=layers, archived=archived))

    assert sentence in text


def test_every_list_has_its_section_in_order() -> None:
    text = block(FULL)

    assert shown_headings(text) == [
        "Let go by the next run",
        "Decays within 7 days",
        "Rises",
        "Held back",
        "Strongest",
        "Newest",
        "Rooms",
        "What people changed",
        "Orphans",
        "Unresolved links",
        "Conflict copies",
        "Problems",
    ]


@pytest.mark.parametrize(
    "row",
    [
        [
            "[[Kafka topics]]",
            "Shallow / ideas",
            "0.20",
            "-1",
            "2026-12-08",
            "a lifetime without use",
        ],
        ["[[Kafka topics]]", "Shallow / ideas", "0.20", "-1", "2026-12-08", "to Sediment"],
        ["[[Kafka topics]]", "2026-12-08", "renamed from 01_Shallow/old.md"],
        ["Shallow", "ideas", "12", "0.34"],
        ["[[Kafka topics]]", "`[[Gone]]`"],
        ["[[Plan.sync-conflict-20261201-120000-ABCDEFG]]", "[[Plan]]"],
        ["[[Kafka topics]]", "3", "`bad_date` 30 February is no day"],
    ],
)
def test_a_row_says_what_a_person_asks_for(row: list[str]) -> None:
    text = block(FULL)

    assert row in tables(text)


def test_a_quiet_palace_says_so_in_one_line() -> None:
    text = block(Facts(layers=LAYERS, horizon_days=1))

    assert text.split("\n\n")[1:] == ["Nothing decays within 1 day, and nothing rises."]


def test_an_empty_palace_is_welcomed_in_one_line() -> None:
    text = block(Facts(layers={}))

    assert (text.startswith("No memories yet."), text.count("\n")) == (True, 0)


def test_archives_that_wait_are_called_out_with_the_reason() -> None:
    text = block(FULL)

    assert (
        "> [!warning] 31 memories wait to be let go\n"
        "> Nobody touched any memory for 7 days. See [[#Held back]]."
    ) in text


def test_what_is_wrong_is_called_out_above_the_lists() -> None:
    text = block(FULL)

    assert text.index("> The disk of this vault is missing.") < text.index("\n## ")


@pytest.mark.parametrize("name", LISTS)
def test_an_empty_list_is_left_out(name: str) -> None:
    counts = {"orphans": "orphan_count", "rooms": "room_count", "conflicts": "conflict_count"}
    counts |= {"problems": "problem_count"}
    count = counts.get(name, f"{name}_count")
    changes: dict[str, Any] = {name: ()} | ({count: 0} if name not in ("strongest", "newest") else {})

    text = block(replace(FULL, **changes))

    assert len(shown_headings(text)) == len(shown_headings(block(FULL))) - 1


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("decaying", "[[About to decay]]"),
        ("rising", "[[About to rise]]"),
        ("problems", "`vault-palace check`"),
    ],
)
def test_what_a_list_leaves_out_is_counted_with_where_it_is(name: str, where: str) -> None:
    rows = getattr(FULL, name) * 40
    count = "problem_count" if name == "problems" else f"{name}_count"

    changes: dict[str, Any] = {name: rows, count: 1_250}
    text = block(replace(Facts(layers=LAYERS), **changes))

    more = [line for line in text.split("\n") if f" more: {where}" in line]
    shown = sum(1 for row in tables(text) if row[:1] == ["[[Kafka topics]]"])
    most = 20 if name == "problems" else 25 if name == "decaying" else 15
    assert len(more) == 1
    assert more[0].startswith(f"{1_250 - most:,} more")
    assert shown >= most


def test_a_missing_value_is_an_empty_cell() -> None:
    row = Row(link="[[A]]", layer="shallow", density=float("nan"))

    text = block(Facts(layers=LAYERS, strongest=(row,)))

    assert ["[[A]]", "Shallow", "", ""] in tables(text)


# -- links --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "cell"),
    [
        ("[[Plan]]", "[[Plan]]"),
        ("[[01_Shallow/a b/Plan|Plan]]", "[[01_Shallow/a b/Plan\\|Plan]]"),
        ("[[01_Shallow/Plan\\|Plan]]", "[[01_Shallow/Plan\\|Plan]]"),
        ("[[" + "long " * 20 + "name]]", "[[" + "long " * 20 + "name\\|" + ("long " * 12)[:59] + "…]]"),
        ("[[Kosten 5$]]", "Kosten 5\\$"),  # `$` may open a formula
        ("[[a%%b]]", "a% %b"),
        ("[[a`b|c`d]]", "c\\`d"),
        ("[[a[b]]]", "a\\[b\\]"),
        ("[[" + "é" * 250 + "]]", "é" * 59 + "…"),
        ("Deleted note", "Deleted note"),
        ("[[]]", ""),
        ("", ""),
    ],
)
def test_a_link_is_a_link_or_plain_text(link: str, cell: str) -> None:
    text = block(Facts(layers=LAYERS, newest=(Row(link=link),)))

    assert f"\n| {cell} |  |  |  |" in text


def test_a_link_in_a_table_leads_where_it_led() -> None:
    row = Row(link="[[02_Sediment/deep/Plan|The plan]]")

    text = block(Facts(layers=LAYERS, newest=(row,)))

    assert [(link.path, link.alias) for link in find(text)] == [("02_Sediment/deep/Plan", "The plan")]


@pytest.mark.parametrize(
    ("message", "cell"),
    [
        ("Gone", "`[[Gone]]`"),
        ("[[Gone]]", "`[[Gone]]`"),
        ("[[Gone|here]]", "`[[Gone|here]]`"),
        ("leads to [[Gone]], *twice*", "leads to `[[Gone]]`, \\*twice\\*"),
        ("a`b", "`[[a'b]]`"),
        ("$= dv.pages()", "`[[$= dv.pages()]]`"),
        ("", ""),
    ],
)
def test_an_unresolved_link_is_shown_but_is_none(message: str, cell: str) -> None:
    row = Trouble(link="[[A]]", line=1, code="", message=message)

    text = block(Facts(layers=LAYERS, unresolved=(row,)))

    assert ["[[A]]", cell] in tables(text)
    assert [link.path for link in find(text)] == ["A"]


def test_a_conflict_copy_stands_beside_its_original_with_both_links() -> None:
    text = block(replace(Facts(layers=LAYERS), conflicts=(Row(link="[[P 2]]", why="copy of [[x/P|P]]"),)))

    assert [link.path for link in find(text) if link.path] == ["P 2", "x/P"]


# -- text that comes from notes -----------------------------------------------------------------------------

HOSTILE = [
    "a | b",
    "a\n| b | c |",
    "a\r\n# heading",
    "%%",
    BEGIN,
    END,
    "-->",
    "<!--",
    "```",
    "~~~",
    "> quote",
    "<script>alert(1)</script>",
    "<img src=https://x.example/a.png>",
    "![a](https://x.example/a.png)",
    "![[Secret]]",
    "[[Secret]]",
    "[[Secret|a]]",
    "`$= dv.x()`",
    "<% tp.x %>",
    "density:: 1",
    "[layer:: bedrock]",
    "#tag",
    "$x$",
    "$$",
    "\\",
    "\\|",
    "`",
    "==a==",
    "^[note]",
    "obsidian://open?x",
    "\ud800",
    "\u2028# x",
    "\u202eabc",
    "\x00",
    "&lt;b&gt;",
    "[a](javascript:alert(1))",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_note_stays_text_in_its_cell(text: str) -> None:
    row = Row(link="[[A]]", layer=text, room=text, why=text)
    facts = Facts(
        layers=LAYERS,
        changed=(row,),
        decaying=(row,),
        brake=text,
        waiting=(row,),
        notes=(text,),
        problems=(Trouble(link="[[A]]", line=1, code=text, message=text),),
        unresolved=(Trouble(link="[[A]]", line=1, code=text, message=text),),
        rooms=(RoomRow(layer=text, room=text, count=1),),
    )

    made = block(facts)

    assert_harmless(made)
    assert {link.path for link in find(made)} <= {"A", ""}


def assert_harmless(made: str) -> None:
    found = scan(made)
    made.encode("utf-8")
    assert "%%" not in made
    assert "<!--" not in made.replace("\\<!--", "")
    assert (unsafe(made), inline_fields(made), found.tags) == ([], [], ())
    kinds = {token.type for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(made)}
    assert not kinds & {"html_block", "fence", "code_block", "bullet_list_open", "ordered_list_open", "hr"}
    for part in made.split("\n\n"):
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in part.split("\n")}
        assert len(bars) == 1 or not part.startswith("|")
    rules = [line for line in made.split("\n") if line.startswith(("| --- |", "| --: |"))]
    assert len(tables(made)) == sum(line.startswith("|") for line in made.split("\n")) - len(rules)
    assert not any(set(line) & set("\r\x0b\x0c\x85\u2028\u2029") for line in made.split("\n"))


WORDS = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=6), max_size=3).map("".join) | st.sampled_from(
    ["😀" * 900, "|" * 900, "`é" * 400]
)
LINKS = st.one_of(
    WORDS,
    WORDS.map(lambda words: f"[[{words}]]"),
    st.tuples(WORDS, WORDS).map(lambda pair: f"[[{pair[0]}|{pair[1]}]]"),
    st.sampled_from(["[[A]]", "[[b/A|A]]", "[[" + "x" * 380 + "]]"]),
)
NUMBERS = st.integers(-5, 500) | st.just(10**5000)
DENSITIES = st.none() | st.floats()
ROWS = st.builds(
    Row,
    link=LINKS,
    layer=st.sampled_from(["shallow", "bedrock"]) | WORDS,
    room=WORDS,
    density=DENSITIES,
    streak=st.none() | NUMBERS,
    day=st.none() | st.dates(),
    why=WORDS,
)
TROUBLES = st.builds(Trouble, link=LINKS, line=NUMBERS, code=WORDS, message=WORDS)
ROOMS = st.builds(RoomRow, layer=WORDS, room=WORDS, count=NUMBERS, density=DENSITIES)


@st.composite
def some_facts(draw: st.DrawFn) -> Facts:
    """Facts whose lists hold a few rows, or the same few over and over, as if somebody forgot to cut them."""
    times = draw(st.sampled_from([0, 1, 1, 30]))
    rows = tuple(draw(st.lists(ROWS, min_size=1, max_size=3))) * times
    troubles = tuple(draw(st.lists(TROUBLES, min_size=1, max_size=2))) * times
    rooms = (draw(ROOMS),) * times
    count = draw(NUMBERS)
    lists: dict[str, Any] = dict.fromkeys(LISTS, rows)
    lists |= {"unresolved": troubles, "problems": troubles, "rooms": rooms}
    lists |= {field.name: count for field in fields(Facts) if field.name.endswith("_count")}
    return Facts(
        layers=draw(st.dictionaries(st.sampled_from([*LAYERS, "other"]), NUMBERS)),
        archived=draw(NUMBERS),
        horizon_days=draw(NUMBERS),
        picture=draw(st.just("PALACE_MAP.svg") | WORDS),
        brake=draw(WORDS),
        notes=(draw(WORDS), draw(WORDS)) * times,
        **lists,
    )


FACTS = some_facts()


@given(FACTS)
def test_whatever_the_facts_are_the_block_is_harmless(facts: Facts) -> None:
    made = block(facts)

    assert_harmless(made)


@given(FACTS)
def test_whatever_the_facts_are_the_block_is_small(facts: Facts) -> None:
    made = block(facts)

    assert len(made.encode()) < 60 * 1024
    assert len(find(made)) < 280


def test_the_largest_rows_stay_within_the_bounds() -> None:
    widest = Row(
        link="[[" + "ж" * 198 + "]]",
        layer="😀" * 999,
        room="😀" * 999,
        density=-1e300,
        streak=10**5000,
        day=DAY,
        why="😀" * 999,
    )
    trouble = Trouble(link=widest.link, line=10**5000, code="x" * 99, message="😀" * 999)
    room = RoomRow(layer="😀" * 999, room="😀" * 999, count=10**5000)
    wide: dict[str, Any] = dict.fromkeys(LISTS, (widest,) * 300)
    wide |= {"unresolved": (trouble,) * 300, "problems": (trouble,) * 300, "rooms": (room,) * 300}
    wide |= {"conflicts": (replace(widest, why=widest.link),) * 300}

    made = block(Facts(layers=LAYERS, brake="😀" * 999, notes=("😀" * 999,) * 99, **wide))

    assert 30_000 < len(made.encode()) < 60 * 1024


def test_the_most_links_stay_within_the_bounds() -> None:
    row = Row(link="[[A]]", why="[[B]]")
    trouble = Trouble(link="[[A]]", line=1, code="", message="[[B]]")
    full: dict[str, Any] = dict.fromkeys(LISTS, (row,) * 300)
    full |= {"unresolved": (trouble,) * 300, "problems": (trouble,) * 300, "rooms": ()}

    made = block(Facts(layers=LAYERS, **full))

    assert 170 < len(find(made)) < 280


@given(FACTS)
def test_the_same_facts_give_the_same_block(facts: Facts) -> None:
    once = block(facts)

    again = block(replace(facts, layers=dict(reversed(list(facts.layers.items())))))

    assert again == once


@given(FACTS)
def test_every_block_fits_between_the_markers(facts: Facts) -> None:
    made = block(facts)

    note = with_block(f"# Map\n\n{BEGIN}\n{END}\nmine\n", made)

    assert note == f"# Map\n\n{BEGIN}\n\n{made}\n\n{END}\nmine\n"
    assert with_block(note, made) == note


@given(FACTS)
def test_a_link_of_the_block_is_one_that_a_row_had(facts: Facts) -> None:
    named = " ".join(
        [
            *(
                f"{row.link} {row.why}"
                for name in LISTS
                for row in getattr(facts, name)
                if isinstance(row, Row)
            ),
            *(row.link for row in (*facts.unresolved, *facts.problems)),
        ]
    )

    found = find(block(facts))

    ours = {"About to decay", "About to rise", "", facts.picture}
    assert [link.path for link in found if link.path not in ours and link.path not in named] == []
