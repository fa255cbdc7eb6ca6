"""The simulated Obsidian and the plain editor do what the real ones were measured to do, one fact a test."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.coediting.editor import PlainEditor
from tests.coediting.ledger import Ledger
from tests.coediting.obsidian import Obsidian, with_property
from tests.coediting.stage import Clock

PATH = "01_Shallow/Pump.md"
TEXT = "---\nid: mem_1\ndensity: 0.2\n---\n\nfirst line\n\nlast line\n"


class Desk:
    """A vault with one note, the app, and another program's pen."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock(Random(1))
        self.ledger = Ledger()
        self.app = Obsidian(root, self.clock, self.ledger, Random(1))
        (root / "01_Shallow").mkdir()
        self.outside(TEXT)

    @property
    def place(self) -> Path:
        return self.root / PATH

    def text(self) -> str:
        return self.place.read_text(encoding="utf-8")

    def outside(self, text: str, place: Path | None = None) -> None:
        """Another program puts a new file over the note."""
        target = place or self.place
        beside = target.with_name(".beside.tmp")
        beside.write_text(text, encoding="utf-8")
        self.clock.stamp(beside)
        os.replace(beside, target)

    def changed(self, old: str, new: str) -> None:
        text = self.text()
        assert old in text
        self.outside(text.replace(old, new))

    def typed(self, old: str, new: str) -> None:
        self.app.type(PATH, lambda text: text.replace(old, new))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_what_is_typed_is_saved_two_seconds_after_the_first_keystroke(desk: Desk) -> None:
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")

    desk.clock.turn(1.9)
    before = desk.text()
    desk.clock.turn(0.2)

    assert (before, desk.text()) == (TEXT, TEXT.replace("last line", "last line pxwordnob"))


def test_later_keystrokes_do_not_put_the_save_off(desk: Desk) -> None:
    desk.app.open(PATH)

    for number in range(5):
        desk.typed("last line", f"last line pxtypeda{'abcde'[number]}")
        desk.clock.turn(0.5)

    assert "pxtypedad" in desk.text()


def test_closing_a_tab_saves_at_once(desk: Desk) -> None:
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")

    desk.app.close(PATH)
    desk.clock.turn(0.1)

    assert "pxwordnob" in desk.text()


def test_a_save_is_in_place(desk: Desk) -> None:
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")
    inode = desk.place.stat().st_ino

    desk.clock.turn(3)

    assert desk.place.stat().st_ino == inode


def slow(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.05) -> None:
    monkeypatch.setattr(Obsidian, "_duration", lambda _self: seconds)


def test_a_reader_can_meet_an_empty_file_while_a_save_runs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow(monkeypatch)
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")

    desk.clock.turn(2.01)
    during = desk.text()
    desk.clock.turn(0.1)

    assert (during, "pxwordnob" in desk.text()) == ("", True)


def test_a_rename_over_the_path_while_a_save_runs_sends_its_bytes_to_the_old_file(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow(monkeypatch)
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")
    desk.clock.turn(2.01)

    desk.outside("theirs\n")
    desk.clock.turn(0.1)

    assert desk.text() == "theirs\n"


def test_a_save_does_not_look_at_the_disk_first(desk: Desk) -> None:
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")
    desk.clock.turn(1.999)

    desk.changed("first line", "first line axwordnoc")
    desk.clock.turn(0.5)

    assert "axwordnoc" not in desk.text()


def test_a_change_told_while_a_save_runs_is_not_noticed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch)
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")
    desk.clock.turn(2.01)

    desk.outside("theirs\n")
    desk.clock.turn(1)

    assert "theirs" not in desk.app.views[PATH].buffer


def test_a_clean_buffer_is_replaced_by_an_outside_change(desk: Desk) -> None:
    view = desk.app.open(PATH)

    desk.changed("first line", "first line axwordnoc")
    desk.clock.turn(0.1)

    assert view.buffer == view.saved == desk.text()


