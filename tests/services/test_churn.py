"""No loops, no churn: what other programs do to a vault causes few writes, counted, and then rest (SPEC §7).

The scenarios are those of `scripts.bench.churn`, on few notes. Every count here is the whole of what the
program wrote, as the disk and the journal both tell it.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.bench import churn
from scripts.bench.churn import Stage
from tests.services.keeping import snapshot
from vault_palace.core import places
from vault_palace.core.errors import VaultError
from vault_palace.services.palace import Palace, PalaceSettings

NewStage = Callable[..., Stage]


@pytest.fixture
def new_stage(memory_path: Path) -> Iterator[NewStage]:
    """Stages that are closed at the end."""
    made: list[Stage] = []

    def make(*, keepers: int = 1) -> Stage:
        made.append(Stage(memory_path / str(len(made)), keepers=keepers))
        return made[-1]

    yield make
    for stage in made:
        stage.close()


@pytest.fixture
def stage(new_stage: NewStage) -> Stage:
    return new_stage()


def play(scenario: Callable[[Stage, int], None], stage: Stage, count: int) -> None:
    """Act it out; what the machine has not is named and skipped."""
    try:
        scenario(stage, count)
    except churn.MissingError as missing:
        pytest.skip(str(missing))


def ids(stage: Stage) -> dict[str, str]:
    """Every id in the layers with the note that has it."""
    found: dict[str, str] = {}
    for place in sorted(stage.root.glob("0*/**/*.md")):
        path = str(place.relative_to(stage.root))
        name = str(stage.person.says(path).get("id", path))
        assert name not in found, f"{path} has the id of {found[name]}"
        found[name] = path
    return found


def index_of(palace: Palace) -> dict[str, tuple[object, ...]]:
    """What a search could find, by path."""
    palace.house.refresh(if_older=0)
    ask = palace.house.shelf.ask
    notes = list(ask(lambda cache: list(cache.notes())))
    assert len({note.path for note in notes}) == len(notes)
    return {
        note.path: (note.id, note.kind, note.fingerprint, note.body_hash, note.title, sorted(note.links))
        for note in notes
        if places.kind(note.path) in ("memory", "archived")
    }


def beside(stage: Stage, name: str = "another") -> Palace:
    """A palace of its own process, with a cache that knows nothing."""
    settings = PalaceSettings(
        cache_dir=stage.folder / name,
        state_dir=stage.folder / f"{name} state",
        session=name,
        clock=stage.clock,
        sleep=stage.clock.sleep,
    )
    palace = Palace.open(stage.root, settings=settings)
    stage.palaces.append(palace)
    return palace


# -- the counting itself -------------------------------------------------------------------------------------


def test_what_the_disk_tells_is_what_the_journal_tells(stage: Stage) -> None:
    """Were something written that no journal line accounts for, none of the counts below would say it."""
    churn.copied_in(stage, 30)

    assert set(stage.tally.seen) == set(stage.tally.told)
    assert stage.tally.notes.total() == sum(stage.tally.seen[path] for path in stage.tally.notes)


# -- nothing happens -----------------------------------------------------------------------------------------


def test_an_idle_hour_writes_no_byte_nor_time_nor_journal_line(stage: Stage) -> None:
    stage.begin(60)
    everything = {place: place.read_bytes() for place in stage.root.rglob("*") if place.is_file()}
    before = snapshot(stage.root)

    stage.run(3600, every=60)

    assert snapshot(stage.root) == before
    assert {place: place.read_bytes() for place in stage.root.rglob("*") if place.is_file()} == everything
    assert stage.tally.lines == 0


def test_keepers_that_start_again_and_again_write_nothing(new_stage: NewStage) -> None:
    stage = new_stage(keepers=2)
    stage.begin(40)
    before = snapshot(stage.root)

    for _ in range(3):
        stage.close()
        stage.open()
        stage.rest()

    assert snapshot(stage.root) == before
    assert stage.tally.lines == 0


@pytest.mark.parametrize("edited", [1, 30])
def test_what_a_person_edited_is_told_once_however_often_a_keeper_starts(stage: Stage, edited: int) -> None:
    """One note by hand, or many by a tool; each agent's session starts a keeper of its own."""
    paths = stage.begin(40)
    for path in paths[:edited]:
        stage.person.edits(path, "density: ", "mine: yes\ndensity: ")
    stage.rest()
    before = snapshot(stage.root)
    stage.count_from_now()

    for _ in range(3):
        stage.close()
        stage.open()
        stage.rest()
        stage.later(minutes=20)
        stage.rest()

    assert stage.tally.verbs["edited"] == 0
    assert snapshot(stage.root) == before


