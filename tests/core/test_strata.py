"""The strata picture: what it tells, that it stays the same and small, and that it can stand anywhere."""

from __future__ import annotations

import re
from datetime import date
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.strata import MOST_BANDS, Band, Strata, Stratum, colours, contrast, draw

DAY = date(2026, 12, 1)
SVG = "{http://www.w3.org/2000/svg}"
SAMPLE = Strata(
    (
        Stratum("shallow", 47, (Band("ideas", 30, 0.35, 3), Band("", 9, 0.2, 2), Band("notes", 8, 0.6))),
        Stratum("sediment", 31, (Band("apollo", 31, 0.7, 1),)),
        Stratum("bedrock", 1, (Band("", 1, 0.9),)),
        Stratum("archive", 112),
    ),
    DAY,
)
EMPTY = Strata(tuple(Stratum(layer, 0) for layer in ("shallow", "sediment", "bedrock", "archive")), DAY)


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def shallow(*bands: Band, count: int | None = None) -> Strata:
    held = sum(band.count for band in bands) if count is None else count
    return Strata((Stratum("shallow", held, bands),), DAY)


# -- what it tells ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "79 memories",
        "Shallow",
        "47 memories",
        "Sediment",
        "31 memories",
        "Bedrock",
        "1 memory",
        "Archive · 112",
    ],
)
def test_layers_stand_with_their_counts(words: str) -> None:
    svg = draw(SAMPLE)

    assert words in texts(svg)


def test_rooms_stand_from_the_largest_down_with_counts_and_what_decays() -> None:
    svg = draw(SAMPLE)

    shown = texts(svg)
    assert shown[shown.index("ideas") :][:8] == ["ideas", "30", "3", "in no room", "9", "2", "notes", "8"]


def test_layers_lie_in_the_order_given() -> None:
    svg = draw(SAMPLE)

    heights = {
        "".join(text.itertext()): float(text.get("y", "0"))
        for text in ElementTree.fromstring(svg).iter(f"{SVG}text")
    }
    order = ["Shallow", "Sediment", "Bedrock", "Archive · 112"]
    assert sorted(order, key=heights.__getitem__) == order


def test_the_picture_is_told_in_words_for_whoever_does_not_see_it() -> None:
    root = ElementTree.fromstring(draw(SAMPLE))

    described = [root.findtext(f"{SVG}{name}") for name in ("title", "desc")]

    assert described == [
        "The strata of the palace",
        (
            "Shallow: 47 memories in 2 rooms of which 5 will decay within 7 days. "
            "Sediment: 31 memories in 1 room of which 1 will decay within 7 days. "
            "Bedrock: 1 memory. Archive: 112 memories."
        ),
    ]


def test_an_empty_palace_says_what_will_be_where() -> None:
    svg = draw(EMPTY)

    assert {
        "Nothing has settled yet",
        "fresh observations settle here",
        "what proves valuable sinks here",
        "what keeps proving itself stays",
    } <= set(texts(svg))


def test_the_smallest_of_many_rooms_are_merged() -> None:
    bands = [Band(f"room {number}", 100 - number, 0.5, 1) for number in range(20)]

    shown = texts(draw(shallow(*bands)))

    assert shown[shown.index("9 more rooms") :][:3] == ["9 more rooms", f"{sum(range(81, 90)):,}", "9"]
    assert sum(text.startswith("room ") for text in shown) == MOST_BANDS - 1


@pytest.mark.parametrize(("rooms", "merged"), [(MOST_BANDS, 0), (MOST_BANDS + 1, 1)])
def test_rooms_are_merged_only_when_there_are_too_many(rooms: int, merged: int) -> None:
    svg = draw(shallow(*(Band(f"room {number}", 3) for number in range(rooms))))

    assert sum("more rooms" in text for text in texts(svg)) == merged


def test_memories_of_rooms_that_were_not_given_are_shown_as_such() -> None:
    shown = texts(draw(shallow(Band("ideas", 5), count=25)))

    assert shown[shown.index("other rooms") :][:2] == ["other rooms", "20"]


