"""The index note: gathers what its generated block and the picture beside it show, and writes what differs.

All lists come cut from the index and nothing depends on the time of day, so a large vault costs little and an
idle one is never written to. What stands outside the markers is a person's and is left byte for byte; a map
that a person is editing, or whose markers are no pair, is left whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from datetime import time as day_time

from vault_palace.core import links, mapnote, names, palacemap, places, rules, strata
from vault_palace.core.errors import Exists, LockTimeout, MalformedNote, NoteChanged, NotFound, VaultError
from vault_palace.core.model import ARCHIVE, MAP_NOTE, Decision, Layer, Memory, Problem
from vault_palace.core.palacemap import Facts, RoomRow, Row, Trouble
from vault_palace.core.resolve import Resolver
from vault_palace.index.overview import MOST, Overview, Room, Waiting
from vault_palace.services import ageing, announcing, generated, quiet, troubles
from vault_palace.services.copies import copies
from vault_palace.services.generated import PICTURE
from vault_palace.services.history import DEEDS
from vault_palace.services.house import House, Note, Put
from vault_palace.services.init import template_root
from vault_palace.services.shelf import GONE_SECONDS
from vault_palace.storage.records import Entry
from vault_palace.storage.vault import Stored

LOCK_SECONDS = 2.0  # the map is never worth waiting longer for
_MINIMAL = "# Palace map\n"
_UNDATED = "Some memories do not say yet on which day they leave or rise; the lists below grow as they do."


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """What `renew` did. `waits`: something or somebody was in the way, so call again soon."""

    written: bool = False
    waits: bool = False
    seconds: float = 0.0  # that it took

    def __bool__(self) -> bool:
        return self.written


def renew(house: House, *, deeds: Sequence[Entry] | None = None) -> Renewal:
    """Bring the index note and its picture in step with the cache, which the caller has just compared.

    *deeds* are the newest operations, oldest first, where the caller has them at hand. Nothing is written to
    a read-only vault, without a policy note, or while it is doubtful whether the notes are there at all.
    """
    started = time.monotonic()
    done = _renew(house, deeds)
    return replace(done, seconds=time.monotonic() - started)


# -- writing ------------------------------------------------------------------------------------------------


def _renew(house: House, deeds: Sequence[Entry] | None) -> Renewal:
    try:
        house.present()
    except NotFound:
        return Renewal()
    if house.mode() != "palace" or house.shelf.doubts:
        return Renewal()
    if house.shelf.lag or house.shelf.filling:
        return Renewal(waits=True)  # half a vault would be shown, and then shown otherwise
    if generated.hindrance(house, MAP_NOTE) is not None:
        # No map can say it, only wake_up and healthcheck; a vault whose map is broken ages all the same.
        announcing.announce(house, ageing.outlook(house).tomorrow)
        return Renewal()
    note = _present_map(house)
    if note is not None and quiet.attended(house, note, body=True):
        return Renewal(waits=True)
    picture, drawable = _present_picture(house)
    facts, layers, outlook = gather(house, deeds, picture=PICTURE if drawable else "")
    if house.shelf.doubts:  # gathering may have compared
        return Renewal()
    before = _new_map() if note is None or note.text is None else note.text
    text = mapnote.with_block(before, palacemap.block(facts))
    edits = [_put(MAP_NOTE, None if note is None else note.stored, text)]
    if drawable:
        edits.append(_put(PICTURE, picture, strata.draw(layers)))
    edits = [edit for edit in edits if edit.before is None or edit.before.data != edit.data]
    try:
        if edits:
            with house.locked(LOCK_SECONDS):
                house.perform("map", edits, why="the index note was out of step")
    except (NoteChanged, Exists, LockTimeout):
        return Renewal(waits=True)
    except VaultError:
        announcing.announce(house, outlook.tomorrow)  # as where the map is known to be broken
        raise
    announcing.announce(house, outlook.tomorrow)
    return Renewal(written=bool(edits))


def _put(path: str, before: Stored | None, text: str) -> Put:
    return Put(path=path, before=before, data=text.encode("utf-8"))


def _present_map(house: House) -> Note | None:
    """The index note; None when it is missing, and still so after a moment (SPEC §6.5)."""
    try:
        return house.look(MAP_NOTE)
    except NotFound:
        house.settings.sleep(GONE_SECONDS)
    try:
        return house.look(MAP_NOTE)
    except NotFound:
        return None


def _present_picture(house: House) -> tuple[Stored | None, bool]:
    """The picture as it is on disk, and whether one can be written in its place."""
    if generated.hindrance(house, PICTURE) is not None:
        return None, False
    try:
        return house.vault.read(PICTURE), True
    except VaultError:
        return None, True


def _new_map() -> str:
    """The text of an index note where there is none: the shipped one, whose block is then filled."""
    try:
        text = template_root().joinpath(MAP_NOTE).read_bytes().decode("utf-8")
        mapnote.with_block(text, "")
    except (OSError, UnicodeDecodeError, MalformedNote):
        return _MINIMAL
    return text


# -- gathering ----------------------------------------------------------------------------------------------


def gather(
    house: House, deeds: Sequence[Entry] | None = None, *, picture: str = ""
) -> tuple[Facts, strata.Strata, ageing.Outlook]:
    """What the block shows, what the picture does, and what leaves next, as cache and journals know it."""
    policy, today = house.policy(), house.today()
    horizon = max(int(policy.horizon_days), 0)
    last = _after(today, horizon)
    linked = _Links(house.shelf.resolver())
    seen = house.shelf.ask(lambda cache: cache.overview(last))
    decaying, rising = _due(house, seen, last)
    counts = {layer.value: 0 for layer in Layer}
    for room in seen.rooms:
        if room.layer:
            counts[room.layer] += room.count
    of_layers = [room for room in seen.rooms if room.layer]
    archived = sum(room.count for room in seen.rooms if not room.layer)
    outlook = _outlook(house, seen, today)
    changed = _changed(house, linked, deeds)
    troubles, trouble_count = _troubles(house, linked, seen)
    copied = _conflicts(house, linked)
    why = reasons(house)
    facts = Facts(
        layers=counts,
        archived=archived,
        horizon_days=horizon,
        picture=picture,
        decaying=tuple(
            linked.row(memory, day=memory.decays_on, why=why(memory, memory.decays_on, ARCHIVE))
            for memory in decaying
        ),
        decaying_count=seen.decaying.count + len(decaying) - _dated(decaying, seen.decaying.first),
        rising=tuple(
            linked.row(memory, day=memory.rises_on, why=why(memory, memory.rises_on, memory.rises_to))
            for memory in rising
        ),
        rising_count=seen.rising.count + len(rising) - _dated(rising, seen.rising.first),
        strongest=tuple(linked.row(memory) for memory in seen.strongest),
        newest=tuple(linked.row(memory, day=memory.created.date()) for memory in seen.newest),
        changed=changed[:MOST],
        changed_count=len(changed),
        rooms=_largest(of_layers),
        room_count=len(of_layers),
        orphans=tuple(linked.row(memory) for memory in seen.orphans.first),
        orphan_count=seen.orphans.count,
        unresolved=tuple(
            Trouble(link=linked.to(path), line=0, code="unresolved_link", message=link)
            for path, link in seen.unresolved.first
        ),
        unresolved_count=seen.unresolved.count,
        conflicts=copied[:MOST],
        conflict_count=len(copied),
        problems=troubles,
        problem_count=trouble_count,
        waiting=_decided(linked, outlook.waiting),
        waiting_count=len(outlook.waiting),
        brake=outlook.brake,
        tomorrow=_decided(linked, outlook.tomorrow),
        tomorrow_count=len(outlook.tomorrow),
        hold=outlook.hold,
        notes=(_UNDATED,) if seen.undated.count > len(seen.undated.first) else (),
    )
    return facts, _strata(seen.rooms, today, horizon), outlook


def _after(today: date, days: int) -> date:
    return date.fromordinal(min(today.toordinal() + days, date.max.toordinal()))


class _Links:
    """Ready links for the index note, each leading to exactly the note it is for."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def leads(self, path: str) -> bool:
        """Whether there is such a file."""
        return path in self._resolver

    def to(self, path: str) -> str:
        """The bare name where that is enough, else the path with the name; words where no link works."""
        name = path.rpartition("/")[2]
        stem = places.stem_and_extension(name)[0] if places.is_note(name) else name
        if not self.leads(path):
            return _plain(path)
        text = links.link_to(path, self._resolver, MAP_NOTE)
        if not names.linkable(text) or not names.linkable(stem):
            return _plain(stem)
        return f"[[{text}]]" if text == stem else f"[[{text}|{stem}]]"

    def row(self, memory: Memory, *, day: date | None = None, why: str = "") -> Row:
        return Row(
            link=self.to(memory.path),
            layer=memory.layer.value,
            room=places.room_of(memory.path),
            density=memory.density,
            streak=memory.streak,
            day=day,
            why=why,
        )


