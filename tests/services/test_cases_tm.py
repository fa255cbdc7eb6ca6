"""Failure cases of time (TM) on a real vault, and what a person's doing between two runs means (SPEC §4)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.services.conftest import Clock, OpenPalace
from vault_palace.core import frontmatter
from vault_palace.services.palace import Palace, PalaceSettings

Note = Callable[..., Path]

ROOT = Path(__file__).parents[2]


def properties(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def as_person(path: Path, old: str, new: str, clock: Clock) -> None:
    """Change one thing in a note with an editor now, and let an hour pass."""
    text = path.read_bytes().decode("utf-8")
    assert old in text
    path.write_bytes(text.replace(old, new).encode("utf-8"))
    os.utime(path, (clock.at.timestamp(), clock.at.timestamp()))
    clock.turn(hours=1)


def moved(answer: Any) -> list[str]:
    return [*answer["promoted"], *answer["archived"]]


# -- TM-01 --------------------------------------------------------------------------------------------------

CREATED = {
    "a": "2025-01-01T10:00:00",
    "b": "2025-01-01T10:00:00+09:00",
    "c": "2025-01-01",
    "d": "2025-01-01T10:00:00Z",
    "e": "yesterday",
}
NIGHTLY = """
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from vault_palace.services.palace import Palace, PalaceSettings

root = Path(sys.argv[1])
now = datetime(2025, 3, 1, 12, tzinfo=UTC)
settings = PalaceSettings(
    cache_dir=root / "../cache", state_dir=root / "../state", clock=lambda: now, sleep=lambda _: None
)
with Palace.open(root, settings=settings) as palace:
    problems = [(problem.path, problem.line, problem.code) for problem in palace.check()]
    ages = {match["title"]: match["age_days"] for match in palace.search("granite")["matches"]}
    answer = palace.metabolize(confirm=True)
print(json.dumps({"problems": problems, "ages": ages, "archived": answer["archived"], "zone": str(
    palace.house.policy().zone), "skipped": answer["skipped"]}))
"""


def nightly_run(root: Path, zone: str) -> dict[str, Any]:
    """What a run answers on a machine of this zone, for a vault that names none."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NIGHTLY, str(root)],
        cwd=ROOT,
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("touched", [False, True], ids=["created only", "last_touched too"])
def test_tm_01_one_foreign_time_stops_no_nightly_run_in_any_zone(
    tmp_path: Path, vault: Path, note: Note, touched: bool
) -> None:
    """What has no offset is a time of the vault's zone; what is no time is reported, and its note kept."""
    for name, value in CREATED.items():
        more = f"last_touched: {value}\n" if touched else ""
        path = note(f"01_Shallow/{name}.md", f"---\ncreated: {value}\n{more}---\ngranite\n")
        os.utime(path, (1_740_000_000, 1_740_000_000))
    answers = {}

    for zone in ("Asia/Tokyo", "America/Los_Angeles", "UTC"):
        copy = tmp_path / zone.replace("/", "-") / "vault"
        shutil.copytree(vault, copy)
        answers[zone] = nightly_run(copy, zone)

    for zone, answer in answers.items():
        assert answer["zone"] == zone
        assert answer["skipped"] == []
        lines = [2, 3] if touched else [2]
        assert answer["problems"] == [["01_Shallow/e.md", line, "bad_value"] for line in lines]
        gone = [f"_Archive/01_Shallow/{name}.md" for name in "abcd"] if touched else []
        assert answer["archived"] == gone
    for name in "abcd":
        ages = {answer["ages"][name] for answer in answers.values()}
        assert max(ages) - min(ages) <= 1
        assert min(ages) >= 58


# -- TM-02 --------------------------------------------------------------------------------------------------

MARCH = datetime(2025, 3, 1, 12, tzinfo=UTC)
FUTURE = {"tomorrow": "2025-03-02", "soon": "2025-03-11", "next": "2026-01-01", "last": "9999-12-31"}


