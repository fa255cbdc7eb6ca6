"""The cache as a store: what is put comes out, together or not at all, from any thread."""

from __future__ import annotations

import stat
import threading
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.index.notes_by_hand import WHEN, a_note, a_problem
from vault_palace.core.changes import Mark, compare
from vault_palace.core.model import Layer, Memory, Status
from vault_palace.index.cache import Cache, CacheTrouble, place_for
from vault_palace.index.search import search

A = "01_Shallow/a.md"
B = "02_Sediment/ideas/b.md"


def test_a_note_comes_out_as_it_was_put_but_for_its_text(cache: Cache) -> None:
    memory = Memory(
        path=A,
        layer=Layer.SHALLOW,
        recorded_layer=Layer.SEDIMENT,
        created=WHEN,
        last_touched=datetime(2026, 12, 1, 0, 0, 0, 5),
        layer_since=WHEN,
        density=None,
        streak=-(10**30),
        backlinks=3,
        missed=2,
        decay_days=7.5,
        pinned=True,
        status=Status.DECAYING,
        decays_on=date(2026, 12, 8),
        rises_on=date(2027, 1, 1),
        rises_to=Layer.SEDIMENT,
    )
    note = a_note(
        A,
        "the body",
        links=["B", "c/d.md", "B"],
        memory=memory,
        id="mem_1",
        title="A title",
        tags=("apollo", "a/b"),
        aliases=("other",),
        properties={"density": "01234", "list": [1, None, True], "map": {"x": 1.5}},
        problems=(a_problem(A),),
        fingerprint="f",
        body_hash="h",
        known_body="k",
        known_streak=-3,
    )

    cache.put(note)

    assert cache.get(A) == replace(note, text="")
    assert cache.all_memories() == (memory,)


def test_a_note_without_memory_keeps_its_layer(cache: Cache) -> None:
    cache.put(a_note(A, memory=None))

    note = cache.get(A)

    assert note is not None
    assert note.layer is Layer.SHALLOW
    assert cache.all_memories() == ()


@pytest.mark.parametrize(
    "mark",
    [
        Mark(0, 0, 0),
        Mark(2**62, 2**63 - 1, 2**63 - 1, 2**63 - 1),
        Mark(1, 15_032_385_536 * 10**9, 2**127, -(10**18)),
    ],
)
def test_a_mark_of_any_file_system_comes_back_equal(cache: Cache, mark: Mark) -> None:
    cache.put(a_note(A, mark=mark))
    cache.put_file("pic.png", mark)

    assert cache.marks() == {A: mark, "pic.png": mark}
    assert cache.get(A) == replace(a_note(A, mark=mark), text="")


@given(st.text(st.characters()), st.text(st.characters(), max_size=20))
def test_no_text_is_refused(text: str, name: str) -> None:
    path = f"01_Shallow/{name.replace('/', '')}x.md"
    note = a_note(
        path, text, links=[name, text], id=name, tags=(name,), aliases=(name,), properties={name: text}
    )

    with Cache.open(None, "vault") as cache:
        cache.put(note)

        assert cache.get(path) == replace(note, text="")
        assert cache.by_id(name) == ((replace(note, text=""),) if name else ())


def test_properties_that_hold_themselves_are_left_out(cache: Cache) -> None:
    endless: list[object] = []
    endless.append(endless)

    cache.put(a_note(A, id="mem_1", properties={"x": endless}))

    found = cache.get(A)
    assert found is not None
    assert found.id == "mem_1"
    assert found.properties == {}


def test_a_note_that_is_put_again_replaces_what_was_known(cache: Cache) -> None:
    cache.put(a_note(A, "zebra", id="mem_1", tags=("old",), links=["b"], problems=(a_problem(A),)))

    cache.put(a_note(A, "quagga", id="mem_2", tags=("new",)))

    assert cache.by_id("mem_1") == ()
    assert [note.path for note in cache.by_id("mem_2")] == [A]
    assert cache.problems() == ()
    assert cache.holders(["b"]) == ()
    assert search(cache, "zebra").total == 0
    assert search(cache, "quagga").total == 1
    assert search(cache, "quagga", tags=["old"]).total == 0


def test_a_note_whose_bytes_are_the_same_can_get_a_new_mark_alone(cache: Cache) -> None:
    note = a_note(A, "zebra", links=["b"])
    cache.put(note)

    cache.put_file(A, Mark(9, 9, 9, 9))

    assert cache.marks() == {A: Mark(9, 9, 9, 9)}
    assert cache.get(A) == replace(note, text="", mark=Mark(9, 9, 9, 9))


