"""Asking a person before a destructive call: real processes, both eras, who agrees, declines or leaves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import INVALID_PARAMS, ElicitRequestParams, ElicitResult

from tests.surfaces.mcp.rawclient import SECONDS, RawClient
from tests.surfaces.mcp.rawhttp import HttpClient
from tests.surfaces.mcp.realvault import fading
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.surfaces.mcp import asking
from vault_palace.surfaces.mcp.desk import Desk
from vault_palace.surfaces.mcp.door import Door
from vault_palace.surfaces.mcp.server import build

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
AGREED = {"action": "accept", "content": {"confirm": True}}
REFUSALS = [
    {"action": "decline"},
    {"action": "cancel"},
    {"action": "accept", "content": {"confirm": False}},
    {"action": "accept", "content": {}},
    {"action": "accept"},
    {"action": "accept", "content": {"confirm": "true"}},
]
PURGE = {"path": "01_Shallow/Kafka.md", "reason": "wrong"}


@pytest.fixture(params=[False, True], ids=["handshake", "modern"])
def modern(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def vault_with_notes(vault: Path, note: Callable[..., Path]) -> Path:
    note("01_Shallow/Kafka.md", "---\nid: mem_0a1b2c3d4e5f\n---\nKafka keeps topics.\n")
    note("01_Shallow/Apollo.md", "See [[Kafka]].\n")
    return vault


@pytest.fixture
def client(vault_with_notes: Path, modern: bool) -> Iterator[RawClient]:
    with RawClient(vault_with_notes, modern=modern, capabilities=FORMS) as connected:
        connected.open()
        connected.good("search_room", query="kafka")
        yield connected


def is_there(vault: Path) -> bool:
    return (vault / "01_Shallow/Kafka.md").exists()


def asked(client: RawClient, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Make a call that is to be asked for; what is shown, and what an answer needs."""
    number = client.request("tools/call", {"name": name, "arguments": arguments})
    message = client.receive()
    assert message is not None
    if client.modern:
        result = message["result"]
        assert result["resultType"] == "input_required"
        [(key, request)] = result["inputRequests"].items()
        held = {"name": name, "arguments": arguments, "requestState": result["requestState"], "key": key}
    else:
        request, held = message, {"number": number, "id": message["id"]}
    assert request["method"] == "elicitation/create"
    schema = request["params"]["requestedSchema"]
    assert schema["required"] == ["confirm"]
    return request["params"]["message"], held


