"""The frontmatter cases (FM) on a real vault: what a person's odd header costs the note, which is little.

What text alone decides is proved in `tests/cases/test_fm_frontmatter.py`. Here it is the outcome that people
and agents meet: the note is still counted, found and read, the fault is told with path and line, what
belongs to the person is byte for byte theirs, and the other notes go on. Where a case speaks of setting any
property, `rate` does it: it writes our own properties into the same header.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.core import frontmatter
from vault_palace.core.errors import InvalidArguments, MalformedNote, VaultError
from vault_palace.core.model import OWNED
from vault_palace.services.palace import Palace
from vault_palace.storage.vault import Vault

Note = Callable[..., Path]

GOOD = "01_Shallow/good.md"


def header(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_bytes().decode("utf-8")).values)


def found(palace: Palace, query: str, **only: Any) -> list[str]:
    return [match["path"] for match in palace.search(query, limit=100, **only)["matches"]]


def faults(palace: Palace, path: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.code) for problem in palace.check() if problem.path == path]


def added(before: bytes, after: bytes) -> list[str]:
    """The lines that *after* has besides those of *before*, each of which must still be there, in order."""
    new: list[str] = []
    waiting = before.decode("utf-8-sig").split("\n")
    for line in after.decode("utf-8-sig").split("\n"):
        if waiting and line == waiting[0]:
            del waiting[0]
        else:
            new.append(line)
    assert waiting == [], "lines of the person are gone"
    return new


def only_ours(lines: list[str]) -> bool:
    """Whether these lines hold nothing but our own properties."""
    return all(line.rstrip("\r").partition(":")[0] in OWNED for line in lines)


# ── Headers that cannot be read ──────────────────────────────────────────────────────────────────────────

UNREADABLE = [
    ("FM-01", b"title: Retro: week 12 (draft: second)\ntags: [team]\n", 2),
    ("FM-02", b"name: plan\nsummary: cost: 40 (was: 55)\n", 3),
    ("FM-04-star", b"title: *Draft* ideas\n", 2),
    ("FM-04-backtick", b"title: `config` notes\n", 2),
    ("FM-04-at", b"owner: @maria\n", 2),
    ("FM-04-percent", b"title: %done so far\n", 2),
    ("FM-04-tab", b"meta:\n\tsub: 1\n", 3),
    ("FM-26-list", b"- one\n- two\n", 2),
    ("FM-26-sentence", b"Dear diary\n", 2),
    ("FM-26-number", b"42\n", 2),
    ("FM-28-text-behind", b"parent: [[Blue Whale]] and more\n", 2),
    ("two-documents", b"a: 1\n...\nb: 2\n", 4),
    ("key-twice", b"a: 1\nb: 2\na: 3\n", 4),
    ("endless-alias", b"a: &a [*a]\n", 2),
    ("half-a-pair", b'x: "\\ud83e"\n', 2),
    ("no-end-of-quote", b'a: "open\nb: 2\n', 2),
    ("nested-beyond-reason", b"x: " + b"[" * 3000 + b"]" * 3000 + b"\n", 2),
]
by_case = pytest.mark.parametrize(("case", "lines", "line"), UNREADABLE, ids=[row[0] for row in UNREADABLE])


def unreadable(note: Note, lines: bytes) -> Path:
    note(GOOD, "An ordinary zebra.\n")
    return note("01_Shallow/odd.md", b"---\n" + lines + b"---\n# Plan\nThe zebra budget was cut.\n")


@by_case
def test_a_note_with_an_unreadable_header_is_found(
    palace: Palace, note: Note, case: str, lines: bytes, line: int
) -> None:
    unreadable(note, lines)

    assert found(palace, "zebra budget")[0] == "01_Shallow/odd.md"
    assert found(palace, "odd") == ["01_Shallow/odd.md"]
    assert palace.read(title="odd")["content"] == "# Plan\nThe zebra budget was cut.\n"
    assert palace.status()["layers"]["shallow"] == 2


@by_case
def test_an_unreadable_header_is_told_with_its_line(
    palace: Palace, note: Note, case: str, lines: bytes, line: int
) -> None:
    unreadable(note, lines)

    assert faults(palace, "01_Shallow/odd.md") == [(line, "bad_header")]
    assert faults(palace, GOOD) == []
    assert f"line {line}" in palace.read(path="01_Shallow/odd.md")["warnings"][0]
    health = palace.health()
    assert (health["status"], health["fault_count"]) == ("ok", 0)
    assert "bad_header" in {problem["code"] for problem in health["problems"]}


def _rev(palace: Palace) -> str:
    return palace.read(path="01_Shallow/odd.md")["rev"]


WRITING: dict[str, Callable[[Palace], object]] = {
    "rate": lambda palace: palace.rate(path="01_Shallow/odd.md", density=0.9),
    "pin": lambda palace: palace.rate(path="01_Shallow/odd.md", pinned=True),
    "replace": lambda palace: palace.write("x", path="odd", mode="replace", if_rev=_rev(palace)),
    "tag": lambda palace: palace.write("x", path="odd", mode="append", tags=["x"]),
    "density": lambda palace: palace.write("x", path="odd", mode="append", density=0.9),
    "supersede": lambda palace: palace.write("x", title="Newer", supersedes="odd"),
    "supersede-and-append": lambda palace: palace.write(
        "x", path="good", mode="append", supersedes=["01_Shallow/odd.md"]
    ),
    "move": lambda palace: palace.move("01_Shallow/odd.md", "sediment"),
    "rename": lambda palace: palace.move("01_Shallow/odd.md", "shallow", new_path="even"),
    "purge": lambda palace: palace.purge("01_Shallow/odd.md", confirm=True),
}


@pytest.mark.parametrize("verb", WRITING)
@by_case
def test_whatever_writes_properties_refuses_with_the_note_and_line(
    palace: Palace, vault: Path, note: Note, verb: str, case: str, lines: bytes, line: int
) -> None:
    """FM-02: by every route; nothing is stacked on what cannot be read, and nothing else is written."""
    path = unreadable(note, lines)
    before = path.read_bytes()
    others = sorted(vault.rglob("*.md"))

    with pytest.raises(MalformedNote) as refused:
        WRITING[verb](palace)

    assert (refused.value.facts["path"], refused.value.facts["line"]) == ("01_Shallow/odd.md", line)
    assert "01_Shallow/odd.md" in str(refused.value)
    assert str(line) in str(refused.value)
    assert path.read_bytes() == before
    assert sorted(vault.rglob("*.md")) == others
    assert (vault / GOOD).read_bytes() == b"An ordinary zebra.\n"


@by_case
def test_ten_rounds_of_everything_leave_an_unreadable_note_as_it_is(
    palace: Palace, open_palace: OpenPalace, clock: Clock, note: Note, case: str, lines: bytes, line: int
) -> None:
    path = unreadable(note, lines)
    before = path.read_bytes()

    for _ in range(10):
        palace.read(path="01_Shallow/odd.md")
        answer = palace.metabolize(confirm=True, force=True)
        palace.reindex()
        with pytest.raises(MalformedNote):
            palace.rate(path="01_Shallow/odd.md", density=0.9)
        clock.turn(days=10)
    palace.close()
    open_palace().check()

    assert path.read_bytes() == before
    assert [skipped["path"] for skipped in answer["skipped"]] == ["01_Shallow/odd.md"]
    assert f"line {line}" in answer["skipped"][0]["reason"]


def test_other_notes_of_the_run_go_on_beside_an_unreadable_one_fm_02(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    for number in range(5):
        palace.write("x", title=f"a{number}", density=0.9)
        palace.write("x", title=f"z{number}")
    note("01_Shallow/m.md", "---\na: b: c\n---\n")
    clock.turn(days=8)

    answer = palace.metabolize(confirm=True, force=True)

    assert (answer["promoted_count"], answer["archived_count"]) == (5, 5)
    assert [skipped["path"] for skipped in answer["skipped"]] == ["01_Shallow/m.md"]


@by_case
def test_a_note_with_an_unreadable_header_can_still_grow(
    palace: Palace, note: Note, case: str, lines: bytes, line: int
) -> None:
    path = unreadable(note, lines)
    before = path.read_bytes()

    answer = palace.write("Later: it was raised.", path="odd", mode="append")

    assert path.read_bytes() == before + b"\nLater: it was raised."
    assert f"line {line}" in answer["warnings"][0]
    assert found(palace, "raised") == ["01_Shallow/odd.md"]


def test_a_mended_header_counts_from_the_next_look_on(palace: Palace, note: Note) -> None:
    unreadable(note, UNREADABLE[0][1])
    palace.check()
    note("01_Shallow/odd.md", '---\ntitle: "Retro: week 12"\ntags: [team]\n---\nzebra\n')

    assert palace.check() == []
    assert found(palace, "zebra", tags=["team"]) == ["01_Shallow/odd.md"]
    assert palace.rate(path="01_Shallow/odd.md", density=0.9)["after"]["density"] == 0.9


OUT_OF_REACH = [
    # sound headers whose own lines cannot be told apart for certain
    ("braces", "{a: 1, density: 0.3}\n"),
    ("anchor", "density: &d 0.2\nother: *d\n"),
    ("question-mark", "? density\n: 0.4\n"),
]


@pytest.mark.parametrize(("case", "lines"), OUT_OF_REACH, ids=[row[0] for row in OUT_OF_REACH])
def test_a_property_that_cannot_be_set_safely_is_refused_with_the_note(
    palace: Palace, note: Note, case: str, lines: str
) -> None:
    """FM-02: the error names the file by this route too."""
    path = note("01_Shallow/odd.md", f"---\n{lines}---\nzebra\n")
    before = path.read_bytes()

    with pytest.raises(MalformedNote) as refused:
        palace.rate(path="01_Shallow/odd.md", density=0.9)

    assert (refused.value.facts["path"], refused.value.facts["line"]) == ("01_Shallow/odd.md", 2)
    assert "01_Shallow/odd.md" in str(refused.value)
    assert path.read_bytes() == before


# ── What the product writes reads back as given ──────────────────────────────────────────────────────────

AWKWARD = [
    "Retro: week 12",
    "*Draft* ideas",
    "`config` notes",
    "@maria",
    "%done so far",
    "[[Blue Whale]]",
    "# not a comment",
    "- dash",
    "yes",
    "null",
    "1984",
    "3.10",
    "2023-11-05",
    "0x1F",
    "12:30",
    "1e3",
    "a #b",
    "trailing: ",
    "'single' \"double\"",
    "one\u2028two",
    "one\u0085two",
    "one\x1dtwo",
    "tab\there",
    "🧭 漢字",
]


@pytest.mark.parametrize("text", AWKWARD)
def test_text_that_yaml_would_trip_over_is_read_back_as_given(palace: Palace, vault: Path, text: str) -> None:
    """FM-01, FM-04, FM-29, FM-34: `source_session` is the property that takes any text."""
    saved = palace.write("x", title="T", source_session=text)["saved_path"]

    assert palace.read(path=saved)["metadata"]["source_session"] == text
    assert [code for _, code in faults(palace, saved) if code != "unresolved_link"] == []


@pytest.mark.parametrize("title", AWKWARD)
def test_a_note_of_any_title_is_found_by_that_title(palace: Palace, vault: Path, title: str) -> None:
    """FM-01: what the file name cannot hold is kept as an alias, exactly."""
    saved = palace.write("x", title=title)["saved_path"]

    stem = Path(saved).stem
    assert stem == title or header(vault, saved)["aliases"] == [title]
    assert palace.read(title=title)["path"] == saved
    assert [code for _, code in faults(palace, saved) if code != "unresolved_link"] == []


@pytest.mark.parametrize("words", AWKWARD)
def test_the_words_of_a_purge_are_read_back(palace: Palace, vault: Path, words: str) -> None:
    """FM-04: on one line, which is what a reason is."""
    saved = palace.write("x", title="T")["saved_path"]

    place = palace.purge(saved, reason=words, confirm=True)["archived_to"]

    assert header(vault, place)["archived_reason"] == f"purged: {' '.join(words.split())}"


@pytest.mark.parametrize("tags", ['["svc", "db"]', "svc, db", "svc"])
def test_one_text_in_the_place_of_tags_is_refused_fm_05(palace: Palace, vault: Path, tags: str) -> None:
    """Whoever takes arguments from a client may read such texts as lists; here a list is a list."""
    palace.write("orbit", title="Orbit", tags=["svc", "db"])
    before = sorted(vault.rglob("*.md"))

    with pytest.raises(InvalidArguments, match="list"):
        palace.write("x", title="T", tags=tags)
    with pytest.raises(InvalidArguments, match="list"):
        palace.search("orbit", tags=tags)

    assert sorted(vault.rglob("*.md")) == before


@pytest.mark.parametrize("tag", ['["svc"', "a[b", 'q"q'])
def test_no_tag_with_brackets_or_quotes_is_stored_fm_05(palace: Palace, tag: str) -> None:
    with pytest.raises(InvalidArguments, match="tag"):
        palace.write("x", title="T", tags=[tag])


# ── Values of people that are read as they mean them ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lines", "tags", "aliases"),
    [
        ("tags:\n", [], []),
        ("tags:\n  -\n  - # later\n  - real\n", ["real"], []),
        ("aliases: [null, Zed]\n", [], ["Zed"]),
        ("aliases: Zed\n", [], ["Zed"]),
        ("tags: [1984, real, 3.10, {a: 1}, [b]]\naliases: 7\n", ["real"], ["7"]),
        ("tags: {a: 1}\naliases: {b: 2}\n", [], []),
        ("Tags: [real]\nALIASES: [Zed]\n", ["real"], ["Zed"]),
        ("tags: '#real'\n", ["real"], []),
    ],
)
def test_empty_and_odd_entries_of_lists_cost_nothing_fm_07(
    palace: Palace, note: Note, lines: str, tags: list[str], aliases: list[str]
) -> None:
    path = note("01_Shallow/t.md", f"---\n{lines}---\nzebra\n")
    before = path.read_bytes()

    assert palace.check() == []
    for tag in tags:
        assert found(palace, "zebra", tags=[tag]) == ["01_Shallow/t.md"]
    for alias in aliases:
        assert palace.read(title=alias, touch=False)["path"] == "01_Shallow/t.md"
    assert path.read_bytes() == before

    palace.rate(path="01_Shallow/t.md", density=0.6)
    assert only_ours(added(before, path.read_bytes()))


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("title: 2023-11-05", "2023-11-05"),
        ("title: 1984", "1984"),
        ("title: true", "true"),
        ("title: 3.10", "3.10"),
        ("title: 010", "010"),
        ("title: 12:30", "12:30"),
        ("title: 1e3", "1e3"),
        ("title: null", "stem"),
        ("title:", "stem"),
        ("title: [a, b]", "stem"),
        ("title: >-\n  two\n  lines", "two lines"),
    ],
)
def test_a_title_is_shown_and_found_as_it_was_typed_fm_08(
    palace: Palace, note: Note, line: str, title: str
) -> None:
    path = note("01_Shallow/stem.md", f"---\n{line}\n---\nzebra\n")
    before = path.read_bytes()

    assert [match["title"] for match in palace.search("zebra")["matches"]] == [title]
    assert found(palace, title) == ["01_Shallow/stem.md"]
    assert palace.read(title=title)["title"] == title
    palace.rate(path="01_Shallow/stem.md", density=0.6)
    assert only_ours(added(before, path.read_bytes()))


KEPT = [
    (
        "FM-10",
        "lang: no\nswitch: on\ntags: [no, off, y]\n",
        {"lang": "no", "switch": "on", "tags": ["no", "off", "y"]},
    ),
    (
        "FM-11",
        "zip: 01234\nmode: 0644\nref: 0421345\n",
        {"zip": "01234", "mode": "0644", "ref": "0421345"},
    ),
    (
        "FM-13",
        "opens: 10:00\ncloses: 21:45\nearly: 09:30\ndur: 1:30:00\nsign: blue\n",
        {"opens": "10:00", "closes": "21:45", "early": "09:30", "dur": "1:30:00"},
    ),
    (
        "FM-14",
        (
            "msg_id: 9007199254740993\nchat: 2305843009213693953\n"
            "ids: [9007199254740993]\nin: {id: 9007199254740993}\n"
        ),
        {
            "msg_id": "9007199254740993",
            "chat": "2305843009213693953",
            "ids": ["9007199254740993"],
            "in": {"id": "9007199254740993"},
        },
    ),
    ("FM-16", "# keep this order\nprio: 2   # one|two\n\n#legacy: 1\nlast: 1 # x\n", {"prio": 2, "last": 1}),
    ("FM-17", "zeta: 1\ntitle: T\nalpha: [3, 1, 2]\n", {"zeta": 1, "title": "T", "alpha": [3, 1, 2]}),
    (
        "FM-23",
        (
            "summary: before --- after\nquote: |\n  line one\n  --- not a fence, indented\n  line three\n"
            "tags: [deep]\n"
        ),
        {
            "summary": "before --- after",
            "quote": "line one\n--- not a fence, indented\nline three\n",
            "tags": ["deep"],
        },
    ),
    (
        "FM-28",
        "parent: [[Blue Whale]]\nalso: [[Smith, John]]\nn: 1\n",
        {"n": 1},
    ),
    (
        "FM-29",
        "s: one\u2028two\nt: one\u0085two\nu: one\u2029two\nf: 'a\u2028 b'\n",
        {"s": "one\u2028two", "t": "one\u0085two", "u": "one\u2029two", "f": "a\u2028 b"},
    ),
    (
        "FM-31",
        'due: 2025-03-09\nat: 2025-03-09T23:30:00-05:00\nz: "2025-03-09T07:41:05.000Z"\n',
        {"due": "2025-03-09", "at": "2025-03-09T23:30:00-05:00", "z": "2025-03-09T07:41:05.000Z"},
    ),
    ("FM-34", 'n: 1\nflag: false\nlist: [a]\ns: "6"\n', {"n": 1, "flag": False, "list": ["a"], "s": "6"}),
    (
        "numbers",
        "a: 1.10\nb: 1e-05\nc: 1_000\nd: +5\ne: -0\nf: .5\n",
        {"a": "1.10", "b": 1e-05, "c": "1_000"},
    ),
    (
        "keys",
        "1: a\n2024: b\ntrue: c\n'quoted key': d\nWith Space: e\n",
        {"quoted key": "d", "With Space": "e"},
    ),
]
kept_rows = pytest.mark.parametrize(("case", "lines", "values"), KEPT, ids=[row[0] for row in KEPT])


@kept_rows
def test_properties_are_told_as_they_were_typed(
    palace: Palace, note: Note, case: str, lines: str, values: dict[str, object]
) -> None:
    """A client that reads JSON numbers as doubles gets the same digits (FM-14)."""
    note("01_Shallow/k.md", f"---\n{lines}---\nbody-word\n")

    answer = palace.read(path="01_Shallow/k.md")

    told = json.loads(json.dumps(answer["metadata"]), parse_int=float, parse_float=float)
    assert {key: told[key] for key in values} == values
    assert answer["content"] == "body-word\n"


def _rate(palace: Palace, path: str) -> str:
    palace.rate(path=path, density=0.9, pinned=False)
    return path


def _move(palace: Palace, path: str) -> str:
    return palace.move(path, "sediment")["destination"]


def _archive_and_back(palace: Palace, path: str) -> str:
    return palace.restore(palace.purge(path, confirm=True)["archived_to"])["restored_to"]


def _touch(palace: Palace, path: str) -> str:
    palace.read(path=path)
    return path


WRITES = {"rate": _rate, "move": _move, "archive-and-restore": _archive_and_back, "touch": _touch}


@pytest.mark.parametrize("verb", WRITES)
@kept_rows
def test_a_write_of_our_properties_leaves_every_line_of_the_person(
    palace: Palace, vault: Path, note: Note, verb: str, case: str, lines: str, values: dict[str, object]
) -> None:
    """Comments, order, quotes, blank lines: the header's lines are all there, and ours come behind them."""
    before = note("01_Shallow/k.md", f"---\n{lines}---\nbody-word\n").read_bytes()

    path = WRITES[verb](palace, "01_Shallow/k.md")

    after = (vault / path).read_bytes()
    new = added(before, after)
    assert new
    assert only_ours(new)
    assert after.startswith(b"---\n" + lines.encode("utf-8"))
    assert after.endswith(b"---\nbody-word\n")


