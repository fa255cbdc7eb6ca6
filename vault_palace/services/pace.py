"""How far a long piece of work is, and whether anybody still wants it, without each function passing it on.

A surface sets `PACE` around a call; whoever goes from note to note calls `step` before each. Where nothing is
set, as in the keeper, nobody hears and nobody stops it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from vault_palace.core.errors import TimedOut


@dataclass(frozen=True, slots=True)
class Pace:
    """The two lines to whoever asked for the work."""

    report: Callable[[int, int, str], None]  # how many are done, of how many, what comes now
    cancelled: Callable[[], bool]
    given_up: Callable[[], bool] = lambda: False  # nobody waits for the answer any more


PACE: ContextVar[Pace | None] = ContextVar("pace", default=None)


def step(done: int, total: int, what: str) -> None:
    """Say how far the work is; raises `TimedOut` when it is not wanted any more.

    Only to be called where the vault is whole: between two notes, and before the first file is written of
    what belongs together.
    """
    pace = PACE.get()
    if pace is None:
        return
    if pace.cancelled():
        raise TimedOut("The call was cancelled; what was not done yet is left as it was.", done=done)
    pace.report(done, total, what)


def wait_on() -> None:
    """Raises `TimedOut` when nobody wants any more what is waited for.

    To be called again and again by who waits before anything is done. A server that stops does not end the
    wait at once, as it does at a step: calls under way get their moment.
    """
    pace = PACE.get()
    if pace is not None and pace.given_up():
        raise TimedOut("The call was cancelled while it waited; nothing was done.")


@contextmanager
def unheard() -> Iterator[None]:
    """Within it the work can be stopped as before, but nobody hears how far it is."""
    pace = PACE.get()
    token = PACE.set(None if pace is None else replace(pace, report=lambda _done, _total, _what: None))
    try:
        yield
    finally:
        PACE.reset(token)
