"""The commands about what was: a note's history, taking operations back, and forgetting for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from vault_palace.services.answers import (
    ForgetAnswer,
    HistoryAnswer,
    OperationAnswer,
    UndoAnswer,
    UndoneAnswer,
    VersionAnswer,
)
from vault_palace.surfaces.cli import app as commands
from vault_palace.surfaces.cli.render import FAINT, GOOD, STRONG, WARN
from vault_palace.surfaces.cli.screen import Block, Says, Screen, Table

_COLOURS = {"+": GOOD, "-": "red", "@": FAINT}


@commands.app.command()
def history(
    note: Annotated[str, typer.Argument(help="Its path, id or title; a note that is gone as well.")],
    limit: Annotated[
        int | None, typer.Option("--limit", help="How many operations, and how many versions; else 20.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Also what the program wrote for itself, and versions that say nothing else."
        ),
    ] = False,
    version: Annotated[
        str | None, typer.Option("--version", metavar="V", help="Print the text of this version instead.")
    ] = None,
    vault: commands.Vault = None,
    as_json: commands.Json = False,
) -> int:
    """Show what was done to a note, newest first: when, by whom, why, and whether it can be taken back.

    The versions that were kept besides, such as those that you saved, come below.
    """
    screen = Screen.open(as_json=as_json)
    with commands.opened(vault) as palace:
        if version is not None:
            found = palace.version(note, version)
            if as_json:
                screen.show(found, [])
            else:
                screen.raw(found["text"])
            return 0
        answer = palace.history(note, limit=limit, everything=everything)
    screen.show(answer, past(answer))
    return 0


@commands.app.command()
def undo(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[OP|NOTE]", help="An operation's id; or a note, whose newest change is taken back."
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="All that this session did, newest first.")
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            "--version", metavar="V", help="Put this kept version of the note back; see history for its name."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
    confirm: commands.Confirm = False,
    vault: commands.Vault = None,
    as_json: commands.Json = False,
) -> int:
    """Take back an operation, the newest on a note, or a session; or put a kept version of a note back.

    Ends with 1 when some of it was refused.

    Nothing newer is overwritten: what changed since is merged or left. An undo can be undone by its own id.
    On a terminal the changes are shown first and you are asked.
    """
    screen = Screen.open(as_json=as_json)
    with commands.opened(vault) as palace:
        if not dry_run and not confirm and screen.can_ask:
            plan = palace.undo(what, session=session, version=version, preview=True)
            if not plan["changed"]:
                screen.show(plan, undone(plan))
                return commands.LEFT_FOR_A_PERSON
            confirm = screen.ask("Do this now?", undone(plan))
            if not confirm:
                return commands.declined()
        answer = palace.undo(what, session=session, version=version, preview=dry_run, confirm=confirm)
    screen.show(answer, undone(answer))
    return commands.LEFT_FOR_A_PERSON if answer["refused"] else 0


@commands.app.command()
def forget(
    note: Annotated[str, typer.Argument(help="Its path, id or title; a note that is gone as well.")],
    confirm: commands.Confirm = False,
    vault: commands.Vault = None,
    as_json: commands.Json = False,
) -> int:
    """Erase a note for good: file, kept versions, search index and journal text. Nothing brings it back.

    Ends with 1 when something is left that only you can erase, such as another machine's journal.
    """
    screen = Screen.open(as_json=as_json)
    with commands.opened(vault) as palace:
        if not confirm and screen.can_ask:
            told = palace.history(note)
            confirm = screen.ask(f"Erase {told['path']} and all its versions for good?", past(told))
            if not confirm:
                return commands.declined()
        answer = palace.forget(note, confirm=confirm)
    screen.show(answer, forgotten(answer))
    return commands.LEFT_FOR_A_PERSON if answer["left"] else 0


# -- what a person sees -------------------------------------------------------------------------------------


def past(answer: HistoryAnswer) -> list[Block]:
    """A note's operations as a table, newest first, and below it the versions that none of them names."""
    gone = "" if answer["exists"] else " (not in the vault now)"
    said: list[Block] = [Says(f"{answer['path']}{gone}", STRONG)]
    if answer["id"]:
        said.append(Says(f"id {answer['id']}", FAINT))
    if answer["operations"]:
        rows = tuple(_row(one) for one in answer["operations"])
        said.append(Table(("operation", "when", "what", "why", "who", "note", "changed", "versions"), rows))
    else:
        said.append(Says("The journals tell of nothing that was done to it."))
    more = answer["total"] - len(answer["operations"])
    if more:
        said.append(Says(f"{more} older ones: --limit {answer['total']}", FAINT))
    if answer["silent"]:
        said.append(Says(f"{answer['silent']} uses and upkeep not shown: --all", FAINT))
    return said + _versions(answer)


