"""Two write the same note: one wins, the other is told what differs and can merge without another read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.services.conftest import Clock
from vault_palace.core import budget
from vault_palace.core.errors import Conflict
from vault_palace.services.palace import Palace

L1 = "01_Shallow"
OpenPalace = Callable[..., Palace]


def refused(palace: Palace, content: str, rev: str, mode: str = "replace", title: str = "Plan") -> Conflict:
    with pytest.raises(Conflict) as found:
        palace.write(content, mode=mode, title=title, if_rev=rev)
    return found.value


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_the_loser_is_shown_what_changed_since_it_read(palace: Palace, mode: str) -> None:
    rev = palace.write("one\ntwo\nthree\n", title="Plan")["rev"]
    newer = palace.write("one\n2\nthree\n", title="Plan", mode="replace", if_rev=rev)["rev"]

    error = refused(palace, "mine", rev, mode)

    assert error.facts["rev"] == newer
    assert error.facts["diff"] == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    assert newer in error.hint


def test_the_diff_and_the_rev_are_enough_to_merge(palace: Palace) -> None:
    rev = palace.write("one\ntwo\n", title="Plan")["rev"]
    palace.write("one\ntwo\nthree\n", title="Plan", mode="replace", if_rev=rev)
    error = refused(palace, "zero\none\ntwo\n", rev)

    palace.write("zero\none\ntwo\nthree\n", title="Plan", mode="replace", if_rev=str(error.facts["rev"]))

    assert palace.read(title="Plan")["content"] == "zero\none\ntwo\nthree\n"


def test_a_persons_save_that_no_journal_knows_is_compared_with_as_well(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    palace.write("one\n", title="Plan")
    path = vault / L1 / "Plan.md"
    for line in ("a person's first", "a person's second"):
        text = path.read_text(encoding="utf-8")
        path.write_text(f"{text}{line}\n", encoding="utf-8")
        clock.turn(hours=1)
        os.utime(path, (clock.at.timestamp(), clock.at.timestamp()))
        clock.turn(hours=1)
        if line.endswith("first"):
            rev = palace.read(title="Plan", touch=False)["rev"]

    error = refused(palace, "mine", rev)

    assert "+a person's second" in str(error.facts["diff"])
    assert "+a person's first" not in str(error.facts["diff"])


def test_properties_that_people_and_agents_set_are_compared_and_no_others(palace: Palace) -> None:
    rev = palace.write("one\n", title="Plan", tags=["a"])["rev"]
    palace.rate(path=f"{L1}/Plan.md", density=0.7)

    diff = str(refused(palace, "mine", rev).facts["diff"]).splitlines()

    assert [line for line in diff if line[0] in "+-"] == [
        "-density: 0.2",
        "+density: 0.7",
        "+rated_on: 2031-03-01",
    ]


def test_a_version_that_nobody_keeps_is_answered_with_the_note_as_it_is(palace: Palace) -> None:
    palace.write("one\ntwo\n", title="Plan")

    error = refused(palace, "mine", "0" * 12)

    assert "one\ntwo" in str(error.facts["now"])
    assert "diff" not in error.facts


@pytest.mark.parametrize(
    "text",
    ["word " * 40_000, "\n".join(f"line {number}" for number in range(5_000)), "x" * 100_000, "字" * 20_000],
)
def test_the_difference_is_bounded_and_says_what_it_leaves_out(
    palace: Palace, vault: Path, text: str
) -> None:
    rev = palace.write("one\n", title="Plan")["rev"]
    path = vault / L1 / "Plan.md"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")

    error = refused(palace, "mine", rev)

    shown = str(error.facts.get("diff") or error.facts["now"])
    assert budget.tokens(shown) <= 2_000
    assert "more" in shown
    assert "Read it again" in error.hint


def test_of_two_threads_that_replace_one_note_one_wins(palace: Palace, open_palace: OpenPalace) -> None:
    rev = palace.write("base\n", title="Plan")["rev"]
    agents = {"one": palace, "other": open_palace(session="test-2")}
    refusals: dict[str, Conflict] = {}
    start = threading.Barrier(2)

    def replace(name: str) -> None:
        start.wait(timeout=30)
        try:
            agents[name].write(f"base\n{name}\n", title="Plan", mode="replace", if_rev=rev)
        except Conflict as error:
            refusals[name] = error

    threads = [threading.Thread(target=replace, args=(name,)) for name in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    (loser,) = refusals
    (winner,) = set(agents) - {loser}
    assert palace.read(title="Plan", touch=False)["content"] == f"base\n{winner}\n"
    assert f"+{winner}" in str(refusals[loser].facts["diff"])
    assert refusals[loser].facts["rev"] == palace.read(title="Plan", touch=False)["rev"]


WRITER = """
import sys, time
from pathlib import Path
from vault_palace.core.errors import Conflict
from vault_palace.services.palace import Palace, PalaceSettings
root, state, name, rev = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
settings = PalaceSettings(cache_dir=state / "c", state_dir=state / "s", session=name)
with Palace.open(root, settings=settings) as palace:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        palace.write(f"base\\n{name}\\n", title="Plan", mode="replace", if_rev=rev)
        print("won", flush=True)
    except Conflict as error:
        print("lost", error.facts["rev"], repr(error.facts["diff"]), flush=True)
"""


def test_of_two_processes_that_replace_one_note_one_wins(palace: Palace, vault: Path, tmp_path: Path) -> None:
    rev = palace.write("base\n", title="Plan")["rev"]
    writers = {
        name: subprocess.Popen(
            [sys.executable, "-c", WRITER, str(vault), str(tmp_path / "other"), name, rev],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "other")
    }
    for writer in writers.values():
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"

    for writer in writers.values():
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    said = {name: writer.communicate(timeout=120)[0].strip() for name, writer in writers.items()}

    (winner,) = (name for name, words in said.items() if words == "won")
    (lost,) = (words for words in said.values() if words.startswith("lost"))
    now = palace.read(title="Plan", touch=False)
    assert now["content"] == f"base\n{winner}\n"
    assert lost.split()[1] == now["rev"]
    assert f"+{winner}" in lost
