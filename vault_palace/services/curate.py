"""Looking after the vault: the index note's links, every problem with its line, and numbers."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta

from vault_palace import __version__
from vault_palace.core import budget, mapnote, rules
from vault_palace.core.errors import Conflict, InvalidArguments, NoteChanged, NotFound
from vault_palace.core.model import ARCHIVE, MAP_NOTE, Layer, Memory, Problem
from vault_palace.services import arguments, health, quiet, running, safety, troubles, zones
from vault_palace.services.answers import (
    DecisionAnswer,
    MapAnswer,
    MapEditAnswer,
    ReindexAnswer,
    StatusAnswer,
)
from vault_palace.services.house import REDO, House, Put

MAP_TOKENS = 6_000
LINK_LENGTH = 512
SHOWN = 50


def read_map(house: House, max_tokens: int | None = None) -> MapAnswer:
    """The index note as it is on disk, cut at *max_tokens*."""
    try:
        note = house.look(MAP_NOTE)
    except NotFound:
        house.present()
        return MapAnswer(map="", truncated=False)
    text, truncated = budget.cut(note.shown, max_tokens or MAP_TOKENS)
    return MapAnswer(map=text, truncated=truncated)


def update_map(house: House, action: str, link: str) -> MapEditAnswer:
    """Add *link* to the map's list of links, or remove it; the generated block is never touched."""
    house.writable()
    arguments.plain(action=action, link=link)
    if action not in ("add_link", "remove_link"):
        raise InvalidArguments(
            f"action {action!r} is unknown.", hint="Use add_link or remove_link.", argument="action"
        )
    if not link.strip() or "\n" in link or "\r" in link or len(link) > LINK_LENGTH:
        raise InvalidArguments(
            "details.link is not one line with a link.",
            hint="Send details: {link: '[[Name]]'}.",
            argument="details",
        )
    if action == "add_link":
        safety.check_words(house, link=link)
    change = mapnote.add_link if action == "add_link" else mapnote.remove_link
    for _ in range(REDO):
        quiet.wait_quiet(house, [MAP_NOTE])
        try:
            note = house.look(MAP_NOTE)
            before, text = note.stored, note.editable
        except NotFound:
            before, text = None, "# Palace map\n"
        changed_text, changed = change(text, link.strip())
        if not changed:
            return MapEditAnswer(action=action, link=link, changed=False)
        if action == "add_link":
            safety.check_joined(house, text, changed_text, link)
        try:
            with house.locked():
                edit = Put(path=MAP_NOTE, before=before, data=changed_text.encode("utf-8"))
                house.perform("map", [edit], why=action)
        except NoteChanged:
            continue
        return MapEditAnswer(action=action, link=link, changed=True)
    raise Conflict(f"{MAP_NOTE} keeps changing.", hint="Repeat the call.", path=MAP_NOTE)


def check(house: House) -> list[Problem]:
    """Every problem of the vault with its path and line, sorted; an empty list is a healthy vault."""
    house.refresh(if_older=0)
    return troubles.everything(house)


def _forecasts(house: House) -> dict[str, Memory]:
    """Every memory with its next move, given the backlinks there are now."""
    sources = house.shelf.sources()
    now, policy = house.now(), house.policy()
    return {
        path: rules.forecast(memory, len(sources.get(path, ())), now, policy)
        for path, memory in house.shelf.memories().items()
    }


def status(house: House) -> StatusAnswer:
    """The palace in numbers: notes by layer, what decays and rises within the horizon, what is open."""
    house.refresh()
    policy, today = house.policy(), house.today()
    last = today + timedelta(days=policy.horizon_days)
    layers: Counter[str] = Counter({layer.value: 0 for layer in Layer})
    decaying: list[tuple[str, DecisionAnswer]] = []
    rising: list[tuple[str, DecisionAnswer]] = []
    for path, memory in _forecasts(house).items():
        layers[memory.layer.value] += 1
        if memory.decays_on is not None and memory.decays_on <= last:
            when = memory.decays_on.isoformat()
            decaying.append(
                (
                    when,
                    DecisionAnswer(
                        path=path, to=ARCHIVE, rule="forecast", reason=f"decays on {when} if nobody uses it"
                    ),
                )
            )
        if memory.rises_on is not None and memory.rises_to is not None and memory.rises_on <= last:
            when = memory.rises_on.isoformat()
            rising.append(
                (
                    when,
                    DecisionAnswer(
                        path=path, to=memory.rises_to.value, rule="forecast", reason=f"rises on {when}"
                    ),
                )
            )
    in_order = lambda pair: (pair[0], pair[1]["path"])  # noqa: E731
    return StatusAnswer(
        vault=str(house.vault.root),
        version=__version__,
        mode=house.mode(),
        timezone=policy.timezone or zones.machine_zone_name(),
        layers=dict(layers),
        archived=house.shelf.counts().get("archived", 0),
        proposed=house.shelf.ask(lambda cache: cache.proposed())[1],
        decaying_soon=[answer for _, answer in sorted(decaying, key=in_order)[:SHOWN]],
        rising_soon=[answer for _, answer in sorted(rising, key=in_order)[:SHOWN]],
        index=house.shelf.facts(),
        watch=health.watching(house),
        open_operations=len(house.journal.unfinished()),
        problem_count=troubles.some(house, SHOWN).count,
        lock=house.lock_holder(),
        faults=[health.shown(fault) for fault in health.faults(house, None)],
        servers=[running.shown(facts) for facts in running.servers(house)],
    )


def reindex(house: House) -> ReindexAnswer:
    """Throw the cache away and build it from the notes. Nothing else is written."""
    started = time.monotonic()
    count = house.shelf.rebuild()
    return ReindexAnswer(
        notes=count,
        seconds=round(time.monotonic() - started, 3),
        index=str(house.shelf.facts().get("path", "")),
        problem_count=len(troubles.everything(house)),
    )
