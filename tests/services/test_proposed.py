"""What agents write where Policy says `agent_writes: proposed` waits for a person, and no way leads round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.core.errors import PolicyViolation
from vault_palace.services.caller import Caller, calling
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace

IDEA = "01_Shallow/Idea.md"


@pytest.fixture
def palace(open_palace: OpenPalace, vault: Path) -> Palace:
    (vault / "_System/Policy.md").write_text(
        "---\ntimezone: UTC\nagent_writes: proposed\n---\n", encoding="utf-8"
    )
    return open_palace()


@pytest.fixture
def agent(palace: Palace) -> Iterator[Palace]:
    """The palace as an agent's server calls it."""
    with calling(Caller(agent="helper", session="helper-1")):
        yield palace


def status(vault: Path, path: str = IDEA) -> str:
    lines = (vault / path).read_text("utf-8").splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("status: "))


def found(palace: Palace, **asked: object) -> list[str]:
    return [match["path"] for match in palace.search("tides", **asked)["matches"]]  # type: ignore[arg-type]


def test_a_memory_that_an_agent_makes_waits(agent: Palace, vault: Path) -> None:
    answer = agent.write("Of tides.", title="Idea")

    assert status(vault) == "proposed"
    assert any("approve" in warning for warning in answer["warnings"])


def test_a_memory_that_a_person_makes_does_not_wait(palace: Palace, vault: Path) -> None:
    palace.write("Of tides.", title="Idea")

    assert status(vault) == "active"


def test_where_agents_write_directly_nothing_waits(open_palace: OpenPalace, vault: Path) -> None:
    palace = open_palace()
    with calling(Caller(agent="helper", session="helper-1")):
        palace.write("Of tides.", title="Idea")

    assert status(vault) == "active"


def test_search_leaves_it_out_and_says_so(agent: Palace) -> None:
    agent.write("Of tides.", title="Idea")

    answer = agent.search("tides")

    assert answer["matches"] == []
    assert "1 proposed memory matches" in answer["note"]


def test_search_shows_it_when_asked(agent: Palace) -> None:
    agent.write("Of tides.", title="Idea")

    (match,) = agent.search("tides", proposed=True)["matches"]

    assert match["path"] == IDEA
    assert match["why"].endswith("; proposed")


def test_a_cursor_belongs_to_one_kind_of_search(agent: Palace) -> None:
    for number in range(3):
        agent.write(f"Of tides, {number}.", title=f"Idea {number}")
    cursor = agent.search("tides", proposed=True, limit=1)["cursor"]

    with pytest.raises(Exception, match="does not belong"):
        agent.search("tides", limit=1, cursor=cursor)


def test_the_briefing_counts_it_and_shows_nothing_of_it(agent: Palace, palace: Palace) -> None:
    agent.write("Of tides.", title="Idea", density=0.95)

    brief = agent.wake_up(max_tokens=2000)["brief"]

    assert "1 memory waits for a person's yes" in brief
    assert "Of tides" not in brief


def test_status_counts_it(agent: Palace) -> None:
    agent.write("Of tides.", title="Idea")

    assert agent.status()["proposed"] == 1


def test_it_can_be_read_by_path_and_says_what_it_is(agent: Palace) -> None:
    agent.write("Of tides.", title="Idea")

    assert agent.read(path=IDEA)["metadata"]["status"] == "proposed"


def test_reading_it_is_no_approval(agent: Palace, vault: Path, clock: Clock) -> None:
    agent.write("Of tides.", title="Idea")
    clock.turn(days=2)
    agent.read(path=IDEA)

    assert status(vault) == "proposed"
    assert found(agent) == []


@pytest.mark.parametrize("density", [0.3, 1.0])
def test_rating_it_is_no_approval(agent: Palace, vault: Path, density: float) -> None:
    agent.write("Of tides.", title="Idea")
    agent.rate(path=IDEA, density=density, pinned=True)

    assert status(vault) == "proposed"


def test_adding_to_it_is_no_approval(agent: Palace, vault: Path) -> None:
    agent.write("Of tides.", title="Idea")
    agent.write("And of moons.", mode="append", path="Idea")

    assert status(vault) == "proposed"


