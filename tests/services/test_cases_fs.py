"""Failure cases of files (FS) on a real vault, as a caller of the palace meets them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.core import frontmatter, names
from vault_palace.core.errors import (
    Conflict,
    MalformedNote,
    NotFound,
    PathViolation,
    StorageFailed,
    VaultError,
)
from vault_palace.services import conflicts, house
from vault_palace.services.palace import Palace, PalaceSettings

Note = Callable[..., Path]

ROOT = Path(__file__).parents[2]


def properties(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def notes(root: Path) -> dict[str, bytes]:
    """Every file of the vault but the program's own state, leftovers of killed saves included."""
    return {
        place: path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
        for place in [path.relative_to(root).as_posix()]
        if not place.startswith((".palace/", "_System/"))
    }


def found(palace: Palace, query: str) -> list[str]:
    return sorted(match["path"] for match in palace.search(query, limit=100, max_tokens=200_000)["matches"])


def codes(palace: Palace) -> set[tuple[str, str]]:
    return {(problem.path, problem.code) for problem in palace.check()}


# -- FS-02 --------------------------------------------------------------------------------------------------


def test_fs_02_a_note_whose_case_a_person_changed_is_the_same_note(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    saved = palace.write("granite\n", title="HowTo")
    palace.write("[[HowTo]]\n", title="b")
    clock.turn(days=2)
    palace.read(path=saved["saved_path"])
    before = properties(vault, "01_Shallow/HowTo.md")

    (vault / "01_Shallow/HowTo.md").rename(vault / "01_Shallow/howto.md")
    palace.house.refresh(if_older=0)

    assert found(palace, "granite") == ["01_Shallow/howto.md"]
    by_id = palace.read(id=saved["id"], touch=False)
    assert (by_id["path"], by_id["backlinks"]) == ("01_Shallow/howto.md", ["01_Shallow/b.md"])
    assert properties(vault, "01_Shallow/howto.md") == before
    assert palace.check() == []


def test_fs_02_the_tool_changes_the_case_as_well(palace: Palace, vault: Path, clock: Clock) -> None:
    """And back: what is gone never stands in the way of its own other spelling."""
    saved = palace.write("granite\n", title="HowTo")
    palace.write("[[HowTo]]\n", title="b")
    before = properties(vault, "01_Shallow/HowTo.md")

    for name in ("howto", "HOWTO", "HowTo"):
        moved = palace.move(palace.read(id=saved["id"])["path"], "shallow", new_path=name)
        assert moved["destination"] == f"01_Shallow/{name}.md"
        assert found(palace, "granite") == [f"01_Shallow/{name}.md"]

    assert properties(vault, "01_Shallow/HowTo.md") == before
    assert palace.check() == []
    assert palace.health()["status"] == "ok"


# -- FS-03, FS-05, and names that people gave ---------------------------------------------------------------

TITLES = ("tab\there", "CON", "nul", "com1.txt", "LPT9 ", "trailing dot.", " .hidden", "~tilde", "\u202eevil")


@pytest.mark.parametrize("title", TITLES)
def test_fs_03_a_title_that_some_system_forbids_becomes_a_name_that_all_hold(
    palace: Palace, vault: Path, title: str
) -> None:
    saved = palace.write("granite", title=title)["saved_path"]

    folder, _, name = saved.rpartition("/")
    stem = name.removesuffix(".md")
    assert folder == "01_Shallow"
    assert names.file_name(stem) == stem  # valid everywhere: nothing is left to clean
    assert names.linkable(stem)
    assert palace.read(title=title)["path"] == saved
    assert title.strip() in frontmatter.aliases(frontmatter.read((vault / saved).read_text(encoding="utf-8")))
    assert palace.check() == []


@pytest.mark.parametrize(
    "path", ["CON", "a/nul.md", "com1", "a:b", "what?", "x.", " y", "a/.b", "..", "a\tb"]
)
def test_fs_03_such_a_path_is_refused_before_anything_is_written(
    palace: Palace, vault: Path, path: str
) -> None:
    before = sorted(vault.rglob("*"))

    with pytest.raises(PathViolation):
        palace.write("granite", path=path)

    assert sorted(vault.rglob("*")) == before


ODD_NAMES = ("CON", "aux.notes", "What now?", "a:b", "100%", "a_b", "[x]", "x#y", "q|r", " blank ", "ä" * 126)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_fs_03_a_name_that_a_person_gave_goes_through_every_verb(
    palace: Palace, vault: Path, note: Note, clock: Clock, name: str
) -> None:
    path = f"01_Shallow/{name}.md"
    note(path, "---\nid: mem_odd\n---\ngranite\n")
    other = note(f"01_Shallow/{name[1:]}x.md", "---\nid: mem_other\n---\nmarble\n")
    before = other.read_bytes()

    assert found(palace, "granite") == [path]
    assert palace.read(path=path)["content"] == "granite\n"
    assert palace.rate(path=path, density=0.3)["path"] == path
    assert palace.write("basalt", mode="append", path=path)["saved_path"] == path
    assert palace.write("gneiss", mode="append", title=name)["saved_path"] == path
    up = palace.move(path, "sediment")["destination"]
    assert up == f"02_Sediment/{name}.md"
    away = palace.purge(up, confirm=True)["archived_to"]
    assert away == f"_Archive/02_Sediment/{name}.md"
    back = palace.restore(away)["restored_to"]

    assert back == up
    assert properties(vault, back)["id"] == "mem_odd"
    assert [place for place in notes(vault) if place.endswith(".md")].count(back) == 1
    assert other.read_bytes() == before


LONG = ("é" * 140, "漢" * 84, "漢" * 86, "🧭" * 63, "👩‍👩‍👧" * 20, "a" * 252, "a" * 300)


@pytest.mark.parametrize("title", LONG, ids=lambda title: f"{title[0]}x{len(title)}")
def test_fs_05_a_long_title_is_cut_at_a_character_and_kept_whole_as_an_alias(
    palace: Palace, vault: Path, title: str
) -> None:
    saved = palace.write("granite", title=title)
    twin = palace.write("marble", title=f"{title[:250]} and an end of its own")

    stem = saved["saved_path"].rpartition("/")[2].removesuffix(".md")
    assert title.startswith(stem)
    assert len(f"{stem}.md".encode()) <= 183
    assert not title[len(stem) :].startswith(("\u200d", "\ufe0f"))
    assert palace.read(title=title)["path"] == saved["saved_path"]
    assert palace.read(path=twin["saved_path"])["content"] == "marble"
    up = palace.move(saved["saved_path"], "sediment")["destination"]
    away = palace.purge(up, confirm=True)["archived_to"]
    back = palace.restore(away)["restored_to"]
    renamed = palace.move(back, "sediment", new_path="short")["destination"]
    assert palace.read(path=renamed)["content"] == "granite"
    assert [name for name in notes(vault) if name.rpartition("/")[2].startswith(".")] == []
    assert len(notes(vault)) == 2


# -- FS-08, FS-09 -------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "victim.txt").write_bytes(b"mine")
    (place / "secret.md").write_bytes(b"granite secret\n")
    return place


def test_fs_08_dead_links_loops_and_pipes_blind_nobody(
    palace: Palace, vault: Path, note: Note, outside: Path
) -> None:
    for number in range(5):
        note(f"01_Shallow/n{number}.md", "granite\n")
    shallow = vault / "01_Shallow"
    (shallow / "dead.md").symlink_to("gone.md")
    (shallow / "up").symlink_to("..")
    (shallow / "self").symlink_to("self")
    os.mkfifo(shallow / "pipe.md")

    hits = found(palace, "granite")
    told = codes(palace)
    run = palace.metabolize(confirm=True)
    listed = palace.reindex()["notes"]

    assert hits == [f"01_Shallow/n{number}.md" for number in range(5)]
    assert told == {
        ("01_Shallow/dead.md", "symbolic_link"),
        ("01_Shallow/up", "symbolic_link"),
        ("01_Shallow/self", "symbolic_link"),
        ("01_Shallow/pipe.md", "not_a_file"),
    }
    assert (run["scanned"], run["skipped"], listed) == (5, [], 6)


@pytest.mark.parametrize("name", ["dead.md", "self.md", "pipe.md", "out.md", "folder.md"])
def test_fs_08_no_verb_hangs_on_or_follows_what_is_no_file(
    palace: Palace, vault: Path, outside: Path, name: str
) -> None:
    shallow = vault / "01_Shallow"
    (shallow / "dead.md").symlink_to("gone.md")
    (shallow / "self.md").symlink_to("self.md")
    (shallow / "out.md").symlink_to(outside / "secret.md")
    (shallow / "folder.md").mkdir()
    os.mkfifo(shallow / "pipe.md")
    path = f"01_Shallow/{name}"

    for act in (
        lambda: palace.read(path=path),
        lambda: palace.rate(path=path, density=1),
        lambda: palace.move(path, "sediment"),
        lambda: palace.purge(path, confirm=True),
        lambda: palace.write("x", mode="append", path=path),
        lambda: palace.write("x", path=path),
    ):
        with pytest.raises(VaultError) as refused:
            act()
        assert "secret" not in str(refused.value)

    assert found(palace, "granite") == []
    assert (outside / "secret.md").read_bytes() == b"granite secret\n"
    assert (shallow / "dead.md").is_symlink()


@pytest.mark.parametrize("prepared", ["_Archive", "_Archive/01_Shallow", "_Archive/01_Shallow/ideas"])
def test_fs_09_an_archive_that_leads_elsewhere_takes_no_note(
    palace: Palace, vault: Path, outside: Path, clock: Clock, prepared: str
) -> None:
    palace.write("granite", path="ideas/sand")
    palace.write("gold", title="Gold", density=0.9)
    clock.turn(days=9)
    (vault / prepared).parent.mkdir(parents=True, exist_ok=True)
    (vault / prepared).symlink_to(outside)

    run = palace.metabolize(confirm=True)
    with pytest.raises(PathViolation):
        palace.purge("01_Shallow/ideas/sand.md", confirm=True)

    assert run["archived"] == []
    assert [skipped["path"] for skipped in run["skipped"]] == ["01_Shallow/ideas/sand.md"]
    assert run["promoted"] == ["02_Sediment/Gold.md"]
    assert sorted(path.name for path in outside.iterdir()) == ["secret.md", "victim.txt"]
    assert found(palace, "granite") == ["01_Shallow/ideas/sand.md"]


def test_fs_09_a_foreseen_temporary_name_is_never_written_through(
    palace: Palace, vault: Path, outside: Path
) -> None:
    for name in (".note.md.tmp", ".note.tmp", "note.md.tmp", "note.md~"):
        (vault / "01_Shallow" / name).symlink_to(outside / "victim.txt")
    (vault / "PALACE_MAP.md").symlink_to(outside / "victim.txt")

    saved = palace.write("granite", title="note")
    palace.write("marble", mode="append", path="note")
    with pytest.raises(PathViolation):
        palace.update_map("add_link", "[[note]]")

    assert palace.read(path=saved["saved_path"])["content"] == "granite\n\nmarble"
    assert (outside / "victim.txt").read_bytes() == b"mine"


# -- FS-11 --------------------------------------------------------------------------------------------------

PATHOLOGICAL: dict[str, str | bytes] = {
    "brackets": "[" * 55_000,
    "markdown": "[x](" * 150_000,
    "wikilinks": "[[b]] " * 120_000,
    "one line": "x" * 20_000_000,
    "han": "漢" * 6_000_000,
    "ticks": "`" * 1_000_000,
    "embeds": "![[" * 200_000,
    "stars": "*a_ " * 300_000,
    "quotes": "> " * 200_000,
    "lists": "".join("  " * depth + "- x\n" for depth in range(2_000)),
    "keys": "---\n" + "".join(f"k{n}: v\n" for n in range(100_000)) + "---\n",
    "nested": "---\na: " + "[" * 100_000 + "\n---\n",
    "bomb": "---\nk0: &a0 [x]\n"
    + "".join(f"k{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    + "---\n",
    "zeros": b"\0" * 5_000_000,
}
CUT = {"one line", "han", "markdown", "nested", "keys"}  # read only in part, and said to be
PATIENT = """
import json, resource, sys
from datetime import UTC, datetime
from pathlib import Path
from vault_palace.core.errors import VaultError
from vault_palace.services.palace import Palace, PalaceSettings

root = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (150, 160))
resource.setrlimit(resource.RLIMIT_DATA, (900 << 20, 900 << 20))
settings = PalaceSettings(
    cache_dir=root / "../cache", state_dir=root / "../state",
    clock=lambda: datetime(2031, 3, 1, 12, tzinfo=UTC), sleep=lambda _: None,
)
with Palace.open(root, settings=settings) as palace:
    hits = sorted(match["path"] for match in palace.search("granite", limit=50)["matches"])
    told = sorted({problem.path for problem in palace.check() if problem.code != "unresolved_link"})
    read = {}
    for path in sorted(root.glob("01_Shallow/odd *.md")):
        answer = palace.read(path=f"01_Shallow/{path.name}", touch=False)
        read[path.stem] = [answer["truncated"], len(answer["content"])]
    run = palace.metabolize(confirm=True)
print(json.dumps({"hits": hits, "told": told, "read": read, "scanned": run["scanned"]}))
"""


def test_fs_11_pathological_notes_cost_bounded_time_and_memory(
    vault: Path, note: Note, open_palace: OpenPalace
) -> None:
    """The limits are the kernel's, and many times what is used; quadratic time would run into them."""
    for number in range(20):
        note(f"01_Shallow/n{number:02}.md", f"granite {number}\n")
    for name, text in PATHOLOGICAL.items():
        note(f"01_Shallow/odd {name}.md", text)

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PATIENT, str(vault)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["hits"] == [f"01_Shallow/n{number:02}.md" for number in range(20)]
    assert {f"01_Shallow/odd {name}.md" for name in CUT} <= set(answer["told"])
    assert answer["scanned"] == 20 + len(PATHOLOGICAL)
    assert set(answer["read"]) == {f"odd {name}" for name in PATHOLOGICAL}
    assert max(length for _, length in answer["read"].values()) <= 6_000 * 64  # blanks are cheap


def test_fs_11_calls_are_answered_while_one_note_is_being_read(
    palace: Palace, vault: Path, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        note(f"01_Shallow/n{number:02}.md", "granite\n")
    assert len(found(palace, "granite")) == 20
    note("01_Shallow/enormous.md", "x" * 1000)
    reading, go_on = threading.Event(), threading.Event()
    real = house.House.understand

    def slow(self: house.House, path: str, stored: Any, observe: Any = None) -> house.Note:
        if path.endswith("enormous.md"):
            reading.set()
            assert go_on.wait(60)
        return real(self, path, stored, observe)

    monkeypatch.setattr(house.House, "understand", slow)
    indexer = threading.Thread(target=lambda: palace.house.refresh(if_older=0))
    indexer.start()
    assert reading.wait(60)

    answers = (
        len(found(palace, "granite")),
        palace.read(path="01_Shallow/n07.md", touch=False)["content"],
        palace.status()["layers"]["shallow"],
        palace.find("granite")["matches"][0]["path"][:12],
    )
    still_reading = indexer.is_alive()
    go_on.set()
    indexer.join(60)

    assert still_reading
    assert answers == (20, "granite\n", 20, "01_Shallow/n")
    assert palace.status()["layers"]["shallow"] == 21


# -- FS-12 --------------------------------------------------------------------------------------------------

NOT_TEXT = {
    "legacy": b"---\ntitle: Cr\xe8me\n---\nbr\xfbl\xe9e [[hub]]\n",
    "image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
    "one bad byte": b"caf\xc3\xa9 ok \xff end [[hub]]",
    "utf-16": "---\ntitle: x\n---\n[[hub]]\n".encode("utf-16"),
}


def test_fs_12_bytes_that_are_no_text_outlive_all_upkeep(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    for name, data in NOT_TEXT.items():
        note(f"01_Shallow/{name}.md", data)
        os.utime(vault / f"01_Shallow/{name}.md", (1_900_000_000, 1_900_000_000))
    palace.write("hub", title="hub")
    clock.turn(days=400)

    told = codes(palace)
    run = palace.metabolize(confirm=True, force=True)
    moved = palace.restore("_Archive/01_Shallow/hub.md")["restored_to"]
    renamed = palace.move(moved, "sediment", new_path="center")
    palace.reindex()
    for name in NOT_TEXT:
        palace.read(path=f"01_Shallow/{name}.md")
    palace.close()

    assert {path for path, code in told if code == "not_utf8"} == {
        f"01_Shallow/{name}.md" for name in NOT_TEXT
    }
    assert run["archived"] == ["_Archive/01_Shallow/hub.md"]
    assert {name: notes(vault)[f"01_Shallow/{name}.md"] for name in NOT_TEXT} == NOT_TEXT
    left = " ".join(renamed["links_left"])
    assert "legacy.md" in left
    assert "one bad byte.md" in left


@pytest.mark.parametrize("name", NOT_TEXT)
def test_fs_12_an_edit_of_bytes_that_are_no_text_is_refused(
    palace: Palace, vault: Path, note: Note, name: str
) -> None:
    path = f"01_Shallow/{name}.md"
    note(path, NOT_TEXT[name])

    for act in (
        lambda: palace.write("x", mode="append", path=path),
        lambda: palace.write("x", mode="replace", path=path, if_rev=palace.read(path=path)["rev"]),
        lambda: palace.rate(path=path, density=1),
        lambda: palace.write("y", title="Newer", supersedes=name),
        lambda: palace.move(path, "sediment"),
        lambda: palace.purge(path, confirm=True),
    ):
        with pytest.raises(MalformedNote, match="UTF-8"):
            act()

    assert notes(vault) == {path: NOT_TEXT[name]}


@pytest.mark.parametrize("name", NOT_TEXT)
def test_fs_12_a_person_moves_such_a_note_and_its_bytes_stay(
    palace: Palace, vault: Path, note: Note, name: str
) -> None:
    path = note(f"01_Shallow/{name}.md", NOT_TEXT[name])
    palace.metabolize(confirm=True)

    path.rename(vault / f"02_Sediment/{name}.md")
    palace.metabolize(confirm=True)

    assert (vault / f"02_Sediment/{name}.md").read_bytes() == NOT_TEXT[name]


# -- FS-14 --------------------------------------------------------------------------------------------------

COPIES = (
    "budget.sync-conflict-20250102-030405-ABCDEFG.md",
    "budget (conflicted copy 2025-01-02).md",
    "budget (Ada's conflicted copy 2025-01-02).md",
    "budget 2.md",
    "budget (1).md",
    "budget-LAPTOP.md",
)


@pytest.fixture
def budget(note: Note) -> None:
    note("01_Shallow/budget.md", "---\nid: mem_7f\n---\nforty granite\n")
    for number, name in enumerate(COPIES):
        note(f"01_Shallow/{name}", f"---\nid: mem_7f\n---\nfifty granite, copy {number}\n")
    note("01_Shallow/ref.md", "[[budget]]\n")


@pytest.mark.usefixtures("budget")
def test_fs_14_names_and_ids_mean_the_main_file_and_never_a_copy(palace: Palace, vault: Path) -> None:
    copies = {name: (vault / "01_Shallow" / name).read_bytes() for name in COPIES}

    assert palace.read(id="mem_7f")["path"] == "01_Shallow/budget.md"
    assert palace.read(title="budget")["path"] == "01_Shallow/budget.md"
    assert palace.rate(id="mem_7f", density=0.6)["path"] == "01_Shallow/budget.md"
    assert palace.write("more", mode="append", title="budget")["saved_path"] == "01_Shallow/budget.md"
    assert found(palace, "granite") == ["01_Shallow/budget.md"]
    assert palace.read(path="01_Shallow/budget.md")["backlinks"] == ["01_Shallow/ref.md"]
    assert {path for path, code in codes(palace) if code == "conflict_copy"} == {
        f"01_Shallow/{name}" for name in COPIES
    }
    assert {name: (vault / "01_Shallow" / name).read_bytes() for name in COPIES} == copies


@pytest.mark.usefixtures("budget")
def test_fs_14_a_copy_is_no_memory_for_any_verb(palace: Palace, vault: Path, clock: Clock) -> None:
    before = notes(vault)

    for name in COPIES:
        for act in (
            lambda path: palace.rate(path=path, density=1),
            lambda path: palace.move(path, "sediment"),
            lambda path: palace.purge(path, confirm=True),
        ):
            with pytest.raises(PathViolation):
                act(f"01_Shallow/{name}")
    clock.turn(days=400)
    palace.metabolize(confirm=True, force=True)
    clock.turn(days=400)
    palace.metabolize(confirm=True, force=True)

    after = notes(vault)
    for name in COPIES:
        assert after[f"01_Shallow/{name}"] == before[f"01_Shallow/{name}"]


@pytest.mark.usefixtures("budget")
def test_fs_14_the_problems_and_the_index_note_know_both_paths(palace: Palace) -> None:
    """The index note lists what `conflicts.copies` answers; as a memory it knows the main file only."""
    told = {problem.path: problem.message for problem in palace.check() if problem.code == "conflict_copy"}

    assert set(told) == {f"01_Shallow/{name}" for name in COPIES}
    assert all("01_Shallow/budget.md" in message for message in told.values())
    assert {copy.path: copy.main for copy in conflicts.copies(palace.house)} == dict.fromkeys(
        told, "01_Shallow/budget.md"
    )
    assert set(palace.house.shelf.memories()) == {"01_Shallow/budget.md", "01_Shallow/ref.md"}


def test_fs_14_two_memories_of_one_id_are_refused_as_ambiguous(
    palace: Palace, vault: Path, note: Note
) -> None:
    """Neither is called as a sync tool would call its copy, so the person decides; both are named."""
    note("01_Shallow/budget.md", "---\nid: mem_7f\n---\nforty\n")
    note("01_Shallow/ledger.md", "---\nid: mem_7f\n---\nfifty\n")
    before = notes(vault)

    for act in (lambda: palace.read(id="mem_7f"), lambda: palace.rate(id="mem_7f", density=1)):
        with pytest.raises(Conflict) as refused:
            act()
        assert "01_Shallow/budget.md" in str(refused.value)
        assert "01_Shallow/ledger.md" in str(refused.value)

    assert notes(vault) == before
    assert palace.read(title="budget", touch=False)["content"] == "forty\n"
    assert ("01_Shallow/ledger.md", "duplicate_id") in codes(palace)


# -- FS-15 --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(place: Path, size: str = "1m") -> Iterator[None]:
    """*place* as a file system of its own; where none can be mounted the test says so."""
    place.mkdir(parents=True, exist_ok=True)
    mounted = os.geteuid() == 0 and (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)],
            check=False,
            capture_output=True,
        ).returncode
        == 0
    )
    if not mounted:
        pytest.skip("no small file system can be mounted here; the refused calls below stand in for it")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder: Path, leave: int) -> Path:
    """Use up the disk but for *leave* bytes."""
    ballast = folder / "ballast.bin"
    fd = os.open(ballast, os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 4096)
    os.ftruncate(fd, max(os.fstat(fd).st_size - leave, 0))
    os.close(fd)
    return ballast


