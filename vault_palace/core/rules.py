"""What becomes of a memory (SPEC §5): a table of rules, the plan for a whole vault, and the forecast.

Everything is decided here and nothing is done: the clock is an argument, the answer is a value with a
reason that a person can read. A dry run prints the plan, a real run carries the same plan out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from vault_palace.core.dates import days_between
from vault_palace.core.model import ARCHIVE, Decision, Layer, Memory, Plan, Status
from vault_palace.core.policy import Policy
from vault_palace.core.streak import (
    approve,
    archive,
    arrive,
    at_rest,
    days_for,
    dragged,
    entered,
    idle,
    lifetime,
    move_to,
    quiet_since,
    recount,
    respect_streak,
    settle,
    settle_on,
    touch,
    unpin,
)

__all__ = [
    "ROWS",
    "Facts",
    "Row",
    "approve",
    "archive",
    "arrive",
    "brake",
    "decide",
    "dragged",
    "forecast",
    "idle",
    "leaving",
    "move_to",
    "plan",
    "recount",
    "respect_streak",
    "settle",
    "touch",
    "unpin",
]

FEW_ARCHIVES = 20  # up to this many, a run is never held back for its share of the notes
SILENT_DAYS = 7
FEW_DUE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the rows of the table look at: one settled note on one day."""

    layer: Layer
    pinned: bool
    proposed: bool
    density: float
    streak: int
    age: int
    stay: int
    idle: int
    lifetime: float
    settled_age: int  # row 1's two numbers of days: Policy's, or this run's `days_threshold`
    settled_stay: int
    policy: Policy

    @property
    def valued(self) -> bool:
        """Shallow: rated, used or linked enough for Sediment."""
        return self.density >= self.policy.sediment_density or self._proven(self.policy.sediment_streak)

    @property
    def treasured(self) -> bool:
        """Sediment: rated, used or linked enough for Bedrock."""
        return self.density >= self.policy.bedrock_density or self._proven(self.policy.bedrock_streak)

    def _proven(self, streak: int) -> bool:
        return streak > 0 and self.streak >= streak

    def worth(self, density: float, streak: int) -> str:
        """Which of a promotion's two arms holds, with the numbers."""
        if self.density >= density:
            return f"density {_number(self.density)} ≥ {_number(density)}"
        return f"streak {self.streak} ≥ {streak}"

    @property
    def untouched(self) -> str:
        return f"untouched for {_days(self.idle)}"


@dataclass(frozen=True, slots=True)
class Row:
    """One rule: in which layers it looks, when it matches, what follows, and why in words."""

    number: str
    layers: frozenset[Layer]
    when: Callable[[Facts], bool]
    then: str | None  # a layer, ARCHIVE, or None to stay
    why: Callable[[Facts], str]
    status: Status | None = None  # of a note that stays; None, or proposed: as a note that is well


_ANY = frozenset(Layer)
_SHALLOW = frozenset({Layer.SHALLOW})
_SEDIMENT = frozenset({Layer.SEDIMENT})

