"""What decays and rises in a vault that the product made, day by day, while a person was careless in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.queries import Row
from tests.template.careless import BROKEN, Days
from tests.template.test_dashboards import BOTH, DECAY_COLUMNS, RISE_COLUMNS, Shown
from vault_palace.services.init import init, template_root

# It is noon in the vault's zone when something happens, and any hour when a dashboard is looked at.
ZONES = ["Pacific/Auckland", "America/Los_Angeles"]


@pytest.fixture(scope="module", params=ZONES)
def stages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One vault, kept as it stood at four moments."""
    folder = tmp_path_factory.mktemp("dashboards")
    days = Days(folder / "vault", request.param)
    kept: dict[str, Path] = {}

    def keep(name: str) -> None:
        kept[name] = folder / name
        shutil.copytree(days.root, kept[name])

    init(days.root, template=template_root(), zone_name=days.zone)
    with days.on(1) as palace:
        palace.write("Dry. See [[Hub]].\n\n- [decays_on:: 2030-01-01]\n", path="ideas/Sand")
        palace.write("Shines. See [[Hub]].", title="Gold", density=0.6)
        palace.write("The middle of it all.", title="Hub")
        palace.write("Read now and then.", title="Read")
        palace.write("Kept whatever comes.", title="Pin")
        palace.rate(path="01_Shallow/Pin.md", pinned=True)
        palace.write("Valued from the start.", title="Deep", layer="sediment", density=0.9)
        palace.write("A person will drag it.", title="Dragged")
        palace.write("A mistake.", title="Wrong")
    with days.on(2) as palace:
        palace.metabolize(confirm=True)
    with days.on(3) as palace:
        palace.read(path="01_Shallow/Read.md")
        palace.purge("01_Shallow/Wrong.md", reason="a mistake", confirm=True)
    with days.on(4) as palace:
        palace.write("Is it worth it?", title="Doubt")
    with days.on(5) as palace:
        palace.rate(path="01_Shallow/Doubt.md", density=0.55)
        for path, text in BROKEN.items():
            days.scribble(path, text)
        copy = (days.root / "01_Shallow/ideas/Sand.md").read_text(encoding="utf-8")
        days.scribble("01_Shallow/ideas/Sand (conflicted copy 2031-03-05 101010).md", copy)
        days.scribble("_System/Templates/Mine.md", copy)
        (days.root / "01_Shallow/Dragged.md").rename(days.root / "02_Sediment/Dragged.md")
    keep("untidy")
    with days.on(6) as palace:
        palace.metabolize(confirm=True)
    keep("before")
    with days.on(9) as palace:
        palace.metabolize(confirm=True)
    keep("after")
    with days.on(25) as palace:
        palace.read(path="02_Sediment/Gold.md")
        palace.metabolize(confirm=True)
    keep("later")
    return kept


def row(
    path: str,
    density: float,
    streak: int,
    backlinks: int,
    day: str,
    left: int,
    to: str = "",
    status: str = "active",
) -> Row:
    layer = path.partition("/")[0].partition("_")[2]
    rises = (to,) if to else ()
    return (path, layer, *rises, density, streak, backlinks, day, left, status)


# On which day each stage is looked at, and what is to be seen then.
DECAYING: dict[str, tuple[int, list[Row]]] = {
    "untidy": (
        6,
        [
            row("01_Shallow/ideas/Sand.md", 0.2, 0, 0, "2031-03-09", 3),
            # Where it was dragged from, until the next run brings its properties along.
            row("02_Sediment/Dragged.md", 0.2, 0, 0, "2031-03-09", 3),
        ],
    ),
    "before": (
        8,
        [
            row("01_Shallow/ideas/Sand.md", 0.2, 0, 0, "2031-03-09", 1),
            # Notes of a person: what they lacked or had wrong was filled in by the run of the sixth.
            row("01_Shallow/A word.md", 0.2, 0, 0, "2031-03-14", 6),
            row("01_Shallow/Empty.md", 0.2, 0, 0, "2031-03-14", 6),
            row("01_Shallow/Plain.md", 0.2, 0, 0, "2031-03-14", 6),
        ],
    ),
    "after": (
        17,
        [
            row("01_Shallow/Read.md", 0.2, 1, 0, "2031-03-18", 1),
            # Gold and Plain link to it; Sand did, and is in the archive. One lifetime is missed.
            row("01_Shallow/Hub.md", 0.2, 1, 2, "2031-03-23", 6, status="decaying"),
        ],
    ),
    "later": (25, []),
}
OVERDUE: dict[str, tuple[int, list[Row]]] = {
    "untidy": (6, []),
    "before": (8, []),
    "after": (
        17,
        [
            row("01_Shallow/A word.md", 0.2, 0, 0, "2031-03-14", -3),
            row("01_Shallow/Empty.md", 0.2, 0, 0, "2031-03-14", -3),
            row("01_Shallow/Plain.md", 0.2, 0, 0, "2031-03-14", -3),
        ],
    ),
    "later": (25, []),
}
RISING: dict[str, tuple[int, list[Row]]] = {
    "untidy": (
        6,
        [
            row("01_Shallow/Gold.md", 0.6, 0, 0, "2031-03-08", 2, "sediment"),
            row("01_Shallow/Doubt.md", 0.55, 0, 0, "2031-03-11", 5, "sediment"),
        ],
    ),
    "before": (
        8,
        [
            row("01_Shallow/Gold.md", 0.6, 0, 0, "2031-03-08", 0, "sediment"),
            row("01_Shallow/Doubt.md", 0.55, 0, 0, "2031-03-11", 3, "sediment"),
        ],
    ),
    "after": (17, [row("01_Shallow/Doubt.md", 0.55, 0, 0, "2031-03-11", -6, "sediment")]),
    "later": (25, [row("02_Sediment/Deep.md", 0.9, 0, 0, "2031-04-01", 7, "bedrock")]),
}


def looked_at(day: int) -> list[tuple[str, str]]:
    """The first and the last minutes of that day, on two machines far apart."""
    return [(f"2031-03-{day:02}T00:05:00", ZONES[0]), (f"2031-03-{day:02}T23:55:00", ZONES[1])]


@BOTH
@pytest.mark.parametrize("stage", DECAYING)
def test_what_is_about_to_decay_is_shown(stages: dict[str, Path], shown: Shown, stage: str) -> None:
    day, rows = DECAYING[stage]

    for now, zone in looked_at(day):
        columns, found = shown(stages[stage], "About to decay", now, zone)

        assert columns == DECAY_COLUMNS
        assert found == rows


@BOTH
@pytest.mark.parametrize("stage", OVERDUE)
def test_what_is_overdue_is_shown(stages: dict[str, Path], shown: Shown, stage: str) -> None:
    day, rows = OVERDUE[stage]

    for now, zone in looked_at(day):
        columns, found = shown(stages[stage], "Overdue memories", now, zone)

        assert columns == DECAY_COLUMNS
        assert found == rows


@BOTH
@pytest.mark.parametrize("stage", RISING)
def test_what_is_about_to_rise_is_shown(stages: dict[str, Path], shown: Shown, stage: str) -> None:
    day, rows = RISING[stage]

    for now, zone in looked_at(day):
        columns, found = shown(stages[stage], "About to rise", now, zone)

        assert columns == RISE_COLUMNS
        assert found == rows
