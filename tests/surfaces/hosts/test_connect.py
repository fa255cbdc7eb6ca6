"""What connecting a host does to a person's files: everything that can be in the way, and every refusal."""

from __future__ import annotations

import json
import os
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.hosts.machines import LAUNCHER, SCOPES, VAULT, done, linux
from vault_palace.core.errors import (
    Busy,
    Exists,
    InvalidArguments,
    MalformedNote,
    NotFound,
    PolicyViolation,
    StorageFailed,
    VaultError,
)
from vault_palace.storage import files
from vault_palace.surfaces.hosts import connect, filing
from vault_palace.surfaces.hosts.catalogue import Machine, Scope
from vault_palace.surfaces.hosts.entry import Launcher

ENTRY = {"command": LAUNCHER.words[0], "args": ["serve", "--vault", str(VAULT)]}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return linux(tmp_path)


@pytest.fixture
def gemini(machine: Machine) -> Path:
    """The file of a host of the plainest form."""
    file = Path(machine.home) / ".gemini" / "settings.json"
    file.parent.mkdir()
    return file


@pytest.fixture
def codex(machine: Machine) -> Path:
    file = Path(machine.home) / ".codex" / "config.toml"
    file.parent.mkdir()
    return file


def servers(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))["mcpServers"]


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("host", "scope"), SCOPES)
def test_a_file_that_is_not_there_is_made_with_its_folder(host: str, scope: Scope, machine: Machine) -> None:
    outcome = done(machine, host, scope=scope)

    (change,) = outcome.changes
    assert (change.done, change.backup) == ("created", None)
    assert str(VAULT) in Path(change.path).read_text(encoding="utf-8")
    assert outcome.next


@pytest.mark.parametrize(("host", "scope"), SCOPES)
def test_a_second_time_changes_nothing(host: str, scope: Scope, machine: Machine) -> None:
    (first,) = done(machine, host, scope=scope).changes
    before = os.stat(first.path)

    (second,) = done(machine, host, scope=scope).changes

    assert second.done == "kept"
    assert os.stat(first.path) == before or os.stat(first.path).st_mtime_ns == before.st_mtime_ns
    assert os.stat(first.path).st_ino == before.st_ino
    assert [name for name in os.listdir(Path(first.path).parent) if name.endswith(".bak")] == []


