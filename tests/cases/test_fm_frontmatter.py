"""The frontmatter cases (FM), and what text alone decides of RC-09 and FS-12, on the functions of the core.

Search, listings, journal and the answers of tools are proved where the whole product runs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest

from vault_palace.core.errors import MalformedNote
from vault_palace.core.frontmatter import (
    Change,
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


def note(header: str, body: str = "body\n") -> str:
    return f"---\n{header}---\n{body}"


def changed_lines(before: str, after: str) -> list[str]:
    """The lines of *after* that *before* does not hold at that place, for edits of one-line values."""
    old, new = before.split("\n"), after.split("\n")
    assert len(old) == len(new)
    return [line for was, line in zip(old, new, strict=True) if was != line]


UNREADABLE = [
    # case, text, line of the fault
    (
        "FM-01",
        note("title: Retro: week 12 (draft: second)\ntags: [team]\n", "The zebra budget was cut.\n"),
        2,
    ),
    ("FM-02", note("name: plan\nsummary: cost: 40 (was: 55)\n", "# Plan\n"), 3),
    ("FM-04 star", note("title: *Draft* ideas\n"), 2),
    ("FM-04 backtick", note("title: `config` notes\n"), 2),
    ("FM-04 at", note("owner: @maria\n"), 2),
    ("FM-04 percent", note("title: %done so far\n"), 2),
    ("FM-04 tab", note("x: 1\nmeta:\n\tsub: 1\n"), 4),
    ("FM-26 A", note("- one\n- two\n"), 2),
    ("FM-26 B", note("Dear diary\n"), 2),
    ("FM-26 C", note("42\n"), 2),
    ("FM-28 text after", note("parent: [[Blue Whale]] and more\n"), 2),
    (
        "RC-09",
        note(
            "title: T\n<<<<<<< HEAD\nstatus: open\n=======\nstatus: done\n>>>>>>> other\n",
            "body\n[[After]]\n",
        ),
        3,
    ),
]


@pytest.mark.parametrize(("case", "text", "line"), UNREADABLE, ids=[case for case, _, _ in UNREADABLE])
def test_an_unreadable_header_is_flagged_with_its_line(case: str, text: str, line: int) -> None:
    header = read(text)

    assert header.problem is not None
    assert (header.problem.line, header.values) == (line, {})
    assert header.present
    assert display_title(header, "retro") == "retro"


@pytest.mark.parametrize(("case", "text", "line"), UNREADABLE, ids=[case for case, _, _ in UNREADABLE])
def test_an_unreadable_header_is_refused_each_time_it_is_asked_to_change(
    case: str, text: str, line: int
) -> None:
    for _ in range(10):
        with pytest.raises(MalformedNote) as caught:
            patch(text, {"status": "active"})

        assert caught.value.facts["line"] == line


@pytest.mark.parametrize(("case", "text", "line"), UNREADABLE, ids=[case for case, _, _ in UNREADABLE])
def test_a_note_with_an_unreadable_header_can_still_grow(case: str, text: str, line: int) -> None:
    grown = append_body(text, "more\n")

    assert grown.startswith(text)
    assert read(grown).body == read(text).body + "\nmore\n"


def test_rc_09_a_conflict_is_told_from_other_faults() -> None:
    problems = {case: read(text).problem for case, text, _ in UNREADABLE}

    assert [case for case, problem in problems.items() if problem is not None and problem.conflict] == [
        "RC-09"
    ]


def test_rc_09_a_note_that_documents_markers_in_code_is_not_blocked() -> None:
    text = note("title: T\n", "```\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> other\n```\n[[After]]\n")

    patched = patch(text, {"title": "U"})

    assert changed_lines(text, patched) == ["title: U"]


@pytest.mark.parametrize(
    "title", ["Retro: week 12", "*Draft* ideas", "`config` notes", "@maria", "%done so far", "[[Blue Whale]]"]
)
def test_fm_01_fm_04_a_title_that_yaml_would_trip_over_reads_back_as_given(title: str) -> None:
    header = read(compose({"title": title}, "x"))

    assert header.values == {"title": title}


@pytest.mark.parametrize("tag_list", [["svc", "db"], ["svc"]])
def test_fm_05_tags_are_stored_as_a_list(tag_list: list[str]) -> None:
    # Whether a JSON text is taken for a list is decided where arguments are parsed.
    text = compose({"tags": list(tag_list)}, "x")

    assert tags(read(text)) == tag_list
    assert "tags:\n  - svc\n" in text


@pytest.mark.parametrize(
    ("header", "tag_list", "alias_list"),
    [
        ("tags:\n", [], []),
        ("tags:\n  -\n  - # later\n  - real\n", ["real"], []),
        ("aliases: [null, Zed]\n", [], ["Zed"]),
    ],
)
def test_fm_07_empty_entries_are_no_tags(header: str, tag_list: list[str], alias_list: list[str]) -> None:
    text = note(header)

    found = read(text)

    assert (tags(found), aliases(found)) == (tag_list, alias_list)
    assert patch(text, {"status": "active"}) == note(f"{header}status: active\n")


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("title: 2023-11-05", "2023-11-05"),
        ("title: 1984", "1984"),
        ("title: true", "true"),
        ("title: 3.10", "3.10"),
        ("title: null", "stem"),
        ("title:", "stem"),
    ],
)
def test_fm_08_a_title_is_shown_as_it_was_typed(line: str, title: str) -> None:
    text = note(f"{line}\nx: 1\n")

    header = read(text)

    assert display_title(header, "stem") == title
    assert shown(header)["title"] == (None if title == "stem" else title)
    assert changed_lines(text, patch(text, {"x": 2})) == ["x: 2"]


def test_fm_10_words_of_older_yaml_stay_text() -> None:
    text = note("lang: no\nswitch: on\ntags: [no, off, y]\n")

    patched = patch(text, {"reviewed": "2025-01-01"})

    header = read(patched)
    assert patched == note("lang: no\nswitch: on\ntags: [no, off, y]\nreviewed: 2025-01-01\n")
    assert (header.values["lang"], header.values["switch"], tags(header)) == ("no", "on", ["no", "off", "y"])


def test_fm_11_leading_zeros_are_kept_and_shown() -> None:
    lines = "zip: 01234\nmode: 0644\nref: 0421345\n"

    patched = patch(note(lines), {"tags": ["new"]})

    assert patched == note(f"{lines}tags:\n  - new\n")
    view = shown(read(patched))
    assert {key: view[key] for key in ("zip", "mode", "ref")} == {
        "zip": "01234",
        "mode": "0644",
        "ref": "0421345",
    }


def test_fm_13_clock_times_stay_text() -> None:
    text = note("opens: 10:00\ncloses: 21:45\nearly: 09:30\ndur: 1:30:00\nsign: blue\n")

    patched = patch(text, {"sign": "red"})

    assert changed_lines(text, patched) == ["sign: red"]
    assert shown(read(patched)) == {
        "opens": "10:00",
        "closes": "21:45",
        "early": "09:30",
        "dur": "1:30:00",
        "sign": "red",
    }


def test_fm_14_the_digits_of_a_long_number_survive_a_reader_of_doubles() -> None:
    text = note("msg_id: 9007199254740993\nchat: 2305843009213693953\n")

    answer = json.loads(json.dumps(shown(read(text))), parse_int=float)

    assert answer == {"msg_id": "9007199254740993", "chat": "2305843009213693953"}
    assert patch(text, {"x": 1}) == note("msg_id: 9007199254740993\nchat: 2305843009213693953\nx: 1\n")


def test_fm_16_comments_stay() -> None:
    text = note("# keep this order\nstatus: open   # open|closed\n#legacy: 1\nprio: 2\n")

    patched = patch(text, {"prio": 3})

    assert changed_lines(text, patched) == ["prio: 3"]
    assert changed_lines(patched, patch(patched, {"status": "active"})) == ["status: active   # open|closed"]


def test_fm_17_a_new_key_comes_last() -> None:
    patched = patch(note("zeta: 1\ntitle: T\nalpha: [3, 1, 2]\n"), {"seen": True})

    assert patched == note("zeta: 1\ntitle: T\nalpha: [3, 1, 2]\nseen: true\n")


@pytest.mark.parametrize(
    ("data", "patched", "title"),
    [
        (
            b"---\r\ntitle: Win\r\ntags: [x]\r\n---\r\nbody\r\n",
            b"---\r\ntitle: Win\r\ntags: [x]\r\nk: 1\r\n---\r\nbody\r\n",
            "Win",
        ),
        (b"---\ntitle: Eof\n---", b"---\ntitle: Eof\nk: 1\n---", "Eof"),
        (b"---\r\ntitle: Mixed\n---\r\nbody", b"---\r\ntitle: Mixed\nk: 1\n---\r\nbody", "Mixed"),
    ],
)
def test_fm_19_windows_line_ends_hide_no_header(data: bytes, patched: bytes, title: str) -> None:
    text = data.decode()

    assert read(text).values["title"] == title
    assert patch(text, {"k": 1}).encode() == patched


def test_fm_20_a_byte_order_mark_stays_in_front() -> None:
    text = b"\xef\xbb\xbf---\ntitle: Bom\n---\n# H\n".decode()

    patched = patch(text, {"k": 1})

    assert patched.encode() == b"\xef\xbb\xbf---\ntitle: Bom\nk: 1\n---\n# H\n"
    assert (display_title(read(patched), "x"), read(patched).body) == ("Bom", "# H\n")


def test_fm_22_a_first_rule_that_never_closes_is_body() -> None:
    text = "---\n\nObserved: 14 swallows near the barn\n\nno further rule in this file\n"

    patched = patch(text, {"k": 1})

    assert (read(text).values, read(text).body) == ({}, text)
    assert (read(patched).values, read(patched).body) == ({"k": 1}, text)


def test_fm_23_dashes_inside_a_value_close_nothing() -> None:
    header = "summary: before --- after\nquote: |\n  line one\n  --- not a fence, indented\n  line three\n"

    found = read(note(header + "tags: [deep]\n", "body-word\n"))

    assert found.values == {
        "summary": "before --- after",
        "quote": "line one\n--- not a fence, indented\nline three\n",
        "tags": ["deep"],
    }
    assert found.body == "body-word\n"


@pytest.mark.parametrize(
    ("text", "patched"),
    [
        ("---\n---\nbody\n", "---\nk: 1\n---\nbody\n"),
        ("---\n\n---\nbody\n", "---\n\nk: 1\n---\nbody\n"),
        ("---\n# todo: fill\n---\nbody\n", "---\n# todo: fill\nk: 1\n---\nbody\n"),
        ("", "---\nk: 1\n---\n"),
        ("---\n", "---\nk: 1\n---\n---\n"),  # a rule, not a header: it stays in the body (FM-22)
    ],
)
def test_fm_25_an_empty_header_is_used_as_it_stands(text: str, patched: str) -> None:
    header = read(text)

    assert (header.usable, header.values, display_title(header, "name")) == (True, {}, "name")
    assert patch(text, {"k": 1}) == patched


def test_fm_28_unquoted_links_stay_as_typed() -> None:
    text = note("parent: [[Blue Whale]]\nalso: [[Smith, John]]\nn: 1\n")

    assert changed_lines(text, patch(text, {"n": 2})) == ["n: 2"]


def test_fm_28_a_link_that_the_product_writes_is_quoted() -> None:
    assert 'superseded_by: "[[Blue Whale]]"\n' in compose({"superseded_by": "[[Blue Whale]]"}, "x")


@pytest.mark.parametrize("text", ["one\u2028two", "one\u0085two", "one\x0ctwo", "one\x1dtwo", "one\u2029two"])
def test_fm_29_unusual_separators_split_nothing(text: str) -> None:
    written = compose({"s": text, "num": 1}, text)

    patched = patch(written, {"num": 2})

    assert changed_lines(written, patched) == ["num: 2"]
    assert (read(patched).values, read(patched).body) == ({"s": text, "num": 2}, text)
    assert written.count("\n") == 4


@pytest.mark.parametrize("text", ["one\u2028two", "one\u0085two", "one\x0ctwo", "one\x1dtwo", "one\u2029two"])
def test_fm_29_unusual_separators_that_a_person_pasted_are_kept(text: str) -> None:
    typed = note(f"s: {text}\nn: 1\n")

    assert read(typed).values == {"s": text, "n": 1}
    assert patch(typed, {"n": 2}) == note(f"s: {text}\nn: 2\n")


@pytest.fixture(params=["America/Los_Angeles", "Asia/Tokyo", "UTC"])
def machine_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    if hasattr(time, "tzset"):
        time.tzset()
    yield os.environ["TZ"]
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()


def test_fm_31_dates_stay_as_they_are_in_every_zone(machine_zone: str) -> None:
    lines = 'due: 2025-03-09\nat: 2025-03-09T23:30:00-05:00\nz: "2025-03-09T07:41:05.000Z"\n'

    patched = patch(note(lines), {"k": 1})

    assert patched == note(f"{lines}k: 1\n")
    assert shown(read(patched)) == {
        "due": "2025-03-09",
        "at": "2025-03-09T23:30:00-05:00",
        "z": "2025-03-09T07:41:05.000Z",
        "k": 1,
    }


def test_fm_32_a_new_body_does_not_reach_the_header() -> None:
    text = note("title: Night Shift\n", "The Night Shift begins at ten.\n")

    replaced = replace_body(text, read(text).body.replace("Night Shift", "Night: Shift"))

    assert replaced == note("title: Night Shift\n", "The Night: Shift begins at ten.\n")


def test_fm_34_types_in_are_types_in_the_file_and_types_out() -> None:
    changes: dict[str, Change] = {"n": 6, "flag": True, "list": ["b", "c"], "s": "6"}

    patched = patch(note("n: 1\nflag: false\nlist: [a]\n"), changes)

    assert patched == note('n: 6\nflag: true\nlist:\n  - b\n  - c\ns: "6"\n')
    assert shown(read(patched)) == changes


def test_fm_35_a_long_header_is_read_to_its_end() -> None:
    names = [f"alias {number:03} {'x' * 30}" for number in range(600)]
    text = note("aliases:\n" + "".join(f"  - {name}\n" for name in names) + "id: keep-me\n")

    patched = patch(text, {"k": 1})

    header = read(patched)
    assert patched == text.replace("id: keep-me\n", "id: keep-me\nk: 1\n")
    assert (header.values["id"], aliases(header)) == ("keep-me", names)


@pytest.mark.parametrize(
    ("lines", "value"),
    [("x: 1\n", None), ("type: null\n", None), ("type:\n", None), ("type: [a, b]\n", ["a", "b"])],
)
def test_fm_37_a_field_that_is_absent_or_null_is_nothing(lines: str, value: object) -> None:
    header = read(note(lines))

    assert header.usable
    assert header.values.get("type") == value


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\x00\x01", b"---\ntitle: Cr\xe8me\n---\n", "x".encode("utf-16")]
)
def test_fs_12_text_decoded_from_odd_bytes_is_read_without_a_crash(data: bytes) -> None:
    # Bytes that are not UTF-8 are refused where files are read; this is the second line of defence.
    text = data.decode("utf-8", errors="surrogateescape")

    header = read(text)

    assert text.endswith(header.body)
