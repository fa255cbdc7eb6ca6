"""Ageing by itself: what the next run lets go, what waits and why, and one run a day by the vault's keeper.

That a day's run was made is a line of the journal, so that every process and, by sync, every machine knows
it. A run that was cut short leaves no such line, and goes on: a note ages by the time that passed, never by
how often anything was run (SPEC §4, §5). What was not announced on an earlier day waits for the next.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from weakref import WeakKeyDictionary

from vault_palace.core import rules
from vault_palace.core.errors import LockTimeout, VaultError
from vault_palace.core.model import POLICY_NOTE, Decision, Layer, Memory
from vault_palace.core.policy import to_json
from vault_palace.index.cache import CacheTrouble
from vault_palace.index.graph import Graph
from vault_palace.services.answers import MetabolizeAnswer
from vault_palace.services.attention import seconds_since
from vault_palace.services.house import House
from vault_palace.services.metabolize import metabolize
from vault_palace.storage.records import Entry

VERB = "metabolize"
MANY = 500  # so many notes are taken from the cache, at one question, rather than from the disk
MANY_LINKS = 5_000  # from so many notes on, all links are read at once
# How long a run that was refused is put off, in minutes: a busy lock is soon free, a full disk may not be.
PATIENCE = (1, 2, 5, 10, 20, 30)
# How long a run that is due waits at most for people and other programs to come to rest.
RESTLESS = timedelta(minutes=5)


# -- what the next run does ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The archives that wait for `force`, and those that are due by tomorrow, each sorted by path.

    `brake` says why the first ones wait; `hold` why tomorrow's would wait too, if nothing happens until then.
    """

    waiting: tuple[Decision, ...] = ()
    tomorrow: tuple[Decision, ...] = ()
    brake: str = ""
    hold: str = ""


def outlook(house: House) -> Outlook:
    """What is due for the archive by tomorrow; cheap in a large vault, for few notes are looked at.

    Where the vault ages by itself, the brakes are those of the automatic run.
    """
    now, policy = house.now(), house.policy()
    tomorrow = _noon(policy.today(now) + timedelta(days=1), house)
    paths = house.shelf.ask(lambda cache: cache.may_be_due(policy.today(tomorrow)))
    due = _memories(house, paths)
    due = {path: memory for path, memory in due.items() if memory.layer is not Layer.BEDROCK}
    if not due:
        return Outlook()
    then = _leaving(house, due, tomorrow)
    if not then:  # what leaves today has left, or waits, tomorrow
        return Outlook()
    today = _leaving(house, due, now)
    held_by, hold = brake(house, len(today), now), brake(house, len(then), tomorrow)
    waiting = today if held_by else ()
    held = {decision.path for decision in waiting}
    return Outlook(
        waiting=waiting,
        tomorrow=tuple(decision for decision in then if decision.path not in held),
        brake=held_by,
        hold=hold,
    )


def _noon(day: date, house: House) -> datetime:
    """A moment of that day in the vault's zone; a day later by the clock may be the same day in autumn."""
    return datetime.combine(day, time(12), tzinfo=house.policy().zone)


def _memories(house: House, paths: Collection[str]) -> dict[str, Memory]:
    """Those of *paths* that are memories in the layers, as they count now."""
    if len(paths) >= MANY:
        return house.shelf.memories(paths)
    found: dict[str, Memory] = {}
    for path in paths:
        try:
            note = house.look(path)
        except VaultError:  # gone, or not readable now: no run moves it
            continue
        if note.kind == "memory" and note.memory is not None:
            found[path] = note.memory
    return found


def _leaving(house: House, due: Mapping[str, Memory], at: datetime) -> tuple[Decision, ...]:
    ask = house.shelf.ask
    sources: Callable[[str], Collection[str]]
    if len(due) >= MANY_LINKS:
        linked = house.shelf.sources()
        sources = lambda path: linked.get(path, frozenset())  # noqa: E731
    else:
        sources = lambda path: ask(lambda cache: Graph(cache).backlinks(path))  # noqa: E731
    return rules.leaving(
        due,
        at,
        house.policy(),
        sources=sources,
        targets=lambda path: ask(lambda cache: cache.linked_from(path)),
        look=lambda paths: _memories(house, paths),
    )


def brake(house: House, due: int, at: datetime) -> str:
    """Why the run of the day of *at* would let none of *due* notes go; empty when it would."""
    if not due:
        return ""
    policy = house.policy()
    counts = house.shelf.counts()
    silent = None
    if policy.auto_metabolize == "daily":
        last = house.shelf.ask(lambda cache: cache.last_touch())
        silent = 0 if last is None else (policy.today(at) - last).days
    return rules.brake(due, sum(counts.get(layer, 0) for layer in Layer), policy, silent_days=silent)


# -- the daily run ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Patience:
    """When a refused run is tried again, and how often it was refused."""

    refused: int
    since: datetime
    until: datetime


