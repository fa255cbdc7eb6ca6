"""Calls are counted by tool, with their errors by code and honest percentiles."""

from __future__ import annotations

import threading

import pytest

from vault_palace.services.caller import Caller
from vault_palace.surfaces.mcp.metrics import CODES, KEPT, OTHER, Metrics


def test_a_tool_that_was_not_called_is_not_shown() -> None:
    assert Metrics(("read_map", "healthcheck")).snapshot() == {}


def test_successes_and_errors_are_counted_apart() -> None:
    metrics = Metrics(("read_map", "healthcheck"))

    metrics.record("read_map", 0.001)
    metrics.record("read_map", 0.003, "not_found")
    metrics.record("read_map", 0.002, "busy")
    metrics.record("read_map", 0.004, "busy")

    assert metrics.snapshot() == {
        "read_map": {
            "success": 1,
            "error": 3,
            "count": 4,
            "p50_ms": 2.0,
            "p95_ms": 4.0,
            "errors_by_code": {"busy": 2, "not_found": 1},
        }
    }


@pytest.mark.parametrize(
    ("calls", "p50", "p95"), [(1, 1.0, 1.0), (2, 1.0, 2.0), (20, 10.0, 19.0), (100, 50.0, 95.0)]
)
def test_percentiles_are_durations_that_were_seen(calls: int, p50: float, p95: float) -> None:
    metrics = Metrics(("read_map",))

    for milliseconds in range(calls, 0, -1):
        metrics.record("read_map", milliseconds / 1000)

    seen = metrics.snapshot()["read_map"]
    assert (seen["p50_ms"], seen["p95_ms"]) == (p50, p95)


def test_percentiles_forget_old_calls_and_counts_do_not() -> None:
    metrics = Metrics(("read_map",))
    for _ in range(KEPT):
        metrics.record("read_map", 9.0)

    for _ in range(KEPT):
        metrics.record("read_map", 0.001)

    seen = metrics.snapshot()["read_map"]
    assert (seen["count"], seen["p95_ms"]) == (2 * KEPT, 1.0)


def test_threads_lose_no_call() -> None:
    metrics = Metrics(("read_map",))

    def work() -> None:
        for _ in range(500):
            metrics.record("read_map", 0.001, "busy")

    threads = [threading.Thread(target=work) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert metrics.snapshot()["read_map"]["errors_by_code"] == {"busy": 4000}


def test_forty_threads_lose_no_call_while_others_look() -> None:
    metrics = Metrics(("read_map",))

    def work() -> None:
        for number in range(100):
            metrics.record("read_map", 0.001)
            metrics.record("resources/read", 0.001, "busy" if number % 2 else "")
            metrics.snapshot()

    threads = [threading.Thread(target=work) for _ in range(40)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    seen = metrics.snapshot()
    assert (seen["read_map"]["success"], seen["resources/read"]["error"]) == (4_000, 2_000)


def test_no_caller_makes_new_rows_or_codes_without_end() -> None:
    metrics = Metrics(("read_map",))

    for number in range(10_000):
        metrics.record(f"made up {number}", 0.001)
        metrics.record("read_map", 0.001, f"code {number}")

    seen = metrics.snapshot()
    assert set(seen) == {"read_map", OTHER}
    assert len(seen["read_map"]["errors_by_code"]) == CODES + 1
    assert seen["read_map"]["error"] == 10_000


def test_a_clock_that_was_set_back_makes_no_negative_duration() -> None:
    metrics = Metrics(("read_map",))

    metrics.record("read_map", -5.0)

    assert metrics.snapshot()["read_map"]["p95_ms"] == 0.0


def test_the_row_of_a_search_says_how_many_were_followed() -> None:
    metrics, caller = Metrics(("search_room", "read_memory")), Caller("agent")
    metrics.record("search_room", 0.001)
    metrics.followup.answered(caller, "search_room", {"query": "q"}, {"matches": [{"path": "a.md"}]})
    metrics.followup.answered(caller, "search_room", {"query": "z"}, {"matches": []})

    metrics.followup.answered(caller, "read_memory", {"path": "a.md"}, {"path": "a.md"})

    row = metrics.snapshot()["search_room"]
    assert (row["followed"], row["missed"], row["waiting"], row["hit_rate"]) == (1, 1, 0, 0.5)
