"""The watcher hears of what matters and of nothing else, keeps by lease, and rests while nothing happens."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.storage.palace import as_person, everything
from tests.surfaces.watching import PATIENCE, Hands, Recorder, Said, house, policy, run_for
from vault_palace.core.errors import StorageFailed
from vault_palace.services.house import House
from vault_palace.storage import mounts
from vault_palace.storage.lease import Lease
from vault_palace.surfaces import ears, watcher
from vault_palace.surfaces.watcher import TICK, Watch

Note = Callable[..., Path]
Start = Callable[..., Watch]


@pytest.fixture
def keeper() -> Recorder:
    return Recorder()


@pytest.fixture
def said() -> Said:
    return Said()


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def at_home(vault: Path, tmp_path: Path) -> Iterator[House]:
    policy(vault)
    opened = house(vault, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def start(at_home: House, keeper: Recorder, said: Said) -> Iterator[Start]:
    """Start a watcher with a thread of its own, and wait until it watches."""
    started: list[Watch] = []

    def begin(root: House = at_home, **more: Any) -> Watch:
        watch = Watch(root, tell=said, patience=0.0, **{"keeper": keeper, **more})
        started.append(watch)
        watch.start()
        assert watch.ready.wait(PATIENCE)
        return watch

    yield begin
    for watch in started:
        watch.stop()


@pytest.fixture
def by_hand(at_home: House, keeper: Recorder, said: Said, hands: Hands) -> Iterator[Start]:
    """A watcher without a thread: the test turns it, on the test's own clock."""
    made: list[Watch] = []

    def make(root: House = at_home, **more: Any) -> Watch:
        made.append(Watch(root, tell=said, clock=hands, **{"keeper": keeper, **more}))
        return made[-1]

    yield make
    for watch in made:
        watch.stop()


def known(keeper: Recorder) -> set[str]:
    """The memories that the cache knows now."""
    assert keeper.house is not None
    return {path for path in keeper.house.shelf.cache.paths() if path.startswith("01_Shallow/")}


