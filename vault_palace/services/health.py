"""Whether the palace works: what is really wrong with it, told at once and whatever is held or busy.

A *fault* keeps notes from being written, found or kept: the vault is away or cannot be written to, the write
lock is a dead process's or held for very long, the journal cannot be read, the cache is behind and does not
catch up, nobody keeps the vault, the watcher is deaf. What is odd in notes is no fault; it is listed. A fault
is gone as soon as its cause is: nothing is remembered of it here.

What may have to wait for a disk or for another process is asked in threads of its own, one for each question
and house, so that a question that hangs hangs once.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from vault_palace import __version__
from vault_palace.core import places
from vault_palace.core.errors import NotFound, PathViolation, VaultError
from vault_palace.core.model import STATE, SYSTEM, Layer, Problem
from vault_palace.index.cache import CacheTrouble
from vault_palace.services import ageing, running, troubles
from vault_palace.services.answers import DecisionAnswer, HealthAnswer, ProblemAnswer
from vault_palace.services.house import House
from vault_palace.services.metabolize import shown as decided
from vault_palace.services.shelf import STALLED_SECONDS
from vault_palace.storage import files
from vault_palace.storage.lease import Lease
from vault_palace.storage.lock import WriteLock
from vault_palace.storage.vault import Vault

logger = logging.getLogger(__name__)

SHOWN = 50
AT_ONCE = 0.7  # seconds that whoever must answer at once waits for what may hang
HANGS = 5.0  # after so many seconds without an answer a question hangs
LOCK_SECONDS = 60.0  # nobody holds the lock so long: metabolize, too, holds it for a small batch at a time
LAG_SECONDS = 600.0  # the first look at a hundred thousand notes takes minutes
UNKEPT_SECONDS = 12.0  # a standing-by server takes over within half of that
PROBE_BYTES = 16 * 1024  # a note and its journal line fit in
DEEP_SECONDS = 60.0  # between two whole checks of the cache's file

Facts = Mapping[str, object]
_Faults = Iterator[Problem]


@dataclass(frozen=True, slots=True)
class Survey:
    """What a look at all notes found; `whole` when it came to its end, `at` when, on the monotonic clock."""

    problems: troubles.Troubles = field(default_factory=troubles.Troubles)
    layers: Mapping[str, int] = field(default_factory=dict)
    archived: int = 0
    waiting: tuple[DecisionAnswer, ...] = ()
    tomorrow: tuple[DecisionAnswer, ...] = ()
    faults: tuple[Problem, ...] = ()
    whole: bool = False
    at: float | None = None


@dataclass(slots=True)
class _Known:
    """What was asked of one house, and what came of it last."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    asked: dict[str, tuple[float, Future[object]]] = field(default_factory=dict)
    faults: tuple[Problem, ...] = ()
    mode: str = ""
    watch: dict[str, object] = field(default_factory=dict)
    index: dict[str, object] = field(default_factory=dict)
    survey: Survey = field(default_factory=Survey)
    checked: float | None = None  # when the cache's file was last checked whole


_houses: WeakKeyDictionary[House, _Known] = WeakKeyDictionary()
_registry = threading.Lock()


def health(house: House, patience: float | None = None) -> HealthAnswer:
    """Whether the palace works: `ok` or `failing`, with the faults first among the problems.

    Within about *patience* seconds; what is not known by then is said in `note`, or told as it was last seen.
    None waits for everything.
    """
    known = _known(house)
    end = None if patience is None else time.monotonic() + patience
    questions: dict[str, Callable[[], object]] = {
        "vitals": lambda: _take_vitals(house, known),
        "survey": lambda: _take_survey(house, known, deep=patience is None),
        "index": lambda: _take_index(house, known),
    }
    if end is None:
        for question in (questions["survey"], questions["vitals"], questions["index"]):
            question()
        late: dict[str, float] = {}
    else:
        late = _ask(known, questions, end)
    survey = known.survey
    wrong = list(dict.fromkeys([*known.faults, *_hanging(late), *survey.faults, *_caching(house)]))
    found = [*wrong, *survey.problems.first]
    return HealthAnswer(
        status="failing" if wrong else "ok",
        service="vault-palace",
        version=__version__,
        vault=str(house.vault.root),
        mode=known.mode,
        index=_index(house, known),
        watch=known.watch,
        layers={**survey.layers, "archived": survey.archived} if survey.layers else {},
        fault_count=len(wrong),
        problems=[shown(item) for item in found[:SHOWN]],
        problem_count=len(wrong) + survey.problems.count,
        waiting=list(survey.waiting),
        tomorrow=list(survey.tomorrow),
        note=_note(survey, late),
    )


def faults(house: House, patience: float | None = AT_ONCE) -> list[Problem]:
    """What is really wrong now, without a look at the notes: what a probe asks every few seconds."""
    known = _known(house)
    questions: dict[str, Callable[[], object]] = {"vitals": lambda: _take_vitals(house, known)}
    if house.shelf.lag:  # nobody else may come by to find that the cause has gone
        questions["cache"] = lambda: _catch_up(house)
    late: dict[str, float] = {}
    if patience is None:
        for question in questions.values():
            question()
    else:
        late = _ask(known, questions, time.monotonic() + patience)
    return list(dict.fromkeys([*known.faults, *_hanging(late), *_caching(house)]))


