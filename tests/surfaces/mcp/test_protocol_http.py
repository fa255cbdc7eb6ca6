"""Subscriptions and questions over HTTP: several agents on one process, in both eras, and none that leaks."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.mcp.rawhttp import HttpClient, HttpServer
from tests.surfaces.mcp.test_asking import AGREED, FORMS, PURGE, answered, asked
from tests.surfaces.mcp.test_subscriptions import KAFKA, MARKER, edit, mark, until


@pytest.fixture
def server(vault: Path, note: Callable[..., Path]) -> Iterator[HttpServer]:
    note("_System/Policy.md", "---\nquiet_seconds: 0.2\ntimezone: UTC\n---\n")
    note("01_Shallow/ideas/Kafka.md", "Kafka keeps topics.\n")
    note("01_Shallow/Kafka.md", "Another.\n")
    note("01_Shallow/marker.md", "0\n")
    with HttpServer(vault) as running:
        running.ready()
        yield running


class Agent(HttpClient):
    """An agent's client; a handshake one holds the stream of the server's own messages."""

    def open(self) -> dict[str, Any]:
        result = super().open()
        if not self.modern:
            self.stream = http.client.HTTPConnection(self.server.host, self.server.port, timeout=60)
            headers = self.headers(None) | {"Accept": "text/event-stream"}
            self.stream.request("GET", "/mcp", headers=headers)
            self._under_way["GET"] = self.stream
            reader = threading.Thread(target=self._read_messages, args=(self.stream, "GET"), daemon=True)
            self._readers.append(reader)
            reader.start()
        return result

    def subscribe(self, *uris: str) -> int:
        if not self.modern:
            for uri in uris:
                assert self.ask("resources/subscribe", {"uri": uri})["result"] == {}
            return 0
        number = self.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
        first = self.receive()
        assert first is not None
        assert first["method"] == "notifications/subscriptions/acknowledged"
        return number


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
def test_each_agent_hears_of_people_and_of_the_others(vault: Path, server: HttpServer, modern: bool) -> None:
    with (
        Agent(vault, server=server, modern=modern, name="one") as one,
        Agent(vault, server=server, modern=not modern, name="two") as two,
    ):
        for agent in (one, two):
            agent.open()
            agent.subscribe(KAFKA, MARKER)

        edit(vault / "01_Shallow/ideas/Kafka.md", "A person adds this.\n")
        heard_of_the_person = [until(agent, KAFKA) for agent in (one, two)]
        two.good("write_memory", content="More.", path="ideas/Kafka", mode="append")
        heard_of_the_other = until(one, KAFKA)

        assert heard_of_the_person == [[KAFKA], [KAFKA]]
        assert heard_of_the_other == [KAFKA]


def test_a_stream_that_was_cut_leaves_nothing_behind(vault: Path, server: HttpServer) -> None:
    with Agent(vault, server=server, modern=True) as agent:
        agent.open()
        for _ in range(1_010):  # more than may be open at once
            number = agent.subscribe(KAFKA)
            agent.notify("notifications/cancelled", {"requestId": number})
        agent.subscribe(KAFKA, MARKER)

        mark(vault)

        assert MARKER in until(agent, MARKER)


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
def test_a_person_is_asked_over_http(vault: Path, server: HttpServer, modern: bool) -> None:
    with Agent(vault, server=server, modern=modern) as agent:
        agent.capabilities.update(FORMS)
        agent.open()

        shown, held = asked(agent, "purge_memory", PURGE)
        response = answered(agent, held, AGREED)

        assert "01_Shallow/Kafka.md" in shown
        assert not response["result"].get("isError"), json.dumps(response)
    assert not (vault / "01_Shallow/Kafka.md").exists()
