"""Properties become a memory and back: what counts, what is said, and what is written (SPEC §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.memories import (
    NOON,
    POLICY,
    TODAY,
    ago,
    changed,
    later,
    memories,
    memory,
    placed,
    reading,
    written,
)
from vault_palace.core.frontmatter import DELETE, Change, compose, patch, read
from vault_palace.core.memory import (
    DECAYED,
    Reading,
    archived_changes,
    changes,
    new_memory,
    new_memory_properties,
    purged,
    rev,
)
from vault_palace.core.model import DERIVED, PROPERTIES, Layer, Memory, Status
from vault_palace.core.policy import Policy
from vault_palace.core.rules import archive, decide, forecast, move_to, touch

WHOLE = """---
id: mem_0a1b2c3d4e5f
layer: shallow
created: 2026-11-20T12:00:00
last_touched: 2026-11-28T08:30:00
layer_since: 2026-11-22T09:00:00
density: 0.62
rated_on: 2026-11-21
streak: 4
decay_days: 14
decays_on: 2026-12-20
rises_on: 2026-12-01
rises_to: sediment
backlinks: 3
missed: 1
pinned: false
status: decaying
tags:
  - apollo
---

# Apollo uses event sourcing
"""


def note(header: str, body: str = "\nWords.\n") -> str:
    return f"---\n{header}---\n{body}"


def test_a_whole_note_is_read_as_it_stands() -> None:
    seen = reading(WHOLE)

    assert seen.memory == Memory(
        path="01_Shallow/a.md",
        layer=Layer.SHALLOW,
        recorded_layer=Layer.SHALLOW,
        created=datetime(2026, 11, 20, 12),
        last_touched=datetime(2026, 11, 28, 8, 30),
        layer_since=datetime(2026, 11, 22, 9),
        density=0.62,
        streak=4,
        backlinks=3,
        missed=1,
        decay_days=14,
        pinned=False,
        status=Status.DECAYING,
        decays_on=date(2026, 12, 20),
        rises_on=date(2026, 12, 1),
        rises_to=Layer.SEDIMENT,
    )
    assert (seen.id, dict(seen.fills), seen.problems) == ("mem_0a1b2c3d4e5f", {}, ())


def test_a_plain_note_is_a_memory_with_everything_to_fill_in() -> None:
    seen = reading("Just words.\n", file_time=NOON - timedelta(days=40))

    assert (seen.memory.created, seen.memory.last_touched) == (ago(40), ago(0))
    assert (seen.memory.density, seen.memory.streak, seen.memory.decay_days) == (0.2, 0, None)
    assert (seen.memory.recorded_layer, seen.memory.status, seen.id) == (None, None, None)
    assert seen.fills == {
        "layer": "shallow",
        "created": "2026-10-21T12:00:00",
        "last_touched": "2026-11-30T12:00:00",
        "density": 0.2,
        "streak": 0,
        "decay_days": 7,
        "backlinks": 0,
    }
    assert seen.problems == ()


@pytest.mark.parametrize("key", [known.name for known in PROPERTIES if known.name not in ("tags", "aliases")])
@pytest.mark.parametrize("empty", ["", " null", " ~"])
def test_fm_37_an_empty_property_counts_as_an_absent_one(key: str, empty: str) -> None:
    absent = reading(note("title: x\n"))

    seen = reading(note(f"title: x\n{key}:{empty}\n"))

    assert seen == absent
    assert seen.problems == ()


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("layer: [shallow]", ("recorded_layer", None)),
        ("layer: deep", ("recorded_layer", None)),
        ("created: [2026-11-01]", ("created", ago(3))),
        ("density: [0.8]", ("density", None)),
        ("density: high", ("density", None)),
        ("density: '0.8'", ("density", None)),
        ("density: true", ("density", None)),
        ("density: .nan", ("density", None)),
        ("density: .inf", ("density", None)),
        ("density: 1.01", ("density", None)),
        ("density: -0.1", ("density", None)),
        ("streak: [1]", ("streak", None)),
        ("streak: 1.5", ("streak", None)),
        ("streak: many", ("streak", None)),
        ("streak: true", ("streak", None)),
        ("streak: .inf", ("streak", None)),
        ("decay_days: 0", ("decay_days", None)),
        ("decay_days: -3", ("decay_days", None)),
        ("decay_days: 0.00001", ("decay_days", None)),
        ("decay_days: a week", ("decay_days", None)),
        ("decay_days: .inf", ("decay_days", None)),
        ("decay_days: [7]", ("decay_days", None)),
        ("backlinks: -1", ("backlinks", 0)),
        ("backlinks: many", ("backlinks", 0)),
        ("missed: 0.5", ("missed", 0)),
        ("missed: [2]", ("missed", 0)),
        ("status: fresh", ("status", None)),
        ("status: [active]", ("status", None)),
        ("decays_on: soon", ("decays_on", None)),
        ("rises_on: 2026-02-30", ("rises_on", None)),
        ("rises_to: heaven", ("rises_to", None)),
        ("pinned: maybe", ("pinned", True)),
        ("id: [a]", ("pinned", False)),
        ("rated_on: lately", ("pinned", False)),
        ("archived_on: 2027-05-05", ("pinned", False)),
    ],
)
def test_fm_37_an_odd_property_is_reported_with_its_line(line: str, counts: tuple[str, object]) -> None:
    seen = reading(note(f"title: x\n{line}\n"))

    (problem,) = seen.problems
    key = line.partition(":")[0]
    assert (problem.path, problem.line) == ("01_Shallow/a.md", 3)
    assert problem.code in ("bad_value", "future_date")
    assert problem.message.startswith(key)
    assert getattr(seen.memory, counts[0]) == counts[1]


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("density: 0", "density", 0),
        ("density: 1", "density", 1),
        ("density: 0.4999", "density", 0.4999),
        ("streak: -20", "streak", -20),
        ("streak: 3.0", "streak", 3),
        ("decay_days: 0.5", "decay_days", 0.5),
        ("decay_days: 10", "decay_days", 10),
        ("backlinks: 12", "backlinks", 12),
        ("missed: 2.0", "missed", 2),
        ("layer: ' Shallow '", "recorded_layer", Layer.SHALLOW),
        ("layer: sediment", "recorded_layer", Layer.SEDIMENT),
        ("status: Crystallized", "status", Status.CRYSTALLIZED),
        ("decays_on: 2026-12-20T10:00", "decays_on", date(2026, 12, 20)),
        ("created: '2026-11-01T10:00:00+00:00'", "created", datetime(2026, 11, 1, 10)),
        ("last_touched: 2026-11-01 10:00", "last_touched", datetime(2026, 11, 1, 10)),
    ],
)
def test_a_value_in_any_good_form_is_read(line: str, name: str, value: object) -> None:
    seen = reading(note(f"{line}\n"))

    assert getattr(seen.memory, name) == value
    assert seen.problems == ()
    assert line.partition(":")[0] not in seen.fills


@pytest.mark.parametrize(
    "text", ["false", "False", "no", "No", "off", "0", "0.0", "''", "' '", "[]", "{}", "", "null"]
)
def test_what_plainly_says_no_is_not_pinned(text: str) -> None:
    seen = reading(note(f"pinned: {text}\n"))

    assert not seen.memory.pinned
    assert seen.problems == ()


@pytest.mark.parametrize("text", ["true", "True", "yes", "YES", "on", "1", "1.0", "'true'", "' Yes '"])
def test_what_plainly_says_yes_is_pinned(text: str) -> None:
    seen = reading(note(f"pinned: {text}\n"))

    assert seen.memory.pinned
    assert seen.problems == ()


@pytest.mark.parametrize(
    "text", ["maybe", "nope", "2", "-1", ".nan", "[no]", "{a: no}", "'no!'", "2026-11-30"]
)
def test_anything_else_is_pinned_and_reported(text: str) -> None:
    seen = reading(note(f"pinned: {text}\n"))

    assert seen.memory.pinned
    assert [problem.code for problem in seen.problems] == ["bad_value"]


@pytest.mark.parametrize(
    ("line", "found"),
    [("id: mem_1", "mem_1"), ("id: 0123", "0123"), ("id: ' x '", "x"), ("id: ''", None), ("title: x", None)],
)
def test_an_id_is_text_as_it_was_typed(line: str, found: str | None) -> None:
    assert reading(note(f"{line}\n")).id == found


# Dates that do not help


@pytest.mark.parametrize(
    ("header", "created"),
    [
        ("", ago(3)),
        ("last_touched: 2026-11-10\n", datetime(2026, 11, 10)),
        ("layer_since: 2026-11-05\nlast_touched: 2026-11-10\n", datetime(2026, 11, 5)),
        ("rated_on: 2026-11-02\nlayer_since: 2026-11-05\n", datetime(2026, 11, 2)),
        ("archived_on: 2026-11-12\n", datetime(2026, 11, 12)),
        ("decays_on: 2026-10-01\ndue: 2026-09-01\n", ago(3)),  # neither tells of the note's past
        ("last_touched: 2027-11-10\n", ago(3)),
    ],
)
@pytest.mark.parametrize(
    "wrong", ["", "created: yesterday\n", "created: 2026-12-02\n", "created: 2026-02-30\n"]
)
def test_an_unusable_created_is_the_earliest_other_date(header: str, created: datetime, wrong: str) -> None:
    seen = reading(note(f"title: x\n{header}{wrong}"))

    assert seen.memory.created == created
    assert seen.fills["created"] == created.isoformat()
    about = [problem for problem in seen.problems if problem.message.startswith("created")]
    assert len(about) == (1 if wrong else 0)
    for problem in about:
        assert problem.line == 3 + header.count("\n")
        assert created.isoformat() in problem.message


@pytest.mark.parametrize("wrong", ["", "last_touched: lately\n", "last_touched: 2026-12-02\n"])
def test_an_unusable_last_touch_is_the_moment_it_is_first_seen(wrong: str) -> None:
    seen = reading(note(f"created: 2026-01-01\n{wrong}"))

    assert seen.memory.last_touched == ago(0)
    assert seen.fills["last_touched"] == "2026-11-30T12:00:00"
    assert [problem.line for problem in seen.problems] == ([3] if wrong else [])


@pytest.mark.parametrize("wrong", ["layer_since: lately\n", "layer_since: 2026-12-02\n"])
def test_an_unusable_layer_since_counts_as_now(wrong: str) -> None:
    seen = reading(note(f"created: 2026-01-01\nlast_touched: 2026-02-01\n{wrong}"))

    assert seen.memory.layer_since == ago(0)
    assert decide(seen.memory, 0, NOON, POLICY).to is None


def test_an_absent_layer_since_is_not_filled_in() -> None:
    seen = reading(note("created: 2026-01-01\nlast_touched: 2026-02-01\n"))

    assert seen.memory.layer_since is None
    assert "layer_since" not in seen.fills


@pytest.mark.parametrize(
    ("day", "future"), [("2026-11-30", False), ("2026-12-01", False), ("2026-12-02", True)]
)
def test_the_future_begins_after_tomorrow(day: str, future: bool) -> None:
    seen = reading(note(f"created: {day}T23:59\n"))

    assert ("future_date" in {problem.code for problem in seen.problems}) == future


def test_a_file_from_the_future_is_reported() -> None:
    seen = reading("Words.\n", file_time=datetime(2038, 1, 19, tzinfo=UTC))

    assert seen.memory.created == ago(0)
    assert [(problem.code, problem.line) for problem in seen.problems] == [("future_date", 0)]


def test_the_file_time_is_not_asked_when_a_date_is_there() -> None:
    seen = reading(note("created: 2026-11-01\n"), file_time=datetime(2038, 1, 19, tzinfo=UTC))

    assert seen.problems == ()


def test_the_vaults_zone_decides_what_an_offset_means() -> None:
    tokyo = replace(POLICY, zone=timezone(timedelta(hours=9)))

    seen = reading(note("created: 2026-11-01T20:00:00Z\n"), policy=tokyo)

    assert seen.memory.created == datetime(2026, 11, 2, 5)


@pytest.mark.parametrize(
    "text",
    ["---\ntags: [a\n---\nWords.\n", "---\ndensity: 1\ndensity: 2\n---\n", "---\n- a\n---\n"],
)
def test_a_header_that_cannot_be_used_is_reported_and_its_note_never_moves(text: str) -> None:
    seen = reading(text, file_time=NOON - timedelta(days=400))

    assert [problem.code for problem in seen.problems] == ["bad_header"]
    assert seen.problems[0].line > 0
    assert (dict(seen.fills), seen.id) == ({}, None)
    assert seen.memory.last_touched == ago(400)
    assert not decide(seen.memory, 3, NOON, POLICY).changed


def test_a_broken_note_from_the_future_was_touched_now_at_the_latest() -> None:
    seen = reading("---\n[\n---\n", file_time=datetime(2038, 1, 19, tzinfo=UTC))

    assert seen.memory.last_touched == ago(0)


def test_a_long_odd_value_is_cut_in_the_message() -> None:
    (problem,) = reading(note(f"density: {'x' * 500}\n")).problems

    assert len(problem.message) < 200


def test_the_default_density_of_policy_counts() -> None:
    seen = reading("Words.\n", policy=Policy(default_density=0.4, shallow_days=9))

    assert (seen.memory.density, seen.fills["density"], seen.fills["decay_days"]) == (0.4, 0.4, 9)


# Writing


def test_nothing_is_written_when_nothing_differs() -> None:
    seen = reading(WHOLE)

    assert changes(seen.memory, seen.memory, seen.fills) == {}


def test_only_what_differs_is_written() -> None:
    seen = reading(WHOLE)

    found = changes(seen.memory, replace(touch(seen.memory, NOON, POLICY), rises_on=None), seen.fills)

    assert found == {
        "last_touched": "2026-11-30T12:00:00",
        "streak": 5,
        "rises_on": DELETE,
        "missed": 0,
        "status": "active",
    }


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("density", 0.123456, 0.1235),
        ("density", 1e-05, 0),
        ("density", 1.0, 1),
        ("decay_days", 30.0, 30),
        ("decay_days", 2.5, 2.5),
        ("decay_days", None, DELETE),
        ("streak", -6, -6),
        ("pinned", True, True),
        ("layer_since", ago(0), "2026-11-30T12:00:00"),
        ("decays_on", TODAY, "2026-11-30"),
        ("rises_to", Layer.BEDROCK, "bedrock"),
        ("status", Status.CRYSTALLIZED, "crystallized"),
    ],
)
def test_values_are_written_in_their_plain_form(name: str, value: object, shown: object) -> None:
    before = memory(density=0.3, streak=1)

    found = changes(before, changed(before, **{name: value}), {})

    assert found == {name: shown}
    assert type(found[name]) is type(shown)


def test_what_is_to_be_filled_in_gives_way_to_what_was_decided() -> None:
    seen = reading("Words.\n")
    moved = move_to(seen.memory, Layer.SEDIMENT, NOON, POLICY)

    found = changes(seen.memory, moved, seen.fills)

    assert (found["layer"], found["decay_days"], found["density"]) == ("sediment", 60, 0.2)
    assert list(found) == [known.name for known in PROPERTIES if known.name in found]


def test_an_odd_forecast_is_taken_away_or_replaced() -> None:
    text = note("decays_on: soon\nrises_on: later\nrises_to: heaven\n")
    seen = reading(text)

    after = read(written(text, seen, decide(seen.memory, 0, NOON, POLICY).after))

    assert after.values["decays_on"] == "2026-12-08"
    assert {"rises_on", "rises_to"}.isdisjoint(after.values)


@pytest.mark.parametrize("line", ["density: high", "streak: many", "decay_days: a week", "pinned: maybe"])
def test_what_a_person_meant_is_never_overwritten(line: str) -> None:
    text = note(f"{line}\n")
    seen = reading(text)

    after = written(text, seen, touch(seen.memory, NOON, POLICY))

    assert f"\n{line}\n" in after


@pytest.mark.parametrize(
    "text",
    [
        "Words.\n",
        WHOLE,
        note("created: yesterday\nlast_touched: 2027-11-30\nbacklinks: many\nmissed: -2\nstatus: odd\n"),
        note("layer: sediment\ncreated: 2026-01-01\nlast_touched: 2026-11-01\n"),
        note("decays_on: soon\nlayer_since: 2030-01-01\n"),
    ],
)
def test_a_second_run_has_nothing_to_write(text: str) -> None:
    seen = reading(text)
    decision = decide(seen.memory, 0, NOON, POLICY)

    again = reading(written(text, seen, decision.after), path=placed(decision).path)

    assert changes(again.memory, decide(again.memory, 0, NOON, POLICY).after, again.fills) == {}
    assert again.problems == ()


@given(before=memories((Layer.SHALLOW, Layer.SEDIMENT, Layer.BEDROCK)), backlinks=st.integers(0, 8))
def test_what_was_written_is_what_is_read(before: Memory, backlinks: int) -> None:
    text = compose(new_memory_properties(before, id="mem_1"), "Words.\n")
    seen = reading(text, path=before.path)
    after = forecast(touch(seen.memory, NOON, POLICY), backlinks, NOON, POLICY)

    back = reading(written(text, seen, after), path=before.path)

    lifetime = after.decay_days or POLICY.lifetime(before.layer)
    assert back.memory == replace(after, decay_days=lifetime)
    assert back.problems == ()


def test_fm_34_types_in_are_types_in_the_file_and_types_out() -> None:
    text = note("density: 0.5\nstreak: 1\npinned: false\ndecays_on: 2026-12-01\nsource_session: '6'\n")
    seen = reading(text)
    after = replace(seen.memory, density=1.0, streak=6, pinned=True, decays_on=date(2026, 12, 24))

    values = read(written(text, seen, after)).values

    assert (values["density"], values["streak"], values["pinned"]) == (1, 6, True)
    assert values["pinned"] is True
    assert values["decays_on"] == "2026-12-24"
    assert values["source_session"] == "6"


# The archive and back


def gone(seen: Reading, after: Memory, reason: str) -> Mapping[str, Change]:
    """What is written as the note goes to the archive."""
    return archived_changes(
        seen.memory,
        after,
        seen.fills,
        now=NOON,
        policy=POLICY,
        reason=reason,
        archived_from=seen.memory.path,
    )


def test_an_archived_note_says_when_why_and_whence() -> None:
    text = note("layer: shallow\ncreated: 2026-11-01\nlast_touched: 2026-11-20\ndecays_on: 2026-11-28\n")
    seen = reading(text)
    decision = decide(seen.memory, 0, NOON, POLICY)

    found = archived_changes(
        seen.memory,
        decision.after,
        seen.fills,
        now=NOON,
        policy=POLICY,
        reason=DECAYED,
        archived_from=seen.memory.path,
    )

    values = read(patch(text, found)).values
    assert (values["status"], values["layer"], values["streak"]) == ("archived", "shallow", -1)
    assert (values["archived_on"], values["archived_reason"]) == ("2026-11-30", "decayed")
    assert values["archived_from"] == "01_Shallow/a.md"
    assert "decays_on" not in values


def test_coming_back_takes_the_marks_of_the_archive_away() -> None:
    text = note(
        "layer: shallow\nstatus: archived\narchived_on: 2026-10-01\narchived_reason: decayed\n"
        "archived_from: 01_Shallow/a.md\n"
    )
    seen = reading(text, path="_Archive/01_Shallow/a.md")
    back = move_to(seen.memory, Layer.SEDIMENT, NOON, POLICY)

    values = read(written(text, seen, back)).values

    assert (values["status"], values["layer"]) == ("active", "sediment")
    assert {"archived_on", "archived_reason", "archived_from"}.isdisjoint(values)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("a duplicate", "purged: a duplicate"),
        ("two\n lines\t", "purged: two lines"),
        ("", "purged: unspecified"),
        ("a: b # c", "purged: a: b # c"),
    ],
)
def test_the_reason_of_a_purge_is_one_line_that_reads_back(words: str, reason: str) -> None:
    note_after = patch("Words.\n", {"archived_reason": purged(words)})

    assert read(note_after).values["archived_reason"] == reason


# A new note


def test_a_new_note_has_the_properties_of_the_format_in_order() -> None:
    fresh = new_memory("01_Shallow/a.md", Layer.SHALLOW, now=NOON, policy=POLICY)

    header = new_memory_properties(fresh, id="mem_0a1b2c3d4e5f", tags=["apollo"], source_session="cli-42")

    assert list(header.items()) == [
        ("id", "mem_0a1b2c3d4e5f"),
        ("layer", "shallow"),
        ("created", "2026-11-30T12:00:00"),
        ("last_touched", "2026-11-30T12:00:00"),
        ("density", 0.2),
        ("streak", 0),
        ("decay_days", 7),
        ("decays_on", "2026-12-08"),
        ("backlinks", 0),
        ("status", "active"),
        ("tags", ["apollo"]),
        ("source_session", "cli-42"),
    ]


def test_a_rated_new_note_says_when_it_was_rated_and_what_it_replaces() -> None:
    fresh = new_memory("01_Shallow/a.md", Layer.SHALLOW, now=NOON, policy=POLICY, density=0.66666)

    header = new_memory_properties(fresh, id="mem_1", rated=True, supersedes=["[[Old]]"])

    assert (header["density"], header["rated_on"]) == (0.6667, "2026-11-30")
    assert (header["rises_on"], header["rises_to"]) == ("2026-12-07", "sediment")
    assert header["supersedes"] == ["[[Old]]"]
    assert "decays_on" not in header


def test_a_new_note_counts_the_links_that_waited_for_it() -> None:
    fresh = new_memory("03_Bedrock/a.md", Layer.BEDROCK, now=NOON, policy=POLICY, backlinks=7)

    assert (fresh.streak, fresh.backlinks, fresh.status) == (5, 7, Status.CRYSTALLIZED)
    assert fresh == decide(fresh, 7, NOON, POLICY).after


@pytest.mark.parametrize("layer", list(Layer))
def test_a_new_note_needs_no_filling_in(layer: Layer) -> None:
    fresh = new_memory(f"{layer.folder}/a.md", layer, now=NOON, policy=POLICY)
    pinned = replace(fresh, pinned=True, missed=2)

    for made in (fresh, pinned):
        seen = reading(compose(new_memory_properties(made, id="mem_1"), "Words.\n"), path=made.path)

        assert (seen.memory, dict(seen.fills), seen.problems) == (made, {}, ())


# The version of a note


BASE = note("density: 0.6\nowner: Ada\ntags: [a]\n")


def version(text: str, **given: object) -> str:
    return rev(read(text), POLICY, **given)  # type: ignore[arg-type]


def test_a_version_is_twelve_hex_digits() -> None:
    assert len(version(BASE)) == 12
    assert int(version(BASE), 16) >= 0


@pytest.mark.parametrize(
    "line",
    [f"{name}: 2026-11-30" for name in sorted(DERIVED) if name not in ("layer", "pinned")]
    + ["layer: shallow"],
)
def test_what_the_program_derives_is_no_other_version(line: str) -> None:
    assert version(BASE.replace("owner", f"{line}\nowner")) == version(BASE)


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace("0.6", "0.7"),
        BASE.replace("Ada", "Bob"),
        BASE.replace("[a]", "[a, b]"),
        BASE.replace("owner", "decay_days: 8\nowner"),
        BASE.replace("owner", "pinned: true\nowner"),
        BASE.replace("owner", "supersedes: ['[[X]]']\nowner"),
        BASE.replace("owner: Ada\n", ""),
        BASE.replace("owner", "owners"),
        BASE.replace("Words.\n", "Words."),
        BASE.replace("Words.\n", "Words.\r\n"),
        BASE.replace("tags: [a]", "tags: [a"),
    ],
)
def test_what_a_person_or_agent_says_is_another_version(other: str) -> None:
    assert version(other) != version(BASE)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (note("owner: Ada\n"), note("owner: Ada\ndensity: 0.2\ndecay_days:\n")),
        (note("owner: Ada\nlayer: shallow\n"), note("owner: Ada\nlayer: shallow\ndecay_days: 7\n")),
        (note("layer: sediment\ndecay_days: 60\n"), note("layer: shallow\ndecay_days: 7.0\n")),
        (note("owner: 1.0\n"), note("owner: 1\n")),
        (note("owner: Ada\ntags: [a, 1.0]\n"), note("tags:\n  - a\n  - 1\nowner: 'Ada' # who\n")),
        (note("owner: {a: 2.0}\n"), note("owner:\n  a: 2\n")),
        (note("owner: Ada\n"), "\ufeff" + note("owner: Ada\n")),
    ],
)
def test_other_words_for_the_same_are_the_same_version(text: str, same: str) -> None:
    assert version(text) == version(same)


@pytest.mark.parametrize("layer", list(Layer))
def test_reading_a_plain_note_never_makes_another_version(layer: Layer) -> None:
    plain = note("owner: Ada\n")
    seen = reading(plain, path=f"{layer.folder}/a.md")

    after = written(plain, seen, decide(touch(seen.memory, NOON, POLICY), 2, NOON, POLICY).after)

    assert after != plain
    assert version(after, layer=layer) == version(plain, layer=layer)


def test_a_lifetime_without_a_layer_is_measured_by_the_folder() -> None:
    plain = note("decay_days: 60\n")
    filled = note("layer: sediment\ndecay_days: 60\n")

    assert version(plain, layer=Layer.SEDIMENT) == version(filled)
    assert version(plain, layer=Layer.SHALLOW) != version(filled)


def test_a_run_long_after_makes_no_other_version() -> None:
    seen = reading(WHOLE)

    after = written(WHOLE, seen, decide(seen.memory, 1, later(1), POLICY).after)

    assert version(after) == version(WHOLE)


def test_archived_and_back_is_the_same_version() -> None:
    seen = reading(WHOLE)
    away = patch(WHOLE, gone(seen, archive(seen.memory), purged("x")))
    there = reading(away, path="_Archive/01_Shallow/a.md")

    back = written(away, there, move_to(there.memory, Layer.SHALLOW, NOON, POLICY))

    assert version(back) == version(WHOLE)
