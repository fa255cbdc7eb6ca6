"""The list of erased notes answers for a name, and holds none."""

from __future__ import annotations

from pathlib import Path

from vault_palace.storage import forgotten
from vault_palace.storage.vault import Vault


def test_an_erased_name_is_held_and_others_are_not(vault: Path) -> None:
    forgotten.add(Vault(vault), ["mem_1"])
    forgotten.add(Vault(vault), ["01_Shallow/é.md"])

    assert forgotten.holds(Vault(vault), "mem_1")
    assert forgotten.holds(Vault(vault), "01_Shallow/é.md")
    assert not forgotten.holds(Vault(vault), "mem_2")


def test_no_name_stands_in_the_list(vault: Path) -> None:
    forgotten.add(Vault(vault), ["mem_secret"])

    assert b"secret" not in (vault / ".palace" / forgotten.FILE).read_bytes()


def test_a_vault_where_nothing_was_erased_has_no_list(vault: Path) -> None:
    assert not forgotten.holds(Vault(vault), "mem_1")
    assert not (vault / ".palace").exists()
