"""Arguments as the verbs take them: text that a file can hold and no longer than it may be, lists, numbers.

A refusal names the argument, and echoes no more of it than helps: a message of a megabyte is no answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from vault_palace.core.errors import BudgetExceeded, InvalidArguments

# Characters of an argument that has no limit of its own in SPEC §9: a title or path is never longer for good
# reason, and one of a megabyte would make a header that nothing can read.
LONGEST = 1_024
LONGEST_TAG = 100
MOST_LISTED = 100  # tags or superseded notes in one call
SHOWN = 80

# What ends a tag in Obsidian: ASCII punctuation but - _ /, general punctuation, whatever cannot be seen. The
# joiners stay, which emoji and Persian words need.
_NO_TAG = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f!-,.:-@\[-^`{-~\u2000-\u200b\u200e-\u206f\u2e00-\u2e7f\ufeff\ufff0-\uffff]"
)
_LETTER = re.compile(r"[^\d/_-]")


def plain(most: int | None = LONGEST, /, **arguments: str | None) -> None:
    """Refuse text over *most* characters, and text that no file can hold: half a surrogate pair, a null
    character (MC-04, MC-14)."""
    for name, value in arguments.items():
        if value is None:
            continue
        if most is not None:
            within(name, value, most)
        if "\0" in value:
            raise InvalidArguments(f"{name} holds a null character.", hint="Send it without.", argument=name)
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidArguments(
                f"{name} is no UTF-8 text: half a surrogate pair stands at character {error.start}.",
                hint="Send whole characters.",
                argument=name,
            ) from None


def within(name: str, value: str, most: int, hint: str = "Say it shorter.") -> None:
    """Refuse a *value* of more than *most* characters."""
    if len(value) > most:
        raise BudgetExceeded(
            f"{name} has {len(value)} characters; at most {most} are taken.",
            hint=hint,
            argument=name,
            limit=most,
        )


def listed(**arguments: Sequence[str] | None) -> None:
    """Refuse one text where a list of texts is wanted: it would be taken letter by letter (FM-05); and a
    list that is out of all measure."""
    for name, value in arguments.items():
        if isinstance(value, str):
            raise InvalidArguments(
                f"{name} is a text; a list is wanted.", hint='Give it as ["one", "two"].', argument=name
            )
        if value is not None and len(value) > MOST_LISTED:
            raise BudgetExceeded(
                f"{name} has {len(value)} items; at most {MOST_LISTED} are taken.",
                hint="Name those that matter.",
                argument=name,
                limit=MOST_LISTED,
            )


def positive(name: str, value: int) -> int:
    """*value*, refused when it is no positive number."""
    if isinstance(value, bool) or value < 1:
        raise InvalidArguments(
            f"{name} {value!r} is not a positive number.", hint="Use 100 or more.", argument=name
        )
    return value


def density(value: float, name: str = "density") -> float:
    """A density as notes hold it: four places; refused outside 0…1."""
    if isinstance(value, bool) or not 0 <= value <= 1:
        raise InvalidArguments(
            f"{name} {value!r} is not between 0 and 1.", hint="0 is worthless, 1 essential.", argument=name
        )
    return round(float(value), 4)


def lifetime(value: float) -> float:
    """A number of days as notes hold it: four places; refused when nothing would be left of it."""
    if isinstance(value, bool) or not (0 < value <= 100_000 and round(value, 4) > 0):
        raise InvalidArguments(
            f"decay_days {value!r} is not a number of days.",
            hint="Use 1 to 100000.",
            argument="decay_days",
        )
    return round(value, 4)


def tags(given: Sequence[str]) -> list[str]:
    """*given* as Obsidian holds tags in properties: no `#`, no blanks, each once; refused if it cannot."""
    listed(tags=given)
    cleaned: dict[str, str] = {}
    for tag in given:
        plain(tags=tag)
        name = unicodedata.normalize("NFC", re.sub(r"\s+", "-", tag.strip().lstrip("#")))
        if not name:
            continue
        name = re.sub(r"/{2,}", "/", name).strip("/")  # an empty level of a nested tag is none
        if len(name) > LONGEST_TAG or _NO_TAG.search(name) or not _LETTER.search(name):
            raise InvalidArguments(
                f"{tag[:SHOWN]!r} cannot be a tag in Obsidian.",
                hint="Use letters, digits, `_`, `-` and `/`, with at least one letter.",
                argument="tags",
            )
        cleaned.setdefault(name.casefold(), name)
    return list(cleaned.values())
