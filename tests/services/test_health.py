"""What is really wrong is told at once, and no longer than it lasts; what is odd in notes is only listed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.test_cases_db import Holder, zeros
from tests.services.test_cases_fs import fill, opened, small_disk
from tests.storage.palace import as_person
from vault_palace.services import health as health_module
from vault_palace.services import troubles, values
from vault_palace.services.health import SHOWN
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.services.running import Board, servers
from vault_palace.storage.lease import DURATION

Note = Callable[..., Path]
SECONDS = 60.0
HOLD = """
import sys
from pathlib import Path
from vault_palace.storage.lock import WriteLock
from vault_palace.storage.vault import find_palace
with WriteLock(find_palace(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def codes(palace: Palace, patience: float | None = None) -> set[str]:
    """The codes of what keeps the palace from working; a status of ok means none."""
    answer = palace.health(patience)
    wrong = {problem["code"] for problem in answer["problems"][: answer["fault_count"]]}
    assert (answer["status"] == "ok") == (not wrong)
    return wrong


@contextmanager
def holder(vault: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the write lock until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(vault)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_odd_notes_are_listed_and_make_nothing_fail(palace: Palace, note: Note) -> None:
    note("01_Shallow/bad.md", "---\na: 1\nb: c: d\n---\n[[Nowhere]]\n")

    answer = palace.health()

    assert (answer["status"], answer["fault_count"]) == ("ok", 0)
    assert {problem["code"] for problem in answer["problems"]} == {"bad_header", "unresolved_link"}
    assert answer["problem_count"] == 2


def test_health_counts_the_notes_by_layer(palace: Palace) -> None:
    palace.write("x", title="Sand")
    palace.write("y", title="Rock", layer="bedrock")
    palace.purge("01_Shallow/Sand.md", confirm=True)

    answer = palace.health()

    assert answer["layers"] == {"shallow": 0, "sediment": 0, "bedrock": 1, "archived": 1}
    assert (answer["index"]["notes"], answer["index"]["compared"]) == (3, "2031-03-01T12:00:00+00:00")


def test_a_lock_whose_owner_was_killed_is_a_fault_until_somebody_writes(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Sand")
    with holder(vault) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)

    found = codes(palace, 30.0)
    palace.write("y", title="Rock")

    assert found == {"lock_dead"}
    assert codes(palace) == set()


def test_an_empty_marker_of_the_lock_is_a_dead_one_s_after_a_while(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Sand")
    marker = vault / ".palace/lock"
    marker.touch()

    young = codes(palace)
    os.utime(marker, (1, 1))

    assert (young, codes(palace)) == (set(), {"lock_dead"})


def test_a_lock_that_is_held_for_a_moment_is_no_fault_and_costs_no_wait(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Sand")

    with holder(vault):
        assert codes(palace, 30.0) == set()


def test_a_lock_that_is_held_for_very_long_is_a_fault_until_it_is_free(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Sand")
    with holder(vault) as process:
        os.utime(vault / ".palace/lock", (time.time() - 600,) * 2)

        answer = palace.health(30.0)

        assert [one["code"] for one in answer["problems"]] == ["lock_held"]
        assert f"process {process.pid} on " in answer["problems"][0]["message"]
        process.communicate("", SECONDS)
    assert codes(palace) == set()


def test_a_lock_of_another_machine_is_judged_by_its_age_alone(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Sand")
    marker = vault / ".palace/lock"
    marker.write_bytes(b"1\nlaptop.example\n")

    young = codes(palace)
    os.utime(marker, (1, 1))

    assert (young, codes(palace)) == (set(), {"lock_held"})


def test_a_journal_that_cannot_be_read_is_a_fault_until_it_can(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Sand")
    journal = vault / palace.house.journal.path
    kept = journal.rename(journal.with_suffix(".aside"))
    journal.mkdir()

    found = codes(palace)
    journal.rmdir()
    kept.rename(journal)

    assert found == {"journal_unreadable"}
    assert codes(palace) == set()


RIGHTS: dict[str, tuple[str, int, str]] = {
    "vault": ("", 0o555, "not_writable"),
    "layer": ("01_Shallow", 0o555, "not_writable"),
    "own state": (".palace", 0o555, "not_writable"),
    "journals": ("_System/journal", 0o555, "not_writable"),
    "journal": ("_System/journal/{machine}.jsonl", 0o000, "journal_unreadable"),
}


@pytest.mark.parametrize("place", RIGHTS)
def test_a_place_without_the_right_to_write_is_a_fault_until_it_has_it(
    palace: Palace, tmp_path: Path, clock: Clock, place: str
) -> None:
    palace.write("x", title="Sand")
    codes(palace)  # what is loaded on first use may lie where the person below may not read
    root = tmp_path / "base/vault"
    (root / "01_Shallow").mkdir(parents=True)
    (root / "_System").mkdir()
    (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    for above in (root, *root.parents):
        if "pytest-of-" in str(above):
            above.chmod(0o755)
    if os.geteuid() == 0:
        for below in (root.parent, *root.parent.rglob("*")):
            os.chown(below, 65534, 65534)
    path, mode, code = RIGHTS[place]

    def person() -> None:
        with opened(root.parent, root, clock) as palace:
            palace.write("x", title="Sand")
            shut = root / path.format(machine=palace.house.machine)
            before = shut.stat().st_mode
            shut.chmod(mode)

            found = codes(palace)
            shut.chmod(before)

            assert found == {code}
            assert codes(palace) == set()

    as_person(person)


def test_a_full_disk_is_a_fault_until_there_is_room(tmp_path: Path, clock: Clock) -> None:
    root = tmp_path / "disk"
    with small_disk(root):
        for folder in ("01_Shallow", "_System"):
            (root / folder).mkdir()
        (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
        with opened(tmp_path, root, clock) as palace:
            palace.write("x", title="Sand")
            ballast = fill(root, 0)

            answer = palace.health()
            ballast.unlink()

            assert [one["code"] for one in answer["problems"]] == ["not_writable"]
            assert "no space left" in answer["problems"][0]["message"]
            assert codes(palace) == set()


def test_a_read_only_disk_is_a_fault_until_it_can_be_written(tmp_path: Path, clock: Clock) -> None:
    root = tmp_path / "disk"
    with small_disk(root):
        for folder in ("01_Shallow", "_System"):
            (root / folder).mkdir()
        (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
        with opened(tmp_path, root, clock) as palace:
            palace.write("x", title="Sand")
            subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)

            found = codes(palace)
            subprocess.run(["mount", "-o", "remount,rw", str(root)], check=True)

            assert "not_writable" in found
            assert codes(palace) == set()


def test_a_vault_that_went_away_is_a_fault_until_it_is_back(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Sand")
    vault.rename(vault.with_name("away"))

    found = codes(palace)
    vault.with_name("away").rename(vault)

    assert found == {"not_found"}
    assert codes(palace) == set()


def test_a_vault_that_is_to_be_read_only_need_not_be_writable(
    open_palace: OpenPalace, palace: Palace, vault: Path
) -> None:
    palace.write("x", title="Sand")
    before = {path: path.stat().st_mtime_ns for path in vault.rglob("*")}

    answer = open_palace(read_only=True).health()

    assert (answer["status"], answer["mode"]) == ("ok", "read-only")
    assert {path: path.stat().st_mtime_ns for path in vault.rglob("*")} == before


def test_a_cache_that_another_process_holds_is_a_fault_until_it_lets_go(palace: Palace, note: Note) -> None:
    palace.write("granite", title="Sand")
    palace.house.shelf.cache._patience = 0.05
    busy = Holder(palace.house.shelf.file)
    note("01_Shallow/new.md", "marble\n")

    found = codes(palace, 30.0)
    busy.let_go()

    assert found & {"cache", "lock_timeout"}
    assert codes(palace) == set()
    assert palace.search("marble")["total"] == 1


def test_a_probe_finds_by_itself_that_the_cache_is_free_again(palace: Palace, note: Note) -> None:
    """Nobody has to search for it: /health asks nothing else."""
    palace.write("granite", title="Sand")
    palace.house.shelf.cache._patience = 0.05
    busy = Holder(palace.house.shelf.file)
    palace.write("marble", title="New")

    found = [fault.code for fault in health_module.faults(palace.house, 30.0)]
    busy.let_go()

    assert found == ["cache"]
    assert health_module.faults(palace.house, 30.0) == []


def test_a_cache_that_was_damaged_is_whole_again_when_health_is_asked(palace: Palace, note: Note) -> None:
    for number in range(60):
        note(f"01_Shallow/n{number:02}.md", f"granite {number} " + f"filler{number} " * 50)
    assert palace.health()["index"]["notes"] == 61  # with the policy
    zeros(palace.house.shelf.file)

    found = codes(palace)

    assert found == set()
    assert palace.search("granite", limit=100)["total"] == 60


def test_a_comparison_that_stands_still_is_a_fault(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    palace.write("x", title="Sand")
    monkeypatch.setattr(palace.house.shelf, "_progress", time.monotonic() - 600)

    found = [fault.code for fault in health_module.faults(palace.house, 30.0)]

    assert found == ["cache"]
    assert palace.house.shelf.state()["state"] == "behind"


def test_a_question_that_hangs_keeps_nobody_and_is_told_in_the_end(
    palace: Palace, monkeypatch: pytest.MonkeyPatch
) -> None:
    palace.write("x", title="Sand")
    assert codes(palace) == set()
    free, present = threading.Event(), palace.house.present
    monkeypatch.setattr(palace.house, "present", lambda: free.wait(SECONDS) and present())

    first = codes(palace, 0.05)  # a moment's silence is none
    monkeypatch.setattr(health_module, "HANGS", 0.0)
    second = codes(palace, 0.05)
    asked = [thread.name for thread in threading.enumerate() if thread.name.startswith("health-")]
    free.set()

    assert (first, second) == (set(), {"unresponsive"})
    assert sorted(asked) == sorted(set(asked)), "one thread for each question, however often it is asked"
    assert codes(palace, 30.0) == set()


def test_while_the_notes_are_looked_at_what_is_known_is_told_and_said_to_be_old(
    palace: Palace, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    note("01_Shallow/a.md", "[[Nowhere]]\n")
    first = palace.health(30.0)
    free, real = threading.Event(), palace.house.refresh

    def slow(if_older: float = 0) -> None:
        free.wait(SECONDS)
        real(if_older)

    monkeypatch.setattr(palace.house, "refresh", slow)
    note("01_Shallow/b.md", "[[Elsewhere]]\n")

    second = palace.health(0.2)
    free.set()
    third = palace.health(30.0)

    assert (first["note"], first["problem_count"]) == ("", 1)
    assert "still being looked at" in second["note"]
    assert (second["status"], second["problem_count"]) == ("ok", 1)
    assert (third["note"], third["problem_count"]) == ("", 2)


def test_only_notes_whose_problems_are_shown_are_read(
    palace: Palace, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3 * SHOWN):
        note(f"01_Shallow/n{number:03}.md", f"[[Nowhere {number}]]\n")
    palace.house.refresh(if_older=0)
    looked: list[str] = []
    real = palace.house.look

    def look(path: str) -> values.Note:
        looked.append(path)
        return real(path)

    monkeypatch.setattr(palace.house, "look", look)

    found = troubles.some(palace.house, SHOWN)

    assert (len(found.first), found.count) == (SHOWN, 3 * SHOWN)
    assert len(looked) == SHOWN


def test_a_keeper_that_stopped_is_a_fault_only_where_a_server_counts_on_it(
    palace: Palace, vault: Path
) -> None:
    palace.write("x", title="Sand")
    marker = vault / ".palace/keeper"
    marker.write_text("filelock/2\npid=1\nhost=laptop.example\nmode=lease\n", encoding="ascii")
    os.utime(marker, (time.time() - 3 * DURATION,) * 2)
    alone = codes(palace)
    board = Board(palace.house)
    board.put({"watch": {"mode": "off"}}, "now")

    found = codes(palace)
    marker.unlink()

    assert (alone, found) == (set(), {"keeper_gone"})
    assert codes(palace) == set()
    board.end()
    assert servers(palace.house) == []


WATCH = {
    "mode": "events",
    "keeper": True,
    "holder": "process 1 on a",
    "steps": 1,
    "trouble": "",
    "asked": "auto",
}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"mode": "polling"}, None),  # that is what auto is for
        ({"mode": "polling", "asked": "poll"}, None),
        ({"mode": "polling", "asked": "events"}, "watch_polls"),
        ({"trouble": "OSError: gone"}, "watch_trouble"),
        ({"lag": 599}, None),
        ({"lag": 600}, "keeper_behind"),
        ({"unkept": 11}, None),
        ({"unkept": 12}, "keeper_gone"),
    ],
)
def test_what_the_watcher_says_of_itself_is_judged(
    palace: Palace, changes: dict[str, object], code: str | None
) -> None:
    palace.house.watcher = lambda: {**WATCH, **changes}

    assert codes(palace) == ({code} if code else set())


def test_no_state_folder_means_no_notices_and_no_harm(vault: Path, tmp_path: Path, clock: Clock) -> None:
    with Palace.open(vault, settings=PalaceSettings(cache_dir=tmp_path / "cache", clock=clock)) as palace:
        board = Board(palace.house)

        assert board.put({}, "now") is False
        assert servers(palace.house) == []
        board.end()
