"""Real servers, and what `status`, `healthcheck` and /health of other processes say of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.test_health import holder
from tests.surfaces.mcp.rawclient import ROOT, RawClient
from tests.surfaces.mcp.rawhttp import HttpServer
from tests.surfaces.watching import PATIENCE, policy

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

NOBODY_KEEPS = {"VAULT_PALACE_WATCH": "off"}  # a keeper would mend by its next write what is to be seen


def command(vault: Path, *words: str) -> tuple[int, Any]:
    """The exit status and the JSON of a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "vault_palace", *words, "--vault", str(vault), "--json"],
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.1)


def wrong(answer: dict[str, Any]) -> set[str]:
    """The codes of what keeps the palace from working."""
    return {problem["code"] for problem in answer["problems"][: answer["fault_count"]]}


@pytest.fixture
def kept(vault: Path) -> Path:
    """A palace after `init`."""
    policy(vault)
    return vault


def test_status_of_another_process_shows_the_calls_of_a_running_server(kept: Path) -> None:
    def calls() -> dict[str, Any]:
        _, said = command(kept, "status")
        return dict(said["servers"][0]["calls"]) if said["servers"] else {}

    with RawClient(kept) as client:
        client.open()
        client.good("write_memory", content="granite", title="Sand")
        found = client.good("search_room", query="granite")["matches"][0]["path"]
        client.good("read_memory", path=found)
        client.bad("read_memory", path="01_Shallow/none.md")

        until(lambda: calls().get("read_memory", {}).get("count") == 2, "the counts are there")
        _, said = command(kept, "status")
        client.process.send_signal(signal.SIGKILL)
        client.process.wait(PATIENCE)
        _, after = command(kept, "status")

    (server,) = said["servers"]
    assert (server["pid"], server["transport"], server["read_only"]) == (client.process.pid, "stdio", False)
    assert server["calls"]["read_memory"]["errors_by_code"] == {"not_found": 1}
    assert server["calls"]["search_room"]["hit_rate"] == 1.0
    assert sum(server["agents"].values()) == 4
    assert server["index"]["state"] in ("ready", "rebuilt")
    assert after["servers"] == []


def test_a_server_that_ends_as_it_should_takes_its_notice_along(kept: Path) -> None:
    with RawClient(kept) as client:
        client.open()
        client.good("healthcheck")
        until(lambda: bool(command(kept, "status")[1]["servers"]), "the notice is there")

        client.process.send_signal(signal.SIGTERM)
        client.process.wait(PATIENCE)

    assert list(Path(os.environ["XDG_STATE_HOME"]).rglob("running/*/*")) == []


def test_healthcheck_ends_with_1_for_the_lock_of_a_killed_process_until_the_next_write(kept: Path) -> None:
    with RawClient(kept, env=NOBODY_KEEPS) as client:
        client.open()
        client.good("write_memory", content="granite", title="Sand")
        with holder(kept) as process:
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
        in_server = client.good("healthcheck")
        outside, answer = command(kept, "healthcheck")

        client.good("recover_journal")

        assert (in_server["status"], outside) == ("failing", 1)
        assert wrong(in_server) == wrong(answer) == {"lock_dead"}
        assert client.good("healthcheck")["status"] == "ok"
        assert command(kept, "healthcheck")[0] == 0


def test_healthcheck_answers_while_the_lock_is_held_from_before_the_server_started(kept: Path) -> None:
    """An operation that was cut off makes the start ask for the lock."""
    (kept / "01_Shallow/.x.md.0123456789abcdef.tmp").write_text("cut off", encoding="utf-8")
    (kept / ".palace").mkdir()
    with holder(kept), RawClient(kept) as client:
        client.open()

        assert client.good("healthcheck")["status"] == "ok"
        assert command(kept, "healthcheck")[0] == 0


def test_a_keeper_that_stands_still_is_a_fault_while_a_server_counts_on_it(kept: Path) -> None:
    marker = kept / ".palace/keeper"
    keeper = subprocess.Popen(
        [sys.executable, "-m", "vault_palace", "watch", "--vault", str(kept)],
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        until(marker.exists, "the vault is kept")
        with RawClient(kept, env=NOBODY_KEEPS) as client:
            client.open()
            assert client.good("healthcheck")["status"] == "ok"
            keeper.send_signal(signal.SIGSTOP)
            os.utime(marker, (time.time() - 60,) * 2)  # as it would be a minute from now

            found = client.good("healthcheck")
            keeper.send_signal(signal.SIGCONT)

            assert wrong(found) == {"keeper_gone"}
            until(lambda: client.good("healthcheck")["status"] == "ok", "it keeps again")
    finally:
        keeper.kill()
        keeper.wait(PATIENCE)


DEAF = """
import ctypes, os, sys, time
from pathlib import Path
from vault_palace.services import health, values
from vault_palace.services.house import House
from vault_palace.services.palace import Palace
from vault_palace.surfaces import ears
from vault_palace.surfaces.watcher import Watch

root, base = Path(sys.argv[1]), Path(sys.argv[2])
settings = values.PalaceSettings(cache_dir=base / "cache", state_dir=base / "state")
with Palace.open(root, settings=settings) as palace:
    palace.health()  # loads what lies where the other user cannot read
if os.geteuid() == 0:
    for place in (base, *base.rglob("*")):
        os.chown(place, 60123, 60123)
    os.setgid(60123)
    os.setuid(60123)
libc, taken = ctypes.CDLL(None), []
while (one := libc.inotify_init()) >= 0:
    taken.append(one)
house = House.open(root, settings)
watch = Watch(house, how="events", patience=0.0)
watch.start()
assert watch.ready.wait(60)
def codes():
    return sorted(fault.code for fault in health.faults(house, None))
print(codes(), flush=True)
for one in taken:
    os.close(one)
watch._due.ears = 0.0
watch._wake()
end = time.monotonic() + 60
while codes() and time.monotonic() < end:
    time.sleep(0.1)
print(codes(), flush=True)
watch.stop()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs inotify")
def test_events_that_were_asked_for_and_cannot_be_had_are_a_fault_until_they_can(tmp_path: Path) -> None:
    base = tmp_path / "base"
    vault = base / "vault"
    for folder in ("01_Shallow", "_System"):
        (vault / folder).mkdir(parents=True)
    policy(vault)
    for above in (base, *base.parents):
        if "pytest-of-" in str(above):
            above.chmod(0o755)

    done = subprocess.run(
        [sys.executable, "-c", DEAF, str(vault), str(base)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )

    assert done.stdout.splitlines() == ["['watch_polls']", "[]"], done.stderr


def test_health_over_http_is_503_while_something_is_wrong(kept: Path) -> None:
    with HttpServer(kept, env=NOBODY_KEEPS) as server:
        server.ready()
        with holder(kept) as process:
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)

        until(lambda: server.get("/health")[0] == 503, "the fault is seen")
        assert command(kept, "recover")[0] == 0

        until(lambda: server.get("/health")[0] == 200, "it is gone")


def test_requests_over_http_are_counted_with_their_status(kept: Path) -> None:
    def counted() -> dict[str, Any]:
        _, said = command(kept, "status")
        return dict(said["servers"][0]["calls"].get("http", {})) if said["servers"] else {}

    with HttpServer(kept) as server:
        server.ready()
        assert server.get("/mcp")[0] == 401

        until(lambda: "401" in counted().get("errors_by_code", {}), "the refusal is counted")
        assert counted()["success"] > 0