@pytest.mark.parametrize(
    ("count", "shown"),
    [(-3, "no memories"), (9_999, "9,999 memories"), (10_000, "10k memories"), (10**30, "999M memories")],
)
def test_counts_are_short(count: int, shown: str) -> None:
    svg = draw(Strata((Stratum("shallow", count),), DAY))

    assert shown in texts(svg)


@pytest.mark.parametrize("layer", ["shallow", "sediment", "bedrock", "other"])
def test_brighter_is_denser(layer: str) -> None:
    grounds = [colours(layer, share / 10)[0] for share in range(11)]

    light = [ground.luminance for ground in grounds]
    assert light == sorted(set(light))


def test_a_band_is_drawn_in_the_colour_of_its_density() -> None:
    svg = draw(shallow(Band("a", 5, 0.9), Band("b", 4, 0.1)))

    assert [svg.count(f'fill="{colours("shallow", density)[0].text}"') for density in (0.9, 0.1)] == [1, 1]


@pytest.mark.parametrize("layer", ["shallow", "sediment", "bedrock", "other"])
@pytest.mark.parametrize("density", [None, float("nan"), -1.0, *(share / 20 for share in range(21)), 7.0])
def test_every_label_reads_on_its_ground(layer: str, density: float | None) -> None:
    ground, ink = colours(layer, density)

    assert contrast(ground, ink) >= 4.5


def test_what_decays_falls_as_grains() -> None:
    still, falling = (draw(shallow(Band("a", 30, 0.2, decaying))) for decaying in (0, 4))

    assert falling.count("h.1M") - still.count("h.1M") == 3


# -- where it can stand -------------------------------------------------------------------------------------


def test_it_brings_its_own_ground_to_every_theme() -> None:
    root = ElementTree.fromstring(draw(SAMPLE))

    plate = next(group for group in root.iter(f"{SVG}g") if group.get("clip-path") == "url(#plate)")
    first = plate[0]
    assert (first.tag, first.get("width")) == (f"{SVG}rect", root.get("width"))
    assert "color-scheme" not in draw(SAMPLE)


def test_letters_grow_where_it_is_shown_small() -> None:
    svg = draw(SAMPLE)

    normal, small = (int(size) for size in re.findall(r"(?<![.\w])text\{font-size:(\d+)px\}", svg))
    assert small * 358 / 760 >= 9.5
    assert normal >= 16


def assert_at_home(svg: str) -> None:
    """It is XML that runs nothing and asks for nothing."""
    root = ElementTree.fromstring(svg)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {
        *("svg", "title", "desc", "defs", "linearGradient", "stop", "pattern", "clipPath", "style"),
        *("g", "path", "rect", "circle", "text"),
    }
    names = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on") or "href" in name}
    values = [value for element in root.iter() for value in element.attrib.values()]
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    used = [name for value in values for name in re.findall(r"url\((.*?)\)", value)]
    assert {name.removeprefix("#") for name in used} <= set(ids)
    assert len(ids) == len(set(ids))
    assert all(word not in (root.findtext(f".//{SVG}style") or "") for word in ("url(", "@import"))


@pytest.mark.parametrize("strata", [SAMPLE, EMPTY, Strata((), DAY)], ids=["sample", "empty", "nothing"])
def test_it_runs_nothing_and_asks_for_nothing(strata: Strata) -> None:
    svg = draw(strata)

    assert_at_home(svg)


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        ("a & b <c>", "a & b <c>"),
        ("</text><script>alert(1)</script>", "</text><script>alert(1)<…"),
        ("the longest name of a room there is", "the longest name of a ro…"),
        ("日本語のとても長い部屋の名前はここで切られる", "日本語のとても長い部屋…"),
        ("مشاريع البحث العلمي", "مشاريع البحث العلمي"),
        ("tab\tand\nline", "tab and line"),
        ("nul\x00 \x1b[0m \uffff", "nul [0m"),
        ("half \ud800", "half \ufffd"),
        ("\u202eturned", "turned"),
        ("z" + "\u0301" * 50, "z" + "\u0301" * 4),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
    ],
)
def test_any_name_stands_in_its_band(room: str, shown: str) -> None:
    svg = draw(shallow(Band(room, 3), Band("other", 2)))

    assert shown in texts(svg)
    assert_at_home(svg)


