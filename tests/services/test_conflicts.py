"""Conflict copies: who is one (FS-14), and how `resolve` brings one back into its note."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.services.conftest import Clock
from vault_palace.core import frontmatter
from vault_palace.core.errors import Busy, Conflict, InvalidArguments, MalformedNote, NotFound, PathViolation
from vault_palace.services import conflicts, quiet
from vault_palace.services.answers import ResolveAnswer
from vault_palace.services.conflicts import Copy
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace

NoteMaker = Callable[..., Path]

MAIN = "01_Shallow/budget.md"
COPY = "01_Shallow/budget.sync-conflict-20250102-030405-ABCDEFG.md"
PAGE = "_System/Conflicts/budget (two versions).md"
BODY = "\n# Budget\n\nrent 900\n\nfood 300\n\nbooks 40\n"


@pytest.fixture
def main(palace: Palace, clock: Clock) -> str:
    """A memory as the program wrote it, some days ago."""
    saved = palace.write(BODY.lstrip(), title="budget", tags=["money"])["saved_path"]
    clock.turn(days=3)
    assert saved == MAIN
    return saved


def text_of(vault: Path, path: str = MAIN) -> str:
    return (vault / path).read_bytes().decode("utf-8")


def header_of(vault: Path, path: str = MAIN) -> frontmatter.Header:
    return frontmatter.read(text_of(vault, path))


def save(vault: Path, path: str, text: str, clock: Clock, *, ago: float = 3600) -> None:
    """Write as a person's editor does, some time *ago* by the test's clock."""
    (vault / path).write_bytes(text.encode("utf-8"))
    at = clock().timestamp() - ago
    os.utime(vault / path, (at, at))


def tree(vault: Path) -> dict[str, bytes]:
    return {
        path.relative_to(vault).as_posix(): path.read_bytes()
        for path in sorted(vault.rglob("*"))
        if path.is_file()
    }


def notes_of(vault: Path) -> dict[str, bytes]:
    return {path: data for path, data in tree(vault).items() if path.endswith(".md")}


# -- who is a copy ------------------------------------------------------------------------------------------

AMBIGUOUS = ("budget 2.md", "budget (1).md", "budget-LAPTOP.md")


def problems(palace: Palace) -> dict[str, str]:
    return {one.path: one.message for one in palace.check() if one.code == "conflict_copy"}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_fs_14_an_ambiguous_name_with_the_id_of_its_original_is_a_copy(
    palace: Palace, vault: Path, note: NoteMaker, name: str
) -> None:
    note(MAIN, "---\nid: mem_7f\n---\nforty granite\n")
    note(f"01_Shallow/{name}", "---\nid: mem_7f\n---\nfifty granite\n")

    assert conflicts.copies(palace.house) == ()  # nothing was looked at yet
    assert MAIN in problems(palace)[f"01_Shallow/{name}"]
    assert conflicts.copies(palace.house) == (Copy(f"01_Shallow/{name}", MAIN),)
    assert [match["path"] for match in palace.search("granite")["matches"]] == [MAIN]
    assert palace.read(id="mem_7f", touch=False)["path"] == MAIN
    with pytest.raises(NotFound):
        palace.read(title=name.removesuffix(".md"))
    assert palace.house.shelf.backlinks(MAIN) == []
    assert palace.status()["layers"]["shallow"] == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("budget 2.md", "---\nid: mem_80\n---\nfifty\n"),
        ("budget 2.md", "fifty\n"),
        ("budget 2.md", "---\nid: mem_7f\n---\nforty\n"),
        ("budget 1.md", "---\nid: mem_7f\n---\nfifty\n"),
        ("budget 2000.md", "---\nid: mem_7f\n---\nfifty\n"),
        ("ledger 2.md", "---\nid: mem_7f\n---\nfifty\n"),
    ],
    ids=["another id", "no id", "a person's plain copy", "Obsidian's copy", "a year", "another name"],
)
def test_fs_14_such_a_name_alone_makes_no_copy(palace: Palace, note: NoteMaker, name: str, text: str) -> None:
    note(MAIN, "---\nid: mem_7f\n---\nforty\n")
    note(f"01_Shallow/{name}", text)

    assert problems(palace) == {}
    assert palace.status()["layers"]["shallow"] == 2


def test_fs_14_who_is_a_copy_is_judged_again_when_the_original_comes_or_goes(
    palace: Palace, vault: Path, note: NoteMaker
) -> None:
    note("01_Shallow/budget 2.md", "---\nid: mem_7f\n---\nfifty\n")
    alone = problems(palace)

    note(MAIN, "---\nid: mem_7f\n---\nforty\n")
    beside = problems(palace)
    note(MAIN, "---\nid: mem_80\n---\nforty and more\n")
    other_id = problems(palace)
    note(MAIN, "---\nid: mem_7f\n---\nforty again\n")
    (vault / MAIN).unlink()
    gone = problems(palace)

    assert (alone, list(beside), other_id, gone) == ({}, ["01_Shallow/budget 2.md"], {}, {})


def test_fs_14_who_is_a_copy_is_judged_again_after_the_program_s_own_write(
    palace: Palace, note: NoteMaker, clock: Clock
) -> None:
    """With or without a cache that saw it happen, the answer is the same."""
    note(MAIN, "---\nid: mem_7f\n---\nforty\n")
    note("01_Shallow/budget 2.md", "---\nid: mem_7f\n---\nforty\n")
    alike = problems(palace)
    clock.turn(days=1)

    palace.rate(path=MAIN, density=0.5)
    fed = palace.house.shelf.is_copy("01_Shallow/budget 2.md")
    at_once = problems(palace)
    palace.reindex()

    assert alike == {}
    assert fed
    assert list(at_once) == ["01_Shallow/budget 2.md"]
    assert problems(palace) == at_once


def test_fs_14_a_copy_of_a_copy_names_the_note(palace: Palace, note: NoteMaker) -> None:
    note(MAIN, "---\nid: mem_7f\n---\nforty\n")
    note("01_Shallow/budget 2.md", "---\nid: mem_7f\n---\nfifty\n")
    note("01_Shallow/budget 2 (1).md", "---\nid: mem_7f\n---\nsixty\n")
    palace.check()

    assert {copy.main for copy in conflicts.copies(palace.house)} == {MAIN}


def test_fs_14_a_file_that_a_merge_tool_set_aside_is_reported(palace: Palace, note: NoteMaker) -> None:
    note(MAIN, "---\nid: mem_7f\n---\nforty\n")
    note(f"{MAIN}.orig", "---\nid: mem_7f\n---\nfifty\n")

    assert MAIN in problems(palace)[f"{MAIN}.orig"]


def test_fs_14_a_copy_stays_one_when_its_note_went_to_the_archive(
    palace: Palace, vault: Path, note: NoteMaker, clock: Clock
) -> None:
    for path in (MAIN, *(f"01_Shallow/{name}" for name in (*AMBIGUOUS, Path(COPY).name))):
        note(path, f"---\nid: mem_7f\ncreated: 2030-01-01\nlast_touched: 2030-01-01\n---\n{path}\n")
    before = tree(vault)

    first = palace.metabolize(confirm=True)
    clock.turn(days=400)
    second = palace.metabolize(confirm=True)

    after = tree(vault)
    assert first["archived"] == [f"_Archive/{MAIN}"]
    assert second["scanned"] == 0
    assert len(problems(palace)) == 4
    assert {palace.house.look(path).kind for path in problems(palace)} == {"conflict"}
    assert palace.read(id="mem_7f")["path"] == f"_Archive/{MAIN}"
    for path in (COPY, *(f"01_Shallow/{name}" for name in AMBIGUOUS)):
        assert after[path] == before[path]


def test_fs_14_the_name_of_a_copy_is_taken_all_the_same(palace: Palace, note: NoteMaker) -> None:
    note(MAIN, "---\nid: mem_7f\n---\nforty\n")
    note("01_Shallow/budget 2.md", "---\nid: mem_7f\n---\nfifty\n")

    assert palace.write("new", title="budget")["saved_path"] == "01_Shallow/budget 3.md"


@pytest.mark.parametrize("copy", [COPY, "01_Shallow/budget 2.md"])
def test_fs_14_the_keeper_leaves_a_copy_alone_and_lists_it_in_the_index_note(
    palace: Palace, vault: Path, main: str, clock: Clock, copy: str
) -> None:
    save(vault, copy, text_of(vault).replace("books 40", "books 60"), clock)
    bytes_before = (vault / copy).read_bytes()
    keeper = Keeper(palace.house)

    for _ in range(4):
        keeper.step()
        clock.turn(hours=0.01)

    told = text_of(vault, "PALACE_MAP.md")
    assert (vault / copy).read_bytes() == bytes_before
    assert told.count(f"[[{Path(copy).stem}]]") == 1
    assert "duplicate_id" not in told


def test_fs_14_a_plain_copy_gets_an_id_of_its_own_from_the_keeper(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    copy = "01_Shallow/budget 2.md"
    save(vault, copy, text_of(vault), clock)
    keeper = Keeper(palace.house)

    for _ in range(4):
        keeper.step()
        clock.turn(hours=0.01)

    assert header_of(vault, copy).values["id"] != header_of(vault, main).values["id"]
    assert conflicts.copies(palace.house) == ()


# -- merging ------------------------------------------------------------------------------------------------


def test_a_copy_is_merged_by_the_kept_version_that_both_began_as(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    began = text_of(vault)
    save(vault, main, began.replace("rent 900", "rent 950"), clock)
    save(vault, COPY, began.replace("books 40", "books 60").replace("- money", "- money\n  - 2031"), clock)

    answer = palace.resolve(main)

    assert answer == ResolveAnswer(
        main=MAIN, copy=COPY, outcome="merged", dry_run=False, page="", saved_as="", told=[], left=[]
    )
    assert header_of(vault).body == BODY.replace("900", "950").replace("40", "60")
    assert frontmatter.tags(header_of(vault)) == ["money", "2031"]
    assert not (vault / COPY).exists()
    assert [match["path"] for match in palace.search("books 60")["matches"]] == [MAIN]
    assert palace.check() == []


def test_both_versions_are_kept_and_one_operation_tells_of_it(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    began = text_of(vault)
    save(vault, main, began.replace("rent 900", "rent 950"), clock)
    save(vault, COPY, began.replace("books 40", "books 60"), clock)
    before = [(vault / path).read_bytes() for path in (MAIN, COPY)]

    palace.resolve(COPY)

    entry = palace.house.journal.entries()[-1]
    assert (entry.verb, entry.state, [step.kind for step in entry.steps]) == (
        "resolve",
        "done",
        ["put", "remove"],
    )
    kept = [palace.house.versions.get(step.before or "") for step in entry.steps]
    assert kept == before


def test_the_person_s_density_and_the_larger_use_and_the_later_touch_win(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    began = text_of(vault)
    used = began.replace("streak: 0", "streak: 3").replace("density: 0.2", "density: 0.9")
    save(vault, COPY, used.replace("last_touched: 2031-03-01", "last_touched: 2031-03-03"), clock)
    palace.rate(path=main, pinned=False)

    answer = palace.resolve(main)

    values = header_of(vault).values
    assert answer["outcome"] == "merged"
    assert (values["density"], values["streak"]) == (0.9, 3)
    assert str(values["last_touched"]).startswith("2031-03-03")


def test_a_property_that_both_changed_is_told(palace: Palace, vault: Path, main: str, clock: Clock) -> None:
    began = text_of(vault)
    save(vault, main, began.replace("status:", "owner: Ann\nstatus:"), clock)
    save(vault, COPY, began.replace("status:", "owner: Bo\nstatus:"), clock)

    answer = palace.resolve(main)

    assert header_of(vault).values["owner"] == "Ann"
    assert answer["told"] == ["owner was also 'Bo'"]


def test_a_copy_with_nothing_new_just_goes(palace: Palace, vault: Path, main: str, clock: Clock) -> None:
    """The copy is an older text of the note: it must not undo what came since."""
    save(vault, COPY, text_of(vault), clock)
    palace.write("later", mode="append", path=main)
    clock.turn(days=1)

    assert palace.resolve(main)["outcome"] == "merged"
    assert header_of(vault).body.endswith("later")


def test_what_two_devices_appended_is_all_there(palace: Palace, vault: Path, main: str, clock: Clock) -> None:
    save(vault, COPY, text_of(vault) + "\nfrom the phone\n", clock)
    palace.write("from the agent", mode="append", path=main)
    clock.turn(days=1)

    answer = palace.resolve(main)

    assert answer["outcome"] == "merged"
    assert header_of(vault).body.rstrip("\n") == f"{BODY}\nfrom the agent\n\nfrom the phone"


def test_without_a_kept_version_one_that_holds_the_other_is_taken(
    palace: Palace, vault: Path, note: NoteMaker
) -> None:
    note(MAIN, "---\nid: mem_7f\n---\none\ntwo\n")
    note(COPY, "---\nid: mem_7f\n---\none\nmore\ntwo\n")

    assert palace.resolve(MAIN)["outcome"] == "merged"
    assert header_of(vault).body == "one\nmore\ntwo\n"


def test_a_version_that_was_only_seen_and_kept_is_a_base_too(
    palace: Palace, vault: Path, note: NoteMaker
) -> None:
    """The keeper keeps what people save, and the journal's line of that names no bytes."""
    palace.house.versions.keep(b"---\nid: mem_7f\n---\none\n\ntwo\n\nthree\n")
    note(MAIN, "---\nid: mem_7f\n---\nONE\n\ntwo\n\nthree\n")
    note(COPY, "---\nid: mem_7f\n---\none\n\ntwo\n\nTHREE\n")

    assert palace.resolve(MAIN)["outcome"] == "merged"
    assert header_of(vault).body == "ONE\n\ntwo\n\nTHREE\n"


