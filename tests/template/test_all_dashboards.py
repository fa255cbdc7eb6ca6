"""Every dashboard over a vault that the product made while a person was careless in it: exact rows of both.

It is noon in the vault's zone when something happens; the dashboards are looked at in the first and the last
minutes of a day, on two machines far apart.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.queries import Row, base, base_text, groups, queries, table, viewing_machine
from tests.services.conftest import Clock
from tests.template.test_dashboards_end_to_end import BROKEN, Days
from vault_palace.core import dashboards
from vault_palace.core.model import PROPERTIES
from vault_palace.services.init import init, template_root
from vault_palace.services.keeper import Keeper

FOLDER = dashboards.FOLDER
GROUPED = ("Layers and rooms", "Memories by session")
ALIKE = tuple(name for name in dashboards.names() if name not in GROUPED)
DAY = 17
LOOKED_AT = [
    (f"2031-03-{DAY}T00:05:00", "Pacific/Auckland"),
    (f"2031-03-{DAY}T23:55:00", "America/Los_Angeles"),
]


# What a person typed since the keeper looked: a row of each kind in each layer.
BY_HAND = {
    "01_Shallow/Held long.md": "decays_on: 2031-03-10\npinned: true\nrated_on: 2031-03-01",
    "01_Shallow/Edited.md": "edited_on: 2031-03-16\nrated_on: 2031-03-01",
    "01_Shallow/Edited long ago.md": "edited_on: 2031-03-09\nrated_on: 2031-03-01",
    "01_Shallow/Edited a week ago.md": "edited_on: 2031-03-10\nrated_on: 2031-03-01",
    "02_Sediment/Old.md": "decays_on: 2031-03-16",
    "02_Sediment/Soon.md": "decays_on: 2031-03-22\nrated_on: 2031-03-01",
    "02_Sediment/Up.md": "rises_on: 2031-03-22\nrises_to: bedrock\nrated_on: 2031-03-01",
    "02_Sediment/Odd.md": 'created: 03/01/2031\nrated_on: 2031-03-01\nsource: "[[No such note]]"',
    "03_Bedrock/Odd too.md": 'density: high\nedited_on: 2031-03-15\nsource_session: cat\nsee: "[[No note]]"',
}

# Pinned a moment ago, so that what hung over it still stands there.
HELD = (
    "---\nid: held\ncreated: 2031-03-09\nlast_touched: 2031-03-09\ndecays_on: 2031-03-18\n"
    "rises_on: 2031-03-18\nrises_to: sediment\npinned: true\nrated_on: 2031-03-10\n---\n[[Hub]]\n"
)


def settle(keeper: Keeper, clock: Clock) -> None:
    """Have the keeper look after what a person did until it is at rest."""
    for _ in range(10):
        keeper.step()
        clock.at += timedelta(seconds=3)


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault as it stands on the evening of the seventeenth."""
    folder = tmp_path_factory.mktemp("all")
    days = Days(folder / "vault", "UTC")
    init(days.root, template=template_root(), zone_name=days.zone)
    policy = days.root / "_System/Policy.md"
    policy.write_text(policy.read_text("utf-8").replace("horizon_days: 7", "horizon_days: 5"), "utf-8")
    with days.on(1) as palace:
        palace.write(
            "Dry. See [[Hub]] and [[Nowhere]], [[v1.2]] too.", path="ideas/Sand", source_session="ann-1"
        )
        palace.write("Shines. See [[Hub]]. ![[gold.png]]", title="Gold", density=0.6, source_session="ann-1")
        palace.write("The middle of it all.", title="Hub", source_session="bob-7")
        palace.write("Alone. [[#top]]", title="Alone", density=0.1)
        palace.write("Kept whatever comes.", title="Pin", density=0.9)
        palace.rate(path="01_Shallow/Pin.md", pinned=True)
        palace.write("Valued.", path="deep/er/Deep", layer="sediment", density=0.9, source_session="bob-7")
        palace.write("A mistake. [[Nowhere]]", title="Wrong")
        palace.write("Bedrock itself.", title="Rock", layer="bedrock", density=1)
    with days.on(3) as palace:
        palace.read(path="01_Shallow/Hub.md")
        palace.purge("01_Shallow/Wrong.md", reason="7 days", confirm=True)
    with days.on(7) as palace:
        palace.write("Late. See [[Hub]].", title="Late")
    with days.on(9) as palace:
        palace.write("To fade. See [[Rock]] and the [[Missing|one]] ![[Gone note]].", title="Fade")
        palace.metabolize(confirm=True)
    with days.on(11) as palace:
        palace.write("It will rise. [[Hub]]", title="Riser", density=0.55)
        keeper = Keeper(palace.house)
        settle(keeper, days.clock)
        text = (days.root / "02_Sediment/Gold.md").read_text("utf-8")
        days.scribble("02_Sediment/Gold.md", text.replace("Shines.", "Shines, I think."))
        settle(keeper, days.clock)
    with days.on(15) as palace:
        palace.write("It goes when nobody looks that far. [[Hub]]", title="Far")
    with days.on(16) as palace:
        palace.write("It too, after the horizon. [[Hub]]", title="Later", density=0.55)
    for path, said in BROKEN.items():
        days.scribble(path, said)
    days.scribble("01_Shallow/Low.md", '---\nid: low\ndensity: "0.4"\nstreak: 1.5\nrises_on: soon\n---\nx\n')
    for path, said in BY_HAND.items():
        days.scribble(path, f"---\nid: {path[3:-3]}\n{said}\n---\nSee [[Hub]].\n")
    days.scribble("03_Bedrock/Lone.md", "---\nid: lone\nrated_on: 2031-03-01\n---\n[[Lone]]\n")
    days.scribble("01_Shallow/Held.md", HELD)
    days.scribble("01_Shallow/Known to nobody.md", HELD.replace("id: held\n", "").replace("true", "no"))
    days.scribble("01_Shallow/Moved.md", "---\nid: moved\nlayer: bedrock\ndensity: 7\n---\n[[Gold]]\n")
    copy = (days.root / "01_Shallow/Hub.md").read_text("utf-8")
    days.scribble("01_Shallow/Hub (conflicted copy 2031-03-05 101010).md", copy)
    days.scribble("_System/Templates/Mine.md", copy)
    days.scribble("Outside.md", copy)
    days.scribble("01_Shallow/node_modules/x/README.md", copy)
    days.scribble("attachments/gold.png", "x")
    days.scribble("01_Shallow/ideas/picture.png", "x")
    return days.root


