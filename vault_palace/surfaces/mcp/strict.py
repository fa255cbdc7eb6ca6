"""Arguments of a tool call: one small table gives their schema and reads them strictly.

Nothing is guessed: an unknown argument, a wrong type and text that cannot be stored are refused with the
argument's name, before anything is done. What generated calls do get wrong without harm is read as meant:
`"5"` and `3.0` are integers, `"true"` is true, tags come as a list, as a JSON list in text or as words
with commas.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vault_palace.core.errors import InvalidArguments

Kind = Literal["text", "words", "integer", "number", "boolean", "object"]
JSON_TYPES: Mapping[Kind, str] = {
    "text": "string",
    "words": "array",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "object": "object",
}
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})")
# NUL and lone halves of surrogate pairs: no file system and no UTF-8 text can hold them.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a tool.

    `blank` says whether text may be empty or all blanks: for an optional argument that is as if it were
    not given, which is what generated calls mean by it.
    """

    name: str
    kind: Kind = "text"
    about: str = ""
    required: bool = False
    blank: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    default: object = None
    bounds_shown: bool = False  # whether the schema names least and most: it costs tokens in every session
    inner: tuple[Argument, ...] = ()

    @property
    def schema(self) -> dict[str, object]:
        """The JSON schema of this argument, without noise."""
        if self.kind == "object":
            return schema_of(self.inner) | ({"description": self.about} if self.about else {})
        schema: dict[str, object] = {"type": JSON_TYPES[self.kind]}
        if self.kind == "words":
            schema["items"] = {"type": "string"}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.bounds_shown:
            schema["minimum"], schema["maximum"] = self.least, self.most
        if self.default is not None:
            schema["default"] = self.default
        if self.about:
            schema["description"] = self.about
        return schema


def schema_of(arguments: Sequence[Argument]) -> dict[str, object]:
    """The input schema of a tool that takes *arguments* and nothing else."""
    schema: dict[str, object] = {
        "type": "object",
        "properties": {argument.name: argument.schema for argument in arguments},
    }
    required = [argument.name for argument in arguments if argument.required]
    if required:
        schema["required"] = required
    return schema | {"additionalProperties": False}


def read_arguments(
    tool: str, arguments: Sequence[Argument], given: Mapping[str, object]
) -> dict[str, object]:
    """The values of a call, by name; only what was given. Raises `InvalidArguments` naming the argument."""
    known = {argument.name: argument for argument in arguments}
    for name in given:
        if name not in known:
            raise _unknown(tool, name, known)
    missing = [argument.name for argument in arguments if argument.required and argument.name not in given]
    if missing:
        raise _refused(missing[0], f"{tool} needs {_listed(missing)}.", "Give it, then repeat the call.")
    read = {name: _value(known[name], name, value) for name, value in given.items()}
    return {name: value for name, value in read.items() if known[name].required or not _is_blank(value)}


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def _unknown(tool: str, name: str, known: Mapping[str, Argument]) -> InvalidArguments:
    if name == "arguments":
        # A list or a text where the object of arguments belongs arrives under this name as well.
        takes = f"Put {_listed(known)} into it directly." if known else "Leave it empty."
        return _refused(name, "`arguments` must be a JSON object.", takes)
    shown = _UNSTORABLE.sub("\ufffd", name if len(name) <= 40 else f"{name[:40]}…")
    takes = f"It takes {_listed(known)}." if known else "It takes none."
    return _refused(shown, f"{tool} has no argument `{shown}`.", takes)


def _value(argument: Argument, name: str, value: object) -> object:
    bad = next((text for text in _texts(value) if _UNSTORABLE.search(text)), None)
    if bad is not None:
        raise _refused(
            name,
            f"{name} holds a NUL, half of a surrogate pair or bytes that are no UTF-8; no note can.",
            "Send whole characters; nothing was done.",
        )
    read = _READERS[argument.kind](argument, name, value)
    if isinstance(read, (int, float)) and not isinstance(read, bool) and not _in_range(argument, read):
        raise _refused(name, f"{name} is out of range.", f"Give {_range(argument)}.")
    if argument.choices and read not in argument.choices:
        raise _refused(
            name, f"{name} is none of the known words.", f"Give one of {_listed(argument.choices)}."
        )
    return read


def _text(argument: Argument, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "text", value)
    if not argument.blank and not value.strip():
        raise _refused(name, f"{name} is empty.", "Give a text, or leave the argument out if it is optional.")
    return value


def _integer(_: Argument, name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    raise _wrong(name, "a whole number", value)


def _number(_: Argument, name: str, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # An integer of any length arrives from JSON; a float can hold it only up to a point.
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, int) and abs(value) < 10**15:
            return value
        raise _refused(name, f"{name} is not a number that can be stored.", "Give a plain decimal number.")
    if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()):
        return float(value)
    raise _wrong(name, "a number", value)


def _boolean(_: Argument, name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise _wrong(name, "true or false", value)


def _words(_: Argument, name: str, value: object) -> list[str]:
    if isinstance(value, str):
        text = value.strip()
        value = _json(text) if text.startswith("[") else text.split(",")
    if not isinstance(value, list):
        raise _wrong(name, "a list of texts", value)
    words: dict[str, None] = {}  # in their order, each once, whatever their number
    for item in value:
        if not isinstance(item, str):
            raise _wrong(name, "a list of texts", item, inside=True)
        # Read from JSON inside a text, an item has not passed the border yet.
        if _UNSTORABLE.search(item):
            raise _refused(
                name, f"{name} holds a NUL character or half of a surrogate pair.", "Send whole characters."
            )
        word = item.strip()
        if word:
            words[word] = None
    return list(words)


def _object(argument: Argument, name: str, value: object) -> dict[str, object]:
    if isinstance(value, str):
        value = _json(value)
    if not isinstance(value, dict):
        raise _wrong(name, f"an object with {_listed([inner.name for inner in argument.inner])}", value)
    try:
        return read_arguments(name, argument.inner, value)
    except InvalidArguments as error:
        error.facts["argument"] = f"{name}.{error.facts.get('argument', '')}"
        raise


def _json(text: str) -> object:
    """The value of JSON in a text; the text itself when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_READERS: Mapping[Kind, Callable[[Argument, str, object], object]] = {
    "text": _text,
    "words": _words,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "object": _object,
}


def _texts(value: object) -> Iterator[str]:
    """Every text in *value*, whatever its depth: without recursion, since depth is the caller's choice."""
    heap: list[object] = [value]
    while heap:
        item = heap.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            heap.extend(item)
            heap.extend(item.values())
        elif isinstance(item, list):
            heap.extend(item)


def _wrong(name: str, wanted: str, value: object, *, inside: bool = False) -> InvalidArguments:
    where = f"{name} holds an item that is" if inside else f"{name} is"
    return _refused(name, f"{where} {_kind_of(value)}, but {wanted} is wanted.", f"Give {name} as {wanted}.")


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    for kind, words in ((str, "text"), ((int, float), "a number"), (list, "a list"), (dict, "an object")):
        if isinstance(value, kind):
            return words
    return "something else"


def _in_range(argument: Argument, value: float) -> bool:
    return not (
        (argument.least is not None and value < argument.least)
        or (argument.most is not None and value > argument.most)
    )


def _range(argument: Argument) -> str:
    if argument.most is None:
        return f"at least {argument.least}"
    return f"{argument.least or 0} to {argument.most}"


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(names)


def _refused(argument: str, message: str, hint: str) -> InvalidArguments:
    return InvalidArguments(message, hint=hint, argument=argument)