@kept_rows
def test_metabolize_leaves_every_line_of_the_person(
    palace: Palace, vault: Path, clock: Clock, note: Note, case: str, lines: str, values: dict[str, object]
) -> None:
    """FM-16: touched by the nightly run, promoted, let go: nothing else of the header moves."""
    before = note("01_Shallow/k.md", f"---\n{lines}---\nbody-word\n").read_bytes()
    palace.metabolize(confirm=True)
    clock.turn(days=10)

    answer = palace.metabolize(confirm=True, force=True)

    assert answer["archived"] == ["_Archive/01_Shallow/k.md"]
    new = added(before, (vault / "_Archive/01_Shallow/k.md").read_bytes())
    assert only_ours(new)


def test_filtering_by_a_word_of_older_yaml_finds_the_note_fm_10(palace: Palace, note: Note) -> None:
    note("01_Shallow/no.md", "---\nlang: no\ntags: [no, off, y]\n---\nzebra\n")
    note("01_Shallow/other.md", "---\ntags: [false]\n---\nzebra\n")

    assert {tag: found(palace, "zebra", tags=[tag]) for tag in ("no", "off", "y", "false")} == {
        "no": ["01_Shallow/no.md"],
        "off": ["01_Shallow/no.md"],
        "y": ["01_Shallow/no.md"],
        "false": ["01_Shallow/other.md"],
    }


