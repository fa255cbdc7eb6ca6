"""Writes values as YAML that every reader reads alike: YAML 1.1 and 1.2, in Python and in Obsidian.

Text is left bare only where no reader could take it for anything but text; a date or a date and time in
the one form that the vault uses is written bare on purpose, so that Obsidian shows a date picker.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Final

from vault_palace.core.errors import InvalidArguments
from vault_palace.core.model import PROPERTIES, Value

# YAML 1.1 takes these for truth values or nothing, in any case that someone might type.
_RESERVED: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"))
_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
_CONTROL: Final = re.compile(f"[{_CONTROLS}]")
_ESCAPED: Final = re.compile(rf'["\\{_CONTROLS}]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_FLOW_SIGNS: Final = re.compile(r"[][{},:#\"'?&*!|>%@`]")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\Z")
_TEXT_KINDS: Final = frozenset(("text", "multitext", "tags", "aliases"))
# Properties that are text even when the text happens to be a day.
TEXTS: Final = frozenset({p.name for p in PROPERTIES if p.type in _TEXT_KINDS} | {"title"})


def is_date(text: str) -> bool:
    """Whether *text* is a real day, or day and time, in the form in which the vault writes them."""
    try:
        if _DAY.match(text):
            date.fromisoformat(text)
            return True
        if _MOMENT.match(text):
            datetime.fromisoformat(text)
            return True
    except ValueError:  # 30 February: PyYAML would drop every property of the note over it
        return False
    return False


def number(value: float) -> str:
    """A plain decimal: no exponent, at most 4 places, no needless zeros."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        raise InvalidArguments("A property cannot hold a number that is not finite.")
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def quoted(text: str) -> str:
    """*text* in double quotes, with everything escaped that a reader might refuse or change."""
    if _SURROGATE.search(text):
        raise InvalidArguments("A property cannot hold half a surrogate pair.", hint="Send valid Unicode.")
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT.get(char) or (f"\\x{ord(char):02X}" if ord(char) < 0x100 else f"\\u{ord(char):04X}")


def _bare(text: str, flow: bool) -> bool:
    """Whether *text* reads as itself without quotes, everywhere."""
    return (
        (text[0].isalpha() or text[0] == "_")
        and text.casefold() not in _RESERVED
        and text == text.strip()
        and ": " not in text
        and " #" not in text
        and text[-1] != ":"
        and not _CONTROL.search(text)
        and not _SURROGATE.search(text)
        and not (flow and _FLOW_SIGNS.search(text))
    )


def text_form(text: str, *, dates: bool = False, flow: bool = False) -> str:
    """*text* as a YAML value that reads back as the same text; with *dates*, a date stays bare."""
    if text and (_bare(text, flow) or (dates and is_date(text))):
        return text
    return quoted(text)


def value_form(value: Value, *, dates: bool = False, flow: bool = False) -> str:
    """*value* on one line; empty for None. Lists and maps come in brackets."""
    if value is None:
        return "null" if flow else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, str):
        return text_form(value, dates=dates, flow=flow)
    if isinstance(value, list):
        return "[" + ", ".join(value_form(item, flow=True) for item in value) + "]"
    pairs = (f"{text_form(key, flow=True)}: {value_form(item, flow=True)}" for key, item in value.items())
    return "{" + ", ".join(pairs) + "}"


def property_lines(
    name: str, value: Value, *, indent: str = "", eol: str = "\n", bare_dates: bool = True
) -> list[str]:
    """The lines of one new property; a list that holds something is written as a block list.

    Without *bare_dates* a date comes in quotes: text for every reader, and for Obsidian the same date.
    """
    key = indent + text_form(name)
    if isinstance(value, list) and value:
        return [f"{key}:{eol}", *(item_line(item, indent=indent + "  ", eol=eol) for item in value)]
    form = value_form(value, dates=bare_dates and name not in TEXTS)
    return [f"{key}: {form}{eol}" if form else f"{key}:{eol}"]


def item_line(value: Value, *, indent: str, eol: str) -> str:
    """One line of a block list."""
    form = value_form(value)
    return f"{indent}- {form}{eol}" if form else f"{indent}-{eol}"


def as_read(value: Value) -> Value:
    """*value* as it reads back once written: numbers are rounded, text is plain text."""
    if isinstance(value, float):
        text = number(value)
        return float(text) if "." in text else int(text)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return [as_read(item) for item in value]
    if isinstance(value, dict):
        return {str(key): as_read(item) for key, item in value.items()}
    return value
