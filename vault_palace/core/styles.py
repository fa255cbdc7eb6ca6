"""The items of a memory's `cssclasses` by which the snippet colours it: its layer, density and fate.

CSS can read no property, only classes; Obsidian puts those of `cssclasses` on the note. The list is a
person's: only the items named here are the program's, and a list whose items do not stand one a line is
left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vault_palace.core import frontmatter
from vault_palace.core.errors import MalformedNote
from vault_palace.core.memory import means_pinned
from vault_palace.core.model import CSS_CLASSES, STYLES, Layer, Status, Value

LEVELS = 10  # a density of 1 is ten tenths


def wanted(values: Mapping[str, Value]) -> tuple[str, ...]:
    """The items for a note with these properties, in the order in which a fresh list has them."""
    status, layer = _word(values.get("status")), _word(values.get("layer"))
    found = []
    if status == Status.ARCHIVED:
        found.append("palace-archive")
    elif layer in set(Layer):
        found.append(f"palace-{layer}")
    level = _level(values.get("density"))
    if level is not None:
        found.append(f"palace-density-{level}")
    if means_pinned(values.get("pinned")):
        found.append("palace-pinned")
    if status in (Status.DECAYING, Status.PROPOSED):
        found.append(f"palace-{status}")
    if values.get("superseded_by"):
        found.append("palace-superseded")
    return tuple(found)


def fitted(items: Sequence[Value], ours: Sequence[str]) -> list[Value]:
    """*items* with *ours* as the only ones of the program's; all others stay in their order.

    One of ours that no longer holds gives its place to the one that does.
    """
    there = {item for item in items if isinstance(item, str)}
    coming = [item for item in ours if item not in there]
    made: list[Value] = []
    for item in items:
        if not is_ours(item):
            made.append(item)
        elif item in ours:
            if item not in made:
                made.append(item)
        else:
            heir = next((one for one in coming if _group(one) == _group(str(item))), None)
            if heir is not None:
                coming.remove(heir)
                made.append(heir)
    return [*made, *coming]


def is_ours(item: Value) -> bool:
    """Whether the program puts such an item into `cssclasses`, and takes it out again."""
    return isinstance(item, str) and item in STYLES


def out_of_step(values: Mapping[str, Value], on: bool) -> bool:
    """Whether a note with these properties lacks items, or has others than it should have."""
    there = values.get(CSS_CLASSES)
    if there is not None and not isinstance(there, list):
        return False  # a single text, which is left as it is
    items = there or []
    return fitted(items, wanted(values) if on else ()) != items


def styled(text: str, on: bool, *, bare_dates: bool = True) -> str:
    """*text* with its note's items as its properties want them, or without any where *on* is false."""
    if not on and "palace-" not in text:
        return text
    header = frontmatter.read(text)
    if not header.present or header.problem is not None or not out_of_step(header.values, on):
        return text
    there = header.values.get(CSS_CLASSES)
    items = there if isinstance(there, list) else []
    try:
        made = fitted(items, wanted(header.values) if on else ())
        return frontmatter.patch_items(text, CSS_CLASSES, made, bare_dates=bare_dates)
    except MalformedNote:
        return text  # written in a way that is the person's own


def _word(value: Value) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""


def _level(value: Value) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return math.floor(value * LEVELS + 0.5)


def _group(item: str) -> str:
    if item.startswith("palace-density-"):
        return "density"
    return "layer" if item.removeprefix("palace-") in {*Layer, "archive"} else item
