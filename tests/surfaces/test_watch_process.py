"""Real processes: `vault-palace watch`, the keeper inside `serve`, and how one follows the other."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.storage.palace import everything
from tests.surfaces.mcp.rawclient import RawClient
from tests.surfaces.watching import PATIENCE, policy
from vault_palace.core import frontmatter
from vault_palace.storage.lease import Lease
from vault_palace.storage.vault import Vault

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

Run = Callable[..., "Watching"]


class Watching:
    """A `vault-palace watch` process whose lines can be waited for."""

    def __init__(self, vault: Path, *options: str, env: dict[str, str]) -> None:
        self.lines: list[str] = []
        self._came: queue.Queue[str | None] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vault_palace", "watch", "--vault", str(vault), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, **env},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._came.put(line.rstrip("\n"))
        self._came.put(None)

    def says(self, words: str) -> str:
        """The next line with *words*."""
        while True:
            line = self._came.get(timeout=PATIENCE)
            assert line is not None, f"it ended without saying {words!r}: {self.lines}"
            self.lines.append(line)
            if words in line:
                return line

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit status after that signal, all its lines read."""
        self.process.send_signal(number)
        return self.rest()

    def rest(self) -> int:
        status = self.process.wait(PATIENCE)
        while (line := self._came.get(timeout=PATIENCE)) is not None:
            self.lines.append(line)
        return status

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "VAULT_PALACE_CACHE_DIR": str(tmp_path / "cache"),
        "VAULT_PALACE_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.fixture
def watching(vault: Path, env: dict[str, str]) -> Iterator[Run]:
    policy(vault, "quiet_seconds: 0\nauto_metabolize: off\n")
    started: list[Watching] = []

    def start(*options: str, **more: str) -> Watching:
        started.append(Watching(vault, *options, env={**env, **more}))
        return started[-1]

    yield start
    for one in started:
        one.close()


