"""The dashboards of what wants mending: orphans, links that lead nowhere, and notes with something wrong.

Dataview and Bases look at one note at a time here, as the product does. What only a comparison of notes can
tell (ids and names that several have) needs Dataview; `vault-palace check` tells it as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from vault_palace.core.dashboardlines import (
    ATTACHMENT,
    COPY_IN_BASES,
    COPY_IN_DATAVIEW,
    DENSITY,
    HAS_ID,
    MEMORY,
    NOT_FOREIGN,
    STATUS,
    STREAK,
    UNPINNED,
    USED,
    WORTH,
    WRITTEN,
    WRITTEN_FORMULA,
    WRITTEN_STEP,
    Both,
    Column,
    Dashboard,
    Words,
    day_formula,
    day_text,
    present,
)
from vault_palace.core.model import Status


def orphans(words: Words) -> Dashboard:
    """As `index.overview` has them: what an archived note, a map or a copy says of one does not count.

    A note itself is known by its name, which it has alone: whose link it is, Bases may not ask.
    """
    layer, layer_formula = words.layer_column, words.layer_formulas
    from_layer = " OR ".join(f'startswith(meta(l).path, "{folder}/")' for folder in words.living)
    copy = COPY_IN_DATAVIEW.replace("lower(file.name)", 'replace(lower(meta(l).path), ".md", "")')
    from_layer_in_bases = " || ".join(f'value.asFile().inFolder("{folder}")' for folder in words.living)
    copy_in_bases = COPY_IN_BASES.replace("file.name", "value.asFile().name")
    return Dashboard(
        name="Orphans",
        opening=(
            "Memories that link to no other note and that no other memory links to. A link keeps a memory"
            " alive longer, and lets you find it again."
        ),
        view="Orphans",
        columns=[MEMORY, layer, DENSITY, STREAK, WRITTEN, STATUS],
        query=[
            *words.memories(*words.living),
            f"WHERE {HAS_ID.dataview}",
            "WHERE length(filter(file.outlinks, (l) => default(l.file.name, file.name) != file.name)) = 0",
            (
                f"WHERE length(filter(file.inlinks, (l) => ({from_layer}) AND l.file.name != file.name"
                f' AND !contains(meta(l).path, "/node_modules/") AND !{copy})) = 0'
            ),
            WRITTEN_STEP,
            "SORT file.path ASC",
        ],
        filters=[
            *words.files(*words.living),
            HAS_ID.bases,
            (
                'file.links.filter(if(value.asFile(), value.asFile().ext.lower() == "md"'
                " && value.asFile().name != file.name, false)).length == 0"
                " && file.backlinks.filter(if(value.asFile(), value.asFile().name != file.name"
                f' && ({from_layer_in_bases}) && !value.asFile().path.contains("/node_modules/")'
                f" && !{copy_in_bases}, false)).length == 0"
            ),
        ],
        formulas=[layer_formula, WRITTEN_FORMULA],
    )


def unresolved(words: Words) -> Dashboard:
    layer, layer_formula = words.layer_column, words.layer_formulas
    return Dashboard(
        name="Unresolved links",
        opening=(
            "Links in memories that lead to no note. A click on one makes the note; a mistyped one is mended"
            " in its memory. Links to pictures and other attachments are not looked at here."
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


# -- what is wrong with a note ------------------------------------------------------------------------------

_DAYS = ("created", "last_touched", "layer_since", "rated_on", "edited_on", "decays_on", "rises_on")
_PINNED = Both('list("true", "yes", "on", "1")', '["true", "yes", "on", "1"]')
_IS_NUMBER = 'typeof(file.frontmatter.{0}) = "number"'


def _checks(words: Words) -> Iterator[tuple[str, str, str]]:
    """What is asked of each note: in DQL, in Bases, and what is said where it is so."""
    yield (
        f"!({HAS_ID.dataview})",
        f"!{HAS_ID.bases}",
        "no id: not looked after yet, or its properties do not parse",
    )
    yield _odd(
        "density",
        Both(
            f"{_IS_NUMBER.format('density')} AND {WORTH} >= 0 AND {WORTH} <= 1",
            "density >= 0 && density <= 1",
        ),
        "density is no number from 0 to 1",
    )
    yield _odd(
        "streak",
        Both(f"{_IS_NUMBER.format('streak')} AND {USED} = floor({USED})", "streak == streak.floor()"),
        "streak is no whole number",
    )
    lifetime = f"choice({_IS_NUMBER.format('decay_days')}, file.frontmatter.decay_days, 0)"
    yield _odd("decay_days", Both(f"{lifetime} > 0", "decay_days > 0"), "decay_days is no positive number")
    pinned = 'lower(string(default(file.frontmatter.pinned, "")))'
    known = f"econtains({UNPINNED.dataview}, {pinned}) OR econtains({_PINNED.dataview}, {pinned})"
    known_in_bases = " || ".join(
        f"{words_of}.contains(pinned.toString().lower())" for words_of in (UNPINNED.bases, _PINNED.bases)
    )
    yield (
        f"!({known})",
        f"!if(pinned, {known_in_bases}, true)",
        "pinned is neither true nor false",
    )
    yield (
        _unlike("layer", f"lower(string(file.frontmatter.layer)) = lower({words.layer})"),
        _unlike_in_bases("layer", f"layer.toString().lower() == {words.layer_formula}.lower()"),
        "layer is not its folder's",
    )
    listed = ", ".join(f'"{status}"' for status in Status)
    yield (
        _unlike("status", f"econtains(list({listed}), lower(string(file.frontmatter.status)))"),
        _unlike_in_bases("status", f"[{listed}].contains(status.toString().lower())"),
        "status is no word that is known",
    )
    for name in _DAYS:
        yield (
            _unlike(name, f'{day_text(f"file.frontmatter.{name}")} != ""'),
            _unlike_in_bases(name, f'{day_formula(name)} != ""'),
            f"{name} is no date",
        )
    yield COPY_IN_DATAVIEW, COPY_IN_BASES, "a sync tool's conflict copy"


def _odd(name: str, good: Both, said: str) -> tuple[str, str, str]:
    """A number that is none, or not one that *good* allows."""
    return (
        _unlike(name, good.dataview),
        _unlike_in_bases(name, f'if({name}.isType("number"), {good.bases}, false)'),
        said,
    )


def _unlike(name: str, good: str) -> str:
    return f"{present(name).dataview} AND !({good})"


def _unlike_in_bases(name: str, good: str) -> str:
    return f"{present(name).bases} && !({good})"


def problems(words: Words) -> Dashboard:
    layer, layer_formula = words.layer_column, words.layer_formulas
    checks = tuple(_checks(words))
    return Dashboard(
        name="Vault problems",
        opening=(
            "Notes in the layers that want a person's look. A note whose properties do not parse keeps its"
            " text, and is never written over. `vault-palace check` knows more, with the line of each."
        ),
        view="Problems",
        columns=[MEMORY, layer, Column("What is wrong", "wrong", "formula.wrong")],
        query=[
            words.source(*words.living),
            NOT_FOREIGN,
            "FLATTEN join(filter(list(",
            *(f'  choice({query}, "{said}", ""),' for query, _, said in checks[:-1]),
            *(f'  choice({query}, "{said}", "")' for query, _, said in checks[-1:]),
            '), (one) => one != ""), "; ") AS wrong',
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
        more=_shared(words),
    )


def _shared(words: Words) -> str:
    """Ids and names that several notes have, the archive included: a Base cannot compare notes."""
    steps = (
        "```dataview",
        "TABLE WITHOUT ID",
        '  key AS "Shared",',
        '  rows.file.link AS "By"',
        *words.memories(*words.living, words.archive),
        "SORT file.path ASC",
        (
            f'FLATTEN list("name " + lower(file.name), choice({HAS_ID.dataview},'
            ' "id " + string(file.frontmatter.id), "")) AS shared'
        ),
        'WHERE shared != ""',
        "GROUP BY shared AS key",
        "WHERE length(rows) > 1",
        "SORT key ASC",
        "```",
    )
    return (
        "## Ids and names that several notes have\n\n"
        "A link to a shared name may lead to another note than you think. A Base cannot compare notes, so\n"
        "this table needs Dataview; `vault-palace check` lists them too.\n\n" + "\n".join(steps) + "\n"
    )
