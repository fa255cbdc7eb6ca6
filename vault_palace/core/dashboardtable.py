"""The dashboards one by one: what each shows, of which notes, in which order.

Dataview drops a row in silence when a step of its query fails, compares unlike types by their names, and
merges inline fields with properties; Bases coerces as JavaScript does. So every property is asked for its
type before it is used, and DQL reads `file.frontmatter` alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from vault_palace.core.dashboardlines import (
    ATTACHMENT,
    BARS,
    COPY_IN_BASES,
    COPY_IN_DATAVIEW,
    NOT_FOREIGN,
    OTHER_TYPES,
    UNPINNED,
    Column,
    Dashboard,
    Words,
    day_in_bases,
    day_in_dataview,
)

MOST = 20  # rows of the strongest
RECENT_DAYS = 7

MEMORY = Column("Memory", "file.link", "file.name")
DENSITY = Column("Density", "file.frontmatter.density", "note.density")
STREAK = Column("Streak", "file.frontmatter.streak", "note.streak")
BACKLINKS = Column("Backlinks", "file.frontmatter.backlinks", "note.backlinks")
STATUS = Column("Status", "file.frontmatter.status", "note.status")
DAYS_LEFT = Column("Days left", "days_left", "formula.days_left")

_NOT_PINNED = f'WHERE econtains({UNPINNED.dataview}, lower(string(default(file.frontmatter.pinned, ""))))'
_NOT_PINNED_BASE = f"if(pinned, {UNPINNED.bases}.contains(pinned.toString().lower()), true)"


def boards(words: Words) -> Iterator[Dashboard]:
    yield from _fates(words)
    yield _places(words)
    yield from _worth(words)
    yield _edited(words)
    yield _orphans(words)
    yield _unresolved(words)
    yield _archive(words)
    yield _problems(words)
    yield _sessions(words)


def _layer(words: Words) -> tuple[Column, tuple[str, str]]:
    return Column("Layer", words.layer, "formula.layer"), ("layer", words.layer_formula)


def _room(words: Words) -> tuple[Column, tuple[str, str]]:
    return Column("Room", words.room, "formula.room"), ("room", words.room_formula)


def _horizon(words: Words) -> tuple[list[str], tuple[str, str]]:
    """How many days ahead to look: Policy's, and 7 where the note is not there or says no number."""
    query = [
        f"FLATTEN [[{words.policy}]].file.frontmatter.horizon_days AS said",
        'FLATTEN choice(typeof(said) = "number", said, 7) AS horizon',
    ]
    said = f'file("{words.policy}.md")'
    days = f"{said}.properties.horizon_days"
    return query, ("horizon", f'if({said}, if({days}.isType("number"), {days}, 7), 7)')


def _fates(words: Words) -> Iterator[Dashboard]:
    """What a date hangs over: about to decay, overdue, about to rise."""
    layer, layer_formula = _layer(words)
    folders = (words.shallow, words.sediment)
    ahead, horizon = _horizon(words)
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
            "if(formula.due, formula.days_left >= 0 && formula.days_left <= formula.horizon, false)",
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
            "if(formula.due, formula.days_left < 0, false)",
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
                Column("Decays on", "day", "note.decays_on"),
                DAYS_LEFT,
                STATUS,
            ],
            query=[
                *words.memories(*folders),
                _NOT_PINNED,
                *day_in_dataview("decays_on"),
                *steps,
                when,
                "SORT days_left ASC, file.path ASC",
            ],
            filters=[*words.files(*folders), _NOT_PINNED_BASE, *day_in_bases("decays_on").filters, until],
            formulas=[
                layer_formula,
                *day_in_bases("decays_on").formulas,
                *([horizon] if steps else []),
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
            Column("Rises on", "day", "note.rises_on"),
            DAYS_LEFT,
            STATUS,
        ],
        query=[
            *words.memories(*folders),
            _NOT_PINNED,
            (
                f'WHERE file.frontmatter.rises_to = choice(startswith(file.path, "{words.shallow}/"),'
                ' "sediment", "bedrock")'
            ),
            *day_in_dataview("rises_on"),
            *ahead,
            "WHERE days_left <= horizon",
            "SORT days_left ASC, file.path ASC",
        ],
        filters=[
            *words.files(*folders),
            _NOT_PINNED_BASE,
            f'if(file.inFolder("{words.shallow}"), rises_to == "sediment", rises_to == "bedrock")',
            *day_in_bases("rises_on").filters,
            "if(formula.due, formula.days_left <= formula.horizon, false)",
        ],
        formulas=[layer_formula, *day_in_bases("rises_on").formulas, horizon],
        sort=(("formula.days_left", "ASC"), ("file.path", "ASC")),
        twin=_AHEAD,
    )


