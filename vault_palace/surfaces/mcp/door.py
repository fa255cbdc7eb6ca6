"""The palace behind the server, opened while the first answers are already given."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING

from vault_palace.core.errors import TimedOut

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace
    from vault_palace.surfaces.mcp.publishing import Publisher
    from vault_palace.surfaces.watcher import Watch

logger = logging.getLogger(__name__)

OPENING_SECONDS = 60.0  # how long a call waits for the vault to be open


class Attendance:
    """What goes on beside the calls while a palace is open; the last to begin is the first to end."""

    def __init__(self, *parts: Watch | Publisher | None) -> None:
        self._parts = parts

    def stop(self) -> None:
        for part in reversed(self._parts):
            if part is not None:
                part.stop()


class Door:
    """The palace behind the server: opened by a thread of its own, so that no client waits for it.

    A vault that cannot be opened answers every call with the reason, and is tried again at the next one:
    a disk that was away comes back.
    """

    def __init__(
        self, open_palace: Callable[[], Palace], attend: Callable[[Palace], Attendance] | None = None
    ) -> None:
        self._open = open_palace
        self._attend = attend
        self._attendance: Attendance | None = None
        self._lock = threading.Lock()
        self._opening: Future[Palace] | None = None
        self._closed = False

    def start(self) -> Future[Palace]:
        """Begin to open the palace, unless it is open or being opened."""
        with self._lock:
            failed = self._opening is not None and self._opening.done() and self._opening.exception()
            if self._opening is None or failed:
                self._opening = Future()
                threading.Thread(
                    target=self._run, args=(self._opening,), name="open-vault", daemon=True
                ).start()
            return self._opening

    def palace(self) -> Palace:
        """The open palace. Raises what kept it from opening."""
        try:
            return self.start().result(OPENING_SECONDS)
        except FutureTimeout:
            raise TimedOut("The vault is still being opened.", hint="Repeat the call in a minute.") from None

    def close(self) -> None:
        """Let the palace go, once."""
        with self._lock:
            opening, closed, self._closed = self._opening, self._closed, True
        if opening is None or closed:
            return
        try:
            palace = opening.result(OPENING_SECONDS)
            with self._lock:
                attendance, self._attendance = self._attendance, None
            if attendance is not None:
                attendance.stop()  # first: it asks the palace until the end
            palace.close()
        except Exception:
            logger.debug("The palace was not open at the end.", exc_info=True)

    def _run(self, opening: Future[Palace]) -> None:
        try:
            palace = self._open()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the palace gets it
            opening.set_exception(error)
            return
        opening.set_result(palace)
        with self._lock:
            if self._attend is not None and not self._closed:
                self._attendance = self._attend(palace)