def _plain(text: str) -> str:
    """*text* as words that are no link: brackets become round ones."""
    return places.printable(text).replace("[", "(").replace("]", ")")


def leaving(house: House, seen: Waiting, last: date) -> list[Memory]:
    """What leaves by *last*, the soonest first; as `_due`, where nothing else is asked."""
    found = list(seen.decaying.first)
    now, policy = house.now(), house.policy()
    for memory in seen.undated.first:
        counted = len(house.shelf.backlinks(memory.path))
        foretold = rules.forecast(memory, counted, now, policy)
        if foretold.decays_on is not None and foretold.decays_on <= last:
            found.append(replace(foretold, backlinks=counted))
    return sorted(found, key=lambda memory: (memory.decays_on or last, memory.path))


def _due(house: House, seen: Overview, last: date) -> tuple[list[Memory], list[Memory]]:
    """What leaves and what rises by *last*, the soonest first.

    Notes are counted by the day they hold, which the keeper keeps true; of the few without one it is worked
    out here.
    """
    decaying, rising = list(seen.decaying.first), list(seen.rising.first)
    now, policy = house.now(), house.policy()
    for memory in seen.undated.first:
        counted = len(house.shelf.backlinks(memory.path))
        foretold = rules.forecast(memory, counted, now, policy)
        if foretold.decays_on is not None and foretold.decays_on <= last:
            decaying.append(replace(foretold, backlinks=counted))
        if foretold.rises_on is not None and foretold.rises_on <= last:
            rising.append(replace(foretold, backlinks=counted))
    decaying.sort(key=lambda memory: (memory.decays_on or last, memory.path))
    rising.sort(key=lambda memory: (memory.rises_on or last, memory.path))
    return decaying, rising


