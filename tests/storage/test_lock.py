"""One writer at a time: threads, processes, dead owners, live ones, and markers that a kill left empty."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import _identity

from tests.storage.killpoints import Stop, every_kill_point
from tests.storage.palace import as_person
from vault_palace.core.errors import LockTimeout, PathViolation, StorageFailed
from vault_palace.storage.lock import WriteLock
from vault_palace.storage.vault import Vault

HOST = _identity._host.host_name()


def _lock(root: Path, timeout: float = 0.0, **more: Callable[..., float]) -> WriteLock:
    return WriteLock(Vault(root), timeout=timeout, **more)  # type: ignore[arg-type]


def _marker(root: Path, text: bytes) -> Path:
    place = root / ".palace" / "lock"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(text)
    return place


def _start_of(pid: int) -> int:
    start = _identity._process.process_start_token(pid)
    if start is None:
        pytest.skip("this system does not tell when a process started")
    return start


def _dead_pid() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


class Elsewhere:
    """Another process that holds the lock until it is told to finish."""

    def __init__(self, root: Path) -> None:
        told, tell = os.pipe()
        wait, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._go)
            with _lock(root, 5.0):
                os.write(tell, b"x")
                os.read(wait, 1)
            os._exit(0)
        os.close(wait)
        os.close(tell)
        self._done = False
        assert os.read(told, 1) == b"x"
        os.close(told)

    def finish(self) -> None:
        if not self._done:
            self._done = True
            os.close(self._go)
            os.waitpid(self.pid, 0)


@pytest.fixture
def elsewhere(vault: Path) -> Iterator[Elsewhere]:
    holder = Elsewhere(vault)
    yield holder
    holder.finish()


def test_the_lock_names_its_holder_while_it_is_held(vault: Path) -> None:
    lock = _lock(vault)
    assert lock.holder() is None

    with lock:
        holder = lock.holder()

    assert holder is not None
    assert holder.pid == os.getpid()
    assert str(os.getpid()) in str(holder)
    assert lock.holder() is None
    assert not (vault / ".palace" / "lock").exists()


def test_the_marker_is_its_owner_s_alone(vault: Path) -> None:
    """RC-11"""
    with _lock(vault):
        mode = (vault / ".palace" / "lock").stat().st_mode

    assert stat.S_IMODE(mode) == 0o600


def test_a_thread_may_take_the_lock_again(vault: Path) -> None:
    with _lock(vault), _lock(vault), _lock(vault) as inner:
        assert inner.holder() is not None

    assert _lock(vault).holder() is None


def test_another_thread_waits(vault: Path) -> None:
    caught: list[LockTimeout] = []

    def try_it() -> None:
        try:
            with _lock(vault):
                pass
        except LockTimeout as error:
            caught.append(error)

    with _lock(vault):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()

    assert "thread" in str(caught[0])
    assert caught[0].facts["holder_pid"] == os.getpid()
    with _lock(vault):
        pass


def test_another_process_is_named_when_it_does_not_finish(vault: Path, elsewhere: Elsewhere) -> None:
    """RC-08: a live owner is respected."""
    with pytest.raises(LockTimeout, match=str(elsewhere.pid)) as caught, _lock(vault):
        pass

    assert caught.value.facts["holder_pid"] == elsewhere.pid
    assert "delete" in caught.value.hint


def test_waiting_ends_when_the_holder_finishes(vault: Path, elsewhere: Elsewhere) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        elsewhere.finish()

    with WriteLock(Vault(vault), timeout=30.0, wait=wait) as lock:
        holder = lock.holder()

    assert len(waits) == 1
    assert holder is not None
    assert holder.pid == os.getpid()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (lambda: f"{_dead_pid()}\n{HOST}\n", "a dead process"),
        (lambda: f"{_dead_pid()}\n{HOST}\n12345\n", "a dead process with its start"),
        (lambda: f"1\n{HOST}\n{_start_of(1) + 1}\n", "id 1, as containers give it on each start"),
        (
            lambda: f"{os.getppid()}\n{HOST}\n{_start_of(os.getppid()) + 1}\n",
            "an unrelated process, id reused",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_dead_owner_s_marker_is_taken_over(vault: Path, text: Callable[[], str], what: str) -> None:
    """RC-08"""
    _marker(vault, text().encode())

    with _lock(vault) as lock:
        holder = lock.holder()

    assert holder is not None
    assert holder.pid == os.getpid()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (lambda: f"{os.getppid()}\n{HOST}\n{_start_of(os.getppid())}\n", "a live process"),
        (lambda: f"1\n{HOST}\n{_start_of(1)}\n", "id 1, alive"),
        (lambda: "4242\nanother-host\n99\n", "another host"),
        (lambda: f"{_dead_pid()}\nanother-host\n", "another host, whose ids mean nothing here"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_live_or_foreign_owner_s_marker_is_respected(
    vault: Path, text: Callable[[], str], what: str
) -> None:
    """RC-08"""
    place = _marker(vault, text().encode())
    before = place.read_bytes()
    os.utime(place, (1, 1))

    with pytest.raises(LockTimeout) as caught, _lock(vault):
        pass

    assert place.read_bytes() == before
    assert str(caught.value.facts["holder_pid"]) == before.split(b"\n")[0].decode()


def test_a_container_s_host_is_shown_by_its_name(vault: Path) -> None:
    _marker(vault, b"4242\nbox?pidns-f0000123\n99\n")

    holder = _lock(vault).holder()

    assert str(holder) == "process 4242 on box"


@pytest.mark.parametrize(("age", "taken"), [(9.9, False), (10.0, True), (3600.0, True)])
def test_an_empty_marker_is_taken_over_after_ten_seconds(vault: Path, age: float, taken: bool) -> None:
    """RC-08"""
    place = _marker(vault, b"")
    born = place.stat().st_mtime
    lock = _lock(vault, now=lambda: born + age)

    if taken:
        with lock:
            assert place.read_bytes()
    else:
        with pytest.raises(LockTimeout, match="left no name"), lock:
            pass
        assert place.read_bytes() == b""


@pytest.mark.parametrize("text", [b'{"pid": 12', b"4242\nhalf-a-ho", b"\0" * 64, b"\xff\xfe"])
def test_a_torn_marker_is_taken_over_once_it_was_seen_unchanged(
    vault: Path, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-08"""
    import filelock._soft._exclusive._recovery as recovery

    monkeypatch.setattr(recovery, "MALFORMED_LOCK_AGE_THRESHOLD", 0.0)
    _marker(vault, text)

    with _lock(vault) as lock:
        holder = lock.holder()

    assert holder is not None
    assert holder.pid == os.getpid()


