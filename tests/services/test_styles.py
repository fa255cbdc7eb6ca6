"""The classes that show a memory's layer, density and fate: only where Policy wants them, and only ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import Person, settle
from vault_palace.core import frontmatter, styles
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace

SAND = "01_Shallow/Sand.md"
ON = "---\ntimezone: UTC\nauto_metabolize: off\nstyle_classes: true\n---\n"
OFF = ON.replace("true", "false")


@pytest.fixture
def person(vault: Path, clock: Clock) -> Person:
    return Person(vault, clock)


@pytest.fixture
def palace(open_palace: OpenPalace, person: Person) -> Palace:
    person.writes("_System/Policy.md", ON)
    return open_palace()


def classes(person: Person, path: str = SAND) -> object:
    return person.says(path).get("cssclasses")


def test_a_new_memory_has_them(palace: Palace, person: Person) -> None:
    palace.write("x", title="Sand", density=0.66)

    assert classes(person) == ["palace-shallow", "palace-density-7"]


def test_they_follow_what_is_said_and_done(palace: Palace, person: Person, clock: Clock) -> None:
    palace.write("x", title="Sand")
    palace.rate(path=SAND, density=1.0, pinned=True)
    palace.move(SAND, "bedrock")

    assert classes(person, "03_Bedrock/Sand.md") == ["palace-bedrock", "palace-density-10", "palace-pinned"]


def test_the_archive_is_one_of_them(palace: Palace, person: Person) -> None:
    palace.write("x", title="Sand")
    palace.purge(SAND, confirm=True)

    assert classes(person, f"_Archive/{SAND}") == ["palace-archive", "palace-density-2"]


def test_what_was_superseded_shows_it(palace: Palace, person: Person) -> None:
    palace.write("x", title="Sand")
    palace.write("y", title="Stone", supersedes="Sand")

    assert classes(person) == ["palace-shallow", "palace-density-2", "palace-superseded"]


def test_where_policy_does_not_want_them_there_are_none(open_palace: OpenPalace, person: Person) -> None:
    person.writes("_System/Policy.md", OFF)
    palace = open_palace()
    palace.write("x", title="Sand")
    palace.rate(path=SAND, density=1.0)

    assert classes(person) is None


def test_the_switch_is_followed_by_the_keeper_both_ways(palace: Palace, person: Person, clock: Clock) -> None:
    palace.write("x", title="Sand")
    person.edits(SAND, "cssclasses:\n", "cssclasses:\n  - mine\n")
    keeper = Keeper(palace.house)
    settle(keeper, clock)
    clock.turn(hours=1)
    person.writes("_System/Policy.md", OFF)
    settle(keeper, clock)
    assert classes(person) == ["mine"]
    clock.turn(hours=1)
    person.writes("_System/Policy.md", ON)
    settle(keeper, clock)

    assert classes(person) == ["mine", "palace-shallow", "palace-density-2"]


@pytest.mark.parametrize(
    "said",
    [
        "cssclasses: [mine, palace-density-9]",
        "cssclasses: mine",
        'cssclasses:\n  - "mine"',
        "cssclasses:\n  - mine # as ever",
        "cssclasses: &c\n  - mine",
    ],
)
def test_a_list_in_a_form_of_the_persons_is_left(palace: Palace, person: Person, said: str) -> None:
    person.writes(SAND, f"---\n{said}\n---\nx\n")
    palace.rate(path=SAND, density=0.9)

    assert said in person.reads(SAND)


@pytest.mark.parametrize("own", ["", "cssclasses:\n  - mine\n"])
def test_a_change_of_them_is_no_conflict_for_an_agent(
    palace: Palace, person: Person, clock: Clock, own: str
) -> None:
    person.writes(SAND, f"---\n{own}density: 0.4\n---\nx\n")
    before = palace.read(path=SAND, touch=False)["rev"]
    settle(Keeper(palace.house), clock)
    clock.turn(hours=1)
    settle(Keeper(palace.house), clock)

    assert "palace-shallow" in person.reads(SAND)
    assert palace.read(path=SAND, touch=False)["rev"] == before


NAMES = st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,8}", fullmatch=True), max_size=5)
OURS = st.lists(
    st.sampled_from(["palace-shallow", "palace-density-3", "palace-pinned"]), max_size=3, unique=True
)


@given(NAMES, OURS, OURS)
def test_the_persons_items_keep_their_order(theirs: list[str], before: list[str], wanted: list[str]) -> None:
    items = [*theirs, *before]
    text = (
        "---\n"
        + ("cssclasses:\n" + "".join(f"  - {one}\n" for one in items) if items else "a: 1\n")
        + "---\nx\n"
    )
    header = frontmatter.read(text)

    after = frontmatter.read(frontmatter.patch(text, styles.change(text, header, wanted))).values

    kept = [one for one in theirs if one not in styles.ours([*theirs])]
    assert list(after.get("cssclasses") or []) == [*kept, *wanted]  # type: ignore[arg-type]