def twin(root: Path, name: str, now: str, zone: str) -> tuple[list[str], list[Row]]:
    with viewing_machine(now, zone):
        return base(root, f"{FOLDER}/{name}.base", "", now)


def asked(root: Path, name: str, now: str, zone: str) -> tuple[list[str], list[Row]]:
    note = f"{FOLDER}/{name}.md"
    with viewing_machine(now, zone):
        (query,) = queries(root / note)
        return table(root, query, note)


# What each shows on that day. Grouped rows are those of Dataview; the Base lists what stands in them.
UNKNOWN = "no id: not looked after yet, or its properties do not parse"
EXPECTED: dict[str, list[Row]] = {
    "About to decay": [
        ("01_Shallow/Fade.md", "Shallow", 0.2, 0, 0, "2031-03-17", 0, "active"),
        ("01_Shallow/Known to nobody.md", "Shallow", None, None, None, "2031-03-18", 1, None),
        ("02_Sediment/Soon.md", "Sediment", None, None, None, "2031-03-22", 5, None),
    ],
    "Overdue memories": [
        ("01_Shallow/Late.md", "Shallow", 0.2, 0, 0, "2031-03-15", -2, "active"),
        ("02_Sediment/Old.md", "Sediment", None, None, None, "2031-03-16", -1, None),
    ],
    "About to rise": [
        ("01_Shallow/Known to nobody.md", "Shallow", "sediment", None, None, None, "2031-03-18", 1, None),
        ("01_Shallow/Riser.md", "Shallow", "sediment", 0.55, 0, 0, "2031-03-18", 1, "active"),
        ("02_Sediment/Up.md", "Sediment", "bedrock", None, None, None, "2031-03-22", 5, None),
    ],
    "Layers and rooms": [
        ("Shallow", "", 24, 1.23, 0.61),
        ("Sediment", "", 5, 0.6, 1),
        ("Sediment", "deep/er", 1, 0.9, 0),
        ("Bedrock", "", 3, 1, 1),
    ],
    "Strongest memories": [
        ("03_Bedrock/Rock.md", "Bedrock", "▰▰▰▰▰", 1, 1, 1, "crystallized"),
        ("01_Shallow/Pin.md", "Shallow", "▰▰▰▰▰", 0.9, 0, 0, "active"),
        ("02_Sediment/deep/er/Deep.md", "Sediment", "▰▰▰▰▰", 0.9, 0, 0, "active"),
        ("02_Sediment/Gold.md", "Sediment", "▰▰▰▱▱", 0.6, 1, 0, "active"),
        ("01_Shallow/Later.md", "Shallow", "▰▰▰▱▱", 0.55, 0, 0, "active"),
        ("01_Shallow/Riser.md", "Shallow", "▰▰▰▱▱", 0.55, 0, 0, "active"),
        ("01_Shallow/Hub.md", "Shallow", "▰▱▱▱▱", 0.2, 3, 3, "decaying"),
        ("01_Shallow/Fade.md", "Shallow", "▰▱▱▱▱", 0.2, 0, 0, "active"),
        ("01_Shallow/Far.md", "Shallow", "▰▱▱▱▱", 0.2, 0, 0, "active"),
        ("01_Shallow/Late.md", "Shallow", "▰▱▱▱▱", 0.2, 0, 0, "active"),
    ],
    "Never rated": [
        ("01_Shallow/Fade.md", "Shallow", 0, 0, "2031-03-09", "active"),
        ("01_Shallow/Far.md", "Shallow", 0, 0, "2031-03-15", "active"),
        ("01_Shallow/Hub.md", "Shallow", 3, 3, "2031-03-01", "decaying"),
        ("01_Shallow/Late.md", "Shallow", 0, 0, "2031-03-07", "active"),
        ("01_Shallow/Low.md", "Shallow", 1.5, None, "", None),
        ("01_Shallow/Moved.md", "Shallow", None, None, "", None),
        ("02_Sediment/Old.md", "Sediment", None, None, "", None),
        ("03_Bedrock/Odd too.md", "Bedrock", None, None, "", None),
    ],
    "Never read": [
        ("01_Shallow/Pin.md", "Shallow", 0.9, 0, "2031-03-01", "active"),
        ("02_Sediment/deep/er/Deep.md", "Sediment", 0.9, 0, "2031-03-01", "active"),
        ("03_Bedrock/Rock.md", "Bedrock", 1, 1, "2031-03-01", "crystallized"),
        ("01_Shallow/Late.md", "Shallow", 0.2, 0, "2031-03-07", "active"),
        ("01_Shallow/Fade.md", "Shallow", 0.2, 0, "2031-03-09", "active"),
        ("01_Shallow/Held.md", "Shallow", None, None, "2031-03-09", None),
        ("01_Shallow/Riser.md", "Shallow", 0.55, 0, "2031-03-11", "active"),
        ("01_Shallow/Far.md", "Shallow", 0.2, 0, "2031-03-15", "active"),
        ("01_Shallow/Later.md", "Shallow", 0.55, 0, "2031-03-16", "active"),
    ],
    "Changed by people": [
        ("01_Shallow/Edited.md", "Shallow", "2031-03-16", None, None, None),
        ("03_Bedrock/Odd too.md", "Bedrock", "2031-03-15", "high", None, None),
        ("02_Sediment/Gold.md", "Sediment", "2031-03-11", 0.6, 1, "active"),
        ("01_Shallow/Edited a week ago.md", "Shallow", "2031-03-10", None, None, None),
    ],
    "Orphans": [
        ("01_Shallow/Low.md", "Shallow", "0.4", 1.5, "", None),
        ("01_Shallow/Pin.md", "Shallow", 0.9, 0, "2031-03-01", "active"),
        ("02_Sediment/deep/er/Deep.md", "Sediment", 0.9, 0, "2031-03-01", "active"),
        ("03_Bedrock/Lone.md", "Bedrock", None, None, "", None),
    ],
    "Unresolved links": [
        ("01_Shallow/Fade.md", "Shallow", ["Gone note", "Missing"]),
        ("02_Sediment/Odd.md", "Sediment", ["No such note"]),
        ("03_Bedrock/Odd too.md", "Bedrock", ["No note"]),
    ],
    "Archive browser": [
        ("_Archive/01_Shallow/Alone.md", "2031-03-09", "decayed", "01_Shallow/Alone.md", 0.1, -1),
        ("_Archive/01_Shallow/ideas/Sand.md", "2031-03-09", "decayed", "01_Shallow/ideas/Sand.md", 0.2, -1),
        ("_Archive/01_Shallow/Wrong.md", "2031-03-03", "purged: 7 days", "01_Shallow/Wrong.md", 0.2, 0),
    ],
    "Vault problems": [
        ("01_Shallow/A word.md", "Shallow", UNKNOWN + "; last_touched is no date"),
        ("01_Shallow/Does not parse.md", "Shallow", UNKNOWN),
        ("01_Shallow/Empty.md", "Shallow", UNKNOWN),
        ("01_Shallow/High.md", "Shallow", UNKNOWN + "; density is no number from 0 to 1"),
        ("01_Shallow/Hub (conflicted copy 2031-03-05 101010).md", "Shallow", "a sync tool's conflict copy"),
        ("01_Shallow/Impossible.md", "Shallow", UNKNOWN),
        ("01_Shallow/Known to nobody.md", "Shallow", UNKNOWN),
        ("01_Shallow/List.md", "Shallow", UNKNOWN),
        ("01_Shallow/Low.md", "Shallow", "density is no number from 0 to 1; streak is no whole number"),
        ("01_Shallow/Merged.md", "Shallow", UNKNOWN),
        ("01_Shallow/Moved.md", "Shallow", "density is no number from 0 to 1; layer is not its folder's"),
        ("01_Shallow/Plain.md", "Shallow", UNKNOWN),
        ("01_Shallow/Twice.md", "Shallow", UNKNOWN),
        ("02_Sediment/Odd.md", "Sediment", "created is no date"),
        ("03_Bedrock/Odd too.md", "Bedrock", "density is no number from 0 to 1"),
    ],
    "Memories by session": [
        ("ann-1", ["02_Sediment/Gold.md"], 1, "2031-03-01"),
        ("bob-7", ["01_Shallow/Hub.md", "02_Sediment/deep/er/Deep.md"], 2, "2031-03-01"),
        ("cat", ["03_Bedrock/Odd too.md"], 1, ""),
    ],
}


