"""Settings of a process: which vault, where derived data lives, how long arguments may be.

The only module that reads the environment. It refuses a value that it cannot read instead of guessing,
and it never takes the current folder for the vault.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vault_palace.core.errors import InvalidArguments

if TYPE_CHECKING:
    from vault_palace.services.house import PalaceSettings
    from vault_palace.surfaces.hosts.catalogue import Machine

APP = "vault-palace"
VAULT = "VAULT_PALACE_VAULT"
CACHE_DIR = "VAULT_PALACE_CACHE_DIR"
STATE_DIR = "VAULT_PALACE_STATE_DIR"
WATCH = "VAULT_PALACE_WATCH"
TOOLS = "VAULT_PALACE_TOOLS"
SEDIMENT_ROOT = "SEDIMENT_PROJECT_ROOT"

# How a process learns of changes: events if they arrive, else by the clock; or as chosen.
WATCH_MODES: tuple[Literal["auto", "events", "poll", "off"], ...] = ("auto", "events", "poll", "off")

# Sediment Palace's names for the longest arguments, kept so that its set-ups go on working: variable,
# limit. It had two for queries; where both are set, the smaller one counts.
SEDIMENT_LIMITS = (
    ("SEDIMENT_BUDGET_WRITE_CONTENT", "content"),
    ("SEDIMENT_BUDGET_READ_QUERY", "query"),
    ("SEDIMENT_BUDGET_SEARCH_QUERY", "query"),
    ("SEDIMENT_BUDGET_SEARCH_ROOM", "room"),
    ("SEDIMENT_BUDGET_PURGE_REASON", "reason"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a command or a server was started with. `limits` holds only what the environment set."""

    root: Path
    cache_dir: Path
    state_dir: Path
    session: str
    limits: Mapping[str, int] = field(default_factory=dict)
    read_only: bool = False
    watch: Literal["auto", "events", "poll", "off"] = "auto"
    tools: tuple[str, ...] | None = None  # those that a server offers; None: all

    def for_palace(self) -> PalaceSettings:
        """The same for the services."""
        # The services cost most of a start, so whoever only needs the settings does not load them.
        from vault_palace.services.house import Limits, PalaceSettings

        return PalaceSettings(
            cache_dir=self.cache_dir,
            state_dir=self.state_dir,
            session=self.session,
            limits=Limits(**self.limits),
            read_only=self.read_only,
        )


def run_in_utf8() -> None:
    """Start this process again in Python's UTF-8 mode where file names are taken for another encoding.

    A desktop program may start it with `LC_ALL=C`: then no note with a name in Cyrillic or Chinese could
    be opened. Nothing has been read from standard input yet when this is called.
    """
    # A mode that was chosen on the command line would be chosen again, and so on for ever.
    if sys.getfilesystemencoding().lower() in ("utf-8", "utf8") or "utf8" in sys._xoptions:
        return
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - the same program


def read_settings(
    vault: str | Path | None,
    *,
    surface: str,
    environ: Mapping[str, str] | None = None,
    read_only: bool = False,
    tools: str | None = None,
) -> Settings:
    """Settings for *surface* (`cli`, `mcp`): the vault given, else the one the environment names.

    Refused when neither names one, or when a variable holds what cannot be read. The folder itself is
    not looked at. *tools* names those that a server offers, presets among them.
    """
    env = os.environ if environ is None else environ
    return Settings(
        root=_root(vault, env),
        cache_dir=_folder(env, CACHE_DIR, "cache"),
        state_dir=_folder(env, STATE_DIR, "state"),
        session=f"{surface}-{secrets.token_hex(4)}",
        limits=_limits(env),
        read_only=read_only,
        watch=_watch(env),
        tools=_tools(tools, env),
    )


def read_machine() -> Machine:
    """What decides where the hosts of agents keep their files: system, environment, home, current folder."""
    from vault_palace.surfaces.hosts.catalogue import Machine

    try:
        return Machine(sys.platform, os.environ, str(Path.home()), os.getcwd())
    except (RuntimeError, OSError) as error:  # no home, or a current folder that is gone
        raise InvalidArguments(f"The home or the current folder cannot be told: {error}") from error


def _tools(given: str | None, env: Mapping[str, str]) -> tuple[str, ...] | None:
    words = given if given is not None else env.get(TOOLS, "").strip()
    if given is None and not words:
        return None
    from vault_palace.surfaces.mcp.texts import chosen

    return chosen(words)


def _watch(env: Mapping[str, str]) -> Literal["auto", "events", "poll", "off"]:
    text = env.get(WATCH, "").strip().lower() or "auto"
    for mode in WATCH_MODES:
        if text == mode:
            return mode
    raise InvalidArguments(
        f"{WATCH} is none of {', '.join(WATCH_MODES)}.", hint="Mend or unset it.", argument=WATCH
    )


def _root(vault: str | Path | None, env: Mapping[str, str]) -> Path:
    # An empty option is a mistake of the caller, an empty variable is the shell's way to unset one.
    name = str(vault) if vault is not None else env.get(VAULT, "")
    if not name.strip():
        elsewhere = env.get(SEDIMENT_ROOT, "").strip()
        # Sediment Palace kept its notes in a folder below its project root. That folder is a vault, but
        # which vault an agent writes to is never guessed.
        also = f" Sediment Palace's notes are probably in {Path(elsewhere) / 'memory'}." if elsewhere else ""
        raise InvalidArguments(
            "No vault is named.", hint=f"Give --vault PATH or set {VAULT}.{also}", argument="vault"
        )
    if "\0" in name:
        raise InvalidArguments("The vault's path holds a NUL character.", argument="vault")
    try:
        return Path(os.path.abspath(Path(name).expanduser()))
    except (RuntimeError, OSError) as error:  # `~someone` who does not exist, a current folder that is gone
        raise InvalidArguments(f"The vault's path cannot be read: {error}", argument="vault") from error


def _folder(env: Mapping[str, str], variable: str, kind: str) -> Path:
    given = env.get(variable, "").strip()
    if given:
        folder = Path(given).expanduser()
        if not folder.is_absolute():
            raise InvalidArguments(
                f"{variable} is not an absolute path.", hint="Give it in full.", argument=variable
            )
        return folder
    import platformdirs

    where = platformdirs.user_cache_path if kind == "cache" else platformdirs.user_state_path
    return where(APP, appauthor=False)


def _limits(env: Mapping[str, str]) -> dict[str, int]:
    limits: dict[str, int] = {}
    for variable, name in SEDIMENT_LIMITS:
        text = env.get(variable, "").strip()
        if not text:
            continue
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0):
            raise InvalidArguments(
                f"{variable} is not a whole number above 0.", hint="Mend or unset it.", argument=variable
            )
        limits[name] = min(int(text), limits.get(name, int(text)))
    return limits
