"""Index cases: a busy, damaged, foreign or old cache costs a rebuild, never a note and never the start."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.index.notes_by_hand import a_note
from vault_palace.core.changes import Mark, compare
from vault_palace.index import engine
from vault_palace.index.cache import Cache, CacheBusy, CacheLost, CacheTrouble, IndexedNote, place_for
from vault_palace.index.graph import Graph
from vault_palace.index.search import search

NOTES = {
    note.path: note
    for note in [
        *(
            a_note(f"01_Shallow/n{n:02d}.md", f"zebra number{n} " + f"filler{n} " * 300, links=["n00"])
            for n in range(40)
        ),
        a_note("02_Sediment/ideas/quagga.md", "quagga"),
    ]
}


def _refresh(cache: Cache) -> int:
    """What the service does: compare marks with the disk, put what differs. Returns how much did."""
    changes = compare(cache.marks(), {path: note.mark for path, note in NOTES.items()})
    with cache.batch():
        for path in (*changes.added, *changes.modified):
            cache.put(NOTES[path])
        for path in changes.removed:
            cache.remove(path)
    return len(changes.added) + len(changes.modified) + len(changes.removed)


def _answers(cache: Cache) -> object:
    hits = search(cache, "zebra quagga number7", limit=100)
    return [(hit.path, round(hit.score, 9)) for hit in hits.hits], Graph(cache).counts()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "index.sqlite3"


@pytest.fixture
def right(file: Path) -> object:
    """A filled, closed cache in *file*, and what it answers."""
    with Cache.open(file, "v") as cache:
        _refresh(cache)
        return _answers(cache)


@pytest.fixture
def holder(file: Path, right: object) -> Iterator[sqlite3.Connection]:
    """Another program that holds the write lock until it is told otherwise."""
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


# --- DB-01 ---


def test_db_01_a_lock_held_for_a_while_only_delays(file: Path, holder: sqlite3.Connection) -> None:
    done = threading.Event()
    with Cache.open(file, "v", patience=60) as cache:

        def write() -> None:
            cache.put(a_note("01_Shallow/new.md", "okapi"))
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        early = done.is_set()
        holder.execute("ROLLBACK")
        writer.join()

        assert not early
        assert search(cache, "okapi").total == 1


def test_db_01_a_lock_held_for_long_is_a_clear_error_and_is_caught_up_with(
    file: Path, holder: sqlite3.Connection, right: object
) -> None:
    with Cache.open(file, "v", patience=0.05) as cache:
        with pytest.raises(CacheBusy) as caught:
            cache.put(a_note("01_Shallow/n00.md", "okapi", mark=Mark(9, 9, 9)))
        with pytest.raises(CacheBusy):
            _refresh(cache)
        during = _answers(cache)
        holder.execute("ROLLBACK")

        changed = compare(cache.marks(), {path: note.mark for path, note in NOTES.items()})
        cache.put(a_note("01_Shallow/n00.md", "okapi", mark=Mark(9, 9, 9)))

        assert caught.value.code == "lock_timeout"
        assert "not affected" in str(caught.value)
        assert during == right
        assert not changed  # the failed put left the old mark: a changed note would differ from it
        assert search(cache, "okapi").total == 1


def test_db_01_who_waited_in_vain_does_not_wait_as_long_again(
    file: Path, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("vault_palace.index.engine.wait_at_most", lambda _db, seconds: waits.append(seconds))
    with Cache.open(file, "v", patience=0.3) as cache:
        for _ in range(2):
            with pytest.raises(CacheBusy):
                cache.remove("x")
        holder.execute("ROLLBACK")
        for _ in range(2):
            cache.remove("x")

    assert waits == [0.3, 0.1, 0.1, 0.3]


def test_db_01_a_second_server_starts_while_the_lock_is_held(
    file: Path, holder: sqlite3.Connection, right: object
) -> None:
    with Cache.open(file, "v", patience=0.05) as cache:
        assert not cache.rebuilt
        assert _answers(cache) == right


def test_db_01_a_batch_of_this_process_does_not_stop_its_readers(file: Path, right: object) -> None:
    with Cache.open(file, "v") as cache, cache.batch():
        cache.clear()
        seen: list[object] = []
        reader = threading.Thread(target=lambda: seen.append(_answers(cache)))
        reader.start()
        reader.join()

        assert seen == [right]


# --- DB-02 ---


def _touched(file: Path) -> None:
    """Whoever overwrites a file changes its time; made certain, so that no timer tick decides."""
    stat = file.stat()
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


def _truncate(share: Callable[[int], int]) -> Callable[[Path], None]:
    def act(file: Path) -> None:
        os.truncate(file, share(file.stat().st_size))

    return act


def _text(file: Path) -> None:
    file.write_text("this is no database\n" * 1000)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "something.txt").write_text("of somebody")


def _other_program(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE recipes(name)")
    db.close()


def _version(number: int) -> Callable[[Path], None]:
    def act(file: Path) -> None:
        db = sqlite3.connect(file)
        db.execute(f"PRAGMA user_version = {number}")
        db.close()

    return act


def _statement(statement: str) -> Callable[[Path], None]:
    def act(file: Path) -> None:
        db = sqlite3.connect(file)
        db.execute(statement)
        db.commit()
        db.close()

    return act


SPOILT = {
    "empty": _truncate(lambda _size: 0),
    "100 bytes": _truncate(lambda _size: 100),
    "half": _truncate(lambda size: size // 2),
    "half a page less": _truncate(lambda size: size - 2048),
    "text": _text,
    "folder": _folder,
    "another program's": _other_program,
    "older version": _version(0),
    "future version": _version(99),
    "no vault": _statement("DELETE FROM meta"),
    "another vault": _statement("UPDATE meta SET value = 'other'"),
    "no meta table": _statement("DROP TABLE meta"),
    "half upgraded": _statement("PRAGMA application_id = 0"),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_db_02_and_04_a_file_that_cannot_be_used_is_set_aside_and_made_anew(
    file: Path, right: object, spoil: Callable[[Path], None]
) -> None:
    spoil(file)
    if file.is_file():
        _touched(file)

    with Cache.open(file, "v") as cache:
        assert cache.rebuilt
        assert cache.reason
        assert search(cache, "zebra").total == 0
        assert _refresh(cache) == len(NOTES)
        assert _answers(cache) == right
        assert cache.troubles() == ()
    assert (file.parent / f"{file.name}.bad-1").exists()
    with Cache.open(file, "v") as cache:
        assert not cache.rebuilt
        assert _answers(cache) == right


@pytest.mark.parametrize("share", [n / 24 for n in range(24)])
@pytest.mark.parametrize("shift", [0, 2048])
def test_db_02_four_kilobytes_of_zeros_anywhere_never_make_answers_wrong(
    file: Path, right: object, share: float, shift: int
) -> None:
    size = file.stat().st_size
    at = int(size * share) // 4096 * 4096 + shift
    before = file.read_bytes()
    file.write_bytes(before[:at] + bytes(min(4096, size - at)) + before[at + 4096 :])
    _touched(file)

    with Cache.open(file, "v") as cache:
        for _ in range(2):
            try:
                _refresh(cache)
                found = _answers(cache)
            except CacheLost:
                _refresh(cache)
                found = _answers(cache)

        assert found == right


def test_db_02_an_unreadable_file_is_set_aside(
    file: Path, right: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root reads everything, so the refusal of the first open is made up here."""
    refused = iter([True])
    connect = sqlite3.connect

    def opening(name: object, **settings: object) -> sqlite3.Connection:
        if str(name).endswith("index.sqlite3?mode=rw") and next(refused, False):
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return connect(name, **settings)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr("sqlite3.connect", opening)

    with Cache.open(file, "v") as cache:
        assert cache.rebuilt
        assert "could not be read" in cache.reason
        _refresh(cache)
        assert _answers(cache) == right
    assert (file.parent / f"{file.name}.bad-1").exists()


