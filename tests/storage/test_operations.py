"""Operations are all done or all undone, killed anywhere, and never over a person's words."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.storage.killpoints import (
    Aborted,
    Fuse,
    Stop,
    every_abort_point,
    every_failure_point,
    every_kill_point,
    lit,
)
from tests.storage.palace import NOW, House, everything, notes, operation, pen
from vault_palace.core.errors import Exists, NoteChanged, NotFound, StorageFailed
from vault_palace.storage import files
from vault_palace.storage.operations import UPKEEP, Operation, Step, carry_out, open_operations, recover
from vault_palace.storage.records import Entry, Trace

HUB, NEW_HUB = "01_Shallow/ideas/Hub.md", "02_Sediment/ideas/Wheel.md"
REFERRERS = tuple(f"01_Shallow/Referrer {n}.md" for n in (1, 2, 3))


@dataclass(frozen=True)
class Case:
    """An operation with the vault before and after it."""

    name: str
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    steps: tuple[Step, ...]

    @property
    def op(self) -> Operation:
        return operation(*self.steps)


def _linking(target: str) -> bytes:
    return f"see [[{target}]]\n".encode()


CREATE = Case(
    "create",
    {},
    {HUB: b"fresh\n"},
    (Step(kind="put", path=HUB, after=b"fresh\n"),),
)
REPLACE = Case(
    "replace",
    {HUB: b"old words\n"},
    {HUB: b"new words\n"},
    (Step(kind="put", path=HUB, before=b"old words\n", after=b"new words\n"),),
)
PLAIN_MOVE = Case(
    "move",
    {HUB: b"hub\n"},
    {NEW_HUB: b"hub\n"},
    (Step(kind="move", path=HUB, to=NEW_HUB, before=b"hub\n"),),
)
PATCHED_MOVE = Case(
    "move with patch",
    {HUB: b"layer: shallow\n"},
    {NEW_HUB: b"layer: sediment\n"},
    (Step(kind="move", path=HUB, to=NEW_HUB, before=b"layer: shallow\n", after=b"layer: sediment\n"),),
)
RENAME = Case(
    "move with three referrers",
    {HUB: b"layer: shallow\n", **dict.fromkeys(REFERRERS, _linking("Hub"))},
    {NEW_HUB: b"layer: sediment\n", **dict.fromkeys(REFERRERS, _linking("Wheel"))},
    (
        Step(kind="move", path=HUB, to=NEW_HUB, before=b"layer: shallow\n", after=b"layer: sediment\n"),
        *(Step(kind="put", path=path, before=_linking("Hub"), after=_linking("Wheel")) for path in REFERRERS),
    ),
)
REMOVE = Case("remove", {HUB: b"gone soon\n"}, {}, (Step(kind="remove", path=HUB, before=b"gone soon\n"),))
CASE_ONLY = Case(
    "change of case",
    {HUB: b"hub\n"},
    {"01_Shallow/ideas/HUB.md": b"hub, patched\n"},
    (Step(kind="move", path=HUB, to="01_Shallow/ideas/HUB.md", before=b"hub\n", after=b"hub, patched\n"),),
)
CASES = (CREATE, REPLACE, PLAIN_MOVE, PATCHED_MOVE, RENAME, REMOVE, CASE_ONLY)
BY_NAME = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
SLOW_DISK = pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "no exchange"])


def _act(case: Case) -> Callable[[Path], object]:
    return lambda root: carry_out(*House(root).parts, case.op)


def _no_exchange(patch: pytest.MonkeyPatch) -> None:
    """A file system that can neither exchange two names nor rename without replacing."""

    def refuse(src: Path, dst: Path, flags: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    patch.setattr(files, "_renameat2", refuse)


def _whole(case: Case) -> Callable[[Path, Stop | None], None]:
    """After recovery the vault is as before or as after, and recovering again changes nothing."""

    def check(root: Path, stop: Stop | None) -> None:
        recover(*House(root).parts)

        assert notes(root) in (dict(case.before), dict(case.after)), stop
        assert stop is not None or notes(root) == case.after
        house = House(root)
        assert house.journal.unfinished() == []
        assert house.journal.problems() == [] or stop is not None
        seen = everything(root)
        assert recover(*house.parts) == []
        assert everything(root) == seen

    return check


@BY_NAME
@SLOW_DISK
def test_an_operation_killed_at_any_call_is_all_done_or_all_undone(
    case: Case, exchange: bool, memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-03"""
    if not exchange:
        _no_exchange(monkeypatch)

    stops = every_kill_point(
        memory_path, pen(case.before), _act(case), _whole(case), modes=("before", "after", "half")
    )

    assert stops > 20


