"""One keeper a vault: a living one is left alone, a dead or silent one followed, nothing appears unasked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vault_palace.storage.lease import DURATION, HEARTBEAT, Lease
from vault_palace.storage.vault import Vault

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds until a test gives up; never how long it takes
QUICK = {"duration": 3.0, "heartbeat": 0.3}  # the same rules, sooner; a stall of a busy machine is shorter

OWNER = """
import sys, threading
from pathlib import Path
from vault_palace.storage.lease import Lease
from vault_palace.storage.vault import Vault

lost = threading.Event()
duration, heartbeat = map(float, sys.argv[2:])
lease = Lease(Vault(Path(sys.argv[1])), lost=lost.set, duration=duration, heartbeat=heartbeat)
print(lease.take(), flush=True)
lost.wait()
print("lost", lease.held, lease.take(), flush=True)
sys.stdin.read()
"""


class Owner:
    """Another process that takes the lease and tells when it loses it."""

    def __init__(self, root: Path, duration: float, heartbeat: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(root), str(duration), str(heartbeat)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.took = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def owner(vault: Path) -> Iterator[Callable[..., Owner]]:
    owners: list[Owner] = []

    def start(duration: float = DURATION, heartbeat: float = HEARTBEAT) -> Owner:
        owners.append(Owner(vault, duration, heartbeat))
        return owners[-1]

    yield start
    for one in owners:
        one.close()


@pytest.fixture
def lease(vault: Path) -> Iterator[Callable[..., Lease]]:
    """Leases that are given back at the end, or their heartbeats would go on."""
    made: list[Lease] = []

    def make(**more: object) -> Lease:
        made.append(Lease(Vault(vault), **more))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.release()


def until(true: Callable[[], bool]) -> None:
    """Wait for *true*, which is asked again and again as a process that stands by asks."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def test_of_two_only_the_first_is_the_keeper(lease: Callable[..., Lease]) -> None:
    first, second = lease(), lease()

    taken = (first.take(), second.take(), first.take())

    assert taken == (True, False, True)
    assert (first.held, second.held) == (True, False)


def test_a_lease_given_back_is_free_at_once(vault: Path, lease: Callable[..., Lease]) -> None:
    first, second = lease(), lease()
    assert first.take()

    first.release()

    assert not (vault / ".palace/keeper").exists()
    assert second.take()


def test_the_keeper_is_named_to_everybody(lease: Callable[..., Lease]) -> None:
    first, second = lease(), lease()
    assert second.holder() == ""

    first.take()

    assert second.holder().startswith(f"process {os.getpid()} on ")


def test_a_keeper_that_has_been_silent_for_long_is_not_named(lease: Callable[..., Lease]) -> None:
    lease().take()

    late = lease(now=lambda: time.time() + 2 * DURATION + HEARTBEAT)

    assert late.holder() == ""


@pytest.mark.parametrize("text", [b"", b"12\nhost\n", b"\xff\xfe", b"pid=many\n", b"filelock/2\npid=\n"])
def test_a_marker_that_nobody_can_read_names_nobody_in_particular(
    vault: Path, lease: Callable[..., Lease], text: bytes
) -> None:
    (vault / ".palace").mkdir()
    (vault / ".palace/keeper").write_bytes(text)

    assert lease().holder() == "a process that left no name"


def test_the_marker_is_its_owner_s_alone(vault: Path, lease: Callable[..., Lease]) -> None:
    lease().take()

    mode = (vault / ".palace/keeper").stat().st_mode & 0o777

    assert mode == 0o600


@pytest.mark.parametrize("stays", [False, True], ids=["no folder", "empty folder"])
def test_wt_08_a_vault_that_is_away_is_not_taken_and_gets_no_folder(
    vault: Path, lease: Callable[..., Lease], stays: bool
) -> None:
    mine = lease()
    vault.rename(vault.with_name("away"))
    if stays:
        vault.mkdir()

    taken = mine.take()

    assert not taken
    assert not stays or list(vault.iterdir()) == []
    assert stays or not vault.exists()


def test_wt_08_a_keeper_is_none_while_its_vault_is_away(vault: Path, lease: Callable[..., Lease]) -> None:
    mine = lease(**QUICK)
    mine.take()

    vault.rename(vault.with_name("away"))

    assert not mine.held
    assert not mine.take()
    assert not vault.exists()
    vault.with_name("away").rename(vault)
    until(mine.take)


def test_a_folder_that_may_not_be_written_to_is_no_error(vault: Path, lease: Callable[..., Lease]) -> None:
    (vault / ".palace").write_text("in the way", encoding="utf-8")

    taken = lease().take()

    assert not taken


def test_a_person_who_removes_the_marker_costs_the_keeper_its_place_at_once(
    vault: Path, lease: Callable[..., Lease]
) -> None:
    lost = threading.Event()
    mine = lease(lost=lost.set, **QUICK)
    mine.take()

    (vault / ".palace/keeper").unlink()

    assert not mine.held
    assert lost.wait(PATIENCE)
    assert mine.take()


def test_a_marker_of_another_program_stays(vault: Path, lease: Callable[..., Lease]) -> None:
    mine = lease()
    mine.take()
    marker = vault / ".palace/keeper"
    marker.unlink()
    marker.write_bytes(b"someone else's\n")

    mine.release()

    assert marker.read_bytes() == b"someone else's\n"


def test_a_living_keeper_is_never_followed_while_it_gives_signs(
    vault: Path, owner: Callable[..., Owner], lease: Callable[..., Lease]
) -> None:
    other = owner(**QUICK)
    mine = lease(**QUICK)
    marker = vault / ".palace/keeper"
    signs: set[int] = set()

    def several_signs() -> bool:
        signs.add(marker.stat().st_mtime_ns)
        assert not mine.take()
        return len(signs) > 11  # more beats than a lease lasts

    until(several_signs)

    assert other.took == "True"
    assert not mine.held


def test_a_killed_keeper_is_followed(owner: Callable[..., Owner], lease: Callable[..., Lease]) -> None:
    other = owner()
    mine = lease()
    assert not mine.take()

    other.process.send_signal(signal.SIGKILL)
    other.process.wait(PATIENCE)

    until(mine.take)
    assert mine.holder().startswith(f"process {os.getpid()} ")


def test_a_keeper_that_stood_still_finds_itself_followed(
    owner: Callable[..., Owner], lease: Callable[..., Lease]
) -> None:
    other = owner(**QUICK)
    mine = lease(**QUICK)
    other.process.send_signal(signal.SIGSTOP)
    until(mine.take)

    other.process.send_signal(signal.SIGCONT)

    assert other.line() == "lost False False"
    assert mine.held


def test_a_peer_with_other_times_is_left_alone(lease: Callable[..., Lease]) -> None:
    lease().take()

    taken = lease(**QUICK).take()

    assert not taken
