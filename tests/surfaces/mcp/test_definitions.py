"""What every session of every agent pays for: names, descriptions, schemas and instructions, kept small."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Collection

import pytest

from vault_palace.core import budget
from vault_palace.core.errors import InvalidArguments
from vault_palace.surfaces.mcp.strict import schema_of
from vault_palace.surfaces.mcp.texts import INSTRUCTIONS, PRESETS, TOOLS, ToolText, chosen, instructions

ARGUMENTS = {
    "wake_up": "room max_tokens",
    "write_memory": "content layer path title tags density source_session mode if_rev supersedes",
    "read_memory": "path id title query layer max_tokens section touch",
    "search_room": "query room layer tags min_density proposed limit max_tokens cursor",
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


def definitions(names: Collection[str]) -> str:
    rows = [
        {"name": tool.name, "description": tool.about, "inputSchema": schema_of(tool.arguments)}
        for tool in TOOLS
        if tool.name in names
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def test_the_tools_and_their_arguments_are_those_of_the_specification() -> None:
    assert {tool.name: " ".join(argument.name for argument in tool.arguments) for tool in TOOLS} == ARGUMENTS


def test_the_briefing_is_the_first_tool_that_an_agent_sees() -> None:
    assert TOOLS[0].name == "wake_up"


def test_what_must_be_given_is_required_and_nothing_else() -> None:
    required = {tool.name: schema_of(tool.arguments).get("required") for tool in TOOLS}

    assert {name: names for name, names in required.items() if names} == REQUIRED


# What is counted, its ceiling in characters, and in o200k tokens.
CEILINGS = [
    pytest.param(definitions(PRESETS["all"]), 7_000, 1_800, id="all tools"),
    pytest.param(definitions(PRESETS["core"]), 4_400, 1_100, id="preset core"),
    pytest.param(INSTRUCTIONS, 1_300, 300, id="instructions"),
]


@pytest.mark.parametrize(("text", "characters", "tokens"), CEILINGS)
def test_what_every_session_pays_for_stays_below_its_ceiling(text: str, characters: int, tokens: int) -> None:
    assert len(text) <= characters
    assert budget.tokens(text) <= tokens * 1.3  # an estimate that errs on the safe side


@pytest.mark.parametrize(("text", "characters", "tokens"), CEILINGS)
def test_mc_16_what_every_session_pays_for_costs_no_more_tokens_than_allowed(
    text: str, characters: int, tokens: int
) -> None:
    script = (
        "const {encode} = require('gpt-tokenizer/cjs/encoding/o200k_base');"
        "console.log(encode(require('fs').readFileSync(0, 'utf8')).length)"
    )
    if shutil.which("node") is None:
        pytest.skip("Node is not here to count tokens")

    counted = subprocess.run(
        ["node", "-e", script], input=text, capture_output=True, text=True, timeout=120, check=False
    )

    if "Cannot find module" in counted.stderr:
        pytest.skip("npm's gpt-tokenizer is not here to count tokens (NODE_PATH may name its folder)")
    assert int(counted.stdout) <= tokens, counted.stderr


@pytest.mark.parametrize("tool", PRESETS["all"])
def test_instructions_speak_of_no_tool_that_is_not_offered(tool: str) -> None:
    offered = [name for name in PRESETS["all"] if name != tool]

    assert tool not in instructions(offered)


def test_instructions_do_not_say_that_reading_counts_where_nothing_is_written() -> None:
    offered = PRESETS["all"]

    assert "keeps a memory alive" in instructions(offered)
    assert "no read keeps a memory alive" in instructions(offered, read_only=True)
    assert "Reading counts" not in instructions(offered, read_only=True)


def test_instructions_teach_the_habit() -> None:
    told = instructions(PRESETS["core"])

    assert told == INSTRUCTIONS
    for word in (
        "wake_up",
        "search_room",
        "[[Title]]",
        "rate_memory",
        "use",
        "purge_memory",
        "never instructions",
    ):
        assert word in told


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("core", PRESETS["core"]),
        ("all", PRESETS["all"]),
        ("search_room, wake_up", ("wake_up", "search_room")),
        ("core,read_map", (*PRESETS["core"][:-1], "read_map", "recover_journal")),
        ("wake_up,,wake_up,", ("wake_up",)),
    ],
)
def test_tools_are_chosen_by_preset_or_name_and_keep_their_order(words: str, names: tuple[str, ...]) -> None:
    assert chosen(words) == names


@pytest.mark.parametrize("words", ["", " , ", "kore", "core,delete_everything", "WAKE_UP"])
def test_a_tool_that_is_not_there_cannot_be_chosen(words: str) -> None:
    with pytest.raises(InvalidArguments, match="tool"):
        chosen(words)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_only_what_policy_calls_destructive_is_marked_so(tool: ToolText) -> None:
    assert tool.destructive == (tool.name in {"metabolize", "purge_memory"})


def test_tools_that_write_nothing_are_marked_so() -> None:
    # A read writes its touch, and so read_memory is not one of them.
    assert [tool.name for tool in TOOLS if tool.reads_only] == [
        "wake_up",
        "search_room",
        "read_map",
        "healthcheck",
        "get_metrics",
    ]
