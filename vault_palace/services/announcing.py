"""What was announced: the notes that the automatic run may let go, for the map named them before (SPEC §5).

Each machine remembers what its own keeper put into the map: by the note's id since which day, and on which
day the note was last touched then, so that what falls due anew is announced anew. What the map lists no more
is forgotten. It is derived data: damaged, nothing was announced, and what is due waits for a day.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import NamedTuple

from vault_palace.core.errors import VaultError
from vault_palace.core.model import Decision, Memory
from vault_palace.services.house import House
from vault_palace.storage import files
from vault_palace.storage.versions import prepare_state

STATE_FILE = "announced.json"
STATE_VERSION = 1


class _Announced(NamedTuple):
    """Since which day a note is announced, and the day of its last touch as that was then."""

    on: date
    touched: date


def announce(house: House, decisions: Iterable[Decision]) -> None:
    """From today on, these are announced, and no others: it is what the map names now."""
    if house.read_only():
        return
    today, known = house.today(), _known(house)
    touched = {one.path: one.before.last_touched.date() for one in decisions}
    listed: dict[str, _Announced] = {}
    for note in house.shelf.ask(lambda cache: cache.at(touched)) if touched else ():
        before = known.get(note.id)
        same = before is not None and before.touched == touched[note.path]
        on = before.on if before is not None and same else today
        if note.id:
            listed[note.id] = _Announced(min(on, today), touched[note.path])  # also if a clock was set back
    if listed == known:
        return
    document = {
        "v": STATE_VERSION,
        "notes": {key: [one.on.isoformat(), one.touched.isoformat()] for key, one in listed.items()},
    }
    data = json.dumps(document, ensure_ascii=False, sort_keys=True).encode("utf-8")
    with suppress(VaultError):  # a full disk: what is due waits until it can be remembered
        files.write_state(prepare_state(house.vault) / STATE_FILE, data)


def unannounced(house: House, memories: Mapping[str, Memory]) -> set[str]:
    """The paths of those *memories*, by path, that were not announced on an earlier day as they are now."""
    today, found = house.today(), set(memories)
    for key, one in _known(house).items():
        if one.on < today:
            paths = (path for path in house.shelf.paths_of_id(key) if path in memories)
            found -= {path for path in paths if memories[path].last_touched.date() == one.touched}
    return found


def _known(house: House) -> dict[str, _Announced]:
    """What is remembered; nothing of a state that is absent or damaged."""
    try:
        document = json.loads(files.read_bytes(house.vault.state / STATE_FILE))
    except (VaultError, ValueError, RecursionError):
        return {}
    notes = document.get("notes") if isinstance(document, dict) else None
    if not isinstance(notes, dict) or document.get("v") != STATE_VERSION:
        return {}
    found = {key: _from_state(saved) for key, saved in notes.items()}
    return {key: one for key, one in found.items() if one is not None}


def _from_state(saved: object) -> _Announced | None:
    match saved:
        case [str(on), str(touched)]:
            with suppress(ValueError):
                return _Announced(date.fromisoformat(on), date.fromisoformat(touched))
    return None
