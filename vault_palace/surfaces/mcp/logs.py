"""Log messages for handshake clients that set a level: the warnings on standard error, one line each.

No traceback goes out. The protocol gave such messages up with 2026-07-28, so a modern client is offered none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from mcp.server.connection import Connection
from mcp_types import EmptyResult, LoggingLevel, SetLevelRequestParams

from vault_palace.surfaces.mcp import render
from vault_palace.surfaces.mcp.answering import Context

# What each level asks for at least, as Python counts. There is nothing above critical.
LEVELS: Mapping[LoggingLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO + 5,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL + 5,
    "emergency": logging.CRITICAL + 10,
}
OWN = "vault_palace"  # whose messages go out: the SDK's could quote what another client sent
LONGEST = 300  # characters of a message
MOST_WAITING = 100  # messages that were not sent yet; more are dropped


class Log(logging.Handler):
    """Hands on this process's warnings. Its levels are per connection and end with it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._least: dict[Connection, int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sending: set[asyncio.Task[None]] = set()

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Messages are handed on within it."""
        logger = logging.getLogger(OWN)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)

    async def set_level(self, context: Context, params: SetLevelRequestParams) -> EmptyResult:
        connection = context.session._connection  # as in subscriptions: there is no public way to it
        self._loop = asyncio.get_running_loop()
        if connection not in self._least:
            connection.exit_stack.callback(self._least.pop, connection, None)
        self._least[connection] = LEVELS[params.level]
        return EmptyResult()

    def emit(self, record: logging.LogRecord) -> None:
        if self._loop is not None and self._least:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._hand_on, record)

    def _hand_on(self, record: logging.LogRecord) -> None:
        level = [name for name, least in LEVELS.items() if least <= record.levelno][-1]
        message = {
            "level": level,
            "logger": "vault-palace",
            "data": render.line(render.plain(record.getMessage()), LONGEST),
        }
        for connection, least in self._least.items():
            if record.levelno >= least and len(self._sending) < MOST_WAITING:
                task = asyncio.ensure_future(connection.notify("notifications/message", message))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
