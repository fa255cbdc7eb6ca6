"""This machine's name in journals: made once, kept in the user's state directory, never in the vault."""

from __future__ import annotations

import secrets
from pathlib import Path

from vault_palace.core.errors import Exists, StorageFailed, VaultError
from vault_palace.storage import files
from vault_palace.storage.journal import can_name


def machine_id(state_dir: Path | None) -> str:
    """This machine's name in journals: kept in the user's state directory, made on first use."""
    if state_dir is None:
        return "local"
    place = state_dir / "machine-id"
    if known := _named_there(place):
        return known
    made = f"m{secrets.token_hex(6)}"
    make_own_folder(state_dir)
    staged = files.stage(place, made.encode("ascii"), 0o600)
    try:
        # Several agents start at once: whoever comes second takes the first one's name, since nobody else
        # would ever recover what was begun under a name of their own.
        files.put(staged, place, expect=None)
    except Exists:
        files.discard(staged)
        if known := _named_there(place):
            return known
        files.write_state(place, made.encode("ascii"), durable=True)  # what is there is no name
    return made


def make_own_folder(folder: Path) -> None:
    """Make *folder*, of this machine's own state, for its user alone; refused with what to look at."""
    try:
        files.make_folders(folder, 0o700)
    except VaultError as error:
        raise StorageFailed(
            f"This machine's own folder {folder} cannot be made: {error.message}",
            hint="Is VAULT_PALACE_STATE_DIR right?",
            path=str(folder),
        ) from error


def _named_there(place: Path) -> str:
    """The machine's name in the file; empty for a damaged one, under which no journal can have been kept."""
    try:
        name = files.read_bytes(place).decode("ascii").strip()
    except (VaultError, UnicodeDecodeError):
        return ""
    return name if can_name(name) else ""
