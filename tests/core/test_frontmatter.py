"""Where a header begins and ends, what it says to tools, and how a body is replaced or grows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.errors import MalformedNote
from vault_palace.core.frontmatter import (
    aliases,
    append_body,
    compose,
    display_title,
    patch,
    read,
    replace_body,
    shown,
    tags,
)
from vault_palace.core.model import Value

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "oracle" / "obsidian-cache"

# Lines that a person's note may be made of, fences and near-fences among them.
lines = st.sampled_from(
    [
        "---",
        "--- ",
        "----",
        "--- x",
        "...",
        "",
        "a: 1",
        "b:",
        "  - x",
        "text",
        "# H",
        "<<<<<<< a",
        "=======",
        ">>>>>>> b",
    ]
)
notes = st.builds(
    lambda bom, parts, eol, end: bom + eol.join(parts) + end,
    st.sampled_from(["", "\ufeff"]),
    st.lists(lines, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)


@pytest.mark.parametrize(
    ("text", "values", "body", "body_line"),
    [
        ("---\na: 1\n---\nbody\n", {"a": 1}, "body\n", 4),
        ("---\r\na: 1\r\n---\r\nbody\r\n", {"a": 1}, "body\r\n", 4),
        ("---\r\na: 1\n---\r\nbody", {"a": 1}, "body", 4),
        ("---\na: 1\n---", {"a": 1}, "", 3),
        ("---\na: 1\n---\r", {"a": 1}, "", 3),
        ("\ufeff---\na: 1\n---\n# H\n", {"a": 1}, "# H\n", 4),
        ("--- \na: 1\n---\t \nbody", {"a": 1}, "body", 4),
        ("---\n---\nbody\n", {}, "body\n", 3),
        ("---\n\n---\nbody\n", {}, "body\n", 4),
        ("---\n# todo: fill\n---\nbody\n", {}, "body\n", 4),
        ("---\na: |\n  x\n  --- y\n---\n---\n", {"a": "x\n--- y\n"}, "---\n", 6),
        ("---\na: x --- y\n---\nb", {"a": "x --- y"}, "b", 4),
        (
            '---\n{\n  "tags": "journal",\n  "publish": false\n}\n---\n',
            {"tags": "journal", "publish": False},
            "",
            7,
        ),
        ("---\n\na: basic\n\n---\n\n", {"a": "basic"}, "\n", 6),
    ],
)
def test_a_header_is_what_stands_between_two_fences(
    text: str, values: dict[str, Value], body: str, body_line: int
) -> None:
    header = read(text)

    assert (header.present, header.usable, header.values) == (True, True, values)
    assert (header.body, header.body_line) == (body, body_line)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n",
        "----\na: 1\n----\n",
        " ---\na: 1\n---\n",
        "\n---\na: 1\n---\n",
        "--- a: 1\n---\n",
        "---\n\nno further rule in this file\n",
        "---\na: 1\n ---\n",
        "---\na: 1\n----\n",
        "---\na: 1\n--- x\n",
        "---\na: 1\n...\n",
        "text\n---\na: 1\n---\n",
    ],
)
def test_without_two_fences_all_is_body(text: str) -> None:
    header = read(text)

    assert (header.present, header.usable, header.values, header.body) == (False, True, {}, text)
    assert header.body_line == 1


def test_a_byte_order_mark_is_no_part_of_the_body() -> None:
    assert read("\ufeffhello").body == "hello"


@pytest.mark.parametrize(
    ("text", "line", "conflict"),
    [
        ("---\na: b: c\n---\n", 2, False),
        ("\ufeff---\r\nx: 1\r\na: [1\r\n---\r\n", 3, False),
        ("---\n- a\n---\n", 2, False),
        ("---\nx: 1\n<<<<<<< HEAD\nx: 2\n=======\nx: 3\n>>>>>>> other\n---\n", 3, True),
        ("---\r\nx: 1\r\n=======\r\n---\r\n", 3, True),
        ("---\nx: 1\n||||||| base\n---\n", 3, True),
        ("---\nx: 1\n>>>>>>> other\n---\n", 3, True),
        ("<<<<<<< HEAD\n---\nx: 1\n---\n=======\n---\nx: 2\n---\n>>>>>>> other\n", 1, True),
        ("---\rx: 1\r---\rbody", 1, False),
        ("---\n" + "# x\n" * 300_000 + "---\n", 1, False),
    ],
)
def test_a_header_that_cannot_be_used_is_a_problem_with_its_line(
    text: str, line: int, conflict: bool
) -> None:
    header = read(text)

    assert not header.usable
    assert header.problem is not None
    assert (header.problem.line, header.problem.conflict, header.values) == (line, conflict, {})


@pytest.mark.parametrize(
    "text", ["<<<<<<< HEAD\nx\n", "x\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> z\n", "<<<<<<<\n=======\n"]
)
def test_what_only_looks_like_merge_markers_is_text(text: str) -> None:
    assert read(text).usable


def test_the_problem_of_a_long_header_is_said_before_it_is_parsed() -> None:
    header = read("---\n" + "a: b: c\n" * 200_000 + "---\n")

    assert header.problem is not None
    assert "too long" in header.problem.message


def test_a_property_is_found_with_its_text_and_line() -> None:
    header = read("---\n# c\nzip: 01234\nq: 'no'\nl: [007, x, ~, [y]]\nn:\n---\n")

    assert header.sources == {"zip": "01234", "q": "no", "n": ""}
    assert header.lines == {"zip": 3, "q": 4, "l": 5, "n": 6}
    assert header.items == {"l": ("007", "x", None, None)}


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("zip: 01234", {"zip": "01234"}),
        ("big: 9007199254740993", {"big": "9007199254740993"}),
        ("v: 3.10", {"v": "3.10"}),
        ("v: 3.5", {"v": 3.5}),
        ("n: 6", {"n": 6}),
        ("n: .nan", {"n": ".nan"}),
        ("deep: {a: [007, 7]}", {"deep": {"a": ["007", 7]}}),
        ("density: 0.50", {"density": 0.5}),
        ("decay_days: 07", {"decay_days": 7}),
        ("streak: 9007199254740993", {"streak": "9007199254740993"}),
        ("density: .inf", {"density": ".inf"}),
        ("density: high", {"density": "high"}),
        ("title: 1984", {"title": "1984"}),
        ("title: True", {"title": "True"}),
        ("title:", {"title": None}),
        ("title: [a]", {"title": ["a"]}),
        ("tags: 1984", {"tags": ["1984"]}),
        ("tags: [007, '#a', ~]", {"tags": ["007", "a"]}),
        ("tags:", {"tags": []}),
        ("tags: a, b", {"tags": "a, b"}),
        ("aliases: Zed", {"aliases": ["Zed"]}),
        ("due: 2025-03-09", {"due": "2025-03-09"}),
        ("lang: no", {"lang": "no"}),
        ("flag: true", {"flag": True}),
    ],
)
def test_tools_are_shown_what_the_person_typed(line: str, answer: dict[str, object]) -> None:
    view = shown(read(f"---\n{line}\n---\n"))

    assert view == answer
    assert json.loads(json.dumps(view, allow_nan=False)) == answer


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("tags: [a, b]", ["a", "b"]),
        ("tags:\n  - a\n  - b/c", ["a", "b/c"]),
        ("tags:\n- a", ["a"]),
        ("tags: single", ["single"]),
        ("tags: '#single'", ["single"]),
        ("tags: a, b", []),
        ("tags: a b", []),
        ("tags:", []),
        ("tags: []", []),
        ("tags: [no, off, y]", ["no", "off", "y"]),
        ("tags: [1984, 1.50, true]", ["1984", "1.50", "true"]),
        ("tags:\n  -\n  - # later\n  - real", ["real"]),
        ("tags: [a, ' a ', '#a', '', '#']", ["a"]),
        ("tags: [machine learning]", ["machine learning"]),
        ("tags: [[a], {b: c}, d]", ["d"]),
        ("tags: {a: b}", []),
        ("Tags: [a]", ["a"]),
        ("tag: a", []),
        ("Tags: [a]\ntags: [b]", ["b"]),
        ("x: &t [a]\ntags: *t", ["a"]),
        ("x: 1", []),
    ],
)
def test_tags_are_those_that_obsidian_finds(lines: str, found: list[str]) -> None:
    assert tags(read(f"---\n{lines}\n---\n")) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("aliases: [null, Zed, 7]", ["Zed", "7"]),
        ("aliases: One, Two", ["One, Two"]),
        ("aliases:", []),
        ("x: 1", []),
    ],
)
def test_aliases_are_texts(line: str, found: list[str]) -> None:
    assert aliases(read(f"---\n{line}\n---\n")) == found


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("title: 2023-11-05", "2023-11-05"),
        ("title: 1984", "1984"),
        ("title: true", "true"),
        ("title: 3.10", "3.10"),
        ("title: null", "file"),
        ("title:", "file"),
        ("title: '  '", "file"),
        ("title: [a]", "file"),
        ('title: "a\\nb"', "a b"),
        ("x: 1", "file"),
    ],
)
def test_the_title_is_the_text_as_typed_or_the_files_name(line: str, title: str) -> None:
    assert display_title(read(f"---\n{line}\n---\n"), "file") == title


@given(notes)
def test_reading_cuts_a_note_without_loss(text: str) -> None:
    header = read(text)

    assert text.endswith(header.body)
    head = text.removesuffix(header.body) if header.body else text
    assert header.body_line == 1 + head.count("\n")
    assert header.present == head.removeprefix("\ufeff").startswith("---")


@given(st.text())
def test_reading_any_text_never_raises(text: str) -> None:
    assert read(f"---\n{text}\n---\n").present


@given(
    notes, st.sampled_from(["more", "- item", "---", "---\na: 1\n---\n", "\nmore\n", "a\n\nb\n", "======="])
)
def test_appending_only_adds(text: str, addition: str) -> None:
    before = read(text)

    grown = append_body(text, addition)

    after = read(grown)
    assert text.removeprefix("\ufeff") in grown
    assert grown.startswith("\ufeff") == text.startswith("\ufeff")
    assert grown.replace("\r\n", "\n").endswith(addition)
    assert after.values == before.values
    assert after.problem == before.problem


@given(notes, st.sampled_from(["", "new\n", "---\n", "---\na: 1\n---\nx", "---\nx: y: z\n---\n"]))
def test_a_replaced_body_leaves_the_header_alone(text: str, body: str) -> None:
    before = read(text)
    if before.problem is not None:
        with pytest.raises(MalformedNote):
            replace_body(text, body)
        return

    replaced = replace_body(text, body)

    after = read(replaced)
    assert after.values == before.values
    assert after.usable
    assert after.body.replace("\r\n", "\n") == body


@pytest.mark.parametrize(
    ("text", "addition", "grown"),
    [
        ("", "new", "new"),
        ("\ufeff", "new", "\ufeffnew"),
        ("old\n", "new\n", "old\n\nnew\n"),
        ("old", "new", "old\n\nnew"),
        ("old\n\n", "new", "old\n\nnew"),
        ("old\n", "\nnew", "old\n\nnew"),
        ("old\r\n", "a\nb\n", "old\r\n\r\na\r\nb\r\n"),
        ("old\n", "a\r\nb", "old\n\na\nb"),
        ("- one\n", "- two\n", "- one\n- two\n"),
        ("1. one", "2. two", "1. one\n2. two"),
        ("text\n", "- two", "text\n\n- two"),
        ("---\na: 1\n---", "new", "---\na: 1\n---\nnew"),
        ("---\na: 1\n---\n", "new", "---\na: 1\n---\nnew"),
        ("---\na: b: c\n---\nold\n", "new", "---\na: b: c\n---\nold\n\nnew"),
        ("---\n\nrule\n", "---\nx", "---\n---\n---\n\nrule\n\n---\nx"),
        ("old\n", "\ufeffnew", "old\n\nnew"),
        ("old", "", "old"),
    ],
)
def test_an_addition_is_a_paragraph_of_its_own(text: str, addition: str, grown: str) -> None:
    assert append_body(text, addition) == grown


@pytest.mark.parametrize(
    ("text", "body", "replaced"),
    [
        ("---\na: 1 # c\n---\nold", "new\n", "---\na: 1 # c\n---\nnew\n"),
        ("\ufeff---\r\na: 1\r\n---\r\nold", "a\nb", "\ufeff---\r\na: 1\r\n---\r\na\r\nb"),
        ("---\na: 1\n---", "new", "---\na: 1\n---\nnew"),
        ("---\na: 1\n---", "", "---\na: 1\n---"),
        ("old", "new\r\n", "new\r\n"),
        ("old\n", "---\na: 1\n---\n", "---\n---\n---\na: 1\n---\n"),
    ],
)
def test_a_body_is_replaced_behind_the_header(text: str, body: str, replaced: str) -> None:
    assert replace_body(text, body) == replaced


def test_a_new_note_is_header_and_body() -> None:
    text = compose(
        {"id": "mem_1", "tags": ["a", "no"], "density": 0.2, "created": "2026-11-30T12:00:00"}, "Hello\n"
    )

    assert (
        text
        == '---\nid: mem_1\ntags:\n  - a\n  - "no"\ndensity: 0.2\ncreated: 2026-11-30T12:00:00\n---\nHello\n'
    )


def test_a_new_note_has_the_line_ends_of_its_body() -> None:
    assert compose({"a": 1}, "x\r\n") == "---\r\na: 1\r\n---\r\nx\r\n"


@pytest.mark.parametrize("body", ["x", "", "---\n", "---\na: 1\n---\n", "\ufeffx"])
def test_a_new_note_without_properties_has_its_body_as_body(body: str) -> None:
    header = read(compose({}, body))

    assert (header.values, header.body) == ({}, body.removeprefix("\ufeff"))


@given(st.dictionaries(st.text(min_size=1, max_size=30), st.text(), max_size=4), st.text())
def test_a_new_note_reads_back_as_given(values: dict[str, Value], body: str) -> None:
    header = read(compose(values, body))

    assert (header.values, header.body) == (values, body.removeprefix("\ufeff"))


@pytest.mark.skipif(not ORACLE.is_dir(), reason="Obsidian's answers are not beside the checkout")
def test_properties_are_what_obsidian_reads() -> None:
    answers = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(ORACLE.glob("*.json"))]

    different = [
        answer["filePath"]
        for answer in answers
        if (header := read(answer["fileContents"])).values
        != (answer["cachedMetadata"].get("frontmatter") or {})
        or sorted(f"#{tag}" for tag in tags(header)) != sorted(answer["parseFrontMatterTags"] or [])
    ]

    assert len(answers) > 50
    assert different == []


@pytest.mark.skipif(not ORACLE.is_dir(), reason="Obsidian's answers are not beside the checkout")
def test_a_real_note_keeps_all_but_the_asked_lines() -> None:
    texts = [
        json.loads(path.read_text(encoding="utf-8"))["fileContents"] for path in sorted(ORACLE.glob("*.json"))
    ]
    plain = [text for text in texts if "\n{" not in text[:8]]

    for text in plain:
        patched = patch(text, {"density": 0.25})

        assert [line for line in patched.split("\n") if line not in ("density: 0.25", "---")] == [
            line for line in text.split("\n") if line != "---"
        ]
