"""Changes one value in a person's JSON and leaves every other byte where it is.

Comments and trailing commas are understood, as VS Code and opencode write them. The text is read by a
tokenizer into values that know where they stand; a change is a splice at those places, and its result is read
again before it is handed out. No text is ever made from the values of the whole file.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

DEEPEST = 200  # objects and lists in one another; a file of ours or of a host has a handful

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
    | (?P<line>//[^\r\n]*)
    | (?P<block>/\*.*?\*/)
    | (?P<mark>[{}\[\]:,])
    | (?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")
    | (?P<word>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)""",
    re.VERBOSE | re.DOTALL,
)
_BLANKS = re.compile(r"[ \t]*")
_LINE_END = re.compile(r"\r\n|\n|\r")


class Broken(ValueError):
    """The text is not what it should be, at a line and a column, both counted from 1."""

    def __init__(self, said: str, text: str, at: int) -> None:
        before = _LINE_END.sub("\n", text[:at])
        self.line = before.count("\n") + 1
        self.column = at - max(text.rfind("\n", 0, at), text.rfind("\r", 0, at))
        self.said = said
        super().__init__(f"line {self.line}, column {self.column}: {said}")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands; `members` only for an object."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of an object: where its key begins, its value, and the comma behind it if there is one."""

    key: str
    start: int
    node: Node
    comma: int | None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Splice:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text that has been read. `root` is None when it holds no value: empty, or comments only."""

    text: str
    root: Node | None
    comments: tuple[tuple[int, int], ...]

    @property
    def line_end(self) -> str:
        found = _LINE_END.search(self.text)
        return found[0] if found else "\n"

    @property
    def on_one_line(self) -> bool:
        """Whether the file is written without line ends, as programs that save space do."""
        root = self.root
        return (
            root is not None and bool(root.members) and not _LINE_END.search(self.text, root.start, root.end)
        )

    @property
    def unit(self) -> str:
        """One step of indentation, as the file has it."""
        if self.root is not None:
            outer = self.indent_of_line(self.root.start)
            for member in self.root.members:
                found = self.indent_if_first(member.start)
                if found and found != outer and found.startswith(outer):
                    return found.removeprefix(outer)
        return "  "

    def indent_if_first(self, at: int) -> str | None:
        """The blanks before *at* when nothing else stands before it on its line; else None."""
        begin = self._line_begin(at)
        before = self.text[begin:at]
        return before if not before.strip(" \t") else None

    def indent_of_line(self, at: int) -> str:
        """The blanks at the beginning of the line of *at*."""
        found = _BLANKS.match(self.text, self._line_begin(at))
        return found[0] if found else ""

    def after_comments(self, at: int, end: int) -> int:
        """The end of the last comment between *at* and *end*; *at* when there is none."""
        ends = [stop for start, stop in self.comments if at <= start and stop <= end]
        return max(ends, default=at)

    def _line_begin(self, at: int) -> int:
        return max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1


# -- reading ------------------------------------------------------------------------------------------------


def read(text: str) -> Document:
    """Read *text*; raises `Broken` where it is no JSON with comments."""
    tokens: list[_Token] = []
    comments: list[tuple[int, int]] = []
    for token in _tokens(text):
        if token.kind in {"line", "block"}:
            comments.append((token.start, token.end))
        elif token.kind != "blank":
            tokens.append(token)
    reader = _Reader(text, tokens)
    root = reader.value(0) if tokens else None
    if reader.at < len(tokens):
        raise Broken("something stands after the end", text, tokens[reader.at].start)
    return Document(text, root, tuple(comments))


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise Broken(_strange(text, at), text, at)
        yield _Token(found.lastgroup, at, found.end())
        at = found.end()


def _strange(text: str, at: int) -> str:
    if text.startswith("/*", at):
        return "a comment that does not end"
    if text[at] == '"':
        return "a text that does not end on its line"
    return f"{text[at]!r} cannot stand here"


class _Reader:
    def __init__(self, text: str, tokens: Sequence[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self.at = 0

    def value(self, depth: int) -> Node:
        token = self._next("a value")
        if depth > DEEPEST:
            raise Broken("nested too deeply", self._text, token.start)
        mark = self._text[token.start] if token.kind == "mark" else ""
        if mark == "{":
            return self._object(token.start, depth)
        if mark == "[":
            return self._list(token.start, depth)
        if mark:
            raise Broken(f"a value was expected, not {mark!r}", self._text, token.start)
        return Node(token.start, token.end, self._scalar(token))

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        value: dict[str, Any] = {}
        while not self._is("}"):
            key = self._next("a key or }")
            if key.kind != "text":
                raise Broken("a key in quotes or } was expected", self._text, key.start)
            name = str(self._scalar(key))
            self._take(":")
            node = self.value(depth + 1)
            comma = self._comma("}")
            members.append(Member(name, key.start, node, comma))
            value[name] = node.value
        return Node(start, self._take("}").end, value, tuple(members))

    def _list(self, start: int, depth: int) -> Node:
        value: list[Any] = []
        while not self._is("]"):
            value.append(self.value(depth + 1).value)
            self._comma("]")
        return Node(start, self._take("]").end, value)

    def _comma(self, closing: str) -> int | None:
        if self._is(","):
            return self._take(",").start
        if not self._is(closing):
            self._missing(f", or {closing}")
        return None

    def _scalar(self, token: _Token) -> Any:
        try:
            return json.loads(self._text[token.start : token.end])
        except ValueError as error:  # an escape that is none, a number of more digits than are converted
            raise Broken(f"unreadable: {error}", self._text, token.start) from None

    def _is(self, mark: str) -> bool:
        return self.at < len(self._tokens) and self._text[self._tokens[self.at].start] == mark

    def _take(self, mark: str) -> _Token:
        if not self._is(mark):
            self._missing(mark)
        return self._next(mark)

    def _next(self, wanted: str) -> _Token:
        if self.at >= len(self._tokens):
            self._missing(wanted)
        self.at += 1
        return self._tokens[self.at - 1]

    def _missing(self, wanted: str) -> NoReturn:
        if self.at < len(self._tokens):
            raise Broken(f"{wanted} was expected", self._text, self._tokens[self.at].start)
        raise Broken(f"the file ends where {wanted} was expected", self._text, len(self._text))


def find(document: Document, path: Sequence[str]) -> Node | None:
    """The value at *path*, None when it is not there. A key on the way that stands twice is `Broken`."""
    node = document.root
    for key in path:
        member = None if node is None else _member(document, node, key)
        if member is None:
            return None
        node = member.node
    return node


def _member(document: Document, node: Node, key: str) -> Member | None:
    if not node.is_object:
        raise Broken(f"an object was expected, to hold {json.dumps(key)}", document.text, node.start)
    found = [member for member in node.members if member.key == key]
    if len(found) > 1:
        raise Broken(f"the key {json.dumps(key)} stands here a second time", document.text, found[1].start)
    return found[0] if found else None


# -- changing -----------------------------------------------------------------------------------------------


def put(text: str, path: Sequence[str], value: Any) -> str:
    """*text* with *value* at *path*; what is missing on the way is made."""
    document = read(text)
    there = find(document, path)
    if there is not None and _alike(there.value, value):
        return text
    if document.root is None:
        new = _on_empty(document, _nested(path, value))
    else:
        new = _spliced(text, _splices(document, document.root, path, value))
    expected = copy.deepcopy(document.root.value) if document.root is not None else {}
    inner = expected
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    return _proved(new, expected)


def take(text: str, path: Sequence[str]) -> str:
    """*text* without the member at *path*; the same text when it is not there."""
    document = read(text)
    holder = find(document, path[:-1])
    member = None if holder is None else _member(document, holder, path[-1])
    if holder is None or member is None or document.root is None:
        return text
    expected = copy.deepcopy(document.root.value)
    inner = expected
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return _proved(_spliced(text, _cuts(document, holder, member)), expected)


def _proved(text: str, expected: Any) -> str:
    root = read(text).root
    if root is None or not _alike(root.value, expected):
        raise AssertionError("the changed JSON does not read as it should")
    return text


def _alike(one: Any, other: Any) -> bool:
    # As text, so that 1 and 1.0, and two orders of keys, are two things.
    return json.dumps(one) == json.dumps(other)


def _spliced(text: str, splices: Sequence[_Splice]) -> str:
    # From the end on, so that the places before stay right; of two at one place the later one goes in first.
    for splice in sorted(splices, key=lambda one: one.start, reverse=True):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return text


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _on_empty(document: Document, value: Any) -> str:
    end = document.line_end
    before = document.text if document.text.strip() else ""
    if before and not before.endswith(("\n", "\r")):
        before += end
    return before + _written(value, "", "  ", end) + end


def _splices(document: Document, node: Node, path: Sequence[str], value: Any) -> list[_Splice]:
    for depth, key in enumerate(path):
        member = _member(document, node, key)
        if member is None:
            return _inserted(document, node, key, _nested(path[depth + 1 :], value))
        last, node = member, member.node
    if document.on_one_line:
        return [_Splice(node.start, node.end, _tight(document, value))]
    indent = document.indent_of_line(last.start)
    return [_Splice(node.start, node.end, _written(value, indent, document.unit, document.line_end))]


def _inserted(document: Document, holder: Node, key: str, value: Any) -> list[_Splice]:
    """The comma and the new member at the end of *holder*, in the way its other members stand."""
    splices: list[_Splice] = []
    trailing = ""
    last = holder.members[-1] if holder.members else None
    at = holder.start + 1
    if last is not None:
        if last.comma is None:
            splices.append(_Splice(last.node.end, last.node.end, ","))
        trailing = "," if last.comma is not None else ""
        at = last.node.end if last.comma is None else last.comma + 1
    at = document.after_comments(at, holder.end)
    if document.on_one_line:
        space = " " if last is not None and _spaced(document) else ""
        return _joined(splices, _Splice(at, at, f"{space}{_tight(document, {key: value})[1:-1]}{trailing}"))
    outer = document.indent_of_line(holder.start)
    inner = document.indent_if_first(last.start) if last is not None else None
    if inner is None:
        inner = outer + document.unit
    end = document.line_end
    said = _written(value, inner, document.unit, end)
    piece = f"{end}{inner}{json.dumps(key, ensure_ascii=False)}: {said}{trailing}"
    if not _LINE_END.search(document.text, at, holder.end):
        piece += end + outer
    return _joined(splices, _Splice(at, at, piece))


def _joined(splices: list[_Splice], piece: _Splice) -> list[_Splice]:
    if splices and splices[0].start == piece.start:
        return [_Splice(piece.start, piece.start, splices[0].text + piece.text)]
    return [*splices, piece]


def _spaced(document: Document) -> bool:
    return '": ' in document.text


def _tight(document: Document, value: Any) -> str:
    separators = (", ", ": ") if _spaced(document) else (",", ":")
    return json.dumps(value, ensure_ascii=False, separators=separators)


def _written(value: Any, indent: str, unit: str, line_end: str) -> str:
    """*value* as people write it: a line for each key, a list on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + unit
    lines = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_written(one, inner, unit, line_end)}"
        for key, one in value.items()
    ]
    return f"{{{line_end}{f',{line_end}'.join(lines)}{line_end}{indent}}}"


