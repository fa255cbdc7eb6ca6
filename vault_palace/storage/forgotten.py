"""Which notes were erased for good, as hashes alone: so that no journal begins to speak of one again.

The list is this machine's state. It tells whether a name is on it to who knows the name, and to nobody else
what the names are.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable

from vault_palace.core.errors import NotFound, VaultError
from vault_palace.core.model import STATE
from vault_palace.storage import files
from vault_palace.storage.vault import Vault
from vault_palace.storage.versions import prepare_state

FILE = "forgotten"


def add(vault: Vault, names: Iterable[str]) -> None:
    """Remember that these were erased: ids, and paths of notes that had none."""
    known = [*_known(vault), *(_mark(name) for name in names)]
    text = "".join(f"{mark}\n" for mark in dict.fromkeys(known) if mark.isascii())
    files.write_state(prepare_state(vault) / FILE, text.encode("ascii"), durable=True)


def holds(vault: Vault, name: str) -> bool:
    """Whether the note of that id, or path, was erased."""
    with contextlib.suppress(VaultError):
        return _mark(name) in _known(vault)
    return False


def _known(vault: Vault) -> list[str]:
    try:
        data = files.read_bytes(vault.locate(f"{STATE}/{FILE}"))
    except NotFound:
        return []
    return data.decode("ascii", "replace").split()


def _mark(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
