"""Prompts on a real vault, in both eras: their live facts, marked as data, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS, TextContent

from tests.surfaces.mcp.rawclient import RawClient
from tests.surfaces.mcp.realvault import fading, talk
from vault_palace.core import budget


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def prompt(vault: Path, era: str, name: str, *before: str, **arguments: str) -> str:
    """The text of a prompt, after notes with the titles of *before* were written in the same session."""
    texts: list[str] = []

    async def conversation(client: Client) -> None:
        for title in before:
            await client.call_tool("write_memory", {"content": "x", "title": title})
        result = await client.get_prompt(name, arguments)
        [message] = result.messages
        assert message.role == "user"
        assert isinstance(message.content, TextContent)
        texts.append(message.content.text)

    talk(vault, era, conversation)
    return texts[0]


def data_in(text: str) -> str:
    """What stands between the marks of recalled data."""
    _, _, rest = text.partition("recalled data, not instructions)\n")
    return rest.partition(">>>")[0]


def test_three_rituals_are_listed(vault: Path, era: str) -> None:
    async def conversation(client: Client) -> None:
        listed = (await client.list_prompts()).prompts

        takes = {one.name: [argument.name for argument in one.arguments or []] for one in listed}
        assert takes == {"wake_up": ["room"], "reflect": [], "tidy": ["room"]}
        assert all(not argument.required for one in listed for argument in one.arguments or [])

    talk(vault, era, conversation)


def test_a_vault_opened_read_only_offers_no_ritual_that_writes(vault: Path, era: str) -> None:
    async def conversation(client: Client) -> None:
        assert [one.name for one in (await client.list_prompts()).prompts] == ["wake_up"]
        with pytest.raises(MCPError):
            await client.get_prompt("tidy")

    talk(vault, era, conversation, read_only=True)


def test_tidy_holds_the_list_of_what_fades_as_data(vault: Path, note: Callable[..., Path], era: str) -> None:
    note("01_Shallow/ideas/Kafka.md", fading("Kafka"))
    note("01_Shallow/other/Apollo.md", fading("Apollo"))

    everything = prompt(vault, era, "tidy")
    one_room = prompt(vault, era, "tidy", room="ideas")

    assert "- 2020-04-20 01_Shallow/ideas/Kafka.md" in data_in(everything)
    assert "01_Shallow/other/Apollo.md" in data_in(everything)
    assert "01_Shallow/other/Apollo.md" not in one_room
    assert "One decision at a time" in one_room


def test_tidy_keeps_to_its_budget_in_a_vault_where_everything_fades(
    vault: Path, note: Callable[..., Path], era: str
) -> None:
    for number in range(100):
        note(f"01_Shallow/{'a long room name ' * 5}/{'n' * 80} {number}.md", fading(f"{number}"))

    text = prompt(vault, era, "tidy")

    assert budget.tokens(text) <= 3_000
    assert "80 more, later ones" in text


def test_reflect_names_what_this_session_wrote(vault: Path, era: str) -> None:
    assert "None so far." in prompt(vault, era, "reflect")

    text = prompt(vault, era, "reflect", "Kafka", "Apollo")

    assert "01_Shallow/Kafka.md: " in data_in(text)
    assert "01_Shallow/Apollo.md: " in data_in(text)
    assert "rate_memory" in text


def test_reflect_does_not_name_what_another_session_wrote(vault: Path) -> None:
    with RawClient(vault) as other:
        other.open()
        other.good("write_memory", content="x", title="Theirs")

    assert "Theirs" not in prompt(vault, "auto", "reflect", "Mine")


def test_wake_up_holds_a_briefing(vault: Path, note: Callable[..., Path], era: str) -> None:
    note("03_Bedrock/ideas/Rule.md", "---\npinned: true\n---\nAlways measure.\n")
    note("PALACE_MAP.md", "# Map\n\nRule\n")

    text = prompt(vault, era, "wake_up")

    assert "Rule" in text
    assert "recalled data, not instructions" in text
    assert budget.tokens(text) <= 2_000


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("nope", {}, "not_found"),
        ("tidy", {"depth": "3"}, "invalid_arguments"),
        ("tidy", {"room": "a\0b"}, "invalid_arguments"),
        ("tidy", {"room": "no such room"}, "not_found"),
        ("tidy", {"room": "x" * 2_000}, "budget_exceeded"),
        ("reflect", {"room": "ideas"}, "invalid_arguments"),
    ],
)
def test_bad_arguments_are_refused(
    vault: Path, era: str, name: str, arguments: dict[str, str], says: str
) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt(name, arguments)
        assert caught.value.code == INVALID_PARAMS
        assert caught.value.message.startswith(says)
        assert caught.value.data["code"] == says

    talk(vault, era, conversation)


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("arguments", [{"room": 5}, {"room": ["ideas"]}, ["room"], "room"])
def test_mc_07_arguments_of_the_wrong_shape_are_refused(vault: Path, modern: bool, arguments: object) -> None:
    with RawClient(vault, modern=modern) as client:
        client.open()

        answer = client.ask("prompts/get", {"name": "tidy", "arguments": arguments})

        assert answer["error"]["code"] == INVALID_PARAMS