def test_a_comment_behind_a_value_of_ours_stays_fm_16(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    """`status` is a property of ours: the word is ours to set, what stands behind it is not."""
    note(
        "01_Shallow/c.md",
        "---\n# keep this order\nstatus: open   # open|closed\n#legacy: 1\nprio: 2\n---\nx\n",
    )

    palace.metabolize(confirm=True)

    text = (vault / "01_Shallow/c.md").read_text(encoding="utf-8")
    assert text.startswith(
        "---\n# keep this order\nstatus: active   # open|closed\n#legacy: 1\nprio: 2\nid: "
    )


def test_a_second_write_changes_one_line_fm_16_fm_17(palace: Palace, vault: Path, note: Note) -> None:
    path = note("01_Shallow/c.md", "---\nzeta: 1\n# why\nalpha: [3, 1, 2]\n---\nx\n")
    palace.rate(path="01_Shallow/c.md", density=0.3)
    before = path.read_bytes().decode().split("\n")

    palace.rate(path="01_Shallow/c.md", density=0.4)

    after = path.read_bytes().decode().split("\n")
    assert [(old, new) for old, new in zip(before, after, strict=True) if old != new] == [
        ("density: 0.3", "density: 0.4")
    ]


# ── The shape of the file ────────────────────────────────────────────────────────────────────────────────

FILES = [
    # case, bytes, title, what is found, does every line keep CR LF
    ("FM-19-windows", b"---\r\ntitle: Win\r\ntags: [x]\r\n---\r\nbody zebra\r\n", "Win", "zebra", True),
    ("FM-19-eof", b"---\ntitle: Eof\n---", "Eof", "Eof", False),
    ("FM-19-mixed", b"---\r\ntitle: Mixed\n---\r\nbody zebra", "Mixed", "zebra", False),
    ("FM-20-bom", b"\xef\xbb\xbf---\ntitle: Bom\n---\n# H\nzebra\n", "Bom", "Bom", False),
    ("FM-20-bom-windows", b"\xef\xbb\xbf---\r\ntitle: Bom\r\n---\r\n# H\r\nzebra\r\n", "Bom", "zebra", True),
    ("FM-20-bom-alone", b"\xef\xbb\xbf# H\nzebra\n", "f", "zebra", False),
    ("FM-22", b"---\n\nObserved: 14 swallows near the barn\n\nno further rule\n", "f", "swallows", False),
    ("FM-25-empty", b"---\n---\nbody zebra\n", "f", "zebra", False),
    ("FM-25-blank", b"---\n\n---\nbody zebra\n", "f", "zebra", False),
    ("FM-25-comment", b"---\n# todo: fill\n---\nbody zebra\n", "f", "zebra", False),
    ("FM-25-no-bytes", b"", "f", "f", False),
    ("FM-25-rule", b"---\n", "f", "f", False),
    ("blanks-behind-dashes", b"---  \ntitle: B\n---\t\nzebra\n", "B", "zebra", False),
    ("four-dashes", b"----\ntitle: B\n----\nzebra\n", "f", "zebra", False),
    ("dots-at-the-end", b"---\ntitle: B\n...\nzebra\n", "f", "zebra", False),
    ("blank-line-first", b"\n---\ntitle: B\n---\nzebra\n", "f", "zebra", False),
    ("rule-in-body", b"---\ntitle: B\n---\nzebra\n\n---\nk: 1\n---\n", "B", "zebra", False),
]
files = pytest.mark.parametrize(
    ("case", "data", "title", "word", "windows"), FILES, ids=[row[0] for row in FILES]
)


@files
def test_a_note_of_any_shape_is_found_under_its_title(
    palace: Palace, note: Note, case: str, data: bytes, title: str, word: str, windows: bool
) -> None:
    path = note("01_Shallow/f.md", data)

    matches = palace.search(word)["matches"]

    assert [(match["path"], match["title"]) for match in matches] == [("01_Shallow/f.md", title)]
    assert palace.read(title=title, touch=False)["path"] == "01_Shallow/f.md"
    assert palace.check() == []
    assert path.read_bytes() == data


@files
def test_a_note_of_any_shape_keeps_it_when_a_property_is_set(
    palace: Palace, note: Note, case: str, data: bytes, title: str, word: str, windows: bool
) -> None:
    """One header afterwards, in front, in the file's own line ends; the body is the same text.

    `FM-25-rule`: a lone `---` is no header but a first rule that never closes, and stays in the body (FM-22).
    """
    path = note("01_Shallow/f.md", data)
    body = frontmatter.read(data.decode("utf-8")).body

    for _ in range(10):
        palace.rate(path="01_Shallow/f.md", density=0.6)

    after = path.read_bytes()
    read = frontmatter.read(after.decode("utf-8"))
    assert (read.body, read.values["density"]) == (body, 0.6)
    assert after.startswith(b"\xef\xbb\xbf---" if data.startswith(b"\xef\xbb\xbf") else b"---")
    assert after.count(b"\xef\xbb\xbf") == data.count(b"\xef\xbb\xbf")
    assert only_ours([line for line in added(data, after) if line.strip() != "---"])
    assert windows == (after.count(b"\n") == after.count(b"\r\n"))
    assert [match["title"] for match in palace.search(word)["matches"]] == [title]


def test_the_first_heading_behind_a_byte_order_mark_is_a_heading_fm_20(palace: Palace, note: Note) -> None:
    note("01_Shallow/f.md", b"\xef\xbb\xbf---\ntitle: Bom\n---\n# H\nzebra\n# I\nlion\n")
    note("01_Shallow/g.md", b"\xef\xbb\xbf# H\nzebra\n# I\nlion\n")

    for path in ("01_Shallow/f.md", "01_Shallow/g.md"):
        assert palace.read(path=path, section="H", touch=False)["content"].strip() == "# H\nzebra"


def test_dashes_inside_values_hide_neither_tags_nor_body_fm_23(palace: Palace, note: Note) -> None:
    lines = {case: lines for case, lines, _ in KEPT}["FM-23"]
    note("01_Shallow/d.md", f"---\n{lines}---\nbody-word\n")

    assert found(palace, "body-word", tags=["deep"]) == ["01_Shallow/d.md"]
    assert found(palace, "indented") == []


def test_an_empty_note_lives_as_long_as_any_other_fm_25(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    note("01_Shallow/empty.md", b"")
    palace.metabolize(confirm=True)
    clock.turn(days=10)

    answer = palace.metabolize(confirm=True, force=True)

    assert answer["archived"] == ["_Archive/01_Shallow/empty.md"]
    assert frontmatter.read((vault / answer["archived"][0]).read_text(encoding="utf-8")).body == ""


def test_the_empty_header_of_a_template_is_used_fm_25(palace: Palace, note: Note) -> None:
    path = note("01_Shallow/f.md", "---\n# todo: fill\n---\nbody\n")

    palace.rate(path="01_Shallow/f.md", density=0.6)

    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\n# todo: fill\nid: ")
    assert text.count("---\n") == 2


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0c", "\x1d", "\x0b", "\x1c"])
def test_unusual_separators_in_body_and_property_come_back_fm_29(
    palace: Palace, vault: Path, mark: str
) -> None:
    text = f"one{mark}two"

    saved = palace.write(text, title="S", source_session=text, tags=["x"])["saved_path"]
    palace.rate(path=saved, density=0.9)

    answer = palace.read(path=saved)
    assert (answer["content"], answer["metadata"]["source_session"]) == (text, text)
    lines = (vault / saved).read_bytes().decode("utf-8").split("\n")
    assert [line.partition(":")[0] for line in lines if line.endswith(mark + "two")] == ["one" + mark + "two"]
    assert lines[0] == "---"
    assert lines.index("---", 1) == len(lines) - 3


# ── Dates ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["America/Los_Angeles", "Asia/Tokyo", "UTC"])
def machine_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    if hasattr(time, "tzset"):
        time.tzset()
    yield os.environ["TZ"]
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()


def test_dates_are_the_same_in_every_zone_fm_31(
    machine_zone: str, open_palace: OpenPalace, vault: Path, note: Note
) -> None:
    """There is no filter by property; the title, which is one date of the note, is found in all zones."""
    note("_System/Policy.md", "---\n---\n")
    lines = (
        'due: 2025-03-09\nat: 2025-03-09T23:30:00-05:00\nz: "2025-03-09T07:41:05.000Z"\ntitle: 2025-03-09\n'
    )
    before = note("01_Shallow/d.md", f"---\n{lines}---\nx\n").read_bytes()
    palace = open_palace()

    assert found(palace, "2025-03-09") == ["01_Shallow/d.md"]
    palace.rate(path="01_Shallow/d.md", density=0.6)

    answer = json.loads(json.dumps(palace.read(path="01_Shallow/d.md")["metadata"]))
    assert answer["due"] == answer["title"] == "2025-03-09"
    assert only_ours(added(before, (vault / "01_Shallow/d.md").read_bytes()))


# ── Bodies and types ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [
        "The Night: Shift begins at ten.",
        "---\ntitle: Stolen\n---\nbody\n",
        "---\n",
        "---\n: [\n---\n",
        "\ufeff---\ntitle: Stolen\n---\n",
        "\n\n---\ntitle: Stolen\n---\n",
    ],
)
@pytest.mark.parametrize(
    "before", ["---\ntitle: Night Shift\n---\nten\n", "ten\n", "---\r\ntitle: N\r\n---\r\nten\r\n"]
)
def test_a_new_body_never_reaches_the_header_fm_32(
    palace: Palace, vault: Path, note: Note, before: str, content: str
) -> None:
    """No tool finds and replaces; the one that replaces takes a whole body, whatever it looks like."""
    note("01_Shallow/n.md", before)
    palace.rate(path="01_Shallow/n.md", density=0.6)
    known = palace.read(path="01_Shallow/n.md")

    palace.write(content, path="n", mode="replace", if_rev=known["rev"])

    answer = palace.read(path="01_Shallow/n.md")
    assert answer["content"].replace("\r\n", "\n") == content.removeprefix("\ufeff")
    assert answer["metadata"].get("title") == known["metadata"].get("title")
    assert answer["metadata"].keys() == known["metadata"].keys()
    assert palace.check() == []