# The first row that matches wins. Protection stands first, so that nothing below can reach a pinned
# note; in each layer the way up stands before the way out, so that a note which earns both rises;
# the rows that only name a status come last, and the very last one always matches. What an agent proposed
# never rises before a person said yes; it fades like any other.
ROWS: tuple[Row, ...] = (
    Row(
        "0",
        _ANY,
        lambda f: f.pinned or f.layer is Layer.BEDROCK,
        None,
        lambda f: "pinned: no rule moves it" if f.pinned else "in Bedrock: stays for good",
    ),
    Row(
        "1",
        _SHALLOW,
        lambda f: not f.proposed and f.age >= f.settled_age and f.stay >= f.settled_stay and f.valued,
        Layer.SEDIMENT,
        lambda f: (
            f"{f.worth(f.policy.sediment_density, f.policy.sediment_streak)}"
            f" and {_days(f.age)} old: rises to Sediment"
        ),
    ),
    Row(
        "2",
        _SHALLOW,
        lambda f: f.density < f.policy.sediment_density and f.streak < 0,
        ARCHIVE,
        lambda f: (
            f"density {_number(f.density)} < {_number(f.policy.sediment_density)} and streak {f.streak} < 0,"
            f" {f.untouched}: goes to the archive"
        ),
    ),
    Row(
        "3",
        _SEDIMENT,
        lambda f: (
            not f.proposed
            and f.age > f.policy.bedrock_age
            and f.stay >= f.policy.minimum_stay
            and f.treasured
        ),
        Layer.BEDROCK,
        lambda f: (
            f"{f.worth(f.policy.bedrock_density, f.policy.bedrock_streak)}"
            f" and {_days(f.age)} old: crystallises to Bedrock"
        ),
    ),
    Row(
        "4",
        _SEDIMENT,
        lambda f: f.idle >= f.lifetime and f.density < f.policy.bedrock_density and f.streak < 0,
        ARCHIVE,
        lambda f: (
            f"{f.untouched} (lifetime {_days(f.lifetime)}), density {_number(f.density)} <"
            f" {_number(f.policy.bedrock_density)} and streak {f.streak} < 0: goes to the archive"
        ),
    ),
    Row(
        "5",
        _SHALLOW | _SEDIMENT,
        lambda f: f.idle >= f.lifetime,
        None,
        lambda f: f"{f.untouched} (lifetime {_days(f.lifetime)}), streak {f.streak}: decaying",
        Status.DECAYING,
    ),
    Row(
        "6",
        _ANY,
        lambda _: True,
        None,
        lambda f: f"density {_number(f.density)}, streak {f.streak}, {f.untouched}: stays",
    ),
)
_STAYING = tuple(row for row in ROWS if row.then != ARCHIVE)


def decide(
    memory: Memory,
    backlinks: int,
    now: datetime,
    policy: Policy,
    *,
    days_threshold: int | None = None,
    hold: bool = False,
) -> Decision:
    """What *memory* with so many *backlinks* is due for at *now*, and every value afterwards.

    A note whose density or streak cannot be read stays, and no value of it changes. *hold*: the brakes
    are on, and a row that archives is passed over.
    """
    rows = _STAYING if hold else ROWS
    return _foretold(_judge(memory, backlinks, now, policy, rows, days_threshold), now, policy)


def _judge(
    memory: Memory,
    backlinks: int,
    now: datetime,
    policy: Policy,
    rows: Iterable[Row],
    days_threshold: int | None,
) -> Decision:
    """`decide` without the forecast, which a plan that is made again and again does not need yet."""
    if memory.density is None or memory.streak is None:
        what = "density" if memory.density is None else "streak"
        reason = f"{what} cannot be read: no rule moves it"
        return Decision(
            path=memory.path, before=memory, after=memory, to=None, rule="unreadable", reason=reason
        )
    if dragged(memory):
        # A note moves at most once a run, and a person just moved this one.
        after = recount(arrive(memory, now, policy), backlinks)
        was = "archived" if memory.status is Status.ARCHIVED else str(memory.recorded_layer)
        reason = f"found in {memory.layer.folder} although recorded as {was}: someone moved it there"
        return Decision(path=memory.path, before=memory, after=after, to=None, rule="moved", reason=reason)
    settled = settle(recount(memory, backlinks), now, policy)
    facts = _facts(settled, policy.today(now), policy, days_threshold)
    row = _first(rows, facts)
    after = _follow(row, settled, now, policy)
    return Decision(
        path=memory.path, before=memory, after=after, to=row.then, rule=row.number, reason=row.why(facts)
    )


def _facts(settled: Memory, today: date, policy: Policy, days_threshold: int | None = None) -> Facts:
    assert settled.density is not None
    assert settled.streak is not None
    return Facts(
        layer=settled.layer,
        pinned=settled.pinned,
        proposed=settled.status is Status.PROPOSED,
        density=settled.density,
        streak=settled.streak,
        age=days_between(settled.created.date(), today),
        stay=days_between(entered(settled), today),
        idle=idle(settled, today),
        lifetime=lifetime(settled, policy),
        settled_age=policy.shallow_days if days_threshold is None else days_threshold,
        settled_stay=policy.minimum_stay if days_threshold is None else days_threshold,
        policy=policy,
    )


def _first(rows: Iterable[Row], facts: Facts) -> Row:
    return next(row for row in rows if facts.layer in row.layers and row.when(facts))


def _follow(row: Row, settled: Memory, now: datetime, policy: Policy) -> Memory:
    if row.then is None:
        status = row.status if row.status and settled.status is not Status.PROPOSED else at_rest(settled)
        return settled if settled.status is status else replace(settled, status=status)
    if isinstance(row.then, Layer):
        return move_to(settled, row.then, now, policy)
    return archive(settled)


