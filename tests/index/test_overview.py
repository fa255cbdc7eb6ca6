"""What the index note shows of the notes, asked of a cache that is filled by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pytest

from tests.index.notes_by_hand import a_note, a_problem
from vault_palace.core.changes import Mark
from vault_palace.core.model import Memory
from vault_palace.index.cache import Cache, IndexedNote
from vault_palace.index.graph import Graph
from vault_palace.index.notes import memory_of_column
from vault_palace.index.overview import Room, Twin

LAST = date(2026, 12, 7)


def a_memory(path: str, *, links: tuple[str, ...] = (), **values: Any) -> IndexedNote:
    """The note at *path* with these values of its memory; dated for the far future unless they say more."""
    note = a_note(path, links=links)
    assert note.memory is not None
    if not {"decays_on", "rises_on"} & values.keys():
        values["decays_on"] = date(2030, 1, 1)
    return replace(note, memory=replace(note.memory, **values))


def paths(found: tuple[Memory, ...]) -> list[str]:
    return [memory.path for memory in found]


@pytest.mark.parametrize("field", ["decays_on", "rises_on"])
def test_what_is_due_comes_by_day_then_by_path(cache: Cache, field: str) -> None:
    for path, day in (("b", 7), ("c", 1), ("a", 7), ("d", 8)):
        values: dict[str, Any] = {field: date(2026, 12, day)}
        cache.put(a_memory(f"01_Shallow/{path}.md", **values))

    seen = cache.overview(LAST)

    found = seen.decaying if field == "decays_on" else seen.rising
    assert paths(found.first) == ["01_Shallow/c.md", "01_Shallow/a.md", "01_Shallow/b.md"]


def test_a_list_is_cut_and_tells_how_many_there_are(cache: Cache) -> None:
    for number in range(7):
        cache.put(a_memory(f"01_Shallow/{number}.md", decays_on=LAST))

    seen = cache.overview(LAST, 3)

    assert (len(seen.decaying.first), seen.decaying.count, len(seen.newest)) == (3, 7, 3)


UNMOVED: dict[str, dict[str, Any]] = {
    "pinned": {"pinned": True},
    "no density that can be read": {"density": None},
    "no streak that can be read": {"streak": None},
}


@pytest.mark.parametrize("values", UNMOVED.values(), ids=UNMOVED.keys())
def test_a_note_that_no_rule_moves_never_decays_whatever_it_says(
    cache: Cache, values: dict[str, Any]
) -> None:
    cache.put(a_memory("01_Shallow/a.md", decays_on=LAST, **values))

    seen = cache.overview(LAST)

    assert (seen.decaying.count, seen.undated.count, seen.next_leaving) == (0, 0, None)


@pytest.mark.parametrize(
    ("path", "dated", "told"),
    [
        ("01_Shallow/a.md", False, 1),
        ("02_Sediment/a.md", False, 1),
        ("01_Shallow/a.md", True, 0),
        ("03_Bedrock/a.md", False, 0),
        ("_Archive/01_Shallow/a.md", False, 0),
    ],
)
def test_only_notes_that_rules_move_can_lack_a_day(cache: Cache, path: str, dated: bool, told: int) -> None:
    cache.put(a_memory(path, decays_on=LAST if dated else None))

    assert cache.overview(LAST).undated.count == told


def test_the_first_day_on_which_a_note_leaves_is_told(cache: Cache) -> None:
    cache.put(a_memory("01_Shallow/a.md", decays_on=date(2031, 5, 2)))
    cache.put(a_memory("01_Shallow/b.md", decays_on=date(2031, 5, 1)))

    assert cache.overview(LAST).next_leaving == date(2031, 5, 1)


def test_the_strongest_go_by_density_then_streak_then_path(cache: Cache) -> None:
    for name, density, streak in (("d", 0.5, 9), ("c", 0.9, 1), ("b", 0.9, 4), ("a", 0.9, 1)):
        cache.put(a_memory(f"01_Shallow/{name}.md", density=density, streak=streak))
    cache.put(a_memory("_Archive/01_Shallow/z.md", density=1.0))
    cache.put(a_memory("01_Shallow/unreadable.md", density=None))

    found = cache.overview(LAST).strongest

    assert paths(found) == [f"01_Shallow/{name}.md" for name in "bacd"]


def test_the_newest_go_by_their_day_of_birth_then_by_path(cache: Cache) -> None:
    for name, hour in (("b", 9), ("a", 9), ("c", 11)):
        cache.put(a_memory(f"01_Shallow/{name}.md", created=datetime(2026, 11, 30, hour)))
    cache.put(a_memory("_Archive/01_Shallow/z.md", created=datetime(2027, 1, 1)))

    found = cache.overview(LAST).newest

    assert paths(found) == [f"01_Shallow/{name}.md" for name in "cab"]


def test_rooms_are_counted_with_their_mean_density(cache: Cache) -> None:
    cache.put(a_memory("01_Shallow/x/a.md", density=0.2, decays_on=LAST))
    cache.put(a_memory("01_Shallow/x/b.md", density=0.5))
    cache.put(a_memory("01_Shallow/c.md", density=None))
    cache.put(a_memory("03_Bedrock/x/d.md", density=1.0))
    cache.put(a_memory("_Archive/01_Shallow/x/e.md", density=0.1, decays_on=LAST))
    cache.put(a_note("_System/Dashboards/f.md"))

    assert cache.overview(LAST).rooms == (
        Room(layer="bedrock", room="x", count=1, density=1.0),
        Room(layer="shallow", room="", count=1, density=None),
        Room(layer="shallow", room="x", count=2, density=0.35, decaying=1),
        Room(layer="", room="x", count=1, density=0.1),
    )


@pytest.fixture
def linked(cache: Cache) -> Cache:
    """Two notes that are linked, one that links itself and one that only other kinds link to."""
    cache.put(a_memory("01_Shallow/a.md", links=("b", "nowhere")))
    cache.put(a_memory("01_Shallow/b.md"))
    cache.put(a_memory("01_Shallow/self.md", links=("self",)))
    cache.put(a_memory("02_Sediment/alone.md"))
    cache.put(a_note("PALACE_MAP.md", links=("alone", "self", "gone")))
    cache.put(a_memory("_Archive/01_Shallow/old.md", links=("alone", "lost")))
    cache.put(a_note("_System/Dashboards/d.md", links=("alone",)))
    return cache


def test_orphans_are_those_of_the_graph(linked: Cache) -> None:
    found = linked.overview(LAST).orphans

    assert (
        paths(found.first) == list(Graph(linked).orphans()) == ["01_Shallow/self.md", "02_Sediment/alone.md"]
    )


def test_orphans_beyond_the_cut_are_counted(linked: Cache) -> None:
    found = linked.overview(LAST, 1).orphans

    assert (paths(found.first), found.count) == (["01_Shallow/self.md"], 2)


def test_links_of_the_map_and_of_the_archive_are_not_told_as_unresolved(linked: Cache) -> None:
    found = linked.overview(LAST).unresolved

    assert (found.first, found.count) == ((("01_Shallow/a.md", "nowhere"),), 1)


def test_no_link_query_begins_with_all_memories(linked: Cache) -> None:
    """With ten thousand notes, that took seconds for one note's backlinks."""
    asked: list[str] = []
    with linked._reader() as db:
        db.set_trace_callback(asked.append)
        linked_questions: tuple[Callable[[], object], ...] = (
            lambda: linked.overview(LAST),
            lambda: linked.referrers("01_Shallow/b.md", counted=True),
            linked.orphans,
        )
        reader = db
    for question in linked_questions:
        question()
    reader.set_trace_callback(None)

    with linked._reader() as db:
        plans = [
            str(step[3])
            for query in asked
            if query.startswith(("SELECT", "WITH"))
            for step in db.execute(f"EXPLAIN QUERY PLAN {query}")
        ]
    assert [step for step in plans if "source" in step]
    assert not [step for step in plans if "source" in step and "PRIMARY KEY" not in step]


