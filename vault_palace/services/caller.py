"""Who asks for what is done now: which agent, in which session of its.

A server works for several agents at once. It sets `CALLER` around each call, which the thread that does
the work inherits; whoever sets nothing acts in the session of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vault_palace.services.values import PalaceSettings


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent as its client names itself, and the session that the journal is to name."""

    agent: str = ""
    session: str = ""


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextmanager
def calling(caller: Caller) -> Iterator[None]:
    """Within it *caller* is who asks."""
    token = CALLER.set(caller)
    try:
        yield
    finally:
        CALLER.reset(token)


def current(settings: PalaceSettings) -> Caller:
    """Who is calling; where no session was set, in the session of this process."""
    caller = CALLER.get() or Caller()
    return caller if caller.session else replace(caller, session=settings.session)
