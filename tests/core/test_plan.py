"""The plan for a whole vault: its fixpoint, its brakes, and that it is the same however one asks."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.memories import NOON, POLICY, carried_out, later, links_of, memories, memory
from vault_palace.core.model import ARCHIVE, Decision, Layer, Memory, Plan, Status
from vault_palace.core.policy import Policy
from vault_palace.core.rules import archive, brake, decide, forecast, plan, recount
from vault_palace.core.rules import leaving as leaving_of

SHALLOW, SEDIMENT = Layer.SHALLOW, Layer.SEDIMENT
Links = Mapping[str, Sequence[str]]


def named(count: int, note: Memory, word: str = "note") -> list[Memory]:
    return [replace(note, path=f"{note.layer.folder}/{word} {number:03}.md") for number in range(count)]


def leaving(made: Plan) -> list[str]:
    return [decision.path for decision in made.decisions if decision.to == ARCHIVE]


def by_path(made: Plan) -> dict[str, Decision]:
    return {decision.path: decision for decision in made.decisions}


@st.composite
def vaults(draw: st.DrawFn) -> tuple[list[Memory], dict[str, list[str]]]:
    """Up to eight notes and the links between them, among them links from and to what is no memory."""
    drawn = draw(st.lists(memories((SHALLOW, SEDIMENT, Layer.BEDROCK)), min_size=1, max_size=8))
    notes = [replace(note, path=f"{note.layer.folder}/{number}.md") for number, note in enumerate(drawn)]
    paths = [note.path for note in notes] + ["PALACE_MAP.md", "_Archive/01_Shallow/old.md"]
    linked = draw(
        st.dictionaries(st.sampled_from(paths), st.lists(st.sampled_from(paths), max_size=6), max_size=9)
    )
    return notes, linked


def test_each_note_of_the_layers_gets_a_decision_in_the_order_of_paths() -> None:
    notes = [*named(2, memory(SEDIMENT)), *named(2, memory())]

    made = plan(notes, {}, NOON, POLICY)

    assert [decision.path for decision in made.decisions] == [
        "01_Shallow/note 000.md",
        "01_Shallow/note 001.md",
        "02_Sediment/note 000.md",
        "02_Sediment/note 001.md",
    ]
    assert (made.waiting, made.brake) == ((), "")


def test_an_empty_vault_has_an_empty_plan() -> None:
    assert plan([], {}, NOON, POLICY, automatic=True) == Plan(decisions=())


def test_a_backlink_is_a_distinct_other_memory_of_the_layers() -> None:
    notes = [memory(path="01_Shallow/a.md"), memory(path="01_Shallow/b.md", age=1)]
    sources = [
        "01_Shallow/b.md",
        "01_Shallow/b.md",
        "01_Shallow/a.md",
        "PALACE_MAP.md",
        "_Archive/01_Shallow/c.md",
    ]
    archived = replace(archive(memory()), path="_Archive/01_Shallow/c.md")

    made = plan([*notes, archived], {"01_Shallow/a.md": sources}, NOON, POLICY)

    assert [(d.path, d.after.backlinks, d.after.streak) for d in made.decisions] == [
        ("01_Shallow/a.md", 1, 1),
        ("01_Shallow/b.md", 0, 0),
    ]


def test_a_note_that_leaves_takes_along_what_only_it_held() -> None:
    held = memory(idle=8, path="01_Shallow/held.md", streak=0)
    holder = memory(idle=8, path="01_Shallow/holder.md")
    top = memory(path="01_Shallow/top.md", idle=8)
    linked = {held.path: [holder.path], holder.path: [top.path]}

    made = plan([held, holder, top], linked, NOON, POLICY)

    assert leaving(made) == [held.path, holder.path, top.path]
    assert by_path(made)[held.path].after.backlinks == 0


def test_a_note_does_not_rise_by_links_from_notes_that_leave() -> None:
    fresh = memory(age=9, path="01_Shallow/fresh.md")
    fading = named(5, memory(idle=8), "fading")
    linked = {fresh.path: [note.path for note in fading]}

    alone = decide(fresh, 5, NOON, POLICY)
    together = by_path(plan([fresh, *fading], linked, NOON, POLICY))[fresh.path]

    assert alone.to == "sediment"
    assert (together.to, together.after.backlinks, together.after.streak) == (None, 0, 0)


def test_a_leaving_note_still_counts_while_the_brakes_hold_it() -> None:
    fresh = memory(age=9, path="01_Shallow/fresh.md")
    fading = named(25, memory(idle=8), "fading")
    linked = {fresh.path: [note.path for note in fading[:5]]}

    made = plan([fresh, *fading], linked, NOON, POLICY)

    assert by_path(made)[fresh.path].to == "sediment"
    assert len(made.waiting) == 25


@given(vault=vaults())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(
    vault: tuple[list[Memory], dict[str, list[str]]],
) -> None:
    notes, linked = vault
    made = plan(notes, linked, NOON, POLICY)
    gone = set(leaving(made))
    moved = {
        decision.path: f"{decision.after.layer.folder}/{decision.path[-4:]}" for decision in made.decisions
    }

    def there(path: str) -> str:
        return moved.get(path, path)

    left = [replace(d.after, path=there(d.path)) for d in made.decisions if d.path not in gone]
    again = plan(
        left,
        {
            there(path): [there(source) for source in sources if source not in gone]
            for path, sources in linked.items()
        },
        NOON,
        POLICY,
    )

    assert [decision.path for decision in again.decisions if decision.changed] == []


@given(vault=vaults(), seed=st.integers(0, 99), automatic=st.booleans())
def test_the_order_of_notes_and_links_makes_no_difference(
    vault: tuple[list[Memory], dict[str, list[str]]], seed: int, automatic: bool
) -> None:
    notes, linked = vault
    shuffled, turned = list(notes), {path: sources[::-1] for path, sources in reversed(linked.items())}
    random.Random(seed).shuffle(shuffled)

    made = plan(notes, linked, NOON, POLICY, automatic=automatic)

    assert plan(shuffled, turned, NOON, POLICY, automatic=automatic) == made


@given(vault=vaults())
def test_a_plan_agrees_with_deciding_each_note_by_itself(
    vault: tuple[list[Memory], dict[str, list[str]]],
) -> None:
    notes, linked = vault

    for decision in plan(notes, linked, NOON, POLICY).decisions:
        counted = decision.after.backlinks
        assert decision == decide(decision.before, counted, NOON, POLICY)


@given(vault=vaults())
def test_no_leaving_note_is_counted_by_one_that_stays(
    vault: tuple[list[Memory], dict[str, list[str]]],
) -> None:
    notes, linked = vault
    made = plan(notes, linked, NOON, POLICY)
    gone = set(leaving(made))

    for decision in made.decisions:
        memories_linking = {note.path for note in notes} & set(linked.get(decision.path, ())) - {
            decision.path
        }
        if decision.path not in gone:
            assert decision.after.backlinks == len(memories_linking - gone)


# Six ignored lifetimes end any clique


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize(("layer", "each"), [(SHALLOW, 7), (SEDIMENT, 60)])
def test_six_ignored_lifetimes_end_any_clique(size: int, layer: Layer, each: int) -> None:
    notes = [replace(note, backlinks=0) for note in named(size, memory(layer, idle=6 * each))]

    made = plan(notes, links_of(*[note.path for note in notes]), NOON, POLICY)

    assert len(leaving(made)) == size


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize(("layer", "each"), [(SHALLOW, 7), (SEDIMENT, 60)])
def test_a_clique_that_a_run_sees_every_night_ends_as_well(size: int, layer: Layer, each: int) -> None:
    """Without the arms of streak, by which six fresh notes would promote one another before they fade."""
    policy = replace(POLICY, sediment_streak=0, bedrock_streak=0)
    notes = named(size, memory(layer))
    linked = links_of(*[note.path for note in notes])

    for day in range(1, 6 * each + 2):
        notes = carried_out(plan(notes, linked, later(day), policy))
        if not notes:
            break

    lived = min(size, 6) * each + 1
    assert (notes, day) == ([], lived)


@pytest.mark.parametrize("size", range(1, 6))
def test_a_small_clique_ends_under_the_shipped_policy(size: int) -> None:
    notes = named(size, memory())
    linked = links_of(*[note.path for note in notes])

    for day in range(1, 7 * size + 2):
        assert notes
        notes = carried_out(plan(notes, linked, later(day), POLICY))

    assert notes == []


# Brakes


def due_and_fresh(due: int, fresh: int, *, idle: int = 8) -> list[Memory]:
    return [*named(due, memory(idle=idle), "due"), *named(fresh, memory(), "fresh")]


@pytest.mark.parametrize(
    ("due", "fresh", "share", "held"),
    [
        (20, 0, 0.25, False),  # not more than twenty, although it is everything
        (21, 0, 0.25, True),
        (21, 62, 0.25, True),  # more than a quarter of 83
        (21, 63, 0.25, False),  # just a quarter of 84
        (21, 64, 0.25, False),
        (21, 0, 1.0, False),
        (21, 900, 0.0, True),
        (40, 10, 0.9, False),
    ],
)
def test_archives_wait_when_they_are_many_and_a_large_share(
    due: int, fresh: int, share: float, held: bool
) -> None:
    made = plan(due_and_fresh(due, fresh), {}, NOON, replace(POLICY, max_archive_share=share))

    assert (len(leaving(made)), len(made.waiting)) == ((0, due) if held else (due, 0))
    assert bool(made.brake) == held


@pytest.mark.parametrize(
    ("due", "fresh", "idle", "held"),
    [
        (5, 5, 8, False),  # just half
        (5, 4, 8, True),
        (4, 0, 7, True),  # and nobody touched anything for seven days
        (4, 1, 8, False),  # more than half, but only four
        (1, 9, 8, False),
    ],
)
def test_the_nightly_run_waits_when_more_than_half_are_due(
    due: int, fresh: int, idle: int, held: bool
) -> None:
    notes = due_and_fresh(due, fresh, idle=idle)

    assert bool(plan(notes, {}, NOON, POLICY, automatic=True).waiting) == held
    assert not plan(notes, {}, NOON, POLICY).waiting


@pytest.mark.parametrize(("days", "held"), [(5, False), (6, False), (7, True), (8, True), (400, True)])
def test_the_nightly_run_waits_while_nobody_touches_anything(days: int, held: bool) -> None:
    last = [memory(idle=days - 1, streak=9, path=f"01_Shallow/used {number}.md") for number in range(9)]
    notes = [*last, memory(idle=500, path="01_Shallow/due.md", missed=71, streak=-1)]

    made = plan(notes, {}, NOON, POLICY, automatic=True)

    assert bool(made.waiting) == held
    assert ("nobody touched" in made.brake) == held


def test_nothing_due_means_no_brake_however_silent_the_vault_is() -> None:
    made = plan([memory(idle=400, streak=90)], {}, NOON, POLICY, automatic=True)

    assert (made.brake, made.waiting) == ("", ())


def test_force_lets_everything_go() -> None:
    made = plan(due_and_fresh(30, 0), {}, NOON, POLICY, force=True, automatic=True)

    assert (len(leaving(made)), made.brake) == (30, "")


def test_the_brake_says_how_many_of_how_many() -> None:
    made = plan(due_and_fresh(30, 10), {}, NOON, POLICY)

    assert made.brake == "30 of 40 notes are due for the archive, more than 20 and more than 25% of all"


def test_what_waits_is_settled_marked_and_dated() -> None:
    made = plan(due_and_fresh(30, 0), {}, NOON, POLICY)

    for waiting, staying in zip(made.waiting, made.decisions, strict=True):
        assert (waiting.path, waiting.to, waiting.after.status) == (staying.path, ARCHIVE, Status.ARCHIVED)
        assert (staying.to, staying.rule) == (None, "5")
        assert (staying.after.status, staying.after.streak, staying.after.missed) == (Status.DECAYING, -1, 1)
        assert staying.after.decays_on == POLICY.today(NOON)


def test_promotions_go_on_while_archives_wait() -> None:
    rising = memory(age=9, density=0.9, path="01_Shallow/rising.md")

    made = plan([rising, *due_and_fresh(30, 0)], {}, NOON, POLICY)

    assert by_path(made)[rising.path].to == "sediment"


def test_a_plan_that_waits_waits_in_the_same_way_after_it_was_carried_out() -> None:
    made = plan(due_and_fresh(30, 2), {}, NOON, POLICY)

    again = plan(carried_out(made), {}, NOON, POLICY)

    assert [decision for decision in again.decisions if decision.changed] == []
    assert [decision.path for decision in again.waiting] == [decision.path for decision in made.waiting]


def test_waiting_for_ninety_nights_is_waiting_for_one() -> None:
    """However often a held run comes by, the notes it leaves are those of the last night alone."""
    start = carried_out(plan(due_and_fresh(30, 0, idle=3), {}, NOON, POLICY))

    nightly = start
    for day in range(1, 91):
        nightly = carried_out(plan(nightly, {}, later(day), POLICY))
    once = carried_out(plan(start, {}, later(90), POLICY))

    assert nightly == once


def test_days_threshold_reaches_the_plan() -> None:
    notes = [memory(age=3, density=0.9)]

    assert plan(notes, {}, NOON, POLICY, days_threshold=3).decisions[0].to == "sediment"
    assert plan(notes, {}, NOON, POLICY).decisions[0].to is None


def test_a_vault_of_unreadable_notes_changes_in_nothing() -> None:
    notes = named(30, memory(idle=90, streak=None))

    made = plan(notes, {notes[0].path: [notes[1].path]}, NOON, Policy())

    assert [decision for decision in made.decisions if decision.changed] == []


@given(note=memories(), backlinks=st.integers(0, 8))
def test_a_note_held_back_one_by_one_is_as_the_held_plan_leaves_it(note: Memory, backlinks: int) -> None:
    """A real run decides again at the moment it acts, and must come to what the plan said."""
    crowd = due_and_fresh(30, 0)
    linked = {note.path: [other.path for other in crowd[:backlinks]]}

    made = by_path(plan([note, *crowd], linked, NOON, POLICY))

    assert decide(note, backlinks, NOON, POLICY, hold=True) == made[note.path]


# -- a plan's archives from few notes -----------------------------------------------------------------------


def few(
    stored: Sequence[Memory], linked: Links, days: int, *, asked: list[str] | None = None
) -> tuple[Decision, ...]:
    """What `leaving` makes of the notes whose stored dates say that they may be due after *days*."""
    notes = {note.path: note for note in stored}
    last = POLICY.today(later(days))
    due = {
        note.path: note
        for note in stored
        if note.layer is not Layer.BEDROCK
        and (
            (note.decays_on is None and note.rises_on is None)
            or any(day is not None and day <= last for day in (note.decays_on, note.rises_on))
        )
    }

    def look(paths: Collection[str]) -> dict[str, Memory]:
        if asked is not None:
            asked.extend(paths)
        return {path: notes[path] for path in paths if path in notes}

    return leaving_of(
        due,
        later(days),
        POLICY,
        sources=lambda path: {source for source in linked.get(path, ()) if source in notes},
        targets=lambda source: {path for path, sources in linked.items() if source in sources},
        look=look,
    )


def in_step(notes: Sequence[Memory], linked: Links) -> list[Memory]:
    """The notes with their links counted and their dates written, as a keeper leaves them."""
    paths = {note.path for note in notes}
    counted = [(note, len(set(linked.get(note.path, ())) & paths - {note.path})) for note in notes]
    return [forecast(recount(note, count), count, NOON, POLICY) for note, count in counted]


@given(vault=vaults(), days=st.integers(0, 400))
def test_the_few_notes_that_may_be_due_tell_all_that_leaves(
    vault: tuple[list[Memory], dict[str, list[str]]], days: int
) -> None:
    notes, linked = vault
    stored = in_step(notes, linked)

    whole = plan(stored, linked, later(days), POLICY, force=True)

    found = few(stored, linked, days)
    assert [(one.path, one.after) for one in found] == [
        (one.path, one.after) for one in whole.decisions if one.to == ARCHIVE
    ]


def test_what_only_a_leaving_note_held_is_found_although_its_day_is_later() -> None:
    holder = memory(path="01_Shallow/holder.md", idle=7)
    held = memory(path="01_Shallow/held.md", idle=7)
    linked = {held.path: [holder.path]}
    stored = in_step([holder, held], linked)

    found = few(stored, linked, 0)

    assert stored[1].decays_on is not None
    assert stored[1].decays_on > POLICY.today(NOON)
    assert [one.path for one in found] == [held.path, holder.path]


def test_of_notes_that_are_not_due_none_is_asked_for() -> None:
    asked: list[str] = []
    notes = named(50, memory(idle=2))
    linked = {note.path: [notes[0].path] for note in notes}

    found = few(in_step(notes, linked), linked, 1, asked=asked)

    assert (found, asked) == ((), [])


@pytest.mark.parametrize(
    ("due", "total", "silent", "words"),
    [
        (0, 0, 400, ""),
        (20, 20, None, ""),
        (21, 84, None, ""),
        (21, 83, None, "21 of 83 notes are due for the archive, more than 20 and more than 25% of all"),
        (1, 90, 6, ""),
        (1, 90, 7, "1 of 90 notes are due for the archive, but nobody touched any memory for 7 days"),
        (4, 4, 0, ""),
        (5, 10, 0, ""),
        (5, 9, 0, "5 of 9 notes are due for the archive, more than half"),
        (5, 9, None, ""),
    ],
)
def test_a_brake_is_told_from_counts_alone(due: int, total: int, silent: int | None, words: str) -> None:
    assert brake(due, total, POLICY, silent_days=silent) == words


# -- held by their paths ------------------------------------------------------------------------------------


def test_a_held_note_stays_waits_and_still_counts_as_a_link() -> None:
    """Of three in a row that rest on one another alone, all go, or those before the held one do."""
    first, second, third = named(3, memory(idle=8, streak=0))
    sources = {second.path: [first.path], third.path: [second.path]}

    free = plan([first, second, third], sources, NOON, POLICY)
    held = plan([first, second, third], sources, NOON, POLICY, held=[second.path])

    assert leaving(free) == [first.path, second.path, third.path]
    assert leaving(held) == [first.path]
    assert [decision.path for decision in held.waiting] == [second.path, third.path]
    assert held.brake == ""
    assert by_path(held)[second.path].after.status is Status.DECAYING
    assert by_path(held)[third.path].after.backlinks == 1


def test_a_path_that_is_not_due_may_be_held_and_does_not_wait() -> None:
    fresh = memory(age=1, path="01_Shallow/fresh.md")

    assert plan([fresh], {}, NOON, POLICY, held=[fresh.path, "gone.md"]) == plan([fresh], {}, NOON, POLICY)


def test_a_held_note_rises_as_any_other() -> None:
    worth = memory(age=9, density=0.7)

    assert plan([worth], {}, NOON, POLICY, held=[worth.path]) == plan([worth], {}, NOON, POLICY)


def test_the_brakes_count_the_held_ones_too() -> None:
    notes = named(21, memory(idle=8, streak=-1))

    made = plan(notes, {}, NOON, POLICY, held=[note.path for note in notes[:10]])

    assert (leaving(made), len(made.waiting)) == ([], 21)
    assert made.brake.startswith("21 of 21")


@given(vaults(), st.data())
def test_who_holds_more_archives_no_more_and_loses_none(
    vault: tuple[list[Memory], dict[str, list[str]]], data: st.DataObject
) -> None:
    notes, linked = vault
    some = data.draw(st.sets(st.sampled_from([note.path for note in notes])))

    free = plan(notes, linked, NOON, POLICY, force=True)
    held = plan(notes, linked, NOON, POLICY, force=True, held=some)

    assert set(leaving(held)) <= set(leaving(free)) - some
    assert sorted([*leaving(held), *(one.path for one in held.waiting)]) == leaving(free)
    others = {one.path for one in free.decisions} - set(leaving(free))
    assert {path for path in others if by_path(held)[path].to != by_path(free)[path].to} == set()
