"""Failure cases of recovery and concurrent work (RC) on a real vault, through the palace.

Kills at every step of every verb are in `test_kill_points`; here stand the other ways to be interrupted.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.storage.palace import as_person, let_in
from vault_palace.core import frontmatter, links
from vault_palace.core.errors import LockTimeout, MalformedNote, StorageFailed, VaultError
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.storage import files
from vault_palace.storage.vault import Vault

Note = Callable[..., Path]

NOW = datetime(2031, 3, 1, 12, tzinfo=UTC)


def properties(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def notes(root: Path) -> dict[str, bytes]:
    """Every file of the vault but the program's own state, leftovers of killed saves included."""
    return {
        place: path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
        for place in [path.relative_to(root).as_posix()]
        if not place.startswith((".palace/", "_System/"))
    }


def opened(root: Path, *, at: datetime = NOW, session: str = "rc") -> Palace:
    """The palace at *root*, its cache and state beside it."""
    settings = PalaceSettings(
        cache_dir=root.parent / "cache",
        state_dir=root.parent / "state",
        session=session,
        clock=lambda: at,
        sleep=lambda _seconds: None,
    )
    return Palace.open(root, settings=settings)


def leads_to(palace: Palace, holder: str) -> list[str | None]:
    """Where the links of the note *holder* lead as it is on disk."""
    palace.house.refresh(if_older=0)
    text = palace.house.vault.read(holder).data.decode("utf-8")
    resolver = palace.house.shelf.resolver()
    return [resolver.resolve(link.path, holder) for link in links.find(text)]


def found(palace: Palace, query: str) -> list[str]:
    return sorted(match["path"] for match in palace.search(query, limit=100, max_tokens=200_000)["matches"])


# -- RC-02 --------------------------------------------------------------------------------------------------


def test_rc_02_what_people_and_agents_do_during_a_run_stands(
    open_palace: OpenPalace, vault: Path, clock: Clock
) -> None:
    palace, agent = open_palace(), open_palace(session="agent")
    for number in range(200):
        palace.write(f"granite {number}", title=f"N{number:03}", density=0.9)
    clock.turn(days=8)
    edited: list[bytes] = []

    def meanwhile(number: int, _total: int, _path: str) -> None:
        if number != 1:
            return
        path = vault / "01_Shallow/N005.md"
        path.write_bytes(path.read_bytes() + b"a person's line\n")
        os.utime(path, (clock.at.timestamp(), clock.at.timestamp()))
        edited.append(path.read_bytes())
        agent.write("marble", title="N201")
        (vault / "01_Shallow/N007.md").unlink()
        agent.purge("01_Shallow/N009.md", confirm=True)
        (vault / "01_Shallow/N011.md").rename(vault / "03_Bedrock/N011.md")

    run = palace.metabolize(confirm=True, progress=meanwhile)

    assert {skip["path"] for skip in run["skipped"]} == {
        f"01_Shallow/N0{number}.md" for number in ("05", "07", "09", "11")
    }
    assert run["promoted_count"] == 196
    assert (vault / "01_Shallow/N005.md").read_bytes() == edited[0]
    assert (vault / "01_Shallow/N201.md").exists()
    assert not list(vault.rglob("N007*"))
    assert [path.relative_to(vault).as_posix() for path in vault.rglob("N009*")] == [
        "_Archive/01_Shallow/N009.md"
    ]
    assert [path.relative_to(vault).as_posix() for path in vault.rglob("N011*")] == ["03_Bedrock/N011.md"]
    clock.turn(hours=1)
    again = palace.metabolize(confirm=True)
    assert again["promoted"] == ["02_Sediment/N005.md"]
    assert (vault / "02_Sediment/N005.md").read_bytes().endswith(b"a person's line\n")
    assert palace.check() == []


# -- RC-03: no permission, another device -------------------------------------------------------------------


