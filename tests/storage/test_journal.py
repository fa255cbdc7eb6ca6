"""The journal survives torn lines, foreign records and sync, and honours every whole record."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.palace import NOW, House, everything
from vault_palace.core.errors import InvalidArguments, PathViolation, StorageFailed
from vault_palace.storage.journal import RECENT, Journal
from vault_palace.storage.oldjournal import old_operations
from vault_palace.storage.records import Entry, NoteFact, Trace, from_line, to_entry, to_line, to_record
from vault_palace.storage.vault import Vault

OURS = "_System/journal/here.jsonl"


def _entry(
    op: str, *, path: str = "01_Shallow/a.md", after: str = "f" * 64, minutes: int = 0, body: str = "b"
) -> Entry:
    return Entry(
        op=op,
        verb="write",
        at=NOW + timedelta(minutes=minutes),
        session="cli-42",
        why="asked to",
        steps=(Trace(kind="put", path=path, after=after),),
        notes=(NoteFact(id=f"mem_{path}", path=path, body=body, streak=3),),
    )


def _lines(root: Path) -> list[bytes]:
    return (root / OURS).read_bytes().split(b"\n")


def _journal(root: Path, machine: str = "here") -> Journal:
    return House(root, machine).journal


def _ops(entries: Sequence[Entry]) -> list[str]:
    return [entry.op for entry in entries]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a.b", "x" * 65, "-x", "é"])
def test_a_machine_s_name_is_no_path(vault: Path, name: str) -> None:
    with pytest.raises(InvalidArguments):
        Journal(Vault(vault), name)


def test_what_was_begun_is_unfinished_until_it_is_closed(vault: Path) -> None:
    journal = _journal(vault)
    journal.begin(_entry("one"))
    journal.begin(_entry("two"))

    journal.close("one", "done")

    assert _ops(journal.unfinished()) == ["two"]
    assert _ops(_journal(vault).unfinished()) == ["two"]
    assert [(entry.op, entry.state) for entry in journal.entries()] == [("one", "done"), ("two", "begin")]


def test_an_operation_left_open_stays_unfinished_with_its_reason(vault: Path) -> None:
    journal = _journal(vault)
    journal.begin(_entry("one"))

    journal.close("one", "open", "no permission")

    (entry,) = _journal(vault).unfinished()
    assert (entry.state, entry.detail) == ("open", "no permission")


def test_a_begun_operation_comes_back_as_it_was(vault: Path) -> None:
    entry = _entry("one")
    _journal(vault).begin(entry)

    (found,) = _journal(vault).unfinished()

    assert found == Entry(**{**{key: getattr(entry, key) for key in entry.__slots__}, "machine": "here"})


def test_the_journal_is_its_owner_s_alone(vault: Path) -> None:
    """RC-11"""
    _journal(vault).begin(_entry("one"))

    assert stat.S_IMODE((vault / OURS).stat().st_mode) == 0o600


def test_a_begin_record_is_on_the_disk_before_begin_returns(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def noting(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def noted(*args: object) -> object:
            order.append(name)
            return real(*args)

        return noted

    for name in ("write", "fdatasync"):
        monkeypatch.setattr(os, name, noting(name, getattr(os, name)))

    _journal(vault).begin(_entry("one"))

    assert order[:2] == ["write", "fdatasync"]


@given(st.text(st.characters(exclude_categories=[])), st.text())
def test_any_text_makes_one_line(why: str, session: str) -> None:
    entry = Entry(op="x", verb="write", at=NOW, session=session, why=why)

    line = to_line(to_record(entry))

    assert line.count(b"\n") == 1
    records, odd = from_line(line)
    assert not odd
    assert len(records) == 1
    found = to_entry(records[0], "")
    assert found is not None
    assert found.session == session


@given(st.binary(max_size=60))
def test_no_line_makes_reading_fail(line: bytes) -> None:
    from_line(line)
    from_line(line + to_line(to_record(_entry("one"))))


# -- RC-06: torn and foreign records ------------------------------------------------------------------------

WHOLE = to_line(to_record(_entry("one")))
NEXT = to_line(to_record(_entry("two")))
TORN: tuple[tuple[str, bytes, list[str], list[str]], ...] = (
    ("half a record", WHOLE + b'{"v":1,"op":"mo', ["one"], ["journal_torn"]),
    ("half a record of another kind", WHOLE + b'{"op":"mo', ["one"], ["journal_torn"]),
    ("no final newline", WHOLE + NEXT[:-1], ["one", "two"], []),
    ("zero bytes", WHOLE + b"\0" * 4096, ["one"], []),
    ("zero bytes before a record", WHOLE + b"\0" * 4096 + NEXT, ["one", "two"], []),
    ("a byte order mark", b"\xef\xbb\xbf" + WHOLE, ["one"], []),
    ("an unknown version", WHOLE + b'{"v":2,"op":"x","state":"begin"}\n', ["one"], ["journal_version"]),
    ("no version", WHOLE + b'{"op":"x","state":"begin"}\n', ["one"], ["journal_version"]),
    ("records run together", WHOLE[:-1] + NEXT, ["one", "two"], []),
    ("a record run into half a one", b'{"op":"mo' + NEXT, ["two"], ["journal_torn"]),
    ("text", b"hello\n" + WHOLE, ["one"], ["journal_torn"]),
    ("a list", b"[1]\n" + WHOLE, ["one"], ["journal_torn"]),
    ("deep nesting", b"[" * 100_000 + b"\n" + WHOLE, ["one"], ["journal_torn"]),
    (
        "a record without its steps",
        b'{"v":1,"op":"x","state":"begin","at":"soon"}\n' + WHOLE,
        ["one"],
        ["journal_torn"],
    ),
    ("a step of an unknown kind", WHOLE.replace(b'"put"', b'"zap"') + NEXT, ["two"], ["journal_torn"]),
    ("an unknown state", b'{"v":1,"op":"x","state":"later"}\n' + WHOLE, ["one"], ["journal_torn"]),
    ("blank lines", b"\n\r\n" + WHOLE + b"\n", ["one"], []),
    ("an empty file", b"", [], []),
    ("bytes that are no text", WHOLE + b"\xff\xfe\n", ["one"], ["journal_torn"]),
)


@pytest.mark.parametrize(("data", "ops", "codes"), [row[1:] for row in TORN], ids=[row[0] for row in TORN])
def test_whole_records_are_honoured_whatever_stands_beside_them(
    vault: Path, data: bytes, ops: list[str], codes: list[str]
) -> None:
    """RC-06"""
    (vault / "_System" / "journal").mkdir()
    (vault / OURS).write_bytes(data)

    journal = _journal(vault)

    assert _ops(journal.unfinished()) == ops
    assert [problem.code for problem in journal.problems()] == codes


@pytest.mark.parametrize(("data", "ops"), [row[1:3] for row in TORN], ids=[row[0] for row in TORN])
def test_the_next_record_stands_on_its_own_line(vault: Path, data: bytes, ops: list[str]) -> None:
    """RC-06: start, do one operation, stop, start."""
    (vault / "_System" / "journal").mkdir()
    (vault / OURS).write_bytes(data)
    _journal(vault).begin(_entry("three"))

    journal = _journal(vault)

    assert _ops(journal.unfinished()) == [*ops, "three"]
    assert json.loads(_lines(vault)[-2])["op"] == "three"
    assert _lines(vault)[-1] == b""


def test_a_torn_record_is_set_aside_once_with_its_bytes(vault: Path) -> None:
    """RC-06"""
    (vault / "_System" / "journal").mkdir()
    (vault / OURS).write_bytes(WHOLE + b'{"v":1,"op":"mo')
    for number in range(3):
        _journal(vault).begin(_entry(f"more-{number}"))

    aside = sorted((vault / "_System" / "journal").glob("here.torn-*"))

    assert [place.read_bytes() for place in aside] == [b'{"v":1,"op":"mo']
    assert stat.S_IMODE(aside[0].stat().st_mode) == 0o600
    (problem,) = _journal(vault).problems()
    assert (problem.code, problem.path) == ("journal_torn", f"_System/journal/{aside[0].name}")


def test_a_missing_journal_is_an_empty_one(vault: Path) -> None:
    """RC-06"""
    seen = everything(vault)
    journal = _journal(vault)

    assert journal.unfinished() == journal.entries() == journal.elsewhere() == []
    assert journal.problems() == []
    assert journal.last_known("mem_1") is None
    assert not journal.accounts_for("f" * 64)
    assert everything(vault) == seen


def test_a_journal_folder_that_is_a_link_is_refused(vault: Path, tmp_path: Path) -> None:
    """FS-09"""
    (tmp_path / "elsewhere").mkdir()
    (vault / "_System" / "journal").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PathViolation):
        _journal(vault).begin(_entry("one"))

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_full_disk_leaves_no_half_record(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FS-15"""
    journal = _journal(vault)
    journal.begin(_entry("one"))

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fdatasync", full)
        with pytest.raises(StorageFailed, match="no space left"):
            journal.begin(_entry("two"))

    assert _ops(journal.unfinished()) == ["one"]
    journal.begin(_entry("three"))
    assert _ops(_journal(vault).unfinished()) == ["one", "three"]


