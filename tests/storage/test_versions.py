"""Every replaced version comes back, until age, size or a person says otherwise."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.palace import everything
from vault_palace.core.errors import NotFound, PathViolation, StorageFailed
from vault_palace.storage import files
from vault_palace.storage.vault import Vault
from vault_palace.storage.versions import Versions

DAY = 86400


def _place(vault: Path, fingerprint: str) -> Path:
    return vault / ".palace" / "versions" / fingerprint[:2] / f"{fingerprint}.z"


@given(st.binary())
def test_what_is_kept_comes_back(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    versions = Versions(Vault(tmp_path_factory.mktemp("v")))

    fingerprint = versions.keep(data)

    assert versions.get(fingerprint) == data
    assert fingerprint == files.fingerprint(data)


def test_keeping_twice_writes_once(vault: Path) -> None:
    versions = Versions(Vault(vault))
    fingerprint = versions.keep(b"words", durable=True)
    os.utime(_place(vault, fingerprint), (1, 1))
    inode = _place(vault, fingerprint).stat().st_ino

    versions.keep(b"words")

    assert _place(vault, fingerprint).stat().st_ino == inode
    assert _place(vault, fingerprint).stat().st_mtime > 1


def test_versions_are_their_owner_s_alone(vault: Path) -> None:
    """RC-11: under any umask, and invisible to git."""
    before = os.umask(0o022)
    try:
        fingerprint = Versions(Vault(vault)).keep(b"secret")
    finally:
        os.umask(before)

    place = _place(vault, fingerprint)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    for folder in (place.parent, place.parent.parent, vault / ".palace"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (vault / ".palace" / ".gitignore").read_text() == "*\n"


def test_a_version_is_written_again_after_a_power_failure_emptied_it(vault: Path) -> None:
    versions = Versions(Vault(vault))
    fingerprint = versions.keep(b"words")
    _place(vault, fingerprint).write_bytes(b"")

    versions.keep(b"words")

    assert versions.get(fingerprint) == b"words"


def test_a_version_never_kept_is_not_found(vault: Path) -> None:
    versions = Versions(Vault(vault))

    assert not versions.has("0" * 64)
    with pytest.raises(NotFound):
        versions.get("0" * 64)


@pytest.mark.parametrize("damage", [b"", b"junk", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_a_damaged_version_is_never_handed_out(vault: Path, damage: bytes) -> None:
    versions = Versions(Vault(vault))
    fingerprint = versions.keep(b"words")
    _place(vault, fingerprint).write_bytes(damage)

    assert not versions.has(fingerprint)
    with pytest.raises(StorageFailed, match="damaged"):
        versions.get(fingerprint)


@pytest.mark.parametrize("fingerprint", ["../../01_Shallow/a", "", "ab/../../x"])
def test_a_fingerprint_is_no_path(vault: Path, fingerprint: str) -> None:
    with pytest.raises((PathViolation, NotFound)):
        Versions(Vault(vault)).get(fingerprint)


def test_a_version_says_when_it_was_kept(vault: Path) -> None:
    versions = Versions(Vault(vault))
    fingerprint = versions.keep(b"words")
    os.utime(_place(vault, fingerprint), (50 * DAY,) * 2)

    assert versions.kept_at(fingerprint) == 50 * DAY
    assert versions.kept_at("0" * 64) is None


def test_forgetting_erases_a_version(vault: Path) -> None:
    versions = Versions(Vault(vault))
    fingerprint = versions.keep(b"words")

    assert versions.forget(fingerprint)
    assert not versions.forget(fingerprint)
    assert not versions.has(fingerprint)


def test_pruning_drops_what_is_too_old(vault: Path) -> None:
    versions = Versions(Vault(vault))
    old, edge, new = (versions.keep(word) for word in (b"old", b"edge", b"new"))
    for fingerprint, days in ((old, 91), (edge, 90), (new, 0)):
        os.utime(_place(vault, fingerprint), (100 * DAY - days * DAY,) * 2)

    pruned = versions.prune(90, 500, 100 * DAY)

    assert [versions.has(one) for one in (old, edge, new)] == [False, True, True]
    assert pruned.count == 1


def test_pruning_drops_the_oldest_until_the_rest_fits(vault: Path) -> None:
    versions = Versions(Vault(vault))
    kept = [versions.keep(os.urandom(400_000)) for _ in range(5)]
    for days, fingerprint in enumerate(kept):
        os.utime(_place(vault, fingerprint), ((50 + days) * DAY,) * 2)

    pruned = versions.prune(90, 1, 60 * DAY)

    assert [versions.has(one) for one in kept] == [False, False, False, True, True]
    assert pruned.count == 3
    assert pruned.size > 1_200_000


def test_pruning_spares_what_an_unfinished_operation_needs(vault: Path) -> None:
    versions = Versions(Vault(vault))
    needed = versions.keep(b"needed")
    os.utime(_place(vault, needed), (1, 1))

    versions.prune(1, 0, 100 * DAY, spare={needed})

    assert versions.has(needed)


def test_pruning_clears_what_a_killed_run_left(vault: Path) -> None:
    versions = Versions(Vault(vault))
    fingerprint = versions.keep(b"words")
    left = _place(vault, fingerprint).with_name(files.temp_name("x.z"))
    left.write_bytes(b"half")
    (vault / ".palace" / "versions" / "stray.txt").write_text("someone's")

    versions.prune(90, 500, 0.0)

    assert not left.exists()
    assert (vault / ".palace" / "versions" / "stray.txt").exists()
    assert versions.has(fingerprint)


def test_pruning_nothing_creates_nothing(vault: Path) -> None:
    seen = everything(vault)

    assert Versions(Vault(vault)).prune(90, 500, 0.0).count == 0
    assert everything(vault) == seen
    assert not (vault / ".palace").exists()


def test_a_state_folder_that_is_a_link_is_refused(vault: Path, tmp_path: Path) -> None:
    """FS-09"""
    (tmp_path / "elsewhere").mkdir()
    (vault / ".palace").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PathViolation):
        Versions(Vault(vault)).keep(b"words")

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_versions_that_hold_a_word_are_told_newest_first(vault: Path) -> None:
    versions = Versions(Vault(vault))
    old, new = versions.keep(b"a word, long ago"), versions.keep(b"the word again")
    versions.keep(b"something else")
    os.utime(_place(vault, old), (1, 1))

    assert versions.holding(b"word") == [new, old]


def test_a_damaged_version_may_hold_any_word(vault: Path) -> None:
    versions = Versions(Vault(vault))
    damaged = versions.keep(b"something else")
    _place(vault, damaged).write_bytes(b"no compressed data")

    assert versions.holding(b"word") == [damaged]
