"""Failure cases of age and of edits that leave no trace (TM-04, TM-05, FS-17); a rename cut short (RC-12).

Their parts that pure functions, the cache or storage decide alone stand with those.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import Person, settle
from tests.services.test_cases_rc import leads_to, notes, opened
from tests.storage.palace import as_person, let_in
from vault_palace.core.changes import Mark
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace
from vault_palace.storage import files

Note = Callable[..., Path]

NOBODY = 65534


@pytest.fixture
def person(vault: Path, clock: Clock) -> Person:
    return Person(vault, clock)


def whole(id: str, day: str, words: str, layer: str = "bedrock") -> str:
    """A memory with every property, as another machine left it."""
    return (
        f"---\nid: {id}\nlayer: {layer}\ncreated: {day}T12:00:00\nlast_touched: {day}T12:00:00\n"
        f"density: 0.2\nstreak: 0\nbacklinks: 0\nstatus: crystallized\n---\n\n{words}\n"
    )


# -- TM-04 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", ["kept", "deleted"])
@pytest.mark.parametrize("origin", ["written by an agent", "written by hand", "from another machine"])
def test_tm_04_a_persons_edit_of_yesterday_makes_a_note_of_last_year_fresh(
    open_palace: OpenPalace, person: Person, clock: Clock, tmp_path: Path, origin: str, cache: str
) -> None:
    """Only the file's time and its body changed, and nobody kept the vault when it did."""
    palace = open_palace()
    path = "03_Bedrock/old.md"
    if origin == "written by an agent":
        palace.write("basalt\n", title="old", layer="bedrock")
    elif origin == "written by hand":
        person.writes(path, "basalt\n")
    else:
        person.writes(path, whole("mem_1", "2031-03-01", "basalt"))
    settle(Keeper(palace.house), clock)
    palace.close()
    clock.turn(days=365)
    person.edits(path, "basalt", "basalt, says the person")
    edited = clock.at
    if cache == "deleted":
        shutil.rmtree(tmp_path / "cache")
    clock.turn(days=1)

    settle(Keeper(open_palace().house), clock)

    assert person.says(path)["last_touched"] == edited.strftime("%Y-%m-%dT%H:%M:%S")
    assert person.says(path)["created"] == "2031-03-01T12:00:00"


def test_tm_04_a_year_of_upkeep_by_the_keeper_renews_nothing(
    palace: Palace, person: Person, clock: Clock
) -> None:
    """Links come and go, a neighbour is renamed by hand, and the policy has other numbers, for a year."""
    person.writes("_System/Policy.md", "---\ntimezone: UTC\nauto_metabolize: daily\n---\n")
    keeper = Keeper(palace.house)
    person.writes("03_Bedrock/idle.md", whole("mem_1", "2031-03-01", "[[Hub 0]]"))
    person.writes("03_Bedrock/Hub 0.md", "the hub\n")
    clock.turn(hours=1)
    settle(keeper, clock)
    for week in range(26):
        clock.turn(days=14)
        person.moves(f"03_Bedrock/Hub {week}.md", f"03_Bedrock/Hub {week + 1}.md")
        person.writes("03_Bedrock/diary.md", "[[idle]]\n" if week % 2 else "nothing\n")
        if week % 10 == 0:
            person.writes(
                "_System/Policy.md",
                f"---\ntimezone: UTC\nauto_metabolize: daily\nhorizon_days: {week + 1}\n---\n",
            )
            palace.reindex()
        clock.turn(hours=1)
        settle(keeper, clock)

    found = person.says("03_Bedrock/idle.md")
    assert "[[Hub 26]]" in person.reads("03_Bedrock/idle.md")
    assert found["last_touched"] == "2031-03-01T12:00:00"
    assert (found["streak"], found["backlinks"]) == (1, 1)


# -- TM-05 --------------------------------------------------------------------------------------------------

IN_2023 = 1_686_571_200  # the twelfth of June


@pytest.fixture
def popular(palace: Palace, person: Person, clock: Clock) -> list[str]:
    """A hub and the fifty notes of 2023 that link to it, unread since; a keeper has seen them all."""
    paths = [f"03_Bedrock/note {number:02}.md" for number in range(50)]
    person.writes("03_Bedrock/hub.md", whole("mem_hub", "2023-06-12", "basalt, the hub"))
    for number, path in enumerate(paths):
        person.writes(path, whole(f"mem_{number}", "2023-06-12", "basalt, [[03_Bedrock/hub|it]], [[hub]]"))
    for path in [*paths, "03_Bedrock/hub.md"]:
        os.utime(person.root / path, (IN_2023, IN_2023))
    settle(Keeper(palace.house), clock)
    return paths


