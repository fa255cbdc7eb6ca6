"""What a date hangs over: exact rows, from Dataview and Bases alike, with broken notes among them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.queries import Row, base, queries, table, viewing_machine
from vault_palace.core.places import is_conflict_copy
from vault_palace.services.init import template_root

DASHBOARDS = "_System/Dashboards"
TODAY = "2026-12-01"
# Two machines on which it is the same day at very different instants, and clocks that change in between.
MACHINES = [("2026-12-01T00:05:00", "Pacific/Auckland"), ("2026-12-01T23:55:00", "America/Los_Angeles")]

DECAY_COLUMNS = ["Memory", "Layer", "Density", "Streak", "Backlinks", "Decays on", "Days left", "Status"]
RISE_COLUMNS = [
    "Memory",
    "Layer",
    "Rises to",
    "Density",
    "Streak",
    "Backlinks",
    "Rises on",
    "Days left",
    "Status",
]

HERE = "decays_on: 2026-12-02\nrises_on: 2026-12-02\nrises_to: sediment"

# What must be there: path, properties besides those that every note has, and the row.
OVERDUE = (
    ("01_Shallow/Long overdue.md", "decays_on: 2026-09-20", ("2026-09-20", -72)),
    ("01_Shallow/Overdue.md", "decays_on: 2026-11-30", ("2026-11-30", -1)),
)
DECAYING = (
    ("01_Shallow/ideas/Room.md", "decays_on: 2026-12-01", ("2026-12-01", 0)),
    ("01_Shallow/Today.md", "decays_on: 2026-12-01\npinned: false", ("2026-12-01", 0)),
    ("01_Shallow/Conflicted copy of the plan.md", "decays_on: 2026-12-02", ("2026-12-02", 1)),
    ("01_Shallow/Inline.md", "decays_on: 2026-12-02", ("2026-12-02", 1)),
    ("01_Shallow/Not pinned.md", "decays_on: 2026-12-02\npinned: no", ("2026-12-02", 1)),
    ("02_Sediment/Quoted.md", 'decays_on: "2026-12-02"\npinned:', ("2026-12-02", 1)),
    ("02_Sediment/Last.md", "decays_on: 2026-12-08", ("2026-12-08", 7)),
)
RISING = (
    ("01_Shallow/Rose.md", "rises_on: 2026-11-30\nrises_to: sediment", ("sediment", "2026-11-30", -1)),
    ("01_Shallow/Rises.md", "rises_on: 2026-12-01\nrises_to: sediment", ("sediment", "2026-12-01", 0)),
    (
        "02_Sediment/Room/Quoted.md",
        'rises_on: "2026-12-03"\nrises_to: "bedrock"',
        ("bedrock", "2026-12-03", 2),
    ),
    ("02_Sediment/Rises last.md", "rises_on: 2026-12-08\nrises_to: bedrock", ("bedrock", "2026-12-08", 7)),
)
COMMON = "density: 0.4\nstreak: -1\nbacklinks: 2\nstatus: active"

# What must not be there, and must not keep the others away.
ABSENT = {
    "01_Shallow/One day too late.md": "decays_on: 2026-12-09\nrises_on: 2026-12-09\nrises_to: sediment",
    "01_Shallow/Far.md": "decays_on: 2027-12-01",
    "01_Shallow/Neither.md": "density: 0.9",
    "01_Shallow/Pinned.md": f"{HERE}\npinned: true",
    "01_Shallow/Pinned in words.md": f"{HERE}\npinned: yes",
    "01_Shallow/Impossible.md": "decays_on: 2026-02-30\nrises_on: 2026-02-30\nrises_to: sediment",
    "01_Shallow/Impossible, quoted.md": 'decays_on: "2026-02-30"\nrises_on: "2026-02-30"\nrises_to: sediment',
    "01_Shallow/A word.md": "decays_on: tomorrow\nrises_on: tomorrow\nrises_to: sediment",
    "01_Shallow/A number.md": "decays_on: 5\nrises_on: 5\nrises_to: sediment",
    "01_Shallow/A digit date.md": "decays_on: 20261202\nrises_on: 20261202\nrises_to: sediment",
    "01_Shallow/A list.md": "decays_on: [2026-12-02]\nrises_on: [2026-12-02]\nrises_to: sediment",
    "01_Shallow/A map.md": "decays_on:\n  day: 2026-12-02\nrises_on:\n  day: 1\nrises_to: sediment",
    "01_Shallow/A tick.md": "decays_on: true\nrises_on: true\nrises_to: sediment",
    "01_Shallow/Nothing.md": "decays_on:\nrises_on:\nrises_to: sediment",
    "01_Shallow/To nowhere.md": "rises_on: 2026-12-02",
    "01_Shallow/To the same.md": "rises_on: 2026-12-02\nrises_to: shallow",
    "02_Sediment/Dragged deeper.md": "rises_on: 2026-12-02\nrises_to: sediment",
    "03_Bedrock/Dragged.md": "decays_on: 2026-12-02\nrises_on: 2026-12-02\nrises_to: bedrock",
    "_Archive/01_Shallow/Gone.md": HERE,
    "_System/Templates/Mine.md": HERE,
    "_System/Journal.md": HERE,
    "Ideas/Outside.md": HERE,
    "01_Shallow/node_modules/a/README.md": HERE,
}
CONFLICT_COPIES = [
    "Plan (Conflicted copy).md",
    "Plan (Conflicted copy Pixel 202611301200).md",
    "Plan (anna's conflicted copy 2026-11-30).md",
    "Plan (anna’s conflicted copy 2026-11-30) (1).md",
    "Plan (conflicted copy 2026-11-30 120000).md",
    "Plan (Case Conflict).md",
    "Plan (Unicode Encoding Conflict 1).md",
    "Plan.sync-conflict-20261130-120000-ABCDEFG.md",
    "Plan.Conflict.md",
    "Plan_nas_Nov-30-1200-2026_Conflict.md",
    "conflict-files-obsidian-git.md",
]
RAW = {
    "01_Shallow/Does not parse.md": "---\ndecays_on: 2026-12-02\ndensity: [1, 2\n---\nbody\n",
    "01_Shallow/Twice.md": "---\ndecays_on: 2027-12-02\ndecays_on: 2027-12-03\n---\nbody\n",
    "01_Shallow/No header.md": "A plain note.\n",
    "01_Shallow/Empty.md": "",
    "01_Shallow/picture.png": "not a picture",
}
INLINE = (
    "decays_on:: 2020-01-01\n[rises_on:: 2026-12-02] (rises_to:: sediment)\n"
    "[density:: 0.9]\n- [status:: done]\n"
    "`[days_left:: 900]`\n```\nstreak:: 7\nday:: x\ndue:: x\nhorizon:: 0\n```\n"
)


def write(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


@pytest.fixture
def palace(tmp_path: Path) -> Path:
    """The template with memories as the product writes them, and what people and sync tools add."""
    root = tmp_path / "vault"
    shutil.copytree(template_root(), root)
    for path, properties, _ in (*OVERDUE, *DECAYING, *RISING):
        body = INLINE if path.endswith("Inline.md") else "See [[Today]].\n"
        write(root, path, f"---\n{properties}\n{COMMON}\n---\n\n{body}")
    for path, properties in ABSENT.items():
        write(root, path, f"---\n{properties}\n---\nSee [[Today]].\n")
    for name in CONFLICT_COPIES:
        write(root, f"01_Shallow/{name}", f"---\n{HERE}\n---\nbody\n")
    for path, text in RAW.items():
        write(root, path, text)
    return root


def dataview(root: Path, name: str, now: str, zone: str) -> tuple[list[str], list[Row]]:
    note = f"{DASHBOARDS}/{name}.md"
    with viewing_machine(now, zone):
        (query,) = queries(root / note)
        return table(root, query, note)


def bases(root: Path, name: str, now: str, zone: str) -> tuple[list[str], list[Row]]:
    with viewing_machine(now, zone):
        return base(root, f"{DASHBOARDS}/{name}.base", "", now)


Shown = Callable[[Path, str, str, str], tuple[list[str], list[Row]]]
BOTH = pytest.mark.parametrize("shown", [dataview, bases], ids=["dataview", "bases"])
EVERYWHERE = pytest.mark.parametrize(("now", "zone"), MACHINES, ids=[zone for _, zone in MACHINES])


def layer(path: str) -> str:
    return path.partition("/")[0].partition("_")[2]


@BOTH
@EVERYWHERE
def test_what_is_about_to_decay_is_shown(palace: Path, shown: Shown, now: str, zone: str) -> None:
    columns, rows = shown(palace, "About to decay", now, zone)

    assert columns == DECAY_COLUMNS
    assert rows == [(path, layer(path), 0.4, -1, 2, day, left, "active") for path, _, (day, left) in DECAYING]


@BOTH
@EVERYWHERE
def test_what_is_overdue_is_shown(palace: Path, shown: Shown, now: str, zone: str) -> None:
    columns, rows = shown(palace, "Overdue memories", now, zone)

    assert columns == DECAY_COLUMNS
    assert rows == [(path, layer(path), 0.4, -1, 2, day, left, "active") for path, _, (day, left) in OVERDUE]


@BOTH
@EVERYWHERE
def test_what_is_about_to_rise_is_shown(palace: Path, shown: Shown, now: str, zone: str) -> None:
    columns, rows = shown(palace, "About to rise", now, zone)

    assert columns == RISE_COLUMNS
    assert rows == [
        (path, layer(path), to, 0.4, -1, 2, day, left, "active") for path, _, (to, day, left) in RISING
    ]


@BOTH
@pytest.mark.parametrize("name", ["About to decay", "Overdue memories", "About to rise"])
def test_a_new_vault_shows_an_empty_table(tmp_path: Path, shown: Shown, name: str) -> None:
    shutil.copytree(template_root(), tmp_path / "vault")

    _, rows = shown(tmp_path / "vault", name, f"{TODAY}T12:00:00", "UTC")

    assert rows == []


@BOTH
@pytest.mark.parametrize("name", ["About to decay", "Overdue memories", "About to rise"])
def test_a_vault_of_broken_notes_alone_shows_an_empty_table(tmp_path: Path, shown: Shown, name: str) -> None:
    # Dataview shows an error in place of the table when a step of the query fails for every row.
    root = tmp_path / "vault"
    shutil.copytree(template_root(), root)
    for path, properties in ABSENT.items():
        write(root, path, f"---\n{properties}\n---\nbody\n")

    _, rows = shown(root, name, f"{TODAY}T12:00:00", "UTC")

    assert rows == []


@BOTH
def test_odd_values_are_shown_as_they_are(palace: Path, shown: Shown) -> None:
    write(
        palace,
        "01_Shallow/AAA odd.md",
        "---\ndecays_on: 2026-09-01\ndensity: high\nstreak: many\n---\n",
    )

    _, rows = shown(palace, "Overdue memories", f"{TODAY}T12:00:00", "UTC")

    assert rows[0] == ("01_Shallow/AAA odd.md", "Shallow", "high", "many", None, "2026-09-01", -91, None)


@BOTH
@pytest.mark.parametrize(
    ("now", "zone", "left"),
    [
        # The night before clocks go back, the one before they go forward, and a midnight that does not exist.
        ("2026-10-24T23:30:00", "Europe/Berlin", 2),
        ("2026-03-28T23:30:00", "Europe/Berlin", 2),
        ("2027-04-28T23:30:00", "Africa/Cairo", 2),
    ],
)
def test_days_left_are_calendar_days_where_clocks_change(
    tmp_path: Path,
    shown: Shown,
    now: str,
    zone: str,
    left: int,
) -> None:
    root = tmp_path / "vault"
    shutil.copytree(template_root(), root)
    day = f"{now[:8]}{int(now[8:10]) + 2:02}"
    write(root, "01_Shallow/Note.md", f"---\ndecays_on: {day}\n---\nbody\n")

    _, rows = shown(root, "About to decay", now, zone)

    assert [(row[5], row[6]) for row in rows] == [(day, left)]


@BOTH
@pytest.mark.parametrize(
    ("horizon", "names"),
    [
        ("0", {"Today.md", "Room.md"}),
        ("8", {"Today.md", "Room.md", "Last.md", "One day too late.md"}),
        ("soon", {"Today.md", "Room.md", "Last.md"}),
        ("", {"Today.md", "Room.md", "Last.md"}),
    ],
)
def test_both_look_as_far_ahead_as_the_policy_says(
    palace: Path, shown: Shown, horizon: str, names: set[str]
) -> None:
    policy = palace / "_System/Policy.md"
    text = policy.read_text(encoding="utf-8").replace("horizon_days: 7\n", f"horizon_days: {horizon}\n", 1)
    policy.write_text(text, encoding="utf-8")

    _, rows = shown(palace, "About to decay", f"{TODAY}T12:00:00", "UTC")

    looked_for = {"Today.md", "Room.md", "Last.md", "One day too late.md"}
    assert {Path(str(row[0])).name for row in rows} & looked_for == names


@BOTH
@pytest.mark.parametrize("text", [None, "---\nshallow_days: 3\n---\n", "---\nhorizon_days: [\n---\n"])
def test_both_look_seven_days_ahead_where_the_policy_does_not_say(
    palace: Path, shown: Shown, text: str | None
) -> None:
    policy = palace / "_System/Policy.md"
    if text is None:
        policy.unlink()
    else:
        policy.write_text(text, encoding="utf-8")

    _, rows = shown(palace, "About to decay", f"{TODAY}T12:00:00", "UTC")

    assert [row[0] for row in rows] == [path for path, _, _ in DECAYING]


@BOTH
def test_a_policy_note_elsewhere_does_not_set_the_horizon(palace: Path, shown: Shown) -> None:
    write(palace, "Policy.md", "---\nhorizon_days: 900\n---\nbody\n")

    _, rows = shown(palace, "About to decay", f"{TODAY}T12:00:00", "UTC")

    assert [row[0] for row in rows] == [path for path, _, _ in DECAYING]


@pytest.mark.parametrize("name", CONFLICT_COPIES)
def test_the_conflict_copies_here_are_those_of_the_product(name: str) -> None:
    assert is_conflict_copy(name)
