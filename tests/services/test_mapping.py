"""The index note and its picture: what they show, when they are written, when they are left alone."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.core import links, mapnote, palacemap
from vault_palace.core.errors import LockTimeout
from vault_palace.core.model import Problem
from vault_palace.core.resolve import Resolver
from vault_palace.services import generated, mapping
from vault_palace.services.house import House
from vault_palace.services.palace import Palace
from vault_palace.storage.records import Entry, NoteFact

MAP = "PALACE_MAP.md"
Write = Callable[..., Path]


def memory(title: str = "", body: str = "words", **values: object) -> str:
    """A note as the program leaves it in Shallow, with these values."""
    shown = {
        "id": f"mem_{title or 'x'}",
        "layer": "shallow",
        "created": "2031-02-27T12:00:00",
        "last_touched": "2031-02-27T12:00:00",
        "density": 0.2,
        "streak": 0,
        "decay_days": 7,
        "decays_on": "2031-03-07",
        "status": "active",
    } | values
    lines = [f"{key}: {value}" for key, value in shown.items() if value is not None]
    return "\n".join(["---", *lines, "---", "", body, ""])


@pytest.fixture
def house(palace: Palace) -> House:
    return palace.house


def renewed(house: House) -> mapping.Renewal:
    """Compare, as the keeper does, and renew."""
    house.refresh(if_older=0)
    return mapping.renew(house)


def block(house: House) -> str:
    """What stands between the markers now."""
    text = (house.vault.root / MAP).read_text(encoding="utf-8")
    return text.partition(mapnote.BEGIN)[2].partition(mapnote.END)[0]


def section(house: House, heading: str) -> str:
    return block(house).partition(f"## {heading}\n")[2].partition("\n## ")[0]


def seen(root: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and times of everything in the vault."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make any change of the vault blow up from now on."""

    def forbid() -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("something was written")

        monkeypatch.setattr(House, "perform", refuse)

    return forbid


# -- what is shown ------------------------------------------------------------------------------------------


def test_the_block_and_the_picture_are_written(note: Write, house: House, vault: Path) -> None:
    note(f"01_Shallow/{'Kafka'}.md", memory("Kafka"))

    done = renewed(house)

    assert done.written
    assert "![[PALACE_MAP.svg]]" in block(house)
    assert (vault / "PALACE_MAP.svg").read_text(encoding="utf-8").startswith("<svg")


def test_what_decays_is_shown_with_day_and_reason(note: Write, house: House) -> None:
    note("01_Shallow/ideas/Fading.md", memory("Fading"))

    renewed(house)

    shown = section(house, "Decays within 7 days")
    assert "[[Fading]] | Shallow / ideas | 0.20 | 0 | 2031-03-07" in shown
    assert "density 0.2 \\< 0.5 and streak -1 \\< 0, untouched for 7 days |" in shown


def test_what_decays_beyond_the_horizon_is_not_shown(note: Write, house: House) -> None:
    note("01_Shallow/Later.md", memory("Later", decays_on="2031-03-09"))

    renewed(house)

    assert "Nothing decays within 7 days" in block(house)


def test_a_note_that_has_no_day_yet_is_judged_by_the_rules(note: Write, house: House) -> None:
    note("01_Shallow/New.md", memory("New", decays_on=None))

    renewed(house)

    assert "[[New]] | Shallow | 0.20 | 0 | 2031-03-07" in section(house, "Decays within 7 days")


def test_a_stored_day_that_the_rules_contradict_is_given_no_reason(note: Write, house: House) -> None:
    note("01_Shallow/Odd.md", memory("Odd", decays_on="2031-03-03"))

    renewed(house)

    assert "2031-03-03 |  |" in section(house, "Decays within 7 days")


def test_what_rises_says_where_to(note: Write, house: House) -> None:
    rising = memory("Up", density=0.6, decays_on=None, rises_on="2031-03-06", rises_to="sediment")
    note("01_Shallow/Up.md", rising)

    renewed(house)

    assert "2031-03-06 | density 0.6 ≥ 0.5 and 7 days old: rises to Sediment" in section(house, "Rises")


