"""Setting properties touches their own lines only, keeps what a person wrote around them, or refuses."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from vault_palace.core.errors import InvalidArguments, MalformedNote
from vault_palace.core.frontmatter import DELETE, Change, compose, patch, read
from vault_palace.core.model import Value
from vault_palace.core.yamltext import as_read

# How a person may write one property; `{k}` is its name. Each ends before the next one's line.
FORMS = [
    "{k}: plain words",
    "{k}:   spaced   # a comment",
    "{k}: 0.25",
    "{k} : 5",
    "{k}:\t'tab before'",
    "{k}: 'single # no comment'   # a comment",
    '{k}: "double: \\u2028 \\" x"',
    '"{k}": quoted name',
    "'{k}': [1, two]",
    "{k}: 2026-11-30T12:00:00",
    "{k}: no",
    "{k}: [a, 'b, c', 3] # a comment",
    "{k}: {{x: 1, y: [2, {{z: 3}}]}}",
    "{k}: [a,\n  # inner comment\n  b] # a comment",
    "{k}:",
    "{k}: ",
    "{k}: # only a comment",
    "{k}: ~ # null",
    "{k}: ''",
    "{k}:\n  - a\n  - b # why b\n  # inner comment\n  - c",
    '{k}: # head\n- zero\n- "indent"',
    "{k}:\n    -   wide\n    -\n    - # later\n    - 7",
    "{k}:\n  - - nested\n    - list\n  - x: 1\n    y: 2",
    "{k}:\n  nested: 1\n  # inner comment\n  deep:\n    - x",
    "{k}: |\n  literal\n\n  # no comment",
    "{k}: |2- # a comment\n    deeper\n  less",
    "{k}: >-\n  folded\n  words\n",
    "{k}: |+\n  kept\n\n",
    '{k}: "two\n  lines" # a comment',
    "{k}: plain that\n  goes on",
    "{k}:\n  below # a comment",
    "{k}: # head\n  # inner comment\n  below\n  that goes on",
    "{k}: !!str 5",
    "{k}: !mine [x]",
    "{k}: \u00e9\u00df \u65e5\u672c \U0001f469\u200d\U0001f4bb",
    "{k}: a\u2028b\u0085c\x0cd\x1de",
    "{k}: [[Name]]",
    '{k}: "[[Name]]"',
]
LINKED = ["{k}: &{k}_x [a]\n{k}_alias: *{k}_x", "&{k}_x {k}: 1\n{k}_alias: *{k}_x"]
FILLERS = ["", "# a comment", "#tight: 1", "   ", "# --- no fence"]
NAMES = ["id", "density", "tags", "created", "my key", "on", "\u00fcber", "x-1", "1"]


@dataclass(frozen=True)
class Written:
    """A note as a person wrote it: its header cut into blocks, of which `at` holds the property `name`."""

    bom: str
    eol: str
    blocks: list[str]
    at: int
    name: str
    linked: bool
    tail: str

    def text(self) -> str:
        return self.before + self._in_eol(self.blocks[self.at] + "\n") + self.after

    @property
    def before(self) -> str:
        return self.bom + self._in_eol("---\n" + "".join(block + "\n" for block in self.blocks[: self.at]))

    @property
    def after(self) -> str:
        return self._in_eol("".join(block + "\n" for block in self.blocks[self.at + 1 :])) + self.tail

    def _in_eol(self, text: str) -> str:
        return text.replace("\n", self.eol)


@st.composite
def written(draw: st.DrawFn) -> Written:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    target = draw(st.integers(0, len(names) - 1))
    blocks: list[str] = []
    at, linked = 0, False
    for number, name in enumerate(names):
        blocks += draw(st.lists(st.sampled_from(FILLERS), max_size=2))
        form = (
            draw(st.sampled_from(FORMS + LINKED))
            if name in ("id", "density", "tags")
            else draw(st.sampled_from(FORMS))
        )
        if number == target:
            at, linked = len(blocks), form in LINKED
        blocks.append(form.format(k=name))
    blocks += draw(st.lists(st.sampled_from(FILLERS), max_size=2))
    eol = draw(st.sampled_from(["\n", "\r\n"]))
    body = draw(st.sampled_from(["", "body", "body\n", "---\nx: 1\n---\n", "\n# H\r\n"]))
    tail = "---" if not body else f"---{eol}{body}"
    return Written(draw(st.sampled_from(["", "\ufeff"])), eol, blocks, at, names[target], linked, tail)


texts = st.text(max_size=20) | st.sampled_from(
    ["", "no", "a: b", "# x", "- x", "2026-11-30", "[[X]]", "it's", "1e3"]
)
values: st.SearchStrategy[Value] = (
    texts
    | st.integers(-(10**18), 10**18)
    | st.floats(-1000, 1000)
    | st.booleans()
    | st.none()
    | st.lists(texts | st.integers(0, 9), max_size=4)
)


@given(written(), values)
def test_setting_a_property_changes_its_own_lines_only(note: Written, value: Value) -> None:
    text = note.text()
    unchanged = read(text)
    if note.linked:
        with pytest.raises(MalformedNote):
            patch(text, {note.name: value})
        return

    patched = patch(text, {note.name: value})

    header = read(patched)
    assert patched.startswith(note.before)
    assert patched.endswith(note.after)
    assert header.values[note.name] == as_read(value)
    assert {n: v for n, v in header.values.items() if n != note.name} == {
        n: v for n, v in unchanged.values.items() if n != note.name
    }
    assert header.body == unchanged.body
    own = patched[len(note.before) : len(patched) - len(note.after)]
    assert own.count("\n") == own.count(note.eol)


@given(written())
def test_removing_a_property_leaves_nothing_but_its_comments(note: Written) -> None:
    # Blank lines behind it may join a block text before it: then refused, see the table below.
    assume(not any(sign in block for block in note.blocks[: note.at] for sign in (": |", ": >")))
    text = note.text()
    if note.linked:
        with pytest.raises(MalformedNote):
            patch(text, {note.name: DELETE})
        return

    patched = patch(text, {note.name: DELETE})

    own = patched[len(note.before) : len(patched) - len(note.after)]
    assert patched.startswith(note.before)
    assert patched.endswith(note.after)
    assert note.name not in read(patched).values
    assert all(not line.strip() or line.startswith("#") for line in own.split("\n"))


@given(written(), values)
def test_a_new_property_comes_last(note: Written, value: Value) -> None:
    text = note.text()
    head = text.removesuffix(note.tail)

    patched = patch(text, {"fresh": value})

    assert patched.startswith(head)
    assert patched.endswith(note.tail)
    assert list(read(patched).values) == [*read(text).values, "fresh"]
    added = patched[len(head) : len(patched) - len(note.tail)]
    assert added.startswith("fresh:")
    assert added.count("\n") == added.count(note.eol)


@given(written())
def test_setting_what_is_there_already_changes_no_byte(note: Written) -> None:
    text = note.text()
    present: dict[str, Change] = {n: v for n, v in read(text).values.items() if as_read(v) == v}

    assert patch(text, present) == text


@given(written(), st.dictionaries(st.sampled_from(NAMES), values, max_size=4))
def test_several_properties_at_once_are_as_good_as_one_by_one(
    note: Written, changes: dict[str, Change]
) -> None:
    text = note.text()
    try:
        step_by_step = text
        for name, value in changes.items():
            step_by_step = patch(step_by_step, {name: value})
    except MalformedNote:
        with pytest.raises(MalformedNote):
            patch(text, changes)
        return

    assert patch(text, changes) == step_by_step


@given(
    st.text(alphabet=st.sampled_from("ab:- \n#'\"[]{},&*|>?\t0.~\r"), max_size=40),
    st.sampled_from(["a", "b", "c"]),
    values,
)
def test_any_header_is_edited_rightly_or_not_at_all(inner: str, name: str, value: Value) -> None:
    text = f"---\n{inner}\n---\nbody"
    before = read(text)
    try:
        patched = patch(text, {name: value})
    except MalformedNote:
        return

    after = read(patched)
    others = {n: v for n, v in before.values.items() if n != name}
    assert after.values[name] == as_read(value)
    assert repr({n: v for n, v in after.values.items() if n != name}) == repr(others)
    assert after.body == before.body
    # Not a comment is lost either, but for those behind an item that went away.
    comments = [line for line in inner.split("\n") if line.startswith("#")]
    assert [line for line in comments if line not in patched.split("\n")] == []


@given(written(), st.lists(st.sampled_from(["a", "b", "c", "d", "no"]), unique=True, max_size=5))
def test_what_was_written_reads_alike_in_other_readers(note: Written, tags: list[str]) -> None:
    plain = f"---\n# mine\nx: y\ntags: # t\n  - a # why\n  # then\n  - c\n---\n{note.tail}"

    patched = patch(plain, {"tags": [*tags], "density": 0.5})

    block = patched.split("---\n")[1]
    wanted = {"x": "y", "tags": tags, "density": 0.5}
    assert yaml.safe_load(block) == wanted
    assert YAML(typ="safe", pure=True).load(StringIO(block)) == wanted
    assert all(comment in patched for comment in ("# mine", "# t", "# then"))


@pytest.mark.parametrize(
    ("header", "changes", "edited"),
    [
        ("a: 1   # keep\n", {"a": 2}, "a: 2   # keep\n"),
        ("a:    1\n", {"a": 2}, "a:    2\n"),
        ("a: 1\n", {"a": None}, "a:\n"),
        ("a: 1 # c\n", {"a": None}, "a: # c\n"),
        ("a: # c\n", {"a": "x"}, "a: x # c\n"),
        ("a:  \n", {"a": "x"}, "a: x\n"),
        ("a: 1 # c\n", {"a": ["x"]}, "a: # c\n  - x\n"),
        ("a: [x, y] # c\n", {"a": ["x", "z"]}, "a: # c\n  - x\n  - z\n"),
        ("a: [x, y]\n", {"a": ["x", "y"]}, "a: [x, y]\n"),
        ("a: [x]\n", {"a": []}, "a: []\n"),
        ("a:\n  - x\n  # c\n  - y\n", {"a": "z"}, "a: z\n# c\n"),
        ("a:\n- x\n- y # why\n", {"a": ["y", "z"]}, "a:\n- y # why\n- z\n"),
        ("a:\n- x\n", {"a": ["w", "x"]}, "a:\n- w\n- x\n"),
        ("a:\n- x\n- y\n", {"a": ["z"]}, "a:\n- z\n"),
        ("a:\n\n  - x\n\n  - y\n", {"a": ["y"]}, "a:\n\n\n  - y\n"),
        ("a:\n  -\n  - # later\n  - x\n", {"a": ["x", "z"]}, "a:\n  # later\n  - x\n  - z\n"),
        ("a:\n  - x\n  # end\nb: 1\n", {"a": ["x", "z"]}, "a:\n  - x\n  - z\n  # end\nb: 1\n"),
        ("a:\n  - x\n\n# of b\nb: 1\n", {"a": 1}, "a: 1\n\n# of b\nb: 1\n"),
        ("a: |\n  x\n  # y\n\nb: 1\n", {"a": "z"}, "a: z\n\nb: 1\n"),
        ("a: |- # c\n  x\nb: 1\n", {"a": "z"}, "a: z # c\nb: 1\n"),
        ("a: 'x\n\n  y' # c\nb: 1\n", {"a": "z"}, "a: z # c\nb: 1\n"),
        ("a: # one\n  'x\n  y' # two\nb: 1\n", {"a": "z"}, "a: z # one\n# two\nb: 1\n"),
        ("a: [x, # one\n  y]\nb: 1\n", {"a": 1}, "a: 1\nb: 1\n"),
        ("a: 1\nb: 2\n", {"a": DELETE}, "b: 2\n"),
        ("a: 1\n", {"a": DELETE}, ""),
        ("a: 1\n", {"b": DELETE}, "a: 1\n"),
        ("a: 1\n", {"c": 3, "b": 2}, "a: 1\nc: 3\nb: 2\n"),
        ("a: 1\n\n", {"b": 2}, "a: 1\n\nb: 2\n"),
        ("  a: 1\n", {"b": [2], "a": 3}, "  a: 3\n  b:\n    - 2\n"),
        ("# c\n", {"b": 2}, "# c\nb: 2\n"),
        ("", {"b": 2}, "b: 2\n"),
        ("a: 1.0\n", {"a": 1}, "a: 1.0\n"),
        ("a: 0.20\n", {"a": 0.2}, "a: 0.20\n"),
        ("a: 1\n", {"a": True}, "a: true\n"),
        ("a: 1\n", {"a": "1"}, 'a: "1"\n'),
        ("a: '2026-11-30T12:00:00'\n", {"a": "2026-11-30T12:00:00"}, "a: '2026-11-30T12:00:00'\n"),
        ("a: &x 1\nb: *x\nc: 2\n", {"c": 3, "a": 1}, "a: &x 1\nb: *x\nc: 3\n"),
        ("? a\n: 1\nb: 2\n", {"b": 3}, "? a\n: 1\nb: 3\n"),
        ("{a: 1}\n", {"a": 1}, "{a: 1}\n"),
    ],
)
def test_a_property_is_edited_within_its_lines(header: str, changes: dict[str, Change], edited: str) -> None:
    assert patch(f"---\n{header}---\nbody", changes) == f"---\n{edited}---\nbody"


@pytest.mark.parametrize(
    ("text", "patched"),
    [
        ("hello\n", "---\nk: 1\n---\nhello\n"),
        ("hello", "---\nk: 1\n---\nhello"),
        ("a\r\nb\r\n", "---\r\nk: 1\r\n---\r\na\r\nb\r\n"),
        ("\ufeff# H\n", "\ufeff---\nk: 1\n---\n# H\n"),
        ("", "---\nk: 1\n---\n"),
        ("---\n", "---\nk: 1\n---\n---\n"),
        ("---\n\nrule\n", "---\nk: 1\n---\n---\n\nrule\n"),
        ("\n\n---\na: 1\n---\n", "---\nk: 1\n---\n\n\n---\na: 1\n---\n"),
        ("---\n---\nb", "---\nk: 1\n---\nb"),
        ("---\r\n---\r\nb", "---\r\nk: 1\r\n---\r\nb"),
        ("---\na: 1\n---", "---\na: 1\nk: 1\n---"),
        ("--- \na: 1\n--- \nb", "--- \na: 1\nk: 1\n--- \nb"),
    ],
)
def test_a_note_has_one_header_afterwards(text: str, patched: str) -> None:
    assert patch(text, {"k": 1}) == patched


@pytest.mark.parametrize("text", ["hello\n", "", "---\n\nrule\n", "\ufeff"])
def test_nothing_to_write_adds_no_header(text: str) -> None:
    changes: list[dict[str, Change]] = [{}, {"a": DELETE}]

    assert [patch(text, change) for change in changes] == [text, text]


@pytest.mark.parametrize(
    ("header", "name", "line"),
    [
        ("a: b: c\n", "k", 2),
        ("x: 1\nx: 2\n", "k", 3),
        ("- a\n", "k", 2),
        ("x: 1\n<<<<<<< a\n", "k", 3),
        ("x: 1\na: &x 1\n", "a", 3),
        ("x: &x 1\na: [*x]\n", "a", 3),
        ("x: 1\n? a\n: 1\n", "a", 3),
        ("{a: 1}\n", "a", 2),
        ("x: 1\n? >\n  long\n: 1\n", "long\n", 3),
    ],
)
@pytest.mark.parametrize("change", ["new", ["new"], DELETE])
def test_what_cannot_be_edited_safely_is_refused_with_its_line(
    header: str, name: str, line: int, change: Change
) -> None:
    with pytest.raises(MalformedNote) as caught:
        patch(f"---\n{header}---\n", {name: change})

    assert caught.value.facts["line"] == line
    assert f"line {line}" in str(caught.value)


@pytest.mark.parametrize(
    ("header", "changes"),
    [
        ("{a: 1}\n", {"k": 1}),
        ("a: 1\n...\n", {"k": 1}),  # nothing may follow the end of a document
        ("b: |+\n  x\n\na: 1\n\n\n", {"a": DELETE}),  # the blank lines behind would become part of b
    ],
)
def test_an_edit_that_would_change_more_than_asked_is_refused(
    header: str, changes: dict[str, Change]
) -> None:
    with pytest.raises(MalformedNote):
        patch(f"---\n{header}---\n", changes)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "half \ud800", ["half \ud800"]])
def test_a_value_that_no_file_can_hold_is_refused(value: Value) -> None:
    with pytest.raises(InvalidArguments):
        patch("---\na: 1\n---\n", {"a": value})


@pytest.mark.parametrize(
    "wrong",
    [
        "a: 4\nb: 2\n",  # not what was asked
        "a: '3'\nb: 2\n",  # another type
        "a: 3\n",  # a property lost
        "a: 3\nb: 3\n",  # another property changed
        "a: 3\nb: '2'\n",  # another property's type changed
        "b: 2\na: 3\nc: 1\n",  # one more than asked
        "b: 2\n",  # the asked one lost
        "a: 3\nb: 2\n---\n",  # the header closed early
        "a: 3: 4\nb: 2\n",  # no longer readable
    ],
)
def test_an_edit_gone_wrong_is_caught_by_reading_it_again(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vault_palace.core.frontmatter.edit", lambda *_, **__: wrong)

    with pytest.raises(MalformedNote):
        patch("---\na: 1\nb: 2\n---\nbody", {"a": 3})


def test_a_removal_gone_wrong_is_caught_by_reading_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vault_palace.core.frontmatter.edit", lambda *_, **__: "a: 1 # still here\n")

    with pytest.raises(MalformedNote):
        patch("---\na: 1\n---\nbody", {"a": DELETE})


@pytest.mark.parametrize("header", ["a: [x]#y\n", "a: {x: 1}#y\n"])
def test_a_value_with_something_unclear_behind_it_is_refused(header: str) -> None:
    with pytest.raises(MalformedNote):
        patch(f"---\n{header}---\n", {"a": 1})


@pytest.mark.parametrize(
    ("header", "edited"),
    [
        ("a: !!seq\n  - x\n", "a: !!seq\n  - x\n  - z\n"),
        ("a:\n  - - x\n", "a:\n  - x\n  - z\n"),
        ("a:\n  - x: 1\n    w: 2 # c\n  - x\n", "a:\n  - x\n  - z\n"),
        ("a:\n  -\n    x\n  # c\n", "a:\n  - x\n  - z\n  # c\n"),
        ("a:\n  - |\n    x\n    # in\n  - x\n", "a:\n  - x\n  - z\n"),
    ],
)
def test_a_list_of_odd_items_is_edited_item_by_item(header: str, edited: str) -> None:
    assert patch(f"---\n{header}---\n", {"a": ["x", "z"]}) == f"---\n{edited}---\n"


# -- dates for readers that choke on dates ------------------------------------------------------------------


def test_dates_are_quoted_for_a_reader_that_chokes_on_dates() -> None:
    text = "---\nlast_touched: 2026-04-21\nsource_session: a\n---\nbody\n"

    after = patch(
        text,
        {"last_touched": "2026-04-22T10:00:00", "decays_on": "2026-05-01", "layer": "shallow", "streak": 2},
        bare_dates=False,
    )

    assert after == (
        '---\nlast_touched: "2026-04-22T10:00:00"\nsource_session: a\n'
        'decays_on: "2026-05-01"\nlayer: shallow\nstreak: 2\n---\nbody\n'
    )


def test_a_new_note_has_quoted_dates_for_a_reader_that_chokes_on_dates() -> None:
    after = compose({"created": "2026-04-22T10:00:00", "streak": 0}, "body\n", bare_dates=False)

    assert after == '---\ncreated: "2026-04-22T10:00:00"\nstreak: 0\n---\nbody\n'