@pytest.mark.parametrize("content", ["---\ntitle: Stolen\n---\nbody\n", "---\n", "---\n- a\n---\n"])
def test_text_that_looks_like_a_header_is_text(palace: Palace, vault: Path, content: str) -> None:
    """FM-22, FM-32: written, and appended to a note whose first line is a rule without an end."""
    saved = palace.write(content, title="Looks")["saved_path"]

    assert palace.read(path=saved)["content"] == content
    assert "title" not in header(vault, saved)


def test_appending_never_closes_a_first_rule_fm_22(palace: Palace, vault: Path, note: Note) -> None:
    note("01_Shallow/r.md", "---\n\ntitle: swallows\n")

    palace.write("---\nmore", path="r", mode="append")

    assert "title" not in header(vault, "01_Shallow/r.md")
    assert found(palace, "swallows") == ["01_Shallow/r.md"]


def test_types_in_are_types_in_the_file_and_types_out_fm_34(palace: Palace, vault: Path) -> None:
    saved = palace.write("x", title="T", tags=["b", "c"], source_session="6")["saved_path"]

    palace.rate(path=saved, density=1, pinned=True, decay_days=14)

    wanted = {"density": 1, "pinned": True, "decay_days": 14, "source_session": "6", "tags": ["b", "c"]}
    lines = (vault / saved).read_text(encoding="utf-8").split("\n")
    told = palace.read(path=saved)["metadata"]
    assert {key: told[key] for key in wanted} == wanted
    assert {key: type(told[key]) for key in wanted} == {key: type(value) for key, value in wanted.items()}
    assert {"density: 1", "pinned: true", "decay_days: 14", 'source_session: "6"', "  - b"} <= set(lines)


