"""What a person has before their eyes: the notes open in Obsidian, and whether one is being edited.

Read from `.obsidian/workspace.json`, whose shape belongs to Obsidian: every shape is tolerated, an
unreadable file means that nothing is known to be open (SPEC §6.3).
"""

from __future__ import annotations

import json
from datetime import datetime

from vault_palace.core.errors import VaultError
from vault_palace.storage.vault import Vault

WORKSPACES = (".obsidian/workspace.json", ".obsidian/workspace-mobile.json")


def open_notes(vault: Vault) -> frozenset[str]:
    """The vault-relative paths that a leaf of the saved workspace shows."""
    found: set[str] = set()
    for name in WORKSPACES:
        try:
            document: object = json.loads(vault.read(name).data)
        except (VaultError, ValueError, RecursionError):
            continue
        waiting = [document]
        while waiting:
            item = waiting.pop()
            if isinstance(item, list):
                waiting.extend(item)
            elif isinstance(item, dict):
                waiting.extend(value for value in item.values() if isinstance(value, dict | list))
                file = item.get("file")
                if isinstance(file, str) and file.endswith(".md"):
                    found.add(file)
    return frozenset(found)


def seconds_since(mtime_ns: int, now: datetime) -> float:
    """How long ago a file was changed by *now*; a time in the future counts as long ago.

    A clock that was set back must not make a vault untouchable.
    """
    age = now.timestamp() - mtime_ns / 1e9
    return age if age >= 0 else float("inf")
