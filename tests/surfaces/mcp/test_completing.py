"""Completions: order and counts by themselves, rooms and paths through a server in both eras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS, PromptReference, ResourceTemplateReference

from tests.surfaces.mcp.realvault import talk
from vault_palace.surfaces.mcp.completing import MOST, best

PATHS = ["01_Shallow/ideas/Kafka.md", "01_Shallow/Kafka.md", "02_Sediment/about kafka.md", "03_Bedrock/kz.md"]
TEMPLATE = ResourceTemplateReference(type="ref/resource", uri="palace://memory/{+path}")


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", PATHS),
        ("  ", PATHS),
        ("01_Shallow/K", ["01_Shallow/Kafka.md", "01_Shallow/ideas/Kafka.md"]),
        ("KAFKA", ["01_Shallow/ideas/Kafka.md", "01_Shallow/Kafka.md", "02_Sediment/about kafka.md"]),
        ("kz", ["03_Bedrock/kz.md"]),
        ("shkfk", ["01_Shallow/ideas/Kafka.md", "01_Shallow/Kafka.md"]),
        ("zzz", []),
    ],
)
def test_what_begins_so_comes_before_what_holds_it(typed: str, found: list[str]) -> None:
    assert best(PATHS, typed) == (found, len(found))


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert best(["Café.md"], "cafe\u0301") == (["Café.md"], 1)


def test_ten_thousand_paths_are_cut_at_the_limit_and_counted() -> None:
    paths = [f"01_Shallow/room {number % 40}/note {number}.md" for number in range(10_000)]

    values, total = best(paths, "Note ")

    assert (len(values), total) == (MOST, 10_000)
    assert best(paths, "note 77") == best([path for path in paths if "77" in path or "7" in path], "note 77")
    assert best(paths, "room 7/note 77")[0][0] == "01_Shallow/room 7/note 7727.md"


def complete(
    vault: Path, era: str, ref: PromptReference | ResourceTemplateReference, name: str, value: str
) -> tuple[list[str], int | None, bool | None]:
    answers = []

    async def conversation(client: Client) -> None:
        found = (await client.complete(ref, {"name": name, "value": value})).completion
        answers.append((found.values, found.total, found.has_more))

    talk(vault, era, conversation)
    return answers[0]


@pytest.mark.parametrize("prompt", ["wake_up", "tidy"])
def test_rooms_are_completed_by_bare_name_and_by_folder(
    vault: Path, note: Callable[..., Path], era: str, prompt: str
) -> None:
    note("01_Shallow/ideas/Kafka.md")
    note("02_Sediment/ideas/old/Apollo.md")
    note("02_Sediment/people/Ada.md")
    ref = PromptReference(type="ref/prompt", name=prompt)

    assert complete(vault, era, ref, "room", "id") == (
        ["ideas", "ideas/old", "01_Shallow/ideas", "02_Sediment/ideas/old"],
        4,
        False,
    )


def test_paths_are_completed_and_archived_ones_only_where_they_are_asked_for(
    vault: Path, note: Callable[..., Path], era: str
) -> None:
    note("01_Shallow/Kafka.md")
    note("_Archive/01_Shallow/Kafka old.md")
    note("_System/Templates/Kafka.md")
    note("01_Shallow/.hidden/Kafka.md")

    assert complete(vault, era, TEMPLATE, "path", "kaf") == (["01_Shallow/Kafka.md"], 1, False)
    assert complete(vault, era, TEMPLATE, "path", "_Arch")[0] == ["_Archive/01_Shallow/Kafka old.md"]


def test_more_than_the_limit_is_said_to_be_more(vault: Path, note: Callable[..., Path], era: str) -> None:
    for number in range(130):
        note(f"01_Shallow/note {number:03}.md")

    values, total, more = complete(vault, era, TEMPLATE, "path", "note")

    assert (len(values), total, more) == (100, 130, True)


@pytest.mark.parametrize(
    ("ref", "name", "value"),
    [
        (PromptReference(type="ref/prompt", name="nope"), "room", ""),
        (ResourceTemplateReference(type="ref/resource", uri="palace://other/{x}"), "path", ""),
        (TEMPLATE, "path", "x" * 1_000),
    ],
)
def test_an_unknown_reference_is_refused(
    vault: Path, era: str, ref: PromptReference | ResourceTemplateReference, name: str, value: str
) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(MCPError) as caught:
            await client.complete(ref, {"name": name, "value": value})
        assert caught.value.code == INVALID_PARAMS

    talk(vault, era, conversation)


@pytest.mark.parametrize(
    ("ref", "name"), [(TEMPLATE, "other"), (PromptReference(type="ref/prompt", name="reflect"), "room")]
)
def test_an_argument_that_there_is_not_has_no_completions(
    vault: Path, era: str, ref: PromptReference | ResourceTemplateReference, name: str
) -> None:
    assert complete(vault, era, ref, name, "") == ([], 0, False)