_AHEAD = "Both look `horizon_days` ahead, a number in {policy}; 7 where it is missing."

_WORTH = 'choice(typeof(file.frontmatter.density) = "number", file.frontmatter.density, 0)'
_USED = 'choice(typeof(file.frontmatter.streak) = "number", file.frontmatter.streak, 0)'
_WORTH_FORMULA = ("worth", 'if(density.isType("number"), density, 0)')
_USED_FORMULA = ("used", 'if(streak.isType("number"), streak, 0)')


def _places(words: Words) -> Dashboard:
    layer, layer_formula = _layer(words)
    room, room_formula = _room(words)
    numbers = 'filter(rows.file.frontmatter.{0}, (n) => typeof(n) = "number")'
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
            Column("Average density", f"round(average({numbers.format('density')}), 2)", ""),
            Column("Average streak", f"round(average({numbers.format('streak')}), 2)", ""),
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
    layer, layer_formula = _layer(words)
    yield Dashboard(
        name="Strongest memories",
        opening=f"The {MOST} memories that are valued most; among equals, those used most stand first.",
        view="Strongest",
        columns=[MEMORY, layer, Column("Worth", "bar", "formula.bar"), DENSITY, STREAK, BACKLINKS, STATUS],
        query=[
            *words.memories(*words.living),
            'WHERE typeof(file.frontmatter.density) = "number"',
            f"FLATTEN {_WORTH} AS worth",
            "WHERE worth >= 0 AND worth <= 1",
            f"FLATTEN {_USED} AS used",
            *BARS.dataview,
            "SORT worth DESC, used DESC, file.path ASC",
            f"LIMIT {MOST}",
        ],
        filters=[
            *words.files(*words.living),
            'if(density.isType("number"), density >= 0 && density <= 1, false)',
        ],
        formulas=[layer_formula, _WORTH_FORMULA, _USED_FORMULA, *BARS.bases],
        sort=(("formula.worth", "DESC"), ("formula.used", "DESC"), ("file.path", "ASC")),
        limit=MOST,
    )
    yield Dashboard(
        name="Never rated",
        opening=(
            "Memories to which nobody gave a `density` yet. Rate one, and it shows how long it is worth"
            " keeping."
        ),
        view="Never rated",
        columns=[MEMORY, layer, STREAK, BACKLINKS, _WRITTEN, STATUS],
        query=[
            *words.memories(*words.living),
            'WHERE string(default(file.frontmatter.id, "")) != ""',
            'WHERE string(default(file.frontmatter.rated_on, "")) = ""',
            _WRITTEN_STEP,
            "SORT file.path ASC",
        ],
        filters=[*words.files(*words.living), "!id.isEmpty()", "rated_on.isEmpty()"],
        formulas=[layer_formula, _WRITTEN_FORMULA],
    )
    yield Dashboard(
        name="Never read",
        opening=(
            "Memories that nobody came back to: they were not read or edited since the day on which they were"
            " written."
        ),
        view="Never read",
        columns=[MEMORY, layer, DENSITY, BACKLINKS, _WRITTEN, STATUS],
        query=[
            *words.memories(*words.living),
            'WHERE string(default(file.frontmatter.id, "")) != ""',
            _WRITTEN_STEP,
            f"FLATTEN {_day_text('last_touched')} AS touched",
            'WHERE written != "" AND touched != "" AND touched <= written',
            "SORT written ASC, file.path ASC",
        ],
        filters=[
            *words.files(*words.living),
            "!id.isEmpty()",
            'formula.written != "" && formula.touched != "" && formula.touched <= formula.written',
        ],
        formulas=[layer_formula, _WRITTEN_FORMULA, ("touched", _day_formula("last_touched"))],
        sort=(("formula.written", "ASC"), ("file.path", "ASC")),
    )