# The forecast


def forecast(memory: Memory, backlinks: int, now: datetime, policy: Policy) -> Memory:
    """*memory* with the day of its next move, if nobody touches, rates or links it until then.

    Only the three dates change. A due day that has passed is left as it is while the move it named is
    still the next: a note that waits does not get a new date every day.
    """
    today = policy.today(now)
    when, to = _next_move(memory, backlinks, now, policy)
    decays = when if to == ARCHIVE else None
    rises = when if isinstance(to, Layer) else None
    if decays == today and memory.decays_on is not None and memory.decays_on < today:
        decays = memory.decays_on
    if rises == today and memory.rises_to is to and memory.rises_on is not None and memory.rises_on < today:
        rises = memory.rises_on
    rises_to = to if isinstance(to, Layer) else None
    if (decays, rises, rises_to) == (memory.decays_on, memory.rises_on, memory.rises_to):
        return memory
    return replace(memory, decays_on=decays, rises_on=rises, rises_to=rises_to)


def _next_move(
    memory: Memory, backlinks: int, now: datetime, policy: Policy
) -> tuple[date | None, str | None]:
    """The first day from today on which a row moves the note, and where to.

    Stepping day by day would ask the table every day. Each moving row's condition is a set of numbers
    that grow with time (age, stay, idleness) and of a streak that only falls, so the first day it holds
    is one of the few days on which one of them crosses its bound: only those are asked, by the same table.
    """
    if memory.density is None or memory.streak is None:
        return None, None
    if memory.pinned or memory.layer is Layer.BEDROCK:
        return None, None  # row 0 asks for no date
    if memory.status is Status.ARCHIVED and not dragged(memory):
        return None, None
    today = policy.today(now)
    # A note that arrives today moves again tomorrow at the earliest.
    first_day = 1 if dragged(memory) else 0
    settled = settle(recount(arrive(memory, now, policy), backlinks), now, policy)
    last_day = days_between(today, date.max)
    days = {max(day, first_day) for day in _crossings(settled, today, policy)}
    for day in sorted(day for day in days | {first_day} if day <= last_day):
        then = date.fromordinal(today.toordinal() + day)
        facts = _facts(settle_on(settled, then, policy), then, policy)
        row = _first(ROWS, facts)
        if row.then is not None:
            return then, row.then
    return None, None


def _crossings(settled: Memory, today: date, policy: Policy) -> Iterable[int]:
    """In how many days each bound of the table is crossed; past ones are negative."""
    assert settled.streak is not None
    age = days_between(settled.created.date(), today)
    stay = days_between(entered(settled), today)
    since = days_between(quiet_since(settled), today) - 1  # as `idle`, yet negative for future dates
    each = lifetime(settled, policy)
    yield max(policy.shallow_days - age, policy.minimum_stay - stay)
    yield max(policy.bedrock_age + 1 - age, policy.minimum_stay - stay)
    yield days_for(1, each) - since
    # So many steps down make the streak negative; there always are enough, for six outweigh any links.
    steps = settled.streak + 1
    if steps > 0:
        yield days_for(settled.missed + steps, each) - since


def _foretold(decision: Decision, now: datetime, policy: Policy) -> Decision:
    after = decision.after
    if decision.to == ARCHIVE or decision.rule == "unreadable":
        return decision
    return replace(decision, after=forecast(after, after.backlinks, now, policy))


# The plan


def plan(
    memories: Sequence[Memory],
    backlinks: Mapping[str, Collection[str]],
    now: datetime,
    policy: Policy,
    *,
    days_threshold: int | None = None,
    force: bool = False,
    automatic: bool = False,
    held: Collection[str] = (),
) -> Plan:
    """What one run does to every memory of the layers: a decision each, sorted by path.

    *backlinks* names, for a note's path, the notes that link to it; what counts of them (SPEC §3) is
    sorted out here. A note that this run archives does not count any more, so the others are judged
    again without it until nothing changes; in which order the notes stand makes no difference. What the
    brakes hold back waits, and so do the archives of the paths *held* and of what only these keep here; the
    rest is judged as if they stayed, which they do. The brakes count all that is due, held or not.
    """
    notes = {memory.path: memory for memory in memories if not memory.path.startswith(f"{ARCHIVE}/")}
    sources = {
        path: {source for source in backlinks.get(path, ()) if source in notes and source != path}
        for path in notes
    }
    due = _fixpoint(notes, sources, now, policy, days_threshold)
    going = [decision for decision in due.values() if decision.to == ARCHIVE]
    why = ""
    if going and not force:
        silent = None
        if automatic:
            last = max(memory.last_touched for memory in notes.values()).date()
            silent = days_between(last, policy.today(now))
        why = brake(len(going), len(notes), policy, silent_days=silent)
    staying = {decision.path for decision in going}
    if not why:
        staying &= set(held)
    if staying:
        due = _fixpoint(notes, sources, now, policy, days_threshold, staying)
    waiting = [decision for decision in going if due[decision.path].to != ARCHIVE]
    return Plan(
        decisions=tuple(_foretold(due[path], now, policy) for path in sorted(due)),
        waiting=tuple(sorted(waiting, key=lambda decision: decision.path)),
        brake=why,
    )


