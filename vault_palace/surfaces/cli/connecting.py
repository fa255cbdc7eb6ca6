"""`connect`: makes a host of agents start this vault's server, by merging an entry into the host's file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vault_palace.surfaces.cli import app as commands
from vault_palace.surfaces.cli.render import FAINT, GOOD, WARN
from vault_palace.surfaces.cli.screen import Block, Says, Screen
from vault_palace.surfaces.hosts import connect as hosts
from vault_palace.surfaces.hosts.connect import Outcome, Wish, diff

_COLOURS = {"+": GOOD, "-": "red", "@": FAINT}
_DONE = {
    (True, "created"): "Created",
    (True, "changed"): "Changed",
    (False, "created"): "Would create",
    (False, "changed"): "Would change",
}


class Scope(StrEnum):
    """Whose configuration."""

    user = "user"
    project = "project"


@commands.app.command()
def connect(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST", help="claude-code, claude-desktop, cursor, vscode, codex, gemini or opencode."
        ),
    ],
    write: Annotated[bool, typer.Option("--write", help="Do it. Without this it is only shown.")] = False,
    scope: Annotated[
        Scope, typer.Option("--scope", help="Your own configuration, or that of the project in this folder.")
    ] = Scope.user,
    name: Annotated[str, typer.Option("--name", help="What the host calls the server.")] = hosts.NAME,
    tools: Annotated[
        str | None,
        typer.Option("--tools", metavar="SET", help="As for serve: core, all, or names with commas."),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="As for serve: the agent writes nothing.")
    ] = False,
    instructions: Annotated[
        bool,
        typer.Option(
            "--instructions", help="Also tell the habit in a marked block of CLAUDE.md or AGENTS.md."
        ),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an entry of this name that is for something else.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take the entry out again, and the block.")
    ] = False,
    vault: commands.Vault = None,
    as_json: commands.Json = False,
) -> int:
    """Make a host of agents start the server of this vault: show the change to its file, or --write it.

    The file is merged, not replaced: other entries, comments and formatting stay, and a copy of what was
    there is kept beside it. A second run changes nothing.
    """
    from vault_palace.surfaces import config
    from vault_palace.surfaces.hosts import entry
    from vault_palace.surfaces.mcp import texts

    screen = Screen.open(as_json=as_json)
    names = [tool.name for tool in texts.TOOLS if not read_only or tool.offered_read_only]
    wish = Wish(
        host=host,
        scope=scope.value,
        name=name,
        vault=None if remove else _palace(vault),
        arguments=(
            *(("--tools", tools) if tools is not None else ()),
            *(("--read-only",) if read_only else ()),
        ),
        tools=frozenset(names) & frozenset(texts.chosen("all" if tools is None else tools)),
        instructions=instructions,
        replace=replace,
        remove=remove,
        write=write,
    )
    outcome = hosts.connect(wish, config.read_machine(), entry.running())
    screen.show(_document(wish, outcome), _said(wish, outcome))
    return 0


def _palace(vault: str | None) -> Path:
    """The vault's folder as it was named, links and all, once it is known to be a palace."""
    from vault_palace.storage.vault import find_palace
    from vault_palace.surfaces import config

    root = config.read_settings(vault, surface="cli").root
    find_palace(root)
    return root


def _document(wish: Wish, outcome: Outcome) -> dict[str, object]:
    return {
        "host": wish.host,
        "scope": wish.scope,
        "name": wish.name,
        "written": wish.write,
        "entry": outcome.entry,
        "files": [
            {"path": one.path, "done": one.done, "backup": one.backup, "diff": diff(one)}
            for one in outcome.changes
        ],
        "next": list(outcome.next),
        "notes": list(outcome.notes),
    }


def _said(wish: Wish, outcome: Outcome) -> list[Block]:
    blocks: list[Block] = []
    changed = False
    for change in outcome.changes:
        if change.done == "kept":
            blocks.append(Says(f"{change.path}: nothing to change.", FAINT))
            continue
        changed = True
        blocks.append(Says(f"{_DONE[wish.write, change.done]} {change.path}:"))
        blocks += [Says(f"  {line}", _COLOURS[line[0]]) for line in diff(change)]
        if change.backup:
            blocks.append(Says(f"  What was there before: {change.backup}", FAINT))
    blocks += [Says(note, WARN) for note in outcome.notes]
    if changed and not wish.write:
        blocks.append(Says("Nothing was written. Add --write to do this."))
    elif changed:
        blocks += [Says(f"Next: {step}") for step in outcome.next]
    return blocks