# -- reading on ---------------------------------------------------------------------------------------------


def test_what_another_process_wrote_is_seen(vault: Path) -> None:
    journal, other = _journal(vault), _journal(vault)
    journal.begin(_entry("one"))
    assert _ops(other.unfinished()) == ["one"]

    journal.close("one", "done")
    journal.begin(_entry("two"))

    assert _ops(other.unfinished()) == ["two"]


def test_only_new_lines_are_read(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = _journal(vault)
    for number in range(5):
        journal.begin(_entry(f"op-{number}"))
    journal.unfinished()
    taken: list[bytes] = []

    def taking(line: bytes) -> object:
        taken.append(line)
        return from_line(line)

    monkeypatch.setattr("vault_palace.storage.journalreader.from_line", taking)

    journal.unfinished()
    assert taken == []
    _journal_append(vault, NEXT)
    journal.unfinished()

    assert taken == [NEXT]


def _journal_append(root: Path, data: bytes) -> None:
    with (root / OURS).open("ab") as stream:
        stream.write(data)


def test_a_line_that_arrives_in_two_halves_is_read_once(vault: Path) -> None:
    journal = _journal(vault)
    journal.begin(_entry("one"))
    _journal_append(vault, NEXT[:20])
    assert [problem.code for problem in journal.problems()] == ["journal_torn"]

    _journal_append(vault, NEXT[20:])

    assert journal.problems() == []
    assert _ops(journal.unfinished()) == ["one", "two"]


@pytest.mark.parametrize("longer", [True, False])
def test_a_journal_that_was_replaced_is_read_from_its_start(vault: Path, longer: bool) -> None:
    """RC-11: sync puts another version in its place."""
    journal = _journal(vault)
    journal.begin(_entry("one"))
    journal.begin(_entry("two"))
    assert len(journal.unfinished()) == 2
    other = [to_line(to_record(_entry(f"x-{number}"))) for number in range(5 if longer else 1)]

    (vault / OURS).write_bytes(b"".join(other))

    assert _ops(journal.unfinished()) == [f"x-{number}" for number in range(len(other))]


def test_a_journal_that_was_deleted_is_empty(vault: Path) -> None:
    journal = _journal(vault)
    journal.begin(_entry("one"))
    assert journal.unfinished()

    (vault / OURS).unlink()

    assert journal.unfinished() == []


def test_an_older_copy_of_the_journal_is_noticed(vault: Path) -> None:
    """RC-11"""
    (vault / ".palace").mkdir()
    journal = _journal(vault)
    journal.begin(_entry("one"))
    older = (vault / OURS).read_bytes()
    journal.begin(_entry("two"))
    assert not journal.is_older()

    (vault / OURS).write_bytes(older)

    assert _journal(vault).is_older()
    assert "journal_older" in [problem.code for problem in _journal(vault).problems()]
    _journal(vault).begin(_entry("three"))
    assert not _journal(vault).is_older()


def test_without_a_memory_of_the_newest_operation_no_journal_is_older(vault: Path) -> None:
    journal = _journal(vault)
    journal.begin(_entry("one"))

    assert not journal.is_older()


# -- what it knows ------------------------------------------------------------------------------------------


def test_the_journal_accounts_for_what_the_program_read_and_wrote(vault: Path) -> None:
    before, after = "1" * 64, "2" * 64
    step = Trace(kind="put", path="01_Shallow/a.md", before=before, after=after)
    _journal(vault).begin(Entry(op="one", verb="write", at=NOW, steps=(step,)))

    journal = _journal(vault)

    assert journal.accounts_for(before)
    assert journal.accounts_for(after)
    assert not journal.accounts_for("3" * 64)


def test_the_newest_write_of_any_machine_is_the_last_known_one(vault: Path) -> None:
    """RC-11: two machines append in turn, each to its own file."""
    here, there = _journal(vault), _journal(vault, "there")
    here.begin(_entry("one", minutes=1, body="b1"))
    there.begin(_entry("two", minutes=3, body="b3"))
    here.begin(_entry("three", minutes=2, body="b2"))

    known = here.last_known("mem_01_Shallow/a.md")

    assert known is not None
    assert (known.body, known.streak, known.path) == ("b3", 3, "01_Shallow/a.md")
    assert _ops(here.entries()) == ["one", "three", "two"]


def test_the_recent_operations_of_all_machines_come_oldest_first(vault: Path) -> None:
    here, there = _journal(vault), _journal(vault, "there")
    here.begin(_entry("first"))
    there.begin(_entry("second", minutes=1))
    here.begin(_entry("third", minutes=2))
    here.close("third", "done")

    found = here.recent()

    assert [(entry.op, entry.machine, entry.state) for entry in found] == [
        ("first", "here", "begin"),
        ("second", "there", "begin"),
        ("third", "here", "done"),
    ]


def test_recent_keeps_to_the_newest_operations(vault: Path) -> None:
    journal = _journal(vault)
    lines = [to_line(to_record(_entry(f"op{n}", minutes=n))) for n in range(RECENT + 3)]
    (vault / OURS).parent.mkdir(parents=True)
    (vault / OURS).write_bytes(b"".join(lines))

    found = journal.recent()

    assert _ops(found) == [f"op{n}" for n in range(3, RECENT + 3)]


def test_a_recent_operation_tells_how_it_ended_after_others_began(vault: Path) -> None:
    journal = _journal(vault)
    journal.begin(_entry("one"))
    journal.recent()
    journal.begin(_entry("two", minutes=1))

    journal.close("one", "superseded", "a person was quicker")

    assert [(entry.op, entry.state, entry.detail) for entry in journal.recent()] == [
        ("one", "superseded", "a person was quicker"),
        ("two", "begin", ""),
    ]


def test_a_recent_operation_whose_line_came_in_halves_is_told_once(vault: Path) -> None:
    journal = _journal(vault)
    line = to_line(to_record(_entry("one")))
    (vault / OURS).parent.mkdir(parents=True)
    (vault / OURS).write_bytes(line[:-1])
    journal.recent()

    (vault / OURS).write_bytes(line)

    assert _ops(journal.recent()) == ["one"]


def _moves(op: str, path: str, to: str, **by: Any) -> Entry:
    made = _entry(op, path=to, **by)
    return replace(made, steps=(Trace(kind="move", path=path, to=to, before="a" * 64, after="b" * 64),))


def test_what_is_recent_of_a_note_is_found_by_its_path_and_by_its_id(vault: Path) -> None:
    here, there = _journal(vault), _journal(vault, "there")
    fact = NoteFact(id="mem_n", path="01_Shallow/n.md", body="b")
    here.begin(replace(_entry("made", path=fact.path), notes=(fact,)))
    here.begin(_entry("other", minutes=1))
    there.begin(_moves("moved", fact.path, "02_Sediment/n.md", minutes=2))
    here.begin(replace(_entry("rated", minutes=3), steps=(), notes=(fact,)))
    here.begin(replace(_entry("many", minutes=4), steps=(), notes=(fact, replace(fact, id="mem_o"))))
    here.close("made", "done")

    found = here.recent_of(fact.path, "mem_n")

    assert [(entry.op, entry.state) for entry in found] == [("made", "done"), ("rated", "begin")]
    assert _ops(here.recent_of("02_Sediment/n.md", "mem_n")) == ["made", "moved", "rated"]
    assert _ops(here.recent_of("02_Sediment/n.md", "")) == ["moved"]
    assert here.recent_of("01_Shallow/none.md", "mem_none") == []


def test_what_is_not_recent_any_more_is_not_recent_of_its_note(vault: Path) -> None:
    journal = _journal(vault)
    names = [f"01_Shallow/{number % 7}.md" for number in range(RECENT + 9)]
    made = [_entry(f"op{n}", path=name, after=f"{n:064x}", minutes=n) for n, name in enumerate(names)]
    (vault / OURS).parent.mkdir(parents=True)
    (vault / OURS).write_bytes(b"".join(to_line(to_record(entry)) for entry in made))

    found = {name: journal.recent_of(name, f"mem_{name}") for name in set(names)}

    expected = {name: [entry for entry in journal.recent() if entry.notes[0].path == name] for name in found}
    assert found == expected
    assert not journal.wrote_lately(f"{8:064x}")
    assert journal.wrote_lately(f"{9:064x}")


def test_a_line_that_came_in_halves_wrote_its_bytes_once(vault: Path) -> None:
    journal = _journal(vault)
    lines = [to_line(to_record(_entry(f"op{n}", after=f"{n:064x}", minutes=n))) for n in range(RECENT)]
    (vault / OURS).parent.mkdir(parents=True)
    (vault / OURS).write_bytes(lines[0][:-1])
    assert _ops(journal.recent_of("01_Shallow/a.md", "")) == ["op0"]

    (vault / OURS).write_bytes(b"".join(lines))
    before = journal.wrote_lately(f"{0:064x}")
    journal.begin(_entry("late", after="e" * 64, minutes=RECENT))

    assert (before, journal.wrote_lately(f"{0:064x}")) == (True, False)
    assert _ops(journal.recent_of("01_Shallow/a.md", ""))[0] == "op1"


def test_another_machine_s_open_operation_is_reported_and_left(vault: Path) -> None:
    """RC-11"""
    _journal(vault, "there").begin(_entry("one"))
    seen = everything(vault)
    journal = _journal(vault)

    assert journal.unfinished() == []
    assert [(entry.op, entry.machine) for entry in journal.elsewhere()] == [("one", "there")]
    assert [problem.code for problem in journal.problems()] == ["open_elsewhere"]
    assert everything(vault) == seen


def test_a_conflict_copy_is_no_journal(vault: Path) -> None:
    """RC-11"""
    _journal(vault).begin(_entry("one"))
    copy = vault / "_System" / "journal" / "here.sync-conflict-20250102-030405-ABCDEFG.jsonl"
    copy.write_bytes(NEXT)
    journal = _journal(vault)

    assert _ops(journal.entries()) == ["one"]
    assert [(problem.code, problem.path) for problem in journal.problems()] == [
        ("conflict_copy", f"_System/journal/{copy.name}")
    ]


def test_a_time_without_a_zone_counts_as_utc(vault: Path) -> None:
    (vault / "_System" / "journal").mkdir()
    (vault / OURS).write_bytes(b'{"v":1,"op":"x","at":"2026-11-30T12:00:00","state":"begin"}\n')

    (entry,) = _journal(vault).unfinished()

    assert entry.at == datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_closing_what_nobody_began_is_no_harm(vault: Path) -> None:
    journal = _journal(vault)
    journal.begin(_entry("one"))
    journal.close("other", "done")

    assert _ops(journal.unfinished()) == ["one"]
    assert _ops(journal.entries()) == ["one"]


# -- forgetting ---------------------------------------------------------------------------------------------


def test_forgetting_takes_every_mention_of_a_note_out(vault: Path) -> None:
    """RC-11: SPEC §5, `forget`."""
    journal = _journal(vault)
    journal.begin(_entry("one", path="01_Shallow/secret.md"))
    journal.close("one", "done")
    journal.begin(_entry("two", path="01_Shallow/other.md"))
    _journal_append(vault, b"half a line about secret.md\n")
    (vault / "_System/journal/here.torn-12345678").write_bytes(b"secret.md")

    changed = journal.forget({"01_Shallow/secret.md"}, {"mem_01_Shallow/secret.md"})

    assert changed == 2
    for place in (vault / "_System" / "journal").iterdir():
        assert b"secret" not in place.read_bytes()
    assert _ops(journal.unfinished()) == ["two"]
    assert journal.last_known("mem_01_Shallow/secret.md") is None
    assert _ops(journal.entries()) == ["one", "two"]
    assert stat.S_IMODE((vault / OURS).stat().st_mode) == 0o600


def test_forgetting_what_nobody_mentions_changes_nothing(vault: Path) -> None:
    journal = _journal(vault)
    assert journal.forget({"01_Shallow/x.md"}, set()) == 0
    journal.begin(_entry("one"))
    seen = everything(vault)

    assert journal.forget({"01_Shallow/x.md"}, {"mem_x"}) == 0
    assert everything(vault) == seen


# -- Sediment Palace ----------------------------------------------------------------------------------------


def test_what_sediment_palace_left_open_is_shown_and_never_touched(vault: Path) -> None:
    def event(op: str, state: str, operation: str = "write_memory", payload: object = None) -> str:
        return json.dumps(
            {"timestamp": "", "operation_id": op, "operation": operation, "state": state, "payload": payload}
        )

    log = vault / "_System" / "journal.log"
    log.write_text(
        "\n".join(
            [
                event("a", "started"),
                event("a", "completed"),
                event("b", "started", "move_file", {"source": "01_Shallow/b.md"}),
                "",
                "{",
                "[]",
            ]
        )
    )
    seen = everything(vault)

    (old,) = old_operations(Vault(vault))

    assert (old.op, old.verb, old.path, old.line) == ("b", "move_file", "01_Shallow/b.md", 3)
    problem = old.problem
    assert (problem.code, problem.path, problem.line) == ("old_operation_open", "_System/journal.log", 3)
    assert "move_file of 01_Shallow/b.md" in problem.message
    assert problem in _journal(vault).problems()
    assert everything(vault) == seen


def test_what_a_reason_or_a_detail_says_of_a_forgotten_note_goes(vault: Path) -> None:
    journal = _journal(vault)
    journal.begin(replace(_entry("one"), why="instead of Ledger"))
    journal.close("one", "superseded", "Left as a person changed it: 01_Shallow/Ledger.md.")
    journal.begin(replace(_entry("two", minutes=1), why="Ledgers are kept"))

    journal.forget({"01_Shallow/Ledger.md"}, {"mem_x"}, re.compile(r"\bLedger\b"))

    assert [(entry.op, entry.why, entry.detail) for entry in _journal(vault).entries()] == [
        ("one", "", ""),
        ("two", "Ledgers are kept", ""),
    ]
    assert b"Ledger." not in (vault / OURS).read_bytes()