# -- two keepers ---------------------------------------------------------------------------------------------


def test_two_keepers_that_start_at_once_write_each_note_once(new_stage: NewStage) -> None:
    """The lease forbids it; when it fails, nothing is written twice all the same."""
    stage = new_stage(keepers=2)

    churn.two_keepers(stage, 60)

    assert stage.tally.notes.total() == 30
    assert set(stage.tally.notes.values()) == {1}
    assert stage.tally.maps == 1
    assert len(ids(stage)) == 60


# -- other programs' headers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dumped", [churn.redumped_by_ruamel, churn.redumped_by_npm])
def test_headers_that_another_library_wrote_anew_are_left(
    stage: Stage, dumped: Callable[[Stage, int], None]
) -> None:
    """What is told of it is one line for all."""
    play(dumped, stage, 30)

    assert not stage.tally.notes
    assert stage.tally.maps <= 1
    assert stage.tally.lines <= 6


def test_a_header_in_obsidian_s_own_words_is_left(stage: Stage) -> None:
    """Comments lost, a flow list as a block list, quotes changed, keys in another order."""
    (path, *_) = stage.begin(10)
    header, body = stage.person.reads(path)[4:].split("---\n", 1)
    stage.person.writes(path, f"---\n# mine\naliases: [One, 'Two: three']\n{header}---\n{body}")
    stage.rest()
    stage.count_from_now()

    lines = [line.replace("'", '"') for line in header.splitlines() if not line.startswith(("tags", "  - "))]
    again = "\n".join([*reversed(lines), "tags:\n  - apollo", 'aliases:\n  - "One"\n  - "Two: three"'])
    stage.person.writes(path, f"---\n{again}\n---\n{body}")
    stage.rest()

    assert stage.person.reads(path) == f"---\n{again}\n---\n{body}"
    assert not stage.tally.notes


@pytest.mark.parametrize("key", ["modified", "date updated"])
def test_wt_03_a_formatter_with_a_date_of_its_own_meets_no_answer(stage: Stage, key: str) -> None:
    """The edit of a note touched today is no new use, so there is nothing for us to write."""
    (path, *_) = stage.begin(20)
    stage.palaces[0].read(path=path)
    stage.rest()
    other = churn.Formatter(stage, lambda text, now: churn.with_line(text, key, now))
    stage.after_step = other.look
    stage.count_from_now()

    stage.person.edits(path, ".\n", ". And more.\n")
    stage.run(60, every=1)

    assert not stage.tally.notes
    assert other.writes <= 3  # the note's, and those of what we generate
    assert stage.tally.told.total() <= 3


def test_wt_03_an_edit_that_is_a_use_is_written_once_beside_a_formatter(stage: Stage) -> None:
    churn.formatter(stage, 20)

    assert list(stage.tally.notes.values()) == [1]
    assert stage.tally.maps <= 2


def test_a_formatter_that_dates_what_we_generate_too_comes_to_rest(stage: Stage) -> None:
    """Its line stands outside our markers in the map and in the journal note: none of our business."""
    stage.begin(10)
    other = churn.Formatter(stage, lambda text, now: churn.with_line(text, "modified", now))
    stage.after_step = other.look
    stage.person.writes("01_Shallow/New.md", "# New\n\nWords.\n")

    stage.run(120, every=1)
    stage.run(900, every=10)  # its edit of the note is told once the note has not changed for a while
    stage.count_from_now()
    written = other.writes
    stage.run(3600, every=30)

    assert "modified: " in stage.person.reads("PALACE_MAP.md")
    assert other.writes == written
    assert stage.tally.lines == 0


