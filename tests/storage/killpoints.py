"""Stops the program at every system call that changes the disk: by SIGKILL, or by an error.

    every_kill_point(base, make_vault, act, check)

runs `make_vault(root)` and then `act(root)` in a child process that kills itself before, after, or half-way
through the n-th such call, and then `check(root, stop)`, for every n until the act runs to its end; then
`check(root, None)`. `every_failure_point` does the same in this process with an `OSError`, and
`every_abort_point` with an error that nothing catches and that also fails every call after it, as a kill
would: those two are what coverage can see.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import pytest

from vault_palace.core.errors import VaultError
from vault_palace.storage import files

When = Literal["before", "after", "half"]
CALLS = (
    *("open", "write", "fsync", "fdatasync", "truncate"),
    *("rename", "replace", "link", "unlink", "mkdir", "rmdir"),
)
_WRITING = os.O_CREAT | os.O_WRONLY | os.O_RDWR | os.O_TRUNC
_MOST = 5000  # an act that makes more calls than this is a loop


@dataclass(frozen=True)
class Stop:
    """Where the act was stopped: at the n-th call, which had this name."""

    number: int
    when: str
    call: str


class Aborted(BaseException):
    """Stands for a kill inside this process."""


class Fuse:
    """Counts the calls, and blows at the one it was set to."""

    def __init__(self, number: int, blow: Callable[[str], None], when: When = "before") -> None:
        self.number = number
        self.count = 0
        self.call = ""
        self._blow = blow
        self._when = when

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **more: Any) -> Any:
            if name == "open" and not args[1] & _WRITING:
                return call(*args, **more)
            self.count += 1
            mine = self.count == self.number
            if mine:
                self.call = name
            if mine and self._when == "half" and name == "write":
                call(args[0], bytes(args[1])[: len(args[1]) // 2])
            if mine and self._when != "after":
                self._blow(name)
            result = call(*args, **more)
            if mine and self._when == "after":
                self._blow(name)
            return result

        return wrapped


@contextlib.contextmanager
def lit(fuse: Fuse) -> Iterator[None]:
    """Every call that changes the disk goes through the fuse."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            if hasattr(os, name):
                patch.setattr(os, name, fuse.wrap(name, getattr(os, name)))
        patch.setattr(files, "_renameat2", fuse.wrap("renameat2", files._renameat2))
        yield


def every_kill_point(
    base: Path,
    make_vault: Callable[[Path], object],
    act: Callable[[Path], object],
    check: Callable[[Path, Stop | None], object],
    *,
    modes: tuple[When, ...] = ("before", "after"),
) -> int:
    """Kill the act at each of its calls; returns how many stops were checked."""
    stops = 0
    for when in modes:
        for number in range(1, _MOST):
            root = _fresh(base, f"{when}-{number}", make_vault)
            stop = _in_child(root, act, number, when)
            check(root, stop)
            shutil.rmtree(root)
            if stop is None:
                break
            stops += 1
        else:
            pytest.fail(f"more than {_MOST} calls")
    return stops


def _fresh(base: Path, name: str, make_vault: Callable[[Path], object]) -> Path:
    root = base / name
    root.mkdir(parents=True)
    make_vault(root)
    return root


def _in_child(root: Path, act: Callable[[Path], object], number: int, when: When) -> Stop | None:
    told, tell = os.pipe()
    write = os.write
    child = os.fork()
    if child == 0:

        def blow(name: str) -> NoReturn:
            write(tell, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError("still alive")

        sys.settrace(None)  # what a killed child ran through is told to nobody
        try:
            with lit(Fuse(number, blow, when)):
                act(root)
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        call = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return Stop(number, when, call)
    assert os.WEXITSTATUS(status) == 0, f"the act itself failed at stop {number} {when}"
    return None


def every_failure_point(
    base: Path,
    make_vault: Callable[[Path], object],
    act: Callable[[Path], object],
    check: Callable[[Path, Stop | None], object],
    *,
    number_of: int = errno.EIO,
) -> int:
    """Let each call fail once with an `OSError`; the act may answer with an error of ours, or go on."""

    def blow(name: str) -> NoReturn:
        raise OSError(number_of, os.strerror(number_of))

    return _in_process(base, make_vault, act, check, blow, VaultError)


def every_abort_point(
    base: Path,
    make_vault: Callable[[Path], object],
    act: Callable[[Path], object],
    check: Callable[[Path, Stop | None], object],
) -> int:
    """Let each call raise what nothing catches, and all calls after it as well."""

    def blow(name: str) -> NoReturn:
        raise Aborted(name)

    return _in_process(base, make_vault, act, check, blow, Aborted, for_good=True)


def _in_process(
    base: Path,
    make_vault: Callable[[Path], object],
    act: Callable[[Path], object],
    check: Callable[[Path, Stop | None], object],
    blow: Callable[[str], NoReturn],
    answers: type[BaseException],
    *,
    for_good: bool = False,
) -> int:
    for number in range(1, _MOST):
        root = _fresh(base, f"in-{number}", make_vault)
        fuse = LastingFuse(number, blow) if for_good else Fuse(number, blow)
        with lit(fuse), contextlib.suppress(answers):
            act(root)
        stop = Stop(number, "before", fuse.call) if fuse.call else None
        check(root, stop)
        shutil.rmtree(root)
        if stop is None:
            return number - 1
    pytest.fail(f"more than {_MOST} calls")


class LastingFuse(Fuse):
    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        inner = super().wrap(name, call)

        def wrapped(*args: Any, **more: Any) -> Any:
            if self.count >= self.number and not (name == "open" and not args[1] & _WRITING):
                self._blow(name)
            return inner(*args, **more)

        return wrapped