@pytest.fixture
def persons_vault(tmp_path: Path) -> Path:
    """A vault with a note that is due to rise and three that link to it, owned by who is not root."""
    root = tmp_path / "base" / "vault"
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System", "_Archive/01_Shallow"):
        (root / folder).mkdir(parents=True)
    (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    with opened(root) as palace:
        palace.write("the pump", title="Pump", density=0.9)
        for number in range(3):
            palace.write("see [[01_Shallow/Pump]]", title=f"Ref {number}", layer="bedrock")
    let_in(root)
    if os.geteuid() == 0:
        for place in (root.parent, *root.parent.rglob("*")):
            os.chown(place, 65534, 65534)
    return root


LATER = datetime(2031, 3, 10, 12, tzinfo=UTC)
MOVES: dict[str, tuple[Callable[[Palace], Any], str]] = {
    "promote": (lambda palace: palace.metabolize(confirm=True), "02_Sediment/Pump.md"),
    "move": (lambda palace: palace.move("01_Shallow/Pump.md", "sediment"), "02_Sediment/Pump.md"),
    "purge": (
        lambda palace: palace.purge("01_Shallow/Pump.md", confirm=True),
        "_Archive/01_Shallow/Pump.md",
    ),
    "rename": (
        lambda palace: palace.move("01_Shallow/Pump.md", "sediment", new_path="Boiler"),
        "02_Sediment/Boiler.md",
    ),
}


@pytest.mark.parametrize("closed", ["01_Shallow", "02_Sediment", "_Archive/01_Shallow", ""])
@pytest.mark.parametrize("verb", MOVES)
def test_rc_03_a_folder_without_permission_leaves_one_copy_and_every_link(
    persons_vault: Path, verb: str, closed: str
) -> None:
    root, (act, place) = persons_vault, MOVES[verb]
    concerned = closed in ("01_Shallow", "") or place.startswith(closed)

    def person() -> None:
        before = notes(root)
        shutil.rmtree(root / ".palace")
        (root / closed).chmod(0o555)
        with opened(root, at=LATER) as palace:
            if not concerned:
                act(palace)
            elif verb == "promote":
                skipped = {skip["path"]: skip["reason"] for skip in act(palace)["skipped"]}
                assert "no permission" in skipped["01_Shallow/Pump.md"]
            else:
                with pytest.raises(StorageFailed, match="no permission"):
                    act(palace)
            if concerned:
                assert {p: t for p, t in notes(root).items() if "Pump" in p or "Boiler" in p} == {
                    "01_Shallow/Pump.md": before["01_Shallow/Pump.md"]
                }
                assert all(b"[[01_Shallow/Pump]]" in notes(root)[f"03_Bedrock/Ref {n}.md"] for n in range(3))
                assert found(palace, "pump")[0] == "01_Shallow/Pump.md"
        (root / closed).chmod(0o755)

        with opened(root, at=LATER) as palace:
            assert palace.recover()["unresolved_count"] == 0
            if concerned:
                act(palace)
            assert [p for p in notes(root) if "Pump" in p or "Boiler" in p] == [place]
            assert [leads_to(palace, f"03_Bedrock/Ref {n}.md") for n in range(3)] == [[place]] * 3
            assert not [p for p in notes(root) if p.rpartition("/")[2].startswith(".")]
            assert [problem.code for problem in palace.check()] == []

    as_person(person)


def test_rc_03_a_read_only_referrer_is_left_and_listed(persons_vault: Path) -> None:
    root = persons_vault

    def person() -> None:
        (root / "03_Bedrock").chmod(0o555)
        with opened(root, at=LATER) as palace:
            moved = palace.move("01_Shallow/Pump.md", "sediment")

            assert len(moved["links_left"]) == 3
            assert "no permission" in moved["links_left"][0]
            assert moved["links_rewritten"] == 0
            # A repeat after the mending is a person's: the links are reported until then.
            assert {problem.code for problem in palace.check()} == {"unresolved_link"}
        (root / "03_Bedrock").chmod(0o755)

    as_person(person)


@pytest.fixture
def far_layer(vault: Path) -> Iterator[Path]:
    """Sediment on a file system of its own."""
    place = vault / "02_Sediment"
    mounted = os.geteuid() == 0 and (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], check=False, capture_output=True
        ).returncode
        == 0
    )
    if not mounted:
        pytest.skip("nothing can be mounted here; tests/storage feigns another device")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_rc_03_a_layer_on_another_device_takes_and_gives_notes(
    far_layer: Path, palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    saved = palace.write("the pump", path="machines/Pump", density=0.9)
    note("02_Sediment/other.md", "[[01_Shallow/machines/Pump|far]]\n")
    note("root.md", "[p](01_Shallow/machines/Pump.md) and [[Pump]]\n")
    note("_Archive/01_Shallow/old.md", "![[01_Shallow/machines/Pump]]\n")
    assert os.stat(far_layer).st_dev != os.stat(vault).st_dev
    clock.turn(days=8)

    def where() -> str:
        (place,) = [place for place in notes(vault) if "Pump" in place]
        assert palace.read(id=saved["id"], touch=False)["path"] == place
        assert palace.read(path=place, touch=False)["content"] == "the pump"
        assert leads_to(palace, "02_Sediment/other.md") == [place]
        assert leads_to(palace, "root.md") == [place, place]
        assert leads_to(palace, "_Archive/01_Shallow/old.md") == [place]
        assert not [place for place in notes(vault) if place.rpartition("/")[2].startswith(".")]
        return place

    assert palace.metabolize(confirm=True)["promoted"] == [where()] == ["02_Sediment/machines/Pump.md"]
    palace.purge(where(), confirm=True)
    assert where() == "_Archive/02_Sediment/machines/Pump.md"
    palace.restore(where())
    assert where() == "02_Sediment/machines/Pump.md"
    palace.move(where(), "bedrock")
    assert where() == "03_Bedrock/machines/Pump.md"
    assert palace.recover()["unresolved_count"] == 0
    assert palace.check() == []


def test_rc_03_a_full_other_device_leaves_the_note_where_it_was(
    far_layer: Path, palace: Palace, vault: Path, clock: Clock
) -> None:
    palace.write(os.urandom(20_000).hex(), title="Pump", density=0.9)
    clock.turn(days=8)
    before = notes(vault)
    subprocess.run(["mount", "-o", "remount,size=16k", str(far_layer)], check=True)

    run = palace.metabolize(confirm=True)

    assert "no space left" in run["skipped"][0]["reason"]
    assert notes(vault) == before
    subprocess.run(["mount", "-o", "remount,size=4m", str(far_layer)], check=True)
    assert palace.metabolize(confirm=True)["promoted"] == ["02_Sediment/Pump.md"]
    assert palace.recover()["unresolved_count"] == 0


@pytest.mark.parametrize("verb", ["promote", "purge", "restore"])
def test_rc_03_a_different_file_at_the_target_is_never_overwritten(
    palace: Palace, vault: Path, clock: Clock, note: Note, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Not even when it appears between the choice of the name and the move."""
    palace.write("the pump", title="Pump", density=0.9)
    if verb == "restore":
        palace.purge("01_Shallow/Pump.md", confirm=True)
    clock.turn(days=8)
    target = {"promote": "02_Sediment", "purge": "_Archive/01_Shallow", "restore": "01_Shallow"}[verb]
    real = files.stage
    made: list[Path] = []

    def stage(path: Path, data: bytes, mode: int | None = None) -> Path:
        if path.name == "Pump.md" and not made:
            made.append(note(f"{target}/Pump.md", "a person's pump\n"))
            os.utime(made[0], (1, 1))
        return real(path, data, mode)

    monkeypatch.setattr(files, "stage", stage)
    if verb == "promote":
        assert palace.metabolize(confirm=True)["skipped"][0]["path"] == "01_Shallow/Pump.md"
        place = palace.metabolize(confirm=True)["promoted"][0]
    elif verb == "purge":
        place = palace.purge("01_Shallow/Pump.md", confirm=True)["archived_to"]
    else:
        place = palace.restore("_Archive/01_Shallow/Pump.md")["restored_to"]

    assert place == f"{target}/Pump 2.md"
    assert made[0].read_text(encoding="utf-8").endswith("a person's pump\n")  # now with properties perhaps
    assert palace.read(path=place)["content"] == "the pump"
    assert len([path for path in notes(vault) if path.endswith(".md")]) == 2


# -- RC-05 --------------------------------------------------------------------------------------------------


def killed(root: Path, act: Callable[[Palace], object], *, after: bool) -> None:
    """Leave the vault as a kill leaves it right before, or right after, the new text took its place."""
    child = os.fork()
    if child == 0:
        real = files._renameat2

        def die(src: Path, dst: Path, flags: int) -> None:
            if after:
                real(src, dst, flags)
            os.kill(os.getpid(), signal.SIGKILL)

        with opened(root) as palace:
            files._renameat2 = die
            act(palace)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


@pytest.fixture
def crashed(vault: Path, request: pytest.FixtureRequest) -> Path:
    """A vault whose program was killed while it wrote 'v2' into a note that held 'v1'."""
    (vault / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    with opened(vault) as palace:
        rev = palace.write("v1", title="n")["rev"]
    killed(
        vault,
        lambda palace: palace.write("v2", mode="replace", path="n", if_rev=rev),
        after=request.param == "after",
    )
    return vault


@pytest.mark.parametrize("crashed", ["before", "after"], indirect=True)
@pytest.mark.parametrize("person", ["edits", "deletes", "renames"])
def test_rc_05_the_newest_human_state_wins_and_the_entry_is_told(crashed: Path, person: str) -> None:
    root, path = crashed, crashed / "01_Shallow/n.md"
    was = path.read_bytes()
    never_there = b"v2" not in was
    if person == "edits":
        path.write_bytes(was.replace(b"v1", b"v3").replace(b"v2", b"v3"))
    elif person == "deletes":
        path.unlink()
    else:
        path.rename(root / "01_Shallow/m.md")
    wanted = notes(root)
    wanted = {place: data for place, data in wanted.items() if not place.endswith(".tmp")}

    with opened(root) as palace:
        after = notes(root)
        told = palace.recover()
        again = palace.recover()
        open_now = palace.status()["open_operations"]
        kept = {palace.house.versions.get(name.stem) for name in root.glob(".palace/versions/*/*.z")}

    assert after == wanted
    assert [item["status"] for item in told["recovered"]] == ["superseded"]
    assert told["recovered"][0]["path"] == "01_Shallow/n.md"
    assert (again["unresolved_count"], open_now) == (0, 0)
    assert any(b"v2" in version for version in kept) or not never_there
    assert notes(root) == wanted


@pytest.mark.parametrize("crashed", ["before", "after"], indirect=True)
def test_rc_05_an_untouched_note_gets_what_was_meant(crashed: Path) -> None:
    with opened(crashed) as palace:
        told = palace.recover()

        assert palace.read(path="01_Shallow/n.md")["content"] == "v2"
        assert found(palace, "v2") == ["01_Shallow/n.md"]
        assert found(palace, "v1") == []

    assert [item["status"] for item in told["recovered"]] == ["finished"]
    assert list(notes(crashed)) == ["01_Shallow/n.md"]


@pytest.mark.parametrize("crashed", ["before", "after"], indirect=True)
def test_rc_05_a_start_that_cannot_write_reads_all_the_same(crashed: Path) -> None:
    """The open entry is shown until somebody can end it."""
    marker = crashed / ".palace/lock"
    marker.write_text("4711\nelsewhere.example\n", encoding="utf-8")

    with opened(crashed) as palace:
        assert palace.read(path="01_Shallow/n.md", touch=False)["content"] in ("v1", "v2")
        assert "open_operation" in {problem.code for problem in palace.check()}
        marker.unlink()
        told = palace.recover()
        assert told["recovered_count"] == 1, told


# -- RC-06 --------------------------------------------------------------------------------------------------

TORN = {
    "half a record": b'{"v":1,"op":"mo',
    "no final newline": None,
    "zeros": b"\0" * 4096,
    "half a record and zeros": b'{"v":1,"op"' + b"\0" * 4096,
    "unknown version": b'{"v":99,"op":"x","state":"begin","at":"2031-01-01T00:00:00Z"}\n',
    "no JSON": b"<<<<<<< HEAD\n",
    "bytes": b"\xff\xfe\n",
}


def damage(journal: Path, kind: str) -> None:
    data = journal.read_bytes()
    if kind == "no final newline":
        journal.write_bytes(data.rstrip(b"\n"))
    elif kind == "BOM":
        journal.write_bytes(b"\xef\xbb\xbf" + data)
    else:
        journal.write_bytes(data + (TORN[kind] or b""))


@pytest.mark.parametrize("kind", [*TORN, "BOM"])
def test_rc_06_work_goes_on_after_any_damage_to_the_journals_end(
    open_palace: OpenPalace, vault: Path, clock: Clock, kind: str
) -> None:
    first = open_palace()
    first.write("v1", title="n")
    first.close()
    (journal,) = (vault / "_System/journal").glob("*.jsonl")
    damage(journal, kind)

    second = open_palace()
    reported = {problem.code for problem in second.check()}
    clock.turn(days=3)
    second.rate(path="01_Shallow/n.md", density=0.4)
    second.close()
    third = open_palace()

    harmless = kind in ("no final newline", "zeros", "BOM")
    assert reported == (set() if harmless else {"journal_version" if "version" in kind else "journal_torn"})
    entries = third.house.journal.entries()
    assert [(entry.verb, entry.state) for entry in entries] == [("write", "done"), ("rate", "done")]
    lines = journal.read_bytes().lstrip(b"\xef\xbb\xbf").splitlines()
    assert sum(b'"verb":"rate"' in line and line.startswith(b'{"v":1') for line in lines) == 1
    # The complete records are honoured: the program's own write is not taken for a person's edit.
    clock.turn(days=20)
    assert third.metabolize(confirm=True)["archived"] == ["_Archive/01_Shallow/n.md"]
    assert third.recover()["unresolved_count"] == 0


@pytest.mark.parametrize("state", ["empty", "missing", "folder missing"])
def test_rc_06_a_journal_that_is_gone_stops_nothing(open_palace: OpenPalace, vault: Path, state: str) -> None:
    first = open_palace()
    first.write("v1", title="n")
    first.close()
    (journal,) = (vault / "_System/journal").glob("*.jsonl")
    if state == "empty":
        journal.write_bytes(b"")
    elif state == "missing":
        journal.unlink()
    else:
        shutil.rmtree(journal.parent)

    second = open_palace()

    assert {problem.code for problem in second.check()} == {"journal_older"}
    second.write("more", mode="append", path="n")
    second.write("v2", title="m")
    second.close()
    third = open_palace()
    assert third.check() == []
    assert third.read(path="01_Shallow/n.md")["content"] == "v1\n\nmore"
    assert [entry.verb for entry in third.house.journal.entries()] == ["append", "write"]


# -- RC-08 --------------------------------------------------------------------------------------------------


def dead_pid() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def own_host() -> str:
    import socket

    return socket.gethostname()


STALE: dict[str, Callable[[], bytes]] = {
    "dead": lambda: f"{dead_pid()}\n{own_host()}\n".encode(),
    "empty": lambda: b"",
    "half JSON": lambda: b'{"pid": 12',
    "zeros": lambda: b"\0" * 64,
}


def leave_marker(vault: Path, text: bytes) -> Path:
    marker = vault / ".palace/lock"
    marker.parent.mkdir(exist_ok=True)
    marker.write_bytes(text)
    os.utime(marker, (1_900_000_000, 1_700_000_000))
    return marker


@pytest.mark.parametrize("kind", STALE)
def test_rc_08_twenty_starts_against_a_stale_lock_each_write_once(vault: Path, kind: str) -> None:
    (vault / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    with opened(vault) as palace:
        palace.write("the log", title="Log")
    marker = leave_marker(vault, STALE[kind]())
    wait, go = os.pipe()
    children = []
    for number in range(20):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(go)
                os.read(wait, 1)
                with opened(vault, session=f"s{number}") as mine:
                    mine.write(f"granite {number:02}", title="Twin")
                    mine.write(f"line {number:02}", mode="append", path="Log")
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

    assert codes == [0] * 20
    assert not marker.exists()
    bodies = sorted(
        frontmatter.read(path.read_text(encoding="utf-8")).body.strip()
        for path in vault.glob("01_*/Twin*.md")
    )
    assert bodies == [f"granite {number:02}" for number in range(20)]
    log = (vault / "01_Shallow/Log.md").read_text(encoding="utf-8")
    assert [log.count(f"line {number:02}") for number in range(20)] == [1] * 20
    with opened(vault) as palace:
        assert len(found(palace, "granite")) == 20
        assert len({entry.op for entry in palace.house.journal.entries()}) == 41
        assert palace.recover()["unresolved_count"] == 0
        assert palace.check() == []
    assert not [place for place in notes(vault) if place.endswith(".tmp")]


def test_rc_08_a_name_that_came_while_the_vault_was_listed_stays_taken(
    open_palace: OpenPalace, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = open_palace(), open_palace(session="second")
    first.write("basalt", title="Other")
    listed = [second.house.vault.survey()]
    first.write("gneiss", title="Fed to the index")
    note("01_Shallow/Twin.md", "granite\n")
    real = Vault.survey
    monkeypatch.setattr(Vault, "survey", lambda vault: listed.pop() if listed else real(vault))

    saved = second.write("marble", title="Twin")["saved_path"]

    assert not listed
    assert saved == "01_Shallow/Twin 2.md"


@pytest.mark.parametrize("kind", ["live", "other host"])
def test_rc_08_a_lock_that_is_held_is_respected_and_its_holder_named(
    palace: Palace, vault: Path, clock: Clock, kind: str
) -> None:
    palace.write("granite", title="n")
    clock.turn(days=8)
    palace.house._lock._timeout = 0.1
    held, let_go = os.pipe()
    wait, go = os.pipe()
    child = 0
    if kind == "live":
        child = os.fork()
        if child == 0:
            os.close(go)
            with opened(vault).house.locked():
                os.write(let_go, b"x")
                os.read(wait, 1)
            os._exit(0)
        assert os.read(held, 1) == b"x"
        holder = f"rocess {child} on {own_host()}"
    else:
        leave_marker(vault, b"1\nlaptop.example\n")
        holder = "rocess 1 on laptop.example"
    before = notes(vault)

    with pytest.raises(LockTimeout, match=holder):
        palace.write("marble", title="m")
    with pytest.raises(LockTimeout, match=holder):
        palace.metabolize(confirm=True)
    assert holder in palace.status()["lock"]
    assert found(palace, "granite") == ["01_Shallow/n.md"]
    assert palace.read(path="01_Shallow/n.md")["content"] == "granite"
    assert notes(vault) == before

    os.close(go)
    if child:
        os.waitpid(child, 0)
    else:
        (vault / ".palace/lock").unlink()
    assert palace.write("marble", title="m")["saved_path"] == "01_Shallow/m.md"


def test_rc_08_a_pid_that_another_program_has_now_is_no_owner(palace: Palace, vault: Path) -> None:
    """The marker of a lock that this very process held in an earlier life names a start long ago."""
    palace.write("granite", title="n")
    with palace.house.locked():
        lines = (vault / ".palace/lock").read_text(encoding="utf-8").splitlines()
    if len(lines) < 3:
        pytest.skip("this system does not tell when a process started")
    lines[0] = "1"  # alive for certain, and started at another time than the marker says
    leave_marker(vault, "\n".join(lines).encode() + b"\n")

    assert palace.write("marble", title="m")["saved_path"] == "01_Shallow/m.md"


# -- RC-09 --------------------------------------------------------------------------------------------------

FENCED = "```\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> other\n```\n[[After]]\n"
IN_CONFLICT = (
    f"---\ntitle: T\n<<<<<<< HEAD\nstatus: open\n=======\nstatus: done\n>>>>>>> other\n---\ngranite\n{FENCED}"
)


def test_rc_09_both_sides_of_a_merge_stay_until_their_owner_decides(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    palace.write("after", title="After")
    path = note("01_Shallow/T.md", IN_CONFLICT)
    os.utime(path, (1_800_000_000, 1_800_000_000))
    before = path.read_bytes()

    (problem,) = palace.check()
    for act in (
        lambda: palace.rate(path="01_Shallow/T.md", density=1),
        lambda: palace.rate(path="01_Shallow/T.md", pinned=True),
        lambda: palace.move("01_Shallow/T.md", "sediment"),
        lambda: palace.purge("01_Shallow/T.md", confirm=True),
        lambda: palace.write(
            "x", mode="replace", path="T", if_rev=palace.read(path="01_Shallow/T.md")["rev"]
        ),
        lambda: palace.write("newer", title="Newer", supersedes="T"),
    ):
        with pytest.raises((MalformedNote, VaultError), match="merge markers"):
            act()
    palace.read(path="01_Shallow/T.md")
    clock.turn(days=400)
    run = palace.metabolize(confirm=True, force=True, days_threshold=0)

    assert (problem.path, problem.line, problem.code) == ("01_Shallow/T.md", 3, "bad_header")
    assert "merge markers" in problem.message
    assert path.read_bytes() == before
    assert "01_Shallow/T.md" in {skip["path"] for skip in run["skipped"]}
    assert found(palace, "granite") == ["01_Shallow/T.md"]
    assert palace.read(title="After", touch=False)["backlinks"] == ["01_Shallow/T.md"]


def test_rc_09_a_rename_leaves_a_note_in_conflict_alone_and_lists_it(
    palace: Palace, vault: Path, note: Note
) -> None:
    palace.write("after", title="After")
    path = note("01_Shallow/T.md", IN_CONFLICT)

    moved = palace.move("01_Shallow/After.md", "shallow", new_path="Later")

    assert path.read_text(encoding="utf-8") == IN_CONFLICT
    assert "01_Shallow/T.md: merge markers" in " ".join(moved["links_left"])


def test_rc_09_a_note_that_documents_markers_is_not_blocked(palace: Palace, vault: Path, note: Note) -> None:
    palace.write("after", title="After", layer="bedrock")
    path = note("01_Shallow/T.md", f"---\ntitle: T\ndensity: 0.9\n---\ngranite\n{FENCED}")
    os.utime(path, (1_900_000_000, 1_900_000_000))
    path = vault / palace.metabolize(confirm=True)["promoted"][0]

    assert palace.check() == []
    assert path.read_text(encoding="utf-8").endswith(f"granite\n{FENCED}")
    assert palace.rate(path="02_Sediment/T.md", density=0.8)["after"]["density"] == 0.8
    assert palace.read(title="After", touch=False)["backlinks"] == ["02_Sediment/T.md"]
