"""Words: what the search index holds of a text, what a query asks for, and the snippet that shows a match.

One rule makes the words of notes and of queries, so what is visible in a note can be asked for:
- Text is compared in NFKC and without case; curly and straight apostrophes are one. `don't` gives `dont` and
  `don`, `O'Neill` gives `oneill` and `neill`; letters and digits that touch give the whole and the parts.
- A word of a script with a stemmer also gives its stem, one with accents also its plain form.
- Scripts without blanks (Han, kana, Hangul, Thai, Lao, Khmer, Burmese) give single signs and pairs of them.
- Emoji are words, `C++` and `C#` too. All other signs only separate words.

Words hold no ASCII sign, no blank and no lone surrogate: joined by blanks, any engine can take them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

WORD_LENGTH = 64  # longer runs are found by their beginning
_TOLD = 400  # words of a text that tell its language
QUERY_TERMS = 64  # a query is a question, not a document
_CHUNK = 65_536  # memory stays flat on enormous texts

_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97c\uac00-\ud7fb\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003fffd"
)
_BLANKLESS = "\u0e01-\u0e3e\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
_APOSTROPHES = "'\u2018\u2019\u201b\u02bc\u02b9\u2032\uff07"
# Soft hyphens, joiners and marks of direction are invisible inside a word.
_INVISIBLE = "\u00ad\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff"
_FOLDING = str.maketrans(dict.fromkeys(_APOSTROPHES, "'") | dict.fromkeys(_INVISIBLE, ""))

_ASCII_RUN = re.compile(r"(?<![a-z0-9])[a-z](?:\+\+|#)(?![a-z0-9])|[a-z0-9]+(?:'[a-z]+)*")
_PARTS = re.compile(r"\d+|\D+")


@dataclass(frozen=True, slots=True)
class Script:
    """A script with a stemmer or stop words: where it lies, and the languages that may be meant by it."""

    first: int
    last: int
    stemmer: str
    languages: tuple[str, ...]  # the first one is meant when the words do not tell
    accents: bool = False  # people leave its marks out when they type


_SCRIPTS = (
    Script(0x0041, 0x024F, "english", ("en", "de", "fr", "es", "it", "pt", "nl"), accents=True),
    Script(0x1E00, 0x1EFF, "english", ("en", "vi"), accents=True),
    Script(0x0370, 0x03FF, "greek", ("el",), accents=True),
    Script(0x1F00, 0x1FFF, "greek", ("el",), accents=True),
    Script(0x0400, 0x052F, "russian", ("ru", "uk", "bg")),
    Script(0x0530, 0x058F, "armenian", ("hy",)),
    Script(0x0590, 0x05FF, "", ("he",), accents=True),
    Script(0x0600, 0x06FF, "arabic", ("ar", "fa", "ur"), accents=True),
    Script(0x0900, 0x097F, "hindi", ("hi",)),
)


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query: as the asker wrote it, and the forms of which any is a match."""

    shown: str
    forms: tuple[str, ...]
    prefix: bool = False

    def matches(self, words: Iterable[str]) -> bool:
        """Whether any of *words*, as `words()` makes them, is what this term asks for."""
        if self.prefix:
            return any(word.startswith(self.forms[0]) for word in words)
        held = words if isinstance(words, (set, frozenset)) else set(words)
        return any(form in held for form in self.forms)


# --- words -----------------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    """All words of *text* in order, each with its other forms right behind it."""
    return list(each_word(text))


def each_word(text: str) -> Iterator[str]:
    """As `words`, one by one: an enormous text never stands in memory as a list."""
    for piece in _pieces(text):
        folded = fold(piece)
        if folded.isascii():
            for run in _ASCII_RUN.findall(folded):
                yield from _forms(run)
        else:
            for run in _general_run().findall(folded):
                yield from _forms_of_run(run)


