"""What a person sees of each answer: answers in, lines and tables out. Decides nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from vault_palace.core.model import Problem
from vault_palace.services.answers import (
    DecisionAnswer,
    FindAnswer,
    InitAnswer,
    Match,
    MetabolizeAnswer,
    MoveAnswer,
    ProblemAnswer,
    PurgeAnswer,
    RateAnswer,
    ReadAnswer,
    RecoverAnswer,
    ReindexAnswer,
    ResolveAnswer,
    RestoreAnswer,
    SearchAnswer,
    WriteAnswer,
)
from vault_palace.surfaces.cli.screen import Block, Says, Table, in_options

STRONG, FAINT, GOOD, WARN = "bold", "dim", "green", "yellow"


def laid_out(answer: InitAnswer) -> list[Block]:
    """What was, or would be, added to the folder; what was there already is only counted."""
    would = "would be " if answer["dry_run"] else ""
    new = [one for one in answer["files"] if one["done"] != "kept"]
    kept = len(answer["files"]) - len(new)
    said: list[Block] = [Says(f"{answer['vault']} · time zone {answer['timezone']}", STRONG)]
    if new:
        rows = tuple((one["path"], f"{would}{one['done']}", one["detail"]) for one in new)
        said.append(Table(("file", "what", "detail"), rows))
    if kept:
        said.append(Says(f"Already there and left as they are: {kept}", FAINT))
    return said + [Says(line, WARN) for line in answer["notes"]]


def written(answer: WriteAnswer) -> list[Block]:
    """Where the note is, and what is worth linking."""
    said: list[Block] = [
        Says(f"Saved {answer['saved_path']}", GOOD),
        Says(f"id {answer['id']} · rev {answer['rev']} · {answer['mode']}", FAINT),
    ]
    said += _warnings(answer["warnings"])
    for kind, title in (("near-duplicate", "Says the same already"), ("link", "Worth linking")):
        rows = tuple(
            (near["link"], near["path"], near["why"]) for near in answer["related"] if near["kind"] == kind
        )
        if rows:
            said.append(Table(("link", "note", "why"), rows, title))
    return said


def read(answer: ReadAnswer) -> list[Block]:
    """Title, properties, text, and who links here."""
    rows = tuple((name, _value(value)) for name, value in answer["metadata"].items())
    said: list[Block] = [
        Says(answer["title"], STRONG),
        Says(f"{answer['path']} · rev {answer['rev']}", FAINT),
        *([Says(f"Superseded by {answer['superseded_by']}.", WARN)] if "superseded_by" in answer else []),
        Table(("property", "value"), rows),
        Says(""),
        Says(answer["content"].rstrip("\n")),
    ]
    if answer["backlinks"]:
        said += [Says(""), Says("Linked from: " + ", ".join(answer["backlinks"]), FAINT)]
    if answer["truncated"]:
        said.append(Says(answer.get("more", "The text was cut."), WARN))
    return said + _warnings(answer["warnings"])


def found(answer: SearchAnswer | FindAnswer) -> list[Block]:
    """The hits, each with the reason it is one; then how to see more."""
    said: list[Block] = []
    for match in answer["matches"]:
        said += _match(match)
    if not answer["matches"]:
        said.append(Says("Nothing found.", WARN))
    if answer["note"]:
        said.append(Says(answer["note"], FAINT))
    if answer["cursor"]:
        said.append(Says(f"More: --cursor {answer['cursor']}", FAINT))
    return said


def _match(match: Match) -> list[Block]:
    facts = [match["path"], match["layer"]]
    if by := match.get("superseded_by"):
        facts.append(f"superseded by {by}")
    if match["density"] is not None:
        facts.append(f"density {match['density']:g}")
    if match["age_days"] is not None:
        facts.append("today" if match["age_days"] == 0 else f"{match['age_days']} days old")
    if match["decays_on"]:
        facts.append(f"decays {match['decays_on']}")
    return [
        Says(match["title"], STRONG),
        Says("  " + " · ".join(facts), FAINT),
        Says("  " + " ".join(match["snippet"].split())),
        Says(f"  {match['why']}", FAINT),
    ]


def rated(answer: RateAnswer) -> list[Block]:
    """Each value before and after."""
    before, after = answer["before"], answer["after"]
    rows = tuple((name, _value(before.get(name)), _value(after.get(name))) for name in after)
    fate = (
        f"Goes to the archive on {answer['decays_on']} if nobody touches it." if answer["decays_on"] else ""
    )
    said: list[Block] = [Says(answer["path"], STRONG), Table(("property", "before", "after"), rows)]
    return said + ([Says(fate, FAINT)] if fate else [])


def metabolized(answer: MetabolizeAnswer) -> list[Block]:
    """What moves and why, what waits, what was skipped; a dry run speaks of what would."""
    would = answer["dry_run"]
    said: list[Block] = [
        Says(
            f"{'Dry run: ' if would else ''}{answer['scanned']} notes looked at; "
            f"{answer['promoted_count']} {'would rise' if would else 'rose'}, "
            f"{answer['archived_count']} {'would go' if would else 'went'} to the archive, "
            f"{answer['decaying_count']} decaying.",
            STRONG,
        )
    ]
    if answer["decisions"]:
        said.append(decisions(answer["decisions"]))
    if answer["waiting"]:
        said.append(decisions(answer["waiting"], "Held back"))
    if answer["skipped"]:
        rows = tuple((skip["path"], skip["reason"]) for skip in answer["skipped"])
        said.append(Table(("note", "reason"), rows, "Skipped, taken next time"))
    if answer["note"]:
        said.append(Says(in_options(answer["note"]), FAINT))
    if answer["cancelled"]:
        said.append(Says("Stopped between two notes; what is listed was done.", WARN))
    return said


def decisions(rows: Sequence[DecisionAnswer], title: str = "") -> Table:
    """Notes with where they go and the reason in words."""
    shown = tuple((row["path"], row["to"] or "stays", row["rule"], row["reason"]) for row in rows)
    return Table(("note", "to", "rule", "reason"), shown, title)


def purged(answer: PurgeAnswer) -> list[Block]:
    """Where the note went, and how it comes back."""
    back = f"vault-palace restore {shlex.quote(answer['archived_to'])}"
    said: list[Block] = [Says(f"Archived {answer['path']} to {answer['archived_to']}", GOOD)]
    return [*said, Says(f"Back: {back}", FAINT), *_left(answer.get("links_left", []))]


def restored(answer: RestoreAnswer) -> list[Block]:
    said: list[Block] = [Says(f"Restored {answer['path']} to {answer['restored_to']}", GOOD)]
    return said + _left(answer.get("links_left", []))


def moved(answer: MoveAnswer) -> list[Block]:
    """From where to where, and what became of the links."""
    if answer["source"] == answer["destination"]:
        return [Says(f"{answer['source']} is there already; nothing was moved.")]
    said: list[Block] = [Says(f"Moved {answer['source']} to {answer['destination']}", GOOD)]
    if answer["links_rewritten"]:
        said.append(Says(f"Links rewritten: {answer['links_rewritten']}", FAINT))
    return said + _left(answer["links_left"])


def resolved(answer: ResolveAnswer) -> list[Block]:
    """What became of the copy, what was not taken over, and what is left to do."""
    would = "Dry run: " if answer["dry_run"] else ""
    what = {
        "merged": f"Merged {answer['copy']} into {answer['main']}",
        "main": f"Kept {answer['main']}, let {answer['copy']} go",
        "copy": f"The text of {answer['copy']} is that of {answer['main']}",
        "both": f"Made {answer['copy']} a memory of its own: {answer['saved_as']}",
        "page": f"Left both; their texts differ in the same lines, side by side in {answer['page']}",
    }[answer["outcome"]]
    said: list[Block] = [Says(would + what, WARN if answer["outcome"] == "page" else GOOD)]
    said += [Says(f"Not taken over: {told}", WARN) for told in answer["told"]]
    if answer["outcome"] == "page":
        again = f"vault-palace resolve {shlex.quote(answer['copy'])}"
        said.append(Says(f"Take the markers out there, then: {again}. Or: --keep main, copy or both.", FAINT))
    return said + [Says(f"Another copy of it: {path}", WARN) for path in answer["left"]]


def _left(links: Sequence[str]) -> list[Block]:
    return [Says(f"Not rewritten: {left}", WARN) for left in links]


def recovered(answer: RecoverAnswer) -> list[Block]:
    """Each unfinished operation and its end."""
    if not answer["recovered"] and not answer["unresolved_count"]:
        return [Says("No unfinished operation.", GOOD)]
    rows = tuple((one["operation"], one["path"], one["status"], one["detail"]) for one in answer["recovered"])
    left = left_open(answer)
    said: list[Block] = [Table(("operation", "note", "status", "detail"), rows)]
    return said + ([Says(f"Left open for a person: {left}", WARN)] if left else [])


def left_open(answer: RecoverAnswer) -> int:
    """How many operations only a person can decide."""
    return sum(one["status"] == "open" for one in answer["recovered"])


def as_rows(found: Sequence[Problem]) -> list[ProblemAnswer]:
    """Problems as an answer holds them."""
    return [ProblemAnswer(path=one.path, line=one.line, code=one.code, message=one.message) for one in found]


def problems(rows: Sequence[ProblemAnswer]) -> list[Block]:
    """Every problem as `path:line: code: message`, a form that editors can follow; then the count."""
    if not rows:
        return [Says("No problems found.", GOOD)]
    said: list[Block] = [
        Says(f"{row['path']}:{row['line']}: {row['code']}: {row['message']}") for row in rows
    ]
    count = len(rows)
    return [*said, Says(f"{count} problem{'s' if count != 1 else ''} found.", WARN)]


def reindexed(answer: ReindexAnswer) -> list[Block]:
    said: list[Block] = [
        Says(f"{answer['notes']} notes read in {answer['seconds']:.1f} s", GOOD),
        Says(answer["index"], FAINT),
    ]
    if answer["problem_count"]:
        said.append(Says(f"Problems: {answer['problem_count']} (vault-palace check)", WARN))
    return said


def _warnings(lines: Sequence[str]) -> list[Block]:
    return [Says(f"Warning: {line}", WARN) for line in lines]


def _value(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value)
    return str(value)
