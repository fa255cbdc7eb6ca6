"""Adds to a person's Obsidian settings what the palace needs, and changes nothing that is there.

Each file of `.obsidian` has its rule: which lists gain entries, which objects gain keys. A value that the
person has is never replaced, and what they switched off is not switched on again. Text that is not plain JSON
is left as it is, with the reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# How a person's new notes and deleted ones are treated is theirs to say, in a vault that was there before.
PERSONAL = frozenset({"newFileLocation", "newFileFolderPath", "attachmentFolderPath", "trashOption"})
SNIPPET = "palace"


@dataclass(frozen=True, slots=True)
class Merged:
    """What becomes of a settings file. `text` is None when its bytes stay; `added` names what is new."""

    text: str | None = None
    added: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  # what is there and differs from what the palace would say
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a rule has to know beyond the file: whether the snippet is new, whether Dataview lies there."""

    new_snippet: bool = True
    dataview_installed: bool = False


@dataclass(slots=True)
class _Change:
    added: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


class _Odd(ValueError):
    """The JSON is not of the form that Obsidian writes."""


def merge(name: str, theirs: str, ours: str, circumstances: Circumstances) -> Merged | None:
    """*theirs*, the text of the settings file *name* (relative to `.obsidian`), with what it lacks of *ours*.

    None when there is no rule for this file: then it stays as it is.
    """
    rule = _RULES.get(name)
    if rule is None:
        return None
    change = _Change()
    try:
        document = _read(theirs)
        rule(document, json.loads(ours), change, circumstances)
    except (ValueError, RecursionError) as error:
        return Merged(problem=f"it is not what Obsidian writes ({error}), and is left alone")
    text = _write(document, theirs) if change.added else None
    return Merged(text=text, added=tuple(change.added), left=tuple(change.left))


def _read(text: str) -> Any:
    return json.loads(
        text.removeprefix("\ufeff"),
        object_pairs_hook=_once,
        parse_float=_finite,
        parse_constant=_refuse,
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Odd("a key stands twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Odd(f"the number {text}")
    return number


def _refuse(text: str) -> float:
    raise _Odd(f"the word {text}")


def _write(document: Any, before: str) -> str:
    """The document in the style of the text before: its indentation, line ends, byte order mark."""
    indented = re.search(r"^([ \t]+)\S", before, re.MULTILINE)
    text = json.dumps(document, ensure_ascii=False, indent=indented[1] if indented else 2)
    if before.endswith("\n"):
        text += "\n"
    if "\r\n" in before:
        text = text.replace("\n", "\r\n")
    return "\ufeff" + text if before.startswith("\ufeff") else text


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Odd(f"{what} is no object")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _Odd(f"{what} is no list")
    return value


def _keys(theirs: dict[str, Any], ours: dict[str, Any], change: _Change) -> None:
    for key, value in ours.items():
        if key not in theirs:
            theirs[key] = value
            change.added.append(key)
        elif theirs[key] != value:
            change.left.append(key)


def _app(theirs: Any, ours: Any, change: _Change, _: Circumstances) -> None:
    app = _object(theirs, "the file")
    ignored = app.get("userIgnoreFilters")
    if ignored is not None:
        entries = _list(ignored, "userIgnoreFilters")
        missing = [entry for entry in ours["userIgnoreFilters"] if entry not in entries]
        entries += missing
        change.added += [f"userIgnoreFilters {entry}" for entry in missing]
    skipped = PERSONAL | {"userIgnoreFilters"} if ignored is not None else PERSONAL
    _keys(app, {key: value for key, value in ours.items() if key not in skipped}, change)


def _core_plugins(theirs: Any, ours: Any, change: _Change, _: Circumstances) -> None:
    if isinstance(theirs, list):
        # The older form lists what is on, and so what is missing was switched off; Bases is younger than it.
        if "bases" not in theirs:
            theirs.append("bases")
            change.added.append("bases")
        return
    _keys(_object(theirs, "the file"), ours, change)


def _community_plugins(theirs: Any, ours: Any, change: _Change, circumstances: Circumstances) -> None:
    plugins = _list(theirs, "the file")
    for plugin in ours:
        if plugin in plugins:
            continue
        if circumstances.dataview_installed:
            change.left.append(f"{plugin}, which is installed and switched off")
        else:
            plugins.append(plugin)
            change.added.append(plugin)


def _types(theirs: Any, ours: Any, change: _Change, _: Circumstances) -> None:
    document = _object(theirs, "the file")
    _keys(_object(document.setdefault("types", {}), "types"), ours["types"], change)


def _graph(theirs: Any, ours: Any, change: _Change, _: Circumstances) -> None:
    document = _object(theirs, "the file")
    groups = _list(document.setdefault("colorGroups", []), "colorGroups")
    known = {group.get("query") for group in groups if isinstance(group, dict)}
    for group in ours["colorGroups"]:
        if group["query"] not in known:
            groups.append(group)
            change.added.append(group["query"])


def _bookmarks(theirs: Any, ours: Any, change: _Change, _: Circumstances) -> None:
    document = _object(theirs, "the file")
    items = _list(document.setdefault("items", []), "items")
    known = _bookmarked(items)
    for item in ours["items"]:
        missing = sorted(_bookmarked([item]) - known)
        if not missing:
            continue
        if "items" in item:  # a group: with those alone that the person has nowhere
            item = {**item, "items": [one for one in item["items"] if one["path"] in missing]}
        items.append(item)
        change.added += missing


def _bookmarked(items: list[Any]) -> set[str]:
    """The paths of all bookmarks, those in groups too."""
    paths: set[str] = set()
    for item in items:
        if isinstance(item, dict):
            paths |= {item["path"]} if isinstance(item.get("path"), str) else set()
            inner = item.get("items")
            paths |= _bookmarked(inner) if isinstance(inner, list) else set()
    return paths


def _appearance(theirs: Any, _: Any, change: _Change, circumstances: Circumstances) -> None:
    document = _object(theirs, "the file")
    snippets = _list(document.setdefault("enabledCssSnippets", []), "enabledCssSnippets")
    if SNIPPET in snippets:
        return
    if circumstances.new_snippet:
        snippets.append(SNIPPET)
        change.added.append(f"enabledCssSnippets {SNIPPET}")
    else:
        change.left.append(f"the snippet {SNIPPET}, which is there and switched off")


def _templates(theirs: Any, ours: Any, change: _Change, _: Circumstances) -> None:
    _keys(_object(theirs, "the file"), ours, change)


_Rule = Callable[[Any, Any, _Change, Circumstances], None]
_RULES: dict[str, _Rule] = {
    "app.json": _app,
    "core-plugins.json": _core_plugins,
    "community-plugins.json": _community_plugins,
    "types.json": _types,
    "graph.json": _graph,
    "bookmarks.json": _bookmarks,
    "appearance.json": _appearance,
    "templates.json": _templates,
}


def without_personal(ours: str) -> str:
    """Our `app.json` for a vault that was there before: less the settings that are the person's to make."""
    document = {key: value for key, value in json.loads(ours).items() if key not in PERSONAL}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