# -- what matters --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "wakes"),
    [
        ("01_Shallow/Pump.md", True),
        ("01_Shallow/ideas", True),
        ("01_Shallow/ideas/drawing.png", True),
        ("PALACE_MAP.md", True),
        ("_System/Policy.md", True),
        ("_System/journal/other.jsonl", True),
        ("Насос 水.md", True),
        (".obsidian/workspace.json", True),
        (".obsidian/workspace-mobile.json", True),
        (".obsidian/app.json", False),
        (".obsidian/plugins/x/workspace.json", False),
        (".obsidian", False),
        (".palace/lock", False),
        (".git/index", False),
        (".trash/Pump.md", False),
        (".OBSIDIANTEST", False),
        ("node_modules/x/README.md", False),
        ("01_Shallow/node_modules", False),
        ("01_Shallow/.Pump.md.0a1b.tmp", False),
        ("01_Shallow/Pump.md.tmp", False),
        ("01_Shallow/.Pump.md.swp", False),
        ("01_Shallow/Pump.md~", False),
        ("01_Shallow/.syncthing.Pump.md.tmp", False),
        ("01_Shallow/~syncthing~Pump.md.tmp", False),
        ("01_Shallow/Pump.md.crdownload", False),
    ],
)
def test_only_what_may_mean_something_wakes(path: str, wakes: bool) -> None:
    assert ears.matters(path) is wakes


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:20 / /proc rw - proc proc rw
24 22 0:31 / /home/ada/My\\040notes rw - nfs4 box:/notes rw
25 22 0:32 / /mnt/share rw - cifs //box/share rw
26 25 0:33 / /mnt/share/ram rw - tmpfs tmpfs rw
27 22 0:34 / /mnt/key rw - fuse.sshfs box: rw
odd
"""


@pytest.mark.parametrize(
    ("root", "kind"),
    [
        ("/home/ada/vault", ""),
        ("/home/ada/My notes/vault", "nfs4"),
        ("/home/ada/My notesbook", ""),
        ("/mnt/share", "cifs"),
        ("/mnt/share/ram/vault", ""),
        ("/mnt/key/vault", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_known_by_the_table_of_mounts(root: str, kind: str) -> None:
    assert mounts.remote_system(Path(root), lambda: MOUNTS) == kind


def test_where_there_is_no_table_of_mounts_every_folder_counts_as_local() -> None:
    def missing() -> str:
        raise FileNotFoundError

    assert mounts.remote_system(Path("/vault"), missing) == ""


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EMFILE, "Too many open files"), True),
        (OSError('OS file watch limit reached. about ["/vault"]'), True),
        (RuntimeError("error creating recommended watcher: No space left on device (os error 28)"), True),
        (OSError(errno.EIO, "Input/output error"), False),
        (FileNotFoundError("No path was found."), False),
    ],
)
def test_a_limit_of_the_system_is_told_from_other_errors(error: Exception, limit: bool) -> None:
    assert ears.is_limit(error) is limit


# -- real files, real events ---------------------------------------------------------------------------------


def test_a_person_s_save_reaches_the_keeper_and_the_search(
    vault: Path, start: Start, keeper: Recorder
) -> None:
    watch = start()
    assert watch.mode == "events"
    assert keeper.steps == [None]

    (vault / "01_Shallow/Pump.md").write_text("water\n", encoding="utf-8")

    keeper.until(lambda: known(keeper) == {"01_Shallow/Pump.md"})
    assert frozenset({"01_Shallow/Pump.md"}) in keeper.steps


def test_wt_02_reading_and_listing_wake_nobody(
    vault: Path, note: Note, start: Start, keeper: Recorder
) -> None:
    for number in range(500):
        note(f"01_Shallow/room {number % 10}/Note {number}.md", f"text {number}\n")
    start()

    for _ in range(3):
        subprocess.run(["grep", "-r", "text", str(vault)], check=True, capture_output=True, timeout=PATIENCE)
        list(vault.rglob("*"))
    note("01_Shallow/Last.md", "after all that\n")

    keeper.until(lambda: len(keeper.steps) > 1)
    assert keeper.steps[0] is None
    assert {*keeper.steps[1:]} == {frozenset({"01_Shallow/Last.md"})}


def test_wt_02_an_idle_hour_is_seven_comparisons(by_hand: Start, keeper: Recorder, hands: Hands) -> None:
    """One at the start, and one each `rescan_minutes`; between them only the lease is looked at."""
    watch = by_hand()

    run_for(watch, hands, 3600 + TICK)

    assert keeper.steps == [None] * 7
    assert watch.count.turns <= 3600 / TICK + 10


def test_wt_02_polling_for_an_idle_hour_compares_at_most_every_other_second(
    by_hand: Start, keeper: Recorder, hands: Hands, said: Said
) -> None:
    watch = by_hand(how="poll")

    run_for(watch, hands, 3600)

    assert watch.mode == "polling"
    assert 1700 <= len(keeper.steps) <= 1801
    assert len(said) == 2


def test_polling_costs_at_most_a_twentieth_of_the_time(
    by_hand: Start, at_home: House, keeper: Recorder, hands: Hands
) -> None:
    step = keeper.step

    def slow(paths: Any = None, **more: Any) -> float | None:
        hands.now += 1.5
        return step(paths, **more)

    keeper.step = slow  # type: ignore[method-assign]
    watch = by_hand(how="poll")

    run_for(watch, hands, 600)

    assert len(keeper.steps) <= 600 / 30 + 1


@pytest.mark.parametrize("way", ["copied", "moved", "unpacked"])
def test_wt_05_a_folder_that_comes_full_is_known_to_its_depths(
    vault: Path, tmp_path: Path, start: Start, keeper: Recorder, way: str
) -> None:
    pack = tmp_path / "pack"
    for number in range(30):
        place = pack / ("", "a", "a/b")[number % 3]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"Note {number}.md").write_text(f"text {number}\n", encoding="utf-8")
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", pack)
    start()

    match way:
        case "copied":
            shutil.copytree(pack, vault / "01_Shallow/pack")
        case "moved":
            pack.rename(vault / "01_Shallow/pack")
        case _:
            shutil.unpack_archive(archive, vault / "01_Shallow/pack")

    keeper.until(lambda: len(known(keeper)) == 30)
    deep = vault / "01_Shallow/pack/a/b/Later.md"
    deep.write_text("more\n", encoding="utf-8")
    keeper.until(lambda: "01_Shallow/pack/a/b/Later.md" in known(keeper))
    assert keeper.steps.count(None) == 1


def test_wt_05_a_checkout_of_many_notes_is_known(
    vault: Path, note: Note, start: Start, keeper: Recorder
) -> None:
    def git(*words: str) -> None:
        told = ["git", "-C", str(vault), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *words]
        subprocess.run(told, check=True, capture_output=True, timeout=PATIENCE)

    stays = "01_Shallow/Stays.md"  # git removes a folder that it empties
    note(stays)
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "empty")
    git("checkout", "-q", "-b", "full")
    for number in range(250):
        note(f"02_Sediment/Kept {number}.md")  # what vanishes at once is less than half of the memories
    for number in range(200):
        place = vault / f"01_Shallow/room {number % 7}"
        place.mkdir(exist_ok=True)
        (place / f"Note {number}.md").write_text(f"text {number}\n", encoding="utf-8")
    git("add", "01_Shallow/room*")
    git("commit", "-q", "-m", "full")
    git("checkout", "-q", "main")
    start()
    assert known(keeper) == {stays}

    git("checkout", "-q", "full")
    keeper.until(lambda: len(known(keeper)) == 201)
    git("checkout", "-q", "main")

    keeper.until(lambda: known(keeper) == {stays})


def test_wt_09_a_renamed_folder_is_followed_under_its_new_name(
    vault: Path, note: Note, start: Start, keeper: Recorder
) -> None:
    for number in range(9):
        note(f"02_Sediment/Kept {number}.md")  # what vanishes at once is less than half of the memories
    for name in ("One", "Two"):
        note(f"01_Shallow/proj/{name}.md")
    start()
    assert len(known(keeper)) == 2

    (vault / "01_Shallow/proj").rename(vault / "01_Shallow/project")
    keeper.until(lambda: known(keeper) == {f"01_Shallow/project/{name}.md" for name in ("One", "Two")})
    note("01_Shallow/project/Three.md")
    (vault / "01_Shallow/project/One.md").unlink()
    keeper.until(lambda: known(keeper) == {f"01_Shallow/project/{name}.md" for name in ("Three", "Two")})
    (vault / "01_Shallow/project").rename(vault / "01_Shallow/proj")
    keeper.until(lambda: known(keeper) == {f"01_Shallow/proj/{name}.md" for name in ("Three", "Two")})
    shutil.rmtree(vault / "01_Shallow/proj")

    keeper.until(lambda: known(keeper) == set())
    assert keeper.steps.count(None) == 1


def test_a_folder_that_is_deleted_and_made_again_is_followed(
    vault: Path, note: Note, start: Start, keeper: Recorder
) -> None:
    note("01_Shallow/room/Old.md")
    start()

    shutil.rmtree(vault / "01_Shallow/room")
    note("01_Shallow/room/New.md")
    keeper.until(lambda: known(keeper) == {"01_Shallow/room/New.md"})
    note("01_Shallow/room/Newer.md")

    keeper.until(lambda: "01_Shallow/room/Newer.md" in known(keeper))


def test_a_link_that_leaves_the_vault_is_not_watched(
    vault: Path, tmp_path: Path, note: Note, start: Start, keeper: Recorder
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (vault / "01_Shallow/door").symlink_to(outside)
    start()

    (outside / "Secret.md").write_text("x\n", encoding="utf-8")
    note("01_Shallow/After.md")

    keeper.until(lambda: len(keeper.steps) > 1)
    assert {*keeper.steps[1:]} == {frozenset({"01_Shallow/After.md"})}


def test_what_obsidian_has_open_is_told_of_also_when_its_folder_comes_late(
    vault: Path, start: Start, keeper: Recorder
) -> None:
    start()

    (vault / ".obsidian").mkdir()
    keeper.until(lambda: True)
    workspace = vault / ".obsidian/workspace.json"

    def rewritten() -> bool:
        workspace.write_text("{}", encoding="utf-8")
        return frozenset({".obsidian/workspace.json"}) in keeper.steps

    keeper.until(rewritten)


def test_a_burst_without_measure_is_everything(at_home: House) -> None:
    heard: list[Any] = []
    hearing = ears.Ears(at_home.vault.root, heard.append, heard.append)

    hearing._take((2, str(at_home.vault.root / f"01_Shallow/Note {number}.md")) for number in range(2001))
    hearing._take([(2, str(at_home.vault.root / "01_Shallow/Note.md"))])

    assert heard == [None, {"01_Shallow/Note.md"}]


def test_this_machine_s_own_journal_wakes_nobody(
    vault: Path, start: Start, at_home: House, keeper: Recorder
) -> None:
    journal = vault / "_System/journal"
    journal.mkdir()
    start()

    (journal / f"{at_home.machine}.jsonl").write_text("{}\n", encoding="utf-8")
    (journal / "another.jsonl").write_text("{}\n", encoding="utf-8")

    keeper.until(lambda: keeper.told_of("_System/journal/another.jsonl") and len(keeper.steps) > 1)
    assert not any(f"_System/journal/{at_home.machine}.jsonl" in (paths or ()) for paths in keeper.steps)


def test_wt_06_a_folder_without_permission_is_named_and_the_others_are_followed() -> None:
    def person() -> None:
        place = Path(tempfile.mkdtemp())
        os.environ["HOME"] = str(place / "home")
        vault, keeper, said = place / "vault", Recorder(), Said()
        for folder in ("01_Shallow/aaa", "01_Shallow/private", "01_Shallow/zzz", "02_Sediment"):
            (vault / folder).mkdir(parents=True)
        policy(vault)
        (vault / "01_Shallow/private/Old.md").write_text("old\n", encoding="utf-8")
        (vault / "01_Shallow/zzz/Closed.md").write_text("closed\n", encoding="utf-8")
        opened = house(vault, place)
        opened.refresh()  # Old.md is known when its folder is closed
        (vault / "01_Shallow/private").chmod(0)
        (vault / "01_Shallow/zzz/Closed.md").chmod(0)
        watch = Watch(opened, tell=said, patience=0.0, keeper=keeper)
        watch.start()
        try:
            assert watch.ready.wait(PATIENCE)
            assert watch.mode == "events"
            assert len(said.like("01_Shallow/private cannot be read", warn=True)) == 1
            for room in ("aaa", "zzz"):
                (vault / f"01_Shallow/{room}/New.md").write_text("new\n", encoding="utf-8")
                keeper.until(lambda room=room: f"01_Shallow/{room}/New.md" in known(keeper))  # type: ignore[misc]
            assert "01_Shallow/private/Old.md" in known(keeper)
            (vault / "01_Shallow/private").chmod(0o755)
            keeper.until(lambda: keeper.told_of("01_Shallow/private") and keeper.steps[-1] is not None)
            (vault / "01_Shallow/private/New.md").write_text("new\n", encoding="utf-8")
            keeper.until(lambda: "01_Shallow/private/New.md" in known(keeper))
        finally:
            watch.stop()
            opened.close()
            shutil.rmtree(place)

    as_person(person)


# -- the vault goes away -------------------------------------------------------------------------------------


def test_wt_08_a_vault_that_goes_and_comes_back_is_watched_anew(
    vault: Path, note: Note, start: Start, keeper: Recorder, said: Said
) -> None:
    note("01_Shallow/Before.md")
    watch = start()
    away = vault.with_name("away")

    vault.rename(away)
    keeper.until(lambda: watch.mode == "away")
    assert not watch.house.shelf.watched
    away.rename(vault)
    keeper.until(lambda: watch.mode == "events" and watch.keeping)
    note("01_Shallow/After.md")

    keeper.until(lambda: known(keeper) == {"01_Shallow/After.md", "01_Shallow/Before.md"})
    assert len(said.like("is not at", warn=True)) == 1


def test_wt_08_another_folder_in_the_vault_s_place_is_watched_instead_of_the_old_one(
    vault: Path, tmp_path: Path, start: Start, keeper: Recorder
) -> None:
    watch = start()
    other = tmp_path / "other"
    shutil.copytree(vault, other, ignore=shutil.ignore_patterns(".palace"))

    vault.rename(tmp_path / "old")
    other.rename(vault)
    keeper.until(lambda: len(keeper.steps) > 1 and watch.keeping)
    keeper.until(lambda: watch.mode == "events")
    (vault / "01_Shallow/Here.md").write_text("x\n", encoding="utf-8")

    keeper.until(lambda: known(keeper) == {"01_Shallow/Here.md"})


def test_wt_08_nothing_is_made_and_little_is_done_while_the_vault_is_away(
    vault: Path, by_hand: Start, keeper: Recorder, hands: Hands, said: Said
) -> None:
    watch = by_hand()
    run_for(watch, hands, 10)
    vault.rename(vault.with_name("away"))
    before, turns = len(keeper.steps), watch.count.turns

    run_for(watch, hands, 3600)

    assert not vault.exists()
    assert len(keeper.steps) == before
    assert watch.count.turns - turns <= 3600 / 30 + 10
    assert len(said.like("is not at")) == 1


# -- where events do not arrive ------------------------------------------------------------------------------


def test_a_vault_of_which_no_events_come_is_compared_by_the_clock(
    by_hand: Start, monkeypatch: pytest.MonkeyPatch, hands: Hands, keeper: Recorder, said: Said
) -> None:
    monkeypatch.setattr(ears, "events_arrive", lambda vault: False)
    watch = by_hand()

    run_for(watch, hands, 60)

    assert watch.mode == "polling"
    assert not watch.house.shelf.watched
    assert len(keeper.steps) >= 29
    assert said.like("Mode polling")


def test_one_event_proves_that_events_arrive(
    by_hand: Start, monkeypatch: pytest.MonkeyPatch, hands: Hands
) -> None:
    monkeypatch.setattr(ears, "events_arrive", lambda vault: False)
    watch = by_hand()
    run_for(watch, hands, 5)

    watch._on_heard({"01_Shallow/Pump.md"})
    run_for(watch, hands, 5)

    assert watch.mode == "events"


def test_a_network_file_system_is_compared_by_the_clock_whatever_events_come(
    by_hand: Start, monkeypatch: pytest.MonkeyPatch, hands: Hands, said: Said
) -> None:
    monkeypatch.setattr(watcher, "remote_system", lambda root: "nfs4")
    watch = by_hand()

    run_for(watch, hands, 5)
    watch._on_heard({"01_Shallow/Pump.md"})
    run_for(watch, hands, 5)

    assert watch.mode == "polling"
    assert said.like("nfs4")


def test_the_self_test_leaves_nothing(at_home: House, vault: Path) -> None:
    arrived = ears.events_arrive(at_home.vault)

    assert arrived
    assert [place.name for place in (vault / ".palace").iterdir()] == [".gitignore"]


def test_the_self_test_fails_where_the_system_tells_nothing(
    at_home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deaf:
        def __init__(self, *_: object) -> None: ...

        def watch(self, *_: object) -> str:
            return "timeout"

        def close(self) -> None: ...

    monkeypatch.setattr(ears, "RustNotify", Deaf)

    assert not ears.events_arrive(at_home.vault, seconds=0.01)


class Broken:
    """A watch that cannot be put in place."""

    made = 0
    error: Exception = OSError(errno.ENOSPC, "No space left on device")

    def __init__(self, *_: object) -> None:
        type(self).made += 1
        raise self.error


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), range(6, 8)),  # one each `rescan_minutes`
        (OSError(errno.EIO, "Input/output error"), range(110, 130)),  # 1, 2, 4 … 30 s
    ],
)
def test_a_system_that_refuses_to_watch_is_asked_again_but_rarely(
    by_hand: Start,
    monkeypatch: pytest.MonkeyPatch,
    hands: Hands,
    said: Said,
    error: Exception,
    tries: range,
) -> None:
    class Refused(Broken):
        made = 0

    Refused.error = error
    monkeypatch.setattr(ears, "RustNotify", Refused)
    watch = by_hand()

    run_for(watch, hands, 3600)

    assert watch.mode == "polling"
    assert Refused.made in tries
    assert len(said.like("Mode polling", warn=True)) == 1


def test_a_watch_that_ends_by_itself_is_put_in_place_again(
    start: Start, keeper: Recorder, note: Note
) -> None:
    watch = start()

    watch._on_broken(RuntimeError("the watch broke"))
    keeper.until(lambda: watch.mode == "polling")
    keeper.until(lambda: watch.mode == "events")
    note("01_Shallow/Pump.md")

    keeper.until(lambda: known(keeper) == {"01_Shallow/Pump.md"})


# -- keeping -------------------------------------------------------------------------------------------------


def test_what_falls_due_wakes_the_keeper(by_hand: Start, keeper: Recorder, hands: Hands) -> None:
    keeper.answers = [30.0, 5.0, None]
    watch = by_hand()

    run_for(watch, hands, 29)
    assert keeper.steps == [None]
    run_for(watch, hands, 60)

    assert keeper.steps == [None, frozenset(), frozenset()]


def test_a_keeper_that_is_always_due_at_once_does_not_spin(
    by_hand: Start, keeper: Recorder, hands: Hands
) -> None:
    keeper.answers = [0.0] * 10_000
    watch = by_hand()

    run_for(watch, hands, 60)

    assert len(keeper.steps) <= 60 / watcher.SOONEST + 1


def test_a_step_that_fails_is_tried_again_more_and_more_rarely_and_told_once(
    by_hand: Start, keeper: Recorder, hands: Hands, said: Said
) -> None:
    keeper.answers = [StorageFailed("The disk is full.")] * 10_000
    watch = by_hand()

    run_for(watch, hands, 600)

    assert 20 <= len(keeper.steps) <= 26
    assert len(said.like("The disk is full")) == 1
    assert "The disk is full" in str(watch.facts()["trouble"])
    keeper.answers = []
    run_for(watch, hands, 60)
    assert watch.facts()["trouble"] == ""


def test_of_two_watchers_one_keeps_and_the_other_follows_when_it_stops(
    by_hand: Start, hands: Hands, vault: Path, tmp_path: Path, said: Said
) -> None:
    second_house, first_keeper, second_keeper = house(vault, tmp_path), Recorder(), Recorder()
    first, second = by_hand(keeper=first_keeper), by_hand(second_house, keeper=second_keeper)
    first.turn()
    run_for(second, hands, 10)
    assert (first.keeping, second.keeping) == (True, False)
    assert (len(first_keeper.steps), second_keeper.steps) == (1, [])

    first.stop()
    run_for(second, hands, 2 * TICK)

    assert second.keeping
    assert second_keeper.steps == [None]
    assert said.like(f"Kept by process {os.getpid()}")
    second.stop()
    second_house.close()


def test_a_keeper_that_lost_its_lease_stops_within_its_step(
    by_hand: Start, vault: Path, keeper: Recorder, hands: Hands
) -> None:
    asked: list[bool] = []

    def step(paths: Any = None, *, stop: Callable[[], bool]) -> None:
        asked.append(stop())
        (vault / ".palace/keeper").unlink()
        asked.append(stop())

    keeper.step = step  # type: ignore[method-assign, assignment]
    watch = by_hand()

    watch.turn()

    assert asked == [False, True]
    assert not watch.keeping


def test_a_watcher_that_stands_by_hands_on_what_it_hears(
    by_hand: Start, at_home: House, keeper: Recorder, vault: Path, note: Note
) -> None:
    other = Lease(at_home.vault)
    other.take()
    watch = by_hand()
    watch.turn()
    at_home.refresh()
    note("01_Shallow/Pump.md")

    watch._on_heard({"01_Shallow/Pump.md"})
    watch.turn()
    at_home.refresh()

    assert at_home.shelf.watched
    assert "01_Shallow/Pump.md" in at_home.shelf.cache.paths()
    assert keeper.steps == []
    other.release()


@pytest.mark.parametrize("why", ["read-only", "a read-only policy", "Sediment Palace"])
def test_where_nothing_may_be_written_the_watcher_writes_nothing_and_still_hears(
    vault: Path, tmp_path: Path, keeper: Recorder, said: Said, note: Note, why: str
) -> None:
    if why != "Sediment Palace":
        policy(vault, "read_only: true\n" if why == "a read-only policy" else "")
    only = house(vault, tmp_path, read_only=why == "read-only")
    only.refresh()
    before = everything(vault)
    watch = Watch(only, tell=said, patience=0.0, keeper=keeper)
    watch.start()
    assert watch.ready.wait(PATIENCE)
    assert everything(vault) == before
    note("01_Shallow/Pump.md")

    keeper.until(lambda: watch.mode == "events")

    def found() -> bool:
        only.refresh()
        return "01_Shallow/Pump.md" in only.shelf.cache.paths()

    keeper.until(found)

    watch.stop()
    assert {*everything(vault)} == {*before, "01_Shallow/Pump.md"}
    assert not (vault / ".palace").exists()
    assert keeper.steps == []
    assert said.like("only watched")
    only.close()


def test_a_vault_that_gets_its_policy_later_is_kept_from_then_on(
    vault: Path, tmp_path: Path, by_hand: Start, keeper: Recorder, hands: Hands
) -> None:
    (vault / "_System/Policy.md").unlink()
    watch = by_hand()
    run_for(watch, hands, 10)
    assert keeper.steps == []

    policy(vault)
    run_for(watch, hands, 2 * TICK)

    assert watch.keeping
    assert None in keeper.steps


def test_a_stopped_watcher_leaves_neither_lease_nor_trust(vault: Path, start: Start, at_home: House) -> None:
    watch = start()
    assert (vault / ".palace/keeper").exists()

    watch.stop()

    assert not (vault / ".palace/keeper").exists()
    assert not at_home.shelf.watched
    facts = watch.facts()
    assert (facts["mode"], facts["keeper"], facts["holder"]) == ("off", False, "")
    assert (facts["steps"], facts["trouble"], facts["lag"]) == (1, "", 0)


def test_a_watcher_that_is_off_does_nothing(vault: Path, at_home: House, keeper: Recorder) -> None:
    watch = Watch(at_home, how="off", keeper=keeper)

    watch.start()
    watch.stop()

    assert watch.count.turns == 0
    assert not (vault / ".palace").exists()


def test_health_and_status_say_who_keeps_the_vault(at_home: House, start: Start) -> None:
    from vault_palace.services import curate
    from vault_palace.services.health import health

    assert health(at_home)["watch"]["holder"] == ""

    start()

    for facts in (health(at_home)["watch"], curate.status(at_home)["watch"]):
        assert (facts["mode"], facts["keeper"]) == ("events", True)
        assert str(facts["holder"]).startswith(f"process {os.getpid()} on ")


class Waiting(Recorder):
    """A keeper that has to write, and waits for whoever holds the lock."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def step(self, paths: Collection[str] | None = None, *, stop: Any = None) -> float | None:
        assert self.house is not None
        self.began.set()
        with self.house.locked():
            return None


def test_a_keeper_that_waits_for_another_machine_ends_when_it_is_told_to(
    vault: Path, note: Note, start: Start, said: Said
) -> None:
    waiting = Waiting()
    watch = start(keeper=waiting)
    (vault / ".palace/lock").write_bytes(b"1\nlaptop.example\n")
    waiting.began.clear()
    note("01_Shallow/new.md")
    assert waiting.began.wait(PATIENCE)

    watch.stop()

    assert watch._thread is not None
    assert not watch._thread.is_alive()
    assert not watch.lease.held
    assert said.like("step") == []
