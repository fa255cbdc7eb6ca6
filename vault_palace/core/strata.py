"""The picture on top of the index note: the layers as strata, their rooms as bands, as one SVG.

Pure and deterministic: the waves come from a hash of the names, so that a room keeps its shape. The picture
is shown as an image beside any theme, at any width: it brings its own ground and fonts that every system has,
it asks for nothing from elsewhere, and its letters grow where it is shown small.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Band:
    """One room of a layer; `room` is empty for the notes in no room, `decaying` counts what decays soon."""

    room: str
    count: int
    density: float | None = None
    decaying: int = 0


@dataclass(frozen=True, slots=True)
class Stratum:
    """One layer with all its rooms, in any order; `layer` is shallow, sediment, bedrock or archive."""

    layer: str
    count: int
    bands: tuple[Band, ...] = ()


@dataclass(frozen=True, slots=True)
class Strata:
    """What is drawn, from the top down. The day only colours the season: a new day alone changes nothing."""

    strata: tuple[Stratum, ...]
    day: date
    horizon_days: int = 7


MOST_BANDS = 12  # of a layer; the smallest rooms are merged
_MOST_STRATA = 3  # besides the archive

_WIDTH = 760
_SKY = 84
_COLUMN = 158  # the names of the layers
_MARGIN = 20
_PILL = _WIDTH - _MARGIN - 146  # where the count of what decays stands
_SHARED = 330  # pixels that the memories share out among the bands
_BAND = 29  # the least height of a band: a line of letters as large as they get
_LAYER = 80
_ARCHIVE = 50
_LONGEST_NAME = 25  # in columns; signs of East Asia take two
_MOST_SIGNS = 56


class Rgb(NamedTuple):
    """A colour; each part goes to 255."""

    red: float
    green: float
    blue: float

    @property
    def text(self) -> str:
        return "#" + "".join(f"{round(part):02x}" for part in self)

    def towards(self, other: Rgb, share: float) -> Rgb:
        return Rgb(*(a + (b - a) * share for a, b in zip(self, other, strict=True)))

    @property
    def luminance(self) -> float:
        """How bright it looks, from 0 to 1."""
        linear = [
            part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4
            for part in self
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class _Rock(NamedTuple):
    """How a layer looks: name, colours of the least and the most dense, pattern, words when it is empty."""

    name: str
    dull: Rgb
    bright: Rgb
    grain: str
    empty: str


_ROCKS = {
    "shallow": _Rock("Shallow", Rgb(92, 62, 26), Rgb(255, 214, 118), "s", "fresh observations settle here"),
    "sediment": _Rock("Sediment", Rgb(74, 34, 21), Rgb(240, 150, 92), "m", "what proves valuable sinks here"),
    "bedrock": _Rock("Bedrock", Rgb(30, 42, 60), Rgb(168, 196, 226), "b", "what keeps proving itself stays"),
    "archive": _Rock("Archive", Rgb(40, 37, 40), Rgb(40, 37, 40), "", ""),
}
_OTHER = _Rock("", Rgb(70, 70, 70), Rgb(190, 190, 190), "m", "")
_LIGHT, _DARK = Rgb(255, 255, 255), Rgb(8, 4, 2)  # between them one reads on any ground

# Far hills and the turf in winter, spring, summer and autumn.
_SEASONS = (
    ("#8fa3b8", "#dfe7ee"),
    ("#6f8a62", "#8fb862"),
    ("#7d8552", "#b3a94e"),
    ("#8a6a52", "#c07f3c"),
)

_HEAD = """\
<defs>
<linearGradient id="sky" x1="0" y1="0" x2="0" y2="1">\
<stop offset="0" stop-color="#253149"/><stop offset=".55" stop-color="#6d6480"/>\
<stop offset="1" stop-color="#e3a46c"/></linearGradient>
<linearGradient id="column" x1="0" y1="0" x2="1" y2="0">\
<stop offset="0" stop-color="#140d08" stop-opacity=".84"/><stop offset=".82" stop-color="#140d08" \
stop-opacity=".7"/><stop offset="1" stop-color="#140d08" stop-opacity="0"/></linearGradient>
<pattern id="s" width="46" height="26" patternUnits="userSpaceOnUse">\
<path d="M5 6h.1M19 15h.1M33 4h.1M41 19h.1M11 22h.1" stroke="#3a2206" stroke-opacity=".3" \
stroke-width="2" stroke-linecap="round"/>\
<path d="M26 9h.1M14 11h.1M37 12h.1" stroke="#fff3cf" stroke-opacity=".38" stroke-width="1.7" \
stroke-linecap="round"/></pattern>
<pattern id="m" width="88" height="28" patternUnits="userSpaceOnUse">\
<path d="M4 6q13 3 26 0M46 11q15-3 29 0M20 21q12 2 22 0M62 24q9-2 17 0" fill="none" stroke="#250d04" \
stroke-opacity=".26" stroke-width="1.4" stroke-linecap="round"/></pattern>
<pattern id="b" width="96" height="60" patternUnits="userSpaceOnUse">\
<path d="M0 42L18 22L44 34L62 10L96 26M18 22L12 0M44 34L52 60M62 10L68 0M96 42L78 52L52 60" fill="none" \
stroke="#eaf4ff" stroke-opacity=".15"/></pattern>
<clipPath id="plate"><rect width="760" height="{height}" rx="18"/></clipPath>
<clipPath id="ground"><path d="{ground}"/></clipPath>
<clipPath id="names"><rect x="158" width="432" height="{height}"/></clipPath>
</defs>
<style>
text{{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}}
text{{font-size:16px}}.c,.d,.r{{text-anchor:end}}.e{{font-style:italic}}.g{{font-size:14px;fill:#d9cdbd}}
.h{{font-size:23px;font-weight:650;fill:#fff6e6}}.l{{font-size:21px;font-weight:650;fill:#fff6e6}}
.k{{font-size:15px;fill:#f1dfc6}}.c{{font-weight:600;font-variant-numeric:tabular-nums}}
.d{{font-size:14px;font-weight:650;fill:#ffc2a6}}
@media (max-width:560px){{text{{font-size:21px}}.l{{font-size:25px}}.k,.g{{font-size:20px}}
.d{{font-size:19px}}.h{{font-size:30px}}}}
</style>
"""


def draw(strata: Strata) -> str:
    """The picture as the text of an SVG, below 48 KiB whatever it shows."""
    layers = [stratum for stratum in strata.strata if stratum.layer != "archive"][:_MOST_STRATA]
    archive = next((stratum for stratum in strata.strata if stratum.layer == "archive"), None)
    every = sum(map(_held, layers))
    grounds: list[str] = []
    labels: list[str] = []
    columns: list[str] = []
    top = float(_SKY)
    for number, stratum in enumerate(layers):
        seams = _seams(stratum, top, every)
        top = seams[-1].bottom
        grounds += _ground(stratum, seams, number)
        labels += _labels(stratum, seams)
        columns += _column(stratum, seams[0].top)
    height = round(top + _ARCHIVE)
    held = _counted(every) if every else "Nothing has settled yet"
    title, told = _told(layers, archive, strata.horizon_days)
    size, role = f'width="{_WIDTH}" height="{height}"', 'role="img" aria-labelledby="title told"'
    rim = 'fill="none" stroke="#8a8078" stroke-opacity=".5"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH} {height}" {role}>',
        f'<title id="title">{title}</title>',
        f'<desc id="told">{told}</desc>',
        _HEAD.format(height=height, ground=_wave("turf", _SKY - 3, 5)) + '<g clip-path="url(#plate)">',
        *_sky(strata.day),
        *grounds,
        *_below(top),
        f'<rect width="{_COLUMN + 22}" height="{height}" fill="url(#column)" clip-path="url(#ground)"/>',
        *columns,
        *_foot(archive, top, strata.horizon_days, falls=any(_falling(layer.bands) for layer in layers)),
        f'<text class="h" x="{_MARGIN}" y="42">{held}</text>',
        *labels,
        "</g>",
        f'<rect x=".5" y=".5" width="{_WIDTH - 1}" height="{height - 1}" rx="17.5" {rim}/>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


# ── What is drawn where ──────────────────────────────────────────────────────────────────────────────────


class _Seam(NamedTuple):
    band: Band
    label: str
    top: float
    bottom: float
    first: bool

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2 + (3 if self.first else 0)


def _seams(stratum: Stratum, top: float, every: int) -> list[_Seam]:
    """The bands of a layer with their heights: by share, and never too low for their label."""
    bands = _merged(stratum)
    shared = _SHARED * min(1.0, 0.4 + every / 80)  # a handful of memories makes no mountain
    heights = [max(_BAND, shared * _count(band.count) / max(every, 1)) for band, _ in bands]
    heights[0] += 8  # the boundary of a layer swings further
    spare = _LAYER - sum(heights)
    if spare > 0:
        heights = [height + spare / len(heights) for height in heights]
    seams: list[_Seam] = []
    for (band, label), height in zip(bands, heights, strict=True):
        seams.append(_Seam(band, label, top, top + height, first=not seams))
        top += height
    return seams


def _merged(stratum: Stratum) -> list[tuple[Band, str]]:
    """The rooms with their labels, largest first; the smallest become one, and so does what no room holds."""
    bands = sorted(stratum.bands, key=lambda band: (-_count(band.count), band.room))
    if not bands:
        rock = _ROCKS.get(stratum.layer, _OTHER)
        return [(Band("", stratum.count), "" if _count(stratum.count) else rock.empty)]
    missing = _count(stratum.count) - sum(_count(band.count) for band in bands)
    most = MOST_BANDS - (missing > 0)
    shown, rest = (bands, []) if len(bands) <= most else (bands[: MOST_BANDS - 1], bands[MOST_BANDS - 1 :])
    alone = len(bands) == 1 and missing <= 0
    made = [(band, _name(band.room) or ("" if alone else "in no room")) for band in shown]
    if rest:
        made.append((_together(rest, max(missing, 0)), f"{_short(len(rest))} more rooms"))
    elif missing > 0:
        made.append((Band("", missing), "other rooms"))
    return made


def _together(bands: Sequence[Band], missing: int) -> Band:
    rated = [
        (density, max(_count(band.count), 1)) for band in bands if (density := _bounded(band.density)) >= 0
    ]
    weight = sum(count for _, count in rated)
    mean = sum(density * count for density, count in rated) / weight if weight else None
    return Band(
        room="",
        count=sum(_count(band.count) for band in bands) + missing,
        density=mean,
        decaying=_falling(bands),
    )


def _held(stratum: Stratum) -> int:
    """The memories of a layer; its rooms may have been counted a moment later than the layer."""
    return max(_count(stratum.count), sum(_count(band.count) for band in stratum.bands))


def _falling(bands: Sequence[Band]) -> int:
    return sum(_count(band.decaying) for band in bands)


# ── Rock ─────────────────────────────────────────────────────────────────────────────────────────────────


def _ground(stratum: Stratum, seams: Sequence[_Seam], number: int) -> Iterator[str]:
    """The bands of one layer; each reaches down to the bottom, and the next one covers it."""
    rock = _ROCKS.get(stratum.layer, _OTHER)
    border = ""
    for at, seam in enumerate(seams):
        swing = 3.4 if at else 8.0 if number else 5.0
        wave = _wave(f"{stratum.layer}/{seam.band.room or seam.label}/{at == 0}", seam.top, swing)
        border = border or wave
        ground, _ = colours(stratum.layer, seam.band.density)
        edge = ' stroke="#fff" stroke-opacity=".2"' if at else ""
        yield f'<path d="{wave}" fill="{ground.text}"{edge}/>'
    if rock.grain:
        line = 'stroke="#120a04" stroke-opacity=".38" stroke-width="2.5"'
        yield f'<path d="{border}" fill="url(#{rock.grain})" {line}/>'
    for seam in seams:
        yield from _grains(stratum.layer, seam)


def colours(layer: str, density: float | None) -> tuple[Rgb, Rgb]:
    """The ground of a band, the brighter the denser, and the ink that reads better on it."""
    rock = _ROCKS.get(layer, _OTHER)
    share = _bounded(density)
    # Bent, so that what is valued stands out and few bands get the middle tone on which no ink reads well.
    ground = rock.dull.towards(rock.bright, (0.2 if share < 0 else share) ** 1.4)
    return ground, max(_LIGHT, _DARK, key=lambda ink: contrast(ink, ground))


def contrast(one: Rgb, other: Rgb) -> float:
    """How well two colours read on each other, from 1 to 21, as the accessibility guidelines measure it."""
    high, low = sorted((one.luminance, other.luminance), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _grains(layer: str, seam: _Seam) -> Iterator[str]:
    """What decays soon as falling grains; what is dense in Bedrock as crystals."""
    ink = colours(layer, seam.band.density)[1].text
    chance = _chance(f"{layer}/{seam.band.room}/grains")
    falling = min(_count(seam.band.decaying), 9)
    room = seam.bottom - seam.top
    if falling:
        dots = []
        for number in range(falling):
            x = 474 + (number + 0.2 + 0.6 * next(chance)) * 112 / falling
            dots.append((x, seam.top + 10 + next(chance) * max(room - 14, 4)))
        tails = "".join(f"M{x:.0f} {y - 8:.0f}v5" for x, y in dots)
        heads = "".join(f"M{x:.0f} {y:.0f}h.1" for x, y in dots)
        round_ink = f'stroke="{ink}" stroke-linecap="round"'
        yield f'<path d="{tails}" {round_ink} stroke-opacity=".4" stroke-width="1.6"/>'
        yield f'<path d="{heads}" {round_ink} stroke-opacity=".85" stroke-width="4"/>'
    elif layer == "bedrock" and (dense := _bounded(seam.band.density)) >= 0.6:
        gems = ""
        for _ in range(2 + round((dense - 0.6) * 10)):
            x, y = 490 + next(chance) * 200, seam.top + 5 + next(chance) * max(room - 10, 4)
            high = 3 + 3 * next(chance)
            wide = 0.6 * high
            gems += f"M{x:.0f} {y:.0f}l{wide:.1f}-{high:.1f} {wide:.1f} {high:.1f}-{wide:.1f} {high:.1f}z"
        yield f'<path d="{gems}" fill="#fff" fill-opacity=".5"/>'


def _wave(name: str, y: float, swing: float) -> str:
    """A boundary at height *y* and all that lies below it, as a path; its shape comes from the name."""
    chance = _chance(name)
    phase, often = next(chance) * math.tau, 0.7 + 0.9 * next(chance)
    other, oftener = next(chance) * math.tau, 2 + 2 * next(chance)
    steps, left = 9, -10
    width = (_WIDTH + 20) / steps

    def at(number: int) -> float:
        turn = number / steps * math.tau
        return y + swing * (0.68 * math.sin(phase + turn * often) + 0.32 * math.sin(other + turn * oftener))

    points = [
        (left + width * number, at(number), (at(number + 1) - at(number - 1)) / 6)
        for number in range(steps + 1)
    ]
    drawn = f"M{left} {points[0][1]:.1f}"
    for (x, here, slope), (_, there, next_slope) in pairwise(points):
        drawn += (
            f"C{x + width / 3:.0f} {here + slope:.1f} {x + width * 2 / 3:.0f} {there - next_slope:.1f} "
            f"{x + width:.0f} {there:.1f}"
        )
    return f"{drawn}V4e3H{left}z"


def _sky(day: date) -> Iterator[str]:
    far, turf = _SEASONS[day.month % 12 // 3]
    yield f'<rect width="{_WIDTH}" height="{_SKY + 20}" fill="url(#sky)"/>'
    yield (
        '<path d="M352 15h.1M418 34h.1M468 12h.1M520 40h.1M562 18h.1M690 14h.1M738 36h.1" stroke="#fff" '
        'stroke-opacity=".6" stroke-width="1.8" stroke-linecap="round"/>'
    )
    yield '<circle cx="642" cy="50" r="30" fill="#ffe2a8" fill-opacity=".2"/>'
    yield '<circle cx="642" cy="50" r="18" fill="#ffe2a8"/>'
    yield f'<path d="{_wave("hills beyond", _SKY - 15, 12)}" fill="{far}" fill-opacity=".55"/>'
    yield f'<path d="{_wave("hills", _SKY - 8, 7)}" fill="{far}"/>'
    chance = _chance("turf")
    blades = "".join(
        f"M{20 + number * 21 + next(chance) * 14:.0f} {_SKY + 4}"
        f"l{next(chance) * 6 - 3:.0f}-{7 + next(chance) * 6:.0f}"
        for number in range(35)
    )
    yield f'<path d="{blades}" stroke="{turf}" stroke-width="1.6" stroke-linecap="round"/>'
    yield f'<path d="{_wave("turf", _SKY - 3, 5)}" fill="{turf}"/>'


def _below(top: float) -> Iterator[str]:
    ground = _ROCKS["archive"].dull.text
    line = 'stroke="#0c0a0b" stroke-opacity=".6" stroke-width="2.5"'
    yield f'<path d="{_wave("archive", top, 5)}" fill="{ground}" {line}/>'


# ── Words ────────────────────────────────────────────────────────────────────────────────────────────────


def _labels(stratum: Stratum, seams: Sequence[_Seam]) -> Iterator[str]:
    for seam in seams:
        ink = colours(stratum.layer, seam.band.density)[1].text
        y = seam.middle + 6
        if seam.label:
            kind = "" if stratum.bands else ' class="e"'
            yield (
                f'<g clip-path="url(#names)"><text{kind} x="{_COLUMN + 14}" y="{y:.0f}" fill="{ink}">'
                f"{seam.label}</text></g>"
            )
        if len(seams) > 1 or (seam.label and stratum.bands):
            count = _short(seam.band.count)
            yield f'<text class="c" x="{_WIDTH - _MARGIN}" y="{y:.0f}" fill="{ink}">{count}</text>'
        if falling := _count(seam.band.decaying):
            yield _mark(_PILL, seam.middle)
            yield f'<text class="d" x="{_PILL + 62}" y="{y - 0.5:.0f}">{_short(falling, 1_000)}</text>'


def _mark(x: float, y: float, width: int = 70) -> str:
    """The dark pill with a falling grain that holds a count of what decays."""
    return (
        f'<rect x="{x:.0f}" y="{y - 11:.0f}" width="{width}" height="22" rx="11" '
        'fill="#30100a" fill-opacity=".88"/>'
        f'<path d="M{x + 7:.0f} {y - 3:.0f}h9l-4.5 7z" fill="#ff9d76"/>'
    )


def _column(stratum: Stratum, top: float) -> Iterator[str]:
    rock = _ROCKS.get(stratum.layer, _OTHER)
    yield f'<text class="l" x="{_MARGIN}" y="{top + 38:.0f}">{rock.name or _name(stratum.layer)}</text>'
    yield f'<text class="k" x="{_MARGIN}" y="{top + 61:.0f}">{_counted(_held(stratum))}</text>'


def _foot(archive: Stratum | None, top: float, horizon_days: int, *, falls: bool) -> Iterator[str]:
    y = top + 33
    held = f" · {_short(archive.count)}" if archive is not None and _count(archive.count) else ""
    yield f'<text class="k" x="{_MARGIN}" y="{y:.0f}">Archive{held}</text>'
    if falls:
        yield f'<text class="g" x="{_MARGIN + _COLUMN - 6}" y="{y:.0f}">brighter is denser</text>'
        yield _mark(506, y - 5, 22)
        yield f'<text class="g" x="534" y="{y:.0f}">decays within {_days(horizon_days)}</text>'
    else:
        yield f'<text class="g r" x="{_WIDTH - _MARGIN}" y="{y:.0f}">brighter is denser</text>'


def _told(layers: Sequence[Stratum], archive: Stratum | None, horizon_days: int) -> tuple[str, str]:
    """Title and description for whoever does not see the picture."""
    said = []
    for stratum in layers:
        name = _ROCKS.get(stratum.layer, _OTHER).name or _name(stratum.layer)
        rooms = sum(1 for band in stratum.bands if band.room)
        words = [f"{name}: {_counted(_held(stratum))}"]
        if rooms:
            words.append(f"in {_short(rooms)} {'room' if rooms == 1 else 'rooms'}")
        falling = _falling(stratum.bands)
        if falling:
            words.append(f"of which {_short(falling)} will decay within {_days(horizon_days)}")
        said.append(" ".join(words) + ".")
    if archive is not None:
        said.append(f"Archive: {_counted(_count(archive.count))}.")
    return "The strata of the palace", " ".join(said)


def _count(number: int) -> int:
    return max(0, min(number, 999_999_999))


def _short(number: int, exact: int = 10_000) -> str:
    """A count in at most five signs, to the last memory below *exact*."""
    number = _count(number)
    if number < exact:
        return f"{number:,}"
    return f"{number // 1000}k" if number < 1_000_000 else f"{number // 1_000_000}M"


def _counted(number: int) -> str:
    return "1 memory" if number == 1 else f"{_short(number) if number else 'no'} memories"


def _days(number: int) -> str:
    number = _count(number)
    return "1 day" if number == 1 else f"{_short(number)} days"


def _bounded(density: float | None) -> float:
    """*density* between 0 and 1; -1 when nobody gave one."""
    if density is None or math.isnan(density):
        return -1.0
    return max(0.0, min(1.0, density))


def _name(text: str) -> str:
    """*text* cut to fit a band, without what an XML file cannot hold or what would disturb its neighbours."""
    shown: list[str] = []
    columns = marks = 0
    for char in text[: _MOST_SIGNS * 4]:
        kind = unicodedata.category(char)
        if kind in ("Cf", "Cs") or char in "\ufffe\uffff":
            char = char if char in "\u200c\u200d" else "\ufffd" if kind == "Cs" else ""
        elif kind in ("Cc", "Zl", "Zp") or char.isspace():
            char = " "
        marks = marks + 1 if kind[0] == "M" else 0
        if not char or marks > 4 or (char == " " and shown[-1:] in ([], [" "])):
            continue
        columns += 0 if marks else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if columns > _LONGEST_NAME or len(shown) == _MOST_SIGNS:
            shown = [*"".join(shown[:-1]).rstrip(), "…"]
            break
        shown.append(char)
    name = "".join(shown).strip()
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _chance(name: str) -> Iterator[float]:
    """Numbers from 0 to 1 that only the name decides."""
    turn = 0
    while True:
        text = f"{name}/{turn}".encode(errors="backslashreplace")
        yield from (byte / 255 for byte in hashlib.blake2b(text, digest_size=32).digest())
        turn += 1