def test_problems_of_notes_are_listed_by_path(cache: Cache) -> None:
    for name, count in (("b", 2), ("a", 1)):
        problems = tuple(a_problem(f"01_Shallow/{name}.md", line) for line in range(count))
        cache.put(replace(a_memory(f"01_Shallow/{name}.md"), problems=problems))

    found = cache.overview(LAST, 2).problems

    assert ([problem.path for problem in found.first], found.count) == (
        ["01_Shallow/a.md", "01_Shallow/b.md"],
        3,
    )


def test_notes_with_one_id_are_told_all_but_the_first(cache: Cache) -> None:
    for name in "cab":
        cache.put(replace(a_memory(f"01_Shallow/{name}.md"), id="mem_1"))
    cache.put(replace(a_memory("01_Shallow/d.md"), id="mem_2"))

    found = cache.overview(LAST).twins

    first = "01_Shallow/a.md"
    assert found.first == tuple(
        Twin(path=f"01_Shallow/{name}.md", first=first, code="duplicate_id", value="mem_1") for name in "bc"
    )


def test_notes_of_one_name_are_told_whatever_their_case(cache: Cache) -> None:
    cache.put(a_memory("01_Shallow/Plan.md"))
    cache.put(a_memory("_Archive/01_Shallow/plan.md"))
    cache.put(a_note("_System/Dashboards/PLAN.md"))

    (found,) = cache.overview(LAST).twins.first

    assert (found.path, found.first, found.code) == (
        "_Archive/01_Shallow/plan.md",
        "01_Shallow/Plan.md",
        "duplicate_name",
    )