# -- the same, and small ------------------------------------------------------------------------------------

NUMBERS = st.integers(-5, 2_000) | st.just(10**30)
NAMES = st.text(max_size=80) | st.sampled_from(["&" * 99, "<" * 99, "😀" * 99, "", "a/b"])
BANDS = st.builds(Band, NAMES, NUMBERS, st.none() | st.floats(), NUMBERS)
STRATA = st.builds(
    Strata,
    st.lists(
        st.builds(
            Stratum,
            st.sampled_from(["shallow", "sediment", "bedrock", "archive"]) | NAMES,
            NUMBERS,
            st.lists(BANDS, max_size=4).map(lambda bands: tuple(bands * 5)),
        ),
        max_size=6,
    ).map(tuple),
    st.dates(),
    NUMBERS,
)


@given(STRATA)
def test_whatever_is_drawn_is_small_and_harmless(strata: Strata) -> None:
    svg = draw(strata)

    assert len(svg.encode()) <= 48 * 1024
    assert 100 <= float(ElementTree.fromstring(svg).get("height", "0")) <= 1_800
    assert_at_home(svg)


def test_the_fullest_picture_is_small() -> None:
    bands = tuple(Band("&" * 20 + f"{number:08}" + "😀" * 9, 10**9, 0.95, 10**9) for number in range(500))

    svg = draw(Strata(tuple(Stratum("bedrock", 10**9, bands) for _ in range(9)), DAY))

    assert 20_000 < len(svg.encode()) <= 48 * 1024


@given(STRATA)
def test_the_order_of_the_rooms_changes_nothing(strata: Strata) -> None:
    turned = Strata(
        tuple(Stratum(one.layer, one.count, tuple(reversed(_once(one.bands)))) for one in strata.strata),
        strata.day,
        strata.horizon_days,
    )
    straight = Strata(
        tuple(Stratum(one.layer, one.count, _once(one.bands)) for one in strata.strata),
        strata.day,
        strata.horizon_days,
    )

    assert draw(turned) == draw(straight)


def _once(bands: tuple[Band, ...]) -> tuple[Band, ...]:
    """One band a room: a folder stands in a layer once."""
    return tuple({band.room: band for band in bands}.values())


@pytest.mark.parametrize(
    ("day", "same"), [(date(2026, 12, 2), True), (date(2027, 2, 28), True), (date(2027, 3, 1), False)]
)
def test_a_new_day_changes_the_picture_only_with_the_season(day: date, same: bool) -> None:
    later = draw(Strata(SAMPLE.strata, day))

    assert (later == draw(SAMPLE)) is same


def test_a_room_keeps_its_shape_when_another_one_appears() -> None:
    before = draw(shallow(Band("ideas", 9), Band("notes", 8)))
    after = draw(shallow(Band("ideas", 9), Band("new", 8), Band("notes", 8)))

    assert shape(after, "notes") == pytest.approx(shape(before, "notes"), abs=0.25)
    assert shape(after, "new") != pytest.approx(shape(after, "notes"), abs=0.25)


def shape(svg: str, room: str) -> list[float]:
    """How the upper boundary of a room rises and falls from where it begins."""
    waves = re.findall(r'<path d="M-10 ([^"]*?)V4e3[^"]*" fill="#', svg.split('fill="url(#sky)"')[1])
    rooms = [text for text in texts(svg) if text in ("ideas", "new", "notes")]
    heights = re.findall(r"-?[\d.]+", waves[3 + rooms.index(room)])[::2]
    return [float(height) - float(heights[0]) for height in heights]