def test_properties_changed_outside_are_merged_with_what_is_being_typed(desk: Desk) -> None:
    view = desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")

    desk.changed("density: 0.2", "density: 0.9\nstreak: 1")
    desk.clock.turn(0.1)

    assert view.buffer == TEXT.replace("0.2", "0.9\nstreak: 1").replace("last line", "last line pxwordnob")


def test_of_one_property_that_both_changed_the_person_s_value_stays(desk: Desk) -> None:
    view = desk.app.open(PATH)
    desk.typed("density: 0.2", "density: 0.7")

    desk.changed("density: 0.2", "density: 0.9")
    desk.clock.turn(0.1)

    assert "density: 0.7" in view.buffer


@pytest.mark.parametrize("own", ["\nlast line pxwordnob\n", "\nlast line\n\nmine pxwordnob\n"])
def test_a_section_appended_outside_and_typing_on_the_last_line_are_both_kept(desk: Desk, own: str) -> None:
    view = desk.app.open(PATH)
    desk.typed("\nlast line\n", own)

    desk.outside(f"{TEXT}\n## More\n\ntheirs axwordnoc\n")
    desk.clock.turn(0.1)

    assert ("pxwordnob" in view.buffer, "axwordnoc" in view.buffer) == (True, True)


def test_words_typed_in_a_paragraph_that_is_rewritten_outside_are_dropped(desk: Desk) -> None:
    desk.app.open(PATH)
    desk.typed("first line", "first line pxwordnob")

    desk.outside("---\nid: mem_1\n---\n\nAltogether different: rxwordnoc, and nothing of what was.\n")
    desk.clock.turn(3)

    assert "pxwordnob" not in desk.text()
    assert [(one.words, one.why) for one in desk.ledger.dropped] == [(frozenset({"pxwordnob"}), "merged")]


def test_the_base_of_the_next_merge_is_the_outside_text(desk: Desk) -> None:
    view = desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")
    theirs = TEXT.replace("first line", "first line axwordnoc")

    desk.outside(theirs)
    desk.clock.turn(0.1)

    assert view.saved == theirs


def test_a_file_taken_away_closes_its_tab_with_what_was_not_saved(desk: Desk) -> None:
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")

    desk.place.rename(desk.root / "elsewhere.md")
    desk.clock.turn(3)

    assert (desk.app.views, desk.place.exists()) == ({}, False)
    assert [(one.words, one.why) for one in desk.ledger.dropped] == [(frozenset({"pxwordnob"}), "closed")]


def test_a_save_that_is_due_before_the_app_knows_makes_the_old_path_anew(desk: Desk) -> None:
    desk.app.open(PATH)
    desk.typed("last line", "last line pxwordnob")
    desk.clock.turn(1.95)

    desk.place.rename(desk.root / "elsewhere.md")
    desk.clock.turn(0.5)

    assert "pxwordnob" in desk.text()


def test_a_file_that_is_back_within_a_tenth_of_a_second_was_only_changed(desk: Desk) -> None:
    view = desk.app.open(PATH)
    desk.place.unlink()
    desk.clock.turn(0.05)

    desk.outside("theirs\n")
    desk.clock.turn(0.5)

    assert (desk.app.views[PATH], view.buffer) == (view, "theirs\n")


def test_a_change_with_the_same_size_and_millisecond_is_not_seen(desk: Desk) -> None:
    view = desk.app.open(PATH)
    before = desk.place.stat()
    desk.place.write_text(TEXT.replace("first", "FIRST"), encoding="utf-8")

    os.utime(desk.place, ns=(before.st_mtime_ns + 100, before.st_mtime_ns + 100))
    desk.clock.turn(1)

    assert view.buffer == TEXT


def test_a_rename_in_the_app_rewrites_links_and_keeps_the_tab(desk: Desk) -> None:
    desk.app.create("01_Shallow/Other.md", "see [[Pump|L1L]] and [[Pump]]\n")
    desk.app.open(PATH)

    desk.app.rename(PATH, "01_Shallow/Motor.md")

    assert desk.app.text("01_Shallow/Other.md") == "see [[Motor|L1L]] and [[Motor]]\n"
    assert list(desk.app.views) == ["01_Shallow/Motor.md"]