def watching(house: House) -> dict[str, object]:
    """How this process learns of changes, and who keeps the vault; a single command watches nothing."""
    if house.watcher is not None:
        return house.watcher()
    return {"mode": "off", "keeper": False, "holder": Lease(house.vault).holder()}


def shown(problem: Problem) -> ProblemAnswer:
    """A problem as an answer holds it."""
    return ProblemAnswer(path=problem.path, line=problem.line, code=problem.code, message=problem.message)


# -- asking without waiting ---------------------------------------------------------------------------------


def _known(house: House) -> _Known:
    with _registry:
        return _houses.setdefault(house, _Known())


def _ask(known: _Known, questions: Mapping[str, Callable[[], object]], end: float) -> dict[str, float]:
    """Ask, each in its thread, until *end*; those without an answer by then, and since when they are asked.

    A question that still runs from an earlier call began too early to be this one's answer: it is awaited,
    and asked anew if there is time.
    """
    late: dict[str, float] = {}
    mine = {name: _begin(known, name, question) for name, question in questions.items()}
    for name, (new, since, running_) in mine.items():
        if _wait(running_, end) and not new:
            new, since, running_ = _begin(known, name, questions[name])
        if not _wait(running_, end):
            late[name] = time.monotonic() - since
    return late


def _begin(known: _Known, name: str, question: Callable[[], object]) -> tuple[bool, float, Future[object]]:
    with known.guard:
        if name in known.asked and not known.asked[name][1].done():
            return False, *known.asked[name]
        future: Future[object] = Future()
        known.asked[name] = (time.monotonic(), future)

    def run() -> None:
        try:
            future.set_result(question())
        except BaseException as error:
            logger.debug("%s could not be told.", name, exc_info=True)
            future.set_exception(error)

    threading.Thread(target=run, name=f"health-{name}", daemon=True).start()
    return True, *known.asked[name]


def _wait(running_: Future[object], end: float) -> bool:
    """Whether there is an answer by *end*; raises what the question raised."""
    try:
        running_.result(max(end - time.monotonic(), 0.0))
    except FutureTimeout:
        if running_.done():
            raise  # the question's own
        return False
    return True


def _hanging(late: Mapping[str, float]) -> _Faults:
    if "vitals" in late and late["vitals"] >= HANGS:
        message = f"The disk that holds the vault has not answered for {late['vitals']:.0f} seconds."
        yield _fault("unresponsive", message)


# -- the notes ----------------------------------------------------------------------------------------------


def _take_survey(house: House, known: _Known, *, deep: bool) -> None:
    """Look at the notes, telling each part as soon as it is known."""
    survey = Survey()
    try:
        house.refresh(if_older=0)
        counts = house.shelf.counts()
        layers = {layer.value: counts.get(layer, 0) for layer in Layer}
        survey = replace(
            survey,
            problems=troubles.some(house, SHOWN),
            layers=layers,
            archived=counts.get("archived", 0),
            at=time.monotonic(),
        )
        known.survey = replace(survey, waiting=known.survey.waiting, tomorrow=known.survey.tomorrow)
        seen = ageing.outlook(house)
        survey = replace(
            survey,
            waiting=tuple(decided(one) for one in seen.waiting[:SHOWN]),
            tomorrow=tuple(decided(one) for one in seen.tomorrow[:SHOWN]),
        )
        survey = replace(survey, faults=_deep(house, known, deep=deep))
    except VaultError as error:
        survey = replace(survey, faults=(_fault(error.code, str(error)),))
    known.survey = replace(survey, whole=True, at=time.monotonic())


def _deep(house: House, known: _Known, *, deep: bool) -> tuple[Problem, ...]:
    now = time.monotonic()
    if not deep and known.checked is not None and now - known.checked < DEEP_SECONDS:
        return ()
    found = tuple(_fault("cache", text) for text in house.shelf.troubles())
    known.checked = None if found else now
    return found


def _take_index(house: House, known: _Known) -> None:
    known.index = house.shelf.facts()


def _catch_up(house: House) -> None:
    with suppress(CacheTrouble):
        house.refresh(if_older=0)


def _index(house: House, known: _Known) -> dict[str, object]:
    """The cache's state; what only the cache itself can say is as it last said it."""
    return {**known.index, **house.shelf.state()} if known.index.get("state") != "unusable" else known.index


def _note(survey: Survey, late: Mapping[str, float]) -> str:
    if "survey" not in late:
        return ""
    if survey.at is None:
        return "The notes are still being looked at; nothing is known of their problems yet. Ask again soon."
    ago = time.monotonic() - survey.at
    return f"The notes are still being looked at; what is said of them was seen {ago:.0f} seconds ago."


# -- what is really wrong -----------------------------------------------------------------------------------


def _take_vitals(house: House, known: _Known) -> None:
    known.watch = watching(house)
    known.faults = (*_vitals(house), *_watching(house, known.watch))
    known.mode = house.mode()


