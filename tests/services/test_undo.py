"""Undo takes an operation back, whole, and never what was done since."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.test_kill_points import copy_of, notes, opened
from tests.storage.killpoints import Stop, every_kill_point
from vault_palace.core import frontmatter
from vault_palace.core.errors import Busy, InvalidArguments, NotFound, PolicyViolation, VaultError
from vault_palace.services.answers import UndoAnswer
from vault_palace.services.house import House
from vault_palace.services.palace import Palace

Note = Callable[..., Path]

POLICY = "---\ntimezone: UTC\nversions_keep_days: 100000\n---\n"
PUMP = "01_Shallow/room/Pump.md"


@pytest.fixture(autouse=True)
def _policy(vault: Path) -> None:
    # The clock of these tests is years ahead of the files' times, by which versions are pruned.
    (vault / "_System/Policy.md").write_text(POLICY, encoding="utf-8")


def everything(root: Path) -> dict[str, str]:
    """Every note as it stands, by path."""
    found = {}
    for place in root.rglob("*.md"):
        found[place.relative_to(root).as_posix()] = place.read_bytes().decode("utf-8")
    return found


def text(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


def header(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read(text(root, path)).values)


def newest(palace: Palace) -> str:
    return palace.house.journal.recent()[-1].op


def vault_of(palace: Palace) -> Path:
    return palace.house.vault.root


def furnish(palace: Palace, note: Note, clock: Clock) -> None:
    """A pump that a table, a room's neighbour and a property link to, in every form of link."""
    palace.write("It leaks.\n\nThe valve is stuck.", path="room/Pump", density=0.4, tags=["water"])
    palace.write("old words", title="Older")
    palace.write("let go", title="Gone")
    palace.purge("01_Shallow/Gone.md", confirm=True)
    note("table.md", "| [[room/Pump\\|p]] |\n|---|\n\n[m](01_Shallow/room/Pump.md#Valve) [[Pump]]\n")
    palace.write("words", title="Prop")
    prop = vault_of(palace) / "01_Shallow/Prop.md"
    see = 'see: "[[01_Shallow/room/Pump]]"\n'
    prop.write_text(prop.read_text(encoding="utf-8").replace("id: ", f"{see}id: ", 1))
    clock.turn(days=1)
    palace.house.refresh(if_older=0)


def _replaced(palace: Palace) -> object:
    rev = palace.read(path=PUMP, touch=False)["rev"]
    return palace.write("Quite other words.", mode="replace", path=PUMP, if_rev=rev)


VERBS: dict[str, Callable[[Palace], object]] = {
    "write": lambda palace: palace.write("fresh words", title="Fresh", tags=["x"]),
    "write superseding": lambda palace: palace.write("better", title="Better", supersedes="Older"),
    "append": lambda palace: palace.write("It leaks more.", mode="append", path=PUMP),
    "replace": _replaced,
    "rate": lambda palace: palace.rate(path=PUMP, density=0.9, pinned=True, decay_days=3),
    "move": lambda palace: palace.move(PUMP, "sediment"),
    "rename": lambda palace: palace.move(PUMP, "shallow", new_path="Boiler"),
    "purge": lambda palace: palace.purge(PUMP, confirm=True),
    "restore": lambda palace: palace.restore("_Archive/01_Shallow/Gone.md"),
}


@pytest.mark.parametrize("name", sorted(VERBS))
def test_undoing_a_verb_brings_every_note_back_as_it_was(
    palace: Palace, vault: Path, note: Note, clock: Clock, name: str
) -> None:
    furnish(palace, note, clock)
    before = everything(vault)
    VERBS[name](palace)
    assert everything(vault) != before

    answer = palace.undo(newest(palace), confirm=True)

    assert everything(vault) == before
    assert answer["refused"] == 0
    assert palace.house.journal.unfinished() == []


