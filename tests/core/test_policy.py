"""Policy: every property of SPEC §5, what is said about a bad one, and Sediment Palace's file."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, date, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.memories import NOON, memory
from vault_palace.core.frontmatter import read
from vault_palace.core.model import Layer, Problem, Value
from vault_palace.core.policy import (
    KINDS,
    Policy,
    carry_defaults,
    from_json,
    read_old_policy,
    read_policy,
    to_json,
)

MACHINE = ZoneInfo("Europe/Berlin")
GOOD = Policy(shallow_days=14, auto_metabolize="daily", timezone="Asia/Tokyo", zone=ZoneInfo("Asia/Tokyo"))


def zone_of(name: str) -> tzinfo | None:
    return {"": MACHINE, "UTC": UTC, "Asia/Tokyo": ZoneInfo("Asia/Tokyo")}.get(name)


def policy_note(header: str, last_good: Policy = GOOD) -> tuple[Policy, tuple[Problem, ...]]:
    note = read(f"---\n{header}---\n\nWhat the numbers mean…\n")
    return read_policy(note.values, note.lines, last_good=last_good, zone_of=zone_of)


def test_an_empty_policy_is_the_defaults_in_the_machines_zone() -> None:
    policy, problems = policy_note("")

    assert problems == ()
    assert policy == Policy(zone=MACHINE)


def test_every_default_of_the_format_is_the_default_here() -> None:
    shown = to_json(Policy())

    assert {key: shown[key] for key in (*KINDS, "timezone")} == {
        "shallow_days": 7,
        "sediment_days": 60,
        "bedrock_days": 36500,
        "sediment_density": 0.5,
        "sediment_streak": 5,
        "bedrock_density": 0.8,
        "bedrock_streak": 5,
        "bedrock_age": 30,
        "minimum_stay": 7,
        "default_density": 0.2,
        "horizon_days": 7,
        "max_archive_share": 0.25,
        "auto_metabolize": "off",
        "destructive_require_confirm": True,
        "max_destructive_per_minute": 20,
        "timezone": "",
        "quiet_seconds": 2,
        "settle_minutes": 10,
        "rescan_minutes": 10,
        "versions_keep_days": 90,
        "versions_keep_mb": 500,
        "active_content": "refuse",
        "agent_writes": "direct",
        "read_only": False,
        "style_classes": False,
    }


@pytest.mark.parametrize("key", KINDS)
def test_each_property_is_a_field_whose_default_it_may_hold(key: str) -> None:
    default = getattr(Policy(), key)

    assert key in {field.name for field in fields(Policy)}
    assert KINDS[key].read(default) == default


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("shallow_days: 1", "shallow_days", 1),
        ("shallow_days: 30.0", "shallow_days", 30),
        ("sediment_density: 0", "sediment_density", 0),
        ("sediment_density: 1", "sediment_density", 1),
        ("sediment_streak: 0", "sediment_streak", 0),
        ("quiet_seconds: 0.5", "quiet_seconds", 0.5),
        ("auto_metabolize: daily", "auto_metabolize", "daily"),
        ("auto_metabolize: ' Daily '", "auto_metabolize", "daily"),
        ("auto_metabolize: off", "auto_metabolize", "off"),
        ("auto_metabolize: false", "auto_metabolize", "off"),
        ("active_content: allow", "active_content", "allow"),
        ("agent_writes: proposed", "agent_writes", "proposed"),
        ("read_only: true", "read_only", True),
        ("destructive_require_confirm: false", "destructive_require_confirm", False),
        ("timezone: UTC", "zone", UTC),
        ("timezone: ' UTC '", "timezone", "UTC"),
        ("timezone: ''", "zone", MACHINE),
    ],
)
def test_a_good_value_counts(line: str, field: str, value: object) -> None:
    policy, problems = policy_note(f"{line}\n")

    assert problems == ()
    assert getattr(policy, field) == value


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-7",
        "7.5",
        "1000001",
        "1" + "0" * 400,
        "seven",
        "'7'",
        "",
        "null",
        "true",
        ".nan",
        ".inf",
        "[7]",
        "{a: 7}",
    ],
)
def test_a_bad_number_is_reported_with_its_line_and_the_last_good_one_counts(value: str) -> None:
    policy, problems = policy_note(f"horizon_days: 9\nshallow_days: {value}\n")

    assert (policy.shallow_days, policy.horizon_days) == (14, 9)
    (problem,) = problems
    assert (problem.path, problem.line, problem.code) == ("_System/Policy.md", 3, "bad_value")
    assert "shallow_days must be a whole number from 1 to 1000000" in problem.message
    assert problem.message.endswith("14 counts")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("sediment_density: 1.01", "sediment_density"),
        ("sediment_density: -0.1", "sediment_density"),
        ("bedrock_density: high", "bedrock_density"),
        ("max_archive_share: 25", "max_archive_share"),
        ("auto_metabolize: true", "auto_metabolize"),
        ("auto_metabolize: weekly", "auto_metabolize"),
        ("active_content: false", "active_content"),
        ("read_only: yes", "read_only"),
        ("read_only: 1", "read_only"),
        ("rescan_minutes: 0", "rescan_minutes"),
        ("timezone: Middle/Earth", "timezone"),
        ("timezone: 2", "timezone"),
        ("timezone:", "zone"),
    ],
)
def test_what_a_property_may_not_hold_leaves_the_last_good_value(line: str, field: str) -> None:
    policy, problems = policy_note(f"{line}\n")

    assert [problem.line for problem in problems] == [2]
    assert getattr(policy, field) == getattr(GOOD, field)


def test_without_a_good_one_the_default_counts() -> None:
    policy, _ = policy_note("shallow_days: seven\n", last_good=Policy())

    assert policy.shallow_days == 7


def test_a_deleted_line_is_the_way_back_to_the_default() -> None:
    assert policy_note("")[0].shallow_days == 7


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("shalow_days", "; did you mean shallow_days?"),
        ("Timezone", "; did you mean timezone?"),
        ("colour", ""),
        ("zone", ""),
        ("max_search_matches", ""),
    ],
)
def test_an_unknown_key_is_reported_with_its_line(key: str, hint: str) -> None:
    policy, problems = policy_note(f"shallow_days: 9\n{key}: 3\n")

    assert policy.shallow_days == 9
    (problem,) = problems
    assert (problem.line, problem.code) == (3, "unknown_key")
    assert problem.message.startswith(f"{key} is not a policy property")
    assert hint in problem.message


def test_obsidians_own_properties_are_nobodys_mistake() -> None:
    _, problems = policy_note("tags: [palace]\naliases:\n  - Numbers\ncssclasses: wide\npublish: false\n")

    assert problems == ()


@pytest.mark.parametrize("values", [{}, {"timezone": ""}])
def test_a_machine_without_a_known_zone_keeps_the_last_good_one(values: dict[str, Value]) -> None:
    policy, problems = read_policy(values, {}, last_good=GOOD, zone_of=lambda _: None)

    assert (policy.timezone, policy.zone) == ("", ZoneInfo("Asia/Tokyo"))
    assert problems == ()


def test_a_zone_that_is_none_keeps_the_last_good_one() -> None:
    policy, (problem,) = read_policy(
        {"timezone": "Middle/Earth"}, {"timezone": 2}, last_good=replace(GOOD, timezone=""), zone_of=zone_of
    )

    assert (policy.timezone, policy.zone, problem.line) == ("", ZoneInfo("Asia/Tokyo"), 2)
    assert problem.message.endswith("the machine’s zone counts")


def test_a_long_value_is_cut_in_the_message() -> None:
    _, (problem,) = policy_note(f"shallow_days: {'x' * 200}\n")

    assert len(problem.message) < 150


# The clock


@pytest.mark.parametrize(("zone", "day"), [("Asia/Tokyo", 1), ("UTC", 30)])
def test_today_is_the_date_in_the_vaults_zone(zone: str, day: int) -> None:
    late = datetime(2026, 11, 30, 22, 15, 9, 77, tzinfo=UTC)
    policy = Policy(zone=ZoneInfo(zone))

    assert policy.today(late) == date(2026, 12 if day == 1 else 11, day)
    assert policy.wall(late).tzinfo is None
    assert policy.wall(late).microsecond == 0


# The last good policy


def test_the_policy_survives_being_kept_as_json() -> None:
    policy, _ = policy_note("shallow_days: 3\nquiet_seconds: 0.5\nread_only: true\ntimezone: UTC\n")

    assert from_json(json.loads(json.dumps(to_json(policy))), zone_of=zone_of) == policy


def test_a_kept_old_policy_survives_as_well() -> None:
    policy, _ = read_old_policy({"limits": {"max_search_matches": 5}}, last_good=GOOD)

    assert from_json(to_json(policy), zone_of=zone_of) == policy


@pytest.mark.parametrize(
    "damaged", [{}, {"shallow_days": "x"}, {"timezone": 7}, {"timezone": "Middle/Earth", "read_only": None}]
)
def test_a_damaged_kept_policy_is_the_defaults(damaged: dict[str, Value]) -> None:
    assert replace(from_json(damaged, zone_of=zone_of), zone=UTC) == Policy()


json_values: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(values=st.dictionaries(st.sampled_from([*KINDS, "timezone", "tags", "other"]), json_values))
def test_no_header_makes_an_unlawful_policy(values: dict[str, Value]) -> None:
    policy, problems = read_policy(values, {}, last_good=GOOD, zone_of=zone_of)

    for key, kind in KINDS.items():
        assert kind.read(getattr(policy, key)) == getattr(policy, key)
    assert all(problem.message for problem in problems)


# Sediment Palace's policy.yaml


def test_an_old_policy_sets_its_limits() -> None:
    document: Value = {
        "destructive_require_confirm": False,
        "limits": {"max_search_matches": 50, "max_metabolize_scan": 300, "other": 1},
        "rate_limit": {"window_seconds": 30, "max_destructive_ops": 4},
        "somebody's": "key",
    }

    policy, problems = read_old_policy(document, last_good=GOOD)

    assert problems == ()
    assert policy == Policy(
        destructive_require_confirm=False,
        max_search_matches=50,
        max_metabolize_scan=300,
        destructive_window_seconds=30,
        max_destructive_per_minute=4,
        timezone=GOOD.timezone,
        zone=GOOD.zone,
    )


@pytest.mark.parametrize("document", [None, {}, {"limits": None}, {"rate_limit": [1]}])
def test_an_old_policy_that_says_nothing_is_the_defaults(document: Value) -> None:
    policy, problems = read_old_policy(document, last_good=Policy(max_destructive_per_minute=3))

    assert (policy, problems) == (Policy(), ())


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"limits": {"max_search_matches": "many"}}, "limits.max_search_matches must be"),
        ({"limits": {"max_metabolize_scan": 0}}, "no limit counts"),
        ({"rate_limit": {"max_destructive_ops": None}}, "not empty; 3 counts"),
        ({"destructive_require_confirm": "no"}, "not “no”; true counts"),
        ([1], "must hold properties"),
    ],
)
def test_a_bad_old_policy_is_reported(document: Value, words: str) -> None:
    policy, (problem,) = read_old_policy(document, last_good=Policy(max_destructive_per_minute=3))

    assert (problem.path, problem.code) == ("_System/policy.yaml", "bad_value")
    assert words in problem.message
    assert policy.destructive_require_confirm


# A change of a default


@pytest.mark.parametrize(
    ("layer", "recorded", "decay_days", "carried"),
    [
        (Layer.SHALLOW, Layer.SHALLOW, 7, 10),
        (Layer.SHALLOW, Layer.SHALLOW, 7.0, 10),
        (Layer.SHALLOW, Layer.SHALLOW, 8, 8),
        (Layer.SHALLOW, Layer.SHALLOW, 60, 60),
        (Layer.SHALLOW, Layer.SHALLOW, None, None),
        (Layer.SHALLOW, None, 7, 10),
        (Layer.SEDIMENT, Layer.SHALLOW, 7, 10),  # dragged, and not yet noticed
        (Layer.SEDIMENT, Layer.SEDIMENT, 60, 60),
    ],
)
def test_a_change_of_default_takes_the_equal_lines_along(
    layer: Layer, recorded: Layer | None, decay_days: float | None, carried: float | None
) -> None:
    note = memory(layer, recorded_layer=recorded, decay_days=decay_days)

    after = carry_defaults(note, Policy(), Policy(shallow_days=10))

    assert after == replace(note, decay_days=carried)


def test_the_clock_must_be_aware() -> None:
    with pytest.raises(ValueError, match="aware"):
        Policy().wall(NOON.replace(tzinfo=None))