def test_what_the_next_run_lets_go_is_shown_the_day_before(note: Write, house: House, clock: Clock) -> None:
    note("01_Shallow/Leaving.md", memory("Leaving"))
    clock.turn(days=5)

    renewed(house)

    assert "[[Leaving]]" in section(house, "Let go by the next run")


LINKS = [
    ("unique", ["01_Shallow/Plan.md"], "[[Plan]]"),
    ("twin", ["01_Shallow/Plan.md", "02_Sediment/a/plan.md"], "[[01_Shallow/Plan\\|Plan]]"),
    ("dotted", ["01_Shallow/v1.2.md"], "[[v1.2]]"),
    ("attachment", ["01_Shallow/plan.pdf.md", "files/plan.pdf"], "[[01_Shallow/plan.pdf.md\\|plan.pdf]]"),
]


@pytest.mark.parametrize(("files", "link"), [row[1:] for row in LINKS], ids=[row[0] for row in LINKS])
def test_each_link_means_exactly_its_note(note: Write, house: House, files: list[str], link: str) -> None:
    for path in files:
        note(path, memory(path[:3]))

    renewed(house)

    assert link in section(house, "Strongest")
    (found,) = links.find(link.replace("\\|", "|"))
    assert house.shelf.resolver().resolve(found.path, MAP) == files[0]


def test_a_name_that_links_cannot_hold_is_shown_as_words(note: Write, house: House) -> None:
    note("01_Shallow/C# [draft]].md", memory("C"))

    renewed(house)

    assert "[[" not in section(house, "Strongest")
    assert "draft" in section(house, "Strongest")


def deed(verb: str, path: str, *, id: str = "mem_a", day: int = 1, why: str = "why") -> Entry:
    return Entry(
        op=f"{verb}{day}",
        verb=verb,
        at=datetime(2031, 2, day, 23, 30, tzinfo=UTC),
        why=why,
        notes=(NoteFact(id=id, path=path, body=""),),
    )


def test_what_people_changed_comes_newest_first_and_each_note_once(note: Write, house: House) -> None:
    note("01_Shallow/a.md", memory("a"))
    note("01_Shallow/b.md", memory("b"))
    house.refresh(if_older=0)
    deeds = [
        deed("created", "01_Shallow/a.md", day=1, why="a new note"),
        deed("edited", "01_Shallow/b.md", id="mem_b", day=2, why="edited"),
        deed("write", "01_Shallow/b.md", id="mem_b", day=3, why="an agent"),
        deed("renamed", "01_Shallow/a.md", day=4, why="renamed from 01_Shallow/old.md"),
    ]

    mapping.renew(house, deeds=deeds)

    rows = [line for line in section(house, "What people changed").splitlines() if "[[" in line]
    assert rows == [
        "| [[a]] | 2031-02-04 | renamed from 01_Shallow/old.md |",
        "| [[b]] | 2031-02-02 | edited |",
    ]


def test_a_deed_is_told_by_where_its_note_is_now(note: Write, house: House) -> None:
    note("02_Sediment/moved.md", memory("a"))
    house.refresh(if_older=0)

    mapping.renew(house, deeds=[deed("edited", "01_Shallow/a.md")])

    assert "[[moved]]" in section(house, "What people changed")


def test_a_deletion_is_told_without_a_link(note: Write, house: House) -> None:
    house.refresh(if_older=0)

    mapping.renew(house, deeds=[deed("deleted", "01_Shallow/gone.md", why="deleted")])

    assert "| 01_Shallow/gone.md | 2031-02-01 | deleted |" in section(house, "What people changed")


def test_the_day_of_a_deed_is_the_day_in_the_vaults_zone(note: Write, open_palace: OpenPalace) -> None:
    note("_System/Policy.md", "---\ntimezone: Asia/Tokyo\n---\n")
    house = open_palace().house
    house.refresh(if_older=0)

    mapping.renew(house, deeds=[deed("deleted", "01_Shallow/gone.md")])

    assert "2031-02-02" in section(house, "What people changed")