def _cuts(document: Document, holder: Node, member: Member) -> list[_Splice]:
    """What goes when *member* goes: its text, one comma, and the line if nothing else stands on it."""
    text = document.text
    inside = any(holder.start < start and stop < holder.end for start, stop in document.comments)
    if len(holder.members) == 1 and not inside:
        return [_Splice(holder.start + 1, holder.end - 1, "")]
    start, end = member.start, member.node.end
    cuts: list[_Splice] = []
    before = [one for one in holder.members if one.start < member.start]
    if member.comma is not None and not text[end : member.comma].strip():
        end = member.comma + 1
    elif member.comma is not None:  # a comment stands between the value and its comma
        cuts.append(_Splice(member.comma, member.comma + 1, ""))
    elif before and before[-1].comma is not None:
        cuts.append(_Splice(before[-1].comma, before[-1].comma + 1, ""))
    blanks = _BLANKS.match(text, end)
    after = blanks.end() if blanks else end
    indent = document.indent_if_first(start)
    line = _LINE_END.match(text, after)
    if indent is not None and line is not None:
        return [*cuts, _Splice(start - len(indent), line.end(), "")]
    if indent is None and member is holder.members[-1]:
        while text[start - 1] in " \t":
            start -= 1
        after = end
    return [*cuts, _Splice(start, after, "")]