@pytest.fixture
def future_notes(note: Note, clock: Clock) -> None:
    """Notes last used in the future, one that the file system dates 2038, one used now."""
    clock.at = MARCH
    for name, value in {**FUTURE, "now": "2025-03-01"}.items():
        path = note(f"01_Shallow/{name}.md", f"---\ncreated: 2025-01-01\nlast_touched: {value}\n---\nlava\n")
        os.utime(path, (MARCH.timestamp(), MARCH.timestamp() - 86_400))
    path = note("01_Shallow/file.md", "lava\n")
    os.utime(path, (2_147_483_000, 2_147_483_000))


@pytest.mark.usefixtures("future_notes")
def test_tm_02_the_future_is_reported_and_counts_as_now(palace: Palace, vault: Path) -> None:
    codes = {problem.path: problem.code for problem in palace.check()}

    answer = palace.metabolize(confirm=True)

    assert codes == {
        f"01_Shallow/{name}.md": "future_date" for name in ("soon", "next", "last", "file")
    }  # tomorrow is near enough for another machine's clock
    assert moved(answer) == []
    assert answer["skipped"] == []
    now = properties(vault, "01_Shallow/now.md")
    for name in ("soon", "next", "last", "file"):
        found = properties(vault, f"01_Shallow/{name}.md")
        assert {key: found[key] for key in ("streak", "decays_on", "status")} == {
            key: now[key] for key in ("streak", "decays_on", "status")
        }


