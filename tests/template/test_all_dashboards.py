"""Every dashboard over a vault that a person was careless in: exact rows from Dataview and from Bases."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.queries import Row, Snapshot, base_text, queries, table, viewing_machine
from tests.template.careless import (
    ALIKE,
    EXPECTED,
    FOLDER,
    GROUPED,
    LOOKED_AT,
    SHARED,
    Days,
    asked,
    build,
    twin,
)
from vault_palace.core import dashboards
from vault_palace.core.model import PROPERTIES
from vault_palace.services.init import template_root


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Days:
    return build(tmp_path_factory.mktemp("all"))


@pytest.fixture(scope="module")
def vault(days: Days) -> Path:
    return days.root


@pytest.fixture(scope="module")
def seen(vault: Path) -> Snapshot:
    """The vault as the first machine sees it."""
    with viewing_machine(*first_day()):
        return Snapshot(vault)


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


@pytest.mark.parametrize("name", GROUPED)
def test_the_base_lists_what_dataview_counts(vault: Path, name: str) -> None:
    _, rows = twin(vault, name, *first_day())

    assert rows == EXPECTED[name]


def test_shared_ids_and_names_are_shown(vault: Path) -> None:
    note = f"{FOLDER}/Vault problems.md"

    with viewing_machine(*first_day()):
        _, rows = table(vault, queries(vault / note)[1], note)

    assert rows == SHARED


# -- a wrong name fails -------------------------------------------------------------------------------------

BLOCK = re.compile(r"^```dataview\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROPERTY = re.compile(r"file[.]frontmatter[.]([a-z_]+)")


def named(query: str) -> list[str]:
    folders = re.findall(r'"(0[1-3]_[A-Za-z]+|_Archive)"', query)
    return sorted({*folders, *PROPERTY.findall(query)})


def blocks_of(name: str) -> list[str]:
    return BLOCK.findall(dashboards.texts()[f"{FOLDER}/{name}.md"])


CASES = [
    (name, number, one)
    for name in dashboards.names()
    for number, query in enumerate(blocks_of(name))
    for one in named(query)
]


@pytest.mark.parametrize(("name", "number", "one"), CASES)
def test_a_wrong_name_in_a_query_changes_its_rows(
    vault: Path, seen: Snapshot, name: str, number: int, one: str
) -> None:
    note = f"{FOLDER}/{name}.md"
    query = queries(vault / note)[number]
    broken = "\n".join(
        line if line.startswith("SORT") else wrong_in_query(line, one) for line in query.splitlines()
    )
    assert broken != query

    with viewing_machine(*first_day()):
        rows = rows_or_none(seen, broken, note)

    assert rows != (SHARED if number else EXPECTED[name])


def wrong_in_query(line: str, one: str) -> str:
    if one.startswith(("0", "_")):
        return line.replace(f'"{one}', '"no_such_folder')
    return re.sub(rf"frontmatter[.]{one}\b", "frontmatter.no_such_name", line)


def rows_or_none(seen: Snapshot, query: str, note: str) -> list[Row] | None:
    """None where the query fails for every row, and Dataview shows an error."""
    try:
        return table(seen, query, note)[1]
    except Exception:
        return None


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
    (name, one)
    for name in dashboards.names()
    for one in named_in_base(dashboards.texts()[f"{FOLDER}/{name}.base"])
]


def misspelt(formula: str, one: str) -> str:
    if one.startswith(("0", "_")):
        return formula.replace(f'"{one}"', '"no_such_folder"')
    return re.sub(rf"(?<![A-Za-z_.\"]){one}(?![A-Za-z_(])", "no_such_name", formula)


@pytest.mark.parametrize(("name", "one"), BASE_CASES)
def test_a_wrong_name_in_a_base_changes_its_rows(seen: Snapshot, name: str, one: str) -> None:
    text = dashboards.texts()[f"{FOLDER}/{name}.base"]
    changed: Any = yaml.safe_load(text)
    changed["filters"]["and"] = [misspelt(said, one) for said in changed["filters"]["and"]]
    changed["formulas"] = {key: misspelt(said, one) for key, said in changed["formulas"].items()}
    view = changed["views"][0]
    view["order"] = [said.replace(f"note.{one}", "note.no_such_name") for said in view["order"]]

    with viewing_machine(*first_day()):
        now, _ = first_day()
        _, rows = base_text(seen, yaml.safe_dump(changed), now)
        _, right = base_text(seen, text, now)

    assert rows != right


# -- one broken note hides no other -------------------------------------------------------------------------

VALUES = (
    "high",
    '"0.5"',
    "[1, 2]",
    "[]",
    "{a: 1}",
    "true",
    "yes",
    "2031-02-28",
    "2031-02-30",
    '"2031-02-30"',
    "2031-03-18T10:00:00",
    "2031-03-18 10:00:00",
    '"2031-03-18 10:00"',
    "2031-03-18T23:30:00Z",
    '"2031-03-18T23:30:00+05:30"',
    "2031-03-18 at noon",
    "tomorrow",
    "5",
    "0",
    "7 days",
    "",
    '""',
    '"[[Hub]]"',
    "-1e9",
)
ASKED = sorted({one for _, _, one in CASES if one.islower()})


@pytest.mark.parametrize("key", ASKED)
def test_a_property_with_any_value_hides_no_other_row(vault: Path, tmp_path: Path, key: str) -> None:
    """In rooms and sessions of their own, so that groups may be compared as well."""
    root = tmp_path / "vault"
    shutil.copytree(vault, root, ignore=shutil.ignore_patterns(".palace", ".obsidian"))
    for number, value in enumerate(VALUES):
        for folder in ("01_Shallow/strange", "_Archive/strange"):
            said = {"id": f"odd{number}", "source_session": "strange", key: value}
            lines = "".join(f"{name}: {one}\n" for name, one in said.items())
            (root / folder).mkdir(exist_ok=True)
            (root / folder / f"Strange {number} {folder[0]}.md").write_text(f"---\n{lines}---\nx\n", "utf-8")

    with viewing_machine(*first_day()):
        seen = Snapshot(root)
    found = {
        name: (asked(seen, name, *first_day())[1], twin(seen, name, *first_day())[1]) for name in EXPECTED
    }

    for name, (rows, twins) in found.items():
        assert [row for row in rows if not strange(row)] == EXPECTED[name], name
        assert [row for row in twins if not strange(row)] == EXPECTED[name], name
        if name != "Memories by session":  # where each value is a session
            assert [row[0] for row in twins] == [row[0] for row in rows], name


def strange(row: Row) -> bool:
    return any("strange" in str(cell).lower() for cell in row)


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

    _, rows = asked(larger, name, *first_day(), f"{folder}/")
    _, twins = twin(larger, name, *first_day(), f"{folder}/")

    assert [inside(row, folder) for row in rows] == EXPECTED[name]
    assert twins == rows


def inside(row: Row, folder: str) -> Row:
    """*row* with paths as the palace has them."""

    def shorten(one: object) -> object:
        return one.removeprefix(f"{folder}/") if isinstance(one, str) else one

    return tuple(
        [shorten(item) for item in cell] if isinstance(cell, list) else shorten(cell) for cell in row
    )
