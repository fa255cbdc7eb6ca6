"""Machines and wishes for the tests of hosts; nothing here is the real home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vault_palace.surfaces.hosts.catalogue import HOSTS, Machine
from vault_palace.surfaces.hosts.connect import Outcome, Wish, connect
from vault_palace.surfaces.hosts.entry import Launcher

LAUNCHER = Launcher(("/opt/tools/bin/vault-palace",))
VAULT = Path("/home/you/Väult")
SCOPES = [(host.name, scope) for host in HOSTS.values() for scope in host.places]


def linux(folder: Path, **env: str) -> Machine:
    """A Linux machine whose home and project are below *folder*."""
    for name in ("home", "project"):
        (folder / name).mkdir(exist_ok=True)
    return Machine("linux", env, str(folder / "home"), str(folder / "project"))


def wish(host: str, **more: Any) -> Wish:
    """A wish to connect *host* for real, with all tools."""
    given: dict[str, Any] = {"vault": VAULT, "write": True, "tools": frozenset({"wake_up", "write_memory"})}
    return Wish(host=host, **{**given, **more})


def done(machine: Machine, host: str, **more: Any) -> Outcome:
    return connect(wish(host, **more), machine, LAUNCHER)