def _row(one: OperationAnswer) -> tuple[str, ...]:
    verb = one["verb"] if one["state"] == "done" else f"{one['verb']} ({one['state']})"
    sides = (
        ("before", one["before_version"], one["before_kept"]),
        ("after", one["after_version"], one["after_kept"]),
    )
    words = ", ".join(f"{side} {name}" for side, name, is_kept in sides if is_kept) or "–"
    return one["op"], one["when"], verb, one["why"], one["who"], one["path"], one["summary"], words


def _versions(answer: HistoryAnswer) -> list[Block]:
    """The versions that no operation names; a person puts one back, or looks at it first."""
    said: list[Block] = []
    if answer["versions"]:
        rows = tuple(_version(one) for one in answer["versions"])
        said.append(Table(("version", "kept on", "against the note now"), rows, "Versions kept besides"))
        said.append(Says("Look at one: history NOTE --version V. Put it back: undo NOTE --version V.", FAINT))
    more = answer["versions_total"] - len(answer["versions"])
    if more:
        said.append(Says(f"{more} more versions: --limit {answer['versions_total']}", FAINT))
    if answer["versions_alike"]:
        said.append(
            Says(f"{answer['versions_alike']} versions that say nothing else not shown: --all", FAINT)
        )
    return said


def _version(one: VersionAnswer) -> tuple[str, ...]:
    return one["version"], one["kept_on"], f"lines +{one['lines_added']} −{one['lines_removed']}"


def undone(answer: UndoAnswer) -> list[Block]:
    """Each operation with the lines that change, and what was refused and why."""
    said: list[Block] = []
    for one in answer["undone"]:
        said += _undone(one, preview=answer["preview"])
    would = "would change" if answer["preview"] else "changed"
    said.append(Says(f"{answer['changed']} note{'s' * (answer['changed'] != 1)} {would}.", STRONG))
    if answer["refused"]:
        said.append(Says(f"Refused: {answer['refused']}", WARN))
    return said


def _undone(one: UndoneAnswer, *, preview: bool) -> list[Block]:
    if one["verb"] == "version":
        title = f"{'Would put back' if preview else 'Put back'} version {one['op']}"
    else:
        title = f"{'Would undo' if preview else 'Undo of'} {one['verb']} {one['op']}"
    said: list[Block] = [Says(title, STRONG)]
    if one["why"]:
        said.append(Says(f"  {one['why']}", FAINT))
    for note in one["notes"]:
        to = f" to {note['to']}" if note["to"] != note["path"] else ""
        said.append(Says(f"{note['path']}: {note['what']}{to}", GOOD))
        said += _lines(note["diff"])
        if note["newer"]:
            said.append(Says(f"  {note['newer']}", WARN))
    said += [Says(f"{no['path']}: refused. {no['reason']}", WARN) for no in one["refused"]]
    said += [Says(f"Not rewritten: {left}", WARN) for left in one["left"]]
    if one["undo_op"]:
        said.append(Says(f"  back again: vault-palace undo {one['undo_op']}", FAINT))
    return said


def _lines(diff: Sequence[str]) -> list[Block]:
    return [Says(f"  {line}", _COLOURS.get(line[:1], "")) for line in diff]


def forgotten(answer: ForgetAnswer) -> list[Block]:
    """What was erased, which links lead nowhere now, and what is left for the person."""
    said: list[Block] = [
        Says(f"Erased {answer['path']}", GOOD),
        Says(f"{answer['versions']} kept versions, {answer['journal_lines']} lines of the journal", FAINT),
    ]
    said += [Says(f"Links to it: {path}", WARN) for path in answer["links"]]
    return said + [Says(f"Left: {left}", WARN) for left in answer["left"]]
