"""The journal's block is a page of tables that no reason or name can break out of."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.journalnote import MOST, Line, block
from vault_palace.core.links import find
from vault_palace.core.mapnote import BEGIN, END, with_block

HEAD = "| Time | What | Note | Why | Session | Operation |\n| --- | --- | --- | --- | --- | --- |\n"
NOON = datetime(2031, 3, 1, 12)


def test_nothing_done_is_said() -> None:
    assert block([]) == "Nothing was done yet.\n"


def test_each_day_has_its_table_newest_first() -> None:
    lines = [
        Line(at=NOON, verb="append", link="[[Pump]]", why="asked to", session="cli", op="ab12"),
        Line(at=NOON - timedelta(days=1), verb="archive", name="Gone", others=2, op="cd34"),
    ]

    assert block(lines).split("\n\n") == [
        "### 2031-03-01",
        f"{HEAD}| 12:00 | append | [[Pump]] | asked to | cli | ab12 |",
        "### 2031-02-28",
        f"{HEAD}| 12:00 | archive | Gone and 2 more |  |  | cd34 |",
        "To take one back: `vault-palace undo OPERATION`.\n",
    ]


TEXT = st.text(max_size=200) | st.sampled_from(
    [BEGIN, END, "| a", "[[x]]", "`", "<script>", "%%", "\n# h", "<% tp %>", "`= 1`", "$$", "![[x]]", "a:: b"]
)


@given(st.lists(st.builds(Line, at=st.just(NOON), verb=TEXT, name=TEXT, why=TEXT, session=TEXT, op=TEXT)))
def test_no_text_breaks_out_of_its_row(lines: list[Line]) -> None:
    made = block(lines)

    rows = [row for row in made.split("\n") if row.startswith("| 12:00")]
    assert len(rows) == min(len(lines), MOST)
    assert len(made.splitlines()) <= 8 + len(rows)
    assert find(made) == []
    assert "%%" not in made
    assert with_block(with_block("# Journal\n", made), made) == with_block("# Journal\n", made)