def test_orphans_unresolved_links_problems_and_copies_are_shown(note: Write, house: House) -> None:
    note("01_Shallow/lone.md", memory("lone", body="[[Nowhere]]", density="high"))
    note("01_Shallow/lone (conflicted copy).md", memory("copy"))
    note("02_Sediment/lone.md", memory("lone", density="0.3"))

    renewed(house)

    assert "lone" in section(house, "Orphans")
    assert "`[[Nowhere]]`" in section(house, "Unresolved links")
    assert "`duplicate_id`" in section(house, "Problems")
    assert "`duplicate_name`" in section(house, "Problems")
    assert "`bad_value`" in section(house, "Problems")
    assert "lone (conflicted copy)" in section(house, "Conflict copies")


def test_an_operation_left_open_is_told_alike_on_each_machine(
    note: Write, vault: Path, open_palace: OpenPalace, house: House
) -> None:
    """Else the keepers of two machines would write the map to and fro."""
    note("_System/Policy.md", "---\ntimezone: UTC\n---\n")
    record = {"v": 1, "op": "op1", "at": "2031-02-01T00:00:00Z", "state": "begin", "verb": "move"}
    closing = {"v": 1, "op": "op1", "at": "2031-02-01T00:00:00Z", "state": "open", "detail": "why"}
    steps = {"session": "s", "steps": [{"kind": "put", "path": "01_Shallow/a.md", "after": "x"}], "notes": []}
    journal = note(
        f"_System/journal/{house.machine}.jsonl",
        "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in (record | steps, closing)),
    )
    renewed(house)
    here = section(house, "Problems")

    other = replace(house.settings, state_dir=None)
    there = House.open(vault, other)
    facts, *_ = mapping.gather(there)
    there.close()

    assert journal.exists()
    assert f"`open_operation` move op1 of machine {house.machine}" in here
    assert [row.message for row in facts.problems] == [
        f"move op1 of machine {house.machine} is neither finished nor undone."
    ]


def test_what_only_this_process_knows_is_not_shown(note: Write, house: House) -> None:
    house.quarrels["01_Shallow/a.md"] = Problem(path="", line=0, code="quarrel", message="kept changing")

    renewed(house)

    assert "kept changing" not in block(house)


def test_rooms_are_shown_by_layer_and_name(note: Write, house: House) -> None:
    for path in ("02_Sediment/b/x.md", "01_Shallow/z/y.md", "01_Shallow/a/w.md", "01_Shallow/a/v.md"):
        note(path, memory(path[-4]))

    renewed(house)

    rows = [line for line in section(house, "Rooms").splitlines() if "0.2" in line]
    assert rows == ["| Shallow | a | 2 | 0.20 |", "| Shallow | z | 1 | 0.20 |", "| Sediment | b | 1 | 0.20 |"]


# -- when it is written -------------------------------------------------------------------------------------


@pytest.fixture
def varied(note: Write, house: House) -> House:
    """A vault with something of everything the block shows."""
    note("01_Shallow/a.md", memory("a", body="[[b]] [[Nowhere]]"))
    note("01_Shallow/room/b.md", memory("b", decays_on="2031-03-02"))
    note("02_Sediment/c.md", memory("c", layer="sediment", density=0.9, decays_on=None))
    note("03_Bedrock/d.md", memory("d", layer="bedrock", density="?"))
    note("_Archive/01_Shallow/e.md", memory("e", status="archived"))
    note("01_Shallow/a (conflicted copy).md", memory("a"))
    note("01_Shallow/plain.md", "a person's words\n")
    return house


def test_regenerating_twice_changes_nothing(
    varied: House, vault: Path, unwritable: Callable[[], None]
) -> None:
    renewed(varied)
    before = seen(vault)
    unwritable()

    again = renewed(varied)

    assert not again.written
    assert seen(vault) == before


def test_an_idle_hour_causes_no_write(
    varied: House, vault: Path, clock: Clock, unwritable: Callable[[], None]
) -> None:
    renewed(varied)
    before = seen(vault)
    unwritable()

    for _ in range(60):
        clock.turn(hours=1 / 60)
        assert not renewed(varied).written

    assert seen(vault) == before


def test_a_fresh_process_finds_nothing_to_write(
    varied: House, vault: Path, open_palace: OpenPalace, unwritable: Callable[[], None]
) -> None:
    renewed(varied)
    before = seen(vault)
    unwritable()

    renewed(open_palace(session="second").house)

    assert seen(vault) == before


