"""Links in a note's properties: text values that are wholly `"[[Name]]"`, and those that lack their quotes.

The header is walked as a stream of YAML events, because nothing recurses on those: a header of ten thousand
brackets is as safe as any. A header that Obsidian could not read holds no links.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

from vault_palace.core import inline
from vault_palace.core.linktext import NEWLINE, Link, split_wikilink, wikilink

MOST_HEADER = 100_000  # characters; a longer header is data, and its links are not read

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHOLE = re.compile(rf"(?:{inline.WIKILINK.pattern})\Z")

# YAML 1.1 takes these for line ends; Obsidian's YAML 1.2 does not. Same length, so offsets stay true.
_MASK = {0x85: "\uf8fd", 0x2028: "\uf8fe", 0x2029: "\uf8ff"}
_UNMASK = {ord(masked): chr(code) for code, masked in _MASK.items()}


class Unquoted(NamedTuple):
    """`key: [[Name]]` without quotes: for YAML a list in a list, though a person means a link."""

    name: str
    start: int
    end: int
    line: int
    key: str
    spot: tuple[int, int]


class _UnreadableError(Exception):
    """The header is no single mapping, or names a key twice: Obsidian shows no property of it."""


class _Level:
    """A mapping or list that is being walked through; `name` is its path, `at` where it begins."""

    def __init__(self, name: str, *, mapping: bool, at: int) -> None:
        self.name, self.mapping, self.at = name, mapping, at
        self.keys: set[str] = set()
        self.key: str | None = None
        self.length = 0

    @property
    def wants_key(self) -> bool:
        return self.mapping and self.key is None

    def child(self) -> str:
        step = (self.key or "") if self.mapping else str(self.length)
        return f"{self.name}.{step}" if self.name else step

    def take_key(self, key: str) -> None:
        if key in self.keys:
            raise _UnreadableError
        self.keys.add(key)
        self.key = key

    def take_value(self) -> None:
        """Count a value; in the place of a key, a list or alias is a key that no link hangs on."""
        if self.wants_key:
            self.key = ""
        else:
            self.length += 1
            self.key = None


class _Walk:
    """One header's events, and what they gave so far. Marks are counted in characters."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.header = text[start:end].translate(_MASK)
        self.start = start
        self.first_line = 1 + len(NEWLINE.findall(text, 0, start))
        self.levels: list[_Level] = []
        self.documents = 0
        self.links: list[Link] = []
        self.unquoted: list[Unquoted] = []

    def run(self) -> None:
        for event in yaml.parse(self.header, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                self.documents += 1
            elif isinstance(event, (yaml.CollectionStartEvent, yaml.CollectionEndEvent, yaml.NodeEvent)):
                self._step(event)

    def _step(self, event: yaml.Event) -> None:
        assert event.start_mark is not None
        assert event.end_mark is not None
        at, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.CollectionStartEvent):
            mapping = isinstance(event, yaml.MappingStartEvent)
            if self.documents > 1 or not (self.levels or mapping):
                raise _UnreadableError
            name = self.levels[-1].child() if self.levels else ""
            self.levels.append(_Level(name, mapping=mapping, at=at))
        elif isinstance(event, yaml.CollectionEndEvent):
            level = self.levels.pop()
            if self.levels:
                self._unquoted(level, end)
                self.levels[-1].take_value()
        elif not self.levels:
            raise _UnreadableError
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(self.levels[-1], event.value, at, end)
        else:
            self.levels[-1].take_value()

    def _scalar(self, level: _Level, value: str, at: int, end: int) -> None:
        if level.wants_key:
            level.take_key(value)
            return
        if _WHOLE.match(value):
            self.links.append(self._link(value.translate(_UNMASK), at, end, level.child()))
        level.take_value()

    def _link(self, value: str, at: int, end: int, key: str) -> Link:
        raw = self.header[at:end]
        left, right = raw.find("[["), raw.rfind("]]") + 2
        if left < 0 or right < left + 4:
            left, right = 1, len(raw) - 1  # the brackets themselves are written as escapes
        target = split_wikilink(value[2:-2])
        written = split_wikilink(raw[left + 2 : right - 2])  # quotes in a name are doubled or escaped
        placed = target._replace(left=written.left, right=written.right)
        begin = self.start + at + left
        return wikilink(
            "property", begin, self.start + at + right, placed, begin + 2, self._line(at + left), key
        )

    def _unquoted(self, level: _Level, end: int) -> None:
        raw = self.header[level.at : end]
        if level.mapping or not level.name or not inline.WIKILINK.fullmatch(raw) or '"' in raw or "'" in raw:
            return
        left = self.start + level.at
        target = split_wikilink(raw[2:-2])
        spot = (left + 2 + target.left, left + 2 + target.right)
        line = self._line(level.at)
        self.unquoted.append(Unquoted(target.path, left, left + len(raw), line, level.name, spot))

    def _line(self, at: int) -> int:
        return self.first_line + len(NEWLINE.findall(self.header, 0, at))


def property_links(text: str, start: int, end: int) -> tuple[list[Link], list[Unquoted]]:
    """Links of the header at `start:end`, and those without quotes; none when it is broken."""
    if end - start > MOST_HEADER or text.find("[[", start, end) < 0:
        return [], []
    walk = _Walk(text, start, end)
    try:
        walk.run()
    except (yaml.YAMLError, _UnreadableError):
        return [], []
    return walk.links, walk.unquoted
