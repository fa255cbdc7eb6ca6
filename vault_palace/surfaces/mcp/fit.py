"""Keeps an answer within its budget, and says what was left out.

The palace keeps to a budget on its own; this is the last measure, of the whole answer in both its forms,
for what no verb expects: a property of a megabyte, a thousand decisions, paths of 200 characters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vault_palace.core.model import OWNED
from vault_palace.surfaces.mcp import render
from vault_palace.surfaces.mcp.texts import MOST_TOKENS

SHORT_SNIPPET = 60
NOTICE_TOKENS = 60  # what the mark of a cut and the words about it cost
COUNTED = 200_000  # characters; a longer text cannot cost fewer than MOST_TOKENS in any language
SAID = "Left out to stay within the budget: "

Structured = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A tool's answer in both forms."""

    structured: Structured
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How an answer reads and what of it gives way.

    `cuts` are the keys that may be shortened, in the order in which they are; an object among them, or a
    text before the last of them, only when it is large, unless nothing else is left. `told` is the key in
    which the answer says so (empty: only the text does), `advice` how to ask for less at once. `shortened` is
    called when the last of them, a text, was: the rest can be asked for.
    """

    show: Callable[[render.Answer], str]
    cuts: tuple[str, ...] = ()
    told: str = ""
    advice: str = ""
    shortened: Callable[[Structured], None] | None = None


def cost(text: str) -> int:
    """What *text* costs in tokens, as far as it matters: beyond every budget the count is rough."""
    if len(text) > COUNTED:
        return max(len(text) // 4, 2 * MOST_TOKENS)
    # Loaded with the first answer, since the handshake does not wait for a parser of Markdown.
    from vault_palace.core import budget

    return budget.tokens(text)


def compact(value: object) -> str:
    """*value* as the JSON that travels."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def within(shape: Shape, structured: Structured, most: int) -> Answered:
    """The answer, shortened until neither its text nor its structured form costs more than *most* tokens."""
    left_out: dict[str, int] = {}
    while True:
        text = _text(shape, structured, left_out)
        over = max(cost(text), cost(compact(structured))) - most
        if over <= 0:
            return Answered(structured=structured, text=text)
        key = _next(shape, structured, most)
        if not key:
            return Answered(structured=structured, text=text)
        _shorten(shape, structured, key, over, most, left_out)


def _text(shape: Shape, structured: Structured, left_out: Mapping[str, int]) -> str:
    text = shape.show(structured)
    if not left_out or _says_so(shape, structured, left_out):
        return text
    parts = [f"{count} of {key}" if count > 1 else f"part of {key}" for key, count in left_out.items()]
    return f"{text}\n{SAID}{', '.join(parts)}. {shape.advice}".rstrip()


def _says_so(shape: Shape, structured: Structured, left_out: Mapping[str, int]) -> bool:
    """Whether the answer tells by itself what is left out: only the end of a text that can be read on."""
    return (
        shape.shortened is not None and [*left_out] == [shape.cuts[-1]] and bool(structured.get(shape.told))
    )


def _next(shape: Shape, structured: Structured, most: int) -> str:
    """The key to shorten next; empty when nothing is left."""
    held = [key for key in shape.cuts if structured.get(key)]
    for key in held:
        value = structured[key]
        # A text that can be read on in another call gives way before the small things around it.
        goes_on = shape.shortened is not None and bool(structured.get(shape.cuts[-1]))
        gives_way = key == shape.cuts[-1] or not (goes_on or isinstance(value, dict))
        if gives_way or cost(compact(value)) > most // (4 if isinstance(value, dict) else 8):
            return key
    return held[0] if held else ""


def _shorten(
    shape: Shape, structured: Structured, key: str, over: int, most: int, left_out: dict[str, int]
) -> None:
    value = structured[key]
    if isinstance(value, str):
        if key == shape.cuts[-1]:
            structured[key] = _shorter_text(shape, structured, key, most)
            if shape.shortened is not None:
                shape.shortened(structured)
        else:
            structured[key] = render.line(value, len(value) // 2) if len(value) > SHORT_SNIPPET else ""
        left_out[key] = 1
    elif isinstance(value, dict):
        kept = _fewer(value, over, most)
        structured[key] = kept
        left_out[key] = left_out.get(key, 0) + len(value) - len(kept)
    elif _has_long_snippets(value):
        structured[key] = [item | {"snippet": render.line(item["snippet"], SHORT_SNIPPET)} for item in value]
        left_out["snippets"] = 1
    else:
        each = max(1, cost(compact(value)) // len(value))
        drop = min(len(value), max(1, over // each))
        structured[key] = value[:-drop]
        left_out[key] = left_out.get(key, 0) + drop
        if key == "matches":
            structured["cursor"] = None  # it would step over what was left out
    if "truncated" in structured:
        structured["truncated"] = True
    if shape.told and not _says_so(shape, structured, left_out):
        _tell(shape.told, structured, left_out)


def _fewer(value: Structured, over: int, most: int) -> Structured:
    """*value* without the longest of its items, the person's before ours, as far as it has to give way.

    The longest of a person's properties are those that nobody meant to be read here.
    """
    whole = compact(value)
    each = cost(whole) / len(whole)  # tokens a character
    # What is not large is not what the answer is over its budget for, unless nothing else is left.
    need = over if len(whole) * each <= most // 4 else min(over, len(whole) * each - most // 4)
    sizes = {name: len(compact({name: item})) - 1 for name, item in value.items()}
    gone: set[str] = set()
    for name in sorted(sizes, key=lambda name: (name in OWNED, -sizes[name])):
        gone.add(name)
        need -= sizes[name] * each
        if need <= 0:
            break
    return {name: item for name, item in value.items() if name not in gone}


def _shorter_text(shape: Shape, structured: Structured, key: str, most: int) -> str:
    """The text of *key* cut to what the rest of the answer leaves for it."""
    from vault_palace.core import budget

    text = structured[key]
    others = structured | {key: ""}
    as_text = most - cost(shape.show(others)) - NOTICE_TOKENS
    as_json = most - cost(compact(others)) - NOTICE_TOKENS
    part = text[:COUNTED]
    plain = cost(part)
    # As JSON a text may cost more than by itself, and what is cut off may cost more than what is kept; so
    # each pass has to come closer.
    room = min(as_text, int(as_json * plain / max(1, cost(compact(part)))), int(plain * 0.98))
    return budget.cut(text, room)[0] if room > 0 else ""


def _has_long_snippets(value: list[Any]) -> bool:
    return any(isinstance(item, dict) and len(item.get("snippet", "")) > SHORT_SNIPPET for item in value)


def _tell(told: str, structured: Structured, left_out: Mapping[str, int]) -> None:
    said = f"{SAID}{', '.join(left_out)}."
    if told == "warnings":
        structured[told] = [*(line for line in structured[told] if not line.startswith(SAID)), said]
        return
    before = str(structured.get(told, "")).partition(SAID)[0].strip()
    structured[told] = f"{before} {said}".strip()
