"""Reads the YAML of a note's properties by the rules of YAML 1.2 core, and says where each value stands.

PyYAML's C parser only cuts the text into events; what a plain word *means* is decided here, because
PyYAML's own rules are those of YAML 1.1, where `no` is false, `012` is ten and `12:30` is 750. The
parser's events are bounded on the way (nesting, aliases), no tag ever builds an object, and the
characters that some readers take for line ends are hidden from it: a note has LF and CR LF only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final, NamedTuple

import yaml

from vault_palace.core.model import Value

MAX_DEPTH: Final = 40
MAX_ALIASED: Final = 10_000  # values that aliases may stand for in one text ("billion laughs")
MAX_DIGITS: Final = 3_000  # a longer number stays text: Python itself refuses to print it
MAX_SAFE: Final = 2**53 - 1  # the largest whole number that every JSON reader keeps exactly

# The fallback is PyYAML's own parser with the same events, for systems without libyaml.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE: Final = "tag:yaml.org,2002:"
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT: Final = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL: Final = re.compile(r"0o[0-7]+\Z")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_INFINITY: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z")
_NAN: Final = frozenset((".nan", ".NaN", ".NAN"))

# Characters that PyYAML refuses or takes for line ends, while Obsidian's reader takes them as they are.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]|\r(?!\n)"
)
# Private characters to stand in for them, with the escape by which a quoted text could spell one.
_STAND_INS: Final = ((0x100000, "\\U0010"), (0xF0000, "\\U000F"), (0xE000, "\\uE"))

LONGEST_MESSAGE: Final = 240  # a name of a megabyte is none that a person would look for


class Unreadable(ValueError):
    """The text is no set of properties. `line` counts from 0 within the text; names in `message` are cut."""

    def __init__(self, line: int, message: str) -> None:
        if len(message) > LONGEST_MESSAGE:
            half = LONGEST_MESSAGE // 2
            message = f"{message[:half]}…{message[-half:]}"
        super().__init__(message)
        self.line = line
        self.message = message


class Place(NamedTuple):
    """A place in the text: line and column, both from 0, in characters."""

    line: int
    column: int


class Form(StrEnum):
    """How a value is written."""

    PLAIN = "plain"
    QUOTED = "quoted"
    BLOCK = "block"  # literal `|` or folded `>`
    FLOW = "flow"  # `[a, b]` or `{a: b}`
    SEQUENCE = "sequence"  # a list of `- ` lines
    MAPPING = "mapping"
    ALIAS = "alias"


@dataclass(frozen=True, slots=True)
class Entry:
    """One property of the top mapping: what it holds and where it stands.

    `shown` is the value with every number whose text is not canonical as its text. `text` is the text
    of a scalar, `items` the texts of a list's scalars (None for a null or a nested value). `end` is the
    end of the value's last visible character, comments after it not counted. `leaves` are the lines
    (first, last) of each scalar inside, `parts` those of each item of a block list. `fixed` is set when
    an anchor or an alias is inside: what other lines may depend on.
    """

    name: str
    value: Value
    shown: object
    text: str | None
    items: tuple[str | None, ...]
    key: Place
    key_end: Place
    start: Place
    end: Place
    form: Form
    fixed: bool
    leaves: tuple[tuple[int, int], ...]
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The properties in the order of the text. `flow` is set for one written as `{a: 1}`."""

    entries: tuple[Entry, ...] = ()
    flow: bool = False
    indent: int = 0


@dataclass(slots=True)
class _Node:
    value: Value
    shown: object
    text: str | None
    start: Place
    end: Place
    form: Form
    size: int = 1
    items: tuple[str | None, ...] = ()
    parts: list[tuple[int, int]] = field(default_factory=list)


def load(text: str) -> Document:
    """The properties in *text*; empty for blank and comment-only text. Raises `Unreadable`."""
    return _Reader(text).document()


def load_value(text: str) -> Value:
    """What *text* holds as a whole, as a settings file is read. Raises `Unreadable`."""
    return _Reader(text).whole()


def scalar(text: str) -> Value:
    """What an unquoted *text* means in YAML 1.2 core."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > MAX_DIGITS:
        return text
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if _OCTAL.match(text):
        return int(text, 0)
    if _HEX.match(text):
        return int(text, 0)
    if _INFINITY.match(text):
        return -math.inf if text[0] == "-" else math.inf
    return math.nan if text in _NAN else text


def shown(value: Value, text: str) -> Value:
    """*value* for a tool's answer: a number that its reader could change is given as its *text*."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE and str(value) == text else text
    return value if math.isfinite(value) and repr(value) == text else text


