"""What answers of the real palace cost, in estimated and in true tokens, whatever is in the vault."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.mcp.o200k import counted
from vault_palace.core import budget
from vault_palace.core.errors import VaultError
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.surfaces.mcp import fit, tools
from vault_palace.surfaces.mcp.metrics import Metrics
from vault_palace.surfaces.mcp.texts import MOST_TOKENS

CATALOGUE = tools.catalogue()
SENTENCES = (
    "The orders topic in Kafka keeps its messages for seven days; after that the broker deletes them.",
    "Consumers commit offsets after each batch; a crash replays the batch, so handlers are idempotent.",
    "We chose Kafka over RabbitMQ because the audit trail needs replay, and the team had run it before.",
    "Schema changes of events go through the registry; a field is never removed, only deprecated.",
    "The staging cluster has three brokers and no replication; do not measure throughput there.",
)
TITLES = (
    "Kafka retention", "Kafka offsets", "Why Kafka", "Event schemas", "Staging cluster", "Kafka topics",
    "Consumer groups", "Broker disks", "Kafka upgrade 3.7", "Dead letters", "Kafka alerts", "Outbox pattern",
)  # fmt: skip

RANDOM = random.Random(4)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
# Notes that nobody should write, each about forty thousand tokens or more.
HOSTILE = {
    "one line": "x" * 100_000,
    "words in one line": "granite and basalt " * 10_000,
    "random letters": "".join(RANDOM.choices(LETTERS, k=100_000)),
    "random words": " ".join("".join(RANDOM.choices(LETTERS, k=9)) for _ in range(12_000)),
    "base64": base64.b64encode(RANDOM.randbytes(80_000)).decode("ascii"),
    "chinese": "地層は時間を刻む。沈殿物が重なる。" * 3_000,
    "rare signs": "".join(chr(0x4E00 + RANDOM.randrange(20_000)) for _ in range(30_000)),
    "emoji": "👩\u200d👩\u200d👧🏽 🧱🪨" * 4_000,
    "stacked marks": "Z\u0351\u036b\u0343\u036a\u0302a\u0334\u0321\u030a" * 8_000,
    "private use": "\ue000\uf8ff\U000f0000" * 20_000,
    "old scripts": "𒀀𓀀𐎠" * 15_000,
    "quotes": '"\\' * 50_000,
    "control": "a\x01b\x02" * 20_000,
    "headings": "".join(f"# Heading {number}\n\ntext\n\n" for number in range(10_000)),
    "long heading": f"# {'word ' * 8_000}\n\n" + "text " * 40_000,
    "lists": "- [ ] a\n" * 30_000,
    "table": "| a | b |\n" * 20_000,
    "finnish": "Järjestelmällistämättömyydellänsäkään epäjärjestelmällisyys " * 3_000,
    "properties": "---\n" + "".join(f"key{n}: {'value ' * 40}\n" for n in range(2_000)) + "---\nbody\n",
    "one property": f"---\nhuge: {'value ' * 60_000}\n---\nbody\n",
    "title": f"---\ntitle: {'地層' * 5_000}\n---\n{'body ' * 30_000}\n",
    "tags": "---\ntags: [" + ", ".join(f"tag{n}" for n in range(8_000)) + "]\n---\nbody\n",
}


def open_palace(root: Path, state: Path) -> Palace:
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    return Palace.open(root, settings=PalaceSettings(cache_dir=state / "c", state_dir=state / "s"))


def call(palace: Palace, tool: str, **arguments: Any) -> fit.Answered:
    asked = tools.Call(palace=lambda: palace, arguments=arguments, metrics=Metrics(tuple(CATALOGUE)))
    return tools.answer(CATALOGUE[tool], asked)


def forms(answered: fit.Answered) -> tuple[str, str]:
    return answered.text, fit.compact(answered.structured)


@pytest.fixture(scope="module")
def typical(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Palace]:
    root = tmp_path_factory.mktemp("typical")
    with open_palace(root / "vault", root) as palace:
        for number, title in enumerate(TITLES):
            body = " ".join(SENTENCES[(number + step) % 5] for step in range(4))
            palace.write(
                f"# {title}\n\n{body}\n",
                title=title,
                path="apollo/" if number % 2 else None,
                tags=["kafka", "decision"],
                density=0.2 + number % 5 / 10,
            )
        yield palace


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Palace]:
    root = tmp_path_factory.mktemp("hostile")
    with open_palace(root / "vault", root) as palace:
        for name, text in HOSTILE.items():
            (root / "vault/01_Shallow" / f"{name}.md").write_text(text, encoding="utf-8")
        for number in range(120):
            name = f"{'地層' * 12} {number}"
            folder = root / "vault/02_Sediment" / ("深い部屋" * 6)
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.md").write_text(f"kafka 地層 {'𒀀' * 400} #{'tag' * 30}\n", encoding="utf-8")
        yield palace


def test_mc_05_a_typical_search_of_ten_costs_at_most_800_tokens_in_each_form(typical: Palace) -> None:
    answered = call(typical, "search_room", query="kafka retention of orders")

    assert len(answered.structured["matches"]) == 10
    assert max(counted(forms(answered))) <= 800


def test_mc_05_a_typical_search_of_ten_is_cheap_by_our_own_estimate(typical: Palace) -> None:
    answered = call(typical, "search_room", query="kafka retention of orders")

    assert max(map(budget.tokens, forms(answered))) <= 950  # which errs on the safe side


def test_mc_05_a_typical_write_and_read_are_cheap(typical: Palace) -> None:
    written = call(typical, "write_memory", content=SENTENCES[0], title="Kafka, seven days")
    read = call(typical, "read_memory", title="Kafka offsets")

    assert max(map(budget.tokens, forms(written))) <= 900
    assert max(map(budget.tokens, forms(read))) <= 600


BUDGETS = (200, 600, 6_000, 20_000)


@pytest.mark.parametrize("name", HOSTILE)
def test_mc_05_a_read_of_anything_obeys_its_budget(hostile: Palace, name: str) -> None:
    spent = {
        most: max(
            map(budget.tokens, forms(call(hostile, "read_memory", title=name, max_tokens=most, touch=False)))
        )
        for most in BUDGETS
    }

    assert {most: cost for most, cost in spent.items() if cost > most} == {}


CALLS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("read_memory", {"path": f"01_Shallow/{name}.md", "touch": False} | more)
        for name in HOSTILE
        for more in ({}, {"max_tokens": MOST_TOKENS}, {"max_tokens": 200})
    ),
    ("read_memory", {"query": "kafka", "max_tokens": MOST_TOKENS}),
    ("search_room", {"query": "kafka", "limit": 100, "max_tokens": MOST_TOKENS}),
    ("search_room", {"query": "kafka", "limit": 100}),
    ("search_room", {"query": "x* granite value* tag* word", "limit": 100, "max_tokens": MOST_TOKENS}),
    ("write_memory", {"content": "kafka 地層", "title": "W", "path": "w/"}),
    ("rate_memory", {"path": "01_Shallow/properties.md", "density": 0.5}),
    ("metabolize", {"dry_run": True}),
    ("read_map", {}),
    ("healthcheck", {}),
    ("recover_journal", {}),
    ("get_metrics", {}),
]


def test_mc_05_no_answer_ever_costs_more_than_20_000_tokens(hostile: Palace) -> None:
    said: dict[str, tuple[str, str]] = {}
    for number, (tool, arguments) in enumerate(CALLS):
        try:
            said[f"{number} {tool} {arguments}"] = forms(call(hostile, tool, **arguments))
        except VaultError as error:
            said[f"{number} {tool} {arguments}"] = (f"{error.code}: {error}", fit.compact(error.facts))

    costs = counted([text for both in said.values() for text in both])
    spent = {what: max(costs[2 * at : 2 * at + 2]) for at, what in enumerate(said)}
    assert {what: cost for what, cost in spent.items() if cost > MOST_TOKENS} == {}


@pytest.mark.parametrize("name", ["one line", "words in one line", "chinese", "emoji", "quotes", "headings"])
def test_mc_05_any_note_is_read_to_its_end_by_what_each_answer_names(typical: Palace, name: str) -> None:
    text = HOSTILE[name][:20_000]
    (typical.house.vault.root / "01_Shallow/End.md").write_text(text, encoding="utf-8")
    pieces: list[str] = []
    given: dict[str, Any] = {}
    for _ in range(60):
        answered = call(
            typical, "read_memory", path="01_Shallow/End.md", max_tokens=1_000, touch=False, **given
        ).structured
        pieces.append(answered["content"])
        if "next" not in answered:
            break
        given = {"section": answered["next"]}

    assert "next" not in answered
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_mc_05_a_huge_section_is_read_to_its_end(typical: Palace) -> None:
    body = "\n\n".join(f"Paragraph {number} of the long section." for number in range(600))
    typical.write(f"# Short\n\na\n\n# Long\n\n{body}\n\n# After\n\nz\n", title="Sections")
    pieces, section = [], "Long"
    for _ in range(60):
        answered = call(
            typical, "read_memory", title="Sections", section=section, max_tokens=500, touch=False
        )
        pieces.append(answered.structured["content"])
        if "next" not in answered.structured:
            break
        section = answered.structured["next"]
        assert section in answered.text

    assert "".join("".join(pieces).split()) == "".join(f"# Long\n\n{body}".split())


def test_mc_05_a_note_that_is_cut_says_so_once(typical: Palace) -> None:
    typical.write("# Once\n\n" + "words and more words. " * 900, title="Once")

    answered = call(typical, "read_memory", title="Once", max_tokens=600, touch=False)

    assert answered.structured["truncated"]
    assert "Ask for the rest with section" in answered.text
    assert fit.SAID not in answered.text


def test_mc_05_a_note_over_its_budget_is_answered_with_its_outline(typical: Palace) -> None:
    parts = "".join(f"## Part {number}\n\n{'words and more words. ' * 90}\n\n" for number in range(9))
    typical.write(f"# All\n\n{parts}", title="Outlined")

    answered = call(typical, "read_memory", title="Outlined", max_tokens=1_000, touch=False)

    assert [line.rpartition(" (")[0] for line in answered.structured["outline"]] == [
        "All",
        *(f"Part {number}" for number in range(9)),
    ]
    assert all(line in answered.text for line in answered.structured["outline"])
    named = answered.structured["outline"][7]
    assert (
        call(typical, "read_memory", title="Outlined", section=named)
        .structured["content"]
        .startswith("## Part 6")
    )
