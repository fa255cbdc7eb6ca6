"""A search is a hit when one of the notes it showed is read by the same caller soon after."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from vault_palace.services.caller import Caller
from vault_palace.surfaces.mcp.followup import CALLERS, CALLS, MINUTES, OPEN, Followup

ONE, OTHER = Caller("one", "s1"), Caller("one", "s2")


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def page(*names: str) -> dict[str, Any]:
    return {"matches": [{"path": f"01_Shallow/{name}.md", "id": f"mem_{name}"} for name in names]}


def note(name: str) -> dict[str, Any]:
    return {"path": f"01_Shallow/{name}.md", "metadata": {"id": f"mem_{name}"}, "content": "x"}


def search(seen: Followup, *names: str, caller: Caller = ONE, **given: Any) -> None:
    seen.answered(caller, "search_room", {"query": "q", **given}, page(*names))


def read(seen: Followup, name: str, caller: Caller = ONE) -> None:
    seen.answered(caller, "read_memory", {"path": name}, note(name))


def ended(seen: Followup, tool: str = "search_room") -> tuple[int, int, int]:
    its = seen.counts()[tool]
    return its.followed, its.missed, its.waiting


def test_a_search_followed_by_a_read_of_what_it_showed_is_a_hit() -> None:
    seen = Followup()
    search(seen, "a", "b")

    read(seen, "b")

    assert ended(seen) == (1, 0, 0)
    assert seen.counts()["search_room"].rate == 1.0


def test_a_note_that_was_moved_since_is_known_by_its_id() -> None:
    seen = Followup()
    search(seen, "a")

    seen.answered(ONE, "read_memory", {"id": "mem_a"}, {**note("a"), "path": "02_Sediment/a.md"})

    assert ended(seen) == (1, 0, 0)


def test_a_note_read_as_a_resource_counts_as_read() -> None:
    seen = Followup()
    seen.answered(ONE, "search_room", {"query": "q"}, page("Two words"))

    seen.resource_read(ONE, "palace://memory/01_Shallow/Two%20words.md")

    assert ended(seen) == (1, 0, 0)


def test_other_resources_and_other_notes_make_no_hit() -> None:
    seen = Followup()
    search(seen, "a")

    read(seen, "b")
    seen.resource_read(ONE, "palace://map")

    assert ended(seen) == (0, 0, 1)
    assert seen.counts()["search_room"].rate is None


def test_what_another_caller_reads_makes_no_hit() -> None:
    seen = Followup()
    search(seen, "a")

    read(seen, "a", OTHER)

    assert ended(seen) == (0, 0, 1)


def test_a_search_that_finds_nothing_is_missed_at_once() -> None:
    seen = Followup()

    search(seen)

    assert ended(seen) == (0, 1, 0)


@pytest.mark.parametrize(("late", "expected"), [(0.0, (1, 0, 0)), (0.5, (0, 1, 0))])
def test_a_search_waits_for_ten_minutes(late: float, expected: tuple[int, int, int]) -> None:
    time = Time()
    seen = Followup(clock=time)
    search(seen, "a")

    time.now += MINUTES * 60 + late
    read(seen, "a")

    assert ended(seen) == expected


@pytest.mark.parametrize(("others", "expected"), [(CALLS - 1, (1, 0, 0)), (CALLS, (0, 1, 0))])
def test_a_search_waits_for_twenty_calls(others: int, expected: tuple[int, int, int]) -> None:
    seen = Followup()
    search(seen, "a")

    for _ in range(others):
        seen.answered(ONE, "rate_memory", {}, {})
    read(seen, "a")

    assert ended(seen) == expected


@pytest.mark.parametrize("tool", ["wake_up", "healthcheck", "get_metrics"])
def test_looking_round_is_neither_a_search_nor_a_call(tool: str) -> None:
    seen = Followup()
    search(seen, "a")

    for _ in range(CALLS + 1):
        seen.answered(ONE, tool, {}, page("a"))
    read(seen, "a")

    assert ended(seen) == (1, 0, 0)
    assert set(seen.counts()) == {"search_room"}


def test_a_further_page_belongs_to_its_search() -> None:
    seen = Followup()
    search(seen, "a", limit=1)

    search(seen, "b", limit=1, cursor="1")
    read(seen, "b")

    assert ended(seen) == (1, 0, 0)


def test_a_page_of_a_search_that_is_decided_counts_for_nothing() -> None:
    seen = Followup()
    search(seen, "a")
    read(seen, "a")

    search(seen, "b", cursor="1")
    read(seen, "b")

    assert ended(seen) == (1, 0, 0)


def test_the_same_question_again_while_undecided_is_one_search() -> None:
    seen = Followup()

    search(seen, "a")
    search(seen, "a", limit=50)
    search(seen, "a", room="ideas")

    assert ended(seen) == (0, 0, 2)


def test_one_read_ends_every_search_that_showed_the_note() -> None:
    seen = Followup()
    search(seen, "a", "b")
    seen.answered(ONE, "read_memory", {"query": "other words"}, page("b"))

    read(seen, "b")

    assert (ended(seen), ended(seen, "read_memory")) == ((1, 0, 0), (1, 0, 0))


def test_searches_nobody_follows_take_no_room_for_ever() -> None:
    seen = Followup()

    for number in range(10 * OPEN):
        search(seen, f"n{number}", room=f"r{number}")
    for number in range(10 * CALLERS):
        search(seen, "a", caller=Caller("agent", str(number)))

    assert len(seen._open) <= CALLERS
    assert sum(ended(seen)) == 10 * OPEN + 10 * CALLERS


def test_forty_threads_lose_no_search() -> None:
    seen = Followup()

    def work(number: int) -> None:
        caller = Caller("agent", str(number))
        for step in range(50):
            search(seen, f"n{step}", caller=caller, room=f"{step}")
            read(seen, f"n{step}", caller)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert ended(seen) == (2_000, 0, 0)
