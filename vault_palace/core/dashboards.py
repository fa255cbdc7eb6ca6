"""The dashboards of a vault as texts: each a note with a Dataview query, and a `.base` with the same rows.

They are made from one table, so that what guards against broken notes is said once for all of them.
"""

from __future__ import annotations

import textwrap

from vault_palace.core.dashboardblocks import decays_here, fate
from vault_palace.core.dashboardlines import Dashboard, Words
from vault_palace.core.dashboardtable import boards
from vault_palace.core.model import SYSTEM

FOLDER = f"{SYSTEM}/Dashboards"


def texts(folder: str = "") -> dict[str, str]:
    """Every dashboard's files by path in the palace.

    *folder*: where the palace lies in a larger vault, with `/` between folders; empty where it is a vault of
    its own. Obsidian's queries name folders from the root of the vault that is open.
    """
    words = Words(folder)
    found: dict[str, str] = {}
    for board in boards(words):
        found[f"{FOLDER}/{board.name}.md"] = _note(board, words)
        found[f"{FOLDER}/{board.name}.base"] = _base(board)
    found[f"{FOLDER}/Blocks to paste.md"] = _blocks(words)
    return found


def names() -> tuple[str, ...]:
    """The dashboards that have a query and a Base, in the order in which they are to be read."""
    return tuple(board.name for board in boards(Words("")))


# -- the texts ----------------------------------------------------------------------------------------------


_TWINS = (
    "This table needs the community plugin Dataview; the one above needs no plugin. Both count from the date"
    " of the machine that shows them."
)


def _note(board: Dashboard, words: Words) -> str:
    policy = f"[[{words.policy}|Policy]]"
    twin = board.twin.format(policy=policy)
    lines = [
        "---\ncssclasses:\n  - palace-wide\n---\n",
        f"# {board.name}\n",
        f"{_wrapped(board.opening)}\n",
        f"![[{board.name}.base]]\n",
        "## The same with Dataview\n",
        _wrapped(f"{_TWINS} {twin}") + "\n",
        query(board),
        *((board.more,) if board.more else ()),
    ]
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    """*text* in lines that are easy to read as they stand, paragraph by paragraph."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    return "\n\n".join(
        textwrap.fill(part, 104, break_long_words=False, break_on_hyphens=False) for part in paragraphs
    )


def query(board: Dashboard) -> str:
    """The DQL block of *board*."""
    columns = ",\n".join(f'  {column.query} AS "{column.heading}"' for column in board.columns)
    return "\n".join(("```dataview", "TABLE WITHOUT ID", columns, *board.query, "```")) + "\n"


def _base(board: Dashboard) -> str:
    """The `.base` file of *board*, in YAML whose texts are all in single quotes."""
    shown = board.rows or board.columns
    lines = ["filters:", "  and:", *(f"    - {_quoted(one)}" for one in board.filters)]
    if board.formulas:
        lines += ["formulas:", *(f"  {name}: {_quoted(formula)}" for name, formula in board.formulas)]
    lines.append("properties:")
    for column in shown:
        lines += [f"  {column.base}:", f"    displayName: {column.heading}"]
    lines += ["views:", "  - type: table", f"    name: {board.view}"]
    if board.group:
        lines += ["    groupBy:", f"      property: {board.group}", "      direction: ASC"]
    lines += ["    order:", *(f"      - {column.base}" for column in shown), "    sort:"]
    for prop, direction in board.sort:
        lines += [f"      - property: {prop}", f"        direction: {direction}"]
    if board.summaries:
        lines += ["    summaries:", *(f"      {prop}: {name}" for prop, name in board.summaries)]
    if board.limit:
        lines.append(f"    limit: {board.limit}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_COPY = (
    "Copy a block into a note of your own. Those that say `base` need no plugin, those that say `dataview`"
    " need the community plugin Dataview. The program never puts one into a note."
)


def _blocks(words: Words) -> str:
    """Small blocks for a person's own notes; shown here as text, so that nothing runs in this note."""
    next_move, here = fate(words), decays_here(words)
    parts = [
        "---\ncssclasses:\n  - palace-wide\n---\n\n# Blocks to paste\n",
        _wrapped(_COPY) + "\n",
        "## This note's fate\n\nFor a memory: what happens to it next, and when.\n",
        _shown(_embedded(next_move)),
        _shown(query(next_move)),
        (
            "## Decays here\n\nFor a note in a room: what in this folder, and below it, goes to the"
            " archive soon.\n"
        ),
        _shown(_embedded(here)),
        _shown(query(here)),
    ]
    return "\n".join(parts)


def _shown(block: str) -> str:
    return f"````text\n{block}````\n"


def _embedded(board: Dashboard) -> str:
    return f"```base\n{_base(board)}```\n"