_patience: WeakKeyDictionary[House, _Patience] = WeakKeyDictionary()
_due_since: WeakKeyDictionary[House, datetime] = WeakKeyDictionary()


def never() -> bool:
    """Nobody asks to stop."""
    return False


def run_if_due(house: House, stop: Callable[[], bool] = never) -> MetabolizeAnswer | None:
    """Age the vault if Policy says `auto_metabolize: daily` and today's run is not on record yet.

    None when nothing was due, or when it could not be done now: then it is tried again in some minutes.
    *stop* is asked between notes; a run that it ends is gone on with at the next call.
    """
    if seconds_left(house) != 0:
        return None
    started, today = house.now(), house.today()
    try:
        answer = metabolize(house, confirm=True, automatic=True, cancelled=stop)
        if not answer["cancelled"]:
            _put_on_record(house, started, f"{today.isoformat()}: {_told(answer)}")
    except (LockTimeout, CacheTrouble):
        _put_off(house)
        return None
    except VaultError:
        _put_off(house)
        raise
    _patience.pop(house, None)
    return answer


def seconds_left(house: House) -> float | None:
    """In how many seconds a run is due; 0 for now, None while none is.

    None where the vault does not age by itself, may not be written to, or misses notes that nobody can have
    deleted.
    """
    policy = house.policy()
    if policy.auto_metabolize != "daily" or house.read_only() or house.shelf.doubts:
        return None
    mark = house.vault.mark(POLICY_NOTE)
    if mark is None:
        return None
    now = house.now()
    # While a person types in the policy, its numbers may not be those that they mean.
    waits = max(0.0, policy.quiet_seconds - seconds_since(mark.mtime_ns, now))
    patience = _patience.get(house)
    if patience is not None and patience.since <= now < patience.until:  # else the clock was set back
        waits = max(waits, (patience.until - now).total_seconds())
    if not _ran(house, now):
        return max(waits, _until_quiet(house, now))
    _due_since.pop(house, None)
    midnight = datetime.combine(policy.today(now) + timedelta(days=1), time(), tzinfo=policy.zone)
    # At least a second: where clocks are turned at midnight, the day may begin a little later than it says.
    return max(midnight.timestamp() - now.timestamp(), waits, 1.0)


def _until_quiet(house: House, now: datetime) -> float:
    """In how many seconds no note was changed outside for Policy's `quiet_seconds`, as far as any was seen.

    A run in the middle of a copy or a checkout would leave every note for the next day. Who goes on typing
    does not stop it: what they type in is left.
    """
    since = _due_since.setdefault(house, now)
    if since > now:  # the clock was set back
        since = _due_since[house] = now
    changed = max((at for at in list(house.outside.values()) if at <= now.timestamp() * 1e9), default=0)
    left = house.policy().quiet_seconds - seconds_since(changed, now)
    return max(0.0, min(left, (since + RESTLESS - now).total_seconds()))


def _ran(house: House, now: datetime) -> bool:
    """Whether a run of this calendar day, as the vault's zone has it now, is on record."""
    policy = house.policy()
    day = policy.today(now)
    # No day is longer than 25 hours, nor further from another zone's than 26.
    begun = house.journal.times(VERB, now - timedelta(days=2))
    return any(policy.today(at) == day for at in begun)


def _put_on_record(house: House, at: datetime, why: str) -> None:
    with house.locked():
        entry = Entry(
            op=secrets.token_hex(8),
            verb=VERB,
            at=at,
            session=house.settings.session,
            why=why,
            machine=house.machine,
        )
        house.journal.begin(entry)
        house.journal.close(entry.op, "done")


def _told(answer: MetabolizeAnswer) -> str:
    """What a run did, in few words."""
    waiting, skipped = len(answer["waiting"]), len(answer["skipped"])
    parts = (
        (answer["promoted_count"], "promoted"),
        (answer["archived_count"], "archived"),
        (waiting, "waits" if waiting == 1 else "wait"),
        (skipped, "left for the next day"),
    )
    return ", ".join(f"{count} {word}" for count, word in parts if count) or "nothing moved"


def _put_off(house: House) -> None:
    before, now = _patience.get(house), house.now()
    refused = 0 if before is None else before.refused
    minutes = PATIENCE[min(refused, len(PATIENCE) - 1)]
    _patience[house] = _Patience(refused + 1, now, now + timedelta(minutes=minutes))


# -- the policy ---------------------------------------------------------------------------------------------


def policy_changed(house: House) -> bool:
    """Whether the policy in force is another than the one by which every note was last judged.

    Whoever judges every note anew calls `House.policy_applied` when none of them waits to be written: until
    then a `decay_days` that equals the old default is taken for a default.
    """
    applied = house.applied_policy
    return applied is None or to_json(house.policy()) != to_json(applied)
