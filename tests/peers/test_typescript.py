"""The official TypeScript clients, 1.x (in most hosts) and 2.x, in a whole session with the real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import peers
from tests.peers.conftest import HERE, Node, server_on
from vault_palace import __version__
from vault_palace.surfaces.mcp.texts import TOOLS

CLIENTS = {"1": "@modelcontextprotocol/sdk", "2": "@modelcontextprotocol/client"}


@pytest.mark.parametrize(("client", "protocol"), [("1", "2025-11-25"), ("2", "2026-07-28")])
def test_a_typescript_client_works_a_whole_session(
    node: Node, vault: Path, client: str, protocol: str
) -> None:
    assert node.package(CLIENTS[client]).is_dir()
    task = {
        "packages": str(peers.TOOLS / "node_modules"),
        "server": server_on(vault),
        "vault": str(vault),
    }

    done = node.run(HERE / "session.mjs", client, json.dumps(task))

    assert done.status == 0, done.complaints
    got = done.json
    assert (got["server"]["name"], got["server"]["version"]) == ("vault-palace", __version__)
    assert got["protocol"] == protocol
    assert "search_room" in got["instructions"]
    assert got["tools"] == [tool.name for tool in TOOLS]
    assert got["wakeUp"]["brief"]
    assert got["written"]["saved_path"] == "01_Shallow/Kafka.md"
    assert got["exists"].startswith("exists: ")
    assert got["conflict"].startswith("conflict: ")
    assert [match["path"] for match in got["found"]["matches"]] == ["01_Shallow/Kafka.md"]
    assert got["read"]["content"].strip() == "Kafka keeps topics. 🦭"
    assert got["rated"]["after"]["density"] == 0.8
    assert got["unknown"].startswith("invalid_arguments: ")
    assert got["resources"] == ["palace://map", "palace://decaying"]
    assert got["templates"] == ["palace://memory/{+path}"]
    assert got["resource"]["mimeType"] == "text/markdown"
    assert "Kafka keeps topics. 🦭" in got["resource"]["text"]
    assert got["prompts"] == ["wake_up", "reflect", "tidy"]
    assert got["notice"]["uri"] == "palace://memory/01_Shallow/Kafka.md"
    assert got["reread"]["content"].strip() == "A person was here."
    # Asked each time: no to the first is no for that call alone.
    assert ["01_Shallow/Kafka.md" in question for question in got["asked"]] == [True, True]
    assert got["declined"].startswith("policy_violation: ")
    assert got["accepted"]["archived_to"] == "_Archive/01_Shallow/Kafka.md"
    assert "A person was here." in (vault / "_Archive/01_Shallow/Kafka.md").read_text(encoding="utf-8")
    assert got["gone"]
    assert got["complaints"] == ""