@pytest.mark.parametrize("obstacle", ["a file where the folder belongs", "a read-only folder"])
def test_db_02_without_a_place_for_the_file_the_cache_lives_in_memory(tmp_path: Path, obstacle: str) -> None:
    folder = tmp_path / "cache"
    folder.write_text("in the way") if obstacle.startswith("a file") else folder.symlink_to("/proc/nothing")

    with Cache.open(folder / "deep" / "index.sqlite3", "v") as cache:
        assert cache.rebuilt
        assert "memory" in cache.reason
        _refresh(cache)
        assert search(cache, "quagga").total == 1
        assert _refresh(cache) == 0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE packed SET words = x'00'",
        "UPDATE packed SET words = NULL",
        "UPDATE note SET data = '[1]'",
        "UPDATE note SET data = 'no json'",
        "UPDATE note SET memory = '[2]'",
        "UPDATE note SET layer = 'basalt'",
        "DELETE FROM packed",
        "DROP TABLE link",
        "DROP TABLE packed",
        "DROP TABLE note",
    ],
)
def test_db_02_damage_that_shows_later_is_an_error_once_and_then_mended(
    file: Path, right: object, damage: str
) -> None:
    with Cache.open(file, "v") as cache:
        _statement(damage)(file)

        def use() -> object:
            cache.put(a_note("01_Shallow/n00.md", "okapi", mark=Mark(9, 9, 9)))
            return _answers(cache), cache.notes()

        with pytest.raises(CacheLost, match="set aside"):
            use()
        assert cache.rebuilt
        assert _refresh(cache) == len(NOTES)
        assert _answers(cache) == right
    assert (file.parent / f"{file.name}.bad-1").exists()