def test_a_removed_note_leaves_nothing_behind(cache: Cache) -> None:
    cache.put(a_note(A, "zebra", id="mem_1", tags=("t",), links=["b"], problems=(a_problem(A),)))

    cache.remove(A)
    cache.remove("never/there.md")

    assert cache.marks() == {}
    assert cache.get(A) is None
    assert cache.by_id("mem_1") == cache.by_name("a") == ()
    assert cache.problems() == ()
    assert search(cache, "zebra").total == 0
    assert cache.counts() == {"shallow": 0, "sediment": 0, "bedrock": 0, "archived": 0, "files": 0}
    assert cache.troubles() == ()


def test_notes_are_counted_by_layer_and_kind(cache: Cache) -> None:
    for path in (A, B, "_Archive/01_Shallow/c.md", "_System/Policy.md", "PALACE_MAP.md"):
        cache.put(a_note(path))
    cache.put_file("attachments/pic.png", Mark(1, 1, 1))

    counts = cache.counts()

    assert counts == {
        "shallow": 1,
        "sediment": 1,
        "bedrock": 0,
        "archived": 1,
        "system": 1,
        "map": 1,
        "files": 6,
    }
    assert [note.path for note in cache.notes("memory", "map")] == [A, B, "PALACE_MAP.md"]
    assert len(cache.notes()) == 5
    assert cache.folders() == {"01_Shallow": 1, "02_Sediment/ideas": 1}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Plan", ["01_Shallow/plan.md", "02_Sediment/Plan.md"]),
        ("cafe\u0301", ["01_Shallow/x.md"]),
        ("The other", ["01_Shallow/y.md"]),
        ("nobody", []),
        ("", []),
        ("%", []),
    ],
)
def test_a_name_means_files_before_titles_before_aliases(
    cache: Cache, name: str, expected: list[str]
) -> None:
    cache.put(a_note("01_Shallow/plan.md", aliases=("The other",)))
    cache.put(a_note("02_Sediment/Plan.md"))
    cache.put(a_note("01_Shallow/x.md", title="Caf\u00e9"))
    cache.put(a_note("01_Shallow/y.md", title="The other", aliases=("plan",)))

    found = cache.by_name(name)

    assert [note.path for note in found] == expected


def test_a_batch_becomes_visible_as_a_whole(cache: Cache) -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(len(cache.marks()))

    with cache.batch():
        cache.put(a_note(A))
        cache.put(a_note(B))
        other = threading.Thread(target=look)
        other.start()
        other.join()
        seen.append(len(cache.marks()))
    seen.append(len(cache.marks()))

    assert seen == [0, 2, 2]