def ages(palace: Palace) -> dict[str, int | None]:
    found = palace.search("basalt", limit=100, max_tokens=100_000)["matches"]
    return {match["path"]: match["age_days"] for match in found if match["path"].startswith("03_")}


@pytest.mark.parametrize("by", ["agent", "person"])
def test_tm_05_a_rename_of_a_hub_leaves_fifty_referrers_as_old_as_they_were(
    palace: Palace, person: Person, clock: Clock, popular: list[str], by: str
) -> None:
    before = {path: person.says(path) for path in popular}
    hub, old = person.says("03_Bedrock/hub.md"), ages(palace)
    keeper = Keeper(palace.house)
    settle(keeper, clock)

    if by == "agent":
        palace.move("03_Bedrock/hub.md", "bedrock", new_path="center")
    else:
        person.moves("03_Bedrock/hub.md", "03_Bedrock/center.md")
    clock.turn(hours=1)
    settle(keeper, clock)

    assert all("[[03_Bedrock/center|it]], [[center]]" in person.reads(path) for path in popular)
    assert {path: person.says(path) for path in popular} == before
    assert person.says("03_Bedrock/center.md") == hub
    renamed = {path.replace("/hub.", "/center."): age for path, age in old.items()}
    assert ages(palace) == renamed
    assert {age is not None and age > 2_700 for age in renamed.values()} == {True}
    palace.write("more", mode="append", path=popular[0])
    assert str(person.says(popular[0])["last_touched"]) > "2031-03-01"


def test_tm_05_an_automatic_run_after_the_rename_finds_nothing_younger(
    palace: Palace, person: Person, clock: Clock, popular: list[str]
) -> None:
    foreseen = palace.metabolize(dry_run=True)
    palace.move("03_Bedrock/hub.md", "bedrock", new_path="center")

    after = palace.metabolize(dry_run=True)

    assert (after["promoted"], after["archived"], after["decaying"]) == (
        foreseen["promoted"],
        foreseen["archived"],
        foreseen["decaying"],
    )


# -- FS-17 --------------------------------------------------------------------------------------------------


def other_words(path: Path) -> bytes:
    """The note with other words of the same length."""
    data = path.read_bytes()
    assert b"aaaa" in data
    return data.replace(b"aaaa", b"bbbb")


def put_back(path: Path, data: bytes, found: os.stat_result) -> None:
    """Overwrite a note and give it its old times again, as a restored backup does."""
    assert len(data) == found.st_size
    path.write_bytes(data)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def in_place(path: Path, found: os.stat_result) -> None:
    put_back(path, other_words(path), found)


def by_a_sync_tool(path: Path, found: os.stat_result) -> None:
    """A new file takes the old one's name and times."""
    staged = path.with_name(".n.md.tmp")
    staged.write_bytes(other_words(path))
    os.utime(staged, ns=(found.st_atime_ns, found.st_mtime_ns))
    staged.replace(path)


def from_a_backup(path: Path, found: os.stat_result) -> None:
    path.write_bytes(other_words(path))
    os.utime(path, (found.st_mtime - 1_000_000, found.st_mtime - 1_000_000))


def twice_within_a_tick(path: Path, found: os.stat_result) -> None:
    last = other_words(path)
    put_back(path, last.replace(b"bbbb", b"cccc"), found)
    put_back(path, last, found)


EDITS = (in_place, by_a_sync_tool, from_a_backup, twice_within_a_tick)


def matches(palace: Palace, word: str) -> list[str]:
    return [match["path"] for match in palace.search(word)["matches"]]


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("edit", EDITS)
def test_fs_17_an_edit_that_keeps_size_and_time_is_found_by_the_next_comparison(
    palace: Palace, note: Note, edit: Callable[[Path, os.stat_result], None], watched: bool
) -> None:
    """By the whole one, and by that of one file that a watcher told of."""
    path = note("01_Shallow/n.md", "aaaa\n")
    before = matches(palace, "aaaa")
    palace.house.shelf.trust(watched)
    palace.house.refresh(if_older=0)
    edit(path, path.stat())
    if watched:
        palace.house.shelf.stir(["01_Shallow/n.md"])
    else:
        palace.house.refresh(if_older=0)

    after = (matches(palace, "aaaa"), matches(palace, "bbbb"))

    assert before == ["01_Shallow/n.md"]
    assert after == ([], ["01_Shallow/n.md"])


