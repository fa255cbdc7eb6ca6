"""Which notes say the same: told by shared words, apart from notes that are only about the same thing."""

from __future__ import annotations

import pytest

from vault_palace.core import likeness
from vault_palace.core import text as texts

RETENTION = (
    "Orders are kept seven days. "
    "The orders topic in Kafka keeps its messages for seven days, then deletes them."
)
FRIDAY = (
    "No deploys on Fridays. "
    "We never deploy to production on Fridays: nobody watches the dashboards at the weekend."
)
POOL = (
    "Pool size. "
    "The Postgres pool of the billing service is limited to 20 connections, else the database swaps."
)
TIMEOUT = (
    "Timeouts. "
    "Calls to the payments API time out after 30 seconds; retry twice with backoff, then alert on-call."
)
TEA = "Anna prefers tea. Anna drinks green tea and never coffee; offer her tea in meetings."
MEETING = "每周一上午十点在三号会议室开项目例会。"
TOPIC = "Хранение. Топик заказов хранит сообщения семь дней, потом они удаляются."

SAME = [
    (RETENTION, "Seven days of retention: messages of the Kafka topic orders are deleted after seven days."),
    (FRIDAY, "Friday deploys are forbidden in production, for nobody watches dashboards over the weekend."),
    (POOL, "Billing service: limit its Postgres pool to 20 connections, or the database begins to swap."),
    (
        TIMEOUT,
        "The payments API times out after 30 seconds. Retry two times with backoff, then alert on-call.",
    ),
    (TEA, "What Anna drinks. Anna does not drink coffee. In meetings offer her green tea."),
    (MEETING, "项目例会每周一上午十点开，地点在三号会议室。"),
    (TOPIC, "Сообщения в топике заказов удаляются через семь дней хранения."),
]
RELATED = [
    (RETENTION, "The orders topic has 12 partitions; order holds in one partition only."),
    (FRIDAY, "The deploy pipeline builds an image and rolls it out to production in three waves of hosts."),
    (POOL, "The billing database moves to Postgres 17 in March; the upgrade needs an hour of downtime."),
    (TIMEOUT, "Keys of the payments API are rotated every ninety days; the old key works for one more day."),
    (TEA, "Anna leads the platform team, which owns the build system and the on-call rota."),
    (MEETING, "三号会议室需要提前两天在系统里预订。"),
    (TOPIC, "Топик заказов разделён на двенадцать частей."),
    (RETENTION, TEA),
    (POOL, FRIDAY),
]


def words(text: str) -> frozenset[str]:
    found = texts.words(text)
    return likeness.telling(found, texts.stop_words(found))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_reworded_is_a_near_duplicate(one: str, other: str) -> None:
    assert likeness.likeness(words(one), words(other), {}).is_same


@pytest.mark.parametrize(("one", "other"), RELATED)
def test_what_is_only_about_the_same_is_none(one: str, other: str) -> None:
    assert not likeness.likeness(words(one), words(other), {}).is_same


def test_a_short_note_that_stands_in_a_long_one_is_a_near_duplicate() -> None:
    long = f"{FRIDAY} {POOL} {TIMEOUT} {TEA}"

    found = likeness.likeness(words(FRIDAY), words(long), {})

    assert (found.share < likeness.SAME, found.is_same) == (True, True)


def test_a_word_or_two_that_stand_in_a_long_note_are_none() -> None:
    assert not likeness.likeness(words("Anna, tea"), words(f"{FRIDAY} {POOL} {TEA}"), {}).is_same


def test_words_of_a_template_make_no_duplicates() -> None:
    template = "Attendees, agenda, decisions, open questions, action items, next meeting, minutes, summary:"
    said = [
        "kafka broker disk",
        "hiring plan interview",
        "office lease paint",
        "invoice tax audit",
        "logo font",
    ]
    notes = [
        words(f"{template} {about} number{number} {about[::-1]}") for number, about in enumerate(said * 2)
    ]
    weight = likeness.weights(notes)

    assert likeness.likeness(notes[0], notes[1], {}).is_same
    assert not likeness.likeness(notes[0], notes[1], weight).is_same
