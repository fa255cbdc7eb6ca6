"""`Palace.canvas`: the layers and strongest memories as a canvas, drawn when a person asks, and never else.

A canvas that a person arranged is theirs: it is replaced only with their word, the version they had is kept,
and undo brings it back. Its links are nobody's backlinks, for only notes are read for links.
"""

from __future__ import annotations

from vault_palace.core import canvas as canvases
from vault_palace.core.errors import Conflict, NoteChanged, NotFound
from vault_palace.core.model import CANVAS, Status
from vault_palace.services import quiet
from vault_palace.services.answers import CanvasAnswer
from vault_palace.services.house import REDO, House, Put
from vault_palace.storage.vault import Stored

VERB = "canvas"


def draw(house: House, *, force: bool = False) -> CanvasAnswer:
    """Draw the canvas anew and answer what is on it; nothing is written where it would say the same.

    `Conflict` when a person changed the one that is there, unless *force*.
    """
    house.writable()
    house.believed()
    memories = [
        memory
        for memory in house.shelf.memories().values()
        if memory.status is not Status.PROPOSED  # it waits for a person
    ]
    links = {(source, target) for target, sources in house.shelf.sources().items() for source in sources}
    drawn = canvases.draw(memories, links)
    for _ in range(REDO):
        quiet.wait_quiet(house, [CANVAS], body=True)
        before = _there(house)
        done, op = "created", ""
        if before is not None:
            said = before.data.decode("utf-8", "replace")
            if canvases.same(said, drawn.text):
                return _answer(drawn, len(memories), "unchanged", op)
            if not force and not _is_ours(house, before.fingerprint, said):
                raise Conflict(
                    f"{CANVAS} was changed by a person since it was drawn, or is theirs.",
                    hint="Rename it to keep it, or repeat with --force: the version there is kept, and"
                    " undo brings it back.",
                    path=CANVAS,
                )
            done = "drawn anew"
        try:
            with house.locked():
                edit = Put(path=CANVAS, before=before, data=drawn.text.encode("utf-8"))
                op = house.perform(VERB, [edit], why=done)
        except NoteChanged:
            continue
        return _answer(drawn, len(memories), done, op)
    raise Conflict(f"{CANVAS} keeps changing.", hint="Repeat the command.", path=CANVAS)


def _there(house: House) -> Stored | None:
    try:
        return house.vault.read(CANVAS)
    except NotFound:
        return None


def _is_ours(house: House, fingerprint: str, said: str) -> bool:
    """Whether the canvas there is the one that was drawn last; Obsidian may have saved it in other words."""
    marks = [
        step.after
        for entry in house.journal.entries()
        if entry.verb == VERB
        for step in entry.steps
        if step.path == CANVAS and step.after is not None
    ]
    if fingerprint in marks:
        return True
    last = house.versions.get(marks[-1]) if marks else None
    return last is not None and canvases.same(said, last.decode("utf-8", "replace"))


def _answer(drawn: canvases.Drawn, count: int, done: str, op: str) -> CanvasAnswer:
    return CanvasAnswer(
        path=CANVAS,
        done=done,
        memories=drawn.memories,
        left_out=count - drawn.memories,
        rooms=drawn.rooms,
        links=drawn.links,
        op=op,
    )
