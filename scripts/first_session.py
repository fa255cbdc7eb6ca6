"""What a newcomer sees first: a short real session of an agent with the vault, then what to do next.

The session talks to the real server process over MCP on standard input and output, by the SDK's own
client, as an agent's host would. Nothing in it is special: the same tools, the same answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Call = Callable[..., Awaitable[dict[str, Any]]]


def main() -> int:
    """Play the session if asked to, then say what comes next."""
    words = argparse.ArgumentParser(
        description="Play a short session with a vault, then say what comes next."
    )
    words.add_argument("vault", help="the vault's folder, absolute")
    words.add_argument("--command", required=True, help="the installed vault-palace, absolute")
    words.add_argument("--play", action="store_true", help="play the session first")
    given = words.parse_args()
    if given.play:
        asyncio.run(play(given.command, given.vault))
    print(next_steps(given.command, given.vault))
    return 0


async def play(command: str, vault: str) -> None:
    """Start the server on *vault* and use it as an agent does."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(command=command, args=["serve", "--vault", vault])
    print("A short session, as an agent has it over MCP:\n")
    async with Client(stdio_client(server)) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            shown = ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())
            print(f"  > {tool}({shown})")
            result = await client.call_tool(tool, arguments)
            if result.is_error:
                text = " ".join(getattr(block, "text", "") for block in result.content)
                raise SystemExit(f"The session stopped: {text}")
            return dict(result.structured_content or {})

        await session(call)
    print()


async def session(call: Call) -> None:
    """Write two linked notes, rate one, find and read it, and ask what the layers would do."""
    first = await call(
        "write_memory",
        title="Kafka topics",
        content="A topic is an append-only log, split into partitions. Order holds within one only.\n",
        tags=["kafka"],
        source_session="first-session",
    )
    print(f"    saved {first['saved_path']}")
    second = await call(
        "write_memory",
        title="Apollo uses event sourcing",
        content="The team chose it over CRUD for the audit trail; events go to [[Kafka topics]].\n",
        tags=["apollo"],
        source_session="first-session",
    )
    print(f"    saved {second['saved_path']}, linked to the first")
    rated = await call("rate_memory", path=second["saved_path"], density=0.9)
    print(f"    density {rated['before'].get('density')} -> {rated['after'].get('density')}")
    found = await call("search_room", query="why event sourcing?")
    for match in found["matches"]:
        print(f"    {match['path']}: {' '.join(match['snippet'].split())} ({match['why']})")
    note = await call("read_memory", path=first["saved_path"])
    print(f"    linked from: {', '.join(note['backlinks']) or 'nowhere yet'}")
    # With the usual seven days nothing of today moves; zero days shows which rule would take it, and why.
    plan = await call("metabolize", dry_run=True, days_threshold=0)
    for decision in plan["decisions"]:
        print(f"    would go to {decision['to']}: {decision['path']}: {decision['reason']}")
    if not plan["decisions"]:
        print("    nothing would move")
    print("    (a dry run: nothing was changed)")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 48 else f"{text[:45]}…{text[-1]}"


def next_steps(command: str, vault: str) -> str:
    """The folder to open, and the snippet that agents' hosts understand."""
    snippet = {"mcpServers": {"vault-palace": {"command": command, "args": ["serve", "--vault", vault]}}}
    return "\n".join(
        [
            "What you do next:",
            "",
            "1. In Obsidian: Open folder as vault, and choose",
            f"       {vault}",
            "   PALACE_MAP.md is the place to start reading.",
            "",
            "2. Give your agent this MCP server (the form that Claude Desktop, Claude Code and Cursor read):",
            "",
            json.dumps(snippet, indent=2, ensure_ascii=False),
            "",
            "   Or let it be written; claude-desktop, cursor, vscode, codex, gemini and opencode go as well:",
            f"       {_quoted(command)} connect claude-code --write --vault {_quoted(vault)}",
            "",
            "3. See what the vault holds at any time:",
            f"       {command} status --vault {_quoted(vault)}",
        ]
    )


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


if __name__ == "__main__":
    sys.exit(main())
