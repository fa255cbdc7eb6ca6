"""How the program that runs is found again by a host that knows neither its folder nor its PATH."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from vault_palace.core.errors import NotFound
from vault_palace.surfaces.hosts import entry
from vault_palace.surfaces.hosts.entry import Launcher

ROOT = Path(__file__).resolve().parents[3]


def script(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    return place


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without our script, whose interpreter runs this."""
    place = script(tmp_path / "venv" / "bin" / "python")
    monkeypatch.setattr(sys, "executable", str(place))
    monkeypatch.setattr(sys, "argv", ["/somewhere/vault_palace/__main__.py"])
    return place


def test_the_script_that_runs_is_named_in_full(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = script(tmp_path / "tools" / "vault-palace")
    monkeypatch.chdir(tmp_path / "tools")
    monkeypatch.setattr(sys, "argv", ["./vault-palace", "connect"])

    assert entry.running() == Launcher((str(place),))


def test_a_link_that_an_upgrade_moves_on_stays_in_the_path(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = script(tmp_path / "pipx" / "venvs" / "vault-palace" / "bin" / "vault-palace")
    link = tmp_path / ".local" / "bin" / "vault-palace"
    link.parent.mkdir(parents=True)
    link.symlink_to(place)
    monkeypatch.setattr(sys, "argv", [str(link)])

    assert entry.running() == Launcher((str(link),))


def test_beside_the_interpreter_is_the_script(python: Path) -> None:
    place = script(python.parent / "vault-palace")

    assert entry.running() == Launcher((str(place),))


def test_a_script_that_cannot_be_run_is_passed_over(python: Path) -> None:
    script(python.parent / "vault-palace").chmod(0o644)
    if os.access(python.parent / "vault-palace", os.X_OK):
        pytest.skip("this file system gives everybody the right to run")

    assert entry.running().words[0] == str(python)


def test_a_checkout_is_found_by_its_interpreter_and_its_folder(python: Path) -> None:
    found = entry.running()

    assert found.words == (str(python), "-m", "vault_palace")
    assert found.env == {"PYTHONPATH": str(ROOT)}


def test_an_installed_package_needs_no_folder(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = {"purelib": str(ROOT), "platlib": str(ROOT)}
    monkeypatch.setattr("sysconfig.get_paths", lambda: paths)

    assert entry.running() == Launcher((str(python), "-m", "vault_palace"))


def test_without_an_interpreter_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(sys, "argv", [])

    with pytest.raises(NotFound):
        entry.running()


@pytest.mark.parametrize(
    ("place", "passing"),
    [
        ("/home/you/.cache/uv/archive-v0/k3/bin/vault-palace", True),
        ("/home/you/.cache/uv/environments-v2/k3/bin/python", True),
        ("/home/you/.local/pipx/.cache/k3/bin/vault-palace", True),
        ("/home/you/.local/share/uv/tools/vault-palace/bin/vault-palace", False),
        ("/home/you/.local/bin/vault-palace", False),
        ("/home/you/.cache-free/bin/vault-palace", False),
    ],
)
def test_a_copy_for_one_run_is_known_by_its_path(place: str, passing: bool) -> None:
    assert Launcher((place,)).passing is passing


@pytest.mark.parametrize(
    ("there", "vault"),
    [
        ({"command": "x", "args": ["serve", "--vault", "/v"]}, "/v"),
        ({"command": ["x", "serve", "--vault=/v"]}, "/v"),
        ({"command": "x", "args": ["serve", "--vault"]}, None),
        ({"command": "x", "args": ["--vault", "/v"]}, None),
        ({"command": "x", "args": ["serve"], "env": {"VAULT_PALACE_VAULT": "/v"}}, "/v"),
        ({"command": ["x", "serve"], "environment": {"VAULT_PALACE_VAULT": "/v"}}, "/v"),
        ({"command": "x", "args": ["serve"], "env": {"VAULT_PALACE_VAULT": 5}}, None),
        ({"command": 5, "args": [5, None]}, None),
        (None, None),
        ([], None),
    ],
)
def test_the_vault_of_an_entry_is_read(there: Any, vault: str | None) -> None:
    assert entry.vault_of(there) == vault