# A day, alone or with a time behind it. Which days a month has is for `vault-palace check` to tell.
_DATE = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ][0-9].*)?$"


def _day_text(name: str) -> str:
    """DQL for the calendar day of a date and time, as text; empty where it is none."""
    raw = f'string(default(file.frontmatter.{name}, ""))'
    real = f'"{_DATE}"'
    return f'choice(regextest({real}, {raw}), substring({raw}, 0, 10), "")'


def _day_formula(name: str) -> str:
    """The same for Bases, where a date is text or a date, as the type of the property says."""
    real = f"/{_DATE}/"
    written = f'if({real}.matches({name}), {name}.slice(0, 10), "")'
    others = " || ".join(f'{name}.isType("{kind}")' for kind in OTHER_TYPES)
    return (
        f'if({name}.isEmpty() || {others}, "", if({name}.isType("string"), {written},'
        f' {name}.format("YYYY-MM-DD")))'
    )


_WRITTEN = Column("Written on", "written", "formula.written")
_WRITTEN_STEP = f"FLATTEN {_day_text('created')} AS written"
_WRITTEN_FORMULA = ("written", _day_formula("created"))


def _edited(words: Words) -> Dashboard:
    layer, layer_formula = _layer(words)
    edited = day_in_bases("edited_on")
    return Dashboard(
        name="Changed by people",
        opening=f"Memories whose text you, or another person, changed within the last {RECENT_DAYS} days.",
        view=f"Within {RECENT_DAYS} days",
        columns=[MEMORY, layer, Column("Changed on", "day", "note.edited_on"), DENSITY, STREAK, STATUS],
        query=[
            *words.memories(*words.living),
            *day_in_dataview("edited_on"),
            f"WHERE days_left <= 1 AND days_left >= -{RECENT_DAYS}",
            "SORT day DESC, file.path ASC",
        ],
        filters=[
            *words.files(*words.living),
            *edited.filters,
            f"if(formula.due, formula.days_left <= 1 && formula.days_left >= -{RECENT_DAYS}, false)",
        ],
        formulas=[layer_formula, *edited.formulas],
        sort=(("formula.days_left", "DESC"), ("file.path", "ASC")),
    )


def _orphans(words: Words) -> Dashboard:
    layer, layer_formula = _layer(words)
    return Dashboard(
        name="Orphans",
        opening=(
            "Memories that link to no other note and that no other memory links to. A link keeps a memory"
            " alive longer, and lets you find it again."
        ),
        view="Orphans",
        columns=[MEMORY, layer, DENSITY, STREAK, _WRITTEN, STATUS],
        query=[
            *words.memories(*words.living),
            'WHERE string(default(file.frontmatter.id, "")) != ""',
            'WHERE string(default(file.frontmatter.backlinks, 0)) = "0"',
            "WHERE length(filter(file.outlinks, (l) => default(l.file.path, file.path) != file.path)) = 0",
            _WRITTEN_STEP,
            "SORT file.path ASC",
        ],
        filters=[
            *words.files(*words.living),
            "!id.isEmpty()",
            'backlinks.isEmpty() || backlinks.toString() == "0"',
            (
                'file.links.filter(if(value.asFile(), value.asFile().ext.lower() == "md"'
                " && value.asFile().path != file.path, false)).length == 0"
            ),
        ],
        formulas=[layer_formula, _WRITTEN_FORMULA],
    )