@pytest.mark.parametrize("edit", EDITS)
def test_fs_17_an_edit_while_nobody_looked_is_found_at_the_next_start(
    open_palace: OpenPalace, note: Note, edit: Callable[[Path, os.stat_result], None]
) -> None:
    path = note("01_Shallow/n.md", "aaaa\n")
    first = open_palace()
    first.check()
    first.close()
    edit(path, path.stat())

    second = open_palace()

    assert (matches(second, "aaaa"), matches(second, "bbbb")) == ([], ["01_Shallow/n.md"])


@pytest.mark.parametrize("edit", EDITS)
def test_fs_17_the_keeper_takes_such_an_edit_in_and_looks_once(
    palace: Palace, person: Person, clock: Clock, edit: Callable[[Path, os.stat_result], None]
) -> None:
    """The day of the edit nobody can tell, so it is no use; the words are found and stay."""
    path = person.writes("01_Shallow/n.md", "aaaa\n")
    keeper = Keeper(palace.house)
    settle(keeper, clock)
    touched = person.says("01_Shallow/n.md")["last_touched"]
    person.stamps("01_Shallow/n.md")
    settle(keeper, clock)
    clock.turn(days=1)
    edit(path, path.stat())

    settle(keeper, clock)
    after = path.read_bytes()
    clock.turn(hours=1)
    settle(keeper, clock)

    assert (matches(palace, "aaaa"), matches(palace, "bbbb")) == ([], ["01_Shallow/n.md"])
    assert person.says("01_Shallow/n.md")["last_touched"] == touched
    assert after.endswith(b"bbbb\n")
    assert path.read_bytes() == after


