"""`vault-palace canvas`: the palace as an Obsidian canvas, made on request."""

from __future__ import annotations

from typing import Annotated

import typer

from vault_palace.services.answers import CanvasAnswer
from vault_palace.surfaces.cli import app as commands
from vault_palace.surfaces.cli.render import FAINT, GOOD
from vault_palace.surfaces.cli.screen import Block, Says, Screen


@commands.app.command()
def canvas(
    force: Annotated[
        bool, typer.Option("--force", help="Also over one that you made or changed; its version is kept.")
    ] = False,
    vault: commands.Vault = None,
    as_json: commands.Json = False,
) -> int:
    """Draw Palace.canvas: the layers, their rooms, the strongest memories and the links between them.

    Nothing keeps it in step: repeat the command when you want it anew.
    """
    screen = Screen.open(as_json=as_json)
    with commands.opened(vault) as palace:
        answer = palace.canvas(force=force)
    screen.show(answer, drawn(answer))
    return 0


def drawn(answer: CanvasAnswer) -> list[Block]:
    """What was drawn."""
    shown = f"{answer['memories']} memories, {answer['links']} links between them"
    if not answer["written"]:
        return [Says(f"{answer['path']} is as it would be drawn: {shown}", FAINT)]
    return [Says(f"{answer['path']}: {shown}", GOOD)]