def _dated(merged: Sequence[Memory], first: Sequence[Memory]) -> int:
    """How many of *merged* the index has counted already."""
    known = {memory.path for memory in first}
    return sum(memory.path in known for memory in merged)


def reasons(house: House) -> Callable[[Memory, date | None, str | None], str]:
    """Why the rules move a memory on that day to there; nothing when they would decide otherwise."""
    policy, now, today = house.policy(), house.now(), house.today()

    def why(memory: Memory, day: date | None, to: str | None) -> str:
        if day is None:
            return ""
        at = now if day <= today else datetime.combine(day, day_time(12), tzinfo=policy.zone)
        decision = rules.decide(memory, memory.backlinks, at, policy)
        return _reason(decision) if decision.to == to else ""

    return why


def _reason(decision: Decision) -> str:
    """The words of a decision; that a note goes to the archive is said by the list it stands in."""
    reason, colon, _ = decision.reason.rpartition(": ")
    return reason if colon and decision.to == ARCHIVE else decision.reason


def _outlook(house: House, seen: Overview, today: date) -> ageing.Outlook:
    """What the brakes hold and what leaves next; not asked while no note can leave by tomorrow."""
    near = seen.next_leaving is not None and seen.next_leaving <= _after(today, 1)
    return ageing.outlook(house) if near or seen.undated.count else ageing.Outlook()


