"""The commands on a real vault: every main operation, odd paths (MC-13), wrong vaults (FS-18), failures that
must not look like success (MC-20), and a damaged search cache (DB-02)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.storage.palace import as_person
from vault_palace.surfaces.cli import main

OLD = 1_700_000_000  # a note last saved long ago is quiet: nothing waits for its writer


@dataclass(frozen=True)
class Ended:
    """How a command ended: its status and the document it printed."""

    status: int
    document: Any

    @property
    def code(self) -> str:
        return str(self.document["error"]["code"]) if "error" in self.document else ""


Cli = Callable[..., Ended]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command with `--json`; what it printed is one document, whatever happened."""

    def run(*words: str | Path) -> Ended:
        status = main([*map(str, words), "--json"])
        said = capsys.readouterr()
        assert "Traceback" not in said.err, said.err
        return Ended(status, json.loads(said.out))

    return run


def tree(root: Path) -> dict[str, bytes | None]:
    """Every file and folder below *root* with its bytes, but for the machine's own state."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
        if ".palace" not in path.parts
    }


def quiet(path: Path, text: str | bytes) -> Path:
    """A note as a person left it long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    os.utime(path, (OLD, OLD))
    return path


@contextmanager
def named_by_option(vault: Path, _: pytest.MonkeyPatch) -> Iterator[list[str]]:
    yield ["--vault", str(vault)]