def _unresolved(words: Words) -> Dashboard:
    layer, layer_formula = _layer(words)
    return Dashboard(
        name="Unresolved links",
        opening=(
            "Links in memories that lead to no note. A click on one makes the note; a mistyped one"
            " is mended in"
            " its memory. Links to pictures and other attachments are not looked at here."
        ),
        view="Unresolved links",
        columns=[MEMORY, layer, Column("Leads nowhere", "nowhere", "formula.nowhere")],
        query=[
            *words.memories(*words.living),
            (
                "FLATTEN list(sort(unique(filter(file.outlinks, (l) => !l.file.path AND"
                f" !regextest({ATTACHMENT.dataview}, lower(meta(l).path)))), (l) => meta(l).path)) AS nowhere"
            ),
            "WHERE length(nowhere) > 0",
            "SORT file.path ASC",
        ],
        filters=[*words.files(*words.living), "formula.nowhere.length > 0"],
        formulas=[
            layer_formula,
            (
                "nowhere",
                (
                    "[file.links, file.embeds].flat().filter(!value.asFile() &&"
                    f" !{ATTACHMENT.bases}.matches(value.toString().lower())).unique().sort()"
                ),
            ),
        ],
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
            f"FLATTEN {_day_text('archived_on')} AS gone",
            "SORT gone DESC, file.path ASC",
        ],
        filters=words.files(words.archive),
        formulas=[
            ("gone", _day_formula("archived_on")),
        ],
        sort=(("formula.gone", "DESC"), ("file.path", "ASC")),
    )


def _problems(words: Words) -> Dashboard:
    layer, layer_formula = _layer(words)
    number = 'typeof(file.frontmatter.{0}) = "number"'
    density = "file.frontmatter.density"
    streak = "file.frontmatter.streak"
    checks = (
        (
            'string(default(file.frontmatter.id, "")) = ""',
            "id.isEmpty()",
            "no id: not looked after yet, or its properties do not parse",
        ),
        (
            f"{density} != null AND !({number.format('density')} AND {_WORTH} >= 0 AND {_WORTH} <= 1)",
            '!density.isEmpty() && !if(density.isType("number"), density >= 0 && density <= 1, false)',
            "density is no number from 0 to 1",
        ),
        (
            f"{streak} != null AND !({number.format('streak')} AND {_USED} = floor({_USED}))",
            '!streak.isEmpty() && !if(streak.isType("number"), streak == streak.floor(), false)',
            "streak is no whole number",
        ),
        (
            f'string(default(file.frontmatter.created, "")) != "" AND {_day_text("created")} = ""',
            f'!created.isEmpty() && {_day_formula("created")} == ""',
            "created is no date",
        ),
        (
            f'string(default(file.frontmatter.last_touched, "")) != "" AND {_day_text("last_touched")} = ""',
            f'!last_touched.isEmpty() && {_day_formula("last_touched")} == ""',
            "last_touched is no date",
        ),
        (
            (
                'string(default(file.frontmatter.layer, "")) != "" AND'
                f' lower(string(default(file.frontmatter.layer, ""))) != lower({words.layer})'
            ),
            f"!layer.isEmpty() && layer.toString().lower() != {words.layer_formula}.lower()",
            "layer is not its folder's",
        ),
        (COPY_IN_DATAVIEW, COPY_IN_BASES, "a sync tool's conflict copy"),
    )
    return Dashboard(
        name="Vault problems",
        opening=(
            "Notes in the layers that want a person's look. A note whose properties do not parse"
            " keeps its text,"
            " and is never written over. `vault-palace check` knows more, with the line of each."
        ),
        view="Problems",
        columns=[MEMORY, layer, Column("What is wrong", "wrong", "formula.wrong")],
        query=[
            words.source(*words.living),
            NOT_FOREIGN,
            "FLATTEN join(filter(list("
            + ", ".join(f'choice({query}, "{said}", "")' for query, _, said in checks)
            + '), (one) => one != ""), "; ") AS wrong',
            'WHERE wrong != ""',
            "SORT file.path ASC",
        ],
        filters=[
            'file.ext.lower() == "md"',
            words.inside(*words.living),
            '!file.path.contains("/node_modules/")',
            'formula.wrong != ""',
        ],
        formulas=[
            layer_formula,
            (
                "wrong",
                "["
                + ", ".join(f'if({formula}, "{said}", "")' for _, formula, said in checks)
                + '].filter(value != "").join("; ")',
            ),
        ],
    )