# -- the brake -----------------------------------------------------------------------------------------------


def test_a_program_that_takes_our_lines_out_is_left_to_it_after_few_rounds(stage: Stage) -> None:
    churn.quarrel(stage, 10)

    assert stage.tally.notes.total() == 5
    assert [problem.code for problem in stage.palaces[0].house.quarrels.values()] == ["quarrel"]


def test_a_quarrel_is_named_by_health_and_map(stage: Stage) -> None:
    churn.quarrel(stage, 10)
    (path,) = stage.palaces[0].house.quarrels

    problems = stage.palaces[0].health()["problems"]

    assert [problem["path"] for problem in problems if problem["code"] == "quarrel"] == [path]


def test_a_program_that_puts_the_same_bytes_back_each_time_is_left_to_it_too(stage: Stage) -> None:
    churn.quarrel_of_few_words(stage, 10)

    assert stage.tally.notes.total() <= 6
    assert [problem.code for problem in stage.palaces[0].house.quarrels.values()] == ["quarrel"]


# -- git, sync tools, folders --------------------------------------------------------------------------------


def test_wt_05_a_checkout_of_200_other_texts_and_back_touches_no_note(stage: Stage) -> None:
    """So many texts at once are nobody's use."""
    play(churn.checkout, stage, 200)

    assert not stage.tally.notes
    assert stage.tally.maps <= 2
    assert stage.tally.lines <= 12


def test_wt_05_a_checkout_of_200_new_notes_gives_each_its_properties_once(stage: Stage) -> None:
    play(churn.checkout_of_new, stage, 200)

    assert stage.tally.notes.total() == 200
    assert set(stage.tally.notes.values()) == {1}
    assert stage.tally.maps <= 3
    assert len(ids(stage)) == 250


def test_a_sync_tool_s_temporary_files_give_each_note_one_write(stage: Stage) -> None:
    churn.synced(stage, 30)

    assert stage.tally.notes.total() == 30
    assert set(stage.tally.notes.values()) == {1}
    assert stage.tally.maps <= 45  # the notes come during a quarter of a minute, each is shown at once


def by_copy(source: Path, goal: Path) -> None:
    shutil.copytree(source, goal)


def by_move(source: Path, goal: Path) -> None:
    source.rename(goal)


def by_unzip(source: Path, goal: Path) -> None:
    archive = shutil.make_archive(str(source), "zip", source)
    zipfile.ZipFile(archive).extractall(goal)


@pytest.mark.parametrize("bring", [by_copy, by_move, by_unzip])
def test_wt_05_a_folder_that_comes_full_is_taken_in_once(
    stage: Stage, bring: Callable[[Path, Path], None]
) -> None:
    """The event names the folder alone."""
    stage.begin(10)
    churn.pack(stage.folder / "pack", 30)

    bring(stage.folder / "pack", stage.root / "01_Shallow/pack")
    stage.stamp_new()
    stage.step(["01_Shallow/pack"])
    found = stage.palaces[0].search("gneissword", limit=50)
    stage.rest()

    assert len(found["matches"]) == 30
    assert stage.tally.notes.total() == 30
    assert set(stage.tally.notes.values()) == {1}
    assert stage.tally.maps <= 3


def test_wt_05_an_edit_deep_in_a_new_folder_is_seen(stage: Stage) -> None:
    churn.copied_in(stage, 30)
    path = "01_Shallow/pack/deep/deeper/Packed 0002.md"

    stage.person.edits(path, "gneissword", "schistword")
    stage.step([path])

    assert [match["path"] for match in stage.palaces[0].search("schistword")["matches"]] == [path]


# -- a vault that goes and comes back (WT-08) ----------------------------------------------------------------


@pytest.mark.parametrize("gone", [churn.unmounted, churn.layer_unmounted])
def test_wt_08_a_disk_that_went_and_came_back_changes_nothing(
    stage: Stage, gone: Callable[[Stage, int], None]
) -> None:
    stage.begin(40)
    before, known = snapshot(stage.root), ids(stage)
    stage.close()

    gone(stage, 0)

    assert snapshot(stage.root) == before
    assert ids(stage) == known
    assert stage.tally.lines == 0