def test_db_02_no_more_than_two_files_are_kept_aside(file: Path) -> None:
    for _ in range(4):
        Cache.open(file, "v").close()
        _text(file)
        _touched(file)
    Cache.open(file, "v").close()

    kept = sorted(entry.name for entry in file.parent.iterdir() if ".bad-" in entry.name)

    assert [name for name in kept if not name.endswith(("-wal", "-shm"))] == [
        f"{file.name}.bad-3",
        f"{file.name}.bad-4",
    ]


@pytest.mark.parametrize("whole_folder", [False, True])
def test_db_02_a_cache_that_is_deleted_while_in_use_is_made_anew(
    file: Path, right: object, whole_folder: bool
) -> None:
    with Cache.open(file, "v") as cache:
        search(cache, "zebra")
        for entry in file.parent.iterdir() if whole_folder else [file]:
            entry.unlink()
        if whole_folder:
            file.parent.rmdir()

        again = _refresh(cache)

        assert again == len(NOTES)
        assert cache.rebuilt
        assert _answers(cache) == right
        assert file.exists()


def test_db_02_two_processes_follow_when_one_makes_the_file_anew(file: Path, right: object) -> None:
    with Cache.open(file, "v") as one, Cache.open(file, "v") as two:
        search(two, "zebra")
        _statement("UPDATE packed SET words = x'00'")(file)
        with pytest.raises(CacheLost):
            search(one, "zebra")
        _refresh(one)

        assert _answers(two) == right
        assert not _refresh(two)


def test_db_02_a_full_disk_is_an_error_that_leaves_the_old_state(file: Path, right: object) -> None:
    with Cache.open(file, "v") as cache:
        with cache._transaction() as db:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
        cache._alive().execute(f"PRAGMA max_page_count = {pages}")

        with pytest.raises(CacheTrouble, match="full") as caught:
            cache.put(a_note("01_Shallow/big.md", " ".join(f"w{n}" for n in range(50_000))))

        assert not isinstance(caught.value, CacheLost)
        assert _answers(cache) == right


# --- DB-04 ---


def test_db_04_many_servers_that_upgrade_at_once_end_with_one_good_file(file: Path, right: object) -> None:
    _version(99)(file)
    barrier = threading.Barrier(6)
    caches: list[Cache] = []
    failures: list[BaseException] = []

    def start() -> None:
        try:
            barrier.wait()
            cache = Cache.open(file, "v", patience=60)
            caches.append(cache)
            _refresh(cache)
            assert _answers(cache) == right
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reasons = [cache.reason for cache in caches if "memory" in cache.reason]
    for cache in caches:
        cache.close()

    assert failures == []
    assert reasons == []
    assert len([entry for entry in file.parent.iterdir() if entry.name.endswith((".bad-1", ".bad-2"))]) == 1


