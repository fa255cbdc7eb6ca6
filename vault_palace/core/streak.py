"""Streak arithmetic (SPEC §4): what use, links and idle days make of a memory.

`streak` = use + links. Links are the counted backlinks, at most five of them; use is the rest, and is
what settling and touching change. Everything counts calendar dates in the vault's zone, and a settled
note depends on how much time has passed, never on how often anything was run.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

from vault_palace.core.dates import days_between
from vault_palace.core.model import ARCHIVE, Layer, Memory, Status
from vault_palace.core.policy import Policy

MOST_LINKS = 5  # links delay the end, they never outweigh six ignored lifetimes
HIGHEST_USE = 10
LOWEST_USE = -6


def links(backlinks: int) -> int:
    """The part of a streak that *backlinks* make."""
    return min(backlinks, MOST_LINKS)


def lifetime(memory: Memory, policy: Policy) -> float:
    """The days of idleness that cost one step: the note's own, else its recorded layer's default."""
    if memory.decay_days is not None:
        return memory.decay_days
    return policy.lifetime(memory.recorded_layer or memory.layer)


def entered(memory: Memory) -> date:
    """The day the note entered its layer; a note that never moved entered it when it was created."""
    return (memory.layer_since or memory.created).date()


def quiet_since(memory: Memory) -> date:
    """The last day that was not idle: of the last touch, or of the move into this layer."""
    return max(memory.last_touched.date(), entered(memory))


def idle(memory: Memory, today: date) -> int:
    """Whole untouched days before *today*; a date in the future leaves none."""
    return max(0, days_between(quiet_since(memory), today) - 1)


def lifetimes(days: int, each: float) -> int:
    """How many whole lifetimes *days* hold, exactly also for a decimal like 0.7."""
    if float(each).is_integer():
        return days // int(each)
    return math.floor(days / Fraction(repr(each)))


def days_for(count: int, each: float) -> int:
    """The fewest days that hold *count* lifetimes: the inverse of `lifetimes`."""
    if float(each).is_integer():
        return count * int(each)
    return math.ceil(count * Fraction(repr(each)))


def settle(memory: Memory, now: datetime, policy: Policy) -> Memory:
    """Take off one step of use for each whole lifetime of idleness that is not taken off yet.

    A pinned note loses nothing, yet its missed lifetimes are counted, so that taking the pin out does
    not charge for them. A note whose streak cannot be read stays as it is.
    """
    return settle_on(memory, policy.today(now), policy)


def settle_on(memory: Memory, today: date, policy: Policy) -> Memory:
    """`settle` for a calendar date."""
    if memory.streak is None:
        return memory
    passed = lifetimes(idle(memory, today), lifetime(memory, policy))
    lost = passed - memory.missed
    if lost <= 0:
        return memory
    if memory.pinned:
        return replace(memory, missed=passed)
    return replace(memory, streak=_down(memory, lost), missed=passed)


def touch(memory: Memory, now: datetime, policy: Policy) -> Memory:
    """The note after a use: at most one step up a day, never left below zero, its idleness over."""
    memory = settle(arrive(memory, now, policy), now, policy)
    streak = memory.streak
    if streak is not None:
        linked = links(memory.backlinks)
        use = streak - linked
        if policy.today(now) > memory.last_touched.date() and use < HIGHEST_USE:
            use += 1
        streak = max(use, 0) + linked
    # A use may be written late, after a newer one: the last touch never goes back.
    last = max(memory.last_touched, policy.wall(now))
    return replace(memory, streak=streak, last_touched=last, missed=0, status=at_rest(memory))


def recount(memory: Memory, backlinks: int) -> Memory:
    """The note with *backlinks* counted into its streak; counting twice changes nothing."""
    if memory.streak is None or memory.backlinks == backlinks:
        return memory
    streak = memory.streak - links(memory.backlinks) + links(backlinks)
    return replace(memory, streak=streak, backlinks=backlinks)


def respect_streak(memory: Memory, now: datetime, policy: Policy) -> Memory:
    """The note after a person gave it this streak: time up to now is taken as settled.

    Nothing is taken off; the next step down waits for a lifetime that ends after *now*.
    """
    if memory.streak is None:
        return memory
    passed = lifetimes(idle(memory, policy.today(now)), lifetime(memory, policy))
    return replace(memory, missed=max(memory.missed, passed))


def unpin(memory: Memory, now: datetime, policy: Policy) -> Memory:
    """The note as its pin comes out: time up to now is settled, and a negative use part is lifted.

    To be called by whoever sees the pin go: a plan that never saw the pin cannot know of it.
    """
    return _lifted(replace(respect_streak(memory, now, policy), pinned=False))


def move_to(memory: Memory, layer: Layer, now: datetime, policy: Policy) -> Memory:
    """The note after a move into *layer*: promotion, restore, `move_file`, a person's drag.

    What the old layer's lifetime had cost is settled first, but for time in the archive, which costs
    nothing: a keeper that ran every day and one that was off must leave the same note. Then a negative
    use part is lifted, so that the move is not undone the next night. `last_touched` stays, for a move
    is not a use. A personal lifetime goes along; any other becomes the layer's default.
    """
    if not archived(memory):
        memory = settle(memory, now, policy)
    before = memory.recorded_layer or memory.layer
    personal = memory.decay_days is not None and memory.decay_days != policy.lifetime(before)
    wall = policy.wall(now)
    moved = replace(
        memory,
        layer=layer,
        recorded_layer=layer,
        layer_since=max(wall, memory.layer_since or wall),
        decay_days=memory.decay_days if personal else policy.lifetime(layer),
        missed=0,
        status=at_rest(replace(memory, layer=layer)),
    )
    return _lifted(moved)


def archive(memory: Memory) -> Memory:
    """The note as the archive keeps it: `layer` says where it came from, no date hangs over it."""
    return replace(
        memory,
        recorded_layer=memory.layer,
        status=Status.ARCHIVED,
        missed=0,
        decays_on=None,
        rises_on=None,
        rises_to=None,
    )


def archived(memory: Memory) -> bool:
    """Whether the note lies in the archive, or comes from there."""
    return memory.status is Status.ARCHIVED or memory.path.startswith(f"{ARCHIVE}/")


def dragged(memory: Memory) -> bool:
    """Whether a person put the note where it is: its properties speak of another place.

    A `layer` that is absent or unreadable says nothing. A note in a layer that calls itself archived
    was taken out of the archive by hand.
    """
    if memory.path.startswith(f"{ARCHIVE}/"):
        return False
    return memory.status is Status.ARCHIVED or memory.recorded_layer not in (None, memory.layer)


def arrive(memory: Memory, now: datetime, policy: Policy) -> Memory:
    """The note with its properties brought to the folder it was found in; others stay as they are.

    A person moved it, so one that was only proposed is approved.
    """
    return approve(move_to(memory, memory.layer, now, policy)) if dragged(memory) else memory


def approve(memory: Memory) -> Memory:
    """The note after a person said yes to it; one that is not proposed stays as it is."""
    return replace(memory, status=resting(memory.layer)) if memory.status is Status.PROPOSED else memory


def resting(layer: Layer) -> Status:
    """The status of a note that is well."""
    return Status.CRYSTALLIZED if layer is Layer.BEDROCK else Status.ACTIVE


def at_rest(memory: Memory) -> Status:
    """The status of this note while it is well: only a person ends that it is proposed."""
    return Status.PROPOSED if memory.status is Status.PROPOSED else resting(memory.layer)


def _down(memory: Memory, steps: int) -> int:
    """The streak after *steps* down; a use part that already is below the last step stays."""
    assert memory.streak is not None
    linked = links(memory.backlinks)
    use = memory.streak - linked
    return max(use - steps, min(use, LOWEST_USE)) + linked


def _lifted(memory: Memory) -> Memory:
    if memory.streak is None:
        return memory
    return replace(memory, streak=max(memory.streak, links(memory.backlinks)))
