"""Forgetting erases a note from everything that is ours, and names what it cannot reach."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.test_kill_points import copy_of, opened
from tests.storage.killpoints import Stop, every_kill_point
from vault_palace.core.errors import Busy, NotFound, PathViolation, PolicyViolation
from vault_palace.core.model import MAP_NOTE
from vault_palace.services import deeds, journalnote, mapping
from vault_palace.services.palace import Palace

Note = Callable[..., Path]

SECRET = "The Zanzibar ledger"
WORDS = "Quixotic heliotrope balances"
POLICY = "---\ntimezone: UTC\nversions_keep_days: 100000\n---\n"


def held(base: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below *base* with its bytes, what is compressed also as it reads."""
    for place in sorted(base.rglob("*")):
        if place.is_file():
            data = place.read_bytes()
            yield place, data
            if place.suffix == ".z":
                yield place, zlib.decompress(data)


def mentions(base: Path, *words: str) -> list[str]:
    """The files below *base* in which one of *words* stands, whatever the case, in UTF-8, UTF-16 or JSON."""
    found = []
    forms = [
        form
        for word in words
        for form in (word.encode(), word.encode("utf-16-le"), json.dumps(word)[1:-1].encode())
    ]
    for place, data in held(base):
        named = any(word.lower() in place.name.lower() for word in words)
        if named or any(form.lower() in data.lower() for form in forms):
            found.append(place.relative_to(base).as_posix())
    return found


def in_database(file: Path) -> str:
    """Every value of every table, what is compressed as it reads."""
    found = []
    db = sqlite3.connect(file)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for row in db.execute(f'SELECT * FROM "{table}"'):
            for value in row:
                if isinstance(value, bytes):
                    with contextlib.suppress(zlib.error):
                        value = zlib.decompress(value)
                    value = value.decode("utf-8", "replace")
                found.append(str(value))
    db.close()
    return "\n".join(found)


def a_long_life(palace: Palace, clock: Clock) -> str:
    """A note that was written, grown, replaced, renamed, rated, archived and restored; its path."""
    palace.write(f"{WORDS} at first.", title=SECRET, density=0.4, tags=["money"])
    path = f"01_Shallow/{SECRET}.md"
    palace.write(f"{WORDS} again.", mode="append", path=path)
    rev = palace.read(path=path, touch=False)["rev"]
    palace.write(f"{WORDS} anew.", mode="replace", path=path, if_rev=rev)
    clock.turn(days=1)
    palace.read(path=path)
    palace.rate(path=path, density=0.9)
    palace.move(path, "shallow", new_path=f"room/{SECRET} of 1901")
    path = f"01_Shallow/room/{SECRET} of 1901.md"
    palace.purge(path, reason=f"{SECRET} is closed", confirm=True)
    palace.restore(f"_Archive/{path}")
    return path


@pytest.fixture(autouse=True)
def _policy(vault: Path) -> None:
    (vault / "_System/Policy.md").write_text(POLICY, encoding="utf-8")


def test_no_file_holds_a_word_of_a_forgotten_note(palace: Palace, tmp_path: Path, clock: Clock) -> None:
    palace.write("Another note stays.", title="Other")
    path = a_long_life(palace, clock)
    journalnote.renew(palace.house)
    assert len(mentions(tmp_path, WORDS)) > 5
    assert len(mentions(tmp_path, SECRET)) > 3

    answer = palace.forget(path, confirm=True)

    assert mentions(tmp_path, WORDS, SECRET, answer["id"]) == []
    assert answer["left"] == []
    assert answer["versions"] >= 7
    assert "Another note stays." in palace.read(title="Other")["content"]