def test_db_04_a_making_that_was_killed_at_any_statement_is_made_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill leaves what the engine had written: here, the file without what the last transaction did."""
    file.parent.mkdir()
    db = sqlite3.connect(file)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()

    with Cache.open(file, "v") as cache:
        assert cache.rebuilt
        assert cache.reason == "it was empty"
        assert _refresh(cache) == len(NOTES)


def test_db_04_versions_of_the_schema_never_share_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = place_for(tmp_path, "v")
    monkeypatch.setattr("vault_palace.index.sql.SCHEMA", 1_000)

    assert place_for(tmp_path, "v") != ours


# --- DB-05 ---

WILD = ["a_b", "axb", "100%", "1000", "plan", "plan-complete", "[x]", "it's", 'say "so"', "a*", "^x", "-x"]


@pytest.fixture
def wild(file: Path) -> Iterator[Cache]:
    with Cache.open(file, "v") as cache:
        for folder in ("L_1", "Lx1", "L%", "L"):
            for name in WILD:
                cache.put(a_note(f"01_Shallow/{folder}/{name}.md", "zebra", links=[f"{folder}/{name}"]))
        yield cache


@pytest.mark.parametrize("name", WILD)
def test_db_05_a_lookup_by_name_finds_its_namesakes_only(wild: Cache, name: str) -> None:
    assert {note.stem for note in wild.by_name(name)} == {name}
    found = wild.get(f"01_Shallow/L_1/{name}.md")
    assert found is not None
    assert found.path == f"01_Shallow/L_1/{name}.md"


@pytest.mark.parametrize("name", WILD)
def test_db_05_a_removal_takes_its_namesake_only(wild: Cache, name: str) -> None:
    before = set(wild.paths())

    wild.remove(f"01_Shallow/L_1/{name}.md")

    assert before - set(wild.paths()) == {f"01_Shallow/L_1/{name}.md"}
    assert search(wild, "zebra", limit=1).total == len(before) - 1


@pytest.mark.parametrize("folder", ["L_1", "Lx1", "L%", "L"])
def test_db_05_a_folder_lists_its_own_notes_only(wild: Cache, folder: str) -> None:
    hits = search(wild, "zebra", room=folder, limit=100).hits

    assert {hit.note.folder for hit in hits} == {f"01_Shallow/{folder}"}
    assert len(hits) == len(WILD)


@pytest.mark.parametrize("id", ["mem_1", "mem%1", "memx1"])
def test_db_05_an_id_finds_its_note_only(file: Path, id: str) -> None:
    with Cache.open(file, "v") as cache:
        for other in ("mem_1", "mem%1", "memx1"):
            cache.put(a_note(f"01_Shallow/{other}.md", id=other))

        assert [note.id for note in cache.by_id(id)] == [id]
        assert cache.by_id("") == ()


# --- DB-08, TM-08, FS-17 ---


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("DELETE FROM words_docsize WHERE id = 3", "search"),
        ("DELETE FROM packed WHERE note = 3", "without their words"),
        ("INSERT INTO packed VALUES (999, x'00')", "gone"),
        ("DELETE FROM note WHERE id = 3", "gone"),
        ("DELETE FROM file WHERE path = '01_Shallow/n03.md'", "no file"),
        ("INSERT INTO words(rowid, body) VALUES (999, 'ghost')", "ghosts"),
    ],
)
def test_db_08_the_check_finds_tables_that_do_not_fit_together(
    file: Path, right: object, damage: str, words: str
) -> None:
    with Cache.open(file, "v") as cache:
        sound = cache.troubles()
        _statement(damage)(file)

        found = cache.troubles()

        assert sound == ()
        assert any(words in trouble for trouble in found)


def test_tm_08_a_rebuilt_cache_answers_the_same_in_the_same_order(file: Path, right: object) -> None:
    """Nothing is kept of the moment of indexing: marks and dates are the files' and the notes' own."""
    with Cache.open(file, "v") as cache:
        before = (cache.all_memories(), cache.marks(), _answers(cache))
    file.unlink()

    with Cache.open(file, "v") as cache:
        for note in reversed(NOTES.values()):
            cache.put(note)

        assert (cache.all_memories(), cache.marks(), _answers(cache)) == before


def test_fs_17_a_changed_text_with_any_other_mark_is_found_after_the_next_comparison(file: Path) -> None:
    known: dict[str, IndexedNote] = {}
    with Cache.open(file, "v") as cache:
        for text, mark in (("aaaa", Mark(4, 7, 1, 1)), ("bbbb", Mark(4, 7, 1, 2))):
            note = a_note("01_Shallow/n.md", text, mark=mark)
            known[note.path] = note
            changes = compare(cache.marks(), {note.path: note.mark})
            for path in (*changes.added, *changes.modified):
                cache.put(known[path])

        assert search(cache, "aaaa").total == 0
        assert search(cache, "bbbb").total == 1


def test_db_04_who_opens_while_another_process_makes_the_file_anew_follows(
    file: Path, right: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cache.open(file, "v") as cache:
        real = engine.connect

        def connect(place: Path, patience: float) -> sqlite3.Connection:
            monkeypatch.setattr(engine, "connect", real)
            file.rename(file.with_name("aside"))  # seen after the look at the file, before it is opened
            return real(place, patience)

        monkeypatch.setattr(engine, "connect", connect)

        with pytest.raises(CacheLost, match="made again"):
            cache.marks()
        assert cache.marks() == {}
        _refresh(cache)

        assert _answers(cache) == right
