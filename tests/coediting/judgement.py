"""What became of every word, note, link and rating of a run, judged by the simulation's own record.

Only two things are asked of the product: which versions it can name, and where a link leads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.coediting.ledger import LINK, Dropped, Ledger, marks, words
from tests.coediting.torture import LAYERS, Torture
from vault_palace.core import frontmatter
from vault_palace.core.errors import VaultError
from vault_palace.core.model import ARCHIVE
from vault_palace.core.resolve import Resolver

SETTLE_SECONDS = 600.0


@dataclass
class Verdict:
    """`faults` are broken promises, in words; the rest are counts for the report."""

    faults: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    window: list[Dropped] = field(default_factory=list)  # the losses that no program can prevent


def judge(run: Torture) -> Verdict:
    """Compare the vault with the record. The run must be settled."""
    verdict = Verdict(counts=Counter(run.ledger.counts))
    notes = {path: run.text(path) for path in run.paths(*LAYERS, ARCHIVE)}
    there = set().union(*(words(text) for text in notes.values())) if notes else set()
    aside = set().union(*(words(place.read_text(encoding="utf-8")) for place in run.copies()))
    verdict.counts["words in conflict copies alone"] = len(aside - there)
    kept = _kept(run)
    _judge_words(run.ledger, there, aside, kept, verdict)
    _judge_drops(run.ledger, there | aside | kept, verdict)
    _judge_notes(run.ledger, notes, verdict)
    _judge_links(run, notes, verdict)
    return verdict


def _kept(run: Torture) -> set[str]:
    """The words of all versions that the product keeps and can name."""
    house = run.house.house
    found: set[str] = set()
    folder = run.root / ".palace/versions"
    for place in folder.glob("*/*.z") if folder.exists() else ():
        fingerprint = place.name.removesuffix(".z")
        if house.journal.accounts_for(fingerprint):
            found |= words(house.versions.get(fingerprint).decode("utf-8", "replace"))
    return found


def _judge_words(ledger: Ledger, there: set[str], aside: set[str], kept: set[str], verdict: Verdict) -> None:
    for word, mark in sorted(ledger.written.items()):
        counted = word in ledger.saved if word.startswith("p") else word in ledger.answered
        if not counted:
            continue
        verdict.counts["words that count"] += 1
        if word in there:
            if word in ledger.removed and mark not in ledger.copied:
                # Cut in one text and changed, or kept, in another: then it stays, for nothing may be lost.
                verdict.counts["words cut in one of two texts, and kept"] += 1
            continue
        if word in aside:
            continue
        if word in ledger.removed or (mark in ledger.deleted and word in kept):
            verdict.counts["words that a person deleted"] += 1
        elif word in ledger.cut and word in kept:
            # An old text that they saved later had it still: that it was cut was on purpose.
            verdict.counts["words cut in one of two texts, and in a version"] += 1
        elif word in ledger.over and word not in kept:
            verdict.counts["words that a person's own program wrote over"] += 1
        elif word.startswith("a") and word not in ledger.replaced:
            verdict.faults.append(
                f"appended {word} of {mark} is not in the vault{_where(word, kept, ledger)}"
            )
        elif word in kept:
            verdict.counts["words in a version"] += 1
        else:
            verdict.faults.append(f"{word} of {mark} is lost{_where(word, kept, ledger)}")


def _where(word: str, kept: set[str], ledger: Ledger) -> str:
    facts = [
        name
        for name, known in (
            ("in a version", kept),
            ("written over by an old text", ledger.stale),
            ("replaced by an agent", ledger.replaced),
        )
        if word in known
    ]
    return f" ({', '.join(facts)})" if facts else ""


def _judge_drops(ledger: Ledger, found: set[str], verdict: Verdict) -> None:
    lost: set[str] = set()
    for dropped in ledger.dropped:
        gone = dropped.words - found - ledger.saved
        lost |= dropped.words
        if not gone:
            continue
        if dropped.by_person:
            verdict.counts["words that a person's two programs lost between them"] += len(gone)
        elif dropped.in_window(SETTLE_SECONDS):
            verdict.window.append(dropped)
            verdict.counts["words lost in the one window"] += len(gone)
        else:
            verdict.faults.append(
                f"unsaved {', '.join(sorted(gone))} of {dropped.path} {dropped.why} at {dropped.at:.3f},"
                f" typing since {dropped.typing_since:.3f}, quiet for {dropped.quiet_for:.1f} s"
            )
    for word in sorted(ledger.written):
        known = ledger.saved | lost | ledger.unsaved | ledger.removed
        if word.startswith("p") and word not in known:
            verdict.counts["words that never reached a buffer"] += 1


def _judge_notes(ledger: Ledger, notes: dict[str, str], verdict: Verdict) -> None:
    verdict.counts["ratings that a person's text of unknown age took back"] = ledger.taken_back
    homes: dict[str, list[str]] = defaultdict(list)
    ids: dict[str, list[str]] = defaultdict(list)
    for path, text in notes.items():
        for mark in marks(text):
            homes[mark].append(path)
        header = frontmatter.read(text)
        if header.problem is not None:
            verdict.faults.append(f"{path} does not parse: {header.problem.message}")
            continue
        ids[str(header.values.get("id"))].append(path)
        for mark in marks(text):
            wanted = ledger.ratings.get(mark)
            if wanted is not None and mark not in ledger.copied and header.values.get("density") != wanted:
                verdict.faults.append(
                    f"{path} ({mark}) was rated {wanted} and says {header.values.get('density')}"
                )
    for mark, paths in sorted(homes.items()):
        if len(paths) > 1 and mark not in ledger.copied:
            verdict.faults.append(f"{mark} is there twice: {', '.join(paths)}")
        if mark in ledger.gone:
            verdict.faults.append(f"{mark}, which a person deleted, is at {paths[0]}")
    for known, paths in sorted(ids.items()):
        if len(paths) > 1:
            verdict.faults.append(f"{known} is the id of {', '.join(paths)}")
    verdict.counts["notes at the end"] = len(notes)


def _judge_links(run: Torture, notes: dict[str, str], verdict: Verdict) -> None:
    resolver = Resolver(run.paths("."))
    home = {mark: path for path, text in notes.items() for mark in marks(text)}
    for path, text in notes.items():
        for stem, alias in LINK.findall(text):
            mark = run.ledger.links.get(alias)
            if mark is None or mark not in home or mark in run.ledger.deleted:
                continue  # a note that an old text brought back has lost the thread of its names
            verdict.counts["links judged"] += 1
            try:
                to = resolver.resolve(stem, path)
            except VaultError:
                to = None
            if to is None or mark not in marks(notes.get(to, "")):
                verdict.faults.append(f"[[{stem}|{alias}]] in {path} leads to {to}, not to {home[mark]}")
