"""The generated block of `_System/Journal.md`: the newest operations as a person reads them, by day.

Pure and bounded: the same operations give the same text. The journals themselves hold every one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from vault_palace.core.dates import show_day
from vault_palace.core.palacemap import cell_link, cell_text

MOST = 60  # operations shown
_LONGEST_WHY, _LONGEST_SESSION, _LONGEST_NAME = 120, 40, 100
_HEAD = ("Time", "What", "Note", "Why", "Session", "Operation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One operation. `at` is zone-less, in the vault's zone; `link` is ready, or empty for a note gone."""

    at: datetime
    verb: str
    link: str = ""
    name: str = ""  # shown where there is no link
    others: int = 0  # more notes that it changed
    why: str = ""
    session: str = ""
    op: str = ""


def block(lines: Iterable[Line], *, left: bool = False) -> str:
    """What stands between the markers: *lines*, newest first, a table a day. *left*: there are older ones."""
    shown = list(lines)
    parts: list[str] = []
    for day, group in groupby(shown[:MOST], key=lambda line: line.at.date()):
        rows = [_row(line) for line in group]
        head = [f"### {show_day(day)}", "", _joined(_HEAD), _joined("---" for _ in _HEAD)]
        parts.append("\n".join([*head, *rows]))
    if not parts:
        return "Nothing was done yet.\n"
    if left or len(shown) > MOST:
        parts.append(
            "Older ones: `vault-palace history NOTE`. To take one back: `vault-palace undo OPERATION`."
        )
    else:
        parts.append("To take one back: `vault-palace undo OPERATION`.")
    return "\n\n".join(parts) + "\n"


def _row(line: Line) -> str:
    note = cell_link(line.link) if line.link else cell_text(line.name, _LONGEST_NAME)
    if line.others:
        note = f"{note} and {line.others} more".strip()
    return _joined(
        (
            f"{line.at:%H:%M}",
            cell_text(line.verb, _LONGEST_SESSION),
            note,
            cell_text(line.why, _LONGEST_WHY),
            cell_text(line.session, _LONGEST_SESSION),
            cell_text(line.op, _LONGEST_SESSION),
        )
    )


def _joined(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
