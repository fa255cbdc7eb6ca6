"""The lines that differ: the right ones, and without comparing all with all."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.surfaces.hosts import lines

texts = st.lists(st.sampled_from(["a", "b", "c", "{", "}"]), max_size=12)


@given(texts, texts)
def test_what_differs_makes_the_second_of_the_first(before: list[str], after: list[str]) -> None:
    made = list(before)

    for gone, come in reversed(list(lines.differing(before, after))):
        made[gone.start : gone.stop] = after[come.start : come.stop]

    assert made == after


@given(texts)
def test_nothing_differs_from_itself(text: list[str]) -> None:
    assert list(lines.differing(text, text)) == []


def test_of_a_large_file_only_the_change_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    matcher = difflib.SequenceMatcher

    def counting(**given: Any) -> Any:
        compared.append(len(given["a"]) + len(given["b"]))
        return matcher(**given)

    monkeypatch.setattr(difflib, "SequenceMatcher", counting)
    before = ["{", "}"] * 50_000
    after = [*before[:70_001], "new", *before[70_001:]]

    found = list(lines.differing(before, after))

    assert found == [(range(70_001, 70_001), range(70_001, 70_002))]
    assert compared == [1]