def fold(text: str) -> str:
    """*text* as it is compared: NFKC, without case, straight apostrophes, nothing invisible."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded).translate(_FOLDING)


def _pieces(text: str) -> Iterator[str]:
    """*text* in pieces of bounded length, cut at a blank where there is one near."""
    start = 0
    while len(text) - start > _CHUNK:
        end = start + _CHUNK
        blank = max(text.rfind(" ", end - 1000, end), text.rfind("\n", end - 1000, end))
        end = blank if blank > start else end
        yield text[start:end]
        start = end
    yield text[start:] if start else text


@cache
def _marks() -> str:
    """All combining marks as the inside of a character class; `re` has no name for them."""
    found = [
        code
        for code in (
            *range(0x300, 0x20F0),
            *range(0x2CEF, 0x3100),
            *range(0xA66F, 0xFE30),
            *range(0x101FD, 0x1E94B),
        )
        if unicodedata.category(chr(code)) in ("Mn", "Mc")
    ]
    ranges: list[list[int]] = []
    for code in found:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@cache
def _general_run() -> re.Pattern[str]:
    """Runs of folded text in any script: CJK, other blankless scripts, words, emoji."""
    letter = rf"[^\W_{_CJK}{_BLANKLESS}]"
    word = rf"{letter}+(?:[{_marks()}]+{letter}*)*"
    return re.compile(
        rf"(?<!\w)[a-z](?:\+\+|\#)(?!\w)|[{_CJK}]+|[{_BLANKLESS}]+"
        rf"|{word}(?:'(?=[^\W\d_]){word})*|[{_EMOJI}]"
    )


def _forms_of_run(run: str) -> Iterable[str]:
    return _neighbours(run) if _is_blankless(run[0]) else _forms(run)


@lru_cache(maxsize=4096)
def _is_blankless(sign: str) -> bool:
    return re.match(f"[{_CJK}{_BLANKLESS}]", sign) is not None


def _neighbours(run: str) -> Iterator[str]:
    """Single signs and pairs, in order: a query of one sign asks for the former, a longer one for pairs."""
    last = ""
    for sign in run:
        if last:
            yield last + sign
        yield sign
        last = sign


@lru_cache(maxsize=50_000)
def _forms(run: str, asked: bool = False) -> tuple[str, ...]:
    """The word itself first, then what else it can be found by; of an *asked* word not its parts."""
    if run[-1] in "+#":  # `c++`, `c#`: fullwidth signs, which no folded text holds, keep the word safe
        return (run.replace("+", "\uff0b").replace("#", "\uff03"), run[0])
    pieces = run.split("'")
    whole = "".join(pieces)
    found = [whole[:WORD_LENGTH]]
    if len(pieces) > 1:
        found += [piece[:WORD_LENGTH] for piece in pieces if len(piece) > 1]
    if not asked:
        found += _parts(whole)
    for word in tuple(found):
        script = _script(word)
        if script is None or len(word) < 3 or len(word) > 40:
            continue
        found.append(_stem(word, script.stemmer))
        plain = _plain(word, script)
        if plain != word:
            found += [plain, _stem(plain, script.stemmer)]
    return tuple(dict.fromkeys(found))


def _parts(word: str) -> list[str]:
    """The letters and the digits of a word that has both, but for single ones."""
    if word.isalpha() or word.isdecimal() or len(word) > WORD_LENGTH:
        return []
    return [part for part in _PARTS.findall(word) if 1 < len(part) < len(word)]


def _script(word: str) -> Script | None:
    code = ord(word[0])
    return next((script for script in _SCRIPTS if script.first <= code <= script.last), None)


def _plain(word: str, script: Script) -> str:
    """*word* without accents, in the scripts where these may be left out; never emptied."""
    if not script.accents or word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(c for c in parts if not unicodedata.combining(c))) or word


def _stem(word: str, stemmer: str) -> str:
    if not stemmer or any(sign.isdecimal() for sign in word):
        return word
    import snowballstemmer  # slow to import, and not needed by every command

    # A stemmer keeps the word it works on in itself; a new one each time is safe in any thread, and cheap.
    stemmed: str = snowballstemmer.stemmer(stemmer).stemWord(word)
    return stemmed or word


# --- queries ---------------------------------------------------------------------------------------------

# Signs of prose say nothing about the word beside them. A word with another sign (`{j}`) is meant, and so are
# words with any sign between them (`a=b`, `a,b;c`).
_MEANT = re.compile(r"[@#%+=&/\[\]{}<>$\\^|]")
_STAR = re.compile(r"\*[.,;:!?)\]]*\Z")


def query_words(query: str) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """The terms to search for, and those that are worth asking for only if these find nothing.

    The latter are stop words, while other words remain and no sign marks them as meant, and the parts of
    words like `python3`. The list of stop words is that of the language to which most words of the query
    belong, in doubt the first of its script.
    A star right behind a word, at the end of it, asks for all words that begin so; any other star is a sign.
    """
    chunks: list[tuple[bool, list[Term]]] = []
    room = QUERY_TERMS
    for chunk in fold(query[:_CHUNK]).split():
        terms = _terms_of_chunk(chunk)[:room]
        room -= len(terms)
        chunks.append((len(terms) > 1 or _MEANT.search(chunk) is not None, terms))
        if not room:
            break
    stop = _stop_words_of([term.forms[0] for _, terms in chunks for term in terms])
    kept: dict[Term, None] = {}
    dropped: dict[Term, None] = {}
    for meant, terms in chunks:
        telling = [term for term in terms if term.prefix or term.forms[0] not in stop]
        kept |= dict.fromkeys(telling or terms if meant else telling)
        dropped |= dict.fromkeys(terms)
    if not kept:
        kept, dropped = dropped, {}
    for term in kept:
        dropped |= {Term(part, _forms(part)): None for part in _parts(term.forms[0]) if not term.prefix}
    return tuple(kept), tuple(term for term in dropped if term not in kept)[:QUERY_TERMS]


def _terms_of_chunk(chunk: str) -> list[Term]:
    """The terms of one visible word; a run of a blankless script gives one for each pair of signs."""
    terms = []
    for match in _general_run().finditer(chunk):
        run = match.group()
        if _is_blankless(run[0]):
            pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
            terms += [Term(pair, (pair,)) for pair in pairs[:QUERY_TERMS]]
        elif "'" not in run and chunk.count("*") == 1 and _STAR.match(chunk, match.end()):
            terms.append(Term(f"{run}*", (run[:WORD_LENGTH],), prefix=True))
        else:
            terms.append(Term(run, _forms(run, asked=True)))
    return terms


def stop_words(text: Sequence[str]) -> frozenset[str]:
    """The stop words of the languages that these words of a text most likely belong to."""
    return _stop_words_of(text[:_TOLD])


def _stop_words_of(query: Sequence[str]) -> frozenset[str]:
    """The stop words of the languages that *query*'s words most likely belong to, one for each script."""
    scripts = {script.languages: script for word in query if (script := _script(word))}
    found: frozenset[str] = frozenset()
    for languages, script in scripts.items():
        own = [word for word in query if _script(word) == script]
        # `max` takes the first of equals: in doubt the script's first language.
        found |= max((_stop_words(name) for name in languages), key=lambda stop: sum(w in stop for w in own))
    return found