def _decided(linked: _Links, decisions: Iterable[Decision]) -> tuple[Row, ...]:
    return tuple(
        linked.row(one.before, day=one.before.decays_on, why=_reason(one)) for one in list(decisions)[:MOST]
    )


def _largest(rooms: Sequence[Room]) -> tuple[RoomRow, ...]:
    """The rooms with most memories, shown by layer and name."""
    order = {layer.value: layer.rank for layer in Layer}
    by_size = sorted(rooms, key=lambda room: (-room.count, order[room.layer], room.room))
    shown = sorted(by_size[:MOST], key=lambda room: (order[room.layer], room.room))
    return tuple(
        RoomRow(layer=room.layer, room=room.room, count=room.count, density=room.density) for room in shown
    )


def _strata(rooms: Sequence[Room], today: date, horizon: int) -> strata.Strata:
    layers: list[strata.Stratum] = []
    for shown, layer in (*((layer.value, layer.value) for layer in Layer), ("archive", "")):
        bands = tuple(
            strata.Band(room=room.room, count=room.count, density=room.density, decaying=room.decaying)
            for room in rooms
            if room.layer == layer
        )
        layers.append(strata.Stratum(layer=shown, count=sum(band.count for band in bands), bands=bands))
    return strata.Strata(strata=tuple(layers), day=today, horizon_days=horizon)


def _changed(house: House, linked: _Links, deeds: Sequence[Entry] | None) -> tuple[Row, ...]:
    """What people did, newest first and each note once, told by where the note is now."""
    policy = house.policy()
    entries = house.journal.recent() if deeds is None else deeds
    rows: dict[str, Row] = {}
    for entry in reversed(entries):
        if entry.verb not in DEEDS:
            continue
        for fact in entry.notes:
            if fact.id in rows:
                continue
            path = fact.path
            if not linked.leads(path):
                path = next(iter(house.shelf.paths_of_id(fact.id)), path)
            rows[fact.id] = Row(
                link=linked.to(path),
                layer=str(places.layer_of(path) or ""),
                room=places.room_of(path),
                day=policy.today(entry.at),
                why=entry.why or entry.verb,
            )
    return tuple(rows.values())


def _conflicts(house: House, linked: _Links) -> tuple[Row, ...]:
    return tuple(
        Row(link=linked.to(copy.path), why="" if copy.main is None else linked.to(copy.main))
        for copy in copies(house)
    )


def _troubles(house: House, linked: _Links, seen: Overview) -> tuple[tuple[Trouble, ...], int]:
    """The first problems by path, and how many there are; links and conflict copies have their own lists.

    What only this machine or process can know is left to `check`: the keepers of two machines that sync one
    vault would write the index note to and fro over it.
    """
    elsewhere = {
        *(problem for problem in house.shelf.strays if problem.code != "unreadable"),
        *(problem for problem in house.policy_problems() if problem.code != "no_zone"),
        *_open_operations(house),
    }
    found = [*seen.problems.first, *(troubles.twin(twin) for twin in seen.twins.first), *elsewhere]
    found.sort(key=lambda problem: (problem.path, problem.line, problem.code, problem.message))
    shown = tuple(
        Trouble(
            link=linked.to(problem.path) if problem.path else "",
            line=problem.line,
            code=problem.code,
            message=problem.message,
        )
        for problem in found[:MOST]
    )
    return shown, seen.problems.count + seen.twins.count + len(elsewhere)


def _open_operations(house: House) -> Iterator[Problem]:
    """Those that recovery could not decide, of any machine, in words that are the same on each."""
    for entry in (*house.journal.unfinished(), *house.journal.elsewhere()):
        if entry.state == "open":
            yield Problem(
                path=entry.steps[0].path if entry.steps else "",
                line=0,
                code="open_operation",
                message=f"{entry.verb} {entry.op} of machine {entry.machine} is neither finished nor undone.",
            )
