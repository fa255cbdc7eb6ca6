"""Small blocks that a person may paste into a note of their own: a memory's fate, what decays in a room."""

from __future__ import annotations

from vault_palace.core.dashboardlines import (
    BARS,
    DENSITY,
    NOT_PINNED,
    STREAK,
    WORTH,
    WORTH_FORMULA,
    Column,
    Dashboard,
    Words,
    day_formula,
    day_text,
)
from vault_palace.core.dashboardtable import boards


def fate(words: Words) -> Dashboard:
    """What happens next to the note that shows it; nothing where that is no memory."""
    layer, layer_formula = words.layer_column, words.layer_formulas
    gone, decays, rises = "archived_on", "decays_on", "rises_on"
    proposed = 'lower(string(default(file.frontmatter.status, ""))) = "proposed"'
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
            f"FLATTEN {WORTH} AS worth",
            *BARS.dataview,
            *(f"FLATTEN {day_text(f'file.frontmatter.{name}')} AS {name}" for name in (gone, decays, rises)),
            "FLATTEN",
            f'  choice(startswith(file.path, "{words.archive}/"), "was archived on " + {gone},',
            f'  choice(!{NOT_PINNED.dataview}, "pinned: stays",',
            f'  choice({decays} != "", "goes to the archive on " + {decays},',
            f'  choice({rises} != "", "rises on " + {rises},',
            f'  choice({proposed}, "waits for your word", "stays")))))',
            "  AS fate",
        ],
        filters=["file.path == this.file.path", words.inside(*words.living, words.archive)],
        formulas=[
            layer_formula,
            WORTH_FORMULA,
            *BARS.formulas,
            *((name, day_formula(name)) for name in (gone, decays, rises)),
            (
                "fate",
                (
                    f'if(file.inFolder("{words.archive}"), "was archived on " + formula.{gone},'
                    f' if(!{NOT_PINNED.bases}, "pinned: stays",'
                    f' if(formula.{decays} != "", "goes to the archive on " + formula.{decays},'
                    f' if(formula.{rises} != "", "rises on " + formula.{rises},'
                    ' if(status.toString().lower() == "proposed", "waits for your word", "stays")))))'
                ),
            ),
        ],
    )


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
