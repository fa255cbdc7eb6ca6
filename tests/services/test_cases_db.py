"""Failure cases of the index database (DB) as a caller meets them: never a note, never the start."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.storage.palace import as_person, let_in
from vault_palace.core import frontmatter
from vault_palace.core.errors import Conflict, VaultError
from vault_palace.services.palace import Palace, PalaceSettings

Note = Callable[..., Path]


def found(palace: Palace, query: str) -> list[str]:
    return sorted(match["path"] for match in palace.search(query, limit=100, max_tokens=200_000)["matches"])


def notes(root: Path) -> dict[str, bytes]:
    """Every file of the vault, the journal too, but for the machine's own state."""
    return {
        place: path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
        for place in [path.relative_to(root).as_posix()]
        if not place.startswith(".palace/")
    }


class Holder:
    """Another process that holds the write lock of the index database."""

    def __init__(self, file: Path) -> None:
        told, tell = os.pipe()
        wait, self._go = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._go)
            db = sqlite3.connect(file, isolation_level=None)
            db.execute("BEGIN IMMEDIATE")
            os.write(tell, b"x")
            os.read(wait, 1)
            db.execute("ROLLBACK")
            os._exit(0)
        os.close(tell)
        os.close(wait)
        assert os.read(told, 1) == b"x"
        os.close(told)

    def let_go(self) -> None:
        if self._pid:
            os.close(self._go)
            os.waitpid(self._pid, 0)
            self._pid = 0


@pytest.fixture
def busy(palace: Palace) -> Iterator[Holder]:
    """The palace with three notes, while another process holds its index database."""
    for number in range(3):
        palace.write(f"granite {number}", title=f"Sand {number}")
    holder = Holder(palace.house.shelf.file)
    yield holder
    holder.let_go()


# -- DB-01 --------------------------------------------------------------------------------------------------


def test_db_01_a_lock_held_for_a_while_only_delays(
    palace: Palace, busy: Holder, open_palace: OpenPalace, clock: Clock
) -> None:
    palace.house.shelf.cache._patience = 120
    clock.turn(days=9)
    begun = threading.Event()
    answers: list[list[str]] = []

    def work() -> None:
        begun.set()
        answers.append([palace.write("marble", title="New")["saved_path"]])
        answers.append(found(palace, "marble"))
        answers.append(palace.metabolize(confirm=True)["archived"])

    worker = threading.Thread(target=work)
    worker.start()
    assert begun.wait(60)
    second = open_palace(session="second")
    started = second.read(path="01_Shallow/Sand 1.md", touch=False)["content"]
    busy.let_go()
    worker.join(120)

    assert started == "granite 1"
    gone = [f"_Archive/01_Shallow/Sand {number}.md" for number in range(3)]
    assert answers == [["01_Shallow/New.md"], ["01_Shallow/New.md"], gone]
    assert palace.house.shelf.lag == ""
    assert found(second, "marble") == ["01_Shallow/New.md"]


def test_db_01_a_lock_held_for_long_costs_no_note_and_is_told(
    palace: Palace, busy: Holder, open_palace: OpenPalace, vault: Path, clock: Clock
) -> None:
    palace.house.shelf.cache._patience = 0.05
    clock.turn(days=9)

    saved = palace.write("marble", title="New")["saved_path"]
    appended = palace.write("basalt", mode="append", path="Sand 1")["saved_path"]
    rated = palace.rate(path="01_Shallow/Sand 2.md", density=0.6)
    second = open_palace(session="second")
    second.house.shelf.cache._patience = 0.05
    read = second.read(path=saved, touch=False)["content"]
    health = palace.health()
    searched = palace.search("granite")
    with pytest.raises(VaultError) as refused:
        palace.metabolize(confirm=True)

    assert (vault / saved).read_text(encoding="utf-8").endswith("marble")
    assert (vault / appended).read_text(encoding="utf-8").endswith("basalt")
    assert rated["after"]["density"] == 0.6
    assert read == "marble"
    assert health["status"] == "failing"
    assert health["index"]["state"] == "behind"
    assert len(searched["matches"]) == 3
    assert "behind" in searched["note"]
    assert refused.value.code == "lock_timeout"
    assert "notes are not affected" in str(refused.value)

    busy.let_go()
    assert found(palace, "marble") == [saved]  # nobody had to ask for it
    assert found(palace, "basalt") == [appended]
    assert palace.metabolize(confirm=True)["archived"] == ["_Archive/01_Shallow/Sand 0.md"]
    assert palace.health()["status"] == "ok"
    assert palace.house.shelf.facts()["state"] != "behind"


def test_db_01_a_search_of_what_is_known_needs_no_lock(
    palace: Palace, busy: Holder, open_palace: OpenPalace
) -> None:
    palace.house.shelf.cache._patience = 0.05

    assert len(found(palace, "granite")) == 3
    assert len(found(open_palace(session="second"), "granite")) == 3
    assert palace.status()["layers"]["shallow"] == 3
    assert palace.read(title="Sand 1", touch=False)["content"] == "granite 1"