def answered(client: RawClient, held: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Answer what was asked, and give the whole response to the call."""
    if not client.modern:
        client.send({"jsonrpc": "2.0", "id": held["id"], "result": answer})
        return client.answer(held["number"])
    return client.ask(
        "tools/call",
        {
            "name": held["name"],
            "arguments": held["arguments"],
            "requestState": held["requestState"],
            "inputResponses": {held["key"]: answer},
        },
    )


def text_of(response: dict[str, Any]) -> str:
    text = response["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


def test_who_agrees_lets_the_note_go(vault: Path, client: RawClient) -> None:
    shown, held = asked(client, "purge_memory", PURGE)

    response = answered(client, held, AGREED)

    assert "01_Shallow/Kafka.md" in shown
    assert "_Archive/01_Shallow/Kafka.md" in shown
    assert "1 memory links to it: 01_Shallow/Apollo.md" in shown
    assert "wrong" in shown
    assert response["result"]["structuredContent"]["archived_to"] == "_Archive/01_Shallow/Kafka.md"
    assert not is_there(vault)


@pytest.mark.parametrize("answer", REFUSALS)
def test_whoever_does_not_agree_keeps_the_note(
    vault: Path, client: RawClient, answer: dict[str, Any]
) -> None:
    _, held = asked(client, "purge_memory", PURGE)

    response = answered(client, held, answer)

    if client.modern and "error" in response:  # the SDK refuses an answer of the wrong shape
        assert response["error"]["code"] == INVALID_PARAMS
    else:
        assert response["result"]["isError"] is True
        assert text_of(response).startswith("policy_violation: ")
        assert "nothing was done" in text_of(response)
    assert is_there(vault)
    client.good("read_map")


def test_metabolize_shows_the_counts_of_a_dry_run(
    vault: Path, note: Callable[..., Path], client: RawClient
) -> None:
    old = note("01_Shallow/old.md", fading("old"))
    os.utime(old, (1_600_000_000, 1_600_000_000))  # nobody is at work in it

    shown, held = asked(client, "metabolize", {})
    response = answered(client, held, AGREED)

    assert "1 would go to the archive (01_Shallow/old.md)" in shown
    assert response["result"]["structuredContent"]["archived"] == ["_Archive/01_Shallow/old.md"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("purge_memory", PURGE | {"confirm": True}),
        ("metabolize", {"confirm": True}),
        ("metabolize", {"dry_run": True}),
    ],
)
def test_nobody_is_asked_where_no_question_is_open(
    client: RawClient, name: str, arguments: dict[str, Any]
) -> None:
    client.good(name, **arguments)


def test_nobody_is_asked_where_policy_wants_no_confirmation(
    vault: Path, note: Callable[..., Path], client: RawClient
) -> None:
    note("_System/Policy.md", "---\ndestructive_require_confirm: false\n---\n")

    client.good("purge_memory", **PURGE)

    assert not is_there(vault)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "01_Shallow/nope.md"}, "not_found"),
        ({"path": "../x.md"}, "path_violation"),
        ({"path": "_System/Policy.md"}, "not_found"),
        ({"path": 5}, "invalid_arguments"),
        ({}, "invalid_arguments"),
        ({"path": "01_Shallow/Kafka.md", "reason": "x" * 2_000}, "budget_exceeded"),
    ],
)
def test_nobody_is_asked_for_what_cannot_be_done(
    client: RawClient, arguments: dict[str, Any], code: str
) -> None:
    assert client.bad("purge_memory", **arguments).startswith(f"{code}: ")


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}])
def test_a_client_without_forms_gets_the_plain_refusal(
    vault_with_notes: Path, modern: bool, capabilities: dict[str, Any]
) -> None:
    with RawClient(vault_with_notes, modern=modern, capabilities=capabilities) as client:
        client.open()

        assert client.bad("purge_memory", **PURGE).startswith(
            "policy_violation: purge_memory needs confirm: true."
        )
        assert client.bad("metabolize").startswith("policy_violation: metabolize needs confirm: true.")
    assert is_there(vault_with_notes)


def test_a_client_of_the_first_kind_with_forms_is_asked(vault_with_notes: Path) -> None:
    # An empty object is how the revision that brought elicitation says that there are forms.
    with RawClient(vault_with_notes, capabilities={"elicitation": {}}) as client:
        client.open()

        _, held = asked(client, "purge_memory", PURGE)

        assert not answered(client, held, AGREED)["result"].get("isError")


def test_what_changed_while_it_was_asked_for_is_asked_for_again(vault: Path, client: RawClient) -> None:
    first, held = asked(client, "purge_memory", PURGE)
    (vault / "01_Shallow/Kafka.md").write_text("---\nid: mem_0a1b2c3d4e5f\n---\nA person saved this.\n")

    if client.modern:
        again = answered(client, held, AGREED)["result"]
        assert again["resultType"] == "input_required"
        second = again["inputRequests"]["confirm"]["params"]["message"]
        held |= {"requestState": again["requestState"]}
    else:
        client.send({"jsonrpc": "2.0", "id": held["id"], "result": AGREED})
        message = client.receive()
        assert message is not None
        second = message["params"]["message"]
        held |= {"id": message["id"]}
    assert first != second
    assert is_there(vault)

    assert not answered(client, held, AGREED)["result"].get("isError")
    assert not is_there(vault)


def test_a_person_who_never_answers_hinders_nobody(vault: Path, client: RawClient) -> None:
    asked(client, "purge_memory", PURGE)

    client.good("write_memory", content="Others go on.", title="Other")
    client.good("purge_memory", path="01_Shallow/Apollo.md", confirm=True)
    client.end_input()
    rest = client.rest()

    assert client.wait() == 0
    assert is_there(vault)
    if not client.modern:
        assert any("policy_violation" in str(message) for message in rest)


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("answer", [[], "yes", None, 5, True])
def test_an_answer_without_a_shape_is_no_consent_and_no_answer_to_the_client(
    vault_with_notes: Path, over: str, answer: object
) -> None:
    kind = HttpClient if over == "http" else RawClient
    with kind(vault_with_notes) as client:
        client.capabilities.update(FORMS)
        client.open()
        _, held = asked(client, "purge_memory", PURGE)

        client.send({"jsonrpc": "2.0", "id": held["id"], "result": answer})
        message = client.receive()

        assert message is not None
        assert message["id"] == held["number"]
        assert text_of(message).startswith("policy_violation: Nobody answered")
        assert is_there(vault_with_notes)


def test_the_end_of_waiting_is_a_refusal(vault_with_notes: Path) -> None:
    settings = PalaceSettings(
        cache_dir=vault_with_notes.parent / "c", state_dir=vault_with_notes.parent / "s"
    )
    desk = Desk(Door(lambda: Palace.open(vault_with_notes, settings=settings)))
    desk.asking = asking.Asking(desk.ask, seconds=0.05)

    async def away(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        await anyio.sleep(SECONDS)
        return ElicitResult(action="cancel")

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode="legacy", elicitation_callback=away) as client:
                refused = await client.call_tool("purge_memory", PURGE)
                assert "policy_violation: Nobody answered" in str(refused.content)

    anyio.run(main)
    assert is_there(vault_with_notes)


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_the_sdk_s_own_client_is_asked_in_both_eras(vault_with_notes: Path, era: str) -> None:
    settings = PalaceSettings(
        cache_dir=vault_with_notes.parent / "c", state_dir=vault_with_notes.parent / "s"
    )
    desk = Desk(Door(lambda: Palace.open(vault_with_notes, settings=settings)))
    shown: list[str] = []

    async def agrees(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        shown.append(params.message)
        return ElicitResult(action="accept", content={"confirm": True})

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era, elicitation_callback=agrees) as client:
                done = await client.call_tool("purge_memory", PURGE)
                assert not done.is_error, done.content

    anyio.run(main)
    assert len(shown) == 1
    assert not is_there(vault_with_notes)


# -- what a modern client carries for us --------------------------------------------------------------------


@pytest.fixture
def carrier(vault_with_notes: Path) -> Iterator[RawClient]:
    with RawClient(vault_with_notes, modern=True, capabilities=FORMS) as connected:
        connected.open()
        yield connected


def test_a_state_of_another_call_is_refused(vault: Path, carrier: RawClient) -> None:
    _, held = asked(carrier, "purge_memory", {"path": "01_Shallow/Apollo.md"})

    other_note = answered(carrier, held | {"arguments": PURGE}, AGREED)
    other_tool = answered(carrier, held | {"name": "metabolize", "arguments": {}}, AGREED)

    assert other_note["error"]["code"] == other_tool["error"]["code"] == INVALID_PARAMS
    assert is_there(vault)


def test_a_state_counts_once(vault: Path, carrier: RawClient) -> None:
    _, held = asked(carrier, "purge_memory", PURGE)
    assert not answered(carrier, held, AGREED)["result"].get("isError")
    carrier.good("restore_memory", path="_Archive/01_Shallow/Kafka.md")

    again = answered(carrier, held, AGREED)

    assert again["error"]["code"] == INVALID_PARAMS
    assert is_there(vault)


@pytest.mark.parametrize("state", ["", "x", "v1.", "v1.AAAA", f"{'0' * 32} {'0' * 64}", "é", 5])
def test_a_forged_state_is_refused(vault: Path, carrier: RawClient, state: object) -> None:
    _, held = asked(carrier, "purge_memory", PURGE)

    forged = answered(carrier, held | {"requestState": state}, AGREED)

    assert forged["error"]["code"] == INVALID_PARAMS
    assert is_there(vault)


def test_a_state_of_another_server_is_refused(vault: Path, carrier: RawClient) -> None:
    with RawClient(vault, modern=True, capabilities=FORMS) as other:
        other.open()
        _, held = asked(other, "purge_memory", PURGE)

    assert answered(carrier, held, AGREED)["error"]["code"] == INVALID_PARAMS
    assert is_there(vault)


def test_a_call_that_comes_again_without_an_answer_is_asked_again(vault: Path, carrier: RawClient) -> None:
    _, held = asked(carrier, "purge_memory", PURGE)
    params = {name: held[name] for name in ("name", "arguments", "requestState")}

    again = carrier.ask("tools/call", params)["result"]

    assert again["resultType"] == "input_required"
    assert is_there(vault)


def test_answers_without_a_state_confirm_nothing(vault: Path, carrier: RawClient) -> None:
    params = {"name": "purge_memory", "arguments": PURGE, "inputResponses": {"confirm": AGREED}}

    again = carrier.ask("tools/call", params)["result"]

    assert again["resultType"] == "input_required"
    assert is_there(vault)


def test_open_questions_are_few_however_often_is_asked(vault_with_notes: Path) -> None:
    settings = PalaceSettings(
        cache_dir=vault_with_notes.parent / "c", state_dir=vault_with_notes.parent / "s"
    )
    desk = Desk(Door(lambda: Palace.open(vault_with_notes, settings=settings)))

    for number in range(asking.MOST_OPEN + 50):
        desk.asking._put(f"{number}?", "0")

    assert len(desk.asking._open) == asking.MOST_OPEN
    assert all(until > time.monotonic() for until in desk.asking._open.values())