@contextmanager
def named_by_environment(vault: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    monkeypatch.setenv("VAULT_PALACE_VAULT", str(vault))
    yield []


@contextmanager
def with_a_slash(vault: Path, _: pytest.MonkeyPatch) -> Iterator[list[str]]:
    yield ["--vault", f"{vault}/"]


@contextmanager
def through_a_link(vault: Path, _: pytest.MonkeyPatch) -> Iterator[list[str]]:
    link = vault.parent / "link & [to] it"
    link.symlink_to(vault, target_is_directory=True)
    yield ["--vault", str(link)]


WAYS = [named_by_option, named_by_environment, with_a_slash, through_a_link]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_mc_13_every_main_operation_works_in_a_vault_with_an_unusual_path(
    way: Any, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = tmp_path / "My Vault (2) & [äöü] #1 %20"
    assert cli("init", vault).status == 0

    with way(vault, monkeypatch) as at:
        kafka = cli("write", "Order holds.", "--title", "Kafka [a] (1)", "--path", "ideas/Kafka", *at)
        apollo = cli("write", "See [[Kafka]].", "--title", "Apollo", *at)
        found = cli("search", "order", "--room", "ideas", *at)
        read = cli("read", kafka.document["saved_path"], *at)
        rated = cli("rate", "--id", kafka.document["id"], "--density", "0.9", *at)
        plan = cli("metabolize", "--dry-run", "--days-threshold", "0", *at)
        moved = cli("move", kafka.document["saved_path"], "sediment", *at)
        purged = cli("purge", apollo.document["saved_path"], "--confirm", *at)
        restored = cli("restore", purged.document["archived_to"], *at)
        others = [cli(verb, *at) for verb in ("recover", "status", "check", "reindex")]

    assert [one.status for one in (kafka, apollo, found, read, rated, plan, moved, purged, restored)] == [
        0
    ] * 9
    assert [one.status for one in others] == [0] * 4
    assert [match["path"] for match in found.document["matches"]] == ["01_Shallow/ideas/Kafka.md"]
    assert read.document["backlinks"] == ["01_Shallow/Apollo.md"]
    assert plan.document["promoted_count"] == 1
    assert moved.document["destination"] == "02_Sediment/ideas/Kafka.md"
    assert restored.document["restored_to"] == "01_Shallow/Apollo.md"
    assert (vault / "02_Sediment/ideas/Kafka.md").is_file()


def home(_: Path) -> Path:
    place = Path(os.environ["HOME"])
    quiet(place / "diary.md", "mine\n")
    return place


def root(_: Path) -> Path:
    return Path("/")


def not_a_vault(place: Path) -> Path:
    quiet(place / "photos" / "a.txt", "mine\n")
    return place / "photos"


def a_layer(place: Path) -> Path:
    quiet(place / "vault" / "_System" / "Policy.md", "---\n---\n")
    quiet(place / "vault" / "01_Shallow" / "a.md", "mine\n")
    return place / "vault" / "01_Shallow"


def a_file(place: Path) -> Path:
    return quiet(place / "a.md", "mine\n")


def nothing(place: Path) -> Path:
    return place / "missing"


WRONG = [home, root, not_a_vault, a_layer, a_file, nothing]
VERBS = [
    ("write", "text"),
    ("read", "a.md"),
    ("search", "mine"),
    ("rate", "a.md", "--density", "0.5"),
    ("metabolize", "--confirm", "--force"),
    ("purge", "a.md", "--confirm"),
    ("restore", "_Archive/a.md"),
    ("move", "a.md", "sediment"),
    ("recover",),
    ("status",),
    ("check",),
    ("reindex",),
]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize("make", WRONG, ids=lambda make: make.__name__)
def test_fs_18_a_folder_that_is_no_palace_is_refused_and_not_touched(
    make: Callable[[Path], Path], verb: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    vault = make(tmp_path)
    before = tree(tmp_path)

    ended = cli(*verb, "--vault", vault)

    assert ended.code in {"not_found", "path_violation"}
    assert ended.status in {10, 14}
    assert tree(tmp_path) == before


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_fs_18_an_empty_or_missing_name_never_means_the_current_folder(
    verb: tuple[str, ...], cli: Cli, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(vault)
    before = tree(vault)

    missing = cli(*verb)
    empty = cli(*verb, "--vault", "")
    monkeypatch.setenv("VAULT_PALACE_VAULT", "")
    unset = cli(*verb)

    assert [(one.status, one.code) for one in (missing, empty, unset)] == [(2, "invalid_arguments")] * 3
    assert tree(vault) == before


def test_fs_18_init_refuses_a_layer_and_a_file(cli: Cli, tmp_path: Path) -> None:
    places = [a_layer(tmp_path), a_file(tmp_path)]
    before = tree(tmp_path)

    ended = [cli("init", place) for place in places]

    assert all(one.status and one.code for one in ended)
    assert tree(tmp_path) == before


def test_init_adds_to_a_folder_and_overwrites_nothing(cli: Cli, tmp_path: Path) -> None:
    mine = quiet(tmp_path / "vault" / ".obsidian" / "app.json", '{"mine": true}\n')
    note = quiet(tmp_path / "vault" / "Diary.md", "Dear diary\n")
    map_note = quiet(tmp_path / "vault" / "PALACE_MAP.md", "my own map\n")

    plan = cli("init", tmp_path / "vault", "--dry-run")
    planned = tree(tmp_path)
    ended = cli("init", tmp_path / "vault")
    again = cli("init", tmp_path / "vault")

    assert plan.status == ended.status == again.status == 0
    assert set(planned) == {
        "vault",
        "vault/.obsidian",
        "vault/.obsidian/app.json",
        "vault/Diary.md",
        "vault/PALACE_MAP.md",
    }
    assert note.read_text() == "Dear diary\n"
    assert map_note.read_text() == "my own map\n"
    assert json.loads(mine.read_text())["mine"] is True
    assert (tmp_path / "vault" / "_System" / "Policy.md").is_file()


@pytest.fixture
def palace(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vault with one healthy note, named by the environment."""
    vault = tmp_path / "vault"
    cli("init", vault)
    monkeypatch.setenv("VAULT_PALACE_VAULT", str(vault))
    quiet(vault / "01_Shallow" / "Kafka.md", "A topic is a log.\n")
    return vault


def test_mc_20_a_missing_note_is_an_error_whatever_is_asked_of_it(cli: Cli, palace: Path) -> None:
    before = tree(palace)
    commands = [
        ("read", "01_Shallow/none.md"),
        ("rate", "01_Shallow/none.md", "--density", "0.5"),
        ("purge", "01_Shallow/none.md", "--confirm"),
        ("restore", "_Archive/01_Shallow/none.md"),
        ("move", "01_Shallow/none.md", "sediment"),
        ("write", "more", "--path", "none", "--mode", "append"),
        ("search", "log", "--room", "nowhere"),
    ]

    ended = [cli(*command) for command in commands]

    assert [(one.status, one.code) for one in ended] == [(10, "not_found")] * len(commands)
    assert tree(palace) == before


def test_mc_20_nothing_is_written_in_a_read_only_vault_and_that_is_an_error(cli: Cli, palace: Path) -> None:
    policy = palace / "_System" / "Policy.md"
    quiet(policy, policy.read_text().replace("read_only: false", "read_only: true"))
    before = tree(palace)

    ended = [
        cli("write", "text", "--title", "New"),
        cli("rate", "01_Shallow/Kafka.md", "--density", "0.5"),
        cli("purge", "01_Shallow/Kafka.md", "--confirm"),
        cli("move", "01_Shallow/Kafka.md", "sediment"),
        cli("metabolize", "--confirm"),
    ]

    assert [(one.status, one.code) for one in ended] == [(15, "policy_violation")] * 5
    assert tree(palace) == before


def test_mc_20_a_note_with_a_broken_header_is_not_rated(cli: Cli, palace: Path) -> None:
    note = quiet(palace / "01_Shallow" / "Broken.md", "---\ndensity: [1, 2\n---\ntext\n")
    before = note.read_bytes()

    ended = cli("rate", "01_Shallow/Broken.md", "--density", "0.5")

    assert (ended.status, ended.code) == (19, "malformed_note")
    assert note.read_bytes() == before


def test_mc_20_a_create_on_a_taken_path_is_an_error_that_names_the_rev(cli: Cli, palace: Path) -> None:
    before = (palace / "01_Shallow" / "Kafka.md").read_bytes()

    ended = cli("write", "other", "--path", "Kafka")

    assert (ended.status, ended.code) == (11, "exists")
    assert ended.document["error"]["facts"]["rev"]
    assert (palace / "01_Shallow" / "Kafka.md").read_bytes() == before


def test_mc_20_what_needs_a_confirmation_fails_without_it(cli: Cli, palace: Path) -> None:
    before = tree(palace)

    ended = [cli("metabolize"), cli("purge", "01_Shallow/Kafka.md")]

    assert [(one.status, one.code) for one in ended] == [(15, "policy_violation")] * 2
    assert tree(palace) == before


def test_check_lists_problems_with_path_and_line_and_ends_with_1(cli: Cli, palace: Path) -> None:
    quiet(palace / "01_Shallow" / "Broken.md", "---\ndensity: [1, 2\n---\ntext\n")
    quiet(palace / "01_Shallow" / "Odd.md", "---\ndensity: high\ncreated: 2026-02-30\n---\ntext\n")
    before = tree(palace)

    ended = cli("check")

    places = {(row["path"], row["line"]) for row in ended.document["problems"]}
    assert ended.status == 1
    assert {("01_Shallow/Odd.md", 2), ("01_Shallow/Odd.md", 3)} <= places
    assert any(path == "01_Shallow/Broken.md" and line for path, line in places)
    assert tree(palace) == before


def cache_file(cli: Cli) -> Path:
    return Path(cli("status").document["index"]["path"])


def zeros_in_the_middle(file: Path) -> None:
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = bytes(4096)
    file.write_bytes(data)


def cut(size: int) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(file.read_bytes()[:size])


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def other_text(file: Path) -> None:
    file.write_text("This is no database.\n" * 400, encoding="utf-8")


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def missing(file: Path) -> None:
    file.unlink()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "zeros": zeros_in_the_middle,
    "empty": cut(0),
    "100 bytes": cut(100),
    "half": half,
    "text": other_text,
    "folder": a_folder,
    "missing": missing,
}


@pytest.mark.parametrize(
    "verb", [("search", "topic"), ("status",), ("check",), ("reindex",)], ids=lambda v: v[0]
)
@pytest.mark.parametrize("damage", DAMAGES)
def test_db_02_a_damaged_cache_is_rebuilt_from_the_notes(
    damage: str, verb: tuple[str, ...], cli: Cli, palace: Path
) -> None:
    file = cache_file(cli)
    for beside in file.parent.glob(file.name + "-*"):
        beside.unlink()
    DAMAGES[damage](file)
    before = tree(palace)

    ended = cli(*verb)
    found = cli("search", "topic")

    assert ended.status == 0
    assert [match["path"] for match in found.document["matches"]] == ["01_Shallow/Kafka.md"]
    assert tree(palace) == before
    assert file.is_file()


def test_searching_is_not_a_use_and_writes_no_byte(cli: Cli, palace: Path) -> None:
    before = tree(palace)

    for command in (("search", "topic"), ("status",), ("check",), ("metabolize", "--dry-run"), ("reindex",)):
        assert cli(*command).status == 0

    assert tree(palace) == before


def test_a_body_goes_to_a_file_exactly_as_it_stands(palace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "Line\twith\ttabs\n\n\x1b[31mred\x1b[0m, no line end"
    quiet(palace / "01_Shallow" / "Raw.md", f"---\nid: mem_0a1b2c3d4e5f\n---\n{body}")

    status = main(["read", "01_Shallow/Raw.md", "--body", "--no-touch"])

    assert status == 0
    assert capsys.readouterr().out == body


@pytest.mark.parametrize("make", WRONG, ids=lambda make: make.__name__)
def test_fs_18_no_server_starts_on_a_folder_that_is_no_palace(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    vault = make(tmp_path)
    before = tree(tmp_path)

    ended = subprocess.run(
        [sys.executable, "-m", "vault_palace", "serve", "--vault", vault],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )

    assert ended.returncode in {10, 14}
    assert ended.stdout == ""
    assert ended.stderr.startswith("vault-palace: ")
    assert "Traceback" not in ended.stderr
    assert tree(tmp_path) == before


def give_away(root: Path) -> None:
    """Everything below *root* belongs to the person that `as_person` becomes."""
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, 65534, 65534)


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
@pytest.mark.parametrize("verb", [("search", "topic"), ("status",), ("check",)], ids=lambda verb: verb[0])
def test_db_02_an_unreadable_cache_is_no_reason_to_fail(
    verb: tuple[str, ...], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
        place = Path(folder)
        monkeypatch.setenv("VAULT_PALACE_VAULT", str(place / "vault"))
        monkeypatch.setenv("VAULT_PALACE_CACHE_DIR", str(place / "cache"))
        monkeypatch.setenv("VAULT_PALACE_STATE_DIR", str(place / "state"))
        cli("init", place / "vault")
        quiet(place / "vault" / "01_Shallow" / "Kafka.md", "A topic is a log.\n")
        file = cache_file(cli)
        cli(*verb)  # what is imported late is imported now: the person may not reach our modules
        give_away(place)
        file.chmod(0)

        def act() -> None:
            ended = cli(*verb)
            assert ended.status == 0, ended
            assert verb[0] != "search" or ended.document["total"] == 1

        as_person(act)