def test_fs_17_a_file_system_that_keeps_no_change_time_is_mended_by_reindex(
    palace: Palace, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows. Nothing tells such an edit there but the bytes, which the documented command reads."""

    def timeless(stat: os.stat_result) -> Mark:
        return Mark(stat.st_size, stat.st_mtime_ns, stat.st_ino)

    monkeypatch.setattr(Mark, "of", staticmethod(timeless))
    path = note("01_Shallow/n.md", "aaaa\n")
    palace.check()
    in_place(path, path.stat())
    palace.check()
    unseen = matches(palace, "bbbb")

    palace.reindex()

    assert unseen == []
    assert (matches(palace, "aaaa"), matches(palace, "bbbb")) == ([], ["01_Shallow/n.md"])


# -- RC-12 --------------------------------------------------------------------------------------------------

SHUT = "03_Bedrock/shut/ref 20.md"
BUSY = "03_Bedrock/ref 30.md"
BROKEN = "03_Bedrock/ref 40.md"
BAD_HEADER = "---\nid: mem_40\nmood: [\n---\n"


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A vault of somebody who is not root: a hub and fifty notes that link to it, three of them difficult."""
    root = tmp_path / "base/vault"
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock/shut", "_System"):
        (root / folder).mkdir(parents=True)
    (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    with opened(root) as palace:
        palace.write("the hub", title="hub", layer="bedrock")
        for number in range(50):
            room = "shut/" if number == 20 else ""
            palace.write("see [[hub]]\n", title=f"ref {number}", layer="bedrock", path=room or None)
    text = (root / BROKEN).read_text(encoding="utf-8")
    (root / BROKEN).write_text(BAD_HEADER + text.split("---\n", 2)[2], encoding="utf-8")
    (root / SHUT).chmod(0o444)
    let_in(root)
    if os.geteuid() == 0:
        for place in (root.parent, *root.parent.rglob("*")):
            os.chown(place, NOBODY, NOBODY)
    (root / SHUT).parent.chmod(0o555)
    return root


def referrers(root: Path) -> dict[str, str]:
    return {
        path: data.decode("utf-8")
        for path, data in notes(root).items()
        if path.rpartition("/")[2].startswith("ref")
    }


def hubs(root: Path) -> list[str]:
    return [path for path in notes(root) if path.endswith(("hub.md", "center.md"))]


def test_rc_12_a_rename_that_meets_difficult_referrers_tells_what_it_left_and_a_repeat_finishes(
    hub: Path,
) -> None:
    root = hub

    def act() -> None:
        with opened(root) as palace:
            real = palace.house.perform
            typed: list[str] = []

            def perform(verb: str, edits: object, *, why: str) -> str:
                if verb == "move" and not typed:  # between read and write
                    typed.append("typed by a person, see [[hub]]\n")
                    with (root / BUSY).open("a", encoding="utf-8") as file:
                        file.write(typed[0])
                return real(verb, edits, why=why)  # type: ignore[arg-type]

            palace.house.perform = perform  # type: ignore[method-assign]

            moved = palace.move("03_Bedrock/hub.md", "bedrock", new_path="center")

            assert hubs(root) == ["03_Bedrock/center.md"]
            assert [left.partition(":")[0] for left in moved["links_left"]] == [SHUT]
            assert moved["links_rewritten"] == 50  # 49 notes, and the line that the person typed
            found = referrers(root)
            assert found[SHUT].endswith("see [[hub]]\n")
            assert found[BUSY].endswith("see [[center]]\ntyped by a person, see [[center]]\n")
            assert found[BROKEN].startswith(BAD_HEADER)
            assert sum("[[center]]" in text for text in found.values()) == 49

            again = palace.move("03_Bedrock/hub.md", "bedrock", new_path="center")
            assert [left.partition(":")[0] for left in again["links_left"]] == [SHUT]
            assert again["links_rewritten"] == 0

    as_person(act)
    (root / SHUT).parent.chmod(0o755)
    (root / SHUT).chmod(0o644)

    def repeat() -> None:
        with opened(root) as palace:
            done = palace.move("03_Bedrock/hub.md", "bedrock", new_path="center")

            assert (done["destination"], done["links_rewritten"], done["links_left"]) == (
                "03_Bedrock/center.md",
                1,
                [],
            )
            assert leads_to(palace, SHUT) == ["03_Bedrock/center.md"]
            codes = {problem.code for problem in palace.check()}
            assert codes == {"bad_header"}

    as_person(repeat)


@pytest.mark.parametrize("writes", [0, 1, 25, 48, 49])
def test_rc_12_killed_after_some_referrers_every_one_is_old_or_new_and_a_repeat_finishes(
    hub: Path, writes: int
) -> None:
    root = hub
    before = notes(root)

    def killed() -> None:
        count = 0
        real = files.put

        def put(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
            nonlocal count
            count += 1
            if count > writes:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(staged, target, expect=expect)

        files.put = put
        files.rename_new = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        with opened(root) as palace:
            palace.move("03_Bedrock/hub.md", "bedrock", new_path="center")

    with pytest.raises(AssertionError):
        as_person(killed)

    def repeat() -> None:
        with opened(root) as palace:
            after = notes(root)
            links = {"[[center]]" in text for path, text in referrers(root).items() if path != SHUT}
            assert len(links) == 1  # all old or all new
            assert hubs(root) == (["03_Bedrock/center.md"] if links == {True} else ["03_Bedrock/hub.md"])
            if links == {False}:
                assert after == before

            done = palace.move("03_Bedrock/hub.md", "bedrock", new_path="center")

            assert [left.partition(":")[0] for left in done["links_left"]] == [SHUT]
            assert hubs(root) == ["03_Bedrock/center.md"]
            assert sum("[[center]]" in text for text in referrers(root).values()) == 49
            assert [one for one in palace.recover()["recovered"] if one["status"] == "open"] == []

    as_person(repeat)


def test_rc_12_a_note_that_came_to_the_old_place_is_moved_itself(palace: Palace, clock: Clock) -> None:
    palace.write("the hub", title="hub")
    palace.move("01_Shallow/hub.md", "sediment")
    palace.write("another", title="other", path="hub.md")
    clock.turn(hours=1)

    moved = palace.move("01_Shallow/hub 2.md", "sediment")

    assert moved["destination"] == "02_Sediment/hub 2.md"


@pytest.mark.parametrize(
    "other", [{"dest_layer": "bedrock"}, {"new_path": "elsewhere"}, {"new_path": "room/hub"}]
)
def test_rc_12_another_move_of_a_note_that_is_gone_is_no_repeat(
    palace: Palace, other: dict[str, str]
) -> None:
    palace.write("the hub", title="hub")
    palace.move("01_Shallow/hub.md", "sediment")

    with pytest.raises(Exception, match="does not exist"):
        palace.move("01_Shallow/hub.md", **{"dest_layer": "sediment", **other})


def test_rc_12_a_repeat_of_a_move_that_left_nothing_writes_nothing(palace: Palace, vault: Path) -> None:
    palace.write("the hub", title="hub")
    palace.write("see [[hub]]", title="ref")
    palace.move("01_Shallow/hub.md", "sediment", new_path="center")
    before = notes(vault)

    again = palace.move("01_Shallow/hub.md", "sediment", new_path="center")

    assert (again["destination"], again["links_rewritten"], again["links_left"]) == (
        "02_Sediment/center.md",
        0,
        [],
    )
    assert notes(vault) == before
