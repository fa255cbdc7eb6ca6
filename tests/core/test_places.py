"""What a path says about a file: kind, layer, room, and who made it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core import places
from vault_palace.core.model import Layer

KINDS = (
    ("01_Shallow/x.md", "memory"),
    ("02_Sediment/ideas/deep/x.md", "memory"),
    ("03_Bedrock/X.MD", "memory"),
    ("01_Shallow/01_Shallow/x.md", "memory"),
    ("01_Shallow/PALACE_MAP.md", "memory"),
    ("01_Shallow/picture.png", "other"),
    ("01_Shallow/.md", "other"),
    ("01_Shallow", "other"),
    ("01_shallow/x.md", "other"),
    ("_Archive/01_Shallow/ideas/x.md", "archived"),
    ("_Archive/x.md", "archived"),
    ("_Archive/x.png", "other"),
    ("_System/Templates/memory.md", "template"),
    ("_System/Templates/N (Conflicted copy).md", "template"),
    ("_System/Policy.md", "system"),
    ("_System/journal/host.jsonl", "system"),
    ("_System/journal/host.sync-conflict-20250102-030405-ABCDEFG.jsonl", "conflict"),
    ("PALACE_MAP.md", "map"),
    ("PALACE_MAP.sync-conflict-20250102-030405-ABCDEFG.md", "conflict"),
    ("Daily/2026-11-30.md", "other"),
    ("Welcome.md", "other"),
    ("01_Shallow/.trash/x.md", "other"),
    (".trash/x.md", "other"),
    (".obsidian/app.json", "other"),
    ("01_Shallow/node_modules/x/readme.md", "other"),
    ("01_Shallow/.x.md.0123456789abcdef.tmp", "other"),
    ("01_Shallow/~syncthing~x.md.tmp", "other"),
)


@pytest.mark.parametrize(("path", "kind"), KINDS)
def test_a_path_tells_the_kind(path: str, kind: str) -> None:
    assert places.kind(path) == kind


# FS-14, `facts/obsidian.md` §6: one row for each pattern that cannot be a title by chance.
COPIES = (
    "N (Conflicted copy laptop 202611301200).md",
    "N (Conflicted copy).md",
    "budget.sync-conflict-20250102-030405-ABCDEFG.md",
    "N (HOST's conflicted copy 2025-01-02).md",
    "N (Anna’s conflicted copy 2025-01-02) (1).md",
    "N (Case Conflict).md",
    "N (Case Conflict 2).md",
    "N (Unicode Encoding Conflict).md",
    "N (conflicted copy 2025-01-02 101112).md",
    "N.Conflict.md",
    "N_nas_Jan-02-0304-2025_Conflict.md",
    "N.md.orig",
    "conflict-files-obsidian-git.md",
    "host.sync-conflict-20250102-030405-ABCDEFG.jsonl",
)
TITLES = (
    "Conflicted copy.md",
    "How a (conflicted copy) comes about.md",
    "The sync-conflict of 2025.md",
    "Conflict.md",
    "A case conflict.md",
    "budget 2.md",
    "budget (1).md",
    "budget-HOST.md",
    "N.orig.md",
    "x_Conflict.md",
)


@pytest.mark.parametrize("name", COPIES)
def test_a_sync_tool_s_conflict_copy_is_known_by_its_name(name: str) -> None:
    """FS-14"""
    assert places.is_conflict_copy(name)


@pytest.mark.parametrize("name", TITLES)
def test_a_title_that_speaks_of_conflicts_is_no_copy(name: str) -> None:
    """FS-14"""
    assert not places.is_conflict_copy(name)


@pytest.mark.parametrize(
    ("name", "originals"),
    [
        ("budget 2.md", ("budget.md",)),
        ("budget (1).md", ("budget.md",)),
        ("budget-HOST.md", ("budget.md",)),
        ("a-b-HOST.md", ("a-b.md", "a.md")),
        ("budget.md", ()),
        ("2.md", ()),
        ("budget 2026.md", ()),
        ("budget 1.md", ()),
        ("budget 12.md", ("budget.md",)),
    ],
)
def test_an_ambiguous_name_says_which_file_it_may_copy(name: str, originals: tuple[str, ...]) -> None:
    """FS-14: only a shared id decides."""
    assert places.possible_originals(name) == originals


@pytest.mark.parametrize(
    ("name", "original"),
    [
        *((name, "N.md") for name in COPIES if name.startswith("N")),
        ("budget.sync-conflict-20250102-030405-ABCDEFG.md", "budget.md"),
        ("conflict-files-obsidian-git.md", None),
        ("budget 2.md", "budget.md"),
        ("budget.md", None),
    ],
)
def test_a_copy_s_name_tells_that_of_its_original(name: str, original: str | None) -> None:
    """FS-14"""
    assert next(iter(places.original_names(name)), None) == original


@pytest.mark.parametrize(
    "name",
    [
        ".syncthing.N.md.tmp",
        "~syncthing~N.md.tmp",
        ".N.md.icloud",
        ".OBSIDIANTEST",
        "N.md.tmp",
        "N.md.part",
        "N.md.crdownload",
        "~$N.md",
        "N.md~",
        "#N.md#",
        ".N.md.swp",
        "N.md.!sync",
        "Thumbs.db",
        "desktop.ini",
        ".DS_Store",
    ],
)
def test_a_file_on_its_way_is_ignored(name: str) -> None:
    assert places.is_passing(name)


@pytest.mark.parametrize("name", ["N.md", "tmp.md", "N part.md", "Download.md", "#tag.md"])
def test_a_note_is_not_taken_for_a_file_on_its_way(name: str) -> None:
    assert not places.is_passing(name)


@pytest.mark.parametrize(
    ("path", "layer", "archived", "room"),
    [
        ("01_Shallow/x.md", Layer.SHALLOW, None, ""),
        ("02_Sediment/ideas/deep/x.md", Layer.SEDIMENT, None, "ideas/deep"),
        ("01_Shallow/01_Shallow/x.md", Layer.SHALLOW, None, "01_Shallow"),
        ("_Archive/01_Shallow/ideas/x.md", None, Layer.SHALLOW, "ideas"),
        ("_Archive/x.md", None, None, ""),
        ("_Archive/loose/x.md", None, None, "loose"),
        ("Daily/x.md", None, None, "Daily"),
        ("x.md", None, None, ""),
        ("01_Shallow", None, None, ""),
    ],
)
def test_a_path_tells_layer_and_room(
    path: str, layer: Layer | None, archived: Layer | None, room: str
) -> None:
    assert (places.layer_of(path), places.archived_layer(path), places.room_of(path)) == (
        layer,
        archived,
        room,
    )


@given(
    st.lists(
        st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1), max_size=4
    )
)
def test_the_archive_mirrors_layer_and_room(rooms: list[str]) -> None:
    path = "/".join(["02_Sediment", *rooms, "x.md"])

    archived = places.archive_place(path)

    assert places.room_of(archived) == places.room_of(path)
    assert places.archived_layer(archived) == Layer.SEDIMENT


@given(st.text())
def test_any_text_has_a_kind(path: str) -> None:
    assert places.kind(path) in ("memory", "archived", "template", "system", "map", "conflict", "other")


@given(st.binary())
def test_the_name_of_any_file_can_be_shown(raw: bytes) -> None:
    shown = places.printable(raw.decode("utf-8", "surrogateescape"))

    assert shown == raw.decode("utf-8", "backslashreplace")


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_can_be_shown(text: str) -> None:
    shown = places.printable(text)

    assert shown.encode("utf-8").decode("utf-8") == shown
