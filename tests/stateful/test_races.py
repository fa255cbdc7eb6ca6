"""What happens between two lines of a call: another process, a person or a missing disk in the gap.

Each test opens the gap by hand, at the place where the storm of processes once found it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.storage.killpoints import Aborted, LastingFuse, lit
from tests.storage.palace import House, operation, pen
from vault_palace.core.errors import Conflict, NotFound, VaultError
from vault_palace.services.house import machine_id
from vault_palace.services.palace import Palace
from vault_palace.storage import files
from vault_palace.storage.lock import WriteLock
from vault_palace.storage.operations import Step, carry_out, recover
from vault_palace.storage.vault import Vault

Note = Callable[..., Path]


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    """Let *act* happen once, just before the next call of `owner.name`."""
    call = getattr(owner, name)

    def wrapped(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(owner, name, call)
        act()
        return call(*args, **more)

    monkeypatch.setattr(owner, name, wrapped)


def after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    """Let *act* happen once, just after the next call of `owner.name`."""
    call = getattr(owner, name)

    def wrapped(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(owner, name, call)
        result = call(*args, **more)
        act()
        return result

    monkeypatch.setattr(owner, name, wrapped)


def names(vault: Path) -> list[str]:
    return sorted(place.name for place in vault.glob("0*/**/*.md"))


# -- a vault that goes away while the server runs ------------------------------------------------------------

CALLS: dict[str, Callable[[Palace], object]] = {
    "write": lambda palace: palace.write("more", title="More"),
    "read": lambda palace: palace.read(path="01_Shallow/Pump.md"),
    "read by title": lambda palace: palace.read(title="Pump"),
    "search": lambda palace: palace.search("water"),
    "map": lambda palace: palace.update_map("add_link", "[[Pump]]"),
    "metabolize": lambda palace: palace.metabolize(confirm=True),
    "recover": lambda palace: palace.recover(),
}


@pytest.mark.parametrize("stays", [False, True], ids=["no folder", "empty folder"])
@pytest.mark.parametrize("verb", CALLS)
def test_nothing_is_made_or_told_where_a_vault_used_to_be(
    palace: Palace, vault: Path, tmp_path: Path, verb: str, stays: bool
) -> None:
    """SPEC §6.5: a vanished mount; what it leaves is an empty folder or none."""
    palace.write("water", title="Pump")
    vault.rename(tmp_path / "away")
    if stays:
        vault.mkdir()

    with pytest.raises(NotFound, match=r"not at|no folder|does not exist"):
        CALLS[verb](palace)

    assert list(vault.iterdir() if stays else tmp_path.glob("vault")) == []
    if stays:
        vault.rmdir()
    (tmp_path / "away").rename(vault)
    assert palace.read(path="01_Shallow/Pump.md")["content"] == "water"
    assert palace.search("water")["total"] == 1


def test_a_vault_that_goes_while_the_lock_is_waited_for_is_not_made_anew(vault: Path, tmp_path: Path) -> None:
    (vault / ".palace").mkdir()
    (vault / ".palace/lock").write_text("1\nanother-host\n", encoding="utf-8")
    lock = WriteLock(Vault(vault), wait=lambda _seconds: os.rename(vault, tmp_path / "away"))

    with pytest.raises(NotFound):
        lock.acquire()

    assert not vault.exists()


def test_a_run_during_which_the_vault_goes_leaves_nothing_behind(
    palace: Palace, vault: Path, tmp_path: Path
) -> None:
    palace.write("water", title="Pump")

    palace.metabolize(confirm=True, progress=lambda *_: os.rename(vault, tmp_path / "away"))

    assert not vault.exists()
    (tmp_path / "away").rename(vault)


# -- one cache, several processes ----------------------------------------------------------------------------


def test_a_cache_deleted_under_a_running_server_is_filled_again(
    palace: Palace, tmp_path: Path, vault: Path
) -> None:
    for number in range(3):
        palace.write("water", title=f"Pump {number}")
    assert palace.search("water")["total"] == 3

    shutil.rmtree(tmp_path / "cache")

    assert palace.search("water")["total"] == 3


def test_what_another_process_made_of_the_cache_is_compared_with_the_disk_again(
    open_palace: OpenPalace,
) -> None:
    """A slow process may tell the cache something old after a quick one has told it something new."""
    one, other = open_palace(), open_palace()
    one.write("water", title="Pump")
    one.house.refresh(if_older=0)

    other.house.shelf.cache.remove("01_Shallow/Pump.md")
    one.house.refresh(if_older=0)

    assert one.search("water")["total"] == 1


def test_a_name_that_another_process_gave_is_known_after_a_refresh(open_palace: OpenPalace) -> None:
    one, other = open_palace(), open_palace()
    one.house.refresh(if_older=0)

    other.write("water", title="Pump")
    one.house.refresh(if_older=0)

    assert one.house.shelf.paths_named("Pump") == ["01_Shallow/Pump.md"]


def test_a_search_answers_what_is_known_while_another_process_holds_the_cache(
    palace: Palace, note: Note
) -> None:
    palace.write("water", title="Pump")
    cache = palace.house.shelf.cache
    cache._patience = 0.0
    note("01_Shallow/Newer.md", "water\n")
    palace.house.shelf._fresh_at = None
    holder = sqlite3.connect(cache.file, isolation_level=None)
    with contextlib.closing(holder):
        holder.execute("BEGIN IMMEDIATE")

        answer = palace.search("water")

    assert answer["total"] == 1
    assert "behind" in answer["note"]


# -- two processes at the same moment ------------------------------------------------------------------------


def test_two_processes_that_start_first_name_the_machine_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is begun under a name that is then lost would never be recovered."""
    state = tmp_path / "state"
    names: list[str] = []
    before(monkeypatch, files, "put", lambda: names.append(machine_id(state)))

    names.append(machine_id(state))

    assert names == [machine_id(state)] * 2
    assert [place.name for place in state.iterdir()] == ["machine-id"]