def first_day() -> tuple[str, str]:
    return LOOKED_AT[0]


@pytest.mark.parametrize(("now", "zone"), LOOKED_AT, ids=[zone for _, zone in LOOKED_AT])
@pytest.mark.parametrize("name", dashboards.names())
def test_dataview_shows_exactly_these_rows(vault: Path, name: str, now: str, zone: str) -> None:
    _, rows = asked(vault, name, now, zone)

    assert rows == EXPECTED[name]


@pytest.mark.parametrize(("now", "zone"), LOOKED_AT, ids=[zone for _, zone in LOOKED_AT])
@pytest.mark.parametrize("name", ALIKE)
def test_the_base_is_the_same_table(vault: Path, name: str, now: str, zone: str) -> None:
    columns, rows = asked(vault, name, now, zone)

    assert twin(vault, name, now, zone) == (columns, rows)


def test_the_base_of_layers_and_rooms_lists_what_dataview_counts(vault: Path) -> None:
    name = "Layers and rooms"
    _, rows = twin(vault, name, *first_day())
    by_path = {str(row[0]): row for row in rows}

    made = groups(vault, f"{FOLDER}/{name}.base", first_day()[0])

    found = []
    for _, paths in made:
        members = [by_path[path] for path in paths]
        _, layer, room, *_ = members[0]
        averages = [average(member[number] for member in members) for number in (3, 4)]
        found.append((layer, room, len(members), *averages))
    assert found == EXPECTED[name]


