"""Who asked for an operation is who the journal names."""

from __future__ import annotations

from vault_palace.services.caller import CALLER, Caller, current
from vault_palace.services.palace import Palace, PalaceSettings


def sessions(palace: Palace) -> list[str]:
    return [entry.session for entry in palace.house.journal.entries()]


def test_an_operation_is_journalled_in_the_session_of_its_caller(palace: Palace) -> None:
    token = CALLER.set(Caller(agent="claude-code", session="http-7"))
    try:
        palace.write("Apollo uses events.", title="Apollo")
    finally:
        CALLER.reset(token)
    palace.write("Kafka keeps topics.", title="Kafka")

    assert [session for session in sessions(palace) if session] == ["http-7", "test-1"]


def test_undo_of_one_session_leaves_the_work_of_another(palace: Palace) -> None:
    token = CALLER.set(Caller(agent="claude-code", session="http-7"))
    try:
        palace.write("Apollo uses events.", title="Apollo")
    finally:
        CALLER.reset(token)
    palace.write("Kafka keeps topics.", title="Kafka")

    palace.undo(session="http-7", confirm=True)

    held = {hit["title"] for query in ("events", "topics") for hit in palace.search(query)["matches"]}
    assert held == {"Kafka"}


def test_an_agent_without_a_session_of_its_own_acts_in_that_of_the_process() -> None:
    token = CALLER.set(Caller(agent="claude-code"))
    try:
        caller = current(PalaceSettings(session="mcp-1"))
    finally:
        CALLER.reset(token)

    assert caller == Caller(agent="claude-code", session="mcp-1")


def test_whoever_names_no_caller_acts_for_the_process() -> None:
    assert current(PalaceSettings(session="cli-1")) == Caller(session="cli-1")
