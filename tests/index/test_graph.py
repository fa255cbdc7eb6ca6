"""Backlinks and other questions about links, right after every change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.index.notes_by_hand import a_note
from vault_palace.core.changes import Mark
from vault_palace.core.links import Resolver
from vault_palace.index.cache import Cache
from vault_palace.index.graph import Graph
from vault_palace.index.search import search

A, B, C = "01_Shallow/a.md", "02_Sediment/b.md", "03_Bedrock/c.md"


def test_a_backlink_counts_once_for_each_other_memory_in_a_layer(cache: Cache) -> None:
    cache.put(a_note(A, links=["a", "c", "c.md"]))
    cache.put(a_note(B, links=["a", "01_Shallow/a", "A#heading".partition("#")[0]]))
    cache.put(a_note(C))
    for path in (
        "_Archive/01_Shallow/d.md",
        "_System/Dashboards/e.md",
        "PALACE_MAP.md",
        "_System/Templates/t.md",
    ):
        cache.put(a_note(path, links=["a"]))

    graph = Graph(cache)

    assert graph.backlinks(A) == (B,)
    assert graph.backlinks(C) == (A,)
    assert graph.backlinks(B) == ()
    assert graph.counts() == {A: 1, C: 1}
    assert graph.sources() == {A: {B}, C: {A}}
    assert graph.incoming(A) == (
        A,
        B,
        "PALACE_MAP.md",
        "_Archive/01_Shallow/d.md",
        "_System/Dashboards/e.md",
        "_System/Templates/t.md",
    )


def test_a_link_leads_to_a_note_that_comes_later(cache: Cache) -> None:
    cache.put(a_note(A, links=["b", "pic.png"]))
    graph = Graph(cache)
    before = graph.unresolved()

    cache.put(a_note(B))
    cache.put_file("attachments/pic.png", Mark(1, 1, 1))

    assert before == ((A, "b"), (A, "pic.png"))
    assert graph.unresolved() == ()
    assert graph.backlinks(B) == (A,)
    assert graph.incoming("attachments/pic.png") == (A,)


def test_a_link_leads_nowhere_when_its_note_is_gone(cache: Cache) -> None:
    cache.put(a_note(A, links=["b"]))
    cache.put(a_note(B))

    cache.remove(B)

    assert Graph(cache).unresolved() == ((A, "b"),)
    assert Graph(cache).counts() == {}


def test_a_second_note_of_the_name_changes_where_links_lead(cache: Cache) -> None:
    cache.put(a_note("01_Shallow/x/src.md", links=["b"]))
    cache.put(a_note("02_Sediment/deeper/b.md"))
    graph = Graph(cache)
    before = graph.backlinks("02_Sediment/deeper/b.md")

    cache.put(a_note("01_Shallow/x/b.md"))

    assert before == ("01_Shallow/x/src.md",)
    assert graph.backlinks("02_Sediment/deeper/b.md") == ()
    assert graph.backlinks("01_Shallow/x/b.md") == ("01_Shallow/x/src.md",)


def test_a_moved_note_keeps_its_backlinks_by_bare_name(cache: Cache) -> None:
    cache.put(a_note(A, links=["b"]))
    cache.put(a_note(B))

    with cache.batch():
        cache.remove(B)
        cache.put(a_note("03_Bedrock/b.md"))

    assert Graph(cache).backlinks("03_Bedrock/b.md") == (A,)


def test_inside_a_batch_the_links_of_the_notes_put_are_known(cache: Cache) -> None:
    cache.put(a_note(B))

    with cache.batch():
        cache.put(a_note(A, links=["b"]))
        inside = Graph(cache).backlinks(B)

    assert inside == (A,)


def test_a_link_to_a_heading_of_the_same_note_is_no_link(cache: Cache) -> None:
    cache.put(a_note(A, links=[""]))

    assert Graph(cache).unresolved() == ()
    assert Graph(cache).incoming(A) == ()
    assert Graph(cache).orphans() == (A,)


def test_orphans_are_memories_that_nothing_ties_to_others(cache: Cache) -> None:
    cache.put(a_note(A, links=["b"]))
    cache.put(a_note(B))
    cache.put(a_note(C, links=["c", "nowhere"]))
    cache.put(a_note("PALACE_MAP.md", links=["c"]))
    cache.put(a_note("_Archive/01_Shallow/d.md"))

    assert Graph(cache).orphans() == (C,)


def test_notes_that_hold_a_link_of_a_name_can_be_listed(cache: Cache) -> None:
    cache.put(a_note(A, links=["Plan", "x/other"]))
    cache.put(a_note("_System/Dashboards/e.md", links=["y/plan.md"]))
    cache.put(a_note(B, links=["planet", "pla_"]))

    found = Graph(cache).referrers_by_key(["plan"])

    assert found == (A, "_System/Dashboards/e.md")


def test_the_resolver_knows_all_files(cache: Cache) -> None:
    cache.put(a_note(A))
    cache.put_file("attachments/pic.png", Mark(1, 1, 1))

    resolver = Graph(cache).resolver()

    assert resolver.resolve("pic.png", A) == "attachments/pic.png"
    assert resolver.resolve("a", B) == A


_PATHS = [
    "01_Shallow/x.md",
    "01_Shallow/r/x.md",
    "02_Sediment/X.md",
    "02_Sediment/r/y.md",
    "03_Bedrock/y.md.md",
    "y.md",
    "_Archive/01_Shallow/x.md",
]
_LINKS = ["x", "X.md", "r/x", "y", "y.md", "../y", "01_Shallow/x", "r/y.md", "/y", "none", "./x"]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(_PATHS),
        st.one_of(
            st.none(),
            st.tuples(
                st.lists(st.sampled_from(_LINKS), max_size=4),
                st.sampled_from(["zebra", "quagga zebra", "horse"]),
            ),
        ),
        st.booleans(),
    ),
    max_size=12,
)


@given(steps=_STEPS)
def test_any_way_of_changes_leads_to_the_same_cache_as_building_it_anew(
    steps: list[tuple[str, tuple[list[str], str] | None, bool]],
) -> None:
    """Links, counts and ranks; `resolve` over all files is the answer that the kept targets must give."""
    state: dict[str, tuple[list[str], str]] = {}
    with Cache.open(None, "v") as grown, Cache.open(None, "v") as fresh:
        for path, content, _ in steps:
            if content is None:
                state.pop(path, None)
                grown.remove(path)
            else:
                state[path] = content
                grown.put(a_note(path, content[1], links=content[0]))

        with fresh.batch():
            for path, (links, text) in sorted(state.items()):
                fresh.put(a_note(path, text, links=links))

        resolver = Resolver(state)
        expected: dict[str, set[str]] = {}
        for path, (links, _) in state.items():
            for link in links:
                target = resolver.resolve(link, path)
                if target is not None:
                    expected.setdefault(target, set()).add(path)
        for path in _PATHS:
            assert set(Graph(grown).incoming(path)) == expected.get(path, set())
        for question in (Graph.counts, Graph.sources, Graph.unresolved, Graph.orphans):
            assert question(Graph(grown)) == question(Graph(fresh))
        one, two = search(grown, "zebra"), search(fresh, "zebra")
        assert [hit.path for hit in one.hits] == [hit.path for hit in two.hits]
        assert [hit.score for hit in one.hits] == pytest.approx([hit.score for hit in two.hits])
        assert grown.troubles() == ()


def test_a_link_without_quotes_holds_its_note_by_the_name_and_counts_nowhere(cache: Cache) -> None:
    """FM-28: whoever renames the note finds the property; for the graph it is no link."""
    cache.put(a_note(A, unquoted=(("b", "b"), ("01_Shallow/B", "b"), ("gone", "gone"))))
    cache.put(a_note(B))
    graph = Graph(cache)

    assert graph.referrers_by_key(["b"]) == (A,)
    assert (graph.backlinks(B), graph.incoming(B), graph.unresolved()) == ((), (), ())
    assert graph.orphans() == (A, B)
    assert cache.get(A) == a_note(
        A, text="", mark=cache.marks()[A], unquoted=(("b", "b"), ("01_Shallow/B", "b"), ("gone", "gone"))
    )


@pytest.mark.parametrize("then", ["quoted", "removed", "cleared"])
def test_a_link_without_quotes_is_forgotten_with_its_note(cache: Cache, then: str) -> None:
    cache.put(a_note(A, unquoted=(("b", "b"),)))

    if then == "quoted":
        cache.put(a_note(A))
    elif then == "removed":
        cache.remove(A)
    else:
        cache.clear()

    assert Graph(cache).referrers_by_key(["b"]) == ()


def test_where_one_note_s_links_lead_is_found_from_that_note(cache: Cache) -> None:
    """And not by reading every link of the vault."""
    cache.put(a_note(A, links=["b", "b.md", "gone"]))
    cache.put(a_note(B, links=["a"]))
    asked: list[str] = []
    with cache._reader() as db:
        db.set_trace_callback(asked.append)
        reader = db

    found = cache.targets(A)

    reader.set_trace_callback(None)
    (query,) = (text for text in asked if text.startswith("SELECT"))
    with cache._reader() as db:
        plan = [str(step[3]) for step in db.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert found == (B,)
    assert plan[0].startswith("SEARCH source USING INDEX sqlite_autoindex_note_1 (path=?)")
