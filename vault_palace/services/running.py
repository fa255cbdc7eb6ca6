"""The servers that run on a vault, as each says of itself in a file of this machine's state folder.

`<state>/running/<vault>/<name>.json`, beside a lock that is held while the process lives. What a dead one
left is removed by whoever looks. Nothing is in the vault, nothing depends on it, and every file is small.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from vault_palace.core.errors import VaultError
from vault_palace.services.answers import ServerAnswer
from vault_palace.services.house import House
from vault_palace.storage import files
from vault_palace.storage.presence import Presence, is_present

VERSION = 1
MOST_BYTES = 128 * 1024
MOST_FILES = 256  # that one look takes in; more servers than that are not told of
_FOLDER = "running"

Facts = dict[str, object]


def folder_of(house: House) -> Path | None:
    """Where the servers of this vault say what they do; None where there is no state folder."""
    state = house.settings.state_dir
    if state is None:
        return None
    root = str(house.vault.root).encode("utf-8", "surrogatepass")
    return state / _FOLDER / hashlib.sha256(root).hexdigest()[:16]


class Board:
    """One server's file. `put` writes what differs from last time, whole or not at all."""

    def __init__(self, house: House) -> None:
        self._folder = folder_of(house)
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._presence: Presence | None = None
        self._last = b""

    def put(self, facts: Mapping[str, object], at: str) -> bool:
        """Say *facts*; whether anything was written. A disk that refuses is borne, and asked again."""
        if self._folder is None:
            return False
        said = {"v": VERSION, "pid": os.getpid(), **facts}
        data = json.dumps(said, ensure_ascii=True, sort_keys=True).encode("ascii")
        if data == self._last or len(data) > MOST_BYTES:
            return False
        document = json.dumps({**said, "at": at}, ensure_ascii=True, sort_keys=True)
        try:
            if self._presence is None:
                presence = Presence(self._folder, self._name)
                presence.begin()
                self._presence = presence
            files.write_state(self._folder / f"{self._name}.json", document.encode("ascii"))
        except (VaultError, OSError):
            return False
        self._last = data
        return True

    def end(self) -> None:
        """This server ends: nothing is left of what it said."""
        if self._folder is None or self._presence is None:
            return
        with contextlib.suppress(VaultError):
            files.discard(self._folder / f"{self._name}.json")
        self._presence.end()
        self._presence = None


def servers(house: House) -> list[Facts]:
    """What the living servers of this vault say of themselves, by process id."""
    folder = folder_of(house)
    found = list(_alive(folder)) if folder is not None else []
    return sorted(found, key=lambda facts: str(facts["pid"]).zfill(12))


def _alive(folder: Path) -> Iterator[Facts]:
    """What the living say; what the dead left, half-written files too, is removed on the way."""
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return
    told, known = 0, set(entries)
    for entry in entries:
        name = entry.removeprefix(".").partition(".")[0]
        if entry.endswith(".alive") and f"{name}.json" in known:
            continue  # looked at with its file
        if not is_present(folder, name):
            with contextlib.suppress(VaultError):
                files.discard(folder / entry)
        elif entry == f"{name}.json" and told < MOST_FILES:
            facts = _read(folder / entry)
            if facts is not None:
                told += 1
                yield facts


def _read(place: Path) -> Facts | None:
    """What the file says; None for one that is damaged, of another version, or larger than we write."""
    try:
        if os.stat(place).st_size > MOST_BYTES * 2:
            return None
        facts = json.loads(files.read_bytes(place))
    except (VaultError, OSError, ValueError, RecursionError):
        return None
    whole = isinstance(facts, dict) and facts.get("v") == VERSION and isinstance(facts.get("pid"), int)
    return facts if whole else None


def shown(facts: Facts) -> ServerAnswer:
    """What a server says of itself as an answer holds it; what is of the wrong kind is left out."""
    counts = _table(facts.get("agents"))
    calls = {row: seen for row, seen in _table(facts.get("calls")).items() if isinstance(seen, dict)}
    pid = facts["pid"]
    return ServerAnswer(
        pid=pid if isinstance(pid, int) else 0,
        at=str(facts.get("at", "")),
        started=str(facts.get("started", "")),
        version=str(facts.get("version", "")),
        transport=str(facts.get("transport", "")),
        read_only=facts.get("read_only") is True,
        agents={agent: count for agent, count in counts.items() if isinstance(count, int)},
        calls=calls,
        index=_table(facts.get("index")),
        watch=_table(facts.get("watch")),
    )


def _table(value: object) -> dict[str, object]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}