class _Reader:
    """Builds values from events, one document to an instance."""

    def __init__(self, text: str) -> None:
        self._unhide: dict[int, str] = {}
        self._text = self._hide(text)
        self._lines = self._text.split("\n")
        self._offsets: list[int] = []
        self._anchors: dict[str, _Node | None] = {}  # None while the anchored value is being read
        self._aliased = 0
        self._leaves: list[tuple[int, int]] = []
        self._linked = False  # an anchor or alias was met since the last property began

    def document(self) -> Document:
        try:
            events = self._events()
            first = next(events)
            document = self._properties(events, first) if first is not None else Document()
            self._finish(events)
        except yaml.YAMLError as error:
            raise self._explain(error) from None
        return document

    def whole(self) -> Value:
        try:
            events = self._events()
            first = next(events)
            value = self._node(events, first, 0).value if first is not None else None
            self._finish(events)
        except yaml.YAMLError as error:
            raise self._explain(error) from None
        return value

    def _hide(self, text: str) -> str:
        found = set(_HIDDEN.findall(text))
        if not found:
            return text
        for base, escape in _STAND_INS:
            fresh = range(base, base + len(found))
            # An escape in a quoted text could spell a stand-in, and would then be taken for one.
            if escape.lower() not in text.lower() and not any(chr(code) in text for code in fresh):
                self._unhide = dict(zip(fresh, sorted(found), strict=True))
                hide = {char: chr(code) for code, char in self._unhide.items()}
                # Not by `translate`: the carriage return of a CR LF has to stay.
                return _HIDDEN.sub(lambda match: hide[match[0]], text)  # noqa: B023 - returned at once
        raise Unreadable(0, "control characters stand among private-use characters")

    def _shown_text(self, text: str) -> str:
        return text.translate(self._unhide) if self._unhide else text

    def _events(self) -> Iterator[Any]:
        """The events of the document's content; a first None when there is none at all."""
        events = yaml.parse(self._text, Loader=_LOADER)
        next(events)
        if isinstance(next(events), yaml.StreamEndEvent):
            yield None
            return
        yield from events

    def _finish(self, events: Iterator[Any]) -> None:
        for event in events:
            mark: Any = event.start_mark
            if isinstance(event, yaml.DocumentStartEvent):
                raise Unreadable(mark.line, "a second document begins here")

    def _properties(self, events: Iterator[Any], first: Any) -> Document:
        start: Any = first.start_mark
        if not isinstance(first, yaml.MappingStartEvent):
            raise Unreadable(self._within(start.line), "the header does not hold `name: value` lines")
        entries: list[Entry] = []
        seen: set[str] = set()
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            self._leaves, self._linked = [], False
            key, name = self._key(events, event, seen, 1)
            value = self._node(events, next(events), 1)
            entries.append(
                Entry(
                    name,
                    value.value,
                    value.shown,
                    value.text,
                    value.items,
                    key.start,
                    key.end,
                    value.start,
                    value.end,
                    value.form,
                    self._linked,
                    tuple(self._leaves),
                    tuple(value.parts),
                )
            )
        # An anchor on the mapping itself does not matter: nothing inside may refer to it.
        return Document(tuple(entries), bool(first.flow_style), start.column)

    def _key(self, events: Iterator[Any], event: Any, seen: set[str], depth: int) -> tuple[_Node, str]:
        """The next key and its name. A key that is no text has its source as its name."""
        key = self._node(events, event, depth)
        if key.text is not None:
            name = key.text
        else:
            first, last = event.start_mark.index, self._offset(key.end)
            name = self._shown_text(self._text[first:last])
        if name in seen:
            raise Unreadable(key.start.line, f"the property `{name}` stands twice")
        seen.add(name)
        return key, name

    def _offset(self, place: Place) -> int:
        if not self._offsets:
            self._offsets = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        return self._offsets[place.line] + place.column

    def _node(self, events: Iterator[Any], event: Any, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise Unreadable(event.start_mark.line, f"values are nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if event.anchor is not None:
            self._linked = True
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(events, event, depth)
        else:
            node = self._mapping(events, event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any) -> _Node:
        self._linked = True
        line = event.start_mark.line
        if event.anchor not in self._anchors:
            raise Unreadable(
                line, f"`*{event.anchor}` refers to nothing; text that begins with * needs quotes"
            )
        target = self._anchors[event.anchor]
        if target is None:
            raise Unreadable(line, f"`*{event.anchor}` stands inside the value it refers to")
        self._aliased += target.size
        if self._aliased > MAX_ALIASED:
            raise Unreadable(line, "aliases stand for too many values")
        return _Node(
            target.value,
            target.shown,
            target.text,
            _place(event.start_mark),
            _place(event.end_mark),
            Form.ALIAS,
            target.size,
            target.items,
        )

    def _scalar(self, event: Any) -> _Node:
        text = self._shown_text(event.value)
        start, end = _place(event.start_mark), _place(event.end_mark)
        if event.style in ("|", ">"):
            form, end = Form.BLOCK, self._block_end(end)
        else:
            form = Form.QUOTED if event.style else Form.PLAIN
        self._leaves.append((start.line, end.line))
        value: Value = text
        if event.tag is None:
            if form is Form.PLAIN:
                value = scalar(text)
        elif event.tag in (_CORE + "int", _CORE + "float", _CORE + "bool", _CORE + "null"):
            value = scalar(text)
        return _Node(value, shown(value, text), text, start, end, form)

    def _block_end(self, end: Place) -> Place:
        """Where the last visible line of a block text ends: PyYAML's mark is behind its blank lines."""
        line = end.line if end.column else end.line - 1
        while line and not self._lines[line].strip():
            line -= 1
        return Place(line, len(self._lines[line].rstrip("\r")))

    def _sequence(self, events: Iterator[Any], event: Any, depth: int) -> _Node:
        values: list[Value] = []
        views: list[object] = []
        texts: list[str | None] = []
        parts: list[tuple[int, int]] = []
        size, end = 1, _place(event.end_mark)
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            node = self._node(events, item, depth + 1)
            values.append(node.value)
            views.append(node.shown)
            texts.append(None if node.value is None else node.text)
            parts.append((node.start.line, node.end.line))
            size, end = size + node.size, node.end
        form = Form.FLOW if event.flow_style else Form.SEQUENCE
        if event.flow_style:
            end = _place(item.end_mark)
        return _Node(values, views, None, _place(event.start_mark), end, form, size, tuple(texts), parts)

    def _mapping(self, events: Iterator[Any], event: Any, depth: int) -> _Node:
        values: dict[str, Value] = {}
        views: dict[str, object] = {}
        seen: set[str] = set()
        size, end = 1, _place(event.end_mark)
        while not isinstance(item := next(events), yaml.MappingEndEvent):
            _, name = self._key(events, item, seen, depth + 1)
            node = self._node(events, next(events), depth + 1)
            values[name], views[name] = node.value, node.shown
            size, end = size + node.size + 1, node.end
        form = Form.FLOW if event.flow_style else Form.MAPPING
        if event.flow_style:
            end = _place(item.end_mark)
        return _Node(values, views, None, _place(event.start_mark), end, form, size)

    def _explain(self, error: yaml.YAMLError) -> Unreadable:
        """The parser's complaint in a person's words, on the line that has to be mended."""
        problem = str(getattr(error, "problem", None) or error)
        context = str(getattr(error, "context", None) or "")
        mark = getattr(error, "problem_mark", None)
        # An open bracket or quote is noticed at the end of the text; the line that opened it is meant.
        if any(word in context for word in ("flow", "quoted", "simple key")):
            mark = getattr(error, "context_mark", None) or mark
        line = self._within(mark.line) if mark is not None else 0
        for part, words in _COMPLAINTS:
            if part in problem or part in context:
                return Unreadable(line, words)
        return Unreadable(line, f"{problem} ({context})" if context else problem)

    def _within(self, line: int) -> int:
        """*line*, or the last line of the text where the mark stands behind it."""
        return min(line, max(len(self._lines) - 2, 0))


def _place(mark: Any) -> Place:
    return Place(mark.line, mark.column)


_COMPLAINTS: Final = (
    ("mapping values are not allowed", "a colon and a space inside a value that is not in quotes"),
    ("cannot start any token", "a tab as indentation, or a value that begins with a sign that needs quotes"),
    ("scanning an alias", "a value that begins with * needs quotes"),
    ("scanning an anchor", "a value that begins with & needs quotes"),
    ("parsing a flow sequence", "a bracket [ is not closed, or text follows it"),
    ("parsing a flow mapping", "a brace { is not closed, or text follows it"),
    ("unexpected end of stream", "a quotation mark is not closed"),
    ("could not find expected ':'", "a line without a colon between name and value"),
    ("maximum nesting depth", f"values are nested more than {MAX_DEPTH} deep"),
)