def test_replacing_it_is_no_approval(agent: Palace, vault: Path) -> None:
    rev = agent.write("Of tides.", title="Idea")["rev"]
    agent.write("Of moons.", mode="replace", path="Idea", if_rev=rev)

    assert status(vault) == "proposed"


def test_it_never_rises(agent: Palace, palace: Palace, vault: Path, clock: Clock) -> None:
    agent.write("Of tides.", title="Idea", density=1.0)
    clock.turn(days=40)
    palace.metabolize(confirm=True)

    assert status(vault) == "proposed"
    assert "rises_on" not in (vault / IDEA).read_text("utf-8")


def test_it_fades_like_any_other(agent: Palace, vault: Path, clock: Clock) -> None:
    agent.write("Of tides.", title="Idea")
    clock.turn(days=9)
    agent.metabolize(confirm=True)

    text = (vault / "_Archive" / IDEA).read_text("utf-8")
    assert "archived_reason: decayed (proposed)" in text


def test_an_agent_does_not_move_it(agent: Palace, vault: Path) -> None:
    agent.write("Of tides.", title="Idea")

    with pytest.raises(PolicyViolation, match="proposed"):
        agent.move(IDEA, "bedrock")

    assert status(vault) == "proposed"


def test_the_way_over_the_archive_leads_back_to_waiting(agent: Palace, vault: Path) -> None:
    agent.write("Of tides.", title="Idea")
    agent.purge(IDEA, reason="to try", confirm=True)
    agent.restore(f"_Archive/{IDEA}", to_layer="bedrock")

    assert status(vault, "03_Bedrock/Idea.md") == "proposed"
    assert found(agent) == []


def test_a_person_who_restores_it_has_approved_it(agent: Palace, palace: Palace, vault: Path) -> None:
    agent.write("Of tides.", title="Idea")
    agent.purge(IDEA, reason="to try", confirm=True)
    with calling(Caller()):
        palace.restore(f"_Archive/{IDEA}")

    assert status(vault) == "active"


def test_what_was_approved_comes_back_approved(agent: Palace, palace: Palace, vault: Path) -> None:
    with calling(Caller()):
        palace.write("Of tides.", title="Idea")
    agent.purge(IDEA, reason="to try", confirm=True)
    agent.restore(f"_Archive/{IDEA}")

    assert status(vault) == "active"


def test_what_it_supersedes_stays_current(agent: Palace, palace: Palace, vault: Path) -> None:
    with calling(Caller()):
        palace.write("Of tides, as they were.", title="Old")
    agent.write("Of tides, as they are.", title="Idea", supersedes="Old")

    (match,) = agent.search("tides")["matches"]

    assert match["path"] == "01_Shallow/Old.md"
    assert "superseded_by" not in match
    assert "superseded_by" not in (vault / "01_Shallow/Old.md").read_text("utf-8")


def test_a_person_who_sets_the_status_approves(
    agent: Palace, palace: Palace, vault: Path, clock: Clock
) -> None:
    agent.write("Of tides.", title="Idea", density=0.9)
    clock.turn(hours=1)
    note = vault / IDEA
    note.write_text(note.read_text("utf-8").replace("status: proposed", "status: active"), encoding="utf-8")
    clock.turn(hours=1)
    keeper = Keeper(palace.house)
    for _ in range(5):
        keeper.step()
        clock.sleep(3)

    assert found(agent) == [IDEA]
    assert "rises_on: 2031-03-08" in note.read_text("utf-8")


def test_a_person_who_drags_it_approves(agent: Palace, palace: Palace, vault: Path, clock: Clock) -> None:
    agent.write("Of tides.", title="Idea")
    keeper = Keeper(palace.house)
    keeper.step()
    (vault / IDEA).rename(vault / "02_Sediment/Idea.md")
    for _ in range(8):
        keeper.step()
        clock.sleep(3)

    assert status(vault, "02_Sediment/Idea.md") == "active"


def test_near_duplicates_of_it_are_told(agent: Palace) -> None:
    text = "The observatory measures tides with a float in a well, and a pen draws them on a drum of paper."
    agent.write(text, title="Idea")
    for number in range(3):
        agent.write(f"Something else, number {number}, of the harbour.", title=f"Other {number}")

    answer = agent.write(text, title="Idea again")

    assert [one["path"] for one in answer["related"]][:1] == [IDEA]
