"""Titles made into file names, and callers' paths made safe: one rule for every system that syncs a vault.

A name must hold on Windows, macOS, Linux and Android, be linkable as `[[name]]` in Obsidian, and stay one
note's own when case or Unicode form differs. Nothing here looks at a disk.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from vault_palace.core.errors import InvalidArguments, PathViolation
from vault_palace.core.places import is_conflict_copy, is_ignored_folder

MOST_CHARACTERS = 100
MOST_BYTES = 180  # file systems take 255; temporary and conflict copies need room for their suffixes
MOST_PATH = 200  # of a new note's whole path: Windows takes 260 with the vault's own, the archive adds 9
EXTENSION = ".md"
UNTITLED = "Untitled"

_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$) *(?:\.|\Z)", re.IGNORECASE
)
# What a file name cannot hold somewhere, and what reads best in its place.
_REPLACED = (
    (re.compile(r": "), " - "),
    (re.compile(r"[/\\|:^]"), "-"),
    (re.compile(r'["`]'), "'"),
    (re.compile(r"\["), "("),
    (re.compile(r"\]"), ")"),
    (re.compile(r"%%+"), "%"),
    (re.compile(r"[*?<>#]"), " "),
)
_UNLINKABLE = re.compile(r"[#^\[\]|\x00-\x1f\x7f-\x9f\u2028\u2029]|%%")
_FORBIDDEN = re.compile(r'[\\/:*"<>?|]')
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")  # letters by their class, blanks to the eye
_ZWJ, _ZWNJ = "\u200d", "\u200c"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
# %2e, %2f, %5c and %00, also when the percent sign itself is encoded.
_ENCODED = re.compile(r"%(?:25)*(?:2e|2f|5c|00)", re.IGNORECASE)


# ── Titles ───────────────────────────────────────────────────────────────────────────────────────────────


def file_name(title: str) -> str:
    """The stem of the file for a note of this title; the same again for what it returns.

    Never empty, at most 100 characters and 180 bytes of UTF-8, cut between whole characters as a reader
    sees them. Raises InvalidArguments for a title with a null byte or half a surrogate pair: no file name
    that is merely similar is made of those.
    """
    if "\0" in title or _has_surrogate(title):
        raise InvalidArguments(
            "The title holds a null byte or half of a surrogate pair.", hint="Give it as plain text."
        )
    name = _clean(title)
    # Cutting, composing and taking parts off may each expose something for another; it settles at once.
    while (again := _clean(name)) != name:
        name = again
    return name


def _clean(title: str) -> str:
    name = "".join(_visible(unicodedata.normalize("NFC", title)))
    for pattern, instead in _REPLACED:
        name = pattern.sub(instead, name)
    name = _tidy(unicodedata.normalize("NFC", name))
    if _RESERVED.match(name):
        head, dot, rest = name.partition(".")
        name = f"{head.rstrip()}_{dot}{rest}"
    if is_conflict_copy(name + EXTENSION):
        name += " note"
    return _tidy(_fit(name, MOST_CHARACTERS, MOST_BYTES)) or UNTITLED


def _tidy(name: str) -> str:
    """Single blanks; nothing at the ends that a system drops, hides or takes for an option; no `.md`."""
    name = " ".join(name.split())
    while True:
        shorter = name.lstrip(" .-~").rstrip(" .-")
        if shorter.lower().endswith(EXTENSION):
            shorter = shorter[: -len(EXTENSION)]
        if shorter == name:
            return name
        name = shorter


def _visible(text: str) -> Iterator[str]:
    """The characters of *text* that a reader sees; separators as blanks, invisible ones left out.

    Joiners stay between characters beyond ASCII, where emoji and Persian need them, and so do the tags
    that make the flag of a region.
    """
    kept = ""
    for at, char in enumerate(text):
        if char < "\x7f" and char >= " ":
            kept = char
        elif _invisible(char):
            following = text[at + 1 : at + 2]
            joins = (
                char in (_ZWJ, _ZWNJ) and kept > "\x7f" and kept not in (_ZWJ, _ZWNJ) and _joinable(following)
            )
            if not joins and not (_is_flag_tag(char) and (kept == "\U0001f3f4" or _is_flag_tag(kept))):
                continue
            kept = char
        else:
            blank = (
                char.isspace() or char in _BLANK_LETTERS or unicodedata.category(char) in ("Cc", "Zl", "Zp")
            )
            kept = " " if blank else char
        yield kept


def _joinable(char: str) -> bool:
    return char > "\x7f" and not char.isspace() and char not in _BLANK_LETTERS and not _invisible(char)


def _invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf"


def _is_flag_tag(char: str) -> bool:
    return "\U000e0020" <= char <= "\U000e007f"


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


# ── Cutting ──────────────────────────────────────────────────────────────────────────────────────────────


def _fit(name: str, characters: int, size: int) -> str:
    """The longest beginning of whole visible characters within both limits, at a word's end if near."""
    if len(name) <= characters and len(name.encode()) <= size:
        return name
    kept: list[str] = []
    for cluster in _clusters(name):
        characters -= len(cluster)
        size -= len(cluster.encode())
        if characters < 0 or size < 0:
            break
        kept.append(cluster)
    short = "".join(kept)
    word_end = short.rfind(" ")
    return short[:word_end] if word_end > len(short) * 3 // 4 else short


