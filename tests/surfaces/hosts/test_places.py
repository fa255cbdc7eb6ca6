"""Where each host's file is, on three systems: a table, and the choice between several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.hosts.machines import SCOPES, linux
from vault_palace.surfaces.hosts.catalogue import HOSTS, Machine, Scope
from vault_palace.surfaces.hosts.connect import choose

LINUX = Machine("linux", {}, "/home/you", "/work/app")
MAC = Machine("darwin", {}, "/Users/you", "/work/app")
WINDOWS = Machine("win32", {}, r"C:\Users\you", r"D:\app")
MOVED = Machine(
    "linux",
    {
        "CLAUDE_CONFIG_DIR": "/c",
        "CODEX_HOME": "/x",
        "GEMINI_CLI_HOME": "/g",
        "XDG_CONFIG_HOME": "/cfg",
    },
    "/home/you",
    "/work/app",
)
APPDATA = Machine("win32", {"APPDATA": r"R:\Roam", "LOCALAPPDATA": r"L:\Loc"}, r"C:\Users\you", r"D:\app")
MAC_SETTINGS = "/Users/you/Library/Application Support"

USER = [
    ("claude-code", LINUX, "/home/you/.claude.json"),
    ("claude-code", MAC, "/Users/you/.claude.json"),
    ("claude-code", WINDOWS, r"C:\Users\you\.claude.json"),
    ("claude-code", MOVED, "/c/.claude.json"),
    ("claude-desktop", LINUX, "/home/you/.config/Claude/claude_desktop_config.json"),
    ("claude-desktop", MAC, f"{MAC_SETTINGS}/Claude/claude_desktop_config.json"),
    ("claude-desktop", WINDOWS, r"C:\Users\you\AppData\Roaming\Claude\claude_desktop_config.json"),
    ("claude-desktop", APPDATA, r"R:\Roam\Claude\claude_desktop_config.json"),
    ("cursor", LINUX, "/home/you/.cursor/mcp.json"),
    ("cursor", MAC, "/Users/you/.cursor/mcp.json"),
    ("cursor", WINDOWS, r"C:\Users\you\.cursor\mcp.json"),
    ("vscode", LINUX, "/home/you/.config/Code/User/mcp.json"),
    ("vscode", MOVED, "/cfg/Code/User/mcp.json"),
    ("vscode", MAC, f"{MAC_SETTINGS}/Code/User/mcp.json"),
    ("vscode", WINDOWS, r"C:\Users\you\AppData\Roaming\Code\User\mcp.json"),
    ("codex", LINUX, "/home/you/.codex/config.toml"),
    ("codex", MAC, "/Users/you/.codex/config.toml"),
    ("codex", WINDOWS, r"C:\Users\you\.codex\config.toml"),
    ("codex", MOVED, "/x/config.toml"),
    ("gemini", LINUX, "/home/you/.gemini/settings.json"),
    ("gemini", MAC, "/Users/you/.gemini/settings.json"),
    ("gemini", WINDOWS, r"C:\Users\you\.gemini\settings.json"),
    ("gemini", MOVED, "/g/.gemini/settings.json"),
    ("opencode", LINUX, "/home/you/.config/opencode/opencode.json"),
    ("opencode", MAC, "/Users/you/.config/opencode/opencode.json"),
    ("opencode", WINDOWS, r"C:\Users\you\.config\opencode\opencode.json"),
    ("opencode", MOVED, "/cfg/opencode/opencode.json"),
]

PROJECT = [
    ("claude-code", LINUX, "/work/app/.mcp.json"),
    ("claude-code", WINDOWS, r"D:\app\.mcp.json"),
    ("cursor", LINUX, "/work/app/.cursor/mcp.json"),
    ("vscode", LINUX, "/work/app/.vscode/mcp.json"),
    ("vscode", WINDOWS, r"D:\app\.vscode\mcp.json"),
    ("codex", MOVED, "/work/app/.codex/config.toml"),
    ("gemini", LINUX, "/work/app/.gemini/settings.json"),
    ("opencode", LINUX, "/work/app/opencode.json"),
]

INSTRUCTIONS: list[tuple[str, Scope, Machine, str | None]] = [
    ("claude-code", "user", LINUX, "/home/you/.claude/CLAUDE.md"),
    ("claude-code", "user", MOVED, "/c/CLAUDE.md"),
    ("claude-code", "project", LINUX, "/work/app/CLAUDE.md"),
    ("claude-desktop", "user", LINUX, None),
    ("cursor", "user", LINUX, None),
    ("cursor", "project", WINDOWS, r"D:\app\AGENTS.md"),
    ("vscode", "project", LINUX, "/work/app/AGENTS.md"),
    ("codex", "user", LINUX, "/home/you/.codex/AGENTS.md"),
    ("codex", "project", LINUX, "/work/app/AGENTS.md"),
    ("gemini", "user", LINUX, "/home/you/.gemini/GEMINI.md"),
    ("gemini", "project", LINUX, "/work/app/GEMINI.md"),
    ("opencode", "user", MAC, "/Users/you/.config/opencode/AGENTS.md"),
    ("opencode", "project", LINUX, "/work/app/AGENTS.md"),
]


@pytest.mark.parametrize(("host", "machine", "place"), USER)
def test_a_persons_own_configuration_is_here(host: str, machine: Machine, place: str) -> None:
    assert HOSTS[host].places["user"](machine)[-1] == place


@pytest.mark.parametrize(("host", "machine", "place"), PROJECT)
def test_a_projects_configuration_is_here(host: str, machine: Machine, place: str) -> None:
    assert HOSTS[host].places["project"](machine)[-1] == place


@pytest.mark.parametrize(("host", "scope", "machine", "place"), INSTRUCTIONS)
def test_the_instructions_are_here(host: str, scope: Scope, machine: Machine, place: str | None) -> None:
    places = HOSTS[host].instructions.get(scope)

    assert (places(machine)[-1] if places else None) == place


def test_every_host_and_scope_says_what_comes_next() -> None:
    assert {(host.name, scope) for host in HOSTS.values() for scope in host.next} == set(SCOPES)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ([], "opencode.json"),
        (["opencode.json"], "opencode.json"),
        (["opencode.jsonc"], "opencode.jsonc"),
        (["opencode.json", "opencode.jsonc"], "opencode.jsonc"),
    ],
)
def test_of_two_files_the_one_that_is_there_counts(there: list[str], chosen: str, tmp_path: Path) -> None:
    machine = linux(tmp_path)
    for name in there:
        (tmp_path / "project" / name).write_text("{}")

    assert choose(HOSTS["opencode"].places["project"], machine) == str(tmp_path / "project" / chosen)


@pytest.mark.parametrize(
    ("folders", "chosen"),
    [
        ([], "usual"),
        (["Packages/Claude_x1"], "Packages/Claude_x1"),
        (["Packages/Claude_x1", "Packages/Claude_x2!"], "Packages/Claude_x2!"),
        (["Packages/Claude_x1", "Claude-Data/claude_x1"], "Claude-Data/claude_x1"),
        (["Packages/Other_x1"], "usual"),
    ],
)
def test_a_packaged_program_is_found_by_its_folder(folders: list[str], chosen: str, tmp_path: Path) -> None:
    local = tmp_path / "[Local]"  # a pattern, if it were taken for one
    for folder in folders:
        place = local / folder.removesuffix("!")
        (place / "LocalCache/Roaming/Claude").mkdir(parents=True)
        if folder.endswith("!"):  # with the file itself
            (place / "LocalCache/Roaming/Claude/f.json").write_text("{}")

    found = choose(
        lambda _: (
            f"{local}/Claude-Data/claude*/f.json",
            f"{local}/Packages/Claude_*/LocalCache/Roaming/Claude/f.json",
            "usual",
        ),
        linux(tmp_path),
    )

    assert found == "usual" if chosen == "usual" else found.startswith(f"{local}/{chosen.removesuffix('!')}/")