def test_wt_08_nothing_is_made_in_an_empty_folder_at_the_vault_s_place(stage: Stage) -> None:
    stage.begin(10)
    stage.root.rename(stage.folder / "hold")
    stage.root.mkdir()

    stage.run(60, every=5)

    assert list(stage.root.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
@pytest.mark.parametrize("folder", ["", "01_Shallow", "01_Shallow/room 0000"])
def test_wt_08_a_folder_whose_listing_fails_changes_nothing(
    stage: Stage, number: int, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.begin(40)
    before, known = snapshot(stage.root), ids(stage)
    really, broken = os.scandir, str(stage.root / folder) if folder else str(stage.root)

    def scandir(place: object = ".") -> object:
        if str(place) == broken or str(place).startswith(f"{broken}/"):
            raise OSError(number, os.strerror(number), str(place))
        return really(place)  # type: ignore[call-overload]

    with monkeypatch.context() as patch:
        patch.setattr("os.scandir", scandir)
        for _ in range(10):
            stage.keepers[0].step()
            stage.later(seconds=5)
    stage.later(minutes=10)
    stage.rest()

    assert snapshot(stage.root) == before
    assert ids(stage) == known
    assert stage.tally.lines == 0


def test_wt_08_while_a_layer_is_missing_no_run_archives_and_health_says_why(stage: Stage) -> None:
    stage.begin(40)
    (stage.root / "01_Shallow").rename(stage.folder / "hold")
    before = snapshot(stage.root)

    stage.run(30, every=5)
    with pytest.raises(VaultError):
        stage.palaces[0].metabolize(confirm=True)

    assert snapshot(stage.root) == before
    assert "layer_missing" in {problem["code"] for problem in stage.palaces[0].health()["problems"]}


def test_wt_08_a_start_on_an_empty_vault_is_refused_and_all_is_known_afterwards(stage: Stage) -> None:
    stage.begin(200)
    before = snapshot(stage.root)
    stage.close()
    stage.root.rename(stage.folder / "hold")
    stage.root.mkdir()

    with pytest.raises(VaultError):
        stage.open()
    nothing = list(stage.root.iterdir())
    stage.root.rmdir()
    (stage.folder / "hold").rename(stage.root)
    stage.close()
    stage.open()
    stage.rest()

    assert nothing == []
    assert snapshot(stage.root) == before
    assert stage.tally.lines == 0


def test_wt_08_a_start_with_200_known_notes_missing_believes_nothing(stage: Stage) -> None:
    """The palace is there, its layers are empty; the index knows better."""
    stage.begin(200)
    before = snapshot(stage.root)
    stage.close()
    layers = ("01_Shallow", "02_Sediment", "03_Bedrock")
    for layer in layers:
        (stage.root / layer).rename(stage.folder / layer)
        (stage.root / layer).mkdir()

    stage.open()
    stage.run(60, every=5)
    doubts = {problem["code"] for problem in stage.palaces[0].health()["problems"]}
    for layer in layers:
        (stage.root / layer).rmdir()
        (stage.folder / layer).rename(stage.root / layer)
    stage.later(minutes=10)
    stage.rest()

    assert "notes_missing" in doubts
    assert snapshot(stage.root) == before
    assert stage.tally.lines == 0


def test_wt_08_three_of_five_notes_deleted_by_hand_are_deleted(stage: Stage) -> None:
    paths = stage.begin(5)

    for path in paths[:3]:
        stage.person.deletes(path)
    stage.rest()

    assert sorted(ids(stage).values()) == sorted(paths[3:])
    assert stage.tally.verbs["deleted"] == 3
    assert set(index_of(stage.palaces[0])) == set(paths[3:])


# -- races and polling ---------------------------------------------------------------------------------------


def test_wt_11_a_tool_a_keeper_and_a_hand_that_moves_files_leave_one_true_index(stage: Stage) -> None:
    stage.begin(20)
    (palace,) = stage.palaces
    (keeper,) = stage.keepers
    ended = threading.Event()
    surprises: list[BaseException] = []

    def moves() -> None:
        """Take whatever lies in the tool's rooms elsewhere and back."""
        here, there = stage.root / "01_Shallow/loop", stage.root / "01_Shallow/moved by hand"
        try:
            there.mkdir()
            while not ended.is_set():
                for source, goal in ((here, there), (there, here)):
                    for place in sorted(source.glob("*.md"))[:3] if source.is_dir() else ():
                        try:
                            if not (goal / place.name).exists():
                                place.rename(goal / place.name)
                        except FileNotFoundError:
                            continue  # the tool was faster
                ended.wait(0.002)
        except BaseException as error:
            surprises.append(error)

    hand = threading.Thread(target=moves)
    hand.start()
    try:
        for number in range(200):
            name = f"Loop {number % 20:02d}"
            for act in (
                lambda name=name: palace.write("First.", path=f"loop/{name}.md"),
                lambda name=name: palace.move(f"01_Shallow/loop/{name}.md", "sediment"),
                lambda name=name: palace.write(
                    "And more.", path=f"loop/{name}.md", layer="sediment", mode="append"
                ),
                lambda name=name: palace.purge(f"02_Sediment/loop/{name}.md", confirm=True),
                keeper.step if number % 2 else palace.house.refresh,
            ):
                try:
                    act()
                except VaultError:
                    continue  # it lies elsewhere now, or is being moved: said, and nothing more
            stage.later(seconds=4)
    finally:
        ended.set()
        hand.join()
    stage.rest()

    assert surprises == []
    assert index_of(palace) == index_of(beside(stage))
    assert palace.check() == beside(stage, "a third").check()
    ids(stage)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("01_Shallow/b.md", ""),
        ("02_Sediment/a.md", ""),
        ("01_Shallow/b.md", "Another text, in the same interval.\n"),
    ],
)
def test_wt_12_a_move_is_known_by_polling_alone(stage: Stage, first: str, second: str) -> None:
    """A look at everything now and then is all there is; the note stays who it was."""
    stage.begin(10)
    stage.person.writes("01_Shallow/a.md", "The text of a.\n")
    stage.person.writes("01_Shallow/holder.md", "See [[a]].\n")
    stage.rest()
    before = stage.person.says("01_Shallow/a.md")
    stage.later(minutes=20)

    stage.person.moves("01_Shallow/a.md", first)
    if second:
        stage.person.edits(first, "The text of a.\n", second)
    stage.rest()

    after = stage.person.says(first)
    assert [after[key] for key in ("id", "created", "backlinks")] == [
        before[key] for key in ("id", "created", "backlinks")
    ]
    assert f"See [[{Path(first).stem}]]." in stage.person.reads("01_Shallow/holder.md")
    assert stage.person.reads(first).endswith(second or "The text of a.\n")


def test_wt_12_two_notes_that_swap_names_keep_their_ids_and_texts(stage: Stage) -> None:
    stage.begin(10)
    for name in "ab":
        stage.person.writes(f"01_Shallow/{name}.md", f"The text of {name}.\n")
    stage.person.writes("01_Shallow/holder.md", "See [[a]] and then [[b|the other]].\n")
    stage.rest()
    before = {name: stage.person.says(f"01_Shallow/{name}.md") for name in "ab"}
    stage.later(minutes=20)

    stage.person.moves("01_Shallow/a.md", "01_Shallow/c.md")
    stage.person.moves("01_Shallow/b.md", "01_Shallow/a.md")
    stage.person.moves("01_Shallow/c.md", "01_Shallow/b.md")
    stage.rest()

    after = {name: stage.person.says(f"01_Shallow/{name}.md") for name in "ab"}
    assert (after["a"]["id"], after["b"]["id"]) == (before["b"]["id"], before["a"]["id"])
    assert stage.person.reads("01_Shallow/a.md").endswith("The text of b.\n")
    assert stage.person.reads("01_Shallow/b.md").endswith("The text of a.\n")
    assert "See [[b]] and then [[a|the other]]." in stage.person.reads("01_Shallow/holder.md")
