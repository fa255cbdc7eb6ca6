"""The dashboards one by one: what each shows, of which notes, in which order.

Dataview drops a row in silence when a step of its query fails, compares unlike types by their names, and
merges inline fields with properties; Bases coerces as JavaScript does. So every property is asked for its
type before it is used, and DQL reads `file.frontmatter` alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from vault_palace.core.dashboardlines import (
    BACKLINKS,
    BARS,
    DAYS_LEFT,
    DENSITY,
    HAS_ID,
    MEMORY,
    NOT_PINNED,
    STATUS,
    STREAK,
    USED,
    USED_FORMULA,
    WORTH,
    WORTH_FORMULA,
    WRITTEN,
    WRITTEN_FORMULA,
    WRITTEN_STEP,
    Column,
    Dashboard,
    Words,
    counted_days,
    day_formula,
    day_text,
    present,
)
from vault_palace.core.dashboardtroubles import orphans, problems, unresolved

MOST = 20  # rows of the strongest
RECENT_DAYS = 7


def boards(words: Words) -> Iterator[Dashboard]:
    yield from _fates(words)
    yield _places(words)
    yield from _worth(words)
    yield _edited(words)
    yield orphans(words)
    yield unresolved(words)
    yield _archive(words)
    yield problems(words)
    yield _sessions(words)


FURTHEST = 3650  # days, as `core.policy` takes them


def _horizon(words: Words) -> tuple[list[str], list[tuple[str, str]]]:
    """How many days ahead to look: Policy's, and 7 where the note is not there or says none that counts.

    Never a list: Dataview would make a row of each of its items, and of an empty one none.
    """
    said = f"[[{words.policy}]].file.frontmatter.horizon_days"
    query = [
        f'FLATTEN choice(typeof({said}) = "number", {said}, -1) AS said',
        f"FLATTEN choice(said >= 0 AND said <= {FURTHEST} AND said = floor(said), said, 7) AS horizon",
    ]
    policy = f'file("{words.policy}.md")'
    days = f"{policy}.properties.horizon_days"
    return query, [
        ("said", f'if({policy}, if({days}.isType("number"), {days}, -1), -1)'),
        (
            "horizon",
            (
                f"if(formula.said >= 0 && formula.said <= {FURTHEST}"
                " && formula.said == formula.said.floor(), formula.said, 7)"
            ),
        ),
    ]


def _fates(words: Words) -> Iterator[Dashboard]:
    """What a date hangs over: about to decay, overdue, about to rise."""
    layer, layer_formula = words.layer_column, words.layer_formulas
    folders = (words.shallow, words.sediment)
    ahead, horizon = _horizon(words)
    decays, rises = counted_days("decays_on"), counted_days("rises_on")
    for name, view, opening, when, until, steps, twin in (
        (
            "About to decay",
            "Within the horizon",
            (
                "Memories that go to the archive within the next days if nobody uses them.\n\n"
                "To keep one, open it and work with it, raise its `density`, or tick `pinned`. Nothing is"
                " deleted: what is archived can be brought back."
            ),
            "WHERE days_left >= 0 AND days_left <= horizon",
            "formula.days_left >= 0 && formula.days_left <= formula.horizon",
            ahead,
            _AHEAD,
        ),
        (
            "Overdue memories",
            "Overdue",
            (
                "Memories whose day has passed and that still are here: the next run takes them, unless it"
                " is held back because too much would go at once, or you have them open. `vault-palace"
                " metabolize --dry-run` says why for each."
            ),
            "WHERE days_left < 0",
            "formula.days_left < 0",
            [],
            "",
        ),
    ):
        yield Dashboard(
            name=name,
            opening=opening,
            view=view,
            columns=[
                MEMORY,
                layer,
                DENSITY,
                STREAK,
                BACKLINKS,
                Column("Decays on", "day", "formula.day"),
                DAYS_LEFT,
                STATUS,
            ],
            query=[
                *words.memories(*folders),
                f"WHERE {NOT_PINNED.dataview}",
                *decays.dataview,
                *steps,
                when,
                "SORT days_left ASC, file.path ASC",
            ],
            filters=[*words.files(*folders), NOT_PINNED.bases, *decays.filters, until],
            formulas=[
                layer_formula,
                *decays.formulas,
                *(horizon if steps else []),
            ],
            sort=(("formula.days_left", "ASC"), ("file.path", "ASC")),
            twin=twin,
        )
    yield Dashboard(
        name="About to rise",
        opening=(
            "Memories that sink a layer deeper within the next days, where they last longer: from"
            " Shallow to Sediment, from Sediment to Bedrock. A negative number of days left means that"
            " the next run moves them.\n\nTo hold one where it is, tick `pinned`, or lower its `density`."
        ),
        view="Within the horizon",
        columns=[
            MEMORY,
            layer,
            Column("Rises to", "file.frontmatter.rises_to", "note.rises_to"),
            DENSITY,
            STREAK,
            BACKLINKS,
            Column("Rises on", "day", "formula.day"),
            DAYS_LEFT,
            STATUS,
        ],
        query=[
            *words.memories(*folders),
            f"WHERE {NOT_PINNED.dataview}",
            (
                f'WHERE file.frontmatter.rises_to = choice(startswith(file.path, "{words.shallow}/"),'
                ' "sediment", "bedrock")'
            ),
            *rises.dataview,
            *ahead,
            "WHERE days_left <= horizon",
            "SORT days_left ASC, file.path ASC",
        ],
        filters=[
            *words.files(*folders),
            NOT_PINNED.bases,
            f'if(file.inFolder("{words.shallow}"), rises_to == "sediment", rises_to == "bedrock")',
            *rises.filters,
            "formula.days_left <= formula.horizon",
        ],
        formulas=[layer_formula, *rises.formulas, *horizon],
        sort=(("formula.days_left", "ASC"), ("file.path", "ASC")),
        twin=_AHEAD,
    )


_AHEAD = "Both look `horizon_days` ahead, a number in {policy}; 7 where it is missing."


def _places(words: Words) -> Dashboard:
    layer, layer_formula = words.layer_column, words.layer_formulas
    room, room_formula = Column("Room", words.room, "formula.room"), ("room", words.room_formula)
    numbers = 'filter(rows.file.frontmatter.{0}, (n) => typeof(n) = "number")'
    average = f"round(average({numbers}), 2)"
    return Dashboard(
        name="Layers and rooms",
        opening=(
            "How much lies in each layer and room, and how it is valued and used. A room is a"
            " folder in a layer;"
            " what lies in no room stands first."
        ),
        view="By layer and room",
        columns=[
            Column("Layer", "key[0]", "formula.layer"),
            Column("Room", "key[1]", "formula.room"),
            Column("Memories", "length(rows)", ""),
            Column("Average density", average.format("density"), ""),
            Column("Average streak", average.format("streak"), ""),
        ],
        rows=[MEMORY, layer, room, DENSITY, STREAK],
        query=[
            *words.memories(*words.living),
            f"GROUP BY list({words.layer}, {words.room}) AS key",
            'FLATTEN choice(key[0] = "Shallow", 0, choice(key[0] = "Sediment", 1, 2)) AS rank',
            "SORT rank ASC, key[1] ASC",
        ],
        filters=words.files(*words.living),
        formulas=[
            layer_formula,
            room_formula,
            ("place", f'file.folder.split("/").slice({words.depth}).join("/")'),
        ],
        group="formula.place",
        summaries=(("note.density", "Average"), ("note.streak", "Average")),
        twin="The first lists the notes themselves, with the averages below each group.",
    )


def _worth(words: Words) -> Iterator[Dashboard]:
    layer, layer_formula = words.layer_column, words.layer_formulas
    yield Dashboard(
        name="Strongest memories",
        opening=f"The {MOST} memories that are valued most; among equals, those used most stand first.",
        view="Strongest",
        columns=[MEMORY, layer, Column("Worth", "bar", "formula.bar"), DENSITY, STREAK, BACKLINKS, STATUS],
        query=[
            *words.memories(*words.living),
            'WHERE typeof(file.frontmatter.density) = "number"',
            f"FLATTEN {WORTH} AS worth",
            "WHERE worth >= 0 AND worth <= 1",
            f"FLATTEN {USED} AS used",
            *BARS.dataview,
            "SORT worth DESC, used DESC, file.path ASC",
            f"LIMIT {MOST}",
        ],
        filters=[
            *words.files(*words.living),
            'if(density.isType("number"), density >= 0 && density <= 1, false)',
        ],
        formulas=[layer_formula, WORTH_FORMULA, USED_FORMULA, *BARS.formulas],
        sort=(("formula.worth", "DESC"), ("formula.used", "DESC"), ("file.path", "ASC")),
        limit=MOST,
    )
    rated = present("rated_on")
    yield Dashboard(
        name="Never rated",
        opening=(
            "Memories to which nobody gave a `density` yet. Rate one, and it shows how long it is worth"
            " keeping."
        ),
        view="Never rated",
        columns=[MEMORY, layer, STREAK, BACKLINKS, WRITTEN, STATUS],
        query=[
            *words.memories(*words.living),
            f"WHERE {HAS_ID.dataview}",
            f"WHERE !({rated.dataview})",
            WRITTEN_STEP,
            "SORT file.path ASC",
        ],
        filters=[*words.files(*words.living), HAS_ID.bases, f"!{rated.bases}"],
        formulas=[layer_formula, WRITTEN_FORMULA],
    )
    yield Dashboard(
        name="Never read",
        opening=(
            "Memories that nobody came back to: they were not read or edited since the day on which they were"
            " written."
        ),
        view="Never read",
        columns=[MEMORY, layer, DENSITY, BACKLINKS, WRITTEN, STATUS],
        query=[
            *words.memories(*words.living),
            f"WHERE {HAS_ID.dataview}",
            WRITTEN_STEP,
            f"FLATTEN {day_text('file.frontmatter.last_touched')} AS touched",
            'WHERE written != "" AND touched != "" AND touched <= written',
            "SORT written ASC, file.path ASC",
        ],
        filters=[
            *words.files(*words.living),
            HAS_ID.bases,
            'formula.written != "" && formula.touched != "" && formula.touched <= formula.written',
        ],
        formulas=[layer_formula, WRITTEN_FORMULA, ("touched", day_formula("last_touched"))],
        sort=(("formula.written", "ASC"), ("file.path", "ASC")),
    )


def _edited(words: Words) -> Dashboard:
    layer, layer_formula = words.layer_column, words.layer_formulas
    edited = counted_days("edited_on")
    return Dashboard(
        name="Changed by people",
        opening=f"Memories whose text you, or another person, changed within the last {RECENT_DAYS} days.",
        view=f"Within {RECENT_DAYS} days",
        columns=[MEMORY, layer, Column("Changed on", "day", "formula.day"), DENSITY, STREAK, STATUS],
        query=[
            *words.memories(*words.living),
            *edited.dataview,
            f"WHERE days_left <= 1 AND days_left >= -{RECENT_DAYS}",
            "SORT day DESC, file.path ASC",
        ],
        filters=[
            *words.files(*words.living),
            *edited.filters,
            f"formula.days_left <= 1 && formula.days_left >= -{RECENT_DAYS}",
        ],
        formulas=[layer_formula, *edited.formulas],
        sort=(("formula.days_left", "DESC"), ("file.path", "ASC")),
    )


def _archive(words: Words) -> Dashboard:
    return Dashboard(
        name="Archive browser",
        opening=(
            "What was let go, when, why and from where; the newest stands first. To bring one back,"
            " drag it into"
            " a layer, or say `vault-palace restore` with its path: its links still lead to it."
        ),
        view="Archive",
        columns=[
            MEMORY,
            Column("Archived on", "gone", "formula.gone"),
            Column("Reason", "file.frontmatter.archived_reason", "note.archived_reason"),
            Column("From", "file.frontmatter.archived_from", "note.archived_from"),
            DENSITY,
            STREAK,
        ],
        query=[
            *words.memories(words.archive),
            f"FLATTEN {day_text('file.frontmatter.archived_on')} AS gone",
            "SORT gone DESC, file.path ASC",
        ],
        filters=words.files(words.archive),
        formulas=[
            ("gone", day_formula("archived_on")),
        ],
        sort=(("formula.gone", "DESC"), ("file.path", "ASC")),
    )


def _sessions(words: Words) -> Dashboard:
    layer, layer_formula = words.layer_column, words.layer_formulas
    session, said = "string(file.frontmatter.source_session)", present("source_session")
    return Dashboard(
        name="Memories by session",
        opening="Who wrote what: the memories of each session, the one that wrote last first.",
        view="By session",
        columns=[
            Column("Session", "key", "formula.session"),
            Column("Memories", "rows.file.link", ""),
            Column("Count", "length(rows)", ""),
            Column("Last written", "max(rows.written)", ""),
        ],
        rows=[MEMORY, layer, DENSITY, WRITTEN, STATUS],
        query=[
            *words.memories(*words.living),
            f"WHERE {said.dataview}",
            WRITTEN_STEP,
            f"GROUP BY {session} AS key",
            "SORT max(rows.written) DESC, key ASC",
        ],
        filters=[*words.files(*words.living), said.bases],
        formulas=[layer_formula, WRITTEN_FORMULA, ("session", "source_session.toString()")],
        sort=(("file.path", "ASC"),),
        group="formula.session",
        twin="The first lists the notes themselves, session by session.",
    )
