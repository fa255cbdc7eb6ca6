"""Opening a memory in Obsidian is a use; being left open is none, and no workspace is too odd (SPEC §4)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import settle
from vault_palace.core import frontmatter
from vault_palace.services import attention, quiet
from vault_palace.services.attention import Attention, Workspace, became_open, count_openings, read_workspace
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace
from vault_palace.storage.vault import Vault

Note = Callable[..., Path]

A, B, C, D = ("01_Shallow/a.md", "01_Shallow/b.md", "01_Shallow/c.md", "01_Shallow/d.md")


def leaf(id: str, file: str, type: str = "markdown") -> dict[str, Any]:
    return {"id": id, "type": "leaf", "state": {"type": type, "state": {"file": file, "mode": "source"}}}


def workspace(*files: str, active: str | None = None, recent: tuple[str, ...] = ()) -> dict[str, Any]:
    """A workspace as Obsidian saves it: a tab a file; *active* names the file that has the focus."""
    leaves = [leaf(f"l{number}", file) for number, file in enumerate(files)]
    return {
        "main": {
            "id": "m",
            "type": "split",
            "children": [{"id": "t", "type": "tabs", "children": leaves}],
            "direction": "vertical",
        },
        "left": {"id": "s", "type": "split", "children": [{"id": "e", "type": "leaf", "state": {}}]},
        "active": "" if active is None else f"l{files.index(active)}",
        "lastOpenFiles": list(recent),
    }


def save(root: Path, document: object, at: datetime, name: str = "workspace.json") -> None:
    """Save the workspace in place as Obsidian does, at that time."""
    path = root / ".obsidian" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    os.utime(path, (at.timestamp(), at.timestamp()))


def properties(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def parsed(document: object) -> Workspace | None:
    return read_workspace(json.dumps(document).encode("utf-8"))


# -- reading a workspace ------------------------------------------------------------------------------------


def test_a_workspace_tells_what_is_active_what_is_open_and_what_was_opened_lately() -> None:
    found = parsed(workspace(A, B, active=B, recent=(A, C)))

    assert found == Workspace(active=B, recent=(A, C), open=frozenset({A, B}))


def test_notes_in_other_windows_are_open_too() -> None:
    document = workspace(A, active=A)
    window = {"id": "w", "type": "window", "children": [{"type": "tabs", "children": [leaf("x", B)]}]}
    document["floating"] = {"id": "f", "type": "floating", "children": [window]}

    there, other = parsed(document), parsed({**document, "active": "x"})

    assert there == Workspace(active=A, open=frozenset({A, B}))
    assert other == Workspace(active=B, open=frozenset({A, B}))


@pytest.mark.parametrize("type", ["backlink", "outline", "localgraph"])
def test_a_pane_beside_a_note_is_not_the_note(type: str) -> None:
    found = parsed({"main": leaf("x", A, type), "active": "x"})

    assert found == Workspace(active=None, open=frozenset({A}))


def test_a_view_that_nobody_knows_counts_as_the_note_it_shows() -> None:
    found = parsed({"main": leaf("x", A, "kanban"), "active": "x"})

    assert found == Workspace(active=A, open=frozenset({A}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"x"',
        "7",
        "null",
        "[" * 100_000,
        '{"a":' * 50_000,
        "\x00",
        '{"a": 1' + "0" * 5_000 + "}",
    ],
)
def test_what_is_no_workspace_says_nothing(text: str) -> None:
    assert read_workspace(text.encode("utf-8")) is None


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"main": None, "active": None, "lastOpenFiles": None},
        {"main": [[[]]], "active": ["l0"], "lastOpenFiles": {"a": 1}},
        {"main": {"file": 7}, "active": 7, "lastOpenFiles": [7, None, [], {"path": A}]},
        {"main": {"id": ["l0"], "type": {}, "file": [A]}, "active": "l0"},
    ],
)
def test_a_workspace_of_another_shape_holds_nothing(document: object) -> None:
    assert parsed(document) == Workspace()


def test_an_active_leaf_that_does_not_exist_leaves_nothing_active() -> None:
    found = parsed({**workspace(A, active=A), "active": "gone"})

    assert found == Workspace(active=None, open=frozenset({A}))


@pytest.mark.parametrize(
    "path",
    ["/etc/a.md", "../a.md", "01_Shallow/../../a.md", "C:/a.md", "a\\b.md", "a//b.md", "a.canvas", "", ".md",
     "a\x00.md", "\ud800.md"],
)  # fmt: skip
def test_a_path_that_is_no_note_of_the_vault_is_passed_over(path: str) -> None:
    found = parsed(workspace(path, active=path, recent=(path, A)))

    assert found == Workspace(recent=(A,))


def test_a_workspace_too_large_to_be_one_is_not_read(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(vault, workspace(A), datetime(2031, 3, 1, tzinfo=UTC))
    monkeypatch.setattr(attention, "LIMIT", 50)

    assert attention.open_notes(Vault(vault)) == frozenset()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([A, "l0", "leaf"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["main", "id", "type", "state", "file", "children", "active", "lastOpenFiles"])
            | st.text(max_size=4),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@given(document=JSON, cut=st.integers(0, 400))
def test_no_shape_of_a_workspace_is_too_odd(document: object, cut: int) -> None:
    data = json.dumps(document).encode("utf-8")

    whole, half = read_workspace(data), read_workspace(data[:cut])

    assert (whole is not None) == isinstance(document, dict)
    assert half is None or isinstance(half, Workspace)
    if whole is not None:
        assert became_open(whole, whole) == ()


# -- what became open ---------------------------------------------------------------------------------------


def looked(active: str | None, *recent: str, open: tuple[str, ...] = ()) -> Workspace:
    shown = {*open, active} - {None}
    return Workspace(active=active, recent=recent, open=frozenset(path for path in shown if path))


@pytest.mark.parametrize(
    ("before", "now", "opened"),
    [
        (None, looked(A, B), ()),  # the first look ever
        (looked(A, B), looked(A, B), ()),  # left open, or Obsidian was started again
        (looked(A), looked(B, A), (B,)),
        (looked(A, open=(B,)), looked(B, A, open=(A,)), (B,)),  # another tab came to the front
        (looked(A), looked(None, A), ()),  # closed
        (looked(None, A), looked(A, A), (A,)),
        (looked(A, B, C), looked(A, D, B, C), (D,)),  # visited and left again
        (looked(A, B, C), looked(B, D, A, C), (B, D)),  # A was only left
        (looked(A, A, B), looked(B, B, A), (B,)),  # a version that lists what is opened, not what is left
        (looked(A, B, C, D), looked(A, D, B, C), (D,)),  # opened once more
        (looked(A, B, C), looked(A, D, C), ()),  # B was renamed to D
        (looked(A, B, C), looked(A, C), ()),  # B was deleted
        (looked(A, *"bcde"), looked(A, D, *"bcd"), (D,)),  # the last one fell off the list
        (looked(A, B), looked(D, B), ()),  # the active note was renamed
        (looked(A), looked(B), (B,)),  # nothing tells of a rename where there is no list
        (looked(A, B, C), looked(A, C, B), (C,)),
    ],
)
def test_what_becomes_open_is_told_from_what_stays_open(
    before: Workspace | None, now: Workspace, opened: tuple[str, ...]
) -> None:
    assert became_open(before, now) == opened


@given(data=st.data())
def test_exactly_the_notes_visited_since_the_last_look_became_open(data: st.DataObject) -> None:
    """As Obsidian keeps the list: a note is put first when it is left."""
    names = [f"{number}.md" for number in range(6)]
    recent = data.draw(st.permutations(names[1:]))[: data.draw(st.integers(0, 5))]
    visits = data.draw(st.lists(st.sampled_from(names), max_size=5))
    before = looked("0.md", *recent)
    active, listed = "0.md", list(recent)
    for visit in visits:
        if visit != active:
            listed = [active, *(path for path in listed if path != active)]
            active = visit

    opened = set(became_open(before, looked(active, *listed)))

    # Of the note that was open already, and of several visits in the old order, nothing is visible.
    assert opened <= set(visits) - {"0.md"}
    assert active in opened or active == "0.md"


# -- counting -----------------------------------------------------------------------------------------------


def test_opening_a_memory_is_one_use_a_day(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("x", title="a")
    watched = Attention(palace.house)
    save(vault, workspace(B, active=B), clock.at)
    count_openings(palace.house, watched)
    clock.turn(days=2)
    save(vault, workspace(A, active=A, recent=(B,)), clock.at)

    counted = count_openings(palace.house, watched)
    for hour in range(5):  # to and fro
        clock.turn(hours=1)
        shown = (B, A) if hour % 2 else (A, B)
        save(vault, workspace(A, B, active=shown[0], recent=(shown[1],)), clock.at)
        count_openings(palace.house, watched)

    assert counted == (A,)
    found = properties(vault, A)
    assert (found["streak"], found["last_touched"][:10]) == (1, "2031-03-03")


def test_a_note_left_open_for_weeks_is_used_once(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("x", title="a", layer="bedrock")
    path = "03_Bedrock/a.md"
    watched = Attention(palace.house)
    save(vault, workspace(B, active=B), clock.at)
    count_openings(palace.house, watched)
    clock.turn(days=1)
    for _ in range(20):
        save(vault, workspace(path, active=path, recent=(B,)), clock.at)
        count_openings(palace.house, watched)
        clock.turn(days=1)

    assert properties(vault, path)["last_touched"] == "2031-03-02T12:00:00"


def test_the_first_look_ever_counts_nothing(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("x", title="a")
    clock.turn(days=1)
    before = (vault / A).read_bytes()
    save(vault, workspace(A, active=A, recent=(A, B)), clock.at)

    assert count_openings(palace.house, Attention(palace.house)) == ()
    assert (vault / A).read_bytes() == before


def test_what_was_opened_while_nobody_kept_the_vault_counts_on_its_day(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    palace.write("x", title="a")
    save(vault, workspace(B, active=B), clock.at)
    Attention(palace.house).openings()
    clock.turn(days=3)
    save(vault, workspace(A, active=A, recent=(B,)), clock.at)
    clock.turn(days=2)

    opened = count_openings(palace.house, Attention(palace.house))  # another keeper
    again = count_openings(palace.house, Attention(palace.house))

    assert (opened, again) == ((A,), ())
    assert properties(vault, A)["last_touched"] == "2031-03-04T12:00:00"


def test_a_workspace_saved_in_the_future_is_of_now(palace: Palace, vault: Path, clock: Clock) -> None:
    save(vault, workspace(B, active=B), clock.at)
    watched = Attention(palace.house)
    watched.openings()
    (vault / A).write_text("x\n", encoding="utf-8")
    save(vault, workspace(A, active=A), clock.at + timedelta(days=400))

    assert watched.openings() == [(A, clock.at)]


OF_ANOTHER_TYPE = (
    '{"v": 1, "workspaces": {".obsidian/workspace.json": {"active": 3, "recent": [], "open": []}}}'
)


@pytest.mark.parametrize(
    "state",
    ["", "{", "[]", '{"v": 2}', '{"v": 1, "workspaces": 3}', "[" * 100_000, OF_ANOTHER_TYPE],
)
def test_a_damaged_memory_of_the_last_look_is_none(
    palace: Palace, vault: Path, clock: Clock, state: str
) -> None:
    save(vault, workspace(B, active=B), clock.at)
    Attention(palace.house).openings()
    (vault / ".palace/attention.json").write_text(state, encoding="utf-8")
    clock.turn(days=1)
    save(vault, workspace(A, active=A), clock.at)

    assert Attention(palace.house).openings() == []


def test_a_workspace_that_is_read_while_it_is_saved_is_read_again(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    (vault / A).write_text("x\n", encoding="utf-8")
    watched = Attention(palace.house)
    save(vault, workspace(B, active=B), clock.at)
    watched.openings()
    whole = json.dumps(workspace(A, active=A, recent=(B,)))
    clock.turn(days=1)
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        save(vault, whole[:size], clock.at)
        assert watched.openings() == []
    save(vault, whole, clock.at)

    assert watched.openings() == [(A, clock.at)]


def test_a_click_into_a_side_pane_and_back_is_no_opening(palace: Palace, vault: Path, clock: Clock) -> None:
    (vault / A).write_text("x\n", encoding="utf-8")
    watched = Attention(palace.house)
    save(vault, workspace(A, active=A), clock.at)
    watched.openings()
    clock.turn(days=1)
    save(vault, {**workspace(A), "active": "e"}, clock.at)
    watched.openings()
    clock.turn(days=1)
    save(vault, workspace(A, active=A), clock.at)

    assert watched.openings() == []


def test_the_phones_workspace_counts_beside_the_desktops(palace: Palace, vault: Path, clock: Clock) -> None:
    for path in (A, B):
        (vault / path).write_text("x\n", encoding="utf-8")
    watched = Attention(palace.house)
    for name in ("workspace.json", "workspace-mobile.json"):
        save(vault, workspace(C, active=C), clock.at, name)
    watched.openings()
    clock.turn(days=1)
    save(vault, workspace(A, active=A), clock.at)
    save(vault, workspace(B, active=B), clock.at, "workspace-mobile.json")

    assert sorted(watched.openings()) == [(A, clock.at), (B, clock.at)]


def test_only_memories_in_the_layers_are_used(palace: Palace, vault: Path, note: Note, clock: Clock) -> None:
    others = (
        "PALACE_MAP.md",
        "_System/Dashboards/Decay.md",
        "_Archive/01_Shallow/old.md",
        "Daily.md",
        "01_Shallow/a (Conflicted copy).md",
        "01_Shallow/gone.md",
    )
    for path in others[:-1]:
        note(path, "---\nid: mem_1\n---\n\nwords\n")
    before = {path: (vault / path).read_bytes() for path in others[:-1]}
    watched = Attention(palace.house)
    save(vault, workspace(B, active=B), clock.at)
    watched.openings()
    clock.turn(days=1)
    for path in others:
        save(vault, workspace(path, active=path), clock.at)

        assert count_openings(palace.house, watched) == ()

    assert {path: (vault / path).read_bytes() for path in others[:-1]} == before


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_name_is_known_in_either_unicode_form(
    palace: Palace, vault: Path, note: Note, clock: Clock, form: Any
) -> None:
    on_disk = normalize(form, "01_Shallow/Café.md")
    note(on_disk, "x\n")
    os.utime(vault / on_disk, (clock.at.timestamp() - 60, clock.at.timestamp() - 60))
    watched = Attention(palace.house)
    save(vault, workspace(B, active=B), clock.at)
    watched.openings()
    shown = normalize("NFC", on_disk)
    save(vault, workspace(shown, active=shown), clock.at)

    assert watched.openings() == [(on_disk, clock.at)]
    assert quiet.attended(palace.house, palace.house.look(on_disk), body=True).startswith(quiet.OPEN)


@pytest.mark.parametrize("why", ["read-only", "no policy"])
def test_nothing_is_remembered_of_a_vault_that_is_not_ours_to_write(
    open_palace: OpenPalace, vault: Path, clock: Clock, why: str
) -> None:
    palace = open_palace(read_only=why == "read-only")
    if why == "no policy":
        (vault / "_System/Policy.md").unlink()
    save(vault, workspace(A, active=A), clock.at)

    assert Attention(palace.house).openings() == []
    assert not (vault / ".palace/attention.json").exists()


def test_an_unchanged_workspace_is_not_read_again(
    palace: Palace, vault: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Attention(palace.house)
    save(vault, workspace(A, active=A), clock.at)
    watched.openings()

    def read(*_: object, **__: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(attention, "_saved", read)

    assert watched.openings() == []


def test_an_opened_note_that_a_person_types_in_is_touched_once_it_is_quiet(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    palace.write("x", title="a")
    watched = Attention(palace.house)
    save(vault, workspace(B, active=B), clock.at)
    watched.openings()
    clock.turn(days=1)
    with (vault / A).open("ab") as file:
        file.write(b"typed\n")
    os.utime(vault / A, (clock.at.timestamp(), clock.at.timestamp()))
    typed = (vault / A).read_bytes()
    save(vault, workspace(A, active=A), clock.at)

    count_openings(palace.house, watched)
    at_once = (vault / A).read_bytes()
    clock.turn(hours=1)
    quiet.flush_touches(palace.house)

    assert at_once == typed
    assert properties(vault, A)["last_touched"] == "2031-03-02T12:00:00"


def test_the_keeper_counts_what_is_opened_while_it_looks_and_before_it_came(
    palace: Palace, open_palace: OpenPalace, vault: Path, clock: Clock
) -> None:
    for title in ("a", "b"):
        palace.write("x", title=title, layer="bedrock")
    first, second = "03_Bedrock/a.md", "03_Bedrock/b.md"
    save(vault, workspace(C, active=C), clock.at)
    keeper = Keeper(palace.house)
    settle(keeper, clock)
    clock.turn(days=1)
    save(vault, workspace(first, active=first, recent=(C,)), clock.at)
    settle(keeper, clock)
    clock.turn(days=1)
    save(vault, workspace(first, second, active=second, recent=(first, C)), clock.at)
    clock.turn(days=2)

    settle(Keeper(open_palace(session="next").house), clock)

    assert properties(vault, first)["last_touched"][:10] == "2031-03-02"
    assert properties(vault, second)["last_touched"][:10] == "2031-03-03"
    assert [properties(vault, path)["streak"] for path in (first, second)] == [1, 1]


def test_a_use_that_one_thread_is_writing_is_left_to_it(
    vault: Path, note: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = note("01_Shallow/a.md", "text\n")
    os.utime(path, (1_600_000_000, 1_600_000_000))
    written: list[str] = []
    real = quiet._write_touch

    def counted(house: Any, path: str, *rest: Any) -> bool:
        written.append(path)
        if len(written) == 1:
            quiet.flush_touches(house)  # what another thread would do meanwhile
        return bool(real(house, path, *rest))

    monkeypatch.setattr(quiet, "_write_touch", counted)
    with Palace.open(vault) as palace:
        palace.read(path="01_Shallow/a.md")

        assert written == ["01_Shallow/a.md"]
        assert palace.house.touches == {}
        assert palace.house.touching == set()
