"""Texts kept within a budget of tokens, and notes taken apart by heading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.budget import cut, tokens

# What o200k_base makes of each, counted with npm's gpt-tokenizer.
COUNTED = {
    "English": (
        "The team chose event sourcing over CRUD for the audit trail; see [[Kafka topics]] for what it is.",
        22,
    ),
    "Russian": (
        "Агент забывает всё между сеансами, поэтому каждое наблюдение записывается в обычную заметку.",
        25,
    ),
    "Chinese": (
        "人工智能代理在会话之间会忘记一切。这个文件夹由普通的笔记组成，人们可以阅读、链接和更正每一条记忆。",
        37,
    ),
    "Python": (
        (
            "def settle(memory: Memory, now: datetime) -> Memory:\n    if memory.pinned:\n"
            "        return replace(memory, missed=idle // memory.decay_days)\n"
        ),
        33,
    ),
    "JSON": ('{"id": "mem_0a1b2c3d4e5f", "density": 0.25, "tags": ["apollo", "audit"]}', 37),
    "emoji": ("🎉🚀 shipped! 👨‍👩‍👧‍👦 🇩🇪 ❤️ ✅", 23),
    "a header": ("---\nid: mem_0a1b2c3d4e5f\ncreated: 2026-11-30T12:00:00\nstreak: -1\n---\n", 41),
    "German": (
        "Die Mannschaft entschied sich für Ereignisse statt Zustände, damit alles nachvollziehbar bleibt.",
        19,
    ),
    "Japanese": ("メモリは普通のノートとして保存され、人が読んで直すことができます。", 22),
    "an address": ("https://example.org/a/b?c=d&e=f#g", 12),
    "a table": ("| a | b |\n|---|---|\n| 1 | 2 |\n", 17),
    "mathematics": ("∀x ∈ ℝ: x² ≥ 0 → √x² = |x|", 20),
}


@pytest.mark.parametrize(("text", "counted"), COUNTED.values(), ids=COUNTED.keys())
def test_the_estimate_is_hardly_ever_below_the_count(text: str, counted: int) -> None:
    estimate = tokens(text)

    assert counted * 0.97 <= estimate <= counted * 1.6


@given(st.text(max_size=400))
def test_any_text_costs_something_and_not_more_than_its_bytes(text: str) -> None:
    estimate = tokens(text)

    assert bool(text.strip()) <= estimate <= 2 * len(text.encode("utf-8", "surrogatepass"))


@given(st.text(max_size=400), st.integers(0, 60))
def test_what_is_kept_fits_the_budget(text: str, most: int) -> None:
    kept, _ = cut(text, most)

    assert tokens(kept) <= most


@given(st.text(max_size=400), st.integers(0, 60))
def test_what_is_kept_is_a_beginning(text: str, most: int) -> None:
    kept, shortened = cut(text, most)

    assert text.startswith(kept)
    assert shortened == (tokens(text) > most)


@given(st.text(max_size=200))
def test_a_text_within_its_budget_is_whole(text: str) -> None:
    kept = cut(text, tokens(text))

    assert kept == (text, False)


def test_a_cut_ends_with_a_whole_line_where_that_costs_little() -> None:
    text = "".join(f"line number {number} of the note\n" for number in range(100))

    kept, _ = cut(text, 400)

    assert kept.endswith("of the note")


def test_a_cut_ends_with_a_whole_word() -> None:
    kept, _ = cut("alpha beta gamma delta epsilon " * 20, 31)

    assert kept.split()[-1] in {"alpha", "beta", "gamma", "delta", "epsilon"}


@pytest.mark.parametrize("unit", ["👩🏽‍💻", "🇩🇪", "❤️", "é"])
def test_a_cut_never_divides_a_character(unit: str) -> None:
    kept, _ = cut(unit * 40, 50)

    assert kept.replace(unit, "") == ""


def test_one_word_that_is_too_long_is_cut_off() -> None:
    kept, shortened = cut("x" * 5_000, 100)

    assert (bool(kept), shortened) == (True, True)


def test_fs_11_an_enormous_text_is_counted_by_its_beginning() -> None:
    whole = tokens("granite and basalt " * 100_000)

    assert abs(whole - 4 * tokens("granite and basalt " * 25_000)) <= whole / 100


def test_fs_11_blanks_do_not_fill_an_answer_for_nothing() -> None:
    kept, cut_off = cut("x\n" + " " * 5_000_000 + "y", 100)

    assert cut_off
    assert len(kept) <= 100 * 64