@pytest.mark.parametrize(("host", "scope"), SCOPES)
def test_a_dry_run_writes_nothing(
    host: str, scope: Scope, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blow_up(*_: object, **__: object) -> None:
        raise AssertionError("something was written")

    for name in ("stage", "put", "make_folders"):
        monkeypatch.setattr(files, name, blow_up)

    (change,) = done(machine, host, scope=scope, write=False).changes

    assert change.done == "created"
    assert connect.diff(change)


def test_what_was_there_is_kept_beside_it(machine: Machine, gemini: Path) -> None:
    gemini.write_text('{"ui": {}}')

    (change,) = done(machine, "gemini").changes

    assert change.backup == f"{gemini}.1.bak"
    assert Path(change.backup).read_text() == '{"ui": {}}'


def test_an_older_backup_is_never_written_over(machine: Machine, gemini: Path) -> None:
    gemini.write_text('{"ui": {}}')
    (gemini.parent / "settings.json.1.bak").write_text("a person's own")

    (change,) = done(machine, "gemini").changes

    assert change.backup == f"{gemini}.2.bak"
    assert (gemini.parent / "settings.json.1.bak").read_text() == "a person's own"


def test_the_same_text_is_not_backed_up_twice(machine: Machine, gemini: Path) -> None:
    gemini.write_text('{\n  "mcpServers": {\n    "a": {}\n  }\n}\n')

    for _ in range(3):
        done(machine, "gemini")
        done(machine, "gemini", vault=None, remove=True)

    assert listed(gemini.parent) == ["settings.json", "settings.json.1.bak", "settings.json.2.bak"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_of_a_file_stays(mode: int, machine: Machine, gemini: Path) -> None:
    gemini.write_text("{}")
    gemini.chmod(mode)

    (change,) = done(machine, "gemini").changes

    assert gemini.stat().st_mode & 0o777 == mode
    assert Path(str(change.backup)).stat().st_mode & 0o777 & ~mode == 0


def test_a_persons_own_new_file_is_private(machine: Machine) -> None:
    (own,) = done(machine, "gemini").changes
    (shared,) = done(machine, "gemini", scope="project").changes

    assert os.stat(own.path).st_mode & 0o077 == 0
    assert os.stat(shared.path).st_mode & 0o044


def test_a_link_to_the_file_stays_a_link(machine: Machine, gemini: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "gemini.json").write_text("{}")
    gemini.symlink_to("../../dotfiles/gemini.json")

    done(machine, "gemini")

    assert gemini.is_symlink()
    assert servers(dotfiles / "gemini.json") == {"vault-palace": ENTRY}
    assert listed(dotfiles) == ["gemini.json"]


def test_a_link_to_nothing_gets_its_file(machine: Machine, gemini: Path, tmp_path: Path) -> None:
    gemini.symlink_to(tmp_path / "new" / "gemini.json")

    done(machine, "gemini")

    assert gemini.is_symlink()
    assert servers(tmp_path / "new" / "gemini.json") == {"vault-palace": ENTRY}


@pytest.mark.parametrize("text", ["", "\n", "  \r\n", "\ufeff"])
def test_an_empty_file_is_filled(text: str, machine: Machine, gemini: Path) -> None:
    gemini.write_bytes(text.encode())

    done(machine, "gemini")

    left = gemini.read_bytes().decode("utf-8")
    assert json.loads(left.removeprefix("\ufeff")) == {"mcpServers": {"vault-palace": ENTRY}}
    assert left.startswith("\ufeff") == text.startswith("\ufeff")


@pytest.mark.parametrize("text", ["", "\n", "# mine\n", "# mine", "\ufeff", '\ufeffmodel = "x"\r\n'])
def test_an_empty_toml_file_is_filled(text: str, machine: Machine, codex: Path) -> None:
    codex.write_bytes(text.encode())

    done(machine, "codex")

    left = codex.read_bytes().decode("utf-8")
    assert left.startswith(text)
    assert tomllib.loads(left.removeprefix("\ufeff"))["mcp_servers"] == {"vault-palace": ENTRY}
    assert ("\r\n" in left) == ("\r\n" in text)


BROKEN = [
    ("gemini", '{\n  "mcpServers": {,}\n}\n', "2:18"),
    ("gemini", "[]", "1:1"),
    ("gemini", '{"mcpServers": []}', "1:16"),
    ("gemini", '{"mcpServers": {}, "mcpServers": {}}', "1:20"),
    ("codex", "model = \n", "1:9"),
    ("codex", "a = 1\n\n[x\n", "3:3"),
    ("codex", "mcp_servers = 5\n", "1:1"),
    ("codex", 'a = "', "1:6"),
]


@pytest.mark.parametrize(("host", "text", "place"), BROKEN)
def test_a_broken_file_is_refused_with_its_place(
    host: str, text: str, place: str, machine: Machine, gemini: Path, codex: Path
) -> None:
    file = gemini if host == "gemini" else codex
    file.write_text(text)

    with pytest.raises(MalformedNote) as refused:
        done(machine, host)

    assert f"{file}:{place}: " in refused.value.message
    assert file.read_text() == text
    assert listed(file.parent) == [file.name]


@pytest.mark.parametrize("data", [b"\xff\xfe{\x00}\x00", b'{"a": "\xe4"}'])
def test_a_file_that_is_not_utf_8_is_refused(data: bytes, machine: Machine, gemini: Path) -> None:
    gemini.write_bytes(data)

    with pytest.raises(MalformedNote, match="not UTF-8"):
        done(machine, "gemini")

    assert gemini.read_bytes() == data


def test_a_read_only_file_is_refused(machine: Machine, gemini: Path) -> None:
    gemini.write_text("{}")
    gemini.chmod(0o444)

    with pytest.raises(StorageFailed, match="read-only"):
        done(machine, "gemini")

    assert gemini.read_text() == "{}"
    assert listed(gemini.parent) == ["settings.json"]


def test_of_two_files_none_is_written_when_one_is_refused(machine: Machine) -> None:
    notes = Path(machine.project) / "GEMINI.md"
    notes.write_text("<!-- vault-palace:begin vault-palace -->\n")

    with pytest.raises(MalformedNote, match="no pair"):
        done(machine, "gemini", scope="project", instructions=True)

    assert listed(Path(machine.project)) == ["GEMINI.md"]


# -- an entry that is there --------------------------------------------------------------------------------

OTHER = {"command": "/opt/tools/bin/vault-palace", "args": ["serve", "--vault", "/home/you/Other"]}
FOREIGN = [
    (OTHER, "the vault /home/you/Other"),
    ({"command": "npx", "args": ["-y", "other"]}, "something else: npx -y other"),
    ({"url": "https://example.com/mcp"}, "something else: no command"),
    ("text", "something else: no command"),
    ({"command": "x", "args": ["serve"], "env": {"VAULT_PALACE_VAULT": "/v"}}, "the vault /v"),
    ({"command": ["x", "serve", "--vault=/w"]}, "the vault /w"),
]


@pytest.mark.parametrize(("there", "said"), FOREIGN)
def test_an_entry_for_something_else_is_shown_and_stays(
    there: object, said: str, machine: Machine, gemini: Path
) -> None:
    text = json.dumps({"mcpServers": {"vault-palace": there}})
    gemini.write_text(text)

    with pytest.raises(Exists) as refused:
        done(machine, "gemini")

    assert said in refused.value.message
    assert "--replace" in refused.value.hint
    assert gemini.read_text() == text


@pytest.mark.parametrize(("there", "said"), FOREIGN)
def test_an_entry_for_something_else_is_replaced_when_told(
    there: object, said: str, machine: Machine, gemini: Path
) -> None:
    gemini.write_text(json.dumps({"mcpServers": {"vault-palace": there, "b": 1}}))

    done(machine, "gemini", replace=True)

    assert servers(gemini) == {"vault-palace": ENTRY, "b": 1}


def test_a_toml_entry_for_something_else_is_replaced_when_told(machine: Machine, codex: Path) -> None:
    text = '[mcp_servers.vault-palace]\ncommand = "npx"\n\n[mcp_servers.vault-palace.env]\nA = "b"\n\n'
    codex.write_text(text + "[x]\ny = 1 # z\n")

    with pytest.raises(Exists):
        done(machine, "codex")
    done(machine, "codex", replace=True)

    assert tomllib.loads(codex.read_text()) == {"x": {"y": 1}, "mcp_servers": {"vault-palace": ENTRY}}
    assert "[x]\ny = 1 # z\n" in codex.read_text()


def test_what_a_person_added_to_our_entry_stays(machine: Machine, gemini: Path) -> None:
    text = (
        '{\n  "mcpServers": {\n    "vault-palace": {\n      "trust": true, // mine\n'
        '      "command": "/old/vault-palace",\n'
        f'      "args": ["serve", "--vault", "{VAULT}", "--read-only"]\n'
        "    }\n  }\n}\n"
    )
    gemini.write_text(text, encoding="utf-8")

    done(machine, "gemini")

    expected = text.replace("/old/vault-palace", LAUNCHER.words[0]).replace(', "--read-only"', "")
    assert gemini.read_text(encoding="utf-8") == expected


def test_what_a_person_added_to_our_toml_entry_stays(machine: Machine, codex: Path) -> None:
    text = (
        "[mcp_servers.vault-palace] # memory\nstartup_timeout_sec = 20\n"
        f'command = "/old/vault-palace" # here\nargs = ["serve", "--vault", "{VAULT}", "--read-only"]\n'
        "\n# next\n[mcp_servers.b]\ncommand = 'x'\n"
    )
    codex.write_text(text, encoding="utf-8")

    done(machine, "codex")

    expected = text.replace("/old/vault-palace", LAUNCHER.words[0]).replace(', "--read-only"', "")
    assert codex.read_text(encoding="utf-8") == expected


def test_another_name_stands_beside_it(machine: Machine, gemini: Path) -> None:
    done(machine, "gemini")

    done(machine, "gemini", name="work", vault=Path("/home/you/Other"))

    assert servers(gemini) == {"vault-palace": ENTRY, "work": OTHER}


def test_toml_in_a_form_that_cannot_be_kept_is_refused(machine: Machine, codex: Path) -> None:
    codex.write_text("mcp_servers = { a = { command = 'x' } }\n")

    with pytest.raises(PolicyViolation) as refused:
        done(machine, "codex")

    assert "by hand" in refused.value.hint
    assert LAUNCHER.words[0] in refused.value.hint
    assert codex.read_text() == "mcp_servers = { a = { command = 'x' } }\n"


def test_options_for_serve_follow_the_vault(machine: Machine, gemini: Path) -> None:
    done(machine, "gemini", arguments=("--tools", "core", "--read-only"))

    assert servers(gemini)["vault-palace"]["args"] == [*ENTRY["args"], "--tools", "core", "--read-only"]


# -- refusals ----------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("emacs", {}, "no host"),
    ("claude-desktop", {"scope": "project"}, "--scope user"),
    ("claude-desktop", {"instructions": True}, "Leave --instructions out"),
    ("cursor", {"instructions": True}, "--scope project"),
    ("codex", {"name": "a b"}, "cannot name"),
    ("codex", {"name": "-a"}, "cannot name"),
    ("codex", {"name": ""}, "cannot name"),
    ("claude-code", {"vault": Path("/home/${USER}/v")}, "for a variable"),
    ("cursor", {"vault": Path("/home/${env:USER}/v")}, "for a variable"),
    ("vscode", {"vault": Path("/home/${userHome}/v")}, "for a variable"),
    ("gemini", {"vault": Path("/home/$USER/v")}, "for a variable"),
    ("opencode", {"vault": Path("/home/{env:USER}/v")}, "for a variable"),
    ("codex", {"vault": Path("/home/\udcff/v")}, "not UTF-8"),
]


@pytest.mark.parametrize(("host", "more", "said"), REFUSED)
def test_what_cannot_work_is_refused(host: str, more: dict[str, Any], said: str, machine: Machine) -> None:
    with pytest.raises(InvalidArguments) as refused:
        done(machine, host, **more)

    assert said in str(refused.value)
    assert listed(Path(machine.home)) == []


@pytest.mark.parametrize("host", ["codex", "claude-desktop"])
def test_a_dollar_is_only_a_dollar_elsewhere(host: str, machine: Machine) -> None:
    (change,) = done(machine, host, vault=Path("/home/$USER/${x}")).changes

    assert "/home/$USER/${x}" in Path(change.path).read_text()


def test_a_program_in_a_cache_is_told_of(machine: Machine) -> None:
    passing = Launcher(("/home/you/.cache/uv/archive-v0/xyz/bin/vault-palace",))
    from tests.surfaces.hosts.machines import wish

    outcome = connect.connect(wish("gemini"), machine, passing)

    assert "install" in outcome.notes[0]


# -- several at once ---------------------------------------------------------------------------------------


def test_several_at_once_lose_no_entry(machine: Machine, gemini: Path) -> None:
    gemini.write_text('{"ui": {}}')
    names = [f"palace-{number}" for number in range(6)]
    failed: list[BaseException] = []
    start = threading.Barrier(len(names))

    def run(name: str) -> None:
        start.wait()
        try:
            done(machine, "gemini", name=name)
        except Busy:
            done(machine, "gemini", name=name)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert sorted(servers(gemini)) == names
    assert [name for name in listed(gemini.parent) if name.endswith(".tmp")] == []


def test_what_somebody_wrote_meanwhile_is_kept(
    machine: Machine, gemini: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemini.write_text("{}")
    put = files.put
    times: list[int] = []

    def late(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        if target == gemini and not times:
            times.append(1)
            gemini.write_text('{"mine": true}')
        return put(staged, target, expect=expect)

    monkeypatch.setattr(files, "put", late)

    done(machine, "gemini")

    assert json.loads(gemini.read_text()) == {"mine": True, "mcpServers": {"vault-palace": ENTRY}}
    assert [name for name in listed(gemini.parent) if name.endswith(".tmp")] == []


def test_a_file_that_keeps_changing_is_given_up(
    machine: Machine, gemini: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemini.write_text("{}")
    put = files.put
    times: list[int] = []

    def late(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        if target == gemini:
            times.append(1)
            gemini.write_text(json.dumps({"time": len(times)}))
        return put(staged, target, expect=expect)

    monkeypatch.setattr(files, "put", late)

    with pytest.raises(Busy):
        done(machine, "gemini")

    assert json.loads(gemini.read_text()) == {"time": filing.TRIES}
    assert [name for name in listed(gemini.parent) if name.endswith(".tmp")] == []


# -- the block ---------------------------------------------------------------------------------------------

MINE = "# My rules\n\nNo tabs.\n"


def test_the_block_comes_after_what_a_person_wrote(machine: Machine) -> None:
    notes = Path(machine.project) / "CLAUDE.md"
    notes.write_text(MINE)

    done(machine, "claude-code", scope="project", instructions=True)

    text = notes.read_text()
    assert text.startswith(MINE + "\n<!-- vault-palace:begin vault-palace -->\n")
    assert text.endswith("\n<!-- vault-palace:end vault-palace -->\n")
    assert "`wake_up`" in text
    assert "search_room" not in text  # the wish of the test does not offer it


def test_the_block_is_the_same_the_second_time(machine: Machine) -> None:
    done(machine, "codex", instructions=True)

    changes = done(machine, "codex", instructions=True).changes

    assert [change.done for change in changes] == ["kept", "kept"]


@pytest.mark.parametrize("text", [MINE, MINE.replace("\n", "\r\n"), MINE.rstrip(), "", "x\n\n\n"])
def test_only_the_block_is_changed_and_taken_out(text: str, machine: Machine) -> None:
    notes = Path(machine.project) / "AGENTS.md"
    notes.write_bytes(text.encode())
    done(machine, "opencode", scope="project", instructions=True)
    with notes.open("ab") as file:
        file.write(b"More of mine.\n")

    done(machine, "opencode", scope="project", instructions=True, tools=frozenset({"rate_memory"}))
    grown = notes.read_bytes().decode()
    done(machine, "opencode", scope="project", vault=None, remove=True)

    assert grown.startswith(text)
    assert "rate_memory" in grown
    assert "wake_up" not in grown
    left = notes.read_bytes().decode()
    assert left.startswith(text)
    assert left.removeprefix(text).strip() == "More of mine."
    assert "vault-palace" not in left


def test_what_came_with_the_block_goes_with_it(machine: Machine) -> None:
    notes = Path(machine.project) / "AGENTS.md"
    notes.write_text(MINE)
    done(machine, "codex", scope="project", instructions=True)

    done(machine, "codex", scope="project", vault=None, remove=True)

    assert notes.read_text() == MINE


def test_a_block_that_another_host_reads_stays(machine: Machine) -> None:
    for host in ("codex", "opencode"):
        done(machine, host, scope="project", instructions=True)
    notes = Path(machine.project) / "AGENTS.md"

    first = done(machine, "codex", scope="project", vault=None, remove=True)
    after_first = notes.read_text()
    done(machine, "opencode", scope="project", vault=None, remove=True)

    assert "opencode reads it too" in first.notes[0]
    assert "vault-palace:begin" in after_first
    assert notes.read_text() == ""


@pytest.mark.parametrize(
    "text",
    [
        "<!-- vault-palace:begin vault-palace -->\n",
        "a\n<!-- vault-palace:end vault-palace -->\n",
        "<!-- vault-palace:end vault-palace -->\n<!-- vault-palace:begin vault-palace -->\n",
        "<!-- vault-palace:begin vault-palace -->\n" * 2 + "<!-- vault-palace:end vault-palace -->\n" * 2,
    ],
)
def test_markers_that_are_no_pair_are_refused(text: str, machine: Machine) -> None:
    notes = Path(machine.project) / "CLAUDE.md"
    notes.write_text(text)

    with pytest.raises(MalformedNote, match="no pair"):
        done(machine, "claude-code", scope="project", instructions=True)

    assert notes.read_text() == text


@pytest.mark.parametrize(("host", "scope"), SCOPES)
def test_removing_what_is_not_there_says_so(host: str, scope: Scope, machine: Machine) -> None:
    outcome = done(machine, host, scope=scope, vault=None, remove=True)

    assert outcome.changes == ()
    assert "has no entry" in outcome.notes[0]
    assert listed(Path(machine.home)) == listed(Path(machine.project)) == []


def test_the_entry_of_another_program_is_not_removed(machine: Machine, gemini: Path) -> None:
    text = json.dumps({"mcpServers": {"vault-palace": {"command": "npx", "args": ["other"]}}})
    gemini.write_text(text)

    with pytest.raises(Exists, match="npx other"):
        done(machine, "gemini", vault=None, remove=True)

    assert gemini.read_text() == text


def test_the_entry_of_another_program_is_removed_when_told(machine: Machine, gemini: Path) -> None:
    gemini.write_text('{"mcpServers": {"vault-palace": {"command": "npx", "args": ["other"]}}}')

    done(machine, "gemini", vault=None, remove=True, replace=True)

    assert servers(gemini) == {}


def test_the_entry_for_any_vault_is_removed(machine: Machine, gemini: Path) -> None:
    gemini.write_text(
        '{"mcpServers": {"vault-palace": {"command": "uvx", "args": ["vault-palace", "serve"]}}}'
    )

    done(machine, "gemini", vault=None, remove=True)

    assert servers(gemini) == {}


def test_a_broken_file_of_another_host_keeps_the_block(machine: Machine) -> None:
    done(machine, "codex", scope="project", instructions=True)
    (Path(machine.project) / "opencode.json").write_text("{")

    outcome = done(machine, "codex", scope="project", vault=None, remove=True)

    assert "opencode" in outcome.notes[0]
    assert "vault-palace:begin" in (Path(machine.project) / "AGENTS.md").read_text()
    assert "vault-palace" not in (Path(machine.project) / ".codex" / "config.toml").read_text()


@pytest.mark.parametrize("host", ["gemini", "codex"])
def test_a_folder_in_the_place_of_the_file_is_refused(host: str, machine: Machine) -> None:
    name = {"gemini": ".gemini/settings.json", "codex": ".codex/config.toml"}[host]
    (Path(machine.home) / name).mkdir(parents=True)

    with pytest.raises(NotFound, match="a folder, not a file"):
        done(machine, host)


def test_a_file_in_the_place_of_the_folder_is_refused(machine: Machine) -> None:
    (Path(machine.home) / ".gemini").write_text("mine")

    with pytest.raises(VaultError):
        done(machine, "gemini")

    assert (Path(machine.home) / ".gemini").read_text() == "mine"


# -- showing -----------------------------------------------------------------------------------------------


def test_the_diff_shows_no_neighbour(machine: Machine, gemini: Path) -> None:
    gemini.write_text('{\n  "mcpServers": {\n    "a": {\n      "env": {"KEY": "swordfish"}\n    }\n  }\n}\n')

    (change,) = done(machine, "gemini", write=False).changes

    assert "swordfish" not in "\n".join(connect.diff(change))


def test_the_diff_of_a_long_line_shows_no_neighbour(machine: Machine, gemini: Path) -> None:
    gemini.write_text(json.dumps({"mcpServers": {"a": {"env": {"KEY": "swordfish" * 30}}}}))

    (change,) = done(machine, "gemini", write=False).changes

    said = "\n".join(connect.diff(change))
    assert "swordfish" not in said
    assert str(VAULT) in said
