"""SPEC §6: a person with two editors, two agents, the ageing and the keeper at once, and nobody loses.

A few short runs by default; `VAULT_PALACE_TORTURE=20` runs that many seeds of 2,000 operations each, and
`python -m scripts.bench.coediting` prints the figures of many.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.coediting.judgement import judge
from tests.coediting.torture import ACTS, Torture

# Read before any test takes it away.
LONG_RUNS = int(os.environ.get("VAULT_PALACE_TORTURE", "0"))
RUNS = [*((seed, 300) for seed in (1, 15, 16, 17)), *((seed, 2000) for seed in range(100, 100 + LONG_RUNS))]


pytestmark = pytest.mark.skipif(
    os.environ.get("PYTHONHASHSEED") != "0",
    reason="PYTHONHASHSEED=0, as scripts/test sets it, makes a seed one course of events",
)


def folder() -> Path:
    """A place of its own, in memory if possible: a run writes thousands of files."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(tempfile.mkdtemp(dir=shared))


@pytest.fixture
def base() -> Path:
    return folder()  # the run removes it


@pytest.mark.parametrize(("seed", "operations"), RUNS)
def test_no_word_note_link_or_rating_is_lost(base: Path, seed: int, operations: int) -> None:
    run = Torture(base, seed)
    try:
        run.run(operations)
        run.settle()

        verdict = judge(run)

        assert verdict.faults == []
        assert verdict.counts["words that count"] > operations / 10
    finally:
        run.close()


class Together(RuleBasedStateMachine):
    """The same actors, in an order that hypothesis chooses and can shorten."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Torture(folder(), 1)

    @rule(act=st.sampled_from([act for act, _ in ACTS]), seed=st.integers(0, 9))
    def somebody_acts(self, act: object, seed: int) -> None:
        assert callable(act)
        self.run.rng.seed(seed)
        with self.run.clock.running():
            self.run.do(act)

    def teardown(self) -> None:
        try:
            self.run.settle()
            assert judge(self.run).faults == []
        finally:
            self.run.close()


TestTogether = Together.TestCase
TestTogether.settings = settings(
    max_examples=min(settings().max_examples // 4, 500), stateful_step_count=25, derandomize=True
)
