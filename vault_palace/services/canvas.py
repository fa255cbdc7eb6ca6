"""`Palace.canvas`: the palace as a canvas, made when somebody asks for it and never by itself."""

from __future__ import annotations

from vault_palace.core import canvas, places
from vault_palace.core.canvas import Card
from vault_palace.core.errors import Conflict, Exists, NoteChanged, NotFound
from vault_palace.core.model import Layer
from vault_palace.services.answers import CanvasAnswer
from vault_palace.services.house import REDO, House, Put

CANVAS = "Palace.canvas"
MOST = 20  # cards of one layer


def draw(house: House, *, force: bool = False) -> CanvasAnswer:
    """Write the canvas, and say how many memories and links it shows.

    One that a person made or changed is kept: `Exists`, unless *force*; the version replaced is kept then.
    """
    house.writable()
    house.refresh(if_older=0)
    cards = {
        layer: [
            Card(memory.path, places.room_of(memory.path))
            for memory in house.shelf.ask(lambda cache, layer=layer: cache.strongest(layer.value, MOST))  # type: ignore[misc]
        ]
        for layer in Layer
    }
    shown = {card.path for group in cards.values() for card in group}
    links = {
        (path, target)
        for path in shown
        for target in house.shelf.ask(lambda cache, path=path: cache.linked_from(path))  # type: ignore[misc]
        if target in shown
    }
    data = canvas.draw(cards, links).encode("utf-8")
    for _ in range(REDO):
        try:
            before = house.vault.read(CANVAS)
        except NotFound:
            before = None
        answer = CanvasAnswer(path=CANVAS, memories=len(shown), links=len(links), written=True)
        if before is not None and before.data == data:
            return CanvasAnswer(**{**answer, "written": False})
        if before is not None and not force and not house.journal.accounts_for(before.fingerprint):
            raise Exists(
                f"{CANVAS} is there, and was made or changed by a person.",
                hint="Rename it, or repeat with --force: the version that is replaced is kept.",
                path=CANVAS,
            )
        try:
            with house.locked():
                house.perform("canvas", [Put(path=CANVAS, before=before, data=data)], why="drawn")
        except (NoteChanged, Exists):
            continue
        return answer
    raise Conflict(f"{CANVAS} keeps changing.", hint="Repeat the command.", path=CANVAS)
