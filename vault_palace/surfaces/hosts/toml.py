"""Changes one table in a person's TOML and leaves every other line as it is.

A new table goes to the end of the file, where it disturbs nothing; an old one is changed and removed by
tomlkit. Either way the result is read again by Python's own parser, and compared with the text before line by
line: a file whose form makes another line change is refused.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError

from vault_palace.surfaces.hosts.jsonc import Broken
from vault_palace.surfaces.hosts.lines import differing

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


class Unfit(ValueError):
    """The file is right, but written in a form in which the change would touch other lines."""


def read(text: str) -> dict[str, Any]:
    """The values of *text*; raises `Broken` where it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        said = _PLACE.sub("", str(error)).strip()
        raise Broken(said, text, _offset(text, place)) from None
    except RecursionError:
        raise Broken("nested too deeply", text, 0) from None


def _offset(text: str, place: re.Match[str] | None) -> int:
    if place is None:  # "at end of document"
        return len(text)
    before = text.split("\n")[: int(place[1]) - 1]
    return sum(len(line) + 1 for line in before) + int(place[2]) - 1


def put(text: str, path: Sequence[str], value: Any) -> str:
    """*text* with *value* at *path*. A table that is not there yet is written at the end."""
    expected = copy.deepcopy(read(text))
    inner = expected
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
        if not isinstance(inner, dict):
            raise Broken(f"{key} is no table", text, 0)
    fresh = path[-1] not in inner
    inner[path[-1]] = value
    if fresh and isinstance(value, Mapping):
        return _proved(text, _appended(text, path, value), expected, None)
    table = path if isinstance(value, Mapping) else path[:-1]
    return _proved(text, _edited(text, path, value), expected, _section(text, table))


def take(text: str, path: Sequence[str]) -> str:
    """*text* without the table at *path*; the same text when it is not there."""
    expected = copy.deepcopy(read(text))
    inner: Any = expected
    for key in path[:-1]:
        inner = inner.get(key) if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or path[-1] not in inner:
        return text
    del inner[path[-1]]
    new = _edited(text, path, None)
    for depth in range(len(path) - 1, 0, -1):  # a table that only held this one goes with it
        holder: Any = expected
        for key in path[: depth - 1]:
            holder = holder[key]
        if not holder[path[depth - 1]] and path[depth - 1] not in _inside(read(new), path[: depth - 1]):
            del holder[path[depth - 1]]
    return _proved(text, new, expected, _section(text, path))


def _section(text: str, path: Sequence[str]) -> range:
    """The numbers of the lines of the table at *path*, from its header to the next header outside it."""
    name = r"\s*\.\s*".join(rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')" for key in path)
    lines = text.splitlines(keepends=True)
    headers = [number for number, line in enumerate(lines) if line.lstrip(" \t").startswith("[")]
    own = [number for number in headers if re.match(rf"\s*\[\s*{name}\s*[.\]]", lines[number])]
    if not own:
        raise Unfit(f"{'.'.join(path)} has no header of its own")
    beyond = [number for number in headers if number > own[-1]]
    return range(own[0], beyond[0] if beyond else len(lines))


def _inside(values: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    for key in path:
        values = values[key]
    return values


def _appended(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    nested: Any = dict(value)
    for key in reversed(path):
        nested = {key: nested}
    block = tomlkit.dumps(nested).replace("\n", end)
    if not text.strip():
        return text + block if not text or text.endswith("\n") else block
    gap = "" if text.endswith("\n") else end
    return f"{text}{gap}{end}{block}"


def _edited(text: str, path: Sequence[str], value: Any) -> str:
    try:
        document: Any = tomlkit.parse(text)
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        if value is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        new = tomlkit.dumps(document)
    except (ParseError, TOMLKitError, KeyError, TypeError) as error:
        raise Unfit(str(error)) from error
    if "\r\n" in text and not re.search(r"(?<!\r)\n", text):
        new = re.sub(r"(?<!\r)\n", "\r\n", new)
    return new


def _proved(text: str, new: str, expected: dict[str, Any], section: range | None) -> str:
    """*new*, provided it has the *expected* values and differs from *text* in the lines of *section* alone.

    Without a section lines may only have come.
    """
    try:
        values = tomllib.loads(new)
    except tomllib.TOMLDecodeError as error:
        raise Unfit(str(error)) from error
    if values != expected:
        raise Unfit("other values would change")
    before, after = text.splitlines(keepends=True), new.splitlines(keepends=True)
    if before and not before[-1].endswith("\n") and section is None:
        before[-1] += "\r\n" if "\r\n" in text else "\n"
    for gone, come in differing(before, after):
        if section is None and not gone and come:
            continue
        if section is None or gone.start < section.start or gone.stop > section.stop:
            raise Unfit("other lines would change")
    return new
