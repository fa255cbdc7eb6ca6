"""Where the words of a command go: tables on a terminal, plain lines elsewhere, JSON for programs.

Answers go to standard output, everything else (errors, questions, progress) to standard error. With `--json`
standard output holds exactly one JSON document, also when the command failed: then it is
`{"error": {"code", "message", "hint", "facts"}}` and standard error stays empty. Rich is imported only for a
terminal.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from vault_palace.core.errors import VaultError

if TYPE_CHECKING:
    from rich.console import Console

PROGRAM = "vault-palace"
NARROWEST = 20  # columns; in fewer, tables and their words disappear

Progress = Callable[[int, int, str], None]

# A note is other people's text: nothing in it may move the cursor, rename the window or ring the bell.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_SWITCHES = re.compile(r"\b(confirm|force): true\b")


@dataclass(frozen=True, slots=True)
class Says:
    """A line or a passage of text; `style` is Rich's and is dropped where there is no terminal."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under column names. Without a terminal: one row a line, the cells separated by tabs."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


Block = Says | Table


@dataclass(frozen=True, slots=True)
class Screen:
    """One command's output: `people` is a Rich console, None when the words shall be plain."""

    as_json: bool
    people: Console | None

    @classmethod
    def open(cls, *, as_json: bool) -> Screen:
        return cls(as_json, None if as_json else _console(sys.stdout))

    def show(self, document: object, blocks: Sequence[Block]) -> None:
        """The answer: *document* for a program, *blocks* for a person."""
        if self.as_json:
            put(sys.stdout, to_json(document, sys.stdout))
        else:
            _print(blocks, self.people, sys.stdout)

    def raw(self, text: str) -> None:
        """*text* exactly as it is to a file or a program, without control characters to a terminal."""
        sys.stdout.write(printable(text) if sys.stdout.isatty() else text)

    @property
    def can_ask(self) -> bool:
        """Whether a person is there to answer a question."""
        return not self.as_json and sys.stdin.isatty() and sys.stderr.isatty()

    def ask(self, question: str, blocks: Sequence[Block] = ()) -> bool:
        """Show *blocks* and ask; anything but a yes is a no. Ask only where `can_ask`."""
        _print(blocks, _console(sys.stderr), sys.stderr)
        sys.stderr.write(f"{printable(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    @contextmanager
    def progress(self, title: str, *, at_once: bool = False) -> Iterator[Progress | None]:
        """A bar on standard error while a long command works; None where nobody watches.

        It shows when the first step is reported, or *at_once* for work that reports none.
        """
        console = None if self.as_json else _console(sys.stderr)
        if console is None:
            yield None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        with Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
        ) as bar:
            task = bar.add_task(title, total=None, visible=at_once)

            def at(done: int, total: int, label: str) -> None:
                said = f"{title} {printable(label)}".strip()
                bar.update(task, completed=done, total=total or None, description=said[:70], visible=True)

            yield at


def put(stream: TextIO, line: str) -> None:
    """One line to *stream*."""
    stream.write(line + "\n")


def printable(text: str) -> str:
    """*text* with its control characters, but line ends and tabs, made visible."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


def to_json(document: object, stream: TextIO) -> str:
    """*document* as JSON that survives the stream's encoding; a lone surrogate becomes its escape."""
    ascii_only = not (stream.encoding or "").lower().replace("-", "").startswith("utf")
    return json.dumps(document, ensure_ascii=ascii_only, indent=2, default=str)


def open_closed_streams() -> bool:
    """Open streams that the caller closed on nothing: a file opened later must not become the output.

    Answers whether standard output was closed.
    """
    unheard = sys.stdout is None
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, so this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    return unheard


def make_safe(*streams: TextIO) -> None:
    """Let no character that the console cannot show end a command: it becomes an escape."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def refuse(error: VaultError, *, as_json: bool, code: str = "") -> None:
    """Say an expected error: code, sentence and next step; for a program the facts too."""
    code = code or error.code
    message, hint = in_options(error.message), in_options(error.hint)
    if as_json:
        said = {"code": code, "message": message, "hint": hint, "facts": error.facts}
        put(sys.stdout, to_json({"error": said}, sys.stdout))
        return
    complain(code, message, hint)


def in_options(words: str) -> str:
    """*words* of the palace, which names arguments as a tool's caller gives them, for the command line."""
    return _SWITCHES.sub(r"--\1", words)


def complain(code: str, message: str, hint: str = "") -> None:
    """One line on standard error, and the next step under it."""
    put(sys.stderr, f"{PROGRAM}: {code}: {printable(message)}")
    if hint:
        put(sys.stderr, f"  {printable(hint)}")


def fault(error: Exception, *, as_json: bool) -> None:
    """Say that the program itself failed; here the traceback helps, so it is shown."""
    said = f"{type(error).__name__}: {error}"
    traceback.print_exception(error, file=sys.stderr)
    if as_json:
        facts: Mapping[str, object] = {"type": type(error).__name__}
        document = {"error": {"code": "internal_error", "message": said, "hint": "", "facts": facts}}
        put(sys.stdout, to_json(document, sys.stdout))
    complain("internal_error", said, "This is a fault of the program; the lines above say where.")


def close_quietly(stream: TextIO) -> None:
    """Turn *stream* to nowhere, or the interpreter would complain once more when it flushes at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return  # a stream without a descriptor has nobody to complain to


def _console(stream: TextIO) -> Console | None:
    """A Rich console where a person watches *stream* and wants colours; None for plain words."""
    if not stream.isatty():
        return None
    from rich.console import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            """Rich would end the process with its own status."""
            raise BrokenPipeError

    console = Quiet(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
    plain = console.no_color or console.is_dumb_terminal or console.width < NARROWEST
    return None if plain else console


def _print(blocks: Sequence[Block], people: Console | None, stream: TextIO) -> None:
    for block in blocks:
        if people is None:
            put(stream, _plain(block))
        else:
            _draw(people, block)


def _plain(block: Block) -> str:
    if isinstance(block, Says):
        return printable(block.text)
    lines = [block.title] if block.title else []
    lines += ["\t".join(_cell(cell) for cell in row) for row in block.rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return printable(" ".join(text.split()))


COPIED = frozenset({"operation", "version"})  # columns whose words go into the next command: in one piece


def _draw(console: Console, block: Block) -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    if isinstance(block, Says):
        console.print(Text(printable(block.text), style=block.style), soft_wrap=True)
        return
    grid = Grid(title=Text(block.title) if block.title else None, title_justify="left", header_style="bold")
    for column in block.columns:
        grid.add_column(Text(column), overflow="fold", no_wrap=column in COPIED)
    for row in block.rows:
        grid.add_row(*(Text(_cell(cell)) for cell in row))
    console.print(grid)
