"""`canvas`: the palace as a picture that a person can walk through in Obsidian."""

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
        bool, typer.Option("--force", help="Also replace a canvas that a person changed; it is kept.")
    ] = False,
    vault: commands.Vault = None,
    as_json: commands.Json = False,
) -> int:
    """Draw Palace.canvas: the layers, their rooms, the strongest memories and the links between them.

    Only this command draws it, so it shows the palace as it was then. A canvas that you arranged yourself
    is not replaced.
    """
    screen = Screen.open(as_json=as_json)
    with commands.opened(vault) as palace:
        answer = palace.canvas(force=force)
    screen.show(answer, drawn(answer))
    return 0


def drawn(answer: CanvasAnswer) -> list[Block]:
    """What was done, what is on it, and how to take it back."""
    more = f", {answer['left_out']} weaker ones left out" if answer["left_out"] else ""
    said: list[Block] = [
        Says(f"{answer['path']}: {answer['done']}", GOOD),
        Says(
            f"{answer['memories']} memories{more}, {answer['rooms']} rooms, {answer['links']} links",
            FAINT,
        ),
    ]
    if answer["op"]:
        said.append(Says(f"Take it back: vault-palace undo {answer['op']}", FAINT))
    return said