@BY_NAME
@SLOW_DISK
def test_an_operation_aborted_at_any_call_is_all_done_or_all_undone(
    case: Case, exchange: bool, memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        _no_exchange(monkeypatch)

    stops = every_abort_point(memory_path, pen(case.before), _act(case), _whole(case))

    assert stops > 8


@BY_NAME
@SLOW_DISK
def test_a_call_that_fails_leaves_the_vault_whole_at_once(
    case: Case, exchange: bool, memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        _no_exchange(monkeypatch)

    def check(root: Path, stop: Stop | None) -> None:
        left = {
            path: data for path, data in notes(root).items() if not files.is_temp(path.rpartition("/")[2])
        }
        assert left in (dict(case.before), dict(case.after)) or House(root).journal.unfinished(), stop
        _whole(case)(root, stop)

    stops = every_failure_point(memory_path, pen(case.before), _act(case), check)

    assert stops > 8


@BY_NAME
def test_recovery_itself_may_be_killed_at_any_call(case: Case, memory_path: Path) -> None:
    """RC-03: running recovery again finishes what the killed recovery began."""

    def half_done(root: Path) -> None:
        pen(case.before)(root)
        _stop_after(root, case, "renameat2")

    def act(root: Path) -> object:
        return recover(*House(root).parts)

    every_kill_point(memory_path, half_done, act, _whole(case))


def _stop_after(root: Path, case: Case, call: str) -> None:
    """Leave the operation as a kill right after its first call of that name leaves it."""
    blown: list[str] = []

    class Breaking(Fuse):
        def wrap(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
            def wrapped(*args: object, **more: object) -> object:
                if blown:
                    raise Aborted
                result = real(*args, **more)
                if name == call:
                    blown.append(name)
                    raise Aborted
                return result

            return wrapped

    with lit(Breaking(0, lambda name: None)), pytest.raises(Aborted):
        carry_out(*House(root).parts, case.op)


@pytest.mark.parametrize("case", [CREATE, REPLACE, PATCHED_MOVE], ids=lambda case: case.name)
def test_what_an_operation_wrote_outlasts_a_person_s_stale_save(case: Case, tmp_path: Path) -> None:
    pen(case.before)(tmp_path)
    house = House(tmp_path)

    carry_out(*house.parts, case.op)

    for data in case.after.values():
        assert house.versions.get(files.fingerprint(data)) == data


@pytest.mark.parametrize("verb", sorted(UPKEEP))
def test_the_bytes_that_upkeep_wrote_are_not_kept(verb: str, tmp_path: Path) -> None:
    pen(REPLACE.before)(tmp_path)
    house = House(tmp_path)

    carry_out(*house.parts, operation(*REPLACE.steps, verb=verb))

    assert house.versions.has(files.fingerprint(b"old words\n"))
    assert not house.versions.has(files.fingerprint(b"new words\n"))


# -- a person between the kill and the recovery -------------------------------------------------------------


def _edits(root: Path, path: str) -> Callable[[], bool]:
    place = root / path
    place.write_bytes(b"what the person wrote meanwhile\n")
    return lambda: place.read_bytes() == b"what the person wrote meanwhile\n"


def _deletes(root: Path, path: str) -> Callable[[], bool]:
    place = root / path
    place.unlink(missing_ok=True)
    return lambda: not place.exists()


def _renames(root: Path, path: str) -> Callable[[], bool]:
    place, elsewhere = root / path, root / "03_Bedrock" / "Named by the person.md"
    if not place.exists():
        return lambda: True
    data = place.read_bytes()
    place.rename(elsewhere)
    return lambda: elsewhere.read_bytes() == data and not place.exists()


@BY_NAME
@pytest.mark.parametrize("person", [_edits, _deletes, _renames], ids=["edits", "deletes", "renames"])
@pytest.mark.parametrize("where", [0, -1], ids=["first note", "last note"])
def test_what_a_person_did_after_the_kill_stays(
    case: Case, person: Callable[[Path, str], Callable[[], bool]], where: int, memory_path: Path
) -> None:
    """RC-05"""
    step = case.steps[where]

    def check(root: Path, stop: Stop | None) -> None:
        path = step.to if step.to and (root / step.to).exists() else step.path
        unfinished = House(root).journal.unfinished()
        there = (root / path).exists()
        holds = person(root, path)

        found = recover(*House(root).parts)

        assert holds() or not there, (stop, notes(root))
        assert len(found) == len(unfinished)
        assert not any(files.is_temp(Path(left).name) for left in notes(root))
        assert recover(*House(root).parts) == []
        for path, data in notes(root).items():
            known = {case.before.get(path), case.after.get(path)}
            assert data in known or person in (_edits, _renames), (stop, path, data)

    every_kill_point(memory_path, pen(case.before), _act(case), check, modes=("after",))


@pytest.mark.parametrize("call", ["fdatasync", "renameat2"], ids=["before the swap", "after the swap"])
def test_a_replaced_note_that_a_person_edited_since_is_superseded(tmp_path: Path, call: str) -> None:
    """RC-05: the person's third version stays, and the program's second one is kept."""
    pen(REPLACE.before)(tmp_path)
    _stop_after(tmp_path, REPLACE, call)
    (tmp_path / HUB).write_bytes(b"v3\n")
    house = House(tmp_path)

    (found,) = recover(*house.parts)

    assert found.status == "superseded"
    assert HUB in found.detail
    assert notes(tmp_path) == {HUB: b"v3\n"}
    if call == "fdatasync":
        assert house.versions.get(files.fingerprint(b"new words\n")) == b"new words\n"
    assert house.versions.get(files.fingerprint(b"old words\n")) == b"old words\n"
    assert house.journal.entries()[0].state == "superseded"


def test_referrers_follow_a_hub_that_a_person_already_edits_at_its_new_place(tmp_path: Path) -> None:
    pen(RENAME.before)(tmp_path)
    _stop_after(tmp_path, RENAME, "renameat2")  # moved, nothing else
    (tmp_path / NEW_HUB).write_bytes(b"the person goes on here\n")

    (found,) = recover(*House(tmp_path).parts)

    assert found.status == "superseded"
    assert notes(tmp_path) == {**RENAME.after, NEW_HUB: b"the person goes on here\n"}


def test_a_hub_goes_back_when_a_person_edited_a_referrer_that_was_not_reached(tmp_path: Path) -> None:
    pen(RENAME.before)(tmp_path)
    _stop_after(tmp_path, RENAME, "renameat2")
    (tmp_path / REFERRERS[1]).write_bytes(b"see [[Hub]], as I said\n")

    (found,) = recover(*House(tmp_path).parts)

    assert found.status == "superseded"
    assert notes(tmp_path) == {**RENAME.before, REFERRERS[1]: b"see [[Hub]], as I said\n"}


def test_a_save_between_the_check_and_the_swap_gets_its_place_back_after_a_kill(tmp_path: Path) -> None:
    """RC-05: the kill came before the swapped-out bytes were looked at."""
    pen({HUB: b"saved in between\n"})(tmp_path)
    house = House(tmp_path)
    staged = files.stage(tmp_path / HUB, b"new words\n")
    _begin(house, REPLACE, staged)
    files._renameat2(staged, tmp_path / HUB, files._EXCHANGE)

    (found,) = recover(*house.parts)

    assert found.status == "superseded"
    assert notes(tmp_path) == {HUB: b"saved in between\n"}
    assert house.versions.get(files.fingerprint(b"new words\n")) == b"new words\n"


def test_a_newer_save_wins_over_the_one_that_was_swapped_out(tmp_path: Path) -> None:
    pen({HUB: b"third and newest\n"})(tmp_path)
    house = House(tmp_path)
    staged = files.stage(tmp_path / HUB, b"second\n")
    _begin(house, REPLACE, staged)

    (found,) = recover(*house.parts)

    assert found.status == "superseded"
    assert notes(tmp_path) == {HUB: b"third and newest\n"}
    assert house.versions.get(files.fingerprint(b"second\n")) == b"second\n"


def _begin(house: House, case: Case, staged: Path) -> None:

    (step,) = case.steps
    trace = Trace(
        kind=step.kind,
        path=step.path,
        before=files.fingerprint(step.before or b""),
        after=files.fingerprint(step.after or b""),
        staged=house.vault.rel(staged),
    )
    house.journal.begin(Entry(op="op-1", verb="write", at=NOW, steps=(trace,)))


# -- refusals -----------------------------------------------------------------------------------------------


def test_a_note_that_differs_from_what_the_change_was_made_from_is_refused(tmp_path: Path) -> None:
    pen({HUB: b"newer\n"})(tmp_path)

    with pytest.raises(NoteChanged) as caught:
        carry_out(*House(tmp_path).parts, REPLACE.op)

    assert caught.value.facts["path"] == HUB
    assert notes(tmp_path) == {HUB: b"newer\n"}


def test_creating_over_a_note_is_refused(tmp_path: Path) -> None:
    pen({HUB: b"mine\n"})(tmp_path)

    with pytest.raises(Exists):
        carry_out(*House(tmp_path).parts, CREATE.op)

    assert notes(tmp_path) == {HUB: b"mine\n"}


def test_moving_onto_a_note_is_refused(tmp_path: Path) -> None:
    """RC-03: a different file at the target is never overwritten."""
    pen({**PATCHED_MOVE.before, NEW_HUB: b"mine\n"})(tmp_path)

    with pytest.raises(Exists):
        carry_out(*House(tmp_path).parts, PATCHED_MOVE.op)

    assert notes(tmp_path) == {**PATCHED_MOVE.before, NEW_HUB: b"mine\n"}


def test_a_file_that_appears_at_the_target_after_a_kill_is_never_overwritten(tmp_path: Path) -> None:
    """RC-03"""
    pen(PATCHED_MOVE.before)(tmp_path)
    _stop_after(tmp_path, PATCHED_MOVE, "fdatasync")
    (tmp_path / NEW_HUB).write_bytes(b"mine\n")

    (found,) = recover(*House(tmp_path).parts)

    assert found.status == "superseded"
    assert notes(tmp_path) == {**PATCHED_MOVE.before, NEW_HUB: b"mine\n"}


def test_an_operation_that_changes_nothing_leaves_no_trace(tmp_path: Path) -> None:
    pen({HUB: b"same\n"})(tmp_path)
    seen = everything(tmp_path)

    held = carry_out(
        *House(tmp_path).parts, operation(Step(kind="put", path=HUB, before=b"same\n", after=b"same\n"))
    )

    assert held == {}
    assert everything(tmp_path) == seen


@BY_NAME
def test_the_answer_holds_what_the_disk_holds(case: Case, tmp_path: Path) -> None:
    pen(case.before)(tmp_path)
    house = House(tmp_path)

    held = carry_out(*house.parts, case.op)

    assert {path: stored.data for path, stored in held.items()} == case.after
    assert held == {path: house.vault.read(path) for path in held}


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_save_during_the_operation_undoes_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    """RC-02, RC-12: the step that meets a person's save stops, and the steps before it are undone."""
    pen(RENAME.before)(tmp_path)
    busy = tmp_path / REFERRERS[taken - 1]
    real = files.put

    def saving(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        if target == busy:
            busy.write_bytes(b"saved just now\n")
        return real(staged, target, expect=expect)

    monkeypatch.setattr(files, "put", saving)
    house = House(tmp_path)

    with pytest.raises(NoteChanged):
        carry_out(*house.parts, RENAME.op)

    assert notes(tmp_path) == {**RENAME.before, REFERRERS[taken - 1]: b"saved just now\n"}
    assert house.journal.unfinished() == []
    assert house.journal.entries()[0].state == "superseded"


def test_a_save_during_the_move_stays_where_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen(PLAIN_MOVE.before)(tmp_path)
    real = files.rename_new

    def saving(src: Path, dst: Path) -> None:
        if src.name == "Hub.md":
            src.write_bytes(b"saved just now\n")
        real(src, dst)

    monkeypatch.setattr(files, "rename_new", saving)

    with pytest.raises(NoteChanged):
        carry_out(*House(tmp_path).parts, PLAIN_MOVE.op)

    assert notes(tmp_path) == {HUB: b"saved just now\n"}


def test_a_target_taken_between_the_look_and_the_move_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen(PATCHED_MOVE.before)(tmp_path)
    house = House(tmp_path)
    real = house.journal.begin

    def taking(entry: object) -> None:
        real(entry)  # type: ignore[arg-type]
        (tmp_path / NEW_HUB).write_bytes(b"mine\n")

    monkeypatch.setattr(house.journal, "begin", taking)

    with pytest.raises(Exists):
        carry_out(*house.parts, PATCHED_MOVE.op)

    assert notes(tmp_path) == {**PATCHED_MOVE.before, NEW_HUB: b"mine\n"}
    assert house.journal.unfinished() == []


# -- what cannot be decided ---------------------------------------------------------------------------------


def test_what_cannot_be_undone_stays_open_and_is_reported(tmp_path: Path) -> None:
    """The version to go back to is missing, so nobody may guess."""
    pen(RENAME.before)(tmp_path)
    _stop_after(tmp_path, RENAME, "renameat2")
    for temporary in (tmp_path / "01_Shallow").glob(".*.tmp"):
        temporary.unlink()  # nothing to go forward with
    (tmp_path / HUB).parent.rmdir()
    (tmp_path / HUB).parent.write_bytes(b"a file where the room was\n")  # and nowhere to go back to
    house = House(tmp_path)

    (found,) = recover(*house.parts)

    assert found.status == "open"
    assert [problem.code for problem in open_operations(house.journal)] == ["open_operation"]
    seen = everything(tmp_path)
    assert [again.status for again in recover(*house.parts)] == ["open"]
    assert everything(tmp_path) == seen


def test_an_open_operation_is_finished_once_it_can_be(tmp_path: Path) -> None:
    test_what_cannot_be_undone_stays_open_and_is_reported(tmp_path)
    (tmp_path / HUB).parent.unlink()

    (found,) = recover(*House(tmp_path).parts)

    assert found.status == "undone"
    assert notes(tmp_path) == RENAME.before


def test_a_missing_version_leaves_a_half_done_operation_open(tmp_path: Path) -> None:
    pen(RENAME.before)(tmp_path)
    _stop_after(tmp_path, RENAME, "unlink")  # the hub is moved and patched
    house = House(tmp_path)
    house.versions.forget(files.fingerprint(RENAME.before[HUB]))
    (tmp_path / REFERRERS[0]).write_bytes(b"edited\n")

    (found,) = recover(*house.parts)

    assert found.status == "open"
    assert "no longer kept" in found.detail
    with pytest.raises(NotFound):
        house.versions.get(files.fingerprint(RENAME.before[HUB]))


# -- storage that refuses -----------------------------------------------------------------------------------


def test_a_target_on_another_device_is_copied_before_the_old_name_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-03"""
    pen(PATCHED_MOVE.before)(tmp_path)
    _other_device(monkeypatch)

    carry_out(*House(tmp_path).parts, PATCHED_MOVE.op)

    assert notes(tmp_path) == PATCHED_MOVE.after


@pytest.mark.parametrize("case", [PLAIN_MOVE, PATCHED_MOVE], ids=lambda case: case.name)
def test_a_move_to_another_device_killed_at_any_call_is_all_done_or_all_undone(
    case: Case, memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-03"""
    _other_device(monkeypatch)

    stops = every_kill_point(memory_path, pen(case.before), _act(case), _whole(case))

    assert stops > 20


def test_an_old_name_that_cannot_be_removed_takes_the_copy_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-03: the delete fails with EACCES."""
    pen(PLAIN_MOVE.before)(tmp_path)
    _other_device(monkeypatch)
    real = files._renameat2

    def refuse(src: Path, dst: Path, flags: int) -> None:
        if src.name == "Hub.md":
            raise OSError(errno.EXDEV if dst.parent != src.parent else errno.EACCES, "refused")
        real(src, dst, flags)

    monkeypatch.setattr(files, "_renameat2", refuse)
    house = House(tmp_path)

    with pytest.raises(StorageFailed) as caught:
        carry_out(*house.parts, PLAIN_MOVE.op)

    assert caught.value.facts["reason"] == "no permission"
    assert notes(tmp_path) == PLAIN_MOVE.before
    assert house.journal.entries()[0].state == "undone"


def _other_device(patch: pytest.MonkeyPatch) -> None:
    real = files._renameat2

    def across(src: Path, dst: Path, flags: int) -> None:
        if src.parent != dst.parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(src, dst, flags)

    patch.setattr(files, "_renameat2", across)


# -- odd moments --------------------------------------------------------------------------------------------


def test_a_save_while_an_operation_is_undone_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = REFERRERS[:2]
    pen({first: b"one\n", second: b"two\n"})(tmp_path)
    real = files.put
    puts: list[str] = []

    def saving(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        puts.append(target.name)
        if target == tmp_path / second or puts.count(target.name) == 2:
            target.write_bytes(b"saved just now\n")
        return real(staged, target, expect=expect)

    monkeypatch.setattr(files, "put", saving)
    house = House(tmp_path)
    op = operation(
        Step(kind="put", path=first, before=b"one\n", after=b"ONE\n"),
        Step(kind="put", path=second, before=b"two\n", after=b"TWO\n"),
    )

    with pytest.raises(NoteChanged):
        carry_out(*house.parts, op)
    (found,) = recover(*house.parts)

    assert found.status == "superseded"
    assert notes(tmp_path) == {first: b"saved just now\n", second: b"saved just now\n"}


def test_a_save_right_after_the_swap_shows_as_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer's mark is that of what was written, so a comparison finds the person's save."""
    pen(REPLACE.before)(tmp_path)
    real = files.put

    def saving(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        replaced = real(staged, target, expect=expect)
        target.write_bytes(b"saved just now\n")
        return replaced

    monkeypatch.setattr(files, "put", saving)
    house = House(tmp_path)

    held = carry_out(*house.parts, REPLACE.op)

    assert held[HUB].data == b"new words\n"
    assert held[HUB].mark != house.vault.mark(HUB)
    assert notes(tmp_path) == {HUB: b"saved just now\n"}


def test_a_record_without_its_fingerprints_is_left_open(tmp_path: Path) -> None:

    pen({NEW_HUB: b"mine\n"})(tmp_path)
    house = House(tmp_path)
    trace = Trace(kind="move", path=HUB, to="02_Sediment/x.md", after=files.fingerprint(b"x"))
    house.journal.begin(Entry(op="odd", verb="move", at=NOW, steps=(trace,)))

    (found,) = recover(*house.parts)

    assert found.status == "open"
    assert "lacks what its step needs" in found.detail
    assert notes(tmp_path) == {NEW_HUB: b"mine\n"}


def test_a_record_without_steps_is_closed(tmp_path: Path) -> None:

    house = House(tmp_path)
    house.journal.begin(Entry(op="empty", verb="metabolize", at=NOW))

    (found,) = recover(*house.parts)

    assert (found.status, found.path) == ("finished", "")


def test_leftovers_may_stay_when_only_the_journal_is_to_be_recovered(tmp_path: Path) -> None:
    pen({HUB: b"hub\n"})(tmp_path)
    left = files.stage(tmp_path / HUB, b"nobody's\n")

    recover(*House(tmp_path).parts, sweep=False)
    assert left.exists()
    recover(*House(tmp_path).parts)

    assert not left.exists()
    assert House(tmp_path).versions.get(files.fingerprint(b"nobody's\n")) == b"nobody's\n"


def test_an_error_about_another_place_keeps_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pen(REPLACE.before)(tmp_path)

    def refuse(*args: object, **more: object) -> None:
        raise StorageFailed("refused", path="/elsewhere/x", reason="no permission")

    monkeypatch.setattr(files, "stage", refuse)

    with pytest.raises(StorageFailed) as caught:
        carry_out(*House(tmp_path).parts, REPLACE.op)

    assert caught.value.facts["path"] == "/elsewhere/x"