def average(values: Iterable[object]) -> float | None:
    """As both have it: of the numbers alone."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return round(sum(numbers) / len(numbers) + 1e-9, 2) if numbers else None


def test_the_base_of_sessions_lists_what_dataview_counts(vault: Path) -> None:
    name = "Memories by session"

    made = groups(vault, f"{FOLDER}/{name}.base", first_day()[0])

    assert {
        label.removeprefix("formula.session: ").removeprefix("session: "): paths for label, paths in made
    } == {str(session): paths for session, paths, *_ in EXPECTED[name]}


# -- a wrong name fails -------------------------------------------------------------------------------------

PROPERTY = re.compile(r"file[.]frontmatter[.]([a-z_]+)")


def named(query: str) -> list[str]:
    folders = re.findall(r'"(0[1-3]_[A-Za-z]+|_Archive)"', query)
    return sorted({*folders, *PROPERTY.findall(query)})


CASES = [
    (name, one) for name in dashboards.names() for one in named(dashboards.texts()[f"{FOLDER}/{name}.md"])
]


@pytest.mark.parametrize(("name", "one"), CASES)
def test_a_wrong_name_in_a_query_changes_its_rows(vault: Path, name: str, one: str) -> None:
    note = f"{FOLDER}/{name}.md"
    now, zone = first_day()
    (query,) = queries(vault / note)
    broken = "\n".join(
        line if line.startswith("SORT") else wrong_in_query(line, one) for line in query.splitlines()
    )
    assert broken != query

    with viewing_machine(now, zone):
        _, rows = rows_or_none(vault, broken, note)

    assert rows != EXPECTED[name]


def wrong_in_query(line: str, one: str) -> str:
    if one.startswith(("0", "_")):
        return line.replace(f'"{one}', '"no_such_folder')
    return line.replace(f"frontmatter.{one}", "frontmatter.no_such_name") if one in line else line


def rows_or_none(root: Path, query: str, note: str) -> tuple[list[str], list[Row] | None]:
    try:
        return table(root, query, note)
    except Exception:
        return [], None


def named_in_base(text: str) -> list[str]:
    properties = [
        one for one in OWNED_NAMES if re.search(rf"(?<![A-Za-z_.\"]){one}(?![A-Za-z_\"(])", formulas(text))
    ]
    shown = [one for one in OWNED_NAMES if f"- note.{one}\n" in text]
    folders = re.findall(r'inFolder[(]"([^"]+)"[)]', text)
    return sorted({*properties, *shown, *folders})


def formulas(text: str) -> str:
    document = yaml.safe_load(text)
    return "\n".join([*document["filters"]["and"], *document.get("formulas", {}).values()])


OWNED_NAMES = tuple(sorted(one.name for one in PROPERTIES))
BASE_CASES = [
    (name, one) for name in ALIKE for one in named_in_base(dashboards.texts()[f"{FOLDER}/{name}.base"])
]


def misspelt(formula: str, one: str) -> str:
    if one.startswith(("0", "_")):
        return formula.replace(f'"{one}"', '"no_such_folder"')
    return re.sub(rf"(?<![A-Za-z_.\"]){one}(?![A-Za-z_(])", "no_such_name", formula)


@pytest.mark.parametrize(("name", "one"), BASE_CASES)
def test_a_wrong_name_in_a_base_changes_its_rows(vault: Path, tmp_path: Path, name: str, one: str) -> None:
    now, zone = first_day()
    text = dashboards.texts()[f"{FOLDER}/{name}.base"]
    changed: Any = yaml.safe_load(text)
    changed["filters"]["and"] = [misspelt(said, one) for said in changed["filters"]["and"]]
    changed["formulas"] = {key: misspelt(said, one) for key, said in changed["formulas"].items()}
    view = changed["views"][0]
    view["order"] = [said.replace(f"note.{one}", "note.no_such_name") for said in view["order"]]
    target = vault / f"{FOLDER}/mutant {tmp_path.name}.base"
    target.write_text(yaml.safe_dump(changed), encoding="utf-8")

    with viewing_machine(now, zone):
        _, rows = base(vault, target.relative_to(vault).as_posix(), "", now)
    target.unlink()

    assert rows != EXPECTED[name]


# -- one broken note hides no other -------------------------------------------------------------------------

VALUES = (
    "high",
    '"0.5"',
    "[1, 2]",
    "{a: 1}",
    "true",
    "2031-02-28",
    "tomorrow",
    "5",
    "7 days",
    "",
    '"[[Hub]]"',
    "-1e9",
)
ASKED = (
    "density",
    "streak",
    "created",
    "last_touched",
    "decays_on",
    "rises_on",
    "rises_to",
    "edited_on",
    "pinned",
)
ASKED_TOO = (
    "id",
    "backlinks",
    "layer",
    "status",
    "source_session",
    "rated_on",
    "archived_on",
    "archived_reason",
)


@pytest.mark.parametrize("key", [*ASKED, *ASKED_TOO])
def test_a_property_with_any_value_hides_no_other_row(vault: Path, tmp_path: Path, key: str) -> None:
    root = tmp_path / "vault"
    shutil.copytree(vault, root, ignore=shutil.ignore_patterns(".palace"))
    for number, value in enumerate(VALUES):
        for folder in ("01_Shallow", "_Archive"):
            text = f"---\nid: odd{number}\n{key}: {value}\n---\nx\n"
            if key == "id":
                text = f"---\nid: {value}\n---\nx\n"
            (root / folder / f"Strange {number} {folder[0]}.md").write_text(text, encoding="utf-8")
    now, zone = first_day()

    for name in ALIKE:
        _, rows = asked(root, name, now, zone)
        assert [row for row in rows if "Strange " not in str(row[0])] == EXPECTED[name], name
        assert twin(root, name, now, zone)[1] == rows, name


def test_the_template_is_what_the_table_makes() -> None:
    root = template_root()
    shipped = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in (root / FOLDER).iterdir()
    }

    assert shipped == dashboards.texts()


# -- blocks to paste, and a palace in a folder of a larger vault --------------------------------------------

BLOCKS: list[str] = re.findall(
    r"````text\n(.*?)````\n", dashboards.texts()[f"{FOLDER}/Blocks to paste.md"], re.DOTALL
)
FATES = {
    "01_Shallow/Fade.md": ("Shallow", "▰▱▱▱▱", 0.2, 0, "goes to the archive on 2031-03-17"),
    "01_Shallow/Riser.md": ("Shallow", "▰▰▰▱▱", 0.55, 0, "rises on 2031-03-18"),
    "01_Shallow/Pin.md": ("Shallow", "▰▰▰▰▰", 0.9, 0, "pinned: stays"),
    "03_Bedrock/Rock.md": ("Bedrock", "▰▰▰▰▰", 1, 1, "stays"),
}


def block(kind: str, heading: str) -> str:
    """The text of the block of that kind which shows a column called *heading*."""
    (found,) = [one for one in BLOCKS if one.startswith(f"```{kind}") and heading in one]
    return found.removeprefix(f"```{kind}\n").removesuffix("```\n")


@pytest.mark.parametrize("path", FATES)
def test_the_fate_of_a_memory_can_be_shown_in_it(vault: Path, path: str) -> None:
    now, zone = first_day()

    with viewing_machine(now, zone):
        _, rows = table(vault, block("dataview", "What is next"), path)
        _, twins = base_text(vault, block("base", "What is next"), now, path)

    assert rows == twins == [FATES[path]]


def test_what_decays_in_a_room_can_be_shown_there(vault: Path, tmp_path: Path) -> None:
    root = tmp_path / "vault"
    shutil.copytree(vault, root, ignore=shutil.ignore_patterns(".palace"))
    (root / "02_Sediment/deep/er").mkdir(parents=True, exist_ok=True)
    for folder in ("02_Sediment/deep", "02_Sediment/deep/er", "02_Sediment/deepest"):
        (root / folder).mkdir(exist_ok=True)
        name = folder.rpartition("/")[2]
        (root / folder / f"Due {name}.md").write_text("---\ndecays_on: 2031-03-19\n---\n", encoding="utf-8")
    now, zone = first_day()
    room = "02_Sediment/deep/Room.md"
    (root / room).write_text("The room.", encoding="utf-8")

    with viewing_machine(now, zone):
        _, rows = table(root, block("dataview", "Decays on"), room)
        _, twins = base_text(root, block("base", "Decays on"), now, room)

    assert rows == twins
    assert [row[0] for row in rows] == ["02_Sediment/deep/Due deep.md", "02_Sediment/deep/er/Due er.md"]


@pytest.mark.parametrize("folder", ["Brain", "My brain/Память"])
@pytest.mark.parametrize("name", dashboards.names())
def test_a_palace_in_a_folder_shows_the_same(vault: Path, tmp_path: Path, folder: str, name: str) -> None:
    """Folders of the same names beside it are somebody else's."""
    larger = tmp_path / "larger"
    shutil.copytree(vault, larger / folder, ignore=shutil.ignore_patterns(".palace"))
    shutil.copytree(vault / "01_Shallow", larger / "01_Shallow")
    shutil.copytree(vault / "_System", larger / "_System")
    for path, text in dashboards.texts(folder).items():
        (larger / folder / path).write_text(text, encoding="utf-8")
    now, zone = first_day()
    note = f"{folder}/{FOLDER}/{name}.md"

    with viewing_machine(now, zone):
        (query,) = queries(larger / note)
        columns, rows = table(larger, query, note)
        twins = base(larger, f"{folder}/{FOLDER}/{name}.base", "", now)

    assert [inside(row, folder) for row in rows] == EXPECTED[name]
    if name in ALIKE:
        assert twins == (columns, rows)


def inside(row: Row, folder: str) -> Row:
    """*row* with paths as the palace has them."""

    def shorten(one: object) -> object:
        return one.removeprefix(f"{folder}/") if isinstance(one, str) else one

    return tuple(
        [shorten(item) for item in cell] if isinstance(cell, list) else shorten(cell) for cell in row
    )
