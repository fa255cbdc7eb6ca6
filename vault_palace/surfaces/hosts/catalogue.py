"""What each host of agents wants: the file it reads, the form of an entry, and what a person does next.

Where a file is, is a function of the system, the environment and the project's folder alone; this module
looks at no disk. Places and forms are those of the hosts' own documentation as of late 2026.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Scope = Literal["user", "project"]
Form = Literal["plain", "typed", "opencode"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides where files are: `sys.platform`, the environment, the home and the project's folder."""

    platform: str
    env: Mapping[str, str]
    home: str
    project: str

    @property
    def windows(self) -> bool:
        return self.platform == "win32"

    def join(self, *parts: str) -> str:
        return ntpath.join(*parts) if self.windows else posixpath.join(*parts)

    def at_home(self, *parts: str) -> str:
        return self.join(self.home, *parts)

    def named(self, variable: str, *otherwise: str) -> str:
        """The folder that *variable* names, else the one at home."""
        return self.env.get(variable, "").strip() or self.at_home(*otherwise)

    def settings(self) -> str:
        """Where desktop programs keep their settings."""
        if self.windows:
            return self.named("APPDATA", "AppData", "Roaming")
        if self.platform == "darwin":
            return self.at_home("Library", "Application Support")
        return self.named("XDG_CONFIG_HOME", ".config")


# The files to choose from; the first that is there counts, else the last. A `*` stands for a part of a name
# of a folder: such a file counts already when its folder is there.
Places = Callable[[Machine], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host. `places` has the scopes that it knows, `substitutes` what it would replace in our words."""

    name: str
    title: str
    places: Mapping[Scope, Places]
    keys: tuple[str, ...] = ("mcpServers",)
    toml: bool = False
    form: Form = "plain"
    fresh: Mapping[str, Any] | None = None
    instructions: Mapping[Scope, Places]
    substitutes: str = ""
    rewrites: bool = False  # it writes this file itself, from what it read at its start
    next: Mapping[Scope, str]

    def replaces(self, word: str) -> bool:
        """Whether the host would put something else in the place of a part of *word*."""
        return bool(self.substitutes) and re.search(self.substitutes, word) is not None


def _project(*parts: str) -> Places:
    return lambda machine: (machine.join(machine.project, *parts),)


def _home(*parts: str) -> Places:
    return lambda machine: (machine.at_home(*parts),)


def _claude_json(machine: Machine) -> tuple[str, ...]:
    folder = machine.env.get("CLAUDE_CONFIG_DIR", "").strip()
    return (machine.join(folder, ".claude.json") if folder else machine.at_home(".claude.json"),)


def _claude_desktop(machine: Machine) -> tuple[str, ...]:
    file = "claude_desktop_config.json"
    usual = machine.join(machine.settings(), "Claude", file)
    if not machine.windows:
        return (usual,)
    # As a packaged program it sees a folder of its own in the place of the usual one, and newer ones move on.
    local = machine.named("LOCALAPPDATA", "AppData", "Local")
    return (
        machine.join(local, "Claude-Data", "claude*", file),
        machine.join(local, "Packages", "Claude_*", "LocalCache", "Roaming", "Claude", file),
        usual,
    )


def _opencode_folder(machine: Machine) -> str:
    return machine.join(machine.named("XDG_CONFIG_HOME", ".config"), "opencode")


def _opencode(folder: Callable[[Machine], str]) -> Places:
    return lambda machine: tuple(
        machine.join(folder(machine), name) for name in ("opencode.jsonc", "opencode.json")
    )


_AGENTS = _project("AGENTS.md")

_ALL = (
    Host(
        name="claude-code",
        title="Claude Code",
        places={"user": _claude_json, "project": _project(".mcp.json")},
        form="typed",
        instructions={
            "user": lambda machine: (
                machine.join(machine.named("CLAUDE_CONFIG_DIR", ".claude"), "CLAUDE.md"),
            ),
            "project": _project("CLAUDE.md"),
        },
        substitutes=r"\$\{",
        rewrites=True,
        next={
            "user": "Start Claude Code anew; /mcp lists the server.",
            "project": "Start Claude Code in this folder and approve the server when it asks; /mcp lists it.",
        },
    ),
    Host(
        name="claude-desktop",
        title="Claude Desktop",
        places={"user": _claude_desktop},
        rewrites=True,
        instructions={},
        next={
            "user": "Quit Claude Desktop, in its menu or tray and not only its window, and start it again; "
            "Settings > Developer lists the server."
        },
    ),
    Host(
        name="cursor",
        title="Cursor",
        places={"user": _home(".cursor", "mcp.json"), "project": _project(".cursor", "mcp.json")},
        form="typed",
        instructions={"project": _AGENTS},
        substitutes=r"\$\{",
        next=dict.fromkeys(
            ("user", "project"),
            "Restart Cursor, and switch the server on where its settings list MCP servers.",
        ),
    ),
    Host(
        name="vscode",
        title="VS Code",
        places={
            "user": lambda machine: (machine.join(machine.settings(), "Code", "User", "mcp.json"),),
            "project": _project(".vscode", "mcp.json"),
        },
        keys=("servers",),
        form="typed",
        instructions={"project": _AGENTS},
        substitutes=r"\$\{",
        next=dict.fromkeys(
            ("user", "project"),
            "In VS Code run MCP: List Servers, start the server, and confirm that you trust it.",
        ),
    ),
    Host(
        name="codex",
        title="Codex",
        places={
            "user": lambda machine: (machine.join(machine.named("CODEX_HOME", ".codex"), "config.toml"),),
            "project": _project(".codex", "config.toml"),
        },
        keys=("mcp_servers",),
        toml=True,
        instructions={
            "user": lambda machine: (machine.join(machine.named("CODEX_HOME", ".codex"), "AGENTS.md"),),
            "project": _AGENTS,
        },
        next={
            "user": "Start Codex anew; /mcp lists the server.",
            "project": "Start Codex in this folder, which it must trust; /mcp lists the server.",
        },
    ),
    Host(
        name="gemini",
        title="Gemini CLI",
        places={
            "user": lambda machine: (machine.join(_gemini_home(machine), ".gemini", "settings.json"),),
            "project": _project(".gemini", "settings.json"),
        },
        instructions={
            "user": lambda machine: (machine.join(_gemini_home(machine), ".gemini", "GEMINI.md"),),
            "project": _project("GEMINI.md"),
        },
        substitutes=r"\$(?:\{|\w)",
        next={
            "user": "Start Gemini CLI anew; /mcp lists the server.",
            "project": "Start Gemini CLI in this folder, which it must trust; /mcp lists the server.",
        },
    ),
    Host(
        name="opencode",
        title="opencode",
        places={"user": _opencode(_opencode_folder), "project": _opencode(lambda machine: machine.project)},
        keys=("mcp",),
        form="opencode",
        fresh={"$schema": "https://opencode.ai/config.json"},
        instructions={
            "user": lambda machine: (machine.join(_opencode_folder(machine), "AGENTS.md"),),
            "project": _AGENTS,
        },
        substitutes=r"\{(?:env|file):",
        next=dict.fromkeys(("user", "project"), "Start opencode anew; `opencode mcp list` lists the server."),
    ),
)


def _gemini_home(machine: Machine) -> str:
    return machine.env.get("GEMINI_CLI_HOME", "").strip() or machine.home


HOSTS: Mapping[str, Host] = {host.name: host for host in _ALL}
