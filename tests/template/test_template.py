"""The vault a newcomer opens: its notes agree with the code, and its settings with Obsidian's forms."""

from __future__ import annotations

import json
import re
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
import yaml

from vault_palace.core import frontmatter
from vault_palace.core.content import inline_fields, unsafe
from vault_palace.core.links import find
from vault_palace.core.mapnote import BEGIN, END, add_link
from vault_palace.core.model import PROPERTIES, Layer
from vault_palace.core.places import kind
from vault_palace.core.policy import KINDS, Policy, read_policy
from vault_palace.services.init import template_root
from vault_palace.services.zones import zone_of

TEMPLATE = template_root()
FILES = sorted(path.relative_to(TEMPLATE).as_posix() for path in TEMPLATE.rglob("*") if path.is_file())
NOTES = [path for path in FILES if path.endswith(".md")]
JSONS = [path for path in FILES if path.endswith(".json")]


def text(path: str) -> str:
    return (TEMPLATE / path).read_text(encoding="utf-8")


def setting(name: str) -> Any:
    return json.loads(text(f".obsidian/{name}"))


# -- notes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES)
def test_no_shipped_file_is_a_memory(path: str) -> None:
    assert kind(path) in {"system", "template", "map", "other"}


@pytest.mark.parametrize("path", NOTES)
def test_every_header_parses(path: str) -> None:
    header = frontmatter.read(text(path))

    assert header.problem is None


@pytest.mark.parametrize("path", NOTES)
def test_nothing_shipped_runs_or_phones_home(path: str) -> None:
    assert unsafe(text(path)) == []


@pytest.mark.parametrize("path", NOTES)
def test_nothing_shipped_is_taken_for_an_inline_field(path: str) -> None:
    assert inline_fields(text(path)) == []


@pytest.mark.parametrize("path", NOTES)
def test_every_link_leads_to_a_shipped_file(path: str) -> None:
    links = [link.path for link in find(text(path)) if link.path]

    missing = [link for link in links if not any(_leads(link, target) for target in FILES)]
    assert missing == []


def _leads(link: str, target: str) -> bool:
    return target in {link, f"{link}.md"} or target.rpartition("/")[2] in {link, f"{link}.md"}


def test_every_layer_has_its_folder() -> None:
    folders = {path.partition("/")[0] for path in FILES}

    assert {layer.folder for layer in Layer} | {"_Archive", "_System"} <= folders


def test_no_state_of_a_machine_is_shipped() -> None:
    machine = [path for path in FILES if "workspace" in path or path.startswith(".palace") or "cache" in path]

    assert machine == []


def test_the_policy_note_holds_the_defaults() -> None:
    header = frontmatter.read(text("_System/Policy.md").replace("\ntimezone:\n", "\ntimezone: UTC\n"))

    policy, problems = read_policy(header.values, header.lines, last_good=Policy(), zone_of=zone_of)

    expected = Policy(auto_metabolize="daily", timezone="UTC", zone=zone_of("UTC") or UTC)
    assert (policy, problems) == (expected, ())


def test_the_policy_note_has_every_property_once_and_explains_it_with_its_default() -> None:
    header = frontmatter.read(text("_System/Policy.md"))

    explained = dict(re.findall(r"^\| `(\w+)` \| (\S+)", header.body, re.MULTILINE))
    shown = {key: json.dumps(value).strip('"') for key, value in header.values.items() if key != "timezone"}
    assert set(header.values) == {*KINDS, "timezone"}
    assert explained == shown | {"timezone": "set"}


def test_the_format_note_knows_every_property() -> None:
    table = text("_System/Format.md")

    unknown = [
        owned.name for owned in PROPERTIES if not re.search(rf"^\|.*`{owned.name}`.*\|", table, re.MULTILINE)
    ]
    assert unknown == []


def test_the_format_note_says_whose_date_dashboards_use() -> None:
    assert "date of the machine that shows them" in text("_System/Format.md")


def test_the_map_has_a_block_for_the_generator() -> None:
    lines = text("PALACE_MAP.md").splitlines()

    assert lines.index(BEGIN) < lines.index(END)


def test_the_map_takes_a_link() -> None:
    before = text("PALACE_MAP.md")

    after, changed = add_link(before, "[[X]]")

    assert (after, changed) == (before + "- [[X]]\n", True)