def test_a_change_of_a_note_is_shown(note: Write, varied: House) -> None:
    renewed(varied)
    note("01_Shallow/Brand new.md", memory("new", created="2031-03-01T09:00:00"))

    done = renewed(varied)

    assert done.written
    assert "[[Brand new]]" in section(varied, "Newest")


OUTSIDE = {
    "plain": "# Mine\n\n{}\n\nmy own words\n",
    "line ends": "# Mine\r\n\r\n{}\r\nmy own words\r\n\r\n",
    "no last line end": "{}\nmy words, and no end",
    "byte order mark": "\ufeff# Mine\n{}\n",
    "header": "---\ncssclasses: [wide]\n---\n\nabove\n{}\n## Links\n\n- [[Kept]]\n",
}


@pytest.mark.parametrize("text", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_text_outside_the_markers_stays_byte_for_byte(note: Write, varied: House, text: str) -> None:
    end = "\r\n" if "\r\n" in text else "\n"
    written = text.format(f"{mapnote.BEGIN}{end}old{end}{mapnote.END}")
    target = note(MAP, written)

    renewed(varied)

    now = target.read_bytes().decode("utf-8")
    assert "old" not in now
    assert now.partition(mapnote.BEGIN)[0] == written.partition(mapnote.BEGIN)[0]
    assert now.partition(mapnote.END)[2] == written.partition(mapnote.END)[2]


def test_links_that_agents_added_stay(note: Write, varied: House, palace: Palace) -> None:
    renewed(varied)
    palace.update_map("add_link", "[[Kept]]")

    note("01_Shallow/another.md", memory("another"))
    renewed(varied)

    assert "- [[Kept]]" in (varied.vault.root / MAP).read_text(encoding="utf-8")


def test_a_deleted_index_note_is_made_anew_from_the_shipped_one(varied: House, vault: Path) -> None:
    renewed(varied)
    (vault / MAP).unlink()

    renewed(varied)

    text = (vault / MAP).read_text(encoding="utf-8")
    assert "## How to overrule it" in text
    assert "[[a]]" in text


def test_without_the_shipped_note_a_bare_one_is_made(
    varied: House, vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "template_root", lambda: tmp_path / "nothing")

    renewed(varied)

    assert (vault / MAP).read_text(encoding="utf-8").startswith("# Palace map\n")


def test_an_index_note_that_is_missing_for_a_moment_is_not_made_anew(
    varied: House, vault: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed(varied)
    mine = b"# Mine\n\nsaved by an editor that renames\n"
    (vault / MAP).unlink()

    def saved(_seconds: float) -> None:
        (vault / MAP).write_bytes(mine)

    monkeypatch.setattr(varied, "settings", varied.settings.__class__(clock=clock, sleep=saved))
    mapping.renew(varied)

    assert (vault / MAP).read_bytes().startswith(mine.rstrip())


# -- when it is left alone ----------------------------------------------------------------------------------


def opened(vault: Path, path: str) -> None:
    """Obsidian shows *path*."""
    (vault / ".obsidian").mkdir(exist_ok=True)
    leaf = {"type": "leaf", "state": {"type": "markdown", "state": {"file": path}}}
    (vault / ".obsidian/workspace.json").write_text(json.dumps({"main": leaf}), encoding="utf-8")


def test_a_map_that_a_person_is_editing_waits(note: Write, varied: House, vault: Path, clock: Clock) -> None:
    target = note(MAP, "# Mine\n\nhalf a sen")
    opened(vault, MAP)
    moment = (clock.at - timedelta(minutes=5)).timestamp()
    os.utime(target, (moment, moment))

    done = renewed(varied)

    assert (done.written, done.waits) == (False, True)
    assert target.read_text(encoding="utf-8") == "# Mine\n\nhalf a sen"


def test_a_map_that_waited_is_written_when_it_is_settled(
    note: Write, varied: House, vault: Path, clock: Clock
) -> None:
    target = note(MAP, "# Mine\n\nhalf a sen")
    opened(vault, MAP)
    os.utime(target, (clock.at.timestamp(), clock.at.timestamp()))
    renewed(varied)
    clock.turn(hours=1)

    done = renewed(varied)

    assert (done.written, done.waits) == (True, False)


def test_words_saved_while_the_map_was_made_are_kept(
    note: Write, varied: House, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = note(MAP, "# Mine\n")
    made = palacemap.block

    def slow(facts: palacemap.Facts) -> str:
        target.write_text("# Mine\n\nsaved just now\n", encoding="utf-8")
        return made(facts)

    monkeypatch.setattr(palacemap, "block", slow)

    done = renewed(varied)

    assert (done.written, done.waits) == (False, True)
    assert target.read_text(encoding="utf-8") == "# Mine\n\nsaved just now\n"


def test_a_lock_that_another_holds_is_not_waited_for_long(
    varied: House, monkeypatch: pytest.MonkeyPatch, vault: Path
) -> None:
    waited: list[float | None] = []

    def held(_house: House, timeout: float | None = None) -> None:
        waited.append(timeout)
        raise LockTimeout("another process writes")

    monkeypatch.setattr(House, "locked", held)

    done = renewed(varied)

    assert (done.written, done.waits, (vault / MAP).exists()) == (False, True, False)
    assert waited == [mapping.LOCK_SECONDS]


BROKEN = {
    "only a beginning": f"# Mine\n\n{mapnote.BEGIN}\nwords\n",
    "only an end": f"# Mine\n\nwords\n{mapnote.END}\n",
    "doubled": f"{mapnote.BEGIN}\n{mapnote.END}\nwords\n{mapnote.BEGIN}\n{mapnote.END}\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_map_with_broken_markers_is_left_and_reported(
    note: Write, varied: House, palace: Palace, text: str
) -> None:
    target = note(MAP, text)

    done = renewed(varied)

    assert (done.written, done.waits) == (False, False)
    assert target.read_text(encoding="utf-8") == text
    assert [problem.line > 0 for problem in palace.check() if problem.code == "broken_map"] == [True]
    assert "broken_map" in [problem["code"] for problem in palace.health()["problems"]]


def test_a_map_that_is_not_utf8_is_left(note: Write, varied: House) -> None:
    target = note(MAP, b"# M\xff\n")

    renewed(varied)

    assert target.read_bytes() == b"# M\xff\n"


def test_a_sound_map_is_no_problem(note: Write, varied: House, palace: Palace) -> None:
    renewed(varied)

    assert "broken_map" not in {problem.code for problem in palace.check()}


def test_nothing_is_written_read_only(
    note: Write, vault: Path, open_palace: OpenPalace, unwritable: Callable[[], None]
) -> None:
    note("01_Shallow/a.md", memory("a"))
    house = open_palace(read_only=True).house
    unwritable()

    done = renewed(house)

    assert (done.written, (vault / MAP).exists()) == (False, False)


def test_nothing_is_written_without_a_policy_note(
    note: Write, vault: Path, house: House, unwritable: Callable[[], None]
) -> None:
    note("01_Shallow/a.md", memory("a"))
    (vault / "_System/Policy.md").unlink()
    unwritable()

    assert not renewed(house).written


def test_a_doubtful_vault_leaves_the_map_alone(varied: House, unwritable: Callable[[], None]) -> None:
    """WT-08: what the last comparison could not believe is not shown."""
    renewed(varied)
    varied.shelf.doubts = (Problem(path="", line=0, code="vault_empty", message="nothing is there"),)
    unwritable()

    assert not mapping.renew(varied, deeds=[deed("deleted", "01_Shallow/a.md")]).written


def test_a_vault_that_is_not_mounted_gets_no_map(varied: House, vault: Path) -> None:
    """WT-08: the mount point is still there, and empty."""
    renewed(varied)
    shutil.move(vault, vault.with_name("elsewhere"))
    vault.mkdir()

    done = mapping.renew(varied)

    assert (done.written, list(vault.iterdir())) == (False, [])


def test_a_folder_in_the_place_of_the_picture_costs_only_the_picture(varied: House, vault: Path) -> None:
    (vault / "PALACE_MAP.svg").mkdir()

    renewed(varied)

    assert "[[a]]" in block(varied)
    assert ".svg" not in block(varied)


# -- what it is not -----------------------------------------------------------------------------------------


def test_the_maps_own_links_never_count_as_backlinks(note: Write, house: House) -> None:
    note("01_Shallow/lone.md", memory("lone"))

    renewed(house)
    renewed(house)

    assert "[[lone]]" in block(house)
    assert house.shelf.backlinks("01_Shallow/lone.md") == []
    assert "[[lone]]" in section(house, "Orphans")


def test_the_picture_is_not_a_note(varied: House) -> None:
    renewed(varied)

    known = varied.shelf.cache
    assert known.get(generated.PICTURE) is None
    assert generated.PICTURE in known.paths()


def test_the_map_holds_no_link_that_leads_nowhere(varied: House) -> None:
    renewed(varied)

    resolver = varied.shelf.resolver()
    lost = [link.path for link in links.find(block(varied)) if not resolver.resolve(link.path, MAP)]
    # The dashboards come with `init`.
    assert set(lost) <= {"About to decay", "About to rise"}


@pytest.fixture
def enormous(note: Write, house: House) -> House:
    """A hundred thousand notes, as the cache would know them."""
    note("01_Shallow/proto.md", memory("proto", body="[[Nowhere]]", density="high", decays_on="2031-03-02"))
    house.refresh(if_older=0)
    house.shelf.cache.close()
    with sqlite3.connect(house.shelf.file) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(note)")]
        special = {
            "id": "NULL",
            "path": "printf('01_Shallow/a rather long name of a room %d/%s %06d.md', n % 2500, stem, n)",
            "room": "printf('a rather long name of a room %d', n % 2500)",
            "memory_id": "'mem_' || (n / 2)",
            "density": "0.5",
        }
        chosen = ", ".join(special.get(column, f"note.{column}") for column in columns)
        db.execute(
            "CREATE TEMP TABLE number AS WITH RECURSIVE n(n) AS"
            " (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000) SELECT n FROM n"
        )
        db.execute(
            f"INSERT INTO note SELECT {chosen} FROM number, note,"
            " (SELECT 'A note whose name goes on and on until it is as long as names get to be' AS stem)"
            " WHERE note.path = '01_Shallow/proto.md'"
        )
        db.execute("INSERT INTO link SELECT id, 0, 'lost ' || id, 'lost', NULL, NULL FROM note WHERE id > 1")
        paths = [path for (path,) in db.execute("SELECT path FROM note")]
    db.close()
    house.shelf.close()
    house.shelf._resolver = Resolver(paths)
    return house


def test_a_hundred_thousand_notes_give_a_page_that_opens_at_once(enormous: House, vault: Path) -> None:
    mapping.renew(enormous)

    text = block(enormous)
    assert "100,0" in text
    assert len(text.encode("utf-8")) < 64 * 1024
    assert 50 < len(links.find(text)) < 300
    assert len((vault / "PALACE_MAP.svg").read_bytes()) < 64 * 1024


ODD = [
    "a `code` b",
    "<!-- hidden",
    "100%% sure",
    "x $$ y",
    "two\nlines",
    "mem]] [[b",
    "%% palace - end %%",
    "key:: value",
    "r\udcff",
    "e\u0301 and \u202e",
    "=1+1",
]


@pytest.mark.skipif(os.name == "nt", reason="Windows holds no such names")
def test_odd_names_break_nothing(note: Write, house: House, vault: Path) -> None:
    for number, name in enumerate(ODD):
        note(f"01_Shallow/{name[:2]} room/{name}.md", memory(f"odd{number}", density="?"))
    note("01_Shallow/Plain.md", memory("Plain"))

    renewed(house)

    text = (vault / MAP).read_text(encoding="utf-8")
    found = {house.shelf.resolver().resolve(link.path, MAP) for link in links.find(block(house))}
    assert "01_Shallow/Plain.md" in found
    assert mapnote.with_block(text, "x").count("palace:") == 2
    assert not renewed(house).written


@pytest.mark.parametrize("words", ["[[Nowhere]] | x", "%% palace:end %%", "<script>", "`", "![[x]]"])
def test_words_of_a_deed_cannot_break_out_of_their_cell(note: Write, house: House, words: str) -> None:
    note("01_Shallow/a.md", memory("a"))
    house.refresh(if_older=0)

    mapping.renew(house, deeds=[deed("edited", "01_Shallow/a.md", why=words)])

    (row,) = [line for line in section(house, "What people changed").splitlines() if "[[a]]" in line]
    assert len(links.find(row)) == 1
    assert row.replace("\\|", "").count("|") == 4
