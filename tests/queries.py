"""Runs Dataview queries and Bases for real: the one place that touches `obsidian_pdf_exporter`.

Its modules are not a documented interface, so they are pinned in pyproject.toml and met only here. The
clock and the zone are arguments: a dashboard asks for the viewing machine's day.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from obsidian_pdf_exporter.core import frontmatter
from obsidian_pdf_exporter.core.bases import BaseView, VaultFiles, load_base
from obsidian_pdf_exporter.core.vault_index import VaultIndex
from obsidian_pdf_exporter.plugins.dataview import luxon
from obsidian_pdf_exporter.plugins.dataview.engine import Engine
from obsidian_pdf_exporter.plugins.dataview.index import DataviewIndex
from obsidian_pdf_exporter.plugins.dataview.parse import parse_query
from obsidian_pdf_exporter.plugins.dataview.values import Link, Settings

Row = tuple[object, ...]
_BLOCK = re.compile(r"^```dataview\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class _Loader(yaml.SafeLoader):
    """Reads properties for Bases as Obsidian does, where YAML 1.1 would have it otherwise.

    A day that no calendar has is text, and takes no other property with it; yes, no, on and off are words.
    """

    @staticmethod
    def safe_load(text: str) -> object:
        return yaml.load(text, Loader=_Loader)

    def construct_moment(self, node: yaml.ScalarNode) -> object:
        try:
            return self.construct_yaml_timestamp(node)
        except ValueError:
            return self.construct_scalar(node)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:bool"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_moment)


def _files(root: Path) -> VaultFiles:
    """The files of the vault as Bases sees them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontmatter, "_yaml", _Loader)
        return VaultFiles(VaultIndex(root))


class Snapshot:
    """A vault as it stands now, read once for many queries on one viewing machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pages = DataviewIndex(VaultIndex(root))
        self.files = _files(root)


def _snapshot(vault: Path | Snapshot) -> Snapshot:
    return vault if isinstance(vault, Snapshot) else Snapshot(vault)


@contextmanager
def viewing_machine(now: str, zone: str) -> Iterator[None]:
    """For as long as this is open it is *now* (a wall time) on a machine in *zone*."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        try:
            luxon.set_now(round(datetime.fromisoformat(now).astimezone().timestamp() * 1000))
            yield
        finally:
            luxon.set_now(None)
            patch.undo()
            time.tzset()


def queries(note: Path) -> list[str]:
    """The text of each Dataview block in *note*."""
    return _BLOCK.findall(note.read_text(encoding="utf-8"))


def table(vault: Path | Snapshot, query: str, origin: str = "") -> tuple[list[str], list[Row]]:
    """Column names and rows of a TABLE query; links are shown as the path they lead to."""
    engine = Engine(_snapshot(vault).pages, Settings())
    result = engine.execute_table(parse_query(query), origin)
    return list(result.names), [tuple(_shown(value) for value in row) for row in result.values]


def base(root: Path, file: str, view: str, now: str) -> tuple[list[str], list[Row]]:
    """Column names and rows of one view of a `.base` file; a complaint of the evaluator fails the test."""
    return base_text(root, (root / file).read_text(encoding="utf-8"), now, view=view)


def base_text(
    vault: Path | Snapshot, text: str, now: str, origin: str = "", *, view: str = ""
) -> tuple[list[str], list[Row]]:
    """The same for the text of a Base that stands in note *origin*; the first view where none is named."""
    complaints: list[str] = []
    files = _snapshot(vault).files
    this = next((record for record in files.records if record.rel == origin), None)
    shown = BaseView(load_base(text), files, this, complaints.append)
    shown.ev.now = datetime.fromisoformat(now)
    found = cast("dict[str, Any]", shown.view(view))
    rows = [
        tuple(_cell(column, record.rel, shown.value(column, record)) for column in found["order"])
        for record in shown.rows(found)
    ]
    assert not complaints, complaints
    return [shown.header(column) for column in found["order"]], rows


def groups(vault: Path | Snapshot, text: str, now: str) -> list[tuple[str, list[str]]]:
    """The groups of a Base's first view, by its text: what each is headed by, and the notes in it by path."""
    complaints: list[str] = []
    shown = BaseView(load_base(text), _snapshot(vault).files, None, complaints.append)
    shown.ev.now = datetime.fromisoformat(now)
    found = cast("dict[str, Any]", shown.view(""))
    made = [
        (str(heading), [record.rel for record in records])
        for heading, records in shown.groups(found, shown.rows(found))
    ]
    assert complaints == []
    return made


def _shown(value: object) -> object:
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return value.path if isinstance(value, Link) else value


def _cell(column: str, path: str, value: object) -> object:
    """A Bases value as the DQL twin shows it: the note by its path, dates as text."""
    if column == "file.name":
        return path
    if isinstance(value, list):
        return [getattr(one, "target", one) for one in value]
    if hasattr(value, "target"):
        return f"[[{value.target}]]"  # a property that is one link; DQL gives the text that it is
    moment = getattr(value, "value", None)
    return moment.strftime("%Y-%m-%d") if isinstance(moment, datetime) else value