def test_nothing_is_taken_for_deleted_in_the_copy_when_nobody_knows(
    palace: Palace, vault: Path, note: NoteMaker, clock: Clock
) -> None:
    """The only kept version is the main note's present text: where the copy began, nothing says."""
    note(MAIN, "---\nid: mem_7f\n---\none\nnew in main\ntwo\n")
    palace.rate(path=MAIN, density=0.4)
    clock.turn(days=1)
    note(COPY, "---\nid: mem_7f\n---\none\nnew in the copy\ntwo\n")

    assert palace.resolve(MAIN)["outcome"] == "page"


def test_line_ends_and_byte_order_mark_stay_those_of_the_note(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    began = text_of(vault)
    save(vault, main, "\ufeff" + began.replace("rent 900", "rent 950").replace("\n", "\r\n"), clock)
    save(vault, COPY, began.replace("books 40", "books 60"), clock)

    palace.resolve(main)

    text = text_of(vault)
    assert header_of(vault).body == BODY.replace("900", "950").replace("40", "60").replace("\n", "\r\n")
    assert text.startswith("\ufeff---\r\n")
    assert text.count("\n") == text.count("\r\n")


def test_what_a_merge_tool_set_aside_is_resolved_too(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    save(vault, f"{MAIN}.orig", text_of(vault), clock)
    palace.write("later", mode="append", path=main)
    clock.turn(days=1)

    assert palace.resolve(main)["outcome"] == "merged"
    assert not (vault / f"{MAIN}.orig").exists()
    assert palace.check() == []


def test_a_merge_can_be_undone(palace: Palace, vault: Path, main: str, clock: Clock) -> None:
    began = text_of(vault)
    save(vault, main, began.replace("rent 900", "rent 950"), clock)
    save(vault, COPY, began.replace("books 40", "books 60"), clock)
    before = notes_of(vault)
    palace.resolve(main)
    operation = palace.house.journal.entries()[-1].op
    clock.turn(days=1)

    palace.undo(operation, confirm=True)

    assert notes_of(vault) == before


def test_of_several_copies_one_is_merged_and_the_others_are_named(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    began = text_of(vault)
    for name, sum_ in (("budget 2.md", "41"), ("budget (1).md", "42")):
        save(vault, f"01_Shallow/{name}", began.replace("books 40", f"books {sum_}"), clock)

    answer = palace.resolve("budget")

    assert (answer["copy"], answer["left"]) == ("01_Shallow/budget (1).md", ["01_Shallow/budget 2.md"])
    assert (vault / "01_Shallow/budget 2.md").exists()


@pytest.mark.parametrize("keep", [None, "main", "copy", "both"])
def test_a_dry_run_writes_no_byte(
    palace: Palace, vault: Path, main: str, clock: Clock, keep: str | None
) -> None:
    save(vault, COPY, text_of(vault).replace("books 40", "books 60"), clock)
    before = tree(vault)

    answer = palace.resolve(main, keep=keep, dry_run=True)

    assert answer["dry_run"]
    assert answer["outcome"] == (keep or "merged")
    assert tree(vault) == before


# -- a person decides ---------------------------------------------------------------------------------------


@pytest.fixture
def clash(palace: Palace, vault: Path, main: str, clock: Clock) -> str:
    """Two versions that changed the same line; the copy's path."""
    began = text_of(vault)
    save(vault, main, began.replace("rent 900", "rent 950"), clock)
    save(vault, COPY, began.replace("rent 900", "rent 1000"), clock)
    return COPY


def test_what_clashes_stays_in_both_notes_and_stands_on_a_page(
    palace: Palace, vault: Path, clash: str
) -> None:
    before = {path: text_of(vault, path) for path in (MAIN, clash)}

    answer = palace.resolve(clash)

    page = text_of(vault, PAGE)
    assert (answer["outcome"], answer["page"]) == ("page", PAGE)
    assert {path: text_of(vault, path) for path in (MAIN, clash)} == before
    assert "rent 950" in page
    assert "rent 1000" in page
    assert "\n<<<<<<< " in page


def test_the_page_is_no_memory_and_takes_no_link(palace: Palace, vault: Path, clash: str) -> None:
    palace.write("see [[budget]]", title="Other")
    palace.resolve(clash)

    assert [match["path"] for match in palace.search("rent")["matches"]] == [MAIN]
    assert palace.read(title="budget")["backlinks"] == ["01_Shallow/Other.md"]
    assert palace.house.look(PAGE).kind == "system"
    assert {one.code for one in palace.check()} == {"conflict_copy"}


def test_the_page_waits_as_long_as_markers_stand_in_it(palace: Palace, vault: Path, clash: str) -> None:
    palace.resolve(clash)
    before = notes_of(vault)

    assert palace.resolve(clash)["outcome"] == "page"
    assert notes_of(vault) == before


def decide(vault: Path, clock: Clock, line: str = "rent 975") -> None:
    """What a person does on the page: one line instead of the marked ones."""
    text = text_of(vault, PAGE)
    head, _, rest = text.partition("<<<<<<< ")
    _, _, rest = rest.partition(">>>>>>> ")
    save(vault, PAGE, f"{head}{line}\n{rest.partition(chr(10))[2]}", clock)


def test_the_text_that_a_person_made_of_both_becomes_the_note_s(
    palace: Palace, vault: Path, clash: str, clock: Clock
) -> None:
    palace.resolve(clash)
    decide(vault, clock)

    answer = palace.resolve(MAIN)

    assert answer["outcome"] == "merged"
    assert header_of(vault).body == BODY.replace("rent 900", "rent 975")
    assert not (vault / clash).exists()
    assert not (vault / PAGE).exists()


def test_what_came_to_the_note_meanwhile_is_in_it_too(
    palace: Palace, vault: Path, clash: str, clock: Clock
) -> None:
    palace.resolve(clash)
    decide(vault, clock)
    palace.write("appended since", mode="append", path=MAIN)
    clock.turn(days=1)

    palace.resolve(MAIN)

    body = header_of(vault).body
    assert "rent 975" in body
    assert "appended since" in body


def test_a_page_that_no_longer_fits_is_refused(palace: Palace, vault: Path, clash: str, clock: Clock) -> None:
    palace.resolve(clash)
    decide(vault, clock)
    save(vault, MAIN, text_of(vault).replace("rent 950", "rent 955"), clock)
    before = notes_of(vault)

    with pytest.raises(Conflict, match="changed since"):
        palace.resolve(MAIN)
    assert notes_of(vault) == before


@pytest.mark.parametrize(("keep", "rent"), [("main", "rent 950"), ("copy", "rent 1000")])
def test_a_person_may_keep_one_of_the_two(
    palace: Palace, vault: Path, clash: str, keep: str, rent: str
) -> None:
    palace.resolve(clash)
    id_before = header_of(vault).values["id"]

    answer = palace.resolve(clash, keep=keep)

    assert answer["outcome"] == keep
    assert rent in text_of(vault)
    assert header_of(vault).values["id"] == id_before
    assert not (vault / clash).exists()
    assert not (vault / PAGE).exists()


@pytest.mark.parametrize(
    ("copy", "to"),
    [
        (COPY, "01_Shallow/budget 2.md"),
        ("01_Shallow/budget (1).md", "01_Shallow/budget (1).md"),
    ],
)
def test_a_person_may_keep_both(
    palace: Palace, vault: Path, main: str, clock: Clock, copy: str, to: str
) -> None:
    save(vault, copy, text_of(vault).replace("rent 900", "rent 1000"), clock)

    answer = palace.resolve(copy, keep="both")

    assert answer["saved_as"] == to
    assert header_of(vault, to).values["id"] != header_of(vault, main).values["id"]
    assert "rent 1000" in text_of(vault, to)
    assert palace.check() == []
    assert palace.status()["layers"]["shallow"] == 2


def test_a_copy_whose_note_is_gone_becomes_the_note(palace: Palace, vault: Path, note: NoteMaker) -> None:
    note(COPY, "---\nid: mem_7f\n---\nthe only one\n")

    answer = palace.resolve(COPY)

    assert (answer["main"], answer["outcome"]) == (MAIN, "copy")
    assert "the only one" in text_of(vault)
    assert not (vault / COPY).exists()


# -- refusals -----------------------------------------------------------------------------------------------


def test_a_note_without_a_copy_is_refused(palace: Palace, main: str) -> None:
    with pytest.raises(NotFound, match="no conflict copy"):
        palace.resolve(main)


def test_another_word_for_keep_is_refused(palace: Palace, main: str) -> None:
    with pytest.raises(InvalidArguments, match="keep"):
        palace.resolve(main, keep="newest")


def test_the_map_has_no_second_one(palace: Palace, note: NoteMaker) -> None:
    note("PALACE_MAP.md", "mine\n")
    note("PALACE_MAP (conflicted copy).md", "theirs\n")

    with pytest.raises(PathViolation):
        palace.resolve("PALACE_MAP (conflicted copy).md", keep="both")


def test_a_copy_whose_header_does_not_parse_is_refused(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    save(vault, COPY, "---\nid: [\n---\ntext\n", clock)
    before = notes_of(vault)

    with pytest.raises(MalformedNote):
        palace.resolve(main)
    assert notes_of(vault) == before


@pytest.mark.parametrize("path", [MAIN, COPY])
def test_a_person_who_types_in_either_is_waited_for(
    palace: Palace, vault: Path, main: str, clock: Clock, path: str
) -> None:
    began = text_of(vault)
    save(vault, COPY, began.replace("books 40", "books 60"), clock)
    save(vault, path, text_of(vault, path) + "typing\n", clock, ago=0)

    palace.resolve(main)

    assert clock.slept == pytest.approx(2, abs=0.25)
    assert "typing" in text_of(vault)


def test_a_note_that_keeps_changing_is_not_merged(
    palace: Palace, vault: Path, main: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(vault, COPY, text_of(vault).replace("books 40", "books 60"), clock)
    monkeypatch.setattr(quiet, "attended", lambda *_args, **_more: "it was changed a moment ago")
    before = notes_of(vault)

    with pytest.raises(Busy):
        palace.resolve(main)
    assert notes_of(vault) == before


# -- a late save of a moved note ----------------------------------------------------------------------------


def test_a_late_save_at_the_old_path_is_merged_into_the_moved_note(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    base = (vault / main).read_bytes()
    moved = palace.move(main, "sediment")["destination"]
    save(vault, main, base.decode().replace("books 40", "books 60"), clock)

    assert conflicts.merge_back(palace.house, moved, main, base)
    assert "books 60" in text_of(vault, moved)
    assert header_of(vault, moved).values["layer"] == "sediment"
    assert not (vault / main).exists()


def test_a_late_save_that_clashes_leaves_both(palace: Palace, vault: Path, main: str, clock: Clock) -> None:
    base = (vault / main).read_bytes()
    moved = palace.move(main, "sediment")["destination"]
    save(vault, moved, text_of(vault, moved).replace("books 40", "books 50"), clock)
    save(vault, main, base.decode().replace("books 40", "books 60"), clock)
    before = notes_of(vault)

    assert not conflicts.merge_back(palace.house, moved, main, base)
    assert notes_of(vault) == before


def test_another_memory_at_the_old_path_is_no_late_save(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    base = (vault / main).read_bytes()
    moved = palace.move(main, "sediment")["destination"]
    save(vault, main, "---\nid: mem_new\n---\nanother\n", clock)

    assert not conflicts.merge_back(palace.house, moved, main, base)


def test_a_late_save_is_not_taken_from_under_the_person(
    palace: Palace, vault: Path, main: str, clock: Clock
) -> None:
    base = (vault / main).read_bytes()
    moved = palace.move(main, "sediment")["destination"]
    save(vault, main, base.decode() + "typing\n", clock, ago=0)

    with pytest.raises(Busy):
        conflicts.merge_back(palace.house, moved, main, base)
