"""The official Inspector's command line on the real server: what it lists, what it calls, how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.peers.conftest import ERAS, Inspect, served, server_on
from vault_palace.surfaces.mcp.texts import TOOLS

TOOL_IS_ERROR = 5
CONNECTION = 1

# A day of an agent: each tool once, each call a success because of those before it.
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("wake_up", {}),
    ("write_memory", {"content": "Zebras have stripes.", "title": "Zebra"}),
    ("search_room", {"query": "stripes"}),
    ("read_memory", {"title": "Zebra"}),
    ("rate_memory", {"path": "01_Shallow/Zebra.md", "density": 0.6}),
    ("move_file", {"source": "01_Shallow/Zebra.md", "dest_layer": "sediment"}),
    ("purge_memory", {"path": "02_Sediment/Zebra.md", "confirm": True}),
    ("restore_memory", {"path": "_Archive/02_Sediment/Zebra.md"}),
    ("update_map", {"action": "add_link", "details": {"link": "[[Zebra]]"}}),
    ("read_map", {}),
    ("metabolize", {"dry_run": True}),
    ("recover_journal", {}),
    ("healthcheck", {}),
    ("get_metrics", {}),
)


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


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_calls_every_tool_over_http_with_the_token(
    inspect: Inspect, vault: Path, era: str
) -> None:
    assert {name for name, _ in CALLS} == {tool.name for tool in TOOLS}

    with served(vault) as server:
        where = {"type": "streamable-http", "url": server.url, "headers": server.headers()}
        for name, arguments in CALLS:
            called = inspect(
                where, era, "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments)
            )

            assert called.status == 0, (name, called.output, called.complaints)
            assert called.json["result"]["structuredContent"], name


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_finds_resources_and_prompts_and_reads_them(
    inspect: Inspect, vault: Path, era: str
) -> None:
    (vault / "01_Shallow/Zebra.md").write_text("Zebras have stripes.\n")
    asked = {
        "resources/list": (),
        "resources/templates/list": (),
        "resources/read": ("--uri", "palace://memory/01_Shallow/Zebra.md"),
        "prompts/list": (),
        "prompts/get": ("--prompt-name", "wake_up"),
    }

    with served(vault) as server:
        where = {"type": "streamable-http", "url": server.url, "headers": server.headers()}
        got = {method: inspect(where, era, method, *options) for method, options in asked.items()}

    assert {method: done.status for method, done in got.items()} == dict.fromkeys(asked, 0), got
    results = {method: done.json["result"] for method, done in got.items()}
    assert [one["uri"] for one in results["resources/list"]["resources"]] == [
        "palace://map",
        "palace://decaying",
    ]
    assert len(results["resources/templates/list"]["resourceTemplates"]) == 1
    assert "Zebras have stripes." in results["resources/read"]["contents"][0]["text"]
    assert [one["name"] for one in results["prompts/list"]["prompts"]] == ["wake_up", "reflect", "tidy"]
    assert results["prompts/get"]["messages"]
