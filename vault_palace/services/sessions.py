"""When an agent was last told what people did: by the name of its client, in this machine's own state folder.

Losing it loses nothing: who is not known is told of the last seven days. Nothing of it is in the vault.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from vault_palace.core.errors import VaultError
from vault_palace.services import caller
from vault_palace.services.house import House
from vault_palace.storage import files
from vault_palace.storage.records import show, to_time

UNKNOWN = timedelta(days=7)
# A client that is one session for ever, as a desktop program may be, begins a new one after this.
SITTING = timedelta(hours=12)
MOST_AGENTS = 64


def since(house: House) -> datetime:
    """Up to when the calling agent was told before this session, which is remembered for the next one.

    Asked again in the same session it is the same moment. An agent without a name is never remembered.
    """
    who, now = caller.current(house.settings), house.now()
    fallback = now - UNKNOWN
    place = _place(house)
    if not who.agent or place is None:
        return fallback
    known = _read(place)
    mine = known.get(who.agent, {})
    at, before = to_time(mine.get("at", "")), to_time(mine.get("before", ""))
    if at is not None and at > now:
        at = None  # the clock was set back
    if at is not None and before is not None and mine.get("session") == who.session and now - at < SITTING:
        return min(before, now)
    before = fallback if at is None else at
    known.pop(who.agent, None)
    known[who.agent] = {"session": who.session, "at": show(now), "before": show(before)}
    _write(place, dict(list(known.items())[-MOST_AGENTS:]))
    return before


def _place(house: House) -> Path | None:
    folder = house.settings.state_dir
    if folder is None:
        return None
    root = str(house.vault.root).encode("utf-8", "surrogatepass")
    return folder / "agents" / f"{sha256(root).hexdigest()[:16]}.json"


def _read(place: Path) -> dict[str, dict[str, str]]:
    """What is remembered by name, who came last at the end; a damaged file holds nothing."""
    try:
        found = json.loads(files.read_bytes(place))
    except (VaultError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: {key: value for key, value in facts.items() if isinstance(value, str)}
        for name, facts in found.items()
        if isinstance(facts, dict)
    }


def _write(place: Path, known: dict[str, dict[str, str]]) -> None:
    # Of two processes at the same time one may forget what the other remembers: it is told a little more.
    with suppress(VaultError):
        files.make_folders(place.parent, 0o700, durable=False)
        files.write_state(place, json.dumps(known, ensure_ascii=True).encode("ascii"))