@pytest.mark.parametrize("name", sorted(VERBS))
def test_an_undo_can_be_undone(palace: Palace, vault: Path, note: Note, clock: Clock, name: str) -> None:
    furnish(palace, note, clock)
    VERBS[name](palace)
    done = everything(vault)
    palace.undo(newest(palace), confirm=True)

    answer = palace.undo(newest(palace), confirm=True)

    assert everything(vault) == done
    assert answer["undone"][0]["verb"] == "undo"


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_preview_tells_every_note_and_writes_nothing(
    palace: Palace, vault: Path, note: Note, clock: Clock, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(palace, note, clock)
    before = everything(vault)
    VERBS[name](palace)
    after = everything(vault)
    monkeypatch.setattr(House, "perform", None)
    monkeypatch.setattr(House, "locked", None)

    answer = palace.undo(newest(palace), preview=True)

    (undone,) = answer["undone"]
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert {path for one in undone["notes"] for path in (one["path"], one["to"])} == changed
    assert all(one["diff"] or one["to"] != one["path"] for one in undone["notes"])
    assert everything(vault) == after


def test_undoing_what_a_metabolize_archived_brings_the_notes_back(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    furnish(palace, note, clock)
    before = everything(vault)
    clock.turn(days=40)
    palace.metabolize(confirm=True)
    moved = [entry for entry in palace.house.journal.recent() if entry.verb == "archive"]
    assert moved

    for entry in reversed(moved):
        palace.undo(entry.op, confirm=True)

    for path in before:
        assert header(vault, path).get("layer") != "archive"
        assert "archived_on" not in header(vault, path) or path.startswith("_Archive/")
    assert everything(vault).keys() == before.keys()


# -- out of the archive -------------------------------------------------------------------------------------


def decays_on(vault: Path, path: str) -> str:
    return str(header(vault, path).get("decays_on"))


@pytest.mark.parametrize("layer", ["shallow", "sediment"])
@pytest.mark.parametrize("days", [0, 1, 200])
def test_what_a_rule_let_go_comes_back_with_a_fresh_start_and_stays(
    palace: Palace, vault: Path, clock: Clock, layer: str, days: int
) -> None:
    """By its former streak, or by the days in the archive, it would go again the next night."""
    path = palace.write("[m](Other.md) [[Other]]", title="Sand", layer=layer)["saved_path"]
    palace.write("x", title="Other", layer=layer, density=0.9)
    clock.turn(days=130)
    palace.metabolize(confirm=True, force=True)
    op = next(one.op for one in palace.house.journal.recent() if one.verb == "archive")
    clock.turn(days=days)

    (told,) = palace.undo(op, preview=True)["undone"]
    palace.undo(op, confirm=True)
    back = header(vault, path)
    clock.turn(days=1)
    answer = palace.metabolize(confirm=True, force=True)

    moved = next(one for one in told["notes"] if one["to"] == path)
    assert moved["what"] == "moved back with a fresh start, as by restore"
    assert "+streak: 0" in moved["diff"]
    assert (back["streak"], back.get("missed", 0), back["layer"]) == (0, 0, layer)
    assert str(back["layer_since"])[:10] == (palace.house.today() - timedelta(days=1)).isoformat()
    assert answer["archived"] == []
    assert "[m](Other.md) [[Other]]" in text(vault, path)


def test_a_fresh_start_is_the_one_that_restore_gives(
    palace: Palace, vault: Path, clock: Clock, open_palace: OpenPalace, tmp_path: Path
) -> None:
    palace.write("x", title="Sand")
    clock.turn(days=9)
    palace.metabolize(confirm=True, force=True)
    copy = tmp_path / "copy/vault"
    shutil.copytree(vault, copy)
    clock.turn(days=3)
    other = open_palace(copy)

    palace.undo(newest_of(palace, "archive"), confirm=True)
    other.restore("_Archive/01_Shallow/Sand.md")

    keys = ("streak", "missed", "layer", "layer_since", "status", "decay_days", "decays_on", "last_touched")
    undone, restored = header(vault, "01_Shallow/Sand.md"), header(copy, "01_Shallow/Sand.md")
    assert {key: undone.get(key) for key in keys} == {key: restored.get(key) for key in keys}


def newest_of(palace: Palace, verb: str) -> str:
    return [one.op for one in palace.house.journal.recent() if one.verb == verb][-1]


def test_a_purge_that_is_undone_weeks_later_is_not_undone_by_the_next_night(
    palace: Palace, clock: Clock
) -> None:
    path = palace.write("x", title="Sand")["saved_path"]
    palace.purge(path, confirm=True)
    clock.turn(days=40)

    answer = palace.undo(newest(palace), confirm=True)
    clock.turn(days=1)

    assert [one["what"] for one in answer["undone"][0]["notes"]] == [
        "moved back with a fresh start, as by restore"
    ]
    assert palace.metabolize(confirm=True, force=True)["archived"] == []


def test_a_purge_of_what_was_due_that_is_undone_at_once_leaves_it_a_lifetime(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    path = palace.write("x", title="Sand")["saved_path"]
    clock.turn(days=8)
    palace.purge(path, confirm=True)

    palace.undo(newest(palace), confirm=True)

    assert decays_on(vault, path) == (palace.house.today() + timedelta(days=8)).isoformat()


@pytest.mark.parametrize("how", [{"density": 0.9}, {"layer": "bedrock"}])
def test_a_purged_note_that_no_rule_lets_go_comes_back_as_it_was_also_later(
    palace: Palace, vault: Path, clock: Clock, how: dict[str, Any]
) -> None:
    path = palace.write("x", title="Basalt", **how)["saved_path"]
    before = text(vault, path)
    palace.purge(path, confirm=True)
    clock.turn(days=40)

    answer = palace.undo(newest(palace), confirm=True)

    assert text(vault, path) == before
    assert [one["what"] for one in answer["undone"][0]["notes"]] == ["moved back"]


def test_what_was_changed_in_the_archive_stays_beside_the_fresh_start(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    path = palace.write("x", title="Sand")["saved_path"]
    clock.turn(days=9)
    palace.metabolize(confirm=True, force=True)
    archived = vault / "_Archive/01_Shallow/Sand.md"
    archived.write_text(archived.read_text(encoding="utf-8") + "kept\n", encoding="utf-8")

    palace.undo(newest_of(palace, "archive"), confirm=True)
    clock.turn(days=1)

    assert text(vault, path).endswith("kept\n")
    assert palace.metabolize(confirm=True, force=True)["archived"] == []


# -- what was done since stays ------------------------------------------------------------------------------


def test_words_that_a_person_wrote_elsewhere_in_the_note_stay(palace: Palace, vault: Path) -> None:
    palace.write("one\n\ntwo\n\nthree\n\nfour\n", path="room/Pump")
    rev = palace.read(path=PUMP, touch=False)["rev"]
    palace.write("one\n\nTWO\n\nthree\n\nfour\n", mode="replace", path=PUMP, if_rev=rev)
    replaced = newest(palace)
    place = vault / PUMP
    place.write_text(text(vault, PUMP).replace("four", "four by a person"), encoding="utf-8")

    palace.undo(replaced, confirm=True)

    body = frontmatter.read(text(vault, PUMP)).body
    assert body.strip() == "one\n\ntwo\n\nthree\n\nfour by a person"


def test_where_a_person_rewrote_the_same_line_the_note_is_refused(palace: Palace, vault: Path) -> None:
    palace.write("one\n\ntwo\n\nthree\n", path="room/Pump")
    rev = palace.read(path=PUMP, touch=False)["rev"]
    palace.write("one\n\nTWO\n\nthree\n", mode="replace", path=PUMP, if_rev=rev)
    replaced = newest(palace)
    place = vault / PUMP
    place.write_text(text(vault, PUMP).replace("TWO", "TWO, says a person"), encoding="utf-8")
    before = everything(vault)

    answer = palace.undo(replaced, confirm=True)

    assert everything(vault) == before
    (refused,) = answer["undone"][0]["refused"]
    assert refused["path"] == PUMP
    assert "same lines were changed since" in refused["reason"]


def test_a_property_that_was_changed_since_keeps_its_newer_value(palace: Palace, vault: Path) -> None:
    palace.write("words", path="room/Pump", density=0.4)
    palace.rate(path=PUMP, density=0.9, pinned=True)
    rated = newest(palace)
    palace.rate(path=PUMP, density=0.7)

    answer = palace.undo(rated, confirm=True)

    assert header(vault, PUMP)["density"] == 0.7
    assert not header(vault, PUMP).get("pinned")
    assert "density" in answer["undone"][0]["notes"][0]["newer"]


def test_a_created_note_that_a_person_wrote_in_is_not_removed(palace: Palace, vault: Path) -> None:
    palace.write("words", path="room/Pump")
    created = newest(palace)
    with (vault / PUMP).open("a", encoding="utf-8") as note:
        note.write("a person's line\n")

    answer = palace.undo(created, confirm=True)

    assert "a person's line" in text(vault, PUMP)
    assert "written in since" in answer["undone"][0]["refused"][0]["reason"]


def test_a_created_note_that_was_only_read_is_removed(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("words", path="room/Pump")
    created = newest(palace)
    clock.turn(days=3)
    palace.read(path=PUMP)

    palace.undo(created, confirm=True)

    assert not (vault / PUMP).exists()


def test_a_note_that_was_moved_again_stays_where_it_is(palace: Palace, vault: Path) -> None:
    palace.write("words", path="room/Pump")
    palace.move(PUMP, "sediment")
    first = newest(palace)
    palace.move("02_Sediment/room/Pump.md", "bedrock")

    answer = palace.undo(first, confirm=True)

    assert (vault / "03_Bedrock/room/Pump.md").exists()
    assert "moved again since" in answer["undone"][0]["refused"][0]["reason"]


def test_a_note_whose_old_place_is_taken_comes_back_under_a_free_name(
    palace: Palace, vault: Path, note: Note
) -> None:
    palace.write("words", path="room/Pump")
    palace.move(PUMP, "shallow", new_path="Boiler")
    renamed = newest(palace)
    note(PUMP, "another note\n")

    palace.undo(renamed, confirm=True)

    assert text(vault, PUMP) == "another note\n"
    assert "words" in text(vault, "01_Shallow/room/Pump 2.md")


def test_an_identity_that_an_operation_filled_in_stays(palace: Palace, vault: Path, note: Note) -> None:
    note("01_Shallow/plain.md", "a person's note\n")
    palace.write("more", mode="append", path="plain")
    known = header(vault, "01_Shallow/plain.md")["id"]

    palace.undo(newest(palace), confirm=True)

    assert header(vault, "01_Shallow/plain.md")["id"] == known
    assert frontmatter.read(text(vault, "01_Shallow/plain.md")).body == "a person's note\n"


def test_a_note_open_under_a_person_s_hands_is_busy(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    palace.write("one\n\nmiddle\n", path="room/Pump")
    palace.write("two", mode="append", path=PUMP)
    appended = newest(palace)
    place = vault / PUMP
    place.write_text(text(vault, PUMP).replace("one", "one of a person"), encoding="utf-8")
    moment = clock().timestamp() - 60
    os.utime(place, (moment, moment))
    leaf = {"type": "leaf", "state": {"type": "markdown", "state": {"file": PUMP}}}
    note(".obsidian/workspace.json", json.dumps({"main": {"children": [leaf]}}))
    before = text(vault, PUMP)

    with pytest.raises(Busy):
        palace.undo(appended, confirm=True)

    assert text(vault, PUMP) == before


# -- by note and by session ---------------------------------------------------------------------------------


def test_by_note_the_newest_change_of_its_own_is_undone(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    furnish(palace, note, clock)
    before = text(vault, PUMP)
    palace.write("more", mode="append", path=PUMP)
    clock.turn(days=2)
    palace.read(path=PUMP)

    answer = palace.undo("Pump", confirm=True)

    assert answer["undone"][0]["verb"] == "append"
    body = frontmatter.read(text(vault, PUMP)).body
    assert body == frontmatter.read(before).body


def test_undoing_a_note_twice_takes_back_two_changes(palace: Palace, vault: Path) -> None:
    palace.write("one", path="room/Pump")
    palace.write("two", mode="append", path=PUMP)
    palace.write("three", mode="append", path=PUMP)
    palace.undo("Pump", confirm=True)

    palace.undo("Pump", confirm=True)

    body = frontmatter.read(text(vault, PUMP)).body
    assert body.strip() == "one"


def test_a_note_that_a_person_deleted_comes_back_from_its_newest_version(palace: Palace, vault: Path) -> None:
    palace.write("one", path="room/Pump")
    palace.write("two", mode="append", path=PUMP)
    before = text(vault, PUMP)
    (vault / PUMP).unlink()

    answer = palace.undo("Pump", confirm=True)

    assert text(vault, PUMP) == before
    assert answer["undone"][0]["notes"][0]["what"] == "brought back"
    assert [match["path"] for match in palace.search("two")["matches"]] == [PUMP]


def test_a_deleted_note_comes_back_beside_the_one_that_has_its_name_now(
    palace: Palace, vault: Path, note: Note
) -> None:
    palace.write("one", path="room/Pump")
    known = header(vault, PUMP)["id"]
    (vault / PUMP).unlink()
    note(PUMP, "another\n")

    palace.undo(known, confirm=True)

    assert text(vault, PUMP) == "another\n"
    assert header(vault, "01_Shallow/room/Pump 2.md")["id"] == known


def test_a_session_is_undone_newest_first(open_palace: OpenPalace, vault: Path, clock: Clock) -> None:
    first, second = open_palace(session="first"), open_palace(session="second")
    first.write("one\n\ntwo\n", path="room/Pump", density=0.4)
    first.write("kept", title="Kept")
    before = everything(vault)
    clock.turn(hours=1)
    for act in (
        lambda: second.write("three", mode="append", path=PUMP),
        lambda: second.move(PUMP, "sediment"),
        lambda: second.rate(path="02_Sediment/room/Pump.md", density=0.9),
        lambda: second.write("made", title="Made"),
        lambda: second.purge("01_Shallow/Kept.md", confirm=True),
    ):
        act()
        clock.turn(hours=1)

    answer = first.undo(session="second", confirm=True)

    assert answer["refused"] == 0
    assert [one["verb"] for one in answer["undone"]] == ["purge", "write", "rate", "move", "append"]
    assert everything(vault) == before


def test_a_preview_of_a_session_tells_what_the_undo_then_does(
    open_palace: OpenPalace, vault: Path, clock: Clock
) -> None:
    palace = open_palace(session="one")
    for act in (
        lambda: palace.write("one", path="room/Pump"),
        lambda: palace.write("two", mode="append", path=PUMP),
        lambda: palace.move(PUMP, "sediment"),
        lambda: palace.write("three", mode="append", path="02_Sediment/room/Pump.md"),
    ):
        act()
        clock.turn(hours=1)

    preview = palace.undo(session="one", preview=True)

    done = palace.undo(session="one", confirm=True)
    told: Callable[[UndoAnswer], Any] = lambda answer: [one["notes"] for one in answer["undone"]]  # noqa: E731
    assert told(preview) == told(done)
    assert not any((vault / "01_Shallow").rglob("*.md"))


# -- refusals -----------------------------------------------------------------------------------------------


def test_an_undo_needs_confirm(palace: Palace, vault: Path) -> None:
    palace.write("one", path="room/Pump")

    with pytest.raises(PolicyViolation):
        palace.undo("Pump")

    assert (vault / PUMP).exists()


def test_nothing_is_undone_in_a_read_only_vault(open_palace: OpenPalace, vault: Path) -> None:
    open_palace().write("one", path="room/Pump")
    palace = open_palace(read_only=True)

    with pytest.raises(PolicyViolation):
        palace.undo("Pump", confirm=True)

    assert palace.undo("Pump", preview=True)["changed"] == 1


@pytest.mark.parametrize(("what", "session"), [(None, None), ("Pump", "s"), (" ", None), (None, "")])
def test_one_of_operation_note_and_session_is_asked_for(
    palace: Palace, what: str | None, session: str | None
) -> None:
    with pytest.raises(InvalidArguments):
        palace.undo(what, session=session, preview=True)


@pytest.mark.parametrize("what", ["Nothing", "mem_000000000000", "01_Shallow/nothing.md"])
def test_what_nobody_knows_is_not_found(palace: Palace, what: str) -> None:
    palace.write("one", path="room/Pump")

    with pytest.raises(NotFound):
        palace.undo(what, preview=True)


def test_a_version_that_was_pruned_is_named_in_the_refusal(palace: Palace, vault: Path) -> None:
    palace.write("one", path="room/Pump")
    palace.write("two", mode="append", path=PUMP)
    appended = newest(palace)
    shutil.rmtree(vault / ".palace/versions")

    answer = palace.undo(appended, confirm=True)

    assert "no longer kept" in answer["undone"][0]["refused"][0]["reason"]


# -- killed anywhere ----------------------------------------------------------------------------------------


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder)


def _killed_vault(base: Path) -> None:
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
        (base / "vault" / folder).mkdir(parents=True, exist_ok=True)
    (base / "vault/_System/Policy.md").write_text(POLICY, encoding="utf-8")
    with opened(base) as palace:
        palace.write("one\n\ntwo\n", title="Older")
        palace.write("[[01_Shallow/Older]] is meant", title="Bare")


KILLED: dict[str, Callable[[Palace], object]] = {
    "write superseding": lambda palace: palace.write("better", title="Better", supersedes="Older"),
    "purge": lambda palace: palace.purge("01_Shallow/Older.md", confirm=True),
}


@pytest.mark.parametrize("name", sorted(KILLED))
def test_a_killed_undo_is_all_done_or_all_undone(tmp_path: Path, base: Path, name: str) -> None:
    """RC-03"""
    _killed_vault(tmp_path)
    old = notes(tmp_path)
    with opened(tmp_path) as palace:
        KILLED[name](palace)
        op = newest(palace)
    new = notes(tmp_path)
    seen = set()

    def act(root: Path) -> None:
        with opened(root) as palace:
            palace.undo(op, confirm=True)

    def check(root: Path, stop: Stop | None) -> None:
        opened(root).close()
        after = notes(root)
        assert after in (old, new), f"neither done nor undone after {stop}: {sorted(after)}"
        seen.add("old" if after == old else "new")

    stops = every_kill_point(base, copy_of(tmp_path), act, check, modes=("before",))

    assert stops > 10
    assert seen == {"old", "new"}


# -- a long walk --------------------------------------------------------------------------------------------


def acts_on(agent: Palace, path: str, step: int) -> list[Callable[[], object]]:
    """What an agent may do next."""
    return [
        lambda: agent.write(f"agent {step}", mode="append", path=path),
        lambda: agent.rate(path=path, density=0.9),
        lambda: agent.move(path, "sediment", new_path=f"M{step}"),
        lambda: agent.purge(path, confirm=True),
        lambda: agent.restore(path),
        lambda: agent.write(f"fresh {step} [[N1]]", title=f"F{step}"),
        lambda: agent.undo(path, confirm=True),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_no_word_of_a_person_is_lost_when_a_whole_session_is_undone(
    open_palace: OpenPalace, vault: Path, clock: Clock, seed: int
) -> None:
    """Agents and a person take turns at random; every typed word stands in the vault afterwards."""
    (vault / "_System/Policy.md").write_text(
        POLICY.replace("versions", "max_destructive_per_minute: 10000\nversions"), encoding="utf-8"
    )
    chance = random.Random(seed)
    first, agent = open_palace(session="first"), open_palace(session="agent")
    for number in range(4):
        first.write(f"start\n\nmiddle {number}\n\nend\n", title=f"N{number}")
    typed: list[str] = []

    def types(place: Path, word: str) -> None:
        typed.append(word)
        before = place.read_text(encoding="utf-8")
        added = f"{before}\n{word}\n"
        inside = before.replace("middle", f"{word} middle", 1)
        after = inside if word in inside and chance.random() < 0.5 else added
        place.write_text(after, encoding="utf-8")

    for step in range(20):
        clock.turn(hours=3)
        places = [place for place in sorted(vault.rglob("*.md")) if place.parent.name != "_System"]
        place = chance.choice(places)
        with contextlib.suppress(VaultError):
            if chance.random() < 0.25:
                types(place, f"typed{step}.")
            else:
                chance.choice(acts_on(agent, place.relative_to(vault).as_posix(), step))()

    with contextlib.suppress(NotFound):
        agent.undo(session="agent", confirm=True)

    everywhere = "".join(everything(vault).values())
    ids = [line for line in everywhere.splitlines() if line.startswith("id: ")]
    assert [word for word in typed if word not in everywhere] == []
    assert len(ids) == len(set(ids))
    assert agent.house.journal.unfinished() == []
