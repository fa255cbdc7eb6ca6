"""The official Inspector's command line on the real server: what it lists, what it calls, how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.conftest import ERAS, Inspect, server_on
from vault_palace.surfaces.mcp.texts import TOOLS

TOOL_IS_ERROR = 5
CONNECTION = 1


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_finds_every_tool_and_nothing_that_is_not_portable(
    inspect: Inspect, vault: Path, era: str
) -> None:
    listed = inspect(server_on(vault), era, "tools/list", "--strict")

    assert listed.status == 0, listed.complaints
    assert [tool["name"] for tool in listed.json["result"]["tools"]] == [tool.name for tool in TOOLS]


@pytest.mark.parametrize("era", ERAS)
def test_a_refusal_ends_the_inspector_as_a_tool_error(inspect: Inspect, vault: Path, era: str) -> None:
    refused = inspect(
        server_on(vault),
        era,
        "tools/call",
        "--tool-name",
        "read_memory",
        "--tool-arg",
        "path=01_Shallow/x.md",
    )

    assert refused.status == TOOL_IS_ERROR, refused.complaints
    assert refused.json["result"]["content"][0]["text"].startswith("not_found: ")


def test_a_vault_that_is_not_there_ends_the_inspector_rather_than_let_it_wait(
    inspect: Inspect, tmp_path: Path
) -> None:
    ended = inspect(server_on(tmp_path / "nothing"), "legacy", "tools/list")

    assert ended.status == CONNECTION
    assert "Connection closed" in ended.complaints