# -- DB-02 --------------------------------------------------------------------------------------------------


def zeros(file: Path) -> None:
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = bytes(4096)
    file.write_bytes(data)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "mine.txt").write_text("mine", encoding="utf-8")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "zeros in the middle": zeros,
    "empty": lambda file: file.write_bytes(b""),
    "100 bytes": lambda file: os.truncate(file, 100),
    "half": lambda file: os.truncate(file, file.stat().st_size // 2),
    "text": lambda file: file.write_text("this is no database\n" * 500, encoding="utf-8"),
    "folder": a_folder,
    "deleted": lambda file: file.unlink(),
    "future version": lambda file: set_version(file, 99_999),
    "no version": lambda file: set_version(file, 0),
    "another program's": lambda file: another_program(file),
    "made half-way": lambda file: half_made(file),
}


def set_version(file: Path, version: int) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"PRAGMA user_version = {version}")
        db.commit()


def another_program(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)")
        db.execute("INSERT INTO notes (body) VALUES ('granite, says another program')")
        db.commit()


def half_made(file: Path) -> None:
    """As a making that was killed after its first statements."""
    with closing(sqlite3.connect(file)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in tables[len(tables) // 2 :]:
            try:
                db.execute(f'DROP TABLE "{name}"')
            except sqlite3.OperationalError:
                continue  # a part of the text index went with it
        db.commit()


@pytest.fixture
def filled(open_palace: OpenPalace, note: Note) -> tuple[Path, list[str]]:
    """A closed palace of sixty notes: the index's file, and what a search answers."""
    palace = open_palace()
    for number in range(60):
        note(
            f"01_Shallow/n{number:02}.md",
            f"granite {number} [[n{number // 2:02}]] " + f"filler{number} " * 50,
        )
    palace.write("granite", title="Ours")
    answer = found(palace, "granite")
    assert len(answer) == 61
    file = palace.house.shelf.file
    palace.close()
    for name in ("-wal", "-shm"):
        assert not Path(f"{file}{name}").exists()
    return file, answer


@pytest.mark.parametrize("kind", DAMAGE)
def test_db_02_and_04_a_file_that_cannot_be_used_costs_a_rebuild_only(
    open_palace: OpenPalace, vault: Path, filled: tuple[Path, list[str]], kind: str
) -> None:
    file, answer = filled
    before = notes(vault)
    was = file.read_bytes()
    DAMAGE[kind](file)
    os.utime(file, (1, 1)) if file.exists() else None

    palace = open_palace()
    after = found(palace, "granite")
    health = palace.health()

    assert after == answer
    assert health["status"] == "ok"
    assert palace.read(title="n07", touch=False)["backlinks"] == ["01_Shallow/n14.md", "01_Shallow/n15.md"]
    assert notes(vault) == before
    if kind not in ("deleted", "zeros in the middle"):
        assert health["index"]["state"] == "rebuilt"
        assert health["index"]["reason"]
        aside = [path for path in file.parent.iterdir() if path.name != file.name and "bad" in path.name]
        assert aside, "the old file is set aside, not deleted"
        if kind == "folder":
            assert (aside[0] / "mine.txt").read_text(encoding="utf-8") == "mine"
    assert was  # notes and index alone hold nothing that the other lacks


@pytest.mark.parametrize("kind", [kind for kind in DAMAGE if kind != "folder"])
def test_db_02_damage_under_a_running_palace_is_mended_from_the_notes(
    open_palace: OpenPalace, vault: Path, filled: tuple[Path, list[str]], kind: str
) -> None:
    file, answer = filled
    palace = open_palace()
    assert found(palace, "granite") == answer
    DAMAGE[kind](file)

    palace.house.refresh(if_older=0)
    saved = palace.write("marble", title="New")["saved_path"]

    assert found(palace, "granite") == answer
    assert found(palace, "marble") == [saved]
    assert palace.health()["status"] == "ok"


@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_db_02_a_file_without_permission_stops_neither_start_nor_writing(
    tmp_path: Path, clock: Clock, mode: int
) -> None:
    root = tmp_path / "base/vault"
    (root / "01_Shallow").mkdir(parents=True)
    (root / "_System").mkdir()
    (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    let_in(root)
    if os.geteuid() == 0:
        for place in (root.parent, *root.parent.rglob("*")):
            os.chown(place, 65534, 65534)
    settings = PalaceSettings(
        cache_dir=root.parent / "cache", state_dir=root.parent / "state", clock=clock, sleep=clock.sleep
    )

    def person() -> None:
        with Palace.open(root, settings=settings) as palace:
            palace.write("granite", title="Sand")
            file = palace.house.shelf.file
        file.chmod(mode)

        with Palace.open(root, settings=settings) as palace:
            palace.write("marble", title="New")
            assert found(palace, "granite") == ["01_Shallow/Sand.md"]
            assert found(palace, "marble") == ["01_Shallow/New.md"]
            assert palace.check() == []
            assert palace.health()["index"]["reason"]

    as_person(person)


# -- DB-04 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["future version", "text", "deleted", "made half-way"])
def test_db_04_servers_that_start_at_once_on_an_old_index_all_answer_right(
    filled: tuple[Path, list[str]], vault: Path, tmp_path: Path, clock: Clock, kind: str
) -> None:
    file, answer = filled
    DAMAGE[kind](file)
    before = notes(vault)
    wait, go = os.pipe()
    children = []
    for number in range(6):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(go)
                os.read(wait, 1)
                settings = PalaceSettings(
                    cache_dir=tmp_path / "cache",
                    state_dir=tmp_path / "state",
                    session=f"s{number}",
                    clock=clock,
                    sleep=clock.sleep,
                )
                with Palace.open(vault, settings=settings) as palace:
                    assert found(palace, "granite") == answer
                    assert palace.check() == []
                code = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    os.close(wait)

    os.close(go)  # all at once
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

    assert codes == [0] * 6
    assert notes(vault) == before


def test_db_04_a_newer_program_beside_this_one_keeps_its_own_file(
    open_palace: OpenPalace, filled: tuple[Path, list[str]]
) -> None:
    file, answer = filled
    newer = file.with_name(file.name.replace("index-", "index-9"))
    newer.write_bytes(b"a newer program's index")

    palace = open_palace()
    palace.reindex()

    assert found(palace, "granite") == answer
    assert newer.read_bytes() == b"a newer program's index"


# -- DB-05 --------------------------------------------------------------------------------------------------

WILD = ("a_b", "axb", "100%", "1000", "plan", "plan-complete", "[x]", "it's", "a*", "_", "%")


@pytest.fixture
def wild(note: Note) -> None:
    for folder in ("L_1", "Lx1"):
        for name in WILD:
            end = "" if folder == "L_1" else " two"
            note(f"01_Shallow/{folder}/{name}{end}.md", f"---\nid: {folder}{name}\n---\ngranite\n")
    note("02_Sediment/L_1/Plan three.md", "---\naliases:\n  - Plan\n---\ngranite\n")


@pytest.mark.usefixtures("wild")
@pytest.mark.parametrize("name", WILD)
def test_db_05_every_verb_touches_its_namesake_only(palace: Palace, vault: Path, name: str) -> None:
    path = f"01_Shallow/L_1/{name}.md"
    before = notes(vault)

    assert palace.read(path=path, touch=False)["metadata"]["id"] == f"L_1{name}"
    assert palace.read(title=name, touch=False)["path"] == path
    assert palace.read(id=f"L_1{name}", touch=False)["path"] == path
    assert palace.rate(path=path, density=0.4)["path"] == path
    assert palace.rate(id=f"L_1{name}", density=0.3)["path"] == path
    assert palace.write("more", mode="append", path=path)["saved_path"] == path
    rev = palace.read(path=path, touch=False)["rev"]
    assert palace.write("other", mode="replace", path=path, if_rev=rev)["saved_path"] == path
    up = palace.move(path, "sediment")["destination"]
    assert up == f"02_Sediment/L_1/{name}.md"
    renamed = palace.move(up, "sediment", new_path="L_1/renamed")["destination"]
    assert renamed == "02_Sediment/L_1/renamed.md"
    away = palace.purge(renamed, confirm=True)["archived_to"]

    after = notes(vault)
    assert frontmatter.read(after.pop(away).decode()).values["id"] == f"L_1{name}"
    del before[path]
    changed = {place for place in {*before, *after} if before.get(place) != after.get(place)}
    assert {place for place in changed if not place.startswith("_System/journal/")} == set()


@pytest.mark.usefixtures("wild")
@pytest.mark.parametrize("folder", ["L_1", "Lx1"])
def test_db_05_a_room_lists_its_own_notes_only(palace: Palace, folder: str) -> None:
    answer = palace.search("granite", room=f"01_Shallow/{folder}", limit=100)

    assert len(answer["matches"]) == len(WILD)
    assert {match["path"].split("/")[1] for match in answer["matches"]} == {folder}


@pytest.mark.usefixtures("wild")
def test_db_05_names_that_differ_by_case_alone_are_told_apart_by_path(
    palace: Palace, vault: Path, note: Note
) -> None:
    note("03_Bedrock/Plan.md", "---\nid: capital\n---\nmarble\n")

    with pytest.raises(Conflict, match="Several notes"):
        palace.read(title="plan")

    assert palace.read(path="03_Bedrock/Plan.md", touch=False)["metadata"]["id"] == "capital"
    assert palace.read(path="01_Shallow/L_1/plan.md", touch=False)["metadata"]["id"] == "L_1plan"
    away = palace.purge("03_Bedrock/Plan.md", confirm=True)["archived_to"]
    assert palace.read(path=away, touch=False)["metadata"]["id"] == "capital"
    assert palace.read(path="01_Shallow/L_1/plan.md", touch=False)["metadata"]["id"] == "L_1plan"