def opened(base: Path, root: Path, clock: Clock, *, cache: Path | None = None) -> Palace:
    settings = PalaceSettings(
        cache_dir=cache or base / "cache",
        state_dir=base / "state",
        session="full",
        clock=clock,
        sleep=clock.sleep,
    )
    return Palace.open(root, settings=settings)


@pytest.mark.parametrize("leave", [0, 4096, 16384, 40960])
def test_fs_15_a_full_vault_loses_nothing_and_says_why(tmp_path: Path, clock: Clock, leave: int) -> None:
    root = tmp_path / "disk"
    with small_disk(root):
        for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
            (root / folder).mkdir()
        (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
        with opened(tmp_path, root, clock) as palace:
            big = palace.write(os.urandom(24_000).hex(), title="Big", density=0.9)
            for number in range(4):
                palace.write("granite", title=f"Sand {number}")
            clock.turn(days=9)
            before = notes(root)
            ballast = fill(root, leave)

            for act in (
                lambda: palace.write("z" * 50_000, mode="append", path="Big"),
                lambda: palace.write(os.urandom(24_000).hex(), title="New"),
                lambda: palace.write(os.urandom(24_000).hex(), mode="replace", path="Big", if_rev=big["rev"]),
                lambda: palace.move(big["saved_path"], "sediment"),
                lambda: palace.purge(big["saved_path"], confirm=True),
            ):
                with pytest.raises(StorageFailed, match="no space left") as refused:
                    act()
                assert "permission" not in str(refused.value)
                after = notes(root)
                del after["ballast.bin"]
                assert after == before
            held = palace.read(path=big["saved_path"], max_tokens=200_000)["content"]
            run = palace.metabolize(confirm=True)
            full = notes(root)
            del full["ballast.bin"]
            assert held == before[big["saved_path"]].decode().split("---\n\n")[1]
            if leave == 0:
                assert moved(run) == []
                assert {skip["path"] for skip in run["skipped"]} == {*before}
                assert all("no space left" in skip["reason"] for skip in run["skipped"])
                assert full == before
            assert all(full.values())
            assert len(full) == len(before)

            ballast.unlink()
            again = palace.metabolize(confirm=True)
            palace.write("marble", title="New")
            palace.write("marble", mode="append", title="Big")
            assert again["skipped"] == []
            assert len(found(palace, "granite")) + len(run["archived"]) + len(again["archived"]) == 4
            assert palace.recover()["unresolved_count"] == 0
            assert [problem for problem in palace.check() if problem.code != "bad_policy"] == []
        with opened(tmp_path, root, clock) as palace:
            assert palace.health()["status"] == "ok"
        assert [name for name in notes(root) if name.rpartition("/")[2].startswith(".")] == []


def moved(answer: Any) -> list[str]:
    return [*answer["promoted"], *answer["archived"]]


def test_fs_15_a_full_cache_disk_costs_no_note_and_no_search_for_long(
    vault: Path, tmp_path: Path, clock: Clock
) -> None:
    (vault / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    with (
        small_disk(tmp_path / "small", "12m"),
        opened(tmp_path, vault, clock, cache=tmp_path / "small/cache") as palace,
    ):
        palace.write("granite", title="First")
        ballast = fill(tmp_path / "small", 0)

        for number in range(8):
            palace.write(f"{os.urandom(20_000).hex()} marble", title=f"Big {number}")
        told = palace.health()

        assert len(list((vault / "01_Shallow").glob("Big*.md"))) == 8
        assert told["status"] == "failing"
        assert any("cache" in problem["message"] for problem in told["problems"])
        ballast.unlink()
        palace.house.refresh(if_older=0)
        assert len(found(palace, "granite")) == 1
        assert palace.search("marble")["total"] == 8
        assert palace.health()["status"] == "ok"


@pytest.mark.parametrize("verb", ["append", "replace", "rate", "write", "move", "purge", "metabolize"])
def test_fs_15_a_short_or_failing_write_is_not_a_success(
    palace: Palace, vault: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The same without a mount: the system takes one byte at a time, and then no more."""
    saved = palace.write("granite", title="Sand")
    clock.turn(days=9)
    before = notes(vault)
    real, left = os.write, [40]

    def stingy(fd: int, data: Any) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return real(fd, bytes(data)[:1])

    monkeypatch.setattr(os, "write", stingy)
    acts: dict[str, Callable[[], Any]] = {
        "append": lambda: palace.write("more", mode="append", path="Sand"),
        "replace": lambda: palace.write("other", mode="replace", path="Sand", if_rev=saved["rev"]),
        "rate": lambda: palace.rate(path="01_Shallow/Sand.md", density=0.4),
        "write": lambda: palace.write("other", title="Other"),
        "move": lambda: palace.move("01_Shallow/Sand.md", "sediment"),
        "purge": lambda: palace.purge("01_Shallow/Sand.md", confirm=True),
        "metabolize": lambda: palace.metabolize(confirm=True),
    }

    if verb == "metabolize":
        assert "no space left" in acts[verb]()["skipped"][0]["reason"]
    else:
        with pytest.raises(StorageFailed, match="no space left"):
            acts[verb]()

    assert notes(vault) == before
    left[0] = 1_000_000
    acts[verb]()
    assert palace.recover()["unresolved_count"] == 0
    assert palace.check() == []


# -- FS-18 --------------------------------------------------------------------------------------------------


def wrong_vaults(tmp_path: Path, vault: Path) -> dict[str, str]:
    home = Path.home()
    (home / "01_Shallow").mkdir(parents=True, exist_ok=True)
    (home / "letters.md").write_text("mine\n", encoding="utf-8")
    other = tmp_path / "not-a-vault"
    other.mkdir()
    (other / "taxes.md").write_text("mine\n", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    return {
        "home": str(home),
        "above home": str(home.parent),
        "root": "/",
        "none": "",
        "blank": "  ",
        "other": str(other),
        "empty": str(empty),
        "layer": str(vault / "01_Shallow"),
        "room": str(vault / "01_Shallow/ideas"),
        "archive": str(vault / "_Archive"),
        "file": str(vault / "_System/Policy.md"),
        "missing": str(tmp_path / "gone"),
    }


WRONG = (
    *("home", "above home", "root", "none", "blank", "other", "empty"),
    *("layer", "room", "archive", "file", "missing"),
)


@pytest.mark.parametrize("name", WRONG)
def test_fs_18_no_palace_opens_where_there_is_none(
    tmp_path: Path, vault: Path, note: Note, clock: Clock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    note("_System/Policy.md", "---\ntimezone: UTC\n---\n")
    note("01_Shallow/ideas/a.md", "granite\n")
    note("_Archive/01_Shallow/b.md", "marble\n")
    monkeypatch.chdir(vault)
    wrong = wrong_vaults(tmp_path, vault)[name]
    before = sorted((str(path), path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))

    with pytest.raises((PathViolation, NotFound)) as refused:
        Palace.open(
            wrong,  # type: ignore[arg-type] # as the person typed it
            settings=PalaceSettings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state", clock=clock),
        )

    assert refused.value.message
    assert sorted((str(path), path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_fs_18_a_rebuild_removes_only_what_it_made(palace: Palace, vault: Path, note: Note) -> None:
    note("01_Shallow/a.md", "granite\n")
    palace.search("granite")
    cache = palace.house.shelf.file
    kept = [cache.parent / "index.txt", cache.parent.parent / "mine.sqlite3", cache.parent / "letters/a.md"]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine\n", encoding="utf-8")
    before = notes(vault)

    for _ in range(3):
        palace.reindex()
        cache.write_bytes(b"no database")

    assert [path.read_text(encoding="utf-8") for path in kept] == ["mine\n"] * 3
    assert notes(vault) == before
    assert found(palace, "granite") == ["01_Shallow/a.md"]


def test_fs_15_a_vault_on_a_read_only_disk_is_read_and_says_why_it_is_not_written(
    tmp_path: Path, clock: Clock
) -> None:
    root = tmp_path / "disk"
    with small_disk(root):
        (root / "01_Shallow").mkdir()
        (root / "_System").mkdir()
        (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
        with opened(tmp_path, root, clock) as palace:
            palace.write("granite", title="Sand")
        (root / "01_Shallow/.Sand.md.0123456789abcdef.tmp").write_bytes(b"left by a killed save")
        clock.turn(days=9)
        before = notes(root)
        subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)

        with opened(tmp_path, root, clock) as palace:
            assert palace.read(path="01_Shallow/Sand.md")["content"] == "granite"
            assert found(palace, "granite") == ["01_Shallow/Sand.md"]
            assert palace.metabolize(dry_run=True)["archived"] == ["_Archive/01_Shallow/Sand.md"]
            for act in (
                lambda: palace.write("x", title="New"),
                lambda: palace.rate(path="01_Shallow/Sand.md", density=1),
                lambda: palace.purge("01_Shallow/Sand.md", confirm=True),
            ):
                with pytest.raises(StorageFailed, match="read-only"):
                    act()
            assert "read-only" in palace.metabolize(confirm=True)["skipped"][0]["reason"]
            health = palace.health()
        assert health["status"] == "failing"
        assert "not_writable" in {problem["code"] for problem in health["problems"]}
        assert notes(root) == before

        subprocess.run(["mount", "-o", "remount,rw", str(root)], check=True)
        with opened(tmp_path, root, clock) as palace:
            assert palace.metabolize(confirm=True)["archived"] == ["_Archive/01_Shallow/Sand.md"]
            assert not list(root.rglob("*.tmp"))