def _fixpoint(
    notes: Mapping[str, Memory],
    sources: Mapping[str, set[str]],
    now: datetime,
    policy: Policy,
    days_threshold: int | None,
    staying: Collection[str] = (),
) -> dict[str, Decision]:
    """A decision for each note, none of them counting on a note that leaves. Those *staying* never do.

    Fewer backlinks never save a note, so the set of leaving notes only grows and the order in which it
    does so cannot matter; only the notes that a leaving one linked to are judged again.
    """
    targets: dict[str, list[str]] = {}
    for path, linking in sources.items():
        for source in linking:
            targets.setdefault(source, []).append(path)
    decisions: dict[str, Decision] = {}
    left: set[str] = set()
    open_paths: Iterable[str] = notes
    while open_paths:
        gone = set()
        for path in open_paths:
            counted = len(sources[path] - left)
            rows = _STAYING if path in staying else ROWS
            decisions[path] = _judge(notes[path], counted, now, policy, rows, days_threshold)
            if decisions[path].to == ARCHIVE:
                gone.add(path)
        left |= gone
        open_paths = {path for source in gone for path in targets.get(source, ()) if path not in left}
    return decisions


def leaving(
    due: Mapping[str, Memory],
    now: datetime,
    policy: Policy,
    *,
    sources: Callable[[str], Collection[str]],
    targets: Callable[[str], Collection[str]],
    look: Callable[[Collection[str]], Mapping[str, Memory]],
) -> tuple[Decision, ...]:
    """The archives that `plan` with force makes, worked out from few notes of a large vault, sorted by path.

    *due* holds the notes of the layers that may leave by themselves; *sources* names the memories whose links
    to a note count, *targets* the notes that a note links to, and *look* gives those of them that are
    memories: what only a leaving note held is asked for too.
    """
    notes = dict(due)
    found: dict[str, Decision] = {}
    left: set[str] = set()
    open_paths: Collection[str] = notes
    while open_paths:
        gone = set()
        for path in open_paths:
            counted = len(set(sources(path)) - left - {path})
            decision = _judge(notes[path], counted, now, policy, ROWS, None)
            if decision.to == ARCHIVE:
                found[path] = decision
                gone.add(path)
        left |= gone
        reached = {target for path in gone for target in targets(path)} - left
        notes.update(look(reached - notes.keys()))
        open_paths = reached & notes.keys()
    return tuple(found[path] for path in sorted(found))


def brake(due: int, total: int, policy: Policy, *, silent_days: int | None = None) -> str:
    """Why a run lets none of *due* notes go, of *total* in the layers, in words; empty when it lets them go.

    *silent_days* is for how long nobody touched any memory; None for a run that someone asked for.
    """
    if not due:
        return ""
    what = f"{due} of {total} notes are due for the archive"
    if due > FEW_ARCHIVES and due > policy.max_archive_share * total:
        return f"{what}, more than {FEW_ARCHIVES} and more than {policy.max_archive_share:.0%} of all"
    if silent_days is None:
        return ""
    if silent_days >= SILENT_DAYS:
        return f"{what}, but nobody touched any memory for {_days(silent_days)}"
    if due >= FEW_DUE and due * 2 > total:
        return f"{what}, more than half"
    return ""


def _days(count: float) -> str:
    return "1 day" if count == 1 else f"{_number(count)} days"


def _number(value: float) -> str:
    # Long enough that 0.4999999 is never shown as the 0.5 it stays below.
    return f"{value:.12g}"
