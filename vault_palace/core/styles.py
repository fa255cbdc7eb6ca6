"""The classes by which a snippet can show a memory's layer, density and fate: items of `cssclasses`.

CSS sees no property but the classes that Obsidian gives the note's view. The list is the person's: only items
of ours come and go, and one that is not written plainly, item by item, is left as it is.
"""

from __future__ import annotations

import re

from vault_palace.core.frontmatter import DELETE, Change, Header
from vault_palace.core.model import Memory, Status, Value

KEY = "cssclasses"
_OURS = re.compile(
    r"palace-(?:shallow|sediment|bedrock|archive|density-\d+|pinned|decaying|proposed|superseded)"
)
_ITEM = re.compile(r"\s*-\s+[A-Za-z][\w-]*")
_FATES = {Status.DECAYING: "decaying", Status.PROPOSED: "proposed"}


def classes(memory: Memory, *, archived: bool, superseded: bool) -> list[str]:
    """Our items for *memory*, in a fixed order; the density is told in tenths."""
    found = ["archive" if archived else memory.layer.value]
    if memory.density is not None:
        found.append(f"density-{int(memory.density * 10 + 0.5)}")
    if memory.pinned:
        found.append("pinned")
    if not archived and memory.status in _FATES:
        found.append(_FATES[memory.status])
    if superseded:
        found.append("superseded")
    return [f"palace-{one}" for one in found]


def ours(value: object) -> list[str]:
    """The items of ours in a `cssclasses` of this value."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str) and _OURS.fullmatch(item)]


def change(text: str, header: Header, wanted: list[str]) -> dict[str, Change]:
    """What to write in the note *text* so that `cssclasses` holds *wanted*, and none else of ours.

    Empty where nothing is to be written, or where the list is in a form that is the person's.
    """
    there = header.values.get(KEY)
    if there is None or there == []:
        return {KEY: [*wanted]} if wanted else {}
    if not isinstance(there, list) or not _is_plain(text, header, len(there)):
        return {}  # not ours to rewrite
    items = [str(item) for item in there]
    theirs = [item for item in items if not _OURS.fullmatch(item)]
    if theirs + wanted == items:
        return {}
    items_now: list[Value] = [*theirs, *wanted]
    return {KEY: items_now or DELETE}


def _is_plain(text: str, header: Header, count: int) -> bool:
    """Whether the list stands in lines of its own, without quotes, comments or names to point at."""
    first = header.lines[KEY]
    lines = [line.rstrip() for line in text.split("\n")[first - 1 : first + count]]
    return lines[0] == f"{KEY}:" and all(_ITEM.fullmatch(line) for line in lines[1:]) and len(lines) > count