def test_the_search_cache_is_a_new_file_without_it(palace: Palace, tmp_path: Path, clock: Clock) -> None:
    path = a_long_life(palace, clock)
    palace.write("Another note stays.", title="Other")

    palace.forget(path, confirm=True)

    (file,) = (tmp_path / "cache").rglob("index-*.sqlite3")
    held_there = in_database(file)
    assert "Other.md" in held_there
    assert "another" in held_there
    assert "heliotrop" not in held_there.lower()
    assert "zanzibar" not in held_there.lower()
    assert palace.search("heliotrope")["matches"] == []


def test_the_index_note_does_not_name_it_any_more(palace: Palace, note: Note, tmp_path: Path) -> None:
    note("PALACE_MAP.md", "# Map\n\nA person's line.\n")
    palace.write(WORDS, title=SECRET, density=0.9)
    palace.house.refresh(if_older=0)
    mapping.renew(palace.house)
    assert "vault/PALACE_MAP.md" in mentions(tmp_path, SECRET)

    palace.forget(SECRET, confirm=True)

    assert mentions(tmp_path, SECRET) == []
    assert "A person's line." in palace.read_map()["map"]


def test_a_cache_that_was_set_aside_goes_as_well(palace: Palace, tmp_path: Path, clock: Clock) -> None:
    path = a_long_life(palace, clock)
    (file,) = (tmp_path / "cache").rglob("index-*.sqlite3")
    file.with_name(f"{file.name}.bad-1").write_bytes(WORDS.encode())

    palace.forget(path, confirm=True)

    assert mentions(tmp_path, WORDS) == []


def test_a_note_in_the_archive_can_be_forgotten(palace: Palace, tmp_path: Path) -> None:
    palace.write(WORDS, title=SECRET)
    palace.purge(f"01_Shallow/{SECRET}.md", confirm=True)

    palace.forget(f"_Archive/01_Shallow/{SECRET}.md", confirm=True)

    assert mentions(tmp_path, WORDS, SECRET) == []


def test_a_note_that_a_person_deleted_can_be_forgotten(palace: Palace, vault: Path, tmp_path: Path) -> None:
    palace.write(WORDS, title=SECRET)
    (vault / f"01_Shallow/{SECRET}.md").unlink()

    palace.forget(SECRET, confirm=True)

    assert mentions(tmp_path, WORDS, SECRET) == []


def test_the_plain_version_that_a_person_wrote_goes_with_the_note(
    palace: Palace, note: Note, tmp_path: Path
) -> None:
    note(f"01_Shallow/{SECRET}.md", f"{WORDS}\n")
    palace.write("more", mode="append", path=SECRET)

    palace.forget(SECRET, confirm=True)

    assert mentions(tmp_path, WORDS, SECRET) == []


def test_half_written_files_of_the_note_go(palace: Palace, vault: Path, tmp_path: Path) -> None:
    palace.write(WORDS, title=SECRET)
    text = (vault / f"01_Shallow/{SECRET}.md").read_bytes()
    staged = vault / f"01_Shallow/.{SECRET}.md.0123456789abcdef.tmp"
    staged.write_bytes(text[:20])

    palace.forget(SECRET, confirm=True)

    assert mentions(tmp_path, WORDS, SECRET) == []
    assert not staged.exists()


def test_notes_that_link_to_it_stay_and_are_listed(palace: Palace, vault: Path, note: Note) -> None:
    palace.write(WORDS, title=SECRET)
    text = f"see [[{SECRET}]]\n"
    place = note("01_Shallow/Ref.md", text)

    answer = palace.forget(SECRET, confirm=True)

    assert place.read_text(encoding="utf-8") == text
    assert answer["links"] == ["01_Shallow/Ref.md"]


@pytest.mark.parametrize("outside", [False, True])
def test_why_the_index_note_still_names_it_is_told(
    palace: Palace, vault: Path, note: Note, outside: bool
) -> None:
    palace.write(WORDS, title=SECRET)
    note("01_Shallow/Ref.md", f"see [[{SECRET}]]\n")
    place = note(MAP_NOTE, f"# Palace map\n\n{'About ' + SECRET if outside else 'Mine'}.\n")

    answer = palace.forget(SECRET, confirm=True)

    (why,) = [line for line in answer["left"] if line.startswith(MAP_NOTE)]
    assert SECRET in place.read_text(encoding="utf-8")
    assert ("outside the markers" in why) is outside
    assert ("links of other notes" in why) is not outside
    assert "at work" not in why


