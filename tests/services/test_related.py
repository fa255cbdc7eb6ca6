"""What a write answers beside its note: what says the same already, and what is worth a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vault_palace.core import links
from vault_palace.services.answers import Related
from vault_palace.services.palace import Palace

Note = Callable[..., Path]
L1, L2 = "01_Shallow", "02_Sediment"
RETENTION = "The orders topic in Kafka keeps its messages for seven days, then they are deleted."
REWORDED = "Messages of the Kafka topic orders are deleted after seven days, its retention."
PARTITIONS = "The orders topic of Kafka has 12 partitions; order holds within one only."


def kinds(related: list[Related]) -> dict[str, str]:
    return {item["path"]: item["kind"] for item in related}


def test_the_same_in_other_words_is_a_near_duplicate(palace: Palace) -> None:
    palace.write(RETENTION, title="Retention")

    related = palace.write(REWORDED, title="How long orders stay")["related"]

    assert kinds(related) == {f"{L1}/Retention.md": "near-duplicate"}
    assert "words are the same" in related[0]["why"]


def test_a_short_note_that_links_another_does_not_repeat_it(palace: Palace) -> None:
    palace.write("Order holds in one part.", title="Kafka topics")

    related = palace.write("See [[Kafka topics]].", title="Apollo")["related"]

    assert related == []


def test_a_note_that_repeats_what_it_links_is_a_near_duplicate(palace: Palace) -> None:
    palace.write(RETENTION, title="Retention")

    related = palace.write(f"{REWORDED} See [[Retention]].", title="How long orders stay")["related"]

    assert kinds(related) == {f"{L1}/Retention.md": "near-duplicate"}


def test_the_same_title_is_a_near_duplicate_whatever_the_text(palace: Palace) -> None:
    palace.write("One thing.", title="Café plan")

    related = palace.write("Something else altogether.", title="café plan", layer="sediment")["related"]

    assert [(item["path"], item["kind"], item["why"]) for item in related] == [
        (f"{L1}/Café plan.md", "near-duplicate", "the same title")
    ]


def test_what_is_about_the_same_is_worth_a_link(palace: Palace) -> None:
    palace.write(RETENTION, title="Retention")

    related = palace.write(PARTITIONS, title="Partitions")["related"]

    assert kinds(related) == {f"{L1}/Retention.md": "link"}


def test_a_note_that_the_text_names_is_worth_a_link(palace: Palace) -> None:
    palace.write("Owned by the platform group.", title="Zookeeper")

    related = palace.write("We replaced Zookeeper with raft last autumn.", title="Raft")["related"]

    assert kinds(related) == {f"{L1}/Zookeeper.md": "link"}


def test_what_has_nothing_in_common_is_not_told(palace: Palace) -> None:
    palace.write("Knead the dough for ten minutes and bake it at 230 degrees.", title="Bread")

    assert palace.write(RETENTION, title="Retention")["related"] == []


def test_a_note_that_is_linked_already_is_no_candidate(palace: Palace) -> None:
    palace.write(RETENTION, title="Retention")

    assert palace.write(f"{PARTITIONS} See [[Retention]].", title="Partitions")["related"] == []


@pytest.mark.parametrize("gone", ["superseded", "archived"])
def test_what_does_not_hold_any_more_is_no_candidate(palace: Palace, gone: str) -> None:
    palace.write(RETENTION, title="Retention")
    if gone == "superseded":
        palace.write("It is ten days now.", title="Ten", supersedes="Retention")
    else:
        palace.purge(f"{L1}/Retention.md", confirm=True)

    related = palace.write(REWORDED, title="How long orders stay")["related"]

    assert not any("Retention" in path for path in kinds(related))


def test_what_this_write_supersedes_is_no_candidate(palace: Palace) -> None:
    palace.write(RETENTION, title="Retention")

    assert palace.write(REWORDED, title="Stay", supersedes="Retention")["related"] == []


def test_at_most_five_near_duplicates_come_before_at_most_five_links(palace: Palace) -> None:
    for number in range(6):
        palace.write(f"{RETENTION} Note {number}.", title=f"Retention {'abcdef'[number]}")
        palace.write(f"Messages stay on the disk of one broker {number}", title=f"Broker {number}")

    related = [item["kind"] for item in palace.write(REWORDED, title="Stay")["related"]]

    assert related == sorted(related, reverse=True)
    assert (related.count("near-duplicate"), related.count("link")) == (5, 5)


@pytest.mark.parametrize("path", [f"{L1}/Retention.md", f"{L2}/a/Retention.md", f"{L1}/C# [draft] #9.md"])
def test_a_link_is_ready_to_paste_and_leads_to_its_note(palace: Palace, note: Note, path: str) -> None:
    note(f"{L2}/b/Retention.md", "another subject of the same name")
    note(path, RETENTION)
    note(f"{L1}/other.md", "kafka orders seven days messages topic")

    saved = palace.write(REWORDED, title="Stay")

    links_of = {item["path"]: item["link"] for item in saved["related"]}
    (link,) = links.find(links_of[path])
    assert palace.house.shelf.resolver().resolve(link.path, saved["saved_path"]) == path


def test_an_append_tells_what_the_whole_note_says_by_now(palace: Palace) -> None:
    palace.write(RETENTION, title="Retention")
    palace.write("Bread and butter.", title="Stay")

    related = palace.write(REWORDED, title="Stay", mode="append")["related"]

    assert kinds(related) == {f"{L1}/Retention.md": "near-duplicate"}


def test_no_note_is_related_to_itself(palace: Palace) -> None:
    saved = palace.write(RETENTION, title="Retention")

    again = palace.write(REWORDED, title="Retention", mode="append")

    assert (saved["related"], again["related"]) == ([], [])
