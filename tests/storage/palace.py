"""A small palace for the storage tests, written with a person's pen."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vault_palace.core.model import STATE
from vault_palace.storage.journal import Journal
from vault_palace.storage.operations import Operation, Step
from vault_palace.storage.vault import Vault
from vault_palace.storage.versions import Versions

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class House:
    """A vault with its journal and versions, as the services hold them."""

    def __init__(self, root: Path, machine: str = "here") -> None:
        self.root = root
        self.vault = Vault(root)
        self.journal = Journal(self.vault, machine, clock=lambda: NOW)
        self.versions = Versions(self.vault)

    @property
    def parts(self) -> tuple[Vault, Journal, Versions]:
        return self.vault, self.journal, self.versions


def operation(*steps: Step, id: str = "op-1", verb: str = "write") -> Operation:
    return Operation(id=id, verb=verb, at=NOW, session="test", why="a test", steps=steps)


def pen(notes: Mapping[str, bytes]) -> Callable[[Path], None]:
    """What a person wrote: a function that puts these notes into a folder."""

    def write(root: Path) -> None:
        for layer in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
            (root / layer).mkdir(parents=True, exist_ok=True)
        for path, data in notes.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

    return write


def notes(root: Path) -> dict[str, bytes]:
    """Every file of the vault, temporary ones too, without the program's own state and journal."""
    found = {}
    for folder, below, names in os.walk(root):
        if Path(folder) == root:
            below[:] = [name for name in below if name != STATE]
        if Path(folder) == root / "_System" / "journal":
            continue
        for name in names:
            place = Path(folder) / name
            found[place.relative_to(root).as_posix()] = place.read_bytes()
    return found


def everything(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and time, to say that nothing at all was changed."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            place = Path(folder) / name
            found[place.relative_to(root).as_posix()] = (place.read_bytes(), place.stat().st_mtime_ns)
    return found


def let_in(root: Path) -> None:
    """Open the folders above *root* that pytest keeps to itself to the one who `as_person` is."""
    for above in (root, *root.parents):
        if any(part.startswith("pytest-of-") for part in above.parts):
            above.chmod(0o755)


def as_person(act: Callable[[], object]) -> None:
    """Run *act* in a child whose permissions count: root's own are never refused."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    child = os.fork()
    if child == 0:
        code = 3
        try:
            if os.geteuid() == 0:
                os.setegid(65534)
                os.seteuid(65534)
            act()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
