"""Comparing marks: what is new, edited, gone, and what cannot be believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.changes import Changes, Mark, believable, compare

_MARKS = st.builds(Mark, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
_FILES = st.dictionaries(st.sampled_from(["a.md", "b.md", "c/d.md", "e.png"]), _MARKS)


@given(known=_FILES, found=_FILES)
def test_every_path_falls_in_exactly_one_group(known: dict[str, Mark], found: dict[str, Mark]) -> None:
    changes = compare(known, found)

    named = [*changes.added, *changes.modified, *changes.removed]
    assert len(named) == len(set(named))
    assert len(named) + changes.unchanged == len(set(known) | set(found))
    assert set(changes.added) == set(found) - set(known)
    assert set(changes.removed) == set(known) - set(found)
    assert all(known[path] != found[path] for path in changes.modified)


@given(files=_FILES)
def test_nothing_is_left_to_do_when_all_marks_are_equal(files: dict[str, Mark]) -> None:
    changes = compare(files, dict(files))

    assert not changes
    assert changes.unchanged == len(files)


@pytest.mark.parametrize("field", ["size", "mtime_ns", "inode", "changed_ns"])
def test_a_difference_in_any_part_of_the_mark_is_a_modification(field: str) -> None:
    before = {"size": 1, "mtime_ns": 2, "inode": 3, "changed_ns": 4}
    after = before | {field: 9}

    changes = compare({"n.md": Mark(**before)}, {"n.md": Mark(**after)})

    assert changes.modified == ("n.md",)


def test_fs_17_an_edit_of_equal_length_with_the_old_time_put_back_is_seen(tmp_path: Path) -> None:
    """FS-17. The old change time is made certain with a value of its own, so that no timer tick decides."""
    note = tmp_path / "n.md"
    note.write_text("aaaa")
    stat = note.stat()
    known = {"n.md": Mark(stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns - 1)}
    note.write_text("bbbb")
    os.utime(note, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    changes = compare(known, {"n.md": Mark.of(note.stat())})

    assert note.stat().st_mtime_ns == stat.st_mtime_ns
    assert changes.modified == ("n.md",)


def test_fs_17_a_restored_file_with_an_older_time_is_seen(tmp_path: Path) -> None:
    note = tmp_path / "n.md"
    note.write_text("aaaa")
    known = {"n.md": Mark.of(note.stat())}
    os.utime(note, (1_000_000, 1_000_000))

    changes = compare(known, {"n.md": Mark.of(note.stat())})

    assert changes.modified == ("n.md",)


@pytest.mark.parametrize(
    ("changes", "known", "expected"),
    [
        (Changes(), 0, True),
        (Changes(added=("a",)), 0, True),
        (Changes(removed=("a",)), 1, False),
        (Changes(removed=("a", "b")), 2, False),
        (Changes(removed=("a",), unchanged=1), 2, True),
        (Changes(removed=("a",), modified=("b",)), 2, True),
        (Changes(removed=("a", "b"), added=("c",)), 2, True),
    ],
)
def test_that_everything_is_gone_at_once_is_not_believed(
    changes: Changes, known: int, expected: bool
) -> None:
    assert believable(changes, known) is expected