def test_a_long_header_is_read_to_its_end_fm_35(palace: Palace, vault: Path, note: Note) -> None:
    names = [f"alias {number:03} {'x' * 30}" for number in range(600)]
    text = "---\naliases:\n" + "".join(f"  - {name}\n" for name in names) + "id: keep-me\n---\nzebra\n"
    before = note("01_Shallow/long.md", text).read_bytes()

    assert palace.read(id="keep-me", touch=False)["path"] == "01_Shallow/long.md"
    assert palace.read(title=names[599], touch=False)["path"] == "01_Shallow/long.md"
    palace.rate(id="keep-me", density=0.6)

    after = (vault / "01_Shallow/long.md").read_bytes()
    assert only_ours(added(before, after))
    assert palace.read(id="keep-me")["metadata"]["aliases"] == names


# ── Fields that a store would insist on ──────────────────────────────────────────────────────────────────

FIELDS = ["layer", "status", "density", "streak", "created", "id", "tags", "decay_days", "pinned", "title"]


@pytest.mark.parametrize("field", FIELDS)
def test_an_absent_or_empty_field_has_its_default_fm_37(palace: Palace, note: Note, field: str) -> None:
    note("01_Shallow/A.md", "---\nother: 1\n---\nzebra\n")
    note("01_Shallow/B.md", f"---\n{field}: null\n---\nzebra\n")
    note("01_Shallow/C.md", f"---\n{field}:\n---\nzebra\n")

    assert found(palace, "zebra") == ["01_Shallow/A.md", "01_Shallow/B.md", "01_Shallow/C.md"]
    assert palace.check() == []
    assert {match["density"] for match in palace.search("zebra")["matches"]} == {0.2}


