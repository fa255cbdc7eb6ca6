"""What servers say of themselves lies in the state folder, is whole, and goes with them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vault_palace.services.palace import Palace
from vault_palace.services.running import MOST_BYTES, Board, folder_of, servers, shown

SERVER = """
import sys
from pathlib import Path
from vault_palace.services.house import House, PalaceSettings
from vault_palace.services.running import Board
house = House.open(Path(sys.argv[1]), PalaceSettings(state_dir=Path(sys.argv[2])))
board = Board(house)
board.put({"transport": "stdio"}, "now")
print("said", flush=True)
sys.stdin.read()
"""


def folder(palace: Palace) -> Path:
    place = folder_of(palace.house)
    assert place is not None
    return place


def test_a_server_that_was_killed_is_not_told_of_and_leaves_nothing(
    palace: Palace, vault: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(vault), str(tmp_path / "state")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "said\n"
        alive = [facts["pid"] for facts in servers(palace.house)]
        process.send_signal(signal.SIGKILL)
        process.wait(60)

    assert alive == [process.pid]
    assert servers(palace.house) == []
    assert os.listdir(folder(palace)) == []


def test_what_was_said_last_is_not_written_again(palace: Palace) -> None:
    board = Board(palace.house)

    written = [board.put({"calls": {"a": 1}}, at) for at in ("one", "two")]
    written.append(board.put({"calls": {"a": 2}}, "three"))

    assert written == [True, False, True]
    assert [facts["at"] for facts in servers(palace.house)] == ["three"]
    board.end()


def test_nothing_is_written_to_the_vault_for_it(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Sand")
    before = sorted((str(path), path.stat().st_mtime_ns) for path in vault.rglob("*"))
    board = Board(palace.house)

    board.put({}, "now")
    servers(palace.house)
    board.end()

    assert sorted((str(path), path.stat().st_mtime_ns) for path in vault.rglob("*")) == before
    assert os.listdir(folder(palace)) == []


def test_only_its_owner_can_read_it(palace: Palace) -> None:
    board = Board(palace.house)

    board.put({}, "now")

    modes = {path.name.partition(".")[2]: path.stat().st_mode & 0o077 for path in folder(palace).iterdir()}
    assert modes == {"json": 0, "alive": 0}
    board.end()


def test_more_than_fits_is_not_written(palace: Palace) -> None:
    board = Board(palace.house)

    assert board.put({"agents": {"x" * MOST_BYTES: 1}}, "now") is False


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": 99, "pid": 1}', '{"v": 1}', '{"v": 1, "pid": "x"}'])
def test_a_damaged_file_is_passed_over(palace: Palace, text: str) -> None:
    board = Board(palace.house)
    board.put({}, "now")
    (said,) = folder(palace).glob("*.json")

    said.write_text(text, encoding="utf-8")

    assert servers(palace.house) == []
    board.end()


def test_what_a_dead_server_left_half_written_goes_too(palace: Palace) -> None:
    folder(palace).mkdir(parents=True)
    for name in ("1-aa.json", "1-aa.alive", ".1-aa.json.0123456789abcdef.tmp", "2-bb.alive"):
        (folder(palace) / name).write_text("{}", encoding="utf-8")

    assert servers(palace.house) == []
    assert os.listdir(folder(palace)) == []


def test_facts_of_the_wrong_kind_are_left_out() -> None:
    odd = json.loads('{"pid": 7, "agents": {"a": "many", "b": 2}, "calls": {"x": 1, "y": {}}, "watch": []}')

    answer = shown(odd)

    assert (answer["pid"], answer["agents"], answer["calls"], answer["watch"]) == (7, {"b": 2}, {"y": {}}, {})
