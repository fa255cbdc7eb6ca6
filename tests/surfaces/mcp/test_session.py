"""A whole session of an agent with the SDK's client, on the real server and a real vault, in both eras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.surfaces.mcp.rawclient import ROOT, SECONDS, RawClient

OLD = """\
---
id: mem_0a1b2c3d4e5f
layer: shallow
created: '2020-04-20T09:00:00+00:00'
last_touched: '2020-04-21T09:00:00+00:00'
density: 0.7
streak: 0
decay_days: 7
tags: []
status: active
source_session: mcp_session
---

Written by Sediment Palace about zebras.
"""


def told(result: Any) -> dict[str, Any]:
    """The structured content of a call that went well."""
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_an_agent_works_with_its_memory(vault: Path, mode: str) -> None:
    (vault / "01_Shallow/old.md").write_text(OLD)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "vault_palace.surfaces.mcp", "--vault", str(vault)],
        cwd=str(ROOT),
        env={"XDG_CACHE_HOME": str(vault.parent / "cache"), "XDG_STATE_HOME": str(vault.parent / "state")},
    )

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(stdio_client(server), mode=mode) as client:
                await client.list_tools()
                kafka = told(
                    await client.call_tool(
                        "write_memory", {"content": "Kafka keeps topics.", "title": "Kafka"}
                    )
                )
                await client.call_tool(
                    "write_memory",
                    {"content": "Apollo uses [[Kafka]].", "path": "ideas/Apollo", "tags": "svc, db"},
                )
                rated = told(await client.call_tool("rate_memory", {"id": kafka["id"], "density": 0.8}))
                assert rated["after"]["density"] == 0.8

                found = told(await client.call_tool("search_room", {"query": "topics", "room": "01_Shallow"}))
                assert [match["path"] for match in found["matches"]] == ["01_Shallow/Kafka.md"]
                read = told(await client.call_tool("read_memory", {"path": "01_Shallow/Kafka.md"}))
                assert read["backlinks"] == ["01_Shallow/ideas/Apollo.md"]
                assert read["content"].strip() == "Kafka keeps topics."

                plan = told(await client.call_tool("metabolize", {"dry_run": True}))
                assert plan["promoted"] == ["02_Sediment/old.md"]
                assert [decision["path"] for decision in plan["decisions"]] == ["01_Shallow/old.md"]
                assert told(await client.call_tool("healthcheck", {}))["service"] == "vault-palace"

    anyio.run(main)

    assert (vault / "01_Shallow/old.md").read_text() == OLD


@pytest.mark.parametrize("modern", [False, True])
def test_every_answer_of_the_real_palace_fits_its_declared_schema(vault: Path, modern: bool) -> None:
    (vault / "01_Shallow/old.md").write_text(OLD)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("wake_up", {}),
        ("wake_up", {"room": "shallow", "max_tokens": "200"}),
        ("write_memory", {"content": "About zebras. See [[old]].", "title": "Zebra", "density": 0.3}),
        ("write_memory", {"content": "More.", "path": "Zebra", "mode": "append"}),
        ("read_memory", {"title": "Zebra"}),
        ("read_memory", {"title": "Zebra", "max_tokens": 200}),
        ("read_memory", {"query": "zebra"}),
        ("read_memory", {"query": "nothing at all"}),
        ("search_room", {"query": "zebra", "limit": 1}),
        ("search_room", {"query": ""}),
        ("search_room", {"query": "zebra", "room": "", "min_density": 0.1, "tags": []}),
        ("rate_memory", {"path": "01_Shallow/Zebra.md", "pinned": True, "decay_days": 30}),
        ("metabolize", {"dry_run": True}),
        ("move_file", {"source": "01_Shallow/Zebra.md", "dest_layer": "sediment"}),
        ("purge_memory", {"path": "02_Sediment/Zebra.md", "reason": "done", "confirm": True}),
        ("restore_memory", {"path": "_Archive/02_Sediment/Zebra.md", "to_layer": "shallow"}),
        ("read_map", {}),
        ("update_map", {"action": "add_link", "details": {"link": "[[Zebra]]"}}),
        ("update_map", {"action": "remove_link", "details": {"link": "[[Zebra]]"}}),
        ("recover_journal", {}),
        ("healthcheck", {}),
        ("metabolize", {"confirm": True}),
        ("get_metrics", {}),
    ]

    with RawClient(vault, modern=modern) as client:
        client.open()
        schemas = {tool["name"]: tool["outputSchema"] for tool in client.ask("tools/list")["result"]["tools"]}

        for name, arguments in calls:
            jsonschema.validate(client.good(name, **arguments), schemas[name])

    assert {name for name, _ in calls} == set(schemas)
