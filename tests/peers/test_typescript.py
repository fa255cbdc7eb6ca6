"""The official TypeScript clients, 1.x (in most hosts) and 2.x, in a whole session with the real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import peers
from tests.peers.conftest import HERE, Node, server_on
from vault_palace import __version__
from vault_palace.surfaces.mcp.texts import TOOLS


@pytest.mark.parametrize(("client", "protocol"), [("1", "2025-11-25"), ("2", "2026-07-28")])
def test_a_typescript_client_works_a_whole_session(
    node: Node, vault: Path, client: str, protocol: str
) -> None:
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
    assert got["written"]["saved_path"] == "01_Shallow/Kafka.md"
    assert got["exists"].startswith("exists: ")
    assert got["conflict"].startswith("conflict: ")
    assert [match["path"] for match in got["found"]["matches"]] == ["01_Shallow/Kafka.md"]
    assert got["read"]["content"].strip() == "Kafka keeps topics. 🦭"
    assert got["rated"]["after"]["density"] == 0.8
    assert got["unknown"].startswith("invalid_arguments: ")
    assert got["declined"].startswith("policy_violation: ")
    assert (vault / "01_Shallow/Kafka.md").exists()
    assert got["gone"]
    assert got["complaints"] == ""
