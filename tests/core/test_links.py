"""Links: what counts, where it leads by Obsidian's steps, and what a move changes in a note's text."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from vault_palace.core import frontmatter, inline, links, linkscan, linktext
from vault_palace.core.links import Resolver


def paths_of(text: str) -> list[str]:
    return [link.path + link.anchor for link in links.find(text)]


# ── What counts ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[[N]] [[f/N]] [[N.md]] [[N|a]]", ["N", "f/N", "N.md", "N"]),
        ("[[N#H]] [[N#H1#H2]] [[N#^b]] [[#H]] [[#^b]]", ["N#H", "N#H1#H2", "N#^b", "#H", "#^b"]),
        ("![[N]] ![[p.png|100]]", ["N", "p.png"]),
        ("[a](N.md) [a](N%20x.md) [a](<N x.md>) [a](#H)", ["N.md", "N x.md", "N x.md", "#H"]),
        ("![a](p.png) [![a](p.png)](N.md)", ["p.png", "N.md", "p.png"]),
        ("[a](https://x.example/N.md) [a](mailto:a@b.c) [a](//h/N.md) [a](obsidian://open)", []),
        ("[a](C:\\N.md) [a]() [a](<>) [a](N x.md)", []),
        ("[[|]] [[|alias]] [[]] [[ ]]", ["|", "|alias"]),
        ("[[ N ]] [[ N # H | a ]]", ["N", "N# H"]),
        ("[[pa#th/N]]", ["pa#th/N"]),
        ("[[N||x]]", ["N"]),
        ("[[[N]]] [[N] [N]] [[a]b]] [[a[b]]", ["N"]),
        ("`[[N]]` ``[[N]]`` $[[N]]$ $$[[N]]$$ <!-- [[N]] -->", []),
        ("\\[[N]] <b title='[[N]]'> <https://x/[[N]]>", []),
        ("<div>\n[[N]]\n</div>", []),
        ("<!--\n[[N]]\n\n[[N]]\n-->\n[[M]]", ["M"]),
        ("$$\n[[N]]\n\n[[N]]\n$$\n\n[[M]]", ["M"]),
        ("%% [[N]] %%\n\n%%\n[[M]]\n%%", ["N", "M"]),
        ("It costs $5, or $6 [[N]] for $7", ["N"]),
        ("# [[A]] #\n\nB [[B]]\n===\n\n> [!note] [[C]]\n> - [ ] [[D]]\n", ["A", "B", "C", "D"]),
        ("1. [[A]]\n   - [[B]]\n\n\t\t[[C]]", ["A", "B", "C"]),
        ("[^1]: [[A]]\n\n    [[B]]\n", ["A", "B"]),
        ("[x]: [[A]]\n[x]: N.md\n[x]", []),
        ("a\u2028[[A]]\u0085[[B]]", ["A", "B"]),
        ("\ufeff[[A]]", ["A"]),
        (
            "text [a](N.md 'title') [a](N.md \"t\") [a](N.md (t)) [a](N\\(1\\).md)",
            ["N.md", "N.md", "N.md", "N(1).md"],
        ),
        ("$$a \\$$ [[N]]$$ [[M]] $a\\$ [[N]]$ [[O]] $a\\\\$ [[P]] $$$$ [[Q]]", ["M", "O", "P", "Q"]),
        ("[a](" + "(" * 32 + "x" + ")" * 32 + ")", ["(" * 32 + "x" + ")" * 32]),
        ("[a](" + "(" * 33 + "x" + ")" * 33 + ")", []),
        ("[a](N\\ x.md) [a](N\\", []),
        ("x <!--> [[N]] <!---> [[M]] <!-- [[O]]", ["N", "M", "O"]),
        ("<?x [[N]] ?> <?y [[M]]", []),
        ("x <?y [[N]] ?> <?z [[M]] x <![CDATA[ [[O]] ]]>", ["M"]),
        ("`a [[N]] ``b [[M]]", ["N", "M"]),
        (
            "[a](100%.md) [a](a%20b%.md) [a](%FF.md) [a](a&amp;b.md)",
            ["100%.md", "a%20b%.md", "%FF.md", "a&b.md"],
        ),
    ],
)
def test_links_are_those_that_obsidian_counts(text: str, found: list[str]) -> None:
    # `[x]: [[A]]` is a definition: CommonMark takes `[[A]]` for its address.
    assert paths_of(text) == found


def test_link_says_what_and_where_it_is() -> None:
    text = '---\nrelated:\n  - "[[A|x]]"\n---\n\nsee ![[B#H|y]] and [t](C%20d.md#H)\n'

    prop, embed, markdown = links.find(text)

    assert (prop.kind, prop.key, prop.alias, prop.line) == ("property", "related.0", "x", 3)
    assert (embed.kind, embed.anchor, embed.alias, embed.line) == ("embed", "#H", "y", 6)
    assert (markdown.kind, markdown.path, markdown.anchor, markdown.alias) == (
        "markdown",
        "C d.md",
        "#H",
        "t",
    )
    assert [text[link.start : link.end] for link in (prop, embed, markdown)] == [
        "[[A|x]]",
        "![[B#H|y]]",
        "[t](C%20d.md#H)",
    ]
    assert [text[slice(*link.spot)] for link in (prop, embed, markdown)] == ["A", "B", "C%20d.md"]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('a: "[[N]]"', [("a", "N")]),
        ("a: '[[it''s]]'", [("a", "it's")]),
        ('a: "[[caf\\u00e9]]"', [("a", "café")]),
        ('a:\n  - "[[N#H|x]]"\n  - plain\n  - "[[M]]"', [("a.0", "N#H"), ("a.2", "M")]),
        ('a: ["[[N]]", "[[M]]"]', [("a.0", "N"), ("a.1", "M")]),
        ('a:\n  b: "[[N]]"\n  c: [{d: "[[M]]"}]', [("a.b", "N"), ("a.c.0.d", "M")]),
        ("a: |-\n  [[N]]", [("a", "N")]),
        ("a: >-\n  [[N]]\nb: 1", [("a", "N")]),
        ('{"a": "[[N]]"}', [("a", "N")]),
        ('a: "\\x5b[N]]"\nb: "[[M]]"', [("a", "N"), ("b", "M")]),
        ('🧭: "🧭"\nb: "[[N]]"', [("b", "N")]),
        ('a: "x\u2028y"\nb: "[[N\u0085M]]"', [("b", "N\u0085M")]),
        ('a: &x "[[N]]"\nb: *x', [("a", "N")]),
        ('a: "see [[N]]"\nb: " [[N]]"\nc: "[[N]] "\nd: "![[N]]"\ne: "[[]]"', []),
        ("a: [[N]]", []),
        ('# "[[N]]"\n"[[N]]": 1', []),
        ('a: "[[N]]"\na: 2', []),
        ('a: "[[N]]"\nb: [1', []),
        ('- "[[N]]"', []),
        ('"[[N]]"', []),
        ('a: "[[N]]"\n...\nb: "[[M]]"', []),
        ('[x, y]: "[[N]]"\n? {a: b}\n: "[[M]]"', [("", "N"), ("", "M")]),
    ],
)
def test_property_links_are_whole_quoted_values(header: str, found: list[tuple[str, str]]) -> None:
    text = f"---\n{header}\n---\n[[Body]]\n"

    *properties, body = links.find(text)

    assert [(link.key, link.path + link.anchor) for link in properties] == found
    assert body.path == "Body"
    for link in properties:
        assert text[: link.start].count("\n") + 1 == link.line


def test_broken_header_hides_no_body_link() -> None:
    assert paths_of('---\na: "[[N]]\n---\n[[B]]') == ["B"]


def test_header_that_never_ends_is_body() -> None:
    assert paths_of('---\na: "[[N]]"\n') == ["N"]


@given(st.text(alphabet='-a: ["]\n\r\ufeff#\t', max_size=40))
@example("---\n---\n[[a]]")
@example("\ufeff---  \r\na: 1\r\n---\t\r\nb")
def test_body_begins_where_the_header_module_says(text: str) -> None:
    _, _, body = links.header_span(text)

    assert text[body:] == frontmatter.read(text).body


def test_links_without_quotes_are_known_fm_28() -> None:
    text = "---\nparent: [[Blue Whale]]\nalso: [[Smith, John]]\nn: [[1], [2]]\nq: [['x']]\n---\n"

    found = links.unquoted_links(text)

    assert [(item.key, item.name, item.line) for item in found] == [
        ("parent", "Blue Whale", 2),
        ("also", "Smith, John", 3),
    ]
    assert [text[item.start : item.end] for item in found] == ["[[Blue Whale]]", "[[Smith, John]]"]
    assert links.find(text) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("#a #b/c #d-e_f", ["a", "b/c", "d-e_f"]),
        ("#1 #1a #2026-11 #2026 #", ["1a", "2026-11"]),
        ("x#a (#b) [#c] [[N#d]] [[#e]]", []),
        ("`#a` $#b$ <!-- #c --> \\#d", []),
        ("```\n#a\n```\n    #b\n", []),
        ("# #head\n\n> #quote\n>#tight\n\n- #item", ["head", "quote", "tight", "item"]),
        ("%% #a %%", ["a"]),
        ("#über #日本 #🧭", ["über", "日本", "🧭"]),
        ("#a, #b. #c!", ["a", "b", "c"]),
        ("#a#b", ["a"]),
        ("---\ntags: [x]\n---\n#y", ["y"]),
    ],
)
def test_tags_are_those_that_obsidian_counts(text: str, names: list[str]) -> None:
    assert [tag.name for tag in links.tags(text)] == names


def test_tag_says_where_it_is() -> None:
    text = "a\n\nb #c/d e"

    (tag,) = links.tags(text)

    assert (text[tag.start : tag.end], tag.line) == ("#c/d", 3)


def test_headings_are_those_a_link_can_name() -> None:
    text = "---\na: 1\n---\n# A [[x]] #\n\nB\n---\n\n> # quoted\n\n```\n# code\n```\n   ### C\n#no\n"

    assert links.headings(text) == [
        (1, "A [[x]]", 13, 4),
        (2, "B", 26, 6),
        (3, "C", text.index("   ###"), 14),
    ]


def test_note_without_marks_has_no_headings() -> None:
    assert links.headings("plain\ntext") == []


def test_headings_of_an_odd_note_are_read_up_to_the_oddity_fs_11() -> None:
    assert [heading.text for heading in links.headings("# A\n" + "- " * 400_000 + "x\n\n# B\n")] == ["A"]


# ── Notes that are no prose: FS-11 ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "count", "cut"),
    [
        ("[" * 55_000, 0, False),
        ("[x](" * 150_000, 0, True),
        ("[x](" * 150_000 + ")", 0, True),
        ("[[b]] " * 120_000, 120_000, False),
        ("word " * 4_000_000, 0, False),
        ("[[a]] " + "word " * 4_000_000, 1, True),
        ("`" * 1_000_000, 0, False),
        ("a " + "`b" * 500_000 + " [[c]]", 0, True),
        ("x <!--" * 100_000 + "[[a]]", 1, False),
        ("<" * 900_000 + "[[a]]", 1, False),
        ("- " * 400_000 + "`[[a]]", 0, True),
        (("- " * 20 + "[[a]] `\n") * 20_000, 2_000, True),
        ("[[a]] `\n" + "- " * 60 + "[[b]]", 1, True),
        ("".join("  " * depth + "- [[a]] `\n" for depth in range(60)) + "\n[[b]]", 49, True),
        ("$$ a\n`[[b]]\n\n" * 8_000, 8_000, False),
        ("![" * 200_000 + "](a.png)" * 1000, 1, False),
        ("- `x` [[b]]\n" * 70_000, 70_000, False),
        ("- <i> [[b]]\n" * 70_000, 25_000, True),
        ("---\na: " + "[" * 90_000 + "\n---\n[[b]]", 1, False),
        ("---\na: '" + "[[" * 60_000 + "'\n---\n[[b]]", 1, True),
    ],
    ids=lambda value: f"{value[:8]}…" if isinstance(value, str) else None,
)
def test_enormous_note_is_read_or_cut_off_fs_11(text: str, count: int, cut: bool) -> None:
    scan = links.scan(text)

    assert (len(scan.links), scan.cut) == (count, cut)


def test_odd_brackets_are_given_up_after_a_fixed_number_of_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0
    real = inline.destination

    def counted(text: str, at: int) -> tuple[int, int, bool] | None:
        nonlocal tries
        tries += 1
        return real(text, at)

    monkeypatch.setattr(inline, "destination", counted)

    links.scan("[x](" * 150_000 + ")")

    assert tries <= inline.MOST_MISSES + 2


# ── Where a link leads ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("link", "source", "led"),
    [
        ("", "a/s.md", "a/s.md"),
        ("unique", "a/s.md", "deep/down/unique.md"),
        ("UNIQUE", "a/s.md", "deep/down/unique.md"),
        ("unique.md", "a/s.md", "deep/down/unique.md"),
        ("down/unique", "a/s.md", "deep/down/unique.md"),
        ("own/unique", "a/s.md", "deep/down/unique.md"),  # an ending needs no folder boundary
        ("other/unique", "a/s.md", None),
        ("twin", "a/s.md", "a/twin.md"),
        ("twin", "b/s.md", "b/twin.md"),
        ("twin", "c/s.md", "a/twin.md"),
        ("a/twin", "b/s.md", "a/twin.md"),
        ("/twin", "b/s.md", None),
        ("/b/twin", "a/s.md", "b/twin.md"),
        ("./twin", "b/s.md", "b/twin.md"),
        ("../a/twin", "b/s.md", "a/twin.md"),
        ("../../a/twin", "b/s.md", None),
        ("./unique", "a/s.md", None),
        ("root", "a/s.md", "root.md"),
        ("v1.2", "s.md", "v1.2.md"),
        ("v1", "s.md", None),
        ("p.png", "s.md", "x/p.png"),
        ("p", "s.md", None),
        ("dot.name", "s.md", "dot.name"),
        ("cafe\u0301", "s.md", "Café.md"),
        ("no\u00a0break", "s.md", "no break.md"),
        ("missing", "s.md", None),
        ("long/twin3", "s.md", "z/long/twin3.md"),
        ("twin3", "s.md", "y/twin3.md"),
    ],
)
def test_link_leads_where_obsidian_goes(link: str, source: str, led: str | None) -> None:
    files = ["deep/down/unique.md", "b/twin.md", "a/twin.md", "root.md", "v1.2.md", "x/p.png", "dot.name"]
    resolver = Resolver([*files, "dot.name.md", "Café.md", "no break.md", "z/long/twin3.md", "y/twin3.md"])

    assert resolver.resolve(link, source) == led


def test_full_path_wins_over_the_own_folder() -> None:
    resolver = Resolver(["a/n.md", "b/a/n.md"])

    assert resolver.resolve("a/n", "b/s.md") == "a/n.md"


def test_files_that_differ_in_case_only_are_told_apart_by_spelling() -> None:
    resolver = Resolver(["a/Plan.md", "a/plan.md"])

    assert [resolver.resolve(link, "s.md") for link in ("plan", "Plan", "a/plan", "PLAN")] == [
        "a/plan.md",
        "a/Plan.md",
        "a/plan.md",
        "a/Plan.md",
    ]


def test_ties_go_by_path_order_whatever_the_order_of_loading() -> None:
    paths = ["b/n.md", "a/n.md", "c/n.md"]

    assert [Resolver(order).resolve("n", "s.md") for order in (paths, paths[::-1])] == ["a/n.md", "a/n.md"]


names_ = st.sampled_from(["n", "N", "m", "n.x", "it's", "a (v2)", "100%25 b", "AT&amp;T", "é", "C", "n 2"])
folders = st.sampled_from(["", "a/", "b/", "ab/", "a/b/"])
files = st.builds("{}{}.md".format, folders, names_)
vaults = st.lists(files, min_size=1, max_size=7, unique=True)


@given(vaults, st.lists(files, max_size=5), files)
def test_resolver_kept_in_step_is_a_fresh_one(start: list[str], toggled: list[str], source: str) -> None:
    kept, now = Resolver(start), set(start)

    for path in toggled:
        (kept.remove if path in now else kept.add)(path)
        now ^= {path}

    fresh = Resolver(sorted(now))
    for link in ("n", "m", "a/n", "n.x", "b/n", "./n", "é", "/n"):
        assert kept.resolve(link, source) == fresh.resolve(link, source)
        assert kept.candidates(link) == fresh.candidates(link)
    assert len(kept) == len(now)
    assert all(path in kept for path in now)


def test_adding_or_removing_twice_changes_nothing() -> None:
    resolver = Resolver(["a/n.md", "a/n.md"])
    resolver.remove("b/n.md")

    assert (len(resolver), resolver.candidates("n")) == (1, ["a/n.md"])


@given(vaults, files)
def test_link_to_a_note_leads_to_it(paths: list[str], source: str) -> None:
    resolver = Resolver(paths)

    for path in paths:
        text = links.link_to(path, resolver, source)

        assert resolver.resolve(text, source) == path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a/one.md", "one"),
        ("a/two.md", "a/two"),
        ("p.png", "p.png"),
        ("v1.md", "v1"),
        ("v1.md.md", "v1.md.md"),
    ],
)
def test_link_to_a_note_is_short(path: str, text: str) -> None:
    resolver = Resolver(["a/one.md", "a/two.md", "b/two.md", "p.png", "v1.md", "q/v1.md", "v1.md.md"])

    assert links.link_to(path, resolver, "s.md") == text


@given(
    vaults,
    files,
    files.flatmap(lambda path: st.sampled_from([path, path[:-3], path.rpartition("/")[2][:-3]])),
)
def test_a_link_has_the_key_of_the_file_it_leads_to(paths: list[str], source: str, link: str) -> None:
    led = Resolver(paths).resolve(link, source)

    assert led is None or links.link_key(link) == links.link_key(led)


def test_link_to_a_note_that_is_not_there_is_its_path() -> None:
    assert links.link_to("a/gone.md", Resolver(), "s.md") == "a/gone.md"


@pytest.mark.parametrize(
    ("link", "link_key"),
    [
        ("N", "n"),
        ("f/N.md", "n"),
        ("v1.2", "v1.2"),
        ("p.PNG", "p.png"),
        ("", ""),
        ("./É", "é"),
        ("N.MD", "n"),
    ],
)
def test_link_and_file_share_a_key(link: str, link_key: str) -> None:
    assert links.link_key(link) == link_key


# ── What a move changes ──────────────────────────────────────────────────────────────────────────────────


def moved_text(text: str, paths: list[str], old: str, new: str, *, source: str = "s.md") -> tuple[str, int]:
    before = Resolver([*paths, source])
    return links.rewrite(
        text,
        old_source=source,
        new_source=new if source == old else source,
        before=before,
        after=before.after({old: new}),
        moved={old: new},
    )


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("[[Old]] ![[Old#H|a]] [[old#^b]]", "[[New]] ![[New#H|a]] [[New#^b]]"),
        ("[[ Old # H | a ]]", "[[ New # H | a ]]"),
        (
            "[[sub/Old]] [[/sub/Old]] [[./sub/Old]] [[Old.md]]",
            "[[sub/New]] [[/sub/New]] [[./sub/New]] [[New.md]]",
        ),
        ('[t](sub/Old.md#H "x") [t](<Old.md>)', '[t](sub/New.md#H "x") [t](<New.md>)'),
        ("`[[Old]]` [[Old]]", "`[[Old]]` [[New]]"),
        ("---\na: \"[[Old|x]]\"\nb: '[[sub/Old]]'\n---\n", "---\na: \"[[New|x]]\"\nb: '[[sub/New]]'\n---\n"),
        (
            "---\r\na: >-\r\n  [[Old]]\r\n---\r\n[[Old]]\r\n",
            "---\r\na: >-\r\n  [[New]]\r\n---\r\n[[New]]\r\n",
        ),
        ("> | [[Old\\|o]] |\n> |---|\n", "> | [[New\\|o]] |\n> |---|\n"),
    ],
)
def test_renamed_note_is_named_anew_and_nothing_else_changes(text: str, changed: str) -> None:
    assert moved_text(text, ["sub/Old.md"], "sub/Old.md", "sub/New.md")[0] == changed


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        ("it's", "a: '[[Old]]'", "a: '[[it''s]]'"),
        ("it's", 'a: "[[Old]]"', 'a: "[[it\'s]]"'),
        ('q"q', 'a: "[[Old]]"', 'a: "[[q\\"q]]"'),
        ("b", 'a: "[[\\u004fld#H|x]]"', 'a: "[[b#H|x]]"'),
    ],
)
def test_property_stays_quoted(name: str, text: str, changed: str) -> None:
    note = f"---\n{text}\n---\n"

    assert moved_text(note, ["Old.md"], "Old.md", f"{name}.md") == (f"---\n{changed}\n---\n", 1)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a b", "Old.md", "a%20b.md"),
        ("a (b)", "Old.md", "a%20%28b%29.md"),
        ("a (b)", "<Old.md>", "<a (b).md>"),
        ("100%41", "Old.md", "100%2541.md"),
        ("100%41", "<Old.md>", "<100%2541.md>"),
        ("a<b>", "<Old.md>", "<a%3Cb%3E.md>"),
        ("a#b", "Old.md", "a%23b.md"),
        ("c:d", "Old.md", "c%3Ad.md"),
        ("a&amp;b", "Old.md", "a%26amp;b.md"),
        ("é", "Old.md", "é.md"),
        ("a$b`c", "Old.md", "a%24b%60c.md"),
    ],
)
def test_markdown_link_stays_a_link_wl_16(name: str, old: str, new: str) -> None:
    assert moved_text(f"[t]({old})", ["Old.md"], "Old.md", f"{name}.md") == (f"[t]({new})", 1)


def test_markdown_link_that_encoded_its_letters_goes_on_doing_so() -> None:
    text, _ = moved_text("[t](caf%C3%A9.md)", ["café.md"], "café.md", "thé noir.md")

    assert text == "[t](th%C3%A9%20noir.md)"


def test_link_keeps_leading_to_the_old_place_of_a_taken_name() -> None:
    text, count = moved_text("[[n]]", ["a/n.md", "b/m.md"], "b/m.md", "n.md")

    assert (text, count) == ("[[a/n]]", 1)


def test_note_that_moves_takes_its_relative_links_along() -> None:
    text, count = moved_text(
        "[[./x]] [t](../y.md) [[x]]", ["a/x.md", "y.md"], "a/s.md", "b/c/s.md", source="a/s.md"
    )

    assert (text, count) == ("[[../../a/x]] [t](../../y.md) [[x]]", 2)


def test_part_of_a_path_stays_a_part_of_it() -> None:
    assert moved_text("[[sub/Old]]", ["a/sub/Old.md"], "a/sub/Old.md", "b/sub/New.md") == ("[[sub/New]]", 1)


def test_relative_link_goes_up_no_further_than_it_must() -> None:
    text, count = moved_text("[[../x]]", ["a/x.md"], "a/x.md", "a/c/y.md", source="a/b/s.md")

    assert (text, count) == ("[[../c/y]]", 1)


def test_note_that_moves_keeps_its_own_twin() -> None:
    text, count = moved_text("[[n]]", ["a/n.md", "b/n.md"], "a/s.md", "b/s.md", source="a/s.md")

    assert (text, count) == ("[[a/n]]", 1)


def test_link_to_itself_follows_a_rename() -> None:
    assert moved_text("[[s]] [[#H]]", [], "s.md", "t.md", source="s.md") == ("[[t]] [[#H]]", 1)


def test_link_that_led_nowhere_is_left_alone() -> None:
    assert moved_text("[[gone]] [[New]]", ["Old.md"], "Old.md", "New.md") == ("[[gone]] [[New]]", 0)


def test_link_that_no_text_could_keep_is_left_alone() -> None:
    assert moved_text("[[Old]]", ["Old.md"], "Old.md", "A # B.md") == ("[[Old]]", 0)


def test_name_that_would_open_math_is_not_written_where_it_would() -> None:
    text, count = moved_text("costs $5 [[Old]]\n\n[[Old]]", ["Old.md"], "Old.md", "US$ rates.md")

    assert (text, count) == ("costs $5 [[Old]]\n\n[[US$ rates]]", 1)


def test_case_of_a_link_is_left_when_only_the_case_of_the_file_changes_fs_02() -> None:
    assert moved_text("[[HowTo]]", ["HowTo.md"], "HowTo.md", "howto.md") == ("[[HowTo]]", 0)


def test_unquoted_property_link_follows_a_rename_fm_28() -> None:
    note = "---\nparent: [[Blue Whale]]\nalso: [[Smith, John]]\nn: 1\n---\n"

    text, count = moved_text(note, ["Blue Whale.md", "Smith.md"], "Blue Whale.md", "Fin Whale.md")

    assert text == note.replace("Blue Whale", "Fin Whale")
    assert count == 1


def test_unquoted_property_link_never_means_a_part_of_it_fm_28() -> None:
    note = "---\nalso: [[Smith, John]]\n---\n"

    assert moved_text(note, ["Smith.md"], "Smith.md", "Jones.md") == (note, 0)


def test_unquoted_property_link_is_left_when_yaml_would_misread_the_name() -> None:
    note = "---\na: [[Old]]\n---\n"

    assert moved_text(note, ["Old.md"], "Old.md", "{x}.md") == (note, 0)


def test_text_behind_the_cut_is_left_as_it_is() -> None:
    text = "[[Old]] <i>\n" * (linkscan.MOST_LINES + 10)

    changed, count = moved_text(text, ["Old.md"], "Old.md", "New.md")

    assert count == linkscan.MOST_LINES
    assert changed == "[[New]] <i>\n" * count + "[[Old]] <i>\n" * 10


def _forms(path: str) -> list[str]:
    stem = path.removesuffix(".md")
    name = stem.rpartition("/")[2]
    coded = linktext.encode(path, "", angled=False)
    return [
        f"[[{name}]]",
        f"![[{name.upper()}#H|a]]",
        f"[[{stem}|x]]",
        f"[[/{stem}#^b]]",
        f"[[./{name}]]",
        f"[[../{stem}.md]]",
        f"[t]({coded})",
        f"[t](<{name}.md> 't')",
        f"| [[{name}\\|c]] |\n|---|\n",
    ]


bodies = st.lists(
    st.one_of(
        files.flatmap(lambda path: st.sampled_from(_forms(path))),
        st.sampled_from(["word ", "\n\n", "\n- ", "`[[n]]`", "> "]),
    ),
    max_size=10,
).map(" ".join)
headers = st.one_of(
    st.just(""),
    st.builds(
        "---\na: \"[[{}]]\"\nb: ['[[{}|x]]', c]\n---\n".format,
        names_,
        names_.map(lambda name: name.replace("'", "''")),
    ),
)


@given(st.builds("{}{}".format, headers, bodies), vaults, st.data())
def test_every_link_leads_where_it_led_and_nothing_else_changes(
    text: str, paths: list[str], data: st.DataObject
) -> None:
    source = data.draw(st.sampled_from([*paths, "s.md"]))
    old = data.draw(st.sampled_from(paths))
    new = data.draw(files)
    assume(new not in paths)
    before = Resolver({*paths, source})
    after = before.after({old: new})
    new_source = new if source == old else source

    changed, count = links.rewrite(
        text, old_source=source, new_source=new_source, before=before, after=after, moved={old: new}
    )

    was, now = links.find(text), links.find(changed)
    assert len(was) == len(now)
    touched = 0
    for one, other in zip(was, now, strict=True):
        led = before.resolve(one.path, source) if one.path else None
        if led is None:
            assert other.path == one.path
            continue
        leads = new if led == old else led
        assert after.resolve(other.path, new_source) == leads
        if after.resolve(one.path, new_source) == leads:
            assert other.path == one.path
        touched += other.path != one.path
    assert count == touched
    assert _without_spots(changed) == _without_spots(text)


def _without_spots(text: str) -> str:
    for link in reversed(links.find(text)):
        text = text[: link.spot[0]] + text[link.spot[1] :]
    return text


@pytest.mark.parametrize(
    ("text", "new", "left"),
    [
        ("[[Old]]\n", "New.md", ()),
        ("first\n\na lone ` and [[Old]]\n", "tick`s.md", (3,)),  # its mark would begin code
        ("a lone ` and [[Old]]\n\n[[Old]]\n", "tick`s.md", (1,)),  # the other paragraph has none
        ("---\nup: [[Old]]\n---\n[[Old]]\n", "B]x.md", (2, 4)),
        ("[[None]]\n", "New.md", ()),
    ],
)
def test_a_link_that_no_text_can_keep_true_is_named_by_its_line(
    text: str, new: str, left: tuple[int, ...]
) -> None:
    before = Resolver(["Old.md", "a.md"])
    moved = {"Old.md": new}

    done = links.rewritten(
        text, old_source="a.md", new_source="a.md", before=before, after=before.after(moved), moved=moved
    )

    assert done.left == left
    assert not done.cut


def test_a_note_that_is_not_read_to_its_end_is_said_to_be_cut() -> None:
    before = Resolver(["Old.md", "a.md"])
    moved = {"Old.md": "New.md"}

    done = links.rewritten(
        "[[Old]]\n" + "> text\n" * (linkscan.MOST_LINES + 1) + "<b>\n[[Old]]\n",
        old_source="a.md",
        new_source="a.md",
        before=before,
        after=before.after(moved),
        moved=moved,
    )

    assert done.text.startswith("[[New]]\n")
    assert (done.changed, done.left, done.cut) == (1, (), True)


def test_a_property_without_quotes_is_kept_true_when_another_note_takes_its_name() -> None:
    """FM-28 meets WL-09: the name is given to a note that is nearer, and the property means the old one."""
    before = Resolver(["b/Old.md", "a/New.md", "a/x.md"])
    moved = {"a/New.md": "a/Old.md"}

    text, changed = links.rewrite(
        "---\nup: [[Old]]\n---\n",
        old_source="a/x.md",
        new_source="a/x.md",
        before=before,
        after=before.after(moved),
        moved=moved,
    )

    assert (text, changed) == ("---\nup: [[b/Old]]\n---\n", 1)