def test_a_memory_called_as_a_dashboard_is_no_duplicate(cache: Cache) -> None:
    cache.put(a_memory("01_Shallow/Plan.md"))
    cache.put(a_note("_System/Dashboards/Plan.md"))

    assert cache.overview(LAST).twins.count == 0


def test_conflict_copies_are_listed(cache: Cache) -> None:
    cache.put(a_note("01_Shallow/a (conflicted copy).md"))
    cache.put(a_memory("01_Shallow/a.md"))

    found = cache.overview(LAST).conflicts

    assert (found.first, found.count) == (("01_Shallow/a (conflicted copy).md",), 1)


def test_names_that_are_no_text_come_back_as_they_are(cache: Cache) -> None:
    odd = "01_Shallow/r\udcffm/n\udcff.md"
    cache.put(a_memory(odd, decays_on=LAST, links=("x\udcff",)))

    seen = cache.overview(LAST)

    assert (paths(seen.decaying.first), seen.rooms[0].room, seen.unresolved.first) == (
        [odd],
        "r\udcffm",
        ((odd, "x\udcff"),),
    )


@pytest.fixture
def large(cache: Cache) -> Cache:
    with cache.batch():
        for number in range(2_000):
            cache.put(
                replace(
                    a_memory(f"01_Shallow/room {number % 7}/n{number:04}.md", decays_on=LAST),
                    mark=Mark(1, 1, 1),
                    links=((f"lost {number}", f"lost {number}"),),
                )
            )
    return cache


def test_only_what_is_listed_is_read_whole(large: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = memory_of_column

    def counted(path: str, column: str | None) -> Memory | None:
        read.append(path)
        return real(path, column)

    monkeypatch.setattr("vault_palace.index.overview.memory_of_column", counted)

    seen = large.overview(LAST, 10)

    assert (len(read), seen.decaying.count, seen.orphans.count) == (40, 2_000, 2_000)


def test_the_lists_follow_a_note_that_changed(cache: Cache) -> None:
    cache.put(a_memory("01_Shallow/a.md", decays_on=LAST))

    cache.put(a_memory("01_Shallow/a.md", decays_on=date(2031, 1, 1)))

    assert cache.overview(LAST).decaying.count == 0