@pytest.mark.parametrize("field", [name for name in FIELDS if name not in ("tags", "title")])
def test_a_list_where_one_value_belongs_is_told_with_its_line_fm_37(
    palace: Palace, note: Note, field: str
) -> None:
    note("01_Shallow/D.md", f"---\nother: 1\n{field}: [a, b]\n---\nzebra\n")

    assert found(palace, "zebra") == ["01_Shallow/D.md"]
    assert faults(palace, "01_Shallow/D.md") == [(3, "bad_value")]


@pytest.mark.parametrize("id", ["mem_0a1b", "0123", "2024-01-01", "true", "1e3", "9007199254740993"])
def test_an_id_is_its_text_to_find_by_and_to_remember_by(
    palace: Palace, vault: Path, clock: Clock, note: Note, id: str
) -> None:
    """FM-08, FM-11, FM-14: a person's edit is told from the program's own, whatever YAML takes the id for."""
    path = note("01_Shallow/n.md", f"---\nid: {id}\n---\nzebra\n")
    palace.rate(path="01_Shallow/n.md", density=0.3)
    clock.turn(days=30)
    path.write_text(path.read_text(encoding="utf-8").replace("streak: 0", "streak: 4"), encoding="utf-8")

    palace.metabolize(confirm=True)

    assert header(vault, "01_Shallow/n.md")["streak"] == 4
    assert palace.read(id=id, touch=False)["path"] == "01_Shallow/n.md"
    assert palace.read(id=id, touch=False)["metadata"]["id"] == id


