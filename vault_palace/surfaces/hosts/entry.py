"""The entry that a host gets: how to start this very program on a vault, whatever folder and PATH it has.

Also reads an entry that is there: which vault it serves, and whether it is one of ours at all.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vault_palace.core.errors import NotFound
from vault_palace.surfaces.hosts.catalogue import Form

SCRIPT = "vault-palace"
# Parts of the paths of environments that tools make for one run and throw away.
_PASSING = ("archive-v0", "builds-v0", "environments-v1", "environments-v2")


@dataclass(frozen=True, slots=True)
class Launcher:
    """The words that start the program, all paths absolute, and the variables it needs."""

    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def passing(self) -> bool:
        """Whether this copy of the program may be cleared away any day."""
        parts = Path(self.words[0]).parts
        return any(part in parts for part in _PASSING) or ("pipx" in parts and ".cache" in parts)


def running() -> Launcher:
    """How the program that runs now is started: by its script, else by its interpreter.

    Symbolic links stay: those of pipx and uv point to the new version after an upgrade.
    """
    ending = ".exe" if sys.platform == "win32" else ""
    for place in (_script_that_runs(), os.path.join(os.path.dirname(sys.executable), SCRIPT + ending)):
        if place and os.access(place, os.X_OK) and os.path.isfile(place):
            return Launcher((os.path.abspath(place),))
    if not sys.executable:
        raise NotFound(
            "It cannot be told which Python runs this.", hint="Install vault-palace, and run its script."
        )
    package = Path(__file__).resolve().parents[3]
    folders = [sysconfig.get_paths()[kind] for kind in ("purelib", "platlib")]
    installed = any(package == Path(folder).resolve() for folder in folders)
    # A checkout is found by the current folder only, which a host does not have.
    env = {} if installed else {"PYTHONPATH": str(package)}
    return Launcher((os.path.abspath(sys.executable), "-m", "vault_palace"), env)


def _script_that_runs() -> str:
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    if name.lower().removesuffix(".exe") != SCRIPT:
        return ""
    place = os.path.abspath(sys.argv[0])
    return place if os.path.isfile(place) else f"{place}.exe"


def made(form: Form, launcher: Launcher, arguments: tuple[str, ...]) -> dict[str, Any]:
    """The entry in a host's *form*."""
    env = dict(launcher.env)
    if form == "opencode":
        entry: dict[str, Any] = {"type": "local", "command": [*launcher.words, *arguments]}
        return {**entry, "environment": env} if env else entry
    entry = {"type": "stdio"} if form == "typed" else {}
    entry |= {"command": launcher.words[0], "args": [*launcher.words[1:], *arguments]}
    return {**entry, "env": env} if env else entry


def words_of(entry: Any) -> list[str]:
    """All words of an entry's command line; empty when it starts nothing."""
    if not isinstance(entry, Mapping):
        return []
    found: list[object] = []
    for key in ("command", "args"):
        value = entry.get(key)
        found += value if isinstance(value, list) else [value]
    return [word for word in found if isinstance(word, str)]


def is_ours(entry: Any) -> bool:
    """Whether an entry starts this program, whichever copy of it and by whatever tool."""
    words = words_of(entry)
    return "serve" in words and any(name in word for word in words for name in (SCRIPT, "vault_palace"))


def vault_of(entry: Any) -> str | None:
    """The vault that an entry serves; None when it says none."""
    words = words_of(entry)
    if "serve" not in words:
        return None
    for number, word in enumerate(words):
        if word == "--vault" and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--vault="):
            return word.removeprefix("--vault=")
    env = entry.get("env") or entry.get("environment")
    named = env.get("VAULT_PALACE_VAULT") if isinstance(env, Mapping) else None
    return named if isinstance(named, str) else None