def until(true: Callable[[], Any], what: str) -> None:
    """Wait for what another process does to the disk; nothing but looking again can tell."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.05)


def has_id(place: Path) -> bool:
    return bool(frontmatter.read(place.read_text(encoding="utf-8")).values.get("id"))


def marker_owner(vault: Path) -> int:
    name = Lease(Vault(vault)).holder().split()
    return int(name[1]) if len(name) > 1 and name[1].isdigit() else 0


def test_a_note_that_a_person_adds_becomes_a_memory(vault: Path, watching: Run) -> None:
    watch = watching()
    watch.says("Mode events")
    note = vault / "01_Shallow/Pump.md"

    note.write_text("The pump needs water.\n", encoding="utf-8")

    until(lambda: has_id(note), "the id")
    assert note.read_text(encoding="utf-8").endswith("The pump needs water.\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(vault: Path, watching: Run, number: int) -> None:
    watch = watching()
    watch.says("Mode events")

    status = watch.end(number)

    assert (status, watch.lines[-1]) == (0, "Ended.")
    assert not (vault / ".palace/keeper").exists()
    assert not (vault / ".palace/probe").exists()


def test_it_says_what_it_does_one_line_each(vault: Path, watching: Run) -> None:
    watch = watching("--json")
    watch.says("Mode events")

    watch.end()

    said = [json.loads(line) for line in watch.lines]
    assert {line["level"] for line in said} == {"info"}
    assert [line["message"].partition(" ")[0] for line in said] == ["Watching", "This", "Mode", "Ended."]


@pytest.mark.parametrize(
    ("options", "more"), [(["--poll"], {}), ([], {"VAULT_PALACE_WATCH": "poll"})], ids=["option", "variable"]
)
def test_polling_by_choice_finds_what_changed(
    vault: Path, watching: Run, options: list[str], more: dict[str, str]
) -> None:
    watch = watching(*options, **more)
    watch.says("Mode polling")
    note = vault / "01_Shallow/Pump.md"

    note.write_text("The pump needs water.\n", encoding="utf-8")

    until(lambda: has_id(note), "the id")


def test_without_a_policy_it_only_watches_and_says_so(vault: Path, watching: Run) -> None:
    (vault / "_System/Policy.md").unlink()
    (vault / "01_Shallow/Old.md").write_text("old\n", encoding="utf-8")
    before = everything(vault)

    watch = watching()
    watch.says("only watched")
    watch.says("Mode")
    watch.end()

    assert everything(vault) == before
    assert not (vault / ".palace").exists()


def test_once_does_what_is_due_and_ends(vault: Path, watching: Run) -> None:
    note = vault / "01_Shallow/Pump.md"
    note.write_text("The pump needs water.\n", encoding="utf-8")

    watch = watching("--once")

    assert watch.rest() == 0, watch.lines
    assert has_id(note)
    assert not (vault / ".palace/keeper").exists()


def test_once_without_a_policy_writes_nothing(vault: Path, watching: Run) -> None:
    (vault / "_System/Policy.md").unlink()
    (vault / "01_Shallow/Old.md").write_text("old\n", encoding="utf-8")
    before = everything(vault)

    watch = watching("--once")

    assert watch.rest() == 0, watch.lines
    assert everything(vault) == before


def test_once_leaves_the_keeping_to_a_keeper_that_lives(vault: Path, watching: Run) -> None:
    keeper = watching()
    keeper.says("Mode events")

    once = watching("--once")

    assert once.rest() == 13
    assert f"busy: The vault is kept by process {keeper.process.pid}" in once.lines[0]
    assert marker_owner(vault) == keeper.process.pid


def test_a_killed_keeper_is_followed_by_the_one_that_stands_by(vault: Path, watching: Run) -> None:
    first = watching()
    first.says("Mode events")
    second = watching()
    second.says("Kept by process")
    second.says("Mode events")

    first.process.kill()
    first.process.wait(PATIENCE)

    second.says("This process keeps")
    assert marker_owner(vault) == second.process.pid
    note = vault / "01_Shallow/Pump.md"
    note.write_text("The pump needs water.\n", encoding="utf-8")
    until(lambda: has_id(note), "the id")


def test_a_keeper_that_stands_still_is_followed_and_then_stands_by(vault: Path, watching: Run) -> None:
    """For a moment there may be two, which is harmless: every note still has its one id and all its words."""
    first = watching()
    first.says("Mode events")
    second = watching()
    second.says("Mode events")
    notes = [vault / f"01_Shallow/Note {number}.md" for number in range(20)]
    first.process.send_signal(signal.SIGSTOP)
    second.says("This process keeps")

    for number, note in enumerate(notes):
        note.write_text(f"words {number}\n", encoding="utf-8")
    first.process.send_signal(signal.SIGCONT)

    first.says("Kept by process")
    until(lambda: all(has_id(note) for note in notes), "the ids")
    assert marker_owner(vault) == second.process.pid
    headers = [frontmatter.read(note.read_text(encoding="utf-8")) for note in notes]
    assert len({str(header.values["id"]) for header in headers}) == 20
    assert [header.body.strip() for header in headers] == [f"words {number}" for number in range(20)]


# -- the keeper inside `serve` -------------------------------------------------------------------------------


@pytest.fixture
def client(vault: Path, env: dict[str, str]) -> Iterator[RawClient]:
    policy(vault, "quiet_seconds: 0\nauto_metabolize: off\n")
    with RawClient(vault, env=env) as raw:
        raw.open()
        yield raw


def kept_here(client: RawClient) -> bool:
    return bool(client.good("healthcheck")["watch"]["keeper"])


def test_the_server_keeps_the_vault_and_says_so(vault: Path, client: RawClient) -> None:
    note = vault / "01_Shallow/Pump.md"
    note.write_text("The pump needs water.\n", encoding="utf-8")

    until(lambda: kept_here(client), "the keeper")
    until(lambda: has_id(note), "the id")

    assert marker_owner(vault) == client.process.pid
    until(lambda: "keeper" in client.good("get_metrics"), "the end of a step")
    assert client.good("get_metrics")["keeper"]["error"] == 0
    client.end_input()
    client.rest()
    assert client.wait() == 0
    assert not (vault / ".palace/keeper").exists()


@pytest.mark.parametrize("why", ["read-only", "off"])
def test_a_server_that_may_not_keep_takes_no_lease(vault: Path, env: dict[str, str], why: str) -> None:
    policy(vault, "read_only: true\n" if why == "read-only" else "")
    before = {*everything(vault)}
    more = {"VAULT_PALACE_WATCH": "off"} if why == "off" else {}
    with RawClient(vault, env={**env, **more}) as client:
        client.open()
        modes = {"off"} if why == "off" else {"events", "polling"}
        until(lambda: client.good("healthcheck")["watch"]["mode"] in modes, "the watcher")

        facts = client.good("healthcheck")["watch"]

    assert (facts["keeper"], facts["holder"]) == (False, "")
    assert {*everything(vault)} - before <= {".palace/.gitignore"}


def test_mc_10_a_burst_of_calls_beside_the_keeper_loses_nothing(vault: Path, client: RawClient) -> None:
    """20 appends and 5 ratings of one note, its rename, 20 new notes and 3 searches, sent without waiting.

    The order may vary: an append by the path that the note has left by then is refused in so many words, and
    the agent repeats it by the new one, which `move_file` answered.
    """
    client.good("write_memory", content="A pump.", title="Pump")
    pump = client.good("read_memory", title="Pump")["metadata"]["id"]
    client.good("write_memory", content="See [[Pump]].", title="Reader")
    until(lambda: kept_here(client), "the keeper")

    def send(name: str, **arguments: object) -> int:
        return client.request("tools/call", {"name": name, "arguments": arguments})

    appended = [
        send("write_memory", content=f"line {number} of twenty", path="Pump.md", mode="append")
        for number in range(20)
    ]
    rated = [send("rate_memory", id=pump, density=number / 10) for number in range(5)]
    moved = send("move_file", source="01_Shallow/Pump.md", dest_layer="shallow", new_path="tools/Big pump")
    written = [
        send("write_memory", content=f"new note {number}", title=f"New {number}") for number in range(20)
    ]
    sought = [send("search_room", query="pump") for _ in range(3)]
    wanted = {*appended, *rated, moved, *written, *sought}
    answers: dict[int, dict[str, Any]] = {}
    while wanted - answers.keys():
        message = client.receive()
        assert message is not None, client.stderr()
        if message.get("id") in wanted:
            answers[message["id"]] = message["result"]

    refused = {number: told for number, told in answers.items() if told.get("isError")}
    assert refused.keys() <= {*appended}, refused
    assert all(told["_meta"]["code"] == "not_found" for told in refused.values())
    for number, call in enumerate(appended):
        if call in refused:
            again = f"line {number} of twenty"
            client.good("write_memory", content=again, path="tools/Big pump", mode="append")
    text = (vault / "01_Shallow/tools/Big pump.md").read_text(encoding="utf-8")
    header = frontmatter.read(text)
    lines = [line for line in header.body.splitlines() if line]
    assert sorted(lines) == sorted(["A pump.", *(f"line {number} of twenty" for number in range(20))])
    assert header.problem is None
    assert header.values["id"] == pump
    assert header.values["density"] in [number / 10 for number in range(5)]
    assert all(answers[call]["structuredContent"]["id"] == pump for call in rated)
    ids = {answers[call]["structuredContent"]["id"] for call in written}
    assert len(ids) == 20
    assert {place.name for place in vault.glob("01_Shallow/New *.md")} == {f"New {n}.md" for n in range(20)}
    assert "[[Big pump]]" in (vault / "01_Shallow/Reader.md").read_text(encoding="utf-8")
    assert not (vault / "01_Shallow/Pump.md").exists()
    until(lambda: "keeper" in client.good("get_metrics"), "the end of a step")
    assert client.good("get_metrics")["keeper"]["errors_by_code"] == {}
