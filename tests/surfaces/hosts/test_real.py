"""`connect` as a person runs it, then the server as a host starts it: by the written words alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from vault_palace.surfaces.cli import main
from vault_palace.surfaces.mcp.texts import PRESETS

ROOT = Path(__file__).resolve().parents[3]
HOSTS = [
    ("claude-code", "user"),
    ("claude-code", "project"),
    ("claude-desktop", "user"),
    ("cursor", "user"),
    ("vscode", "user"),
    ("codex", "user"),
    ("gemini", "user"),
    ("opencode", "user"),
]


@pytest.fixture
def palace(tmp_path: Path) -> Path:
    root = tmp_path / "My Väult (1)"
    (root / "01_Shallow").mkdir(parents=True)
    return root


def started(file: Path) -> tuple[list[str], dict[str, str]]:
    """The command line and the variables that a host takes from its file."""
    text = file.read_text(encoding="utf-8")
    values: dict[str, Any] = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    (outer,) = values.keys() & {"mcpServers", "servers", "mcp_servers", "mcp"}
    given = values[outer]["vault-palace"]
    command = given["command"]
    words = command if isinstance(command, list) else [command, *given["args"]]
    return words, given.get("env") or given.get("environment") or {}


@pytest.mark.parametrize(("host", "scope"), HOSTS)
def test_the_server_starts_as_the_file_says(host: str, scope: str, palace: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    words = [sys.executable, "-m", "vault_palace", "connect", host, "--write", "--scope", scope, "--json"]
    words += ["--tools", "core"]
    ended = subprocess.run(
        [*words, "--vault", os.path.relpath(palace, project)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    (written,) = json.loads(ended.stdout)["files"]
    command, env = started(Path(written["path"]))
    poor = {"PATH": "/nonexistent", "HOME": os.environ["HOME"], "XDG_CACHE_HOME": str(tmp_path), **env}

    async def session() -> Any:
        server = StdioServerParameters(command=command[0], args=command[1:], env=poor, cwd="/")
        with anyio.fail_after(120):
            async with Client(stdio_client(server)) as client:
                offered = await client.list_tools()
                answer = await client.call_tool("write_memory", {"content": "x", "title": f"From {host}"})
                return [tool.name for tool in offered.tools], answer

    offered, answer = anyio.run(session)

    assert written["done"] == "created"
    assert not answer.is_error
    assert offered == list(PRESETS["core"])
    assert (palace / "01_Shallow" / f"From {host}.md").is_file()


# -- what is said ------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_it_would_do(palace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["connect", "cursor", "--vault", str(palace)])

    said = capsys.readouterr().out
    assert status == 0
    assert f"Would create {os.environ['HOME']}/.cursor/mcp.json:" in said
    assert '+      "args": [' in said
    assert f'"serve", "--vault", "{palace}"]' in said
    assert "Add --write" in said
    assert os.listdir(os.environ["HOME"]) == []


def test_after_writing_the_next_step_is_said(palace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["connect", "claude-desktop", "--write", "--vault", str(palace)])
    first = capsys.readouterr().out
    main(["connect", "claude-desktop", "--write", "--vault", str(palace)])
    second = capsys.readouterr().out
    main(["connect", "claude-desktop", "--write", "--remove"])
    third = capsys.readouterr().out

    assert "Next: Quit Claude Desktop" in first
    assert "nothing to change" in second
    assert "Next" not in second
    assert "What was there before: " in third
    assert "Next: Restart Claude Desktop." in third


def test_a_program_gets_the_change_as_json(palace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["connect", "vscode", "--read-only", "--name", "mem", "--vault", str(palace), "--json"])

    document = json.loads(capsys.readouterr().out)
    assert status == 0
    assert document["written"] is False
    assert document["entry"]["args"][-1] == "--read-only"
    assert document["files"][0]["done"] == "created"
    assert (document["host"], document["scope"], document["name"]) == ("vscode", "user", "mem")


def test_read_only_instructions_name_no_writer(palace: Path) -> None:
    main(["connect", "codex", "--write", "--instructions", "--read-only", "--vault", str(palace)])

    said = (Path(os.environ["HOME"]) / ".codex" / "AGENTS.md").read_text(encoding="utf-8")
    assert "search_room" in said
    assert "write_memory" not in said
    assert "rate_memory" not in said


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["emacs"], 2, "no host"),
        (["codex", "--scope", "world"], 2, "world"),
        (["codex", "--tools", "write_memory,nosuch"], 2, "no tool 'nosuch'"),
        (["claude-desktop", "--scope", "project"], 2, "--scope user"),
        ([], 2, "HOST"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str], status: int, said: str, palace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = main(["connect", *words, "--vault", str(palace)])

    assert ended == status
    assert said in capsys.readouterr().err
    assert os.listdir(os.environ["HOME"]) == []


def test_a_folder_that_is_no_palace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["connect", "codex", "--write", "--vault", str(tmp_path / "nowhere")])

    assert status == 10
    assert "There is no folder" in capsys.readouterr().err
    assert os.listdir(os.environ["HOME"]) == []


def test_an_entry_for_another_vault_ends_with_exists(
    palace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    (other / "01_Shallow").mkdir(parents=True)
    main(["connect", "codex", "--write", "--vault", str(other)])

    refused = main(["connect", "codex", "--write", "--vault", str(palace)])
    replaced = main(["connect", "codex", "--write", "--replace", "--vault", str(palace)])

    assert (refused, replaced) == (11, 0)
    assert str(other) in capsys.readouterr().err
    assert str(palace) in (Path(os.environ["HOME"]) / ".codex" / "config.toml").read_text(encoding="utf-8")
