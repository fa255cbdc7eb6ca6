"""Makes a vault of N notes, the same for the same seed: Zipf words, links, tags, rooms, three scripts.

The notes are Sediment Palace's in form (quoted ISO dates), so that both programs read the same folder.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

from vault_palace.core import frontmatter, rules
from vault_palace.core import memory as memories
from vault_palace.core.dates import show_when
from vault_palace.core.model import Layer
from vault_palace.core.policy import Policy

LAYERS = (("01_Shallow", "shallow", 7), ("02_Sediment", "sediment", 60), ("03_Bedrock", "bedrock", 36500))
SHARES = (0.6, 0.3, 0.1)
SYLLABLES = [consonant + vowel for consonant in "bdklmnprst" for vowel in "aeiou"]
CYRILLIC = ["память", "слой", "осадок", "заметка", "камень", "река", "поток", "глина", "песок", "время"]
CJK = ["記憶", "沈殿", "地層", "河川", "砂岩", "時間", "庭園", "降雨", "手紙", "学習"]
COMMON, RARE = "bakela", "zyxrare"
NOTES_A_ROOM = 40
LINK = re.compile(r"\[\[(note \d{6})\]\]")


def words(count: int) -> list[str]:
    """The vocabulary, the most frequent first."""
    maker = random.Random(1)
    found = {COMMON: None}
    while len(found) < count:
        found["".join(maker.choices(SYLLABLES, k=maker.randint(2, 4)))] = None
    return list(found)


def make(root: Path, count: int, seed: int = 7, today: datetime | None = None) -> list[str]:
    """Write *count* notes below *root* and return their paths in the vault."""
    maker = random.Random(seed)
    vocabulary = words(8000)
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(vocabulary))))
    now = today or datetime.now(UTC)
    names = [f"note {number:06d}" for number in range(count)]
    made: list[str] = []
    for number, name in enumerate(names):
        folder, layer, life = maker.choices(LAYERS, SHARES)[0]
        path = f"{folder}/room {number // NOTES_A_ROOM:04d}/{name}.md"
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = note(maker, vocabulary, weights, number, names, layer, life, now)
        target.write_text(text, encoding="utf-8", newline="\n")
        made.append(path)
    for place in ("01_Shallow", "02_Sediment", "03_Bedrock", "_Archive", "_System"):
        (root / place).mkdir(exist_ok=True)
    return made


def note(
    maker: random.Random,
    vocabulary: list[str],
    weights: list[float],
    number: int,
    names: list[str],
    layer: str,
    life: int,
    now: datetime,
) -> str:
    """One note: header, two paragraphs or more, three links, now and then another script or a fence."""
    created = now - timedelta(days=maker.randint(0, 200), hours=maker.randint(0, 23))
    touched = created + (now - created) * maker.random()
    header = [
        "---",
        f"id: mem_{maker.getrandbits(48):012x}",
        f"layer: {layer}",
        f"created: '{created.isoformat(timespec='seconds')}'",
        f"last_touched: '{touched.isoformat(timespec='seconds')}'",
        f"density: {round(maker.random(), 2)}",
        f"streak: {maker.randint(-2, 6)}",
        f"decay_days: {life}",
        f"tags: [{', '.join(maker.sample(['apollo', 'kafka', 'garden', 'music', 'work'], 2))}]",
        "status: active",
        "source_session: bench",
        "---",
        "",
        f"# {names[number]}",
        "",
        "",
    ]
    body = [
        " ".join(maker.choices(vocabulary, cum_weights=weights, k=maker.randint(30, 70))) + "."
        for _ in range(maker.randint(2, 6))
    ]
    if number % 500 == 3:
        body.append(f"The {RARE} word stands here.")
    if maker.random() < 0.12:
        body.append(" ".join(maker.choices(CYRILLIC, k=20)))
    if maker.random() < 0.08:
        body.append("".join(maker.choices(CJK, k=20)))
    if maker.random() < 0.2:
        body.append("```\n[[not a link]]\n```")
    body.append("See " + ", ".join(f"[[{maker.choice(names)}]]" for _ in range(3)) + ".")
    return "\n".join(header) + "\n\n".join(body) + "\n"


def complete(root: Path, paths: Sequence[str], now: datetime, policy: Policy) -> None:
    """Give these notes, which `make` wrote, every property that a keeper would, and days that are not due.

    As if a keeper had looked after them for long: the first contact with such a vault writes nothing.
    """
    linked = Counter[str]()
    texts = {path: (root / path).read_text(encoding="utf-8") for path in paths}
    for path, text in texts.items():
        own = Path(path).stem
        linked.update(set(LINK.findall(text)) - {own})
    maker = random.Random(len(paths))
    for path, text in texts.items():
        layer = Layer(path.split("/")[0].split("_")[1].lower())
        age = timedelta(
            days=maker.randint(0, 4 if layer is Layer.SHALLOW else 20), hours=maker.randint(0, 23)
        )
        header = frontmatter.read(text)
        dates: dict[str, frontmatter.Change] = {
            "created": show_when(policy.wall(now - age)),
            "last_touched": show_when(policy.wall(now - age * maker.random())),
            "streak": max(0, int(str(header.values["streak"]))),
            "backlinks": 0,
        }
        text = frontmatter.patch(text, dates)
        reading = memories.read_memory(
            path, layer, frontmatter.read(text), file_time=now, now=now, policy=policy
        )
        after = rules.recount(reading.memory, linked[Path(path).stem])
        decision = rules.decide(after, after.backlinks, now, policy)
        after = rules.forecast(replace(after, status=decision.after.status), after.backlinks, now, policy)
        text = frontmatter.patch(text, memories.changes(reading.memory, after, reading.fills))
        (root / path).write_text(text, encoding="utf-8", newline="\n")


def main() -> int:
    """Make one vault from the command line."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("root", type=Path, help="an empty or missing folder")
    asked.add_argument("--notes", type=int, default=1000)
    asked.add_argument("--seed", type=int, default=7)
    given = asked.parse_args()
    if given.root.exists() and any(given.root.iterdir()):
        print(f"{given.root} is not empty; nothing was made.", file=sys.stderr)
        return 2
    print(f"{len(make(given.root, given.notes, given.seed))} notes in {given.root}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