@pytest.mark.parametrize("text", [b'{"pid": 12', b"x\nhost\n", b""])
def test_a_marker_that_names_nobody_is_said_to_name_nobody(vault: Path, text: bytes) -> None:
    _marker(vault, text)

    assert str(_lock(vault).holder()) == "a process that left no name"


def test_a_marker_that_cannot_be_read_still_has_a_holder(vault: Path) -> None:
    (vault / ".palace").mkdir()
    os.mkfifo(vault / ".palace" / "lock")

    holder = _lock(vault).holder()

    assert holder is not None
    assert holder.pid == 0


@pytest.mark.parametrize(
    "text", [lambda: f"{_dead_pid()}\n{HOST}\n".encode(), lambda: b""], ids=["dead", "empty"]
)
def test_of_twenty_starts_at_once_one_writes_at_a_time(vault: Path, text: Callable[[], bytes]) -> None:
    """RC-08"""
    _marker(vault, text())
    told, tell = os.pipe()
    wait, go = os.pipe()
    children = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(go)
                os.read(wait, 1)
                with _lock(vault, 60.0, now=lambda: time.time() + 60):
                    inside = os.open(vault / "inside", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                    os.write(tell, b"x")
                    os.close(inside)
                    os.unlink(vault / "inside")
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    os.close(wait)
    os.close(tell)

    os.close(go)  # all at once

    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    with os.fdopen(told, "rb") as pipe:
        assert len(pipe.read()) == 20
    assert codes == [0] * 20
    assert not (vault / ".palace" / "lock").exists()


def test_a_start_killed_at_any_call_blocks_nobody_for_long(memory_path: Path) -> None:
    """RC-08"""

    def act(root: Path) -> None:
        with _lock(root, 5.0):
            pass

    def check(root: Path, stop: Stop | None) -> None:
        with _lock(root, now=lambda: time.time() + 60) as lock:
            holder = lock.holder()
        assert holder is not None, stop
        assert holder.pid == os.getpid(), stop

    stops = every_kill_point(memory_path, lambda root: None, act, check)

    assert stops > 8


def test_a_process_killed_while_it_holds_the_lock_frees_it(vault: Path) -> None:
    """RC-08"""
    child = os.fork()
    if child == 0:
        _lock(vault).acquire()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (vault / ".palace" / "lock").exists()

    with _lock(vault) as lock:
        assert str(os.getpid()) in str(lock.holder())


def test_a_child_does_not_inherit_the_lock(vault: Path) -> None:
    with _lock(vault):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with pytest.raises(LockTimeout), _lock(vault):
                    pass
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0


def test_a_busy_kernel_lock_ends_in_a_timeout(vault: Path) -> None:
    import fcntl

    (vault / ".palace").mkdir()
    with (vault / ".palace" / "lock.guard").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)

        with pytest.raises(LockTimeout, match="Another process"), _lock(vault):
            pass


def test_a_marker_that_vanishes_between_two_looks_is_no_obstacle(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[bool] = []
    real = WriteLock._try

    def trying(marker: object) -> bool:
        tries.append(True)
        return len(tries) > 1 and real(marker)  # type: ignore[arg-type]

    monkeypatch.setattr(WriteLock, "_try", staticmethod(trying))

    with _lock(vault):
        assert len(tries) == 2


def test_a_vault_that_cannot_be_written_says_why(vault: Path) -> None:
    """FS-15"""
    for above in (vault, *vault.parents):
        if "pytest-of-" in str(above):
            above.chmod(0o755)

    def act() -> None:
        with pytest.raises(StorageFailed, match="no permission"), _lock(vault):
            pass

    as_person(act)


def test_a_state_folder_that_is_a_link_is_refused(vault: Path, tmp_path: Path) -> None:
    """FS-09"""
    (tmp_path / "elsewhere").mkdir()
    (vault / ".palace").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PathViolation), _lock(vault):
        pass

    assert list((tmp_path / "elsewhere").iterdir()) == []