def test_a_batch_that_fails_leaves_the_state_before(cache: Cache) -> None:
    cache.put(a_note(A, "zebra"))

    def fail() -> None:
        with cache.batch():
            cache.clear()
            cache.put(a_note(B, "quagga"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert list(cache.marks()) == [A]
    assert search(cache, "zebra quagga").total == 1


def test_a_cache_can_be_made_anew_in_one_batch(cache: Cache) -> None:
    cache.put(a_note(A, "zebra"))

    with cache.batch():
        cache.clear()
        cache.put(a_note(B, "quagga"))

    assert list(cache.marks()) == [B]
    assert search(cache, "zebra").total == 0
    assert cache.troubles() == ()


def test_all_threads_may_write_and_search_at_once(cache: Cache) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(15):
                cache.put(a_note(f"01_Shallow/n{number}.md", f"word{number} step{step}"))
                assert search(cache, f"word{number}").total == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert cache.counts()["shallow"] == 6
    assert cache.troubles() == ()


def test_what_was_put_is_there_when_the_cache_is_opened_again(file: Path) -> None:
    with Cache.open(file, "vault-1") as cache:
        first = (cache.rebuilt, cache.reason)
        cache.put(a_note(A, "zebra"))

    with Cache.open(file, "vault-1") as cache:
        assert (cache.rebuilt, cache.reason) == (False, "")
        assert search(cache, "zebra").total == 1
    assert first == (True, "there was none yet")


def test_two_open_caches_of_one_file_see_what_the_other_did(file: Path) -> None:
    with Cache.open(file, "vault-1") as one, Cache.open(file, "vault-1") as two:
        one.put(a_note(A, "zebra", links=["b"]))
        two.put(a_note(B, "quagga"))

        assert search(two, "zebra").total == 1
        assert one.referrers(B, counted=True) == (A,)


def test_the_file_and_its_folder_are_the_users_alone(cache: Cache, file: Path) -> None:
    cache.put(a_note(A))

    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in file.parent.iterdir()}

    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert modes[file.name] == modes[f"{file.name}-wal"] == 0o600


def test_a_closed_cache_says_so(file: Path) -> None:
    cache = Cache.open(file, "vault-1")
    cache.close()
    cache.close()

    with pytest.raises(CacheTrouble, match="closed"):
        cache.marks()
    with pytest.raises(CacheTrouble, match="closed"):
        cache.put(a_note(A))


def test_each_vault_and_each_schema_has_its_own_file(tmp_path: Path) -> None:
    one, two = place_for(tmp_path, "../../etc"), place_for(tmp_path, "other")

    assert one != two
    assert one.parent.parent == two.parent.parent == tmp_path
    assert one.name == "index-6.sqlite3"


def test_fm_37_what_is_missing_in_a_note_does_not_make_the_next_comparison_work(cache: Cache) -> None:
    """FM-37: absent, null and wrong values are indexed, flagged, and then left in peace."""
    odd = [{}, {"type": None}, {"type": ""}, {"type": ["a", "b"]}]
    found = {}
    for number, properties in enumerate(odd):
        note = a_note(f"01_Shallow/n{number}.md", "zebra", properties=properties)
        found[note.path] = note.mark
        cache.put(replace(note, problems=(a_problem(note.path),) if number == 3 else ()))

    again = compare(cache.marks(), found)

    assert not again
    assert search(cache, "zebra").total == 4
    assert [problem.path for problem in cache.problems()] == ["01_Shallow/n3.md"]


def test_property_upkeep_does_not_touch_the_words(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    note = a_note(A, "zebra")
    cache.put(note)
    assert note.memory is not None

    def boom(_note: object) -> None:
        raise AssertionError("the words were made again")

    monkeypatch.setattr("vault_palace.index.notes.Words.of", boom)
    cache.put(replace(note, memory=replace(note.memory, streak=4), mark=Mark(9, 9, 9), fingerprint="new"))

    assert search(cache, "zebra").hits[0].note.fingerprint == "new"


def test_fs_11_a_note_beyond_the_limit_is_cut_and_reported(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vault_palace.index.notes.TEXT_LIMIT", 1000)

    cache.put(a_note(A, "zebra " + "x" * 1000 + " quagga"))

    assert [problem.code for problem in cache.problems()] == ["note_cut"]
    assert search(cache, "zebra").total == 1
    assert search(cache, "quagga").total == 0


@pytest.mark.parametrize(
    "odd",
    ["[" * 55_000, "[x](" * 150_000, "[[b]] " * 120_000, "y" * 20_000_000, "`" * 1_000_000, "倉" * 300_000],
    ids=["brackets", "openings", "links", "one line", "ticks", "one CJK run"],
)
def test_fs_11_an_odd_note_is_held_beside_a_normal_one(cache: Cache, odd: str) -> None:
    """FS-11: bounded by characters and words, so neither time nor memory runs away."""
    cache.put(a_note(A, odd))
    cache.put(a_note(B, "zebra"))

    assert search(cache, "zebra").total == 1
    assert cache.get(A) is not None
    assert bool(cache.problems()) is (len(odd) > 5_000_000)


def test_a_needle_at_the_end_of_a_long_note_is_found(cache: Cache) -> None:
    cache.put(a_note(A, "some words of hay " * 60_000 + "needle"))

    assert search(cache, "needle").total == 1


def test_an_erased_cache_leaves_nothing_of_its_notes_in_any_file(tmp_path: Path) -> None:
    file = tmp_path / "index-1.sqlite3"
    with Cache.open(file, "v") as cache:
        cache.put(a_note(A, "the unspeakable word"))
        file.with_name(f"{file.name}.bad-1").write_bytes(b"unspeakable")

        left = cache.erase()

        assert left == []
        assert cache.marks() == {}
        assert not any(b"unspeakable" in place.read_bytes() for place in tmp_path.iterdir())


def test_another_process_follows_to_the_file_that_took_an_erased_one_s_place(tmp_path: Path) -> None:
    file = tmp_path / "index-1.sqlite3"
    with Cache.open(file, "v") as cache, Cache.open(file, "v") as other:
        other.put(a_note(A))

        cache.erase()
        cache.put(a_note(B))

        assert sorted(other.marks()) == [B]