@pytest.mark.usefixtures("future_notes")
def test_tm_02_a_clock_set_back_a_year_destroys_nothing(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.metabolize(confirm=True)
    before = {path.name: properties(vault, f"01_Shallow/{path.name}") for path in vault.glob("01_*/*.md")}
    clock.at = MARCH - timedelta(days=365)

    answer = palace.metabolize(confirm=True, force=True)
    palace.read(path="01_Shallow/now.md")
    palace.rate(path="01_Shallow/now.md", density=0.3)

    assert moved(answer) == []
    after = {path.name: properties(vault, f"01_Shallow/{path.name}") for path in vault.glob("01_*/*.md")}
    assert after.keys() == before.keys()
    for name, found in after.items():
        assert found["streak"] == before[name]["streak"]
        # Under the wrong clock these dates are the future, so the present one stands in for them.
        assert found["last_touched"] <= before[name]["last_touched"]


@pytest.mark.usefixtures("future_notes")
def test_tm_02_a_clock_put_right_again_archives_nothing_that_was_used(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    """What the wrong clock wrote looks a year old afterwards; one run in between must not cost the note."""
    palace.metabolize(confirm=True)
    clock.at = MARCH - timedelta(days=365)
    palace.metabolize(confirm=True)
    clock.at = MARCH + timedelta(days=1)

    answer = palace.metabolize(confirm=True)

    assert moved(answer) == []


# -- TM-04, and what a person's edit between two runs means -------------------------------------------------


@pytest.fixture
def aged(palace: Palace, vault: Path, clock: Clock) -> Path:
    """A note of Bedrock that nobody has used for a year, with the properties of the last run."""
    palace.write("basalt\n", title="Old", layer="bedrock")
    clock.turn(days=365)
    palace.metabolize(confirm=True)
    return vault / "03_Bedrock/Old.md"


def test_tm_04_a_persons_edit_of_the_body_is_a_use_on_the_files_day(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    palace.write("basalt\n", title="Old")
    clock.turn(days=7)
    edited = clock.at
    as_person(vault / "01_Shallow/Old.md", "basalt", "basalt, says the person", clock)
    clock.turn(days=5)

    answer = palace.metabolize(confirm=True)

    found = properties(vault, "01_Shallow/Old.md")
    assert moved(answer) == []
    assert found["last_touched"] == edited.strftime("%Y-%m-%dT%H:%M:%S")
    assert (found["streak"], found["decays_on"]) == (1, "2031-03-23")


def test_tm_04_an_edit_is_known_without_the_cache(
    open_palace: OpenPalace, clock: Clock, vault: Path, tmp_path: Path
) -> None:
    """SPEC §6.7: the journal has the hash of the body."""
    first = open_palace()
    first.write("basalt\n", title="Old")
    first.close()
    clock.turn(days=20)
    as_person(vault / "01_Shallow/Old.md", "basalt", "granite", clock)
    shutil.rmtree(tmp_path / "cache")

    second = open_palace()

    assert second.metabolize(confirm=True)["archived"] == []
    assert properties(vault, "01_Shallow/Old.md")["last_touched"] == "2031-03-21T12:00:00"


@pytest.mark.parametrize(
    ("old", "new"),
    [("status:", "status: "), ("\n---\n", "\nmine: 1\n---\n"), ("basalt\n", "basalt\n\n"), ("\n", "\r\n")],
    ids=["property", "own property", "last newline", "line ends"],
)
def test_tm_04_what_leaves_the_words_alone_is_no_use(
    palace: Palace, clock: Clock, vault: Path, old: str, new: str
) -> None:
    palace.write("basalt\n", title="Old")
    clock.turn(days=20)
    path = vault / "01_Shallow/Old.md"
    as_person(path, old, new, clock)

    assert palace.metabolize(confirm=True)["archived"] == ["_Archive/01_Shallow/Old.md"]


def test_tm_04_upkeep_is_no_use(palace: Palace, clock: Clock, vault: Path) -> None:
    """A year of nightly runs and of a hub that gets another name each week renews nothing."""
    palace.write("[[Hub 0]]\n", title="Idle", layer="bedrock")
    palace.write("the hub\n", title="Hub 0", layer="bedrock")
    for week in range(52):
        clock.turn(days=7)
        palace.move(f"03_Bedrock/Hub {week}.md", "bedrock", new_path=f"Hub {week + 1}")
        palace.metabolize(confirm=True)
        if week % 10 == 0:
            palace.reindex()

    found = properties(vault, "03_Bedrock/Idle.md")
    assert "[[Hub 52]]" in (vault / "03_Bedrock/Idle.md").read_text(encoding="utf-8")
    assert (found["last_touched"], found["streak"]) == ("2031-03-01T12:00:00", 0)


def test_tm_05_a_rename_keeps_the_age_of_fifty_referrers(palace: Palace, clock: Clock, vault: Path) -> None:
    palace.write("the hub\n", title="hub", layer="bedrock")
    for number in range(50):
        palace.write("see [[hub]]\n", title=f"Note {number}", layer="bedrock")
    clock.turn(days=100)
    palace.metabolize(confirm=True)
    names = [f"03_Bedrock/Note {number}.md" for number in range(50)]
    before = {path: properties(vault, path) for path in names}
    hub = properties(vault, "03_Bedrock/hub.md")

    answer = palace.move("03_Bedrock/hub.md", "bedrock", new_path="center")

    assert answer["links_rewritten"] == 50
    assert {path: properties(vault, path) for path in names} == before
    assert properties(vault, "03_Bedrock/center.md") == hub
    palace.metabolize(confirm=True)
    assert {path: properties(vault, path) for path in names} == before
    palace.write("more", mode="append", path=names[0])
    assert properties(vault, names[0])["last_touched"] == "2031-06-09T12:00:00"


@pytest.mark.parametrize("upkeep", ["rename", "supersede", "own name"])
def test_tm_04_upkeep_after_a_persons_edit_does_not_hide_it(
    palace: Palace, clock: Clock, vault: Path, upkeep: str
) -> None:
    palace.write("the hub\n", title="Hub")
    palace.write("[[Hub]]\n", title="Ref")
    clock.turn(days=6)
    as_person(vault / "01_Shallow/Ref.md", "[[Hub]]", "[[Hub]] as a person sees it", clock)
    clock.turn(days=1)

    if upkeep == "rename":
        palace.move("01_Shallow/Hub.md", "shallow", new_path="Centre")
    elif upkeep == "supersede":
        palace.write("better\n", title="Newer", supersedes="Ref")
    else:
        palace.move("01_Shallow/Ref.md", "shallow", new_path="Referrer")
    clock.turn(days=5)
    palace.metabolize(confirm=True)

    found = properties(vault, f"01_Shallow/{'Referrer' if upkeep == 'own name' else 'Ref'}.md")
    links = 1 if upkeep == "supersede" else 0  # the newer note names the older one
    assert (found["last_touched"], found["streak"]) == ("2031-03-07T12:00:00", 1 + links)


def test_a_streak_that_a_person_set_survives_a_rename_of_what_the_note_links_to(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    palace.write("the hub\n", title="Hub")
    palace.write("[[Hub]]\n", title="Ref")
    clock.turn(days=30)
    as_person(vault / "01_Shallow/Ref.md", "streak: 0", "streak: 2", clock)

    palace.move("01_Shallow/Hub.md", "shallow", new_path="Centre")
    palace.metabolize(confirm=True)

    assert properties(vault, "01_Shallow/Ref.md")["streak"] == 2


def test_a_streak_that_a_person_set_falls_again_with_the_next_lifetime(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    """Also when nothing of the note had to be written on the day it was set."""
    palace.write("basalt\n", title="Rock", layer="bedrock")
    palace.rate(path="03_Bedrock/Rock.md", decay_days=7)
    clock.turn(days=16)
    palace.metabolize(confirm=True)
    as_person(vault / "03_Bedrock/Rock.md", "streak: -2", "streak: 3", clock)

    streaks = []
    for _ in range(15):
        palace.metabolize(confirm=True)
        streaks.append(properties(vault, "03_Bedrock/Rock.md")["streak"])
        clock.turn(days=1)

    assert streaks == [3] * 6 + [2] * 7 + [1] * 2


def test_a_property_edit_days_later_does_not_date_an_edit_of_the_body_anew(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    palace.write("basalt\n", title="Sand")
    as_person(vault / "01_Shallow/Sand.md", "basalt", "granite", clock)  # the day of the writing: no new use
    palace.metabolize(confirm=True)
    clock.turn(days=5)
    as_person(vault / "01_Shallow/Sand.md", "status:", "mine: 1\nstatus:", clock)

    palace.metabolize(confirm=True)

    assert properties(vault, "01_Shallow/Sand.md")["last_touched"] == "2031-03-01T12:00:00"


def test_two_edits_that_two_runs_saw_are_two_uses(palace: Palace, clock: Clock, vault: Path) -> None:
    """Also when the first changes no due day, so that nothing else would have been written then."""
    palace.write("basalt\n", title="Gold", density=0.9)
    for words in ("granite", "gneiss"):
        clock.turn(days=2)
        as_person(vault / "01_Shallow/Gold.md", "\n---\n\n", f"\n---\n\n{words} ", clock)
        palace.metabolize(confirm=True)

    assert properties(vault, "01_Shallow/Gold.md")["streak"] == 2


def test_a_copy_with_the_same_id_is_no_edit_of_the_other(palace: Palace, clock: Clock, vault: Path) -> None:
    """Nor is either of them news every night."""
    palace.write("basalt\n", title="Rock", layer="bedrock")
    clock.turn(days=9)
    text = (vault / "03_Bedrock/Rock.md").read_text(encoding="utf-8")
    copy = vault / "03_Bedrock/Rock 1.md"
    copy.write_text(text.replace("basalt", "granite"), encoding="utf-8")
    os.utime(copy, (clock.at.timestamp(), clock.at.timestamp()))
    clock.turn(hours=1)

    palace.metabolize(confirm=True)
    palace.metabolize(confirm=True)
    entries = len(palace.house.journal.entries())
    palace.metabolize(confirm=True)

    assert properties(vault, "03_Bedrock/Rock 1.md")["last_touched"] == "2031-03-01T12:00:00"
    assert properties(vault, "03_Bedrock/Rock.md")["last_touched"] == "2031-03-01T12:00:00"
    assert len(palace.house.journal.entries()) == entries


EVENTS = ("pin", "unpin", "edit", "streak", "read", "rename")
BEGIN = datetime(2031, 3, 1, 12, tzinfo=UTC)


def lived(base: Path, events: Mapping[int, str], *, daily: bool) -> dict[str, Any]:
    """A note's properties after 40 days of events, looked at every day or only after what somebody did."""
    root, clock = base / "vault", Clock(BEGIN)
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
        (root / folder).mkdir(parents=True)
    (root / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    settings = PalaceSettings(
        cache_dir=base / "cache", state_dir=base / "state", clock=clock, sleep=clock.sleep
    )
    note = root / "03_Bedrock/N.md"
    with Palace.open(root, settings=settings) as palace:
        palace.write("the hub", title="Hub", layer="bedrock")
        palace.write("about [[Hub]]", title="N", layer="bedrock")
        palace.rate(path="03_Bedrock/N.md", decay_days=3)
        hub = "Hub"
        for day in range(1, 41):
            clock.at = BEGIN + timedelta(days=day)
            event = events.get(day)
            text = note.read_text(encoding="utf-8")
            if event == "read":
                palace.read(path="03_Bedrock/N.md")
            elif event == "rename":
                palace.move(f"03_Bedrock/{hub}.md", "bedrock", new_path=f"Hub {day}")
                hub = f"Hub {day}"
            elif event == "edit":
                as_person(note, "about", f"about {day},", clock)
            elif event == "streak":
                as_person(note, "streak: ", f"streak: {day % 4 + 11} # ", clock)  # no rule comes to these
            elif event == "unpin" and "pinned: true" in text:
                as_person(note, "pinned: true\n", "", clock)
            elif event == "pin" and "pinned: true" not in text:
                as_person(note, "status:", "pinned: true\nstatus:", clock)
            if daily or day == 40 or event not in (None, "rename"):
                palace.metabolize(confirm=True)
    found = dict(frontmatter.read(note.read_text(encoding="utf-8")).values)
    return {key: found.get(key) or 0 for key in ("streak", "missed", "last_touched", "status", "pinned")}


@settings(max_examples=12)
@given(events=st.dictionaries(st.integers(1, 39), st.sampled_from(EVENTS), min_size=1, max_size=8))
def test_the_outcome_never_depends_on_how_often_a_run_looked(events: dict[int, str]) -> None:
    """SPEC §4, with a person and an agent at work between the runs."""
    with tempfile.TemporaryDirectory() as often, tempfile.TemporaryDirectory() as seldom:
        assert lived(Path(seldom), events, daily=False) == lived(Path(often), events, daily=True)


# -- TM-07 and pins -----------------------------------------------------------------------------------------

OLD = "created: 2028-01-01\nlast_touched: 2028-01-01\nstreak: -6\ndensity: 0.9\n"


def test_tm_07_no_run_moves_what_is_protected(palace: Palace, vault: Path, note: Note, clock: Clock) -> None:
    """Neither a forced run, nor a short threshold, nor years of nightly runs, up nor down."""
    for name, spelling in (("keep", "true"), ("keep2", "yes"), ("keep3", '"true"'), ("keep4", "for ever")):
        note(f"01_Shallow/{name}.md", f"---\n{OLD}pinned: {spelling}\n---\ngranite\n")
        note(f"02_Sediment/{name}s.md", f"---\n{OLD}pinned: {spelling}\n---\ngranite\n")
    note("03_Bedrock/lesson.md", f"---\n{OLD}---\na hard lesson\n")
    before = sorted(path.relative_to(vault) for path in vault.glob("0*/*.md"))
    reported = {problem.path for problem in palace.check()}

    runs = [palace.metabolize(confirm=True, force=True, days_threshold=0)]
    for _ in range(30):
        clock.turn(days=30)
        runs.append(palace.metabolize(confirm=True, force=True, days_threshold=0))

    assert [moved(run) for run in runs] == [[]] * 31
    assert sorted(path.relative_to(vault) for path in vault.glob("0*/*.md")) == before
    assert reported == {"01_Shallow/keep4.md", "02_Sediment/keep4s.md"}


def test_tm_07_a_pin_that_a_person_takes_out_costs_nothing_of_the_pinned_days(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    palace.write("basalt\n", title="Keep")
    palace.rate(path="01_Shallow/Keep.md", pinned=True)
    clock.turn(days=5)
    palace.metabolize(confirm=True)
    clock.turn(days=102)
    as_person(vault / "01_Shallow/Keep.md", "pinned: true\n", "", clock)
    clock.turn(days=1)

    answer = palace.metabolize(confirm=True)

    assert moved(answer) == []
    found = properties(vault, "01_Shallow/Keep.md")
    assert found["streak"] == 0
    assert found["missed"] == 15  # ⌊106 / 7⌋, all of them while it was pinned


@pytest.mark.parametrize("runs", [1, 30])
def test_tm_07_the_days_after_the_pin_count_however_often_it_is_looked_at(
    palace: Palace, clock: Clock, vault: Path, runs: int
) -> None:
    palace.write("basalt\n", title="Keep")
    palace.rate(path="01_Shallow/Keep.md", pinned=True)
    clock.turn(days=100)
    as_person(vault / "01_Shallow/Keep.md", "pinned: true", "pinned: false", clock)
    answers = []

    for _ in range(runs):
        clock.turn(days=30 / runs)
        answers += moved(palace.metabolize(confirm=True))

    assert answers == ["_Archive/01_Shallow/Keep.md"]


def test_tm_07_a_pin_out_since_an_hour_is_let_go_no_earlier_than_its_due_day_says(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    palace.write("basalt\n", title="Keep")
    palace.rate(path="01_Shallow/Keep.md", pinned=True)
    clock.turn(days=100)
    as_person(vault / "01_Shallow/Keep.md", "pinned: true\n", "", clock)
    palace.metabolize(confirm=True)
    due = date.fromisoformat(properties(vault, "01_Shallow/Keep.md")["decays_on"])

    moves = {}
    while clock.at.date() < due:
        clock.turn(days=1)
        moves[clock.at.date()] = moved(palace.metabolize(confirm=True))

    assert [day for day, paths in moves.items() if paths] == [due]


def test_tm_07_a_rename_between_unpinning_and_the_run_does_not_hide_it(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    palace.write("the hub\n", title="Hub")
    palace.write("[[Hub]]\n", title="Keep")
    palace.rate(path="01_Shallow/Keep.md", pinned=True)
    clock.turn(days=100)
    as_person(vault / "01_Shallow/Keep.md", "pinned: true\n", "", clock)
    palace.rate(path="01_Shallow/Hub.md", pinned=True)
    palace.move("01_Shallow/Hub.md", "shallow", new_path="Centre")

    answer = palace.metabolize(confirm=True)

    assert moved(answer) == []
    assert properties(vault, "01_Shallow/Keep.md")["streak"] == 0


def test_a_streak_given_with_the_pins_removal_is_the_persons(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    palace.write("basalt\n", title="Keep")
    palace.rate(path="01_Shallow/Keep.md", pinned=True)
    clock.turn(days=50)
    as_person(vault / "01_Shallow/Keep.md", "pinned: true", "pinned: false", clock)
    as_person(vault / "01_Shallow/Keep.md", "streak: 0", "streak: -2", clock)

    answer = palace.metabolize(confirm=True)

    assert answer["archived"] == ["_Archive/01_Shallow/Keep.md"]
    assert properties(vault, "_Archive/01_Shallow/Keep.md")["streak"] == -2


@pytest.mark.parametrize("looked_daily", [True, False])
def test_the_days_before_a_person_pins_count_as_they_were(
    palace: Palace, clock: Clock, vault: Path, looked_daily: bool
) -> None:
    palace.write("basalt\n", title="Keep", layer="bedrock")
    palace.rate(path="03_Bedrock/Keep.md", decay_days=7)
    for _ in range(16):
        clock.turn(days=1)
        if looked_daily:
            palace.metabolize(confirm=True)
    as_person(vault / "03_Bedrock/Keep.md", "status:", "pinned: true\nstatus:", clock)
    clock.turn(days=50)

    palace.metabolize(confirm=True)

    found = properties(vault, "03_Bedrock/Keep.md")
    assert (found["streak"], found["missed"]) == (-2, 9)


def test_an_edit_long_after_the_pin_does_not_make_the_pinned_days_count(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    """Nobody looked in between, so the file's time says nothing of when the pin was set."""
    palace.write("basalt\n", title="Keep", layer="bedrock")
    palace.rate(path="03_Bedrock/Keep.md", decay_days=7)
    clock.turn(days=3)
    as_person(vault / "03_Bedrock/Keep.md", "status:", "pinned: true\nstatus:", clock)
    clock.turn(days=60)
    as_person(vault / "03_Bedrock/Keep.md", "basalt", "granite", clock)

    palace.metabolize(confirm=True)

    assert properties(vault, "03_Bedrock/Keep.md")["streak"] == 1


def test_a_journal_from_before_pins_were_recorded_is_read(
    open_palace: OpenPalace, clock: Clock, vault: Path
) -> None:
    """Nothing is known of a pin then, and nothing is made of it."""
    first = open_palace()
    first.write("basalt\n", title="Keep")
    first.rate(path="01_Shallow/Keep.md", pinned=True)
    first.close()
    (journal,) = (vault / "_System/journal").glob("*.jsonl")
    text = journal.read_text(encoding="utf-8")
    assert '"pinned":true' in text
    journal.write_text(re.sub(r',"pinned":(true|false)', "", text), encoding="utf-8")
    clock.turn(days=2)
    as_person(vault / "01_Shallow/Keep.md", "basalt", "granite", clock)

    second = open_palace()

    assert second.check() == []
    second.metabolize(confirm=True)
    found = properties(vault, "01_Shallow/Keep.md")
    assert (found["pinned"], found["last_touched"]) == (True, "2031-03-03T12:00:00")


def test_rating_a_dragged_note_lets_it_arrive_first(palace: Palace, clock: Clock, vault: Path) -> None:
    palace.write("basalt\n", title="Sand")
    clock.turn(days=30)
    (vault / "01_Shallow/Sand.md").rename(vault / "02_Sediment/Sand.md")

    answer = palace.rate(path="02_Sediment/Sand.md", density=0.4)

    found = properties(vault, "02_Sediment/Sand.md")
    assert (found["layer"], found["layer_since"], found["decay_days"], found["streak"]) == (
        "sediment",
        "2031-03-31T12:00:00",
        60,
        0,
    )
    assert answer["after"]["decay_days"] == 60
    assert answer["decays_on"] == found["decays_on"] == "2031-05-31"


# -- TM-08 --------------------------------------------------------------------------------------------------


def test_tm_08_deleting_the_cache_changes_no_order_and_no_plan(
    open_palace: OpenPalace, vault: Path, tmp_path: Path, clock: Clock, note: Note
) -> None:
    for number in range(20):
        at = clock.at - timedelta(days=36 * number)
        day = at.date().isoformat()
        header = f"---\ncreated: {day}\nlast_touched: {day}\n---\n" if number % 2 else ""
        path = note(f"01_Shallow/n{number:02}.md", f"{header}granite [[n{(number * 7) % 20:02}]]\n")
        os.utime(path, (at.timestamp(), at.timestamp()))

    def view(palace: Palace) -> list[object]:
        status = palace.status()
        return [
            palace.search("granite", limit=50)["matches"],
            palace.metabolize(dry_run=True),
            status["decaying_soon"],
            status["rising_soon"],
            palace.check(),
        ]

    first = open_palace()
    before = view(first)
    first.close()
    shutil.rmtree(tmp_path / "cache")

    after = view(open_palace())

    assert after == before
    assert len({match["age_days"] for match in before[0]}) == 20  # type: ignore[attr-defined]