def test_a_name_taken_in_another_layer_while_one_writes_gets_a_number(
    open_palace: OpenPalace, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_palace(), open_palace()
    before(monkeypatch, one.house, "new_id", lambda: other.write("other", title="Pump", layer="sediment"))

    answer = one.write("one", title="Pump")

    assert answer["saved_path"] == "01_Shallow/Pump 2.md"
    assert names(vault) == ["Pump 2.md", "Pump.md"]


def test_a_name_taken_in_another_layer_while_one_renames_gets_a_number(
    open_palace: OpenPalace, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_palace(), open_palace()
    one.write("one", title="Engine")
    before(monkeypatch, one.house, "locked", lambda: other.write("other", title="Pump", layer="bedrock"))

    answer = one.move("01_Shallow/Engine.md", "shallow", new_path="Pump")

    assert answer["destination"] == "01_Shallow/Pump 2.md"
    assert names(vault) == ["Pump 2.md", "Pump.md"]


def test_reading_does_not_wait_for_a_writer_that_stands_still(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    """The use is written when the writer is done; a stopped process must not stop the readers."""
    note("01_Shallow/Pump.md", "water\n")
    held, done = threading.Event(), threading.Event()

    def stand_still() -> None:
        with WriteLock(Vault(vault)):
            held.set()
            done.wait(60)

    writer = threading.Thread(target=stand_still)
    reader = threading.Thread(target=lambda: [palace.read(path="01_Shallow/Pump.md") for _ in range(3)])
    writer.start()
    held.wait(60)

    reader.start()
    reader.join(20)  # one wait for the lock would take longer

    answered = not reader.is_alive()
    done.set()
    writer.join()
    reader.join()
    assert answered
    palace.close()
    assert "last_touched: 2031-03-01T12:00:00" in (vault / "01_Shallow/Pump.md").read_text(encoding="utf-8")


def test_another_machines_unfinished_write_keeps_its_temporary_file(tmp_path: Path) -> None:
    """Two machines on one shared folder: what the other one needs to recover is not swept away."""
    pen({"01_Shallow/a.md": b"old\n"})(tmp_path)
    there, here = House(tmp_path, "there"), House(tmp_path, "here")

    def blow(name: str) -> None:
        raise Aborted(name)

    for number in range(1, 100):
        step = Step(kind="put", path="01_Shallow/a.md", before=b"old\n", after=b"new\n")
        with lit(LastingFuse(number, blow)), contextlib.suppress(Aborted):
            carry_out(*there.parts, operation(step))
        if there.journal.unfinished():
            break

    recover(*here.parts)

    assert len(list(files.leftovers(tmp_path))) == 1
    assert [item.status for item in recover(*House(tmp_path, "there").parts)] == ["finished"]
    assert list(files.leftovers(tmp_path)) == []
    assert (tmp_path / "01_Shallow/a.md").read_bytes() == b"new\n"


# -- a person in the gap -------------------------------------------------------------------------------------


def test_the_answers_rev_is_of_what_was_written_and_not_of_what_a_person_saved_since(
    palace: Palace, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save() -> None:
        place = vault / "01_Shallow/Pump.md"
        place.write_text(place.read_text(encoding="utf-8") + "\nA person's words.\n", encoding="utf-8")

    after(monkeypatch, palace.house, "perform", save)

    answer = palace.write("water", title="Pump")

    with pytest.raises(Conflict):
        palace.write("anew", mode="replace", path="Pump", if_rev=answer["rev"])


@pytest.mark.parametrize("act", ["moved", "deleted", "spoilt"])
def test_a_write_is_acknowledged_whatever_a_person_does_to_the_note_at_once(
    palace: Palace, vault: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """An error for what was done would be answered by doing it twice."""
    place = vault / "01_Shallow/Pump.md"
    acts: dict[str, Callable[[], object]] = {
        "moved": lambda: place.rename(vault / "02_Sediment/Pump.md"),
        "deleted": place.unlink,
        "spoilt": lambda: place.write_bytes(b"---\ndensity: [1\n---\n\xff"),
    }
    after(monkeypatch, palace.house, "perform", acts[act])

    answer = palace.write("water", title="Pump")

    assert answer["saved_path"] == "01_Shallow/Pump.md"


def test_an_append_does_not_take_half_of_a_save_for_the_whole(
    palace: Palace, vault: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC §6.5: an editor writes in place; what it writes later would go to a file that nobody sees."""
    place = vault / "01_Shallow/Pump.md"

    def save(text: str) -> None:
        place.write_text(text, encoding="utf-8")
        os.utime(place, (clock.at.timestamp(), clock.at.timestamp()))

    save("first half\n")
    before(monkeypatch, clock, "sleep", lambda: save("first half\nsecond half\n"))
    object.__setattr__(palace.house.settings, "sleep", lambda seconds: clock.sleep(seconds))

    palace.write("agent", mode="append", path="Pump")

    assert place.read_text(encoding="utf-8").endswith("first half\nsecond half\n\nagent")


def test_a_put_is_done_when_a_person_renames_the_folder_right_after_the_swap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "room/a.md"
    place.parent.mkdir()
    place.write_bytes(b"old\n")
    staged = files.stage(place, b"new\n")
    before(monkeypatch, files, "sync_folder", lambda: place.parent.rename(tmp_path / "hall"))

    replaced = files.put(staged, place, expect=files.fingerprint(b"old\n"))

    assert replaced == b"old\n"
    assert (tmp_path / "hall/a.md").read_bytes() == b"new\n"
    assert list(files.leftovers(tmp_path)) == []


# -- a journal that is none ----------------------------------------------------------------------------------

ODD_JOURNALS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a link": lambda place: os.symlink("/dev/null", place),
}


@pytest.mark.parametrize("kind", ODD_JOURNALS)
def test_another_machines_journal_that_cannot_be_read_stops_nobody(
    palace: Palace, vault: Path, kind: str
) -> None:
    """On a shared folder the other machine's user may keep it to themselves."""
    palace.write("water", title="Pump")
    ODD_JOURNALS[kind](vault / "_System/journal/other.jsonl")

    palace.write("more water", mode="append", path="Pump")

    assert palace.read(path="01_Shallow/Pump.md")["content"].endswith("more water")
    assert "journal_unreadable" in {problem.code for problem in palace.check()}


@pytest.mark.parametrize("kind", ODD_JOURNALS)
def test_nothing_is_written_when_the_own_journal_cannot_be(palace: Palace, vault: Path, kind: str) -> None:
    saved = palace.write("water", title="Pump")["saved_path"]
    journal = next((vault / "_System/journal").glob("*.jsonl"))
    journal.unlink()
    ODD_JOURNALS[kind](journal)

    with pytest.raises(VaultError):
        palace.write("oil", title="Lamp")

    assert palace.read(path=saved)["content"] == "water"
    assert names(vault) == ["Pump.md"]
    assert list(files.leftovers(vault)) == []