def test_an_index_note_whose_markers_are_broken_says_so(palace: Palace, vault: Path, note: Note) -> None:
    palace.write(WORDS, title=SECRET)
    note(MAP_NOTE, f"%% palace:begin %%\n[[{SECRET}]]\n")

    answer = palace.forget(SECRET, confirm=True)

    (why,) = [line for line in answer["left"] if line.startswith(MAP_NOTE)]
    assert "cannot be made anew" in why


def test_a_person_at_work_in_the_index_note_is_told_of(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    palace.write(WORDS, title=SECRET)
    place = note(MAP_NOTE, f"# Map\n\n%% palace:begin %%\n\n[[{SECRET}]]\n\n%% palace:end %%\n")
    os.utime(place, (clock().timestamp(), clock().timestamp()))

    answer = palace.forget(SECRET, confirm=True)

    (why,) = [line for line in answer["left"] if line.startswith(MAP_NOTE)]
    assert "at work in it" in why


def test_what_others_hold_is_listed_and_left(palace: Palace, vault: Path, note: Note) -> None:
    palace.write(WORDS, title=SECRET)
    known = palace.read(title=SECRET, touch=False)["metadata"]["id"]
    foreign = note("_System/journal/other.jsonl", json.dumps({"v": 1, "notes": [{"id": known}]}) + "\n")
    trash = note(f".trash/{SECRET}.md", WORDS)
    copy = note(f"01_Shallow/{SECRET}.sync-conflict-20310301-120000-ABCDEFG.md", WORDS)

    answer = palace.forget(SECRET, confirm=True)

    assert [line.partition(": ")[0] for line in answer["left"]] == [
        place.relative_to(vault).as_posix() for place in sorted((trash, copy, foreign))
    ]
    assert all(place.exists() for place in (foreign, trash, copy))


def test_the_cache_of_a_place_where_the_vault_was_before_is_named(palace: Palace, tmp_path: Path) -> None:
    palace.write(WORDS, title=SECRET)
    (file,) = (tmp_path / "cache").rglob("index-*.sqlite3")
    known = palace.read(title=SECRET, touch=False)["metadata"]["id"]
    other = tmp_path / "cache" / "0123456789abcdef" / file.name
    other.parent.mkdir()
    other.write_bytes(f"SQLite {known}".encode())

    answer = palace.forget(SECRET, confirm=True)

    assert answer["left"] == [
        f"{other}: the search cache of another place where this vault was, or a copy is; delete it"
    ]
    assert other.exists()


def test_a_keeper_that_finds_it_gone_does_not_name_it_again(palace: Palace, tmp_path: Path) -> None:
    palace.write(WORDS, title=SECRET)
    answer = palace.forget(SECRET, confirm=True)

    deeds.put_on_record(palace.house, "deleted", "deleted", path=answer["path"], id=answer["id"])

    assert mentions(tmp_path, SECRET, answer["id"]) == []


def test_what_is_said_of_it_elsewhere_in_the_journal_goes(palace: Palace, tmp_path: Path) -> None:
    palace.write(WORDS, title=SECRET)
    palace.write("x", title="Other")
    palace.purge("01_Shallow/Other.md", reason=f"said in {SECRET}", confirm=True)
    archived = tmp_path / "vault/_Archive/01_Shallow/Other.md"
    archived.write_text("---\nid: mem_other\n---\n", encoding="utf-8")

    palace.forget(SECRET, confirm=True)

    assert mentions(tmp_path / "vault/_System", SECRET) == []


def test_another_note_s_history_outlasts_it(palace: Palace) -> None:
    palace.write("one", title="Other")
    palace.write(WORDS, title=SECRET, supersedes="Other")

    palace.forget(SECRET, confirm=True)

    assert [one["verb"] for one in palace.history("Other")["operations"]] == ["write", "write"]


def test_without_confirmation_nothing_is_forgotten(palace: Palace, vault: Path) -> None:
    (vault / "_System/Policy.md").write_text(
        POLICY.replace("versions", "destructive_require_confirm: false\nversions"), encoding="utf-8"
    )
    palace.write(WORDS, title=SECRET)

    with pytest.raises(PolicyViolation):
        palace.forget(SECRET)

    assert (vault / f"01_Shallow/{SECRET}.md").exists()


@pytest.mark.parametrize("path", ["_System/Policy.md", "PALACE_MAP.md", "notes.md"])
def test_only_memories_are_forgotten(palace: Palace, vault: Path, note: Note, path: str) -> None:
    if not (vault / path).exists():
        note(path, "a person's\n")

    with pytest.raises(PathViolation):
        palace.forget(path, confirm=True)

    assert (vault / path).exists()


def test_a_note_that_nobody_knows_is_not_found(palace: Palace) -> None:
    with pytest.raises(NotFound):
        palace.forget("Nothing", confirm=True)


def test_nothing_is_forgotten_in_a_read_only_vault(open_palace: OpenPalace, vault: Path) -> None:
    open_palace().write(WORDS, title=SECRET)

    with pytest.raises(PolicyViolation):
        open_palace(read_only=True).forget(SECRET, confirm=True)

    assert (vault / f"01_Shallow/{SECRET}.md").exists()


def test_a_note_that_a_person_has_just_saved_is_busy(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write(WORDS, title=SECRET)
    place = vault / f"01_Shallow/{SECRET}.md"
    place.write_text(place.read_text(encoding="utf-8") + "more", encoding="utf-8")

    def save(seconds: float) -> None:
        """A person who saves again whenever somebody waits."""
        clock.sleep(seconds)
        os.utime(place, (clock().timestamp(), clock().timestamp()))

    save(0)
    palace.house.settings = replace(palace.house.settings, sleep=save)

    with pytest.raises(Busy):
        palace.forget(SECRET, confirm=True)

    assert place.exists()


# -- killed anywhere ----------------------------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one."""
    folder = Path("/dev/shm")
    if not os.access(folder, os.W_OK):
        yield tmp_path / "kills"
        return
    made = Path(tempfile.mkdtemp(dir=folder))
    yield made
    shutil.rmtree(made)


def test_a_killed_forgetting_is_finished_by_the_next(tmp_path: Path, memory: Path) -> None:
    """RC-03: by the same name, wherever the first run was killed."""
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
        (tmp_path / "vault" / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "vault/_System/Policy.md").write_text(POLICY, encoding="utf-8")
    path = f"01_Shallow/{SECRET}.md"
    with opened(tmp_path) as palace:
        palace.write("Another note stays.", title="Other")
        palace.write(WORDS, title=SECRET)
        palace.write("more", mode="append", path=path)
        journalnote.renew(palace.house)

    shutil.rmtree(tmp_path / "cache")  # that of the copies below is another, since they lie elsewhere
    (tmp_path / "cache").mkdir()

    def act(root: Path) -> None:
        with opened(root) as palace:
            palace.forget(path, confirm=True)

    def check(root: Path, stop: Stop | None) -> None:
        with contextlib.suppress(NotFound):
            act(root)
        assert mentions(root, WORDS, SECRET) == [], stop
        with opened(root) as palace:
            assert "Another note stays." in palace.read(title="Other", touch=False)["content"]
            assert palace.recover()["unresolved_count"] == 0

    stops = every_kill_point(memory, copy_of(tmp_path), act, check, modes=("before",))

    assert stops > 20
