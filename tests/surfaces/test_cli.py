"""The command line's edge: statuses, errors, what goes to which stream, pipes and odd encodings.

The palace is a stand-in here, so that each error and each answer can be had at will; terminals are in
test_cli_terminal.py, the commands on a real vault in test_cli_vault.py.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.surfaces.stand_in import FOUND, MATCH, METABOLIZED, StandIn, put_in_place
from vault_palace.core import errors
from vault_palace.core.errors import InvalidArguments, NotFound, PolicyViolation, VaultError
from vault_palace.core.model import Problem
from vault_palace.surfaces.cli import app as commands
from vault_palace.surfaces.cli import main, render, screen

KINDS = sorted(
    {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, VaultError)}
    - {VaultError},
    key=lambda kind: (kind.exit_status, kind.__name__),
)


@pytest.fixture
def palace(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return put_in_place(monkeypatch)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_expected_error_has_its_own_status_and_no_traceback(
    kind: type[VaultError], palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    palace.answers["search"] = kind("It did not work.", hint="Try this.", path="a.md")

    status = main(["search", "kafka"])

    said = capsys.readouterr()
    assert status == kind.exit_status
    assert said.out == ""
    assert said.err == f"vault-palace: {kind.code}: It did not work.\n  Try this.\n"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_expected_error_is_one_json_document_for_a_program(
    kind: type[VaultError], palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    palace.answers["search"] = kind("It did not work.", hint="Try this.", path="a.md")

    status = main(["search", "kafka", "--json"])

    said = capsys.readouterr()
    assert status == kind.exit_status
    assert said.err == ""
    assert json.loads(said.out) == {
        "error": {
            "code": kind.code,
            "message": "It did not work.",
            "hint": "Try this.",
            "facts": {"path": "a.md"},
        }
    }


def test_no_two_kinds_of_error_share_a_status_unless_they_share_a_code() -> None:
    by_status: dict[int, set[str]] = {}

    for kind in KINDS:
        by_status.setdefault(kind.exit_status, set()).add(kind.code)

    assert all(len(codes) == 1 for codes in by_status.values())
    assert not {0, 1, 70, 74, 130, 141} & set(by_status)


def test_the_help_names_every_status() -> None:
    for kind in KINDS[1:]:
        assert f"{kind.exit_status} {kind.code}" in commands.EPILOG


WRONG_WORDS = [
    ([], 2),
    (["--"], 2),
    (["bogus"], 2),
    (["search"], 2),
    (["search", "x", "--limit", "many"], 2),
    (["search", "x", "--bogus"], 2),
    (["move", "a.md"], 2),
    (["rate", "a.md", "--density", "high"], 2),
]


@pytest.mark.parametrize(("words", "status"), WRONG_WORDS)
def test_wrong_words_end_with_2_before_anything_is_opened(
    words: list[str], status: int, palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = main(words)

    assert ended == status
    assert palace.calls == []
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--vault", "v", "status"], ["--json", "status"]])
def test_an_option_before_the_command_is_told_its_place(
    words: list[str], palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = main(words)

    said = capsys.readouterr()
    assert ended == 2
    assert f"vault-palace COMMAND {words[0]}" in said.out + said.err


def test_wrong_words_are_json_too_when_json_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["search", "x", "--limit", "many", "--json"])

    said = capsys.readouterr()
    assert status == 2
    assert json.loads(said.out)["error"]["code"] == "invalid_arguments"


def test_a_json_after_two_dashes_is_text(palace: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    palace.answers["search"] = NotFound("No.")

    main(["search", "--", "--json"])

    assert capsys.readouterr().out == ""


def test_a_fault_of_the_program_ends_with_70_and_says_where(
    palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    palace.answers["search"] = ZeroDivisionError("oh")

    status = main(["search", "kafka", "--json"])

    said = capsys.readouterr()
    assert status == 70
    assert "Traceback" in said.err
    assert json.loads(said.out)["error"]["code"] == "internal_error"


def test_ctrl_c_ends_with_130_and_one_line(palace: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    palace.answers["search"] = KeyboardInterrupt()

    status = main(["search", "kafka"])

    assert status == 130
    assert capsys.readouterr().err == "vault-palace: interrupted: Stopped.\n"


COMMANDS = sorted(
    info.callback.__name__.replace("_", "-")
    for info in commands.app.registered_commands
    if info.callback is not None
)


def test_the_commands_are_the_documented_ones() -> None:
    expected = (
        "canvas check connect forget healthcheck history init metabolize move purge rate read "
        "recover reindex resolve restore search serve status token undo wake-up watch write"
    )

    assert sorted(expected.split()) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_all_its_options(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    import typer

    group: Any = typer.main.get_command(commands.app)
    params = group.commands[command].params

    status = main([command, "--help"])

    said = capsys.readouterr().out
    assert status == 0
    assert "--vault" in said
    assert command == "serve" or "--json" in said
    for param in params:
        assert param.help, f"{command}: {param.name} has no help"


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    from vault_palace import __version__

    status = main(["--version"])

    assert status == 0
    assert capsys.readouterr().out == f"vault-palace {__version__}\n"


def test_a_hit_is_shown_with_its_reason_in_plain_words(
    palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["search", "kafka", "topics"])

    assert palace.calls[0][1] == ("kafka topics",)
    assert capsys.readouterr().out.splitlines() == [
        "Kafka [bold]topics[/bold]",
        "  01_Shallow/kafka.md · shallow · density 0.2 · 3 days old · decays 2026-12-08",
        "  topics are logs",
        "  all words in the title",
    ]


def test_json_is_the_answer_itself(palace: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    main(["search", "kafka", "--json"])

    assert json.loads(capsys.readouterr().out) == FOUND


def test_nobody_is_asked_without_a_terminal_and_the_palace_decides(
    palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    palace.answers["metabolize"] = PolicyViolation("metabolize needs confirm: true.")

    status = main(["metabolize"])

    assert status == PolicyViolation.exit_status
    assert [n["confirm"] for _, _, n in palace.calls] == [False]


def test_the_first_ctrl_c_stops_metabolize_between_two_notes(palace: StandIn) -> None:
    import signal

    def run(*, cancelled: Callable[[], bool], **_: object) -> dict[str, object]:
        before = cancelled()
        signal.raise_signal(signal.SIGINT)
        return {**METABOLIZED, "cancelled": not before and cancelled()}

    palace.answers["metabolize"] = run
    handler = signal.getsignal(signal.SIGINT)

    status = main(["metabolize", "--confirm"])

    assert status == 130
    assert signal.getsignal(signal.SIGINT) is handler


def test_there_is_no_progress_for_programs(palace: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    main(["metabolize", "--confirm", "--json"])

    assert palace.calls[0][2]["progress"] is None
    assert capsys.readouterr().err == ""


def test_check_lists_each_problem_with_path_and_line_and_ends_with_1(
    palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    palace.answers["check"] = [Problem(path="01_Shallow/a.md", line=3, code="bad_value", message="No date.")]

    status = main(["check"])

    assert status == 1
    assert capsys.readouterr().out == "01_Shallow/a.md:3: bad_value: No date.\n1 problem found.\n"


def test_check_ends_with_0_on_a_healthy_vault(palace: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["check", "--json"])

    assert status == 0
    assert json.loads(capsys.readouterr().out) == {"problem_count": 0, "problems": []}


OPERATION = {"operation_id": "op1", "operation": "move", "path": "a.md", "detail": "both files are there"}


@pytest.mark.parametrize(("ended", "status"), [("finished", 0), ("undone", 0), ("open", 1)])
def test_recover_ends_with_1_only_when_something_is_left_for_a_person(
    ended: str, status: int, palace: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    palace.answers["recover"] = {
        "unresolved_count": 1,
        "recovered_count": 1,
        "recovered": [{**OPERATION, "status": ended}],
    }

    result = main(["recover"])

    assert result == status
    assert f"move\ta.md\t{ended}\tboth files are there" in capsys.readouterr().out


def test_content_comes_from_standard_input_as_utf_8_whatever_the_locale(
    palace: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO("\ufeffЗаметка\n".encode()), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    palace.answers["write"] = InvalidArguments("seen")

    main(["write", "-", "--title", "t"])

    assert palace.calls[0][1] == ("Заметка\n",)


def test_standard_input_that_is_not_utf_8_is_refused(
    palace: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"ab\xff")))

    status = main(["write", "-"])

    assert status == 2
    assert "byte 2" in capsys.readouterr().err
    assert palace.calls == []


def _stream(encoding: str) -> tuple[io.TextIOWrapper, io.BytesIO]:
    raw = io.BytesIO()
    return io.TextIOWrapper(raw, encoding=encoding, newline="\n"), raw


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp866", "utf-8"])
def test_no_console_encoding_ends_a_command(
    encoding: str, palace: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, raw = _stream(encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    palace.answers["search"] = {**FOUND, "matches": [{**MATCH, "title": "日本 🦀 \udcff"}]}

    status = main(["search", "x"])

    stream.flush()
    assert status == 0
    assert b"01_Shallow/kafka.md" in raw.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_json_stays_json_in_every_encoding(
    encoding: str, palace: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, raw = _stream(encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    palace.answers["search"] = {**FOUND, "query": "日本 🦀 \udcff"}

    main(["search", "x", "--json"])

    stream.flush()
    assert json.loads(raw.getvalue().decode(encoding))["query"] == "日本 🦀 \udcff"


class Gone(io.StringIO):
    """Standard output whose reader left, or whose disk is full."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [(BrokenPipeError(32, "gone"), 141, ""), (OSError(28, "No space left"), 74, "output_failed")],
)
def test_an_output_that_fails_is_no_traceback(
    error: OSError,
    status: int,
    said: str,
    palace: StandIn,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", Gone(error))

    ended = main(["search", "x"])

    err = capsys.readouterr().err
    assert ended == status
    assert said in err
    assert "Traceback" not in err


def test_a_reader_that_leaves_early_leaves_no_complaint(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "vault_palace", "--version"],
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(write)

    assert ended.returncode == 141
    assert ended.stderr == b""


VERBS = [command for command in COMMANDS if command != "serve"]


@pytest.mark.parametrize("command", VERBS)
def test_no_verb_but_serve_imports_the_server(command: str, tmp_path: Path) -> None:
    words = {"move": ["a", "shallow"], "write": ["x"], "search": ["x"], "purge": ["x"], "restore": ["x"]}
    words.update({verb: ["x"] for verb in ("resolve", "history", "undo", "forget")})
    words["connect"] = ["cursor"]
    line = [command, *words.get(command, []), "--vault", str(tmp_path / "vault")]
    program = (
        "import sys\n"
        "from vault_palace.surfaces.cli import main\n"
        f"status = main({line!r})\n"
        "assert status in (0, 10, 14), status\n"
        "heavy = {'mcp', 'mcp_types', 'starlette', 'rich.progress'} & set(sys.modules)\n"
        "sys.exit(f'{heavy} were imported' if heavy else 0)\n"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert ended.returncode == 0, ended.stderr


def test_every_control_character_but_line_ends_and_tabs_becomes_visible() -> None:
    text = "".join(map(chr, range(0xA0)))

    shown = screen.printable(text)

    assert {char for char in shown if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0} == {"\t", "\n"}


def test_a_cell_of_a_plain_table_holds_no_tab_or_line_end() -> None:
    block = screen.Table(("a", "b"), (("x\ty", "one\ntwo"),))

    assert screen._plain(block) == "x y\tone two"


def test_values_are_shown_as_a_note_holds_them() -> None:
    answer: Any = {
        "path": "a.md",
        "before": {"density": 0.2, "pinned": False, "decay_days": None},
        "after": {"density": 0.1234, "pinned": True, "decay_days": 30},
        "decays_on": None,
    }

    table = render.rated(answer)[1]

    assert table == screen.Table(
        ("property", "before", "after"),
        (("density", "0.2", "0.1234"), ("pinned", "false", "true"), ("decay_days", "–", "30")),
    )