def _clusters(text: str) -> Iterator[str]:
    """What a reader takes for one character: base and marks, joined emoji, flags, Hangul syllables."""
    start = 0
    for at in range(1, len(text)):
        if at - start < 32 and _continues(text, start, at):  # a tower of marks is no character
            continue
        yield text[start:at]
        start = at
    if text:
        yield text[start:]


def _continues(text: str, start: int, at: int) -> bool:
    char, before = text[at], text[at - 1]
    if unicodedata.category(char)[0] == "M" or char in (_ZWJ, _ZWNJ) or before == _ZWJ:
        return True
    if "\U0001f3fb" <= char <= "\U0001f3ff" or _is_flag_tag(char):
        return True
    if _is_regional(char) and _is_regional(before):
        return (at - start) % 2 == 1
    return "\u1160" <= char <= "\u11ff" and "\u1100" <= before <= "\u11ff"


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


# ── Uniqueness ───────────────────────────────────────────────────────────────────────────────────────────


def key(name: str) -> str:
    """What two names share when any system or Obsidian takes them for the same: case and Unicode form.

    Obsidian reads no-break spaces in file names as spaces, so these are the same here too.
    """
    if name.isascii():
        return name.lower()
    folded = unicodedata.normalize("NFC", name).replace("\xa0", " ").replace("\u202f", " ").lower()
    return unicodedata.normalize("NFC", folded)


def unique(stem: str, taken: Callable[[str], bool]) -> str:
    """*stem*, or the first of `stem 2`, `stem 3`… that is not taken, shortened to hold the number."""
    name, number = stem, 2
    while taken(name):
        suffix = f" {number}"
        room = len(suffix)
        name = _fit(stem, MOST_CHARACTERS - room, MOST_BYTES - room).rstrip(" .-") + suffix
        number += 1
    return name


# ── Paths ────────────────────────────────────────────────────────────────────────────────────────────────


def linkable(stem: str) -> bool:
    """Whether `[[stem]]` can mean this name; people's own files may hold what links cannot."""
    return not _UNLINKABLE.search(stem) and stem == stem.strip() and bool(stem)


def note_path(text: str, *, existing: bool = False) -> str:
    """A vault-relative note path as a caller gave it: `./` and doubled slashes dropped, `.md` added once.

    Raises PathViolation for whatever could leave the vault or reach a hidden place. A new note must also
    have a name that every system and Obsidian's links can hold; an *existing* one is named as it is.
    """
    parts = _segments(text, existing=existing)
    name = parts[-1]
    if not name.lower().endswith(EXTENSION):
        parts[-1] = name + EXTENSION
    elif not existing:
        parts[-1] = name[: -len(EXTENSION)] + EXTENSION
    if not existing:
        _check_name(parts[-1][: -len(EXTENSION)], text, "note")
    return "/".join(parts)


