"""Sessions of an agent with the real program: briefed first, then told what a person changed meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, Implementation, TextContent

from tests.surfaces.mcp.rawclient import ROOT, SECONDS
from vault_palace.surfaces.mcp.texts import PRESETS

Conversation = Callable[[Client], Awaitable[None]]


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def session(
    vault: Path, era: str, conversation: Conversation, *options: str, agent: str = "agent one"
) -> None:
    """One session of *agent* with a server process of its own."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "vault_palace", "serve", "--vault", str(vault), *options],
        cwd=str(ROOT),
        env={"XDG_CACHE_HOME": str(vault.parent / "cache"), "XDG_STATE_HOME": str(vault.parent / "state")},
    )

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            known = Implementation(name=agent, version="1")
            async with Client(stdio_client(server), mode=era, client_info=known) as client:
                await conversation(client)

    anyio.run(main)


def text_of(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    assert not result.is_error, block.text
    return block.text


def changed(brief: str) -> list[str]:
    """What it says that people changed, without what they changed before the first session."""
    _, _, behind = brief.partition("\nChanged by people since ")
    lines = behind.split("\n")[1:]
    end = next((at for at, line in enumerate(lines) if not line.startswith("- ")), len(lines))
    return [line for line in lines[:end] if "Deploys" not in line]


def test_an_agent_is_told_what_a_person_did_between_its_sessions(vault: Path, era: str) -> None:
    (vault / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    (vault / "03_Bedrock/Deploys.md").write_text("Always on Tuesday.\n", encoding="utf-8")
    briefs: list[str] = []

    async def first(client: Client) -> None:
        briefs.append(text_of(await client.call_tool("wake_up", {})))
        await client.call_tool("write_memory", {"content": "Apollo uses events.", "title": "Apollo"})

    async def second(client: Client) -> None:
        briefs.append(text_of(await client.call_tool("wake_up", {"max_tokens": 1_000})))
        # The keeper has looked after the new note, and journalled that: the same deed is told all the same.
        with anyio.fail_after(SECONDS):
            while "id: mem_" not in new.read_text(encoding="utf-8"):
                await anyio.sleep(0.05)
        briefs.append(text_of(await client.call_tool("wake_up", {"max_tokens": 1_000})))

    session(vault, era, first)
    new = vault / "01_Shallow/By a person.md"
    new.write_text("A person wrote this.\n", encoding="utf-8")
    note = vault / "01_Shallow/Apollo.md"
    note.write_text(note.read_text(encoding="utf-8") + "\nAnd CQRS.\n", encoding="utf-8")
    session(vault, era, second)

    assert "- 03_Bedrock/Deploys.md: Always on Tuesday." in briefs[0]
    assert changed(briefs[1]) == changed(briefs[2])
    assert [line.partition(" 2")[0] for line in changed(briefs[1])] == [
        "- 01_Shallow/Apollo.md edited",
        "- 01_Shallow/By a person.md created",
    ]


def test_a_server_offers_the_preset_that_it_was_started_with(vault: Path, era: str) -> None:
    seen: list[Any] = []

    async def conversation(client: Client) -> None:
        seen.extend(tool.name for tool in (await client.list_tools()).tools)
        refused = await client.call_tool("move_file", {"source": "01_Shallow/x.md", "dest_layer": "bedrock"})
        assert refused.is_error
        assert "policy_violation: move_file is not offered here" in str(refused.content)

    session(vault, era, conversation, "--tools", "core")

    assert tuple(seen) == PRESETS["core"]


def test_a_tool_that_is_not_there_ends_the_server_before_it_speaks(vault: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vault_palace", "serve", "--vault", str(vault), "--tools", "core,remember"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "'remember'" in done.stderr
    assert "wake_up" in done.stderr


def test_the_command_line_briefs_for_a_hook(vault: Path) -> None:
    (vault / "03_Bedrock/Deploys.md").write_text("Always on Tuesday.\n", encoding="utf-8")

    def brief(*options: str) -> str:
        command = [sys.executable, "-m", "vault_palace", "wake-up", "--vault", str(vault), *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=True)
        return done.stdout

    told, as_json = brief("--agent", "hook"), brief("--json", "--max-tokens", "300")

    assert told.startswith("Memory briefing.")
    assert told.endswith("\n")
    assert "- 03_Bedrock/Deploys.md: Always on Tuesday.\n" in told
    assert '"sections"' in as_json
    assert "Deploys" in as_json
