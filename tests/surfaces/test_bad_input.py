"""What the surfaces do with input that nobody should send: they answer in form, in time, and within budget."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vault_palace.core import budget
from vault_palace.surfaces.mcp import fit, tools


def read_answer(**changed: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "path": "01_Shallow/a.md",
        "title": "a",
        "metadata": {"id": "mem_a", "layer": "shallow", "created": "2031-03-01T12:00:00", "density": 0.2},
        "content": "body\n",
        "rev": "0" * 12,
        "backlinks": [],
        "truncated": False,
        "warnings": [],
    }
    return answer | changed


def fitted(answer: dict[str, Any], most: int) -> fit.Answered:
    return fit.within(tools.catalogue()["read_memory"].shape, answer, most)


def test_thousands_of_properties_are_left_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted anew for each of them, one call took minutes."""
    counted: list[int] = []
    count = fit.cost

    def counting(text: str) -> int:
        counted.append(len(text))
        return count(text)

    monkeypatch.setattr(fit, "cost", counting)
    many = {f"k{number}": f"v{number}" for number in range(5_000)}

    answered = fitted(read_answer(metadata={"id": "mem_a", "layer": "shallow", **many}), 2_000)

    assert len(counted) < 40
    assert {"id", "layer"} <= answered.structured["metadata"].keys()  # the palace's own are the last to go
    assert len(answered.structured["metadata"]) > 50
    assert answered.structured["content"] == "body\n"


@pytest.mark.parametrize("text", ['"\\\n' * 30_000, "漢" * 60_000, "x" * 200_000, "a" + "\u0301" * 50_000])
def test_a_larger_budget_never_shows_less(text: str) -> None:
    """Quotes and line ends cost more as JSON than as text; that once left nothing of the note."""
    shown = [
        len(fitted(read_answer(content=text), most).structured["content"]) for most in (500, 2_000, 9_000)
    ]

    assert shown == sorted(shown)
    assert shown[0] > 50


@pytest.mark.parametrize("most", [200, 1_000])
def test_a_budget_holds_whatever_the_note_is_made_of(most: int) -> None:
    answer = read_answer(
        metadata={"id": "mem_a", **{f"{'k' * 50}{number}": '"' * 200 for number in range(300)}},
        content='"\\\n' * 10_000,
        backlinks=[f"01_Shallow/{'深' * 60} {number}.md" for number in range(50)],
    )

    answered = fitted(answer, most)

    assert budget.tokens(answered.text) <= most
    assert budget.tokens(json.dumps(answered.structured, ensure_ascii=False, separators=(",", ":"))) <= most