@cache
def _stop_words(language: str) -> frozenset[str]:
    """The stop words of *language* as `_forms` writes them; numbers are never stop words."""
    import stopwordsiso  # reads a large file when imported

    folded = (fold(word).replace("'", "") for word in stopwordsiso.stopwords(language))
    return frozenset(word for word in folded if not word.isdecimal())


# --- snippets --------------------------------------------------------------------------------------------

_SCAN = 20_000  # where no form's letters stand as they are, the words up to here are looked at
_MATCHES = 400
_ELLIPSIS = "…"
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def excerpt(text: str, terms: Sequence[Term], width: int = 160) -> str:
    """One line of *text*, at most *width* characters, around the place where most of *terms* stand together.

    Words stay whole where the script has blanks, signs with combining marks always. Without a match it is
    the beginning. What cannot be shown (control characters, lone surrogates) is left out.
    """
    places = _places(text, terms)
    first, last = _densest(places, width) if places else (0, 0)
    reach = 4 * width
    before = _one_line(text[max(0, first - reach) : first])
    match = _one_line(text[first:last])
    after = _one_line(text[last : last + reach])
    if first <= reach:
        before = before.lstrip()
    whole = before + match + after
    if len(whole.strip()) <= width and first <= reach and last + reach >= len(text):
        return whole.strip()
    room = max(0, width - len(match))
    left = max(0, len(before) - max(room // 2, room - len(after)))
    right = min(len(whole), left + width)
    opened = left > 0 or first > reach
    closed = right < len(whole) or last + reach < len(text)
    start = _cut_forward(whole, left + 1, len(before)) if opened else 0
    end = _cut_back(whole, right - 1, min(len(before) + len(match), right - 1)) if closed else len(whole)
    middle = whole[start:end].strip()
    return f"{_ELLIPSIS if opened else ''}{middle}{_ELLIPSIS if closed else ''}"


def _one_line(text: str) -> str:
    shown = _BLANKS.sub(" ", text)
    return shown if shown.isascii() else "".join(c for c in shown if not "\ud800" <= c <= "\udfff")


def _cut_forward(text: str, at: int, limit: int) -> int:
    """The next beginning of a word behind *at*, or of a whole sign when *limit* comes first."""
    blank = text.find(" ", max(0, at - 1), min(limit + 1, at + 40))
    if blank >= 0:
        return blank + 1
    while at < limit and not _is_boundary(text, at):
        at += 1
    return min(at, limit)


def _cut_back(text: str, at: int, limit: int) -> int:
    """The last end of a word before *at*, or of a whole sign when *limit* comes first."""
    blank = text.rfind(" ", max(limit, at - 40), at + 1)
    if blank >= 0:
        return blank
    while at > limit and not _is_boundary(text, at):
        at -= 1
    return max(at, limit)


def _is_boundary(text: str, at: int) -> bool:
    """Whether a cut before *at* leaves no sign without its marks, joiners or skin tone."""
    if at <= 0 or at >= len(text):
        return True
    sign = text[at]
    joined = sign == "\u200d" or text[at - 1] == "\u200d" or "\U0001f3fb" <= sign <= "\U0001f3ff"
    return not (joined or unicodedata.category(sign).startswith("M"))


def _densest(places: Sequence[tuple[int, int, int]], width: int) -> tuple[int, int]:
    """From the first to the last match of the window of *width* that holds the most terms, then matches."""
    best = (0, 0, 0, 0)
    low = 0
    for high, (_, end, _) in enumerate(places):
        while places[low][0] + width * 3 // 4 < end and low < high:
            low += 1
        held = places[low : high + 1]
        score = (len({term for _, _, term in held}), len(held))
        if score > best[:2]:
            best = (*score, low, high)
    return places[best[2]][0], places[best[3]][1]


def _places(text: str, terms: Sequence[Term]) -> list[tuple[int, int, int]]:
    """Where *terms* stand in *text*: start, end and number of the term, in order; a bounded number."""
    found: list[tuple[int, int, int]] = []
    if not terms:
        return found
    for start, run in _runs_to_look_at(text, terms):
        held = _held(run)
        for number, term in enumerate(terms):
            if term.matches(held):
                inside = run.find(term.forms[0]) if len(term.forms) == 1 else -1
                at = start + max(inside, 0)
                end = at + len(term.forms[0]) if inside >= 0 and not term.prefix else start + len(run)
                found.append((at, end, number))
        if len(found) >= _MATCHES:
            break
    return sorted(found)


@cache
def _visible_run() -> re.Pattern[str]:
    """A run of raw text that `words` may be asked about by itself."""
    return re.compile(
        rf"(?:[^\W_{_CJK}{_BLANKLESS}]|[{_marks()}{_APOSTROPHES}{_INVISIBLE}+#])+|[{_CJK}]+|[{_BLANKLESS}]+|[{_EMOJI}]"
    )


@lru_cache(maxsize=8192)
def _held(run: str) -> frozenset[str]:
    return frozenset(words(run))


def _runs_to_look_at(text: str, terms: Sequence[Term]) -> Iterator[tuple[int, str]]:
    """Runs that may match: those where a form's letters stand, else (odd letter forms) the first words."""
    run = _visible_run()
    forms = {form[:8] for term in terms for form in term.forms}
    seen = -1
    for count, match in enumerate(re.finditer("|".join(map(_form_pattern, forms)), text, re.IGNORECASE)):
        if count > 10 * _MATCHES:
            break
        start = match.start()
        if start < seen:
            continue
        while (
            start > 0 and match.start() - start < WORD_LENGTH and run.fullmatch(text, start - 1, match.end())
        ):
            start -= 1
        whole = run.match(text, start)
        if whole is not None:
            seen = whole.end()
            yield start, whole.group()
    if seen < 0:
        for match in run.finditer(text, 0, _SCAN):
            yield match.start(), match.group()


def _form_pattern(form: str) -> str:
    """A short form is looked for at the beginning of words only: `a` stands in every second word."""
    short = len(form) < 4 and not _is_blankless(form[0])
    return (r"(?<![^\W_])" if short else "") + re.escape(form)