def test_a_drag_to_another_folder_writes_no_note(desk: Desk) -> None:
    desk.app.create("01_Shallow/Other.md", "see [[Pump|L1L]]\n")
    before = (desk.root / "01_Shallow/Other.md").stat()

    desk.app.rename(PATH, "02_Sediment/Pump.md")

    assert (desk.root / "01_Shallow/Other.md").stat() == before


def test_a_deleted_note_goes_to_a_flat_trash_under_a_free_name(desk: Desk) -> None:
    desk.app.create("02_Sediment/Pump.md", "second\n")

    places = [desk.app.delete(PATH), desk.app.delete("02_Sediment/Pump.md")]

    assert places == [".trash/Pump.md", ".trash/Pump 2.md"]


def test_a_property_edit_writes_the_whole_block_anew() -> None:
    text = "---\nid: mem_1 # why\ncreated: 2031-03-01T12:00:00\ntags: [a, b]\nplain: no\n---\n\nbody\n"

    assert with_property(text, "mood", "pxwordnob") == (
        "---\nid: mem_1\ncreated: 2031-03-01T12:00:00\n"
        "tags:\n  - a\n  - b\nplain: no\nmood: pxwordnob\n---\n\nbody\n"
    )


def test_the_workspace_file_names_what_is_open_now_and_was_lately(desk: Desk) -> None:
    desk.app.create("01_Shallow/Other.md", "x\n")
    desk.app.open(PATH)
    desk.app.open("01_Shallow/Other.md")
    desk.app.close(PATH)

    found = json.loads((desk.root / ".obsidian/workspace.json").read_text(encoding="utf-8"))

    (leaf,) = found["main"]["children"][0]["children"]
    assert leaf["state"]["state"]["file"] == "01_Shallow/Other.md"
    assert found["active"] == leaf["id"]
    assert found["lastOpenFiles"] == ["01_Shallow/Other.md", PATH]


# -- the plain editor ----------------------------------------------------------------------------------------


def test_the_plain_editor_puts_its_old_text_over_what_came_since(desk: Desk) -> None:
    editor = PlainEditor(desk.root, desk.clock, desk.ledger)
    editor.open(PATH)
    desk.changed("first line", "first line axwordnoc")

    editor.edit(lambda text: f"{text}pxwordnob\n")
    editor.save()

    assert desk.text() == f"{TEXT}pxwordnob\n"
    assert desk.ledger.stale == {"axwordnoc"}


def test_the_plain_editor_saves_by_a_rename(desk: Desk) -> None:
    editor = PlainEditor(desk.root, desk.clock, desk.ledger)
    editor.open(PATH)
    inode = desk.place.stat().st_ino

    editor.edit(lambda text: f"{text}pxwordnob\n")
    editor.save()

    assert desk.place.stat().st_ino != inode


# -- the record ----------------------------------------------------------------------------------------------

Deed = Callable[[Ledger], None]


@pytest.mark.parametrize(
    ("taken_out", "where"),
    [({"pxwordnob", "axwordnoc"}, "removed"), (set(), "over and stale")],
    ids=["deleted on purpose", "written over with an old text"],
)
def test_the_record_tells_what_a_person_deleted_from_what_they_wrote_over(
    taken_out: set[str], where: str
) -> None:
    ledger = Ledger()

    ledger.person_wrote("pxwordnob axwordnoc", "", 1.0, taken_out)

    found = (ledger.removed, ledger.over | ledger.stale)
    assert found == (
        ({"pxwordnob", "axwordnoc"}, set()) if where == "removed" else (set(), {"pxwordnob", "axwordnoc"})
    )


def test_what_a_person_s_own_hand_brings_back_was_not_deleted() -> None:
    ledger = Ledger()
    ledger.person_wrote("pxwordnob", "", 1.0, {"pxwordnob"})

    ledger.person_wrote("", "pxwordnob", 2.0, set())

    assert ledger.removed == set()