def test_the_template_of_a_memory_becomes_a_readable_note() -> None:
    """As Obsidian's core plugin fills it in: the names in braces, formats behind a colon."""
    filled = (
        text("_System/Templates/Memory.md")
        .replace("{{date:YYYY-MM-DD}}", "2026-12-01")
        .replace("{{time:HH:mm:ss}}", "13:00:00")
        .replace("{{title}}", "Name")
    )

    header = frontmatter.read(filled)

    assert (header.problem, header.values["created"]) == (None, "2026-12-01T13:00:00")
    assert "{{" not in filled


# -- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", JSONS)
def test_every_settings_file_is_json(path: str) -> None:
    assert json.loads(text(path))


def test_property_types_agree_with_the_code() -> None:
    types = setting("types.json")["types"]

    assert {owned.name: types.get(owned.name) for owned in PROPERTIES} == {
        owned.name: owned.type for owned in PROPERTIES
    }


def test_policy_properties_have_the_type_of_their_value() -> None:
    types = setting("types.json")["types"]
    values = frontmatter.read(text("_System/Policy.md")).values

    widgets = {bool: "checkbox", int: "number", float: "number", str: "text", type(None): "text"}
    assert {key: types[key] for key in values} == {key: widgets[type(value)] for key, value in values.items()}


def test_only_types_that_obsidian_knows_are_used() -> None:
    known = {"text", "multitext", "number", "checkbox", "date", "datetime", "tags", "aliases"}

    assert set(setting("types.json")["types"].values()) <= known


def test_bookmarks_lead_to_shipped_files() -> None:
    items = setting("bookmarks.json")["items"]
    paths = {one["path"] for item in items for one in item.get("items", [item])}

    assert paths <= set(FILES)


def test_every_layer_has_its_colour_in_the_graph() -> None:
    colours = {group["query"]: group["color"]["rgb"] for group in setting("graph.json")["colorGroups"]}

    assert {f"path:{layer.folder}" for layer in Layer} <= set(colours)
    assert len(set(colours.values())) == len(colours)


def test_an_archived_note_has_its_own_colour_in_the_graph() -> None:
    """The archive mirrors the layers' folders, and Obsidian takes the first group that a note is in."""
    queries = [group["query"] for group in setting("graph.json")["colorGroups"]]

    assert queries[0] == "path:_Archive"


@pytest.mark.parametrize(
    "path", ["PALACE_MAP.md", "_System/Journal.md", "_System/Review.md", "_System/Templates/Memory.md"]
)
def test_what_is_no_memory_is_not_in_the_graph(path: str) -> None:
    left_out = re.findall(r"-(path|file):(\S+)", setting("graph.json")["search"])

    assert any(text in (path if what == "path" else Path(path).name) for what, text in left_out)


def test_new_notes_of_a_newcomer_are_memories() -> None:
    app = setting("app.json")

    assert (app["newFileLocation"], app["newFileFolderPath"]) == ("folder", Layer.SHALLOW.folder)


def test_settings_name_files_that_are_shipped() -> None:
    snippets = {f".obsidian/snippets/{name}.css" for name in setting("appearance.json")["enabledCssSnippets"]}
    templates = setting("templates.json")["folder"]

    assert snippets <= set(FILES)
    assert any(path.startswith(f"{templates}/") for path in FILES)


def test_dataview_is_on_without_javascript() -> None:
    plugin = setting("plugins/dataview/data.json")

    assert setting("community-plugins.json") == ["dataview"]
    assert (plugin["enableDataviewJs"], plugin["enableInlineDataviewJs"]) == (False, False)


def test_bases_is_on() -> None:
    assert setting("core-plugins.json")["bases"] is True


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith(".base")])
def test_a_base_is_a_mapping_with_the_known_keys(path: str) -> None:
    document = yaml.safe_load(text(path))

    assert set(document) <= {"filters", "formulas", "properties", "summaries", "views"}


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith(".base")])
def test_a_base_is_shown_by_the_note_of_its_name(path: str) -> None:
    name = Path(path).name

    assert f"![[{name}]]" in text(path.removesuffix(".base") + ".md")