def test_a_second_look_at_faulty_notes_does_no_work_fm_37(
    palace: Palace, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    for case, lines, _ in UNREADABLE:
        note(f"01_Shallow/{case}.md", b"---\n" + lines + b"---\n")
    for field in FIELDS:
        note(f"01_Shallow/{field}.md", f"---\n{field}: [a, b]\n---\n")
    note("01_Shallow/latin.md", b"---\ntitle: Cr\xe8me\n---\n")
    note("01_Shallow/empty.md", b"")
    before = palace.check()

    def no_work(*_: object, **__: object) -> object:
        raise AssertionError("a note was read again")

    monkeypatch.setattr(Vault, "read", no_work)
    palace.house.refresh(if_older=0)

    monkeypatch.undo()
    assert palace.check() == before


def test_a_second_run_over_faulty_notes_writes_nothing_fm_37(palace: Palace, vault: Path, note: Note) -> None:
    for field in FIELDS:
        note(f"01_Shallow/{field}.md", f"---\n{field}: [a, b]\n---\nzebra\n")
    palace.metabolize(confirm=True)
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}

    palace.metabolize(confirm=True)

    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before


def test_a_note_that_is_not_utf_8_is_found_and_never_written(
    palace: Palace, clock: Clock, note: Note
) -> None:
    """FM-04's kind: another class of error, the same cost. Its text shows what could not be read as �."""
    path = note("01_Shallow/l.md", b"---\ntitle: Cr\xe8me\n---\nzebra caf\xe9\n")
    before = path.read_bytes()

    assert found(palace, "zebra") == ["01_Shallow/l.md"]
    assert faults(palace, "01_Shallow/l.md") == [(0, "not_utf8")]
    assert "caf\ufffd" in palace.read(path="01_Shallow/l.md")["content"]
    clock.turn(days=100)
    palace.metabolize(confirm=True, force=True)
    for act in (
        lambda: palace.rate(path="01_Shallow/l.md", density=0.9),
        lambda: palace.write("x", path="l", mode="append"),
        lambda: palace.move("01_Shallow/l.md", "sediment"),
        lambda: palace.purge("01_Shallow/l.md", confirm=True),
    ):
        with pytest.raises(VaultError) as refused:
            act()
        assert refused.value.facts["path"] == "01_Shallow/l.md"

    assert path.read_bytes() == before
