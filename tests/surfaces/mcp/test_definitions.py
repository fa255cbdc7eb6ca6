"""What every session of every agent pays for: names, descriptions, schemas and instructions, kept small."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from vault_palace.surfaces.mcp.strict import schema_of
from vault_palace.surfaces.mcp.texts import INSTRUCTIONS, TOOLS, ToolText

# SPEC's limit is 1,800 tokens (o200k). English and JSON of this kind have more than four characters a token.
MOST_CHARACTERS = 6_000
MOST_TOKENS = 1_800

ARGUMENTS = {
    "write_memory": "content layer path title tags density source_session mode if_rev supersedes",
    "read_memory": "path id title query layer max_tokens section touch",
    "search_room": "query room layer tags min_density limit max_tokens cursor",
    "rate_memory": "path id density pinned decay_days",
    "metabolize": "dry_run confirm days_threshold force",
    "purge_memory": "path reason confirm",
    "restore_memory": "path to_layer",
    "move_file": "source dest_layer new_path",
    "read_map": "",
    "update_map": "action details",
    "recover_journal": "",
    "healthcheck": "",
    "get_metrics": "",
}
REQUIRED = {
    "write_memory": ["content"],
    "search_room": ["query"],
    "purge_memory": ["path"],
    "restore_memory": ["path"],
    "move_file": ["source", "dest_layer"],
    "update_map": ["action", "details"],
}


def definitions() -> str:
    rows = [
        {"name": tool.name, "description": tool.about, "inputSchema": schema_of(tool.arguments)}
        for tool in TOOLS
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def test_the_tools_and_their_arguments_are_those_of_the_specification() -> None:
    assert {tool.name: " ".join(argument.name for argument in tool.arguments) for tool in TOOLS} == ARGUMENTS


def test_what_must_be_given_is_required_and_nothing_else() -> None:
    required = {tool.name: schema_of(tool.arguments).get("required") for tool in TOOLS}

    assert {name: names for name, names in required.items() if names} == REQUIRED


def test_definitions_stay_below_their_ceiling() -> None:
    assert len(definitions()) <= MOST_CHARACTERS


def test_instructions_stay_below_their_ceiling() -> None:
    assert len(INSTRUCTIONS) <= 1_000


def test_definitions_cost_no_more_tokens_than_the_specification_allows(tmp_path: Path) -> None:
    script = (
        "const {encode} = require('gpt-tokenizer/cjs/encoding/o200k_base');"
        "console.log(encode(require('fs').readFileSync(0, 'utf8')).length)"
    )
    if shutil.which("node") is None:
        pytest.skip("Node is not here to count tokens")

    counted = subprocess.run(
        ["node", "-e", script], input=definitions(), capture_output=True, text=True, timeout=120, check=False
    )

    if "Cannot find module" in counted.stderr:
        pytest.skip("npm's gpt-tokenizer is not here to count tokens (NODE_PATH may name its folder)")
    assert int(counted.stdout) <= MOST_TOKENS, counted.stderr


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_only_what_policy_calls_destructive_is_marked_so(tool: ToolText) -> None:
    assert tool.destructive == (tool.name in {"metabolize", "purge_memory"})


def test_tools_that_write_nothing_are_marked_so() -> None:
    # A read writes its touch, and so read_memory is not one of them.
    assert [tool.name for tool in TOOLS if tool.reads_only] == [
        "search_room",
        "read_map",
        "healthcheck",
        "get_metrics",
    ]