def within_reach(path: str) -> None:
    """Refuse a vault-relative path so long that some system could not hold the file."""
    if len(path) > MOST_PATH:
        raise _refused(
            _shown(path),
            f"it has {len(path)} characters; a path of more than {MOST_PATH} does not fit on every system",
            hint="Use a shorter name or a room less deep.",
        )


def folder_path(text: str, *, existing: bool = False) -> str:
    """A vault-relative folder path under the same rules; a slash at its end is dropped."""
    parts = _segments(text.removesuffix("/") if text.strip("/") else text, existing=existing)
    if not existing:
        _check_name(parts[-1], text, "folder")
    return "/".join(parts)


def _segments(text: str, *, existing: bool) -> list[str]:
    if _has_surrogate(text):
        raise _refused("<unreadable>", "it holds half of a surrogate pair")
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise _refused(_shown(text), "it holds a null byte or another control character")
    for test, reason in (
        (not text.strip(), "it is empty"),
        (text.startswith(("/", "\\")), "it is absolute; paths are relative to the vault"),
        (text.startswith("~"), "it begins with ~; paths are relative to the vault"),
        (_SCHEME.match(text) is not None, "it names a drive or a scheme; paths are relative to the vault"),
        ("\\" in text, "it holds a backslash; folders are divided by /"),
        (_ENCODED.search(text) is not None, "it holds encoded dots, slashes or null bytes"),
        (text.endswith("/"), "it names a folder"),
    ):
        if test:
            raise _refused(_shown(text), reason)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not parts:
        raise _refused(_shown(text), "it names no file")
    for part in parts:
        if part == ".." or (set(part) <= {".", " "}):
            raise _refused(_shown(text), "it climbs out of its folder")
        if is_ignored_folder(part):
            raise _refused(_shown(text), f"{part} is hidden from Obsidian")
    if not existing:
        parts = [unicodedata.normalize("NFC", part) for part in parts]
        for part in parts[:-1]:
            _check_name(part, text, "folder")
    return parts


def _check_name(name: str, whole: str, what: str) -> None:
    reason = _fault(name)
    if reason is not None:
        safe = file_name(name)
        raise _refused(
            _shown(whole),
            f"the {what} name {reason}",
            hint=f"A name that works everywhere: {safe}",
            safe_name=safe,
        )


def _fault(name: str) -> str | None:
    """Why a name cannot be given to a new file or folder, or None."""
    for test, reason in (
        (not name, "is empty"),
        (_FORBIDDEN.search(name), 'holds one of \\ / : * " < > ? |, which Windows or Android refuse'),
        (_UNLINKABLE.search(name), "holds one of # ^ [ ] | or %%, which Obsidian's links cannot name"),
        (name != name.strip() or name.endswith("."), "begins or ends with a blank, or ends with a dot"),
        (name.startswith((".", "~")), "begins with a dot or ~"),
        (_RESERVED.match(name), "is reserved by Windows"),
        ("".join(_visible(name)) != name, "holds invisible or unusual blank characters"),
        (len(name) > MOST_CHARACTERS or len(name.encode()) > MOST_BYTES, "is too long"),
        (is_conflict_copy(name + EXTENSION), "is one that sync tools give to conflict copies"),
    ):
        if test:
            return reason
    return None


def _shown(text: str) -> str:
    """A path fit to stand in a message: printable and short."""
    shown = "".join(char if char.isprintable() else "�" for char in text[:121])
    return shown if len(shown) <= 120 else shown[:119] + "…"


def _refused(path: str, reason: str, *, hint: str = "", **facts: object) -> PathViolation:
    return PathViolation(f"The path {path!r} is refused: {reason}.", hint=hint, path=path, **facts)