def _sessions(words: Words) -> Dashboard:
    layer, layer_formula = _layer(words)
    session = 'string(default(file.frontmatter.source_session, ""))'
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
        rows=[MEMORY, layer, DENSITY, _WRITTEN, STATUS],
        query=[
            *words.memories(*words.living),
            f'WHERE {session} != ""',
            _WRITTEN_STEP,
            f"GROUP BY {session} AS key",
            "SORT max(rows.written) DESC, key ASC",
        ],
        filters=[*words.files(*words.living), "!source_session.isEmpty()"],
        formulas=[layer_formula, _WRITTEN_FORMULA, ("session", "source_session.toString()")],
        sort=(("file.path", "ASC"),),
        group="formula.session",
        twin="The first lists the notes themselves, session by session.",
    )


# -- blocks for a person's own notes ------------------------------------------------------------------------


def fate(words: Words) -> Dashboard:
    layer, layer_formula = _layer(words)
    fate = (
        'choice(typeof(file.frontmatter.pinned) = "boolean" AND file.frontmatter.pinned, "pinned: stays",'
        ' choice(file.frontmatter.decays_on, "goes to the archive on " + string(file.frontmatter.decays_on),'
        ' choice(file.frontmatter.rises_on, "rises on " + string(file.frontmatter.rises_on), "stays")))'
    )
    formula = (
        'if(pinned == true, "pinned: stays", if(!decays_on.isEmpty(), "goes to the archive on " +'
        f' {_any_day("decays_on")}, if(!rises_on.isEmpty(), "rises on " + {_any_day("rises_on")}, "stays")))'
    )
    return Dashboard(
        name="Fate",
        opening="",
        view="Fate",
        columns=[
            layer,
            Column("Worth", "bar", "formula.bar"),
            DENSITY,
            STREAK,
            Column("What is next", "fate", "formula.fate"),
        ],
        query=[
            words.source(*words.living, words.archive),
            "WHERE file.path = this.file.path",
            f"FLATTEN {_WORTH} AS worth",
            *BARS.dataview,
            f"FLATTEN {fate} AS fate",
        ],
        filters=["file.path == this.file.path"],
        formulas=[layer_formula, _WORTH_FORMULA, *BARS.bases, ("fate", formula)],
    )


def _any_day(name: str) -> str:
    return f'if({name}.isType("string"), {name}, {name}.format("YYYY-MM-DD"))'


def decays_here(words: Words) -> Dashboard:
    board = next(one for one in boards(words) if one.name == "About to decay")
    at = next(number for number, step in enumerate(board.query) if step.startswith("WHERE"))
    here = 'WHERE startswith(file.path, this.file.folder + "/")'
    return Dashboard(
        name=board.name,
        opening="",
        view="Decays here",
        columns=board.columns,
        query=[*board.query[:at], here, *board.query[at:]],
        filters=[*board.filters, "file.inFolder(this.file.folder)"],
        formulas=board.formulas,
        sort=board.sort,
    )