def _vitals(house: House) -> _Faults:
    """Each of these asks the disk a few times and waits for no lock."""
    try:
        house.present()
    except NotFound as error:
        yield _fault("not_found", str(error), path="")
        return
    for look in (_writing, _locking, _journalling, _keeping, _others):
        try:
            yield from look(house)
        except VaultError as error:
            yield _fault(error.code, str(error))


def _writing(house: House) -> _Faults:
    """Tried, because a quota or a full disk refuses only who tries; in no vault that is not ours to write."""
    if house.read_only():
        return
    vault = house.vault
    for folder in ("", *(layer.folder for layer in Layer), SYSTEM, places.JOURNALS, STATE):
        if not _takes_files(vault, folder):
            where = f"The folder {folder}" if folder else "The vault"
            message = f"{where} cannot be written to: mend its rights, or is the disk mounted read-only?"
            yield _fault("not_writable", message, path=folder)
            return
    # A Sediment Palace folder is not written to unasked, not even for a moment.
    if vault.is_folder(STATE) and house.mode() == "palace":
        try:
            files.try_write(vault.state, PROBE_BYTES)
        except VaultError as error:
            yield _fault("not_writable", f"The vault cannot be written to: {error}")


def _takes_files(vault: Vault, folder: str) -> bool:
    """Whether notes can be made there, as far as its rights tell; what is no folder here does not matter."""
    if not folder:
        return vault.is_writable("")
    try:
        return not vault.is_folder(folder) or vault.is_writable(f"{folder}/.probe")
    except PathViolation:  # a link: nothing behind it is of the vault
        return True


def _locking(house: House) -> _Faults:
    held = WriteLock(house.vault).held()
    if held is None:
        return
    if held.dead:
        message = (
            f"The write lock is that of {held.holder}, which has ended."
            " The next write takes it over, or recover_journal now."
        )
        yield _fault("lock_dead", message)
    elif held.seconds >= LOCK_SECONDS:
        message = (
            f"The write lock is held by {held.holder} for {held.seconds:.0f} seconds; nobody else can write."
            f" If that process hangs, end it; if it is gone for certain, delete {STATE}/lock."
        )
        yield _fault("lock_held", message)


def _journalling(house: House) -> _Faults:
    path = house.journal.path
    place = house.vault.locate(path)
    try:
        if house.read_only():
            files.read_bytes(place)
        else:
            files.try_append(place)
    except NotFound:
        return
    except VaultError as error:
        message = f"This machine's journal cannot be used, so nothing can be written: {error}"
        yield _fault("journal_unreadable", message, path=path)


def _keeping(house: House) -> _Faults:
    """Nobody keeps the vault although a server runs: the last keeper died, or stands still."""
    if house.mode() != "palace":
        return
    claimed = Lease(house.vault).claimed()
    if claimed is None or not claimed.expired:
        return
    if house.watcher is None and not running.servers(house):
        return
    message = (
        f"Nobody keeps the vault: {claimed.holder} did, and has not been heard of for {claimed.silent:.0f} s."
        " Start `vault-palace watch`, or restart the server."
    )
    yield _fault("keeper_gone", message)


def _others(house: House) -> _Faults:
    """What the other servers of this vault say is wrong with them."""
    for facts in running.servers(house):
        if facts["pid"] == os.getpid():
            continue  # it is asked itself
        who = f"server {facts['pid']}"
        watch, index = facts.get("watch"), facts.get("index")
        if isinstance(watch, dict):
            yield from _of_watch(watch, who)
        if isinstance(index, dict) and index.get("state") == "behind":
            yield _fault("cache", f"The search cache of {who} is behind: {index.get('reason', '')}")


def _caching(house: House) -> _Faults:
    shelf = house.shelf
    if shelf.lag:
        yield _fault("cache", shelf.lag)
    elif (stalled := shelf.stalled()) >= STALLED_SECONDS:
        message = (
            f"The search cache is behind: the comparison with the notes stands still for {stalled:.0f} s."
        )
        yield _fault("cache", message)


def _watching(house: House, watch: Facts) -> _Faults:
    if house.watcher is not None:
        yield from _of_watch(watch, "this server")


def _of_watch(facts: Facts, who: str) -> _Faults:
    trouble, lag, unkept = facts.get("trouble"), _number(facts.get("lag")), _number(facts.get("unkept"))
    if facts.get("asked") == "events" and facts.get("mode") == "polling":
        message = f"Events were asked for, and {who} polls: the system does not let it watch the folders."
        yield _fault("watch_polls", message)
    if trouble:
        yield _fault("watch_trouble", f"The keeping of {who} fails: {trouble}")
    if lag >= LAG_SECONDS:
        yield _fault("keeper_behind", f"The keeper in {who} is behind by {lag:.0f} seconds.")
    if unkept >= UNKEPT_SECONDS:
        message = f"Nobody keeps the vault for {unkept:.0f} seconds, and {who} cannot take its keeping over."
        yield _fault("keeper_gone", message)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def _fault(code: str, message: str, path: str = "") -> Problem:
    return Problem(path=path, line=0, code=code, message=message)
