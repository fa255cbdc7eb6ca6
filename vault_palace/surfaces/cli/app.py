"""The commands: each parses its words, calls one method of the palace, and shows the answer.

Nothing heavy is imported before a command needs it; only `serve` brings in the server.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vault_palace import __version__
from vault_palace.core.errors import BudgetExceeded, InvalidArguments
from vault_palace.surfaces.cli import INTERRUPTED, render, standing
from vault_palace.surfaces.cli.screen import Screen, put

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace

LEFT_FOR_A_PERSON = 1
AT_ONCE = 0.7  # seconds in which healthcheck tells what it knows
MOST_INPUT = 64 * 1024 * 1024  # bytes of standard input; an endless one must not fill the memory

EPILOG = (
    "Exit status: 0 done; 1 done, but something is left for a person (check, healthcheck, recover, "
    "resolve, undo, forget); "
    "2 wrong arguments; "
    "10 not_found, 11 exists, 12 conflict, 13 busy, 14 path_violation, 15 policy_violation, "
    "16 rate_limited, 17 budget_exceeded, 18 lock_timeout, 19 malformed_note, 20 unsafe_content, "
    "21 timeout, 22 storage_failed; 70 a fault of the program; 74 the output could not be written; "
    "130 Ctrl-C; 141 the output's reader left."
)

app: typer.Typer = typer.Typer(
    name="vault-palace",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Vault = Annotated[
    str | None,
    typer.Option(
        "--vault",
        metavar="PATH",
        help="The vault's folder; else VAULT_PALACE_VAULT names it. The current folder is never guessed.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help='One JSON document on standard output, for errors too ({"error": …}).')
]
Note = Annotated[str | None, typer.Argument(metavar="[NOTE]", help="The note's path in the vault.")]
Id = Annotated[str | None, typer.Option("--id", metavar="ID", help="The note's id instead of its path.")]
Layer = Annotated[str | None, typer.Option("--layer", help="shallow, sediment or bedrock.")]
Confirm = Annotated[bool, typer.Option("--confirm", help="Yes: do it. On a terminal you are asked instead.")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", help="Cut the answer to about N tokens.")
]


def run(args: Sequence[str]) -> int:
    """Parse *args*, run the command they name, return its exit status."""
    command: Any = typer.main.get_command(app)
    try:
        with command.make_context("vault-palace", list(args)) as context:
            status = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return INTERRUPTED
    except _REFUSALS as refusal:
        if not str(refusal):  # no arguments at all: the help was shown
            return InvalidArguments.exit_status
        raise _as_wrong_arguments(refusal) from None
    return status if isinstance(status, int) else 0


# The root of the parser's errors; Typer does not export it by name.
_REFUSALS: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def _as_wrong_arguments(refusal: Any) -> InvalidArguments:
    context = getattr(refusal, "ctx", None)
    path = context.command_path if context is not None else "vault-palace"
    message = str(refusal.format_message())
    if path == "vault-palace" and getattr(refusal, "option_name", "") in ("--vault", "--json"):
        option = refusal.option_name
        return InvalidArguments(
            f"{option} stands behind the command.", hint=f"vault-palace COMMAND {option} …"
        )
    return InvalidArguments(message, hint=f"See: {path} --help")


@contextmanager
def opened(vault: str | None, *, read_only: bool = False) -> Iterator[Palace]:
    """The palace that the option or the environment names; closed at the end."""
    from vault_palace.services.palace import Palace
    from vault_palace.surfaces import config

    settings = config.read_settings(vault, surface="cli", read_only=read_only)
    palace = Palace.open(settings.root, settings=settings.for_palace())
    try:
        yield palace
    finally:
        palace.close()


@contextmanager
def looked_at(vault: str | None) -> Iterator[Palace]:
    """The palace as it stands: nothing is recovered first, since that may wait for the lock.

    It is let go with the process, for a question that hangs on a disk would keep it from closing.
    """
    from vault_palace.services.house import House
    from vault_palace.services.palace import Palace
    from vault_palace.surfaces import config

    settings = config.read_settings(vault, surface="cli")
    yield Palace(House.open(settings.root, settings.for_palace()))


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    """Memory for AI agents as a folder of plain Markdown: an Obsidian vault whose layers age."""
    if version:
        put(sys.stdout, f"vault-palace {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise InvalidArguments("No command given.", hint="See: vault-palace --help")


@app.command()
def init(
    path: Annotated[str | None, typer.Argument(metavar="[PATH]", help="The folder; else --vault.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be added, add nothing.")] = False,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", metavar="ZONE", help="Such as Europe/Oslo; else the machine's."),
    ] = None,
    confirm: Confirm = False,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Lay a vault out in an empty folder, or add what is missing to an existing Obsidian vault.

    No file that is there is overwritten. What will be added to a folder that holds something is said
    first, and on a terminal you are asked.
    """
    from vault_palace.services.init import init as lay_out
    from vault_palace.services.init import template_root
    from vault_palace.surfaces import config

    screen = Screen.open(as_json=as_json)
    root = config.read_settings(path if path is not None else vault, surface="cli").root
    zone = timezone or _machine_zone()
    if not dry_run and not confirm and screen.can_ask and root.is_dir() and any(root.iterdir()):
        plan = lay_out(root, template=template_root(), zone_name=zone, dry_run=True)
        if not screen.ask(f"Add this to {root}?", render.laid_out(plan)):
            return declined()
    answer = lay_out(root, template=template_root(), zone_name=zone, dry_run=dry_run)
    screen.show(answer, render.laid_out(answer))
    return 0


@app.command()
def serve(
    vault: Vault = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Write nothing: refuse what would.")] = False,
    tools: Annotated[
        str | None,
        typer.Option(
            "--tools",
            metavar="NAMES",
            help="Offer these alone: core, all, or tools with commas between; else VAULT_PALACE_TOOLS.",
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="[HOST:]PORT",
            help="Over HTTP, at /mcp, for several agents; on this machine alone unless HOST is another. "
            "Port 0 takes any that is free; standard error says which.",
        ),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="With --http on this machine alone: ask for no token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="With --http: answer to this name, too. Give it again for more.",
        ),
    ] = None,
) -> int:
    """Serve the vault to agents over MCP: on standard input and output until the input ends, or over HTTP."""
    from vault_palace.surfaces import config

    settings = config.read_settings(vault, surface="mcp", read_only=read_only, tools=tools)
    if http is None:
        if no_token or allow_host:
            option = "--no-token" if no_token else "--allow-host"
            raise InvalidArguments(f"{option} goes with --http alone.", hint="See: vault-palace serve --help")
        from vault_palace.surfaces.mcp.server import serve as speak

        return speak(settings)
    from vault_palace.surfaces.mcp.address import read_address

    address = read_address(http)
    from vault_palace.surfaces.mcp.http import serve_http

    return serve_http(settings, address, with_token=not no_token, allowed_hosts=allow_host or ())


@app.command()
def token(
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Make a new one; the old one is refused from now on.")
    ] = False,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Print the token that clients of `serve --http` send. Made on first use, kept outside the vault."""
    from vault_palace.services import bearer
    from vault_palace.storage.vault import find_palace
    from vault_palace.surfaces import config

    screen = Screen.open(as_json=as_json)
    settings = config.read_settings(vault, surface="cli")
    find_palace(settings.root)
    make = bearer.rotate if rotate else bearer.read_or_make
    value = make(settings.state_dir, settings.root)
    place = bearer.token_file(settings.state_dir, settings.root)
    if as_json:
        screen.show({"token": value, "file": str(place)}, [])
    else:
        put(sys.stdout, value)
    return 0


@app.command()
def watch(
    poll: Annotated[
        bool, typer.Option("--poll", help="Compare by the clock instead of waiting to be told of changes.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Look at everything once, wait for what is due soon, and end.")
    ] = False,
    vault: Vault = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a line.")] = False,
) -> int:
    """Keep properties, links, index note and ages in step with what people do, until Ctrl-C.

    Every `serve` does the same inside; of all processes on a vault one is the keeper, another takes over
    when it ends. Without _System/Policy.md nothing is written.
    """
    from vault_palace.surfaces import config
    from vault_palace.surfaces.cli import watching

    screen = Screen.open(as_json=as_json)
    settings = config.read_settings(vault, surface="cli")
    with opened(vault) as palace:
        if once:
            watching.watch_once(palace, screen)
        else:
            watching.watch(palace, settings, screen, poll=poll)
    return 0


@app.command("wake-up")
def wake_up(
    room: Annotated[
        str | None, typer.Option("--room", help="A folder: 01_Shallow/ideas, or ideas in every layer.")
    ] = None,
    max_tokens: MaxTokens = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="Whose last briefing counts; else the last 7 days."),
    ] = None,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Brief an agent at the start of its session: what lasts, what fades, what people changed.

    It is no use of a note. A host that runs a command when a session starts can hand it to the agent.
    """
    from vault_palace.services.caller import Caller, calling

    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace, calling(Caller(agent=(agent or "").strip())):
        answer = palace.wake_up(room=room, max_tokens=max_tokens)
    if as_json:
        screen.show(answer, ())
    else:
        screen.raw(f"{answer['brief']}\n")  # for an agent's context: no colours, no tables
    return 0


@app.command()
def write(
    content: Annotated[str, typer.Argument(help="The text in Markdown; - reads it from standard input.")],
    title: Annotated[str | None, typer.Option("--title", help="Names the file; adds no heading.")] = None,
    layer: Annotated[
        str | None, typer.Option("--layer", help="shallow (if not said), sediment or bedrock.")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", help="Where in the layer, such as ideas/kafka; else the title.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Without #; give it again for more.")] = None,
    density: Annotated[float | None, typer.Option("--density", help="How valuable: 0 to 1.")] = None,
    source_session: Annotated[str | None, typer.Option("--source-session", help="Who writes.")] = None,
    mode: Annotated[str, typer.Option("--mode", help="create, append or replace.")] = "create",
    if_rev: Annotated[
        str | None, typer.Option("--if-rev", metavar="REV", help="Only if the note still is that version.")
    ] = None,
    supersedes: Annotated[
        list[str] | None, typer.Option("--supersedes", metavar="NOTE", help="The note this one replaces.")
    ] = None,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Write a memory: a new note, an addition to one, or its next version."""
    screen = Screen.open(as_json=as_json)
    text = _standard_input() if content == "-" else content
    with opened(vault) as palace:
        answer = palace.write(
            text,
            layer=layer,
            path=path,
            title=title,
            tags=tag,
            density=density,
            source_session=source_session,
            mode=mode,
            if_rev=if_rev,
            supersedes=supersedes,
        )
    screen.show(answer, render.written(answer))
    return 0


@app.command()
def read(
    note: Note = None,
    id: Id = None,
    title: Annotated[
        str | None, typer.Option("--title", help="The note's title instead of its path.")
    ] = None,
    section: Annotated[
        str | None, typer.Option("--section", metavar="HEADING", help="Only what stands under it.")
    ] = None,
    max_tokens: MaxTokens = None,
    touch: Annotated[
        bool, typer.Option("--touch/--no-touch", help="Whether this counts as a use of the note.")
    ] = True,
    body: Annotated[
        bool, typer.Option("--body", help="Only the text, exactly as it stands in the note.")
    ] = False,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Show a note: its properties, its text, and who links to it."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        answer = palace.read(
            path=note, id=id, title=title, max_tokens=max_tokens, section=section, touch=touch
        )
    if body and not as_json:
        screen.raw(answer["content"])
    else:
        screen.show(answer, render.read(answer))
    return 0


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(help="Words; any of them may match.")],
    room: Annotated[
        str | None, typer.Option("--room", help="A folder: 01_Shallow/ideas, or ideas in every layer.")
    ] = None,
    layer: Layer = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Without #; give it again for more.")] = None,
    min_density: Annotated[float | None, typer.Option("--min-density", help="0 to 1.")] = None,
    proposed: Annotated[
        bool, typer.Option("--proposed", help="Also what agents proposed and nobody approved yet.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", help="How many hits.")] = 10,
    max_tokens: MaxTokens = None,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Goes on where an earlier answer ended.")
    ] = None,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Find notes by words, best first, each with the reason it was found. Searching is not a use."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        answer = palace.search(
            " ".join(query),
            room=room,
            layer=layer,
            tags=tag,
            min_density=min_density,
            limit=limit,
            max_tokens=max_tokens,
            cursor=cursor,
            proposed=proposed,
        )
    screen.show(answer, render.found(answer))
    return 0


@app.command()
def rate(
    note: Note = None,
    id: Id = None,
    density: Annotated[float | None, typer.Option("--density", help="How valuable: 0 to 1.")] = None,
    pin: Annotated[
        bool | None, typer.Option("--pin/--unpin", help="A pinned note is moved by no rule.")
    ] = None,
    decay_days: Annotated[
        float | None, typer.Option("--decay-days", help="Its own lifetime in days.")
    ] = None,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Say how valuable a note is, pin it, or give it a lifetime of its own."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        answer = palace.rate(path=note, id=id, density=density, pinned=pin, decay_days=decay_days)
    screen.show(answer, render.rated(answer))
    return 0


@app.command()
def metabolize(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan; change nothing.")] = False,
    confirm: Confirm = False,
    days_threshold: Annotated[
        int | None, typer.Option("--days-threshold", metavar="N", help="Instead of 7 days for Shallow.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Archive also what the brakes hold back.")] = False,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Let the layers age: what proved valuable sinks, what nobody uses goes to the archive.

    On a terminal the plan is shown first and you are asked. Ctrl-C stops between two notes.
    """
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        if not dry_run and not confirm and screen.can_ask:
            plan = palace.metabolize(dry_run=True, days_threshold=days_threshold, force=force)
            confirm = screen.ask("Do this now?", render.metabolized(plan))
            if not confirm:
                return declined()
        with screen.progress("Metabolize") as progress, _stopping() as stopped:
            answer = palace.metabolize(
                dry_run=dry_run,
                confirm=confirm,
                days_threshold=days_threshold,
                force=force,
                progress=progress,
                cancelled=stopped,
            )
    screen.show(answer, render.metabolized(answer))
    return INTERRUPTED if answer["cancelled"] else 0


@app.command()
def purge(
    note: Annotated[str, typer.Argument(help="The note's path in the vault.")],
    reason: Annotated[str, typer.Option("--reason", help="Kept in the archived note.")] = "unspecified",
    confirm: Confirm = False,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Put a note into the archive now. Nothing is deleted: `restore` brings it back."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        if not confirm and screen.can_ask:
            confirm = screen.ask(f"Archive {note}?")
            if not confirm:
                return declined()
        answer = palace.purge(note, reason=reason, confirm=confirm)
    screen.show(answer, render.purged(answer))
    return 0


@app.command()
def restore(
    note: Annotated[str, typer.Argument(help="The archived note's path, such as _Archive/01_Shallow/x.")],
    to_layer: Annotated[
        str | None, typer.Option("--to-layer", help="Another layer than the one it came from.")
    ] = None,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Bring a note back from the archive, its links intact."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        answer = palace.restore(note, to_layer=to_layer)
    screen.show(answer, render.restored(answer))
    return 0


@app.command()
def move(
    note: Annotated[str, typer.Argument(help="The note's path in the vault.")],
    dest_layer: Annotated[str, typer.Argument(help="shallow, sediment or bedrock.")],
    new_path: Annotated[
        str | None, typer.Option("--new-path", help="Its path in that layer; else room and name stay.")
    ] = None,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Move or rename a note, and rewrite the links that would break."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        answer = palace.move(note, dest_layer, new_path=new_path)
    screen.show(answer, render.moved(answer))
    return 0


@app.command()
def resolve(
    note: Annotated[str, typer.Argument(help="The conflict copy, or the note that has one.")],
    keep: Annotated[
        str | None, typer.Option("--keep", help="main, copy or both: decide without a merge.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")
    ] = False,
    vault: Vault = None,
    as_json: Json = False,
) -> int:
    """Merge a sync tool's conflict copy into its note. Ends with 1 when a person has to decide.

    Where both changed the same lines, both stay, and a page in _System/Conflicts shows them side by side:
    make one text of them there, then run this again.
    """
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        answer = palace.resolve(note, keep=keep, dry_run=dry_run)
    screen.show(answer, render.resolved(answer))
    return LEFT_FOR_A_PERSON if answer["outcome"] == "page" else 0


@app.command()
def recover(vault: Vault = None, as_json: Json = False) -> int:
    """Finish or undo what a crash left half-done. Ends with 1 when something needs a person."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        answer = palace.recover()
    screen.show(answer, render.recovered(answer))
    return LEFT_FOR_A_PERSON if render.left_open(answer) else 0


@app.command()
def status(vault: Vault = None, as_json: Json = False) -> int:
    """Show the palace at a glance: notes, what decays and rises, index, keeper, servers and their calls."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        answer = palace.status()
    screen.show(answer, standing.status(answer))
    return 0


@app.command()
def healthcheck(vault: Vault = None, as_json: Json = False) -> int:
    """Say at once whether the palace works. Ends with 1 when something is really wrong.

    What is odd in notes is no fault: `check` lists it.
    """
    screen = Screen.open(as_json=as_json)
    with looked_at(vault) as palace:
        answer = palace.health(AT_ONCE)
    screen.show(answer, standing.health(answer))
    return LEFT_FOR_A_PERSON if answer["status"] != "ok" else 0


@app.command()
def check(vault: Vault = None, as_json: Json = False) -> int:
    """List every problem with its path and line. Ends with 1 when there is one. Changes nothing."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace:
        rows = render.as_rows(palace.check())
    screen.show({"problem_count": len(rows), "problems": rows}, render.problems(rows))
    return LEFT_FOR_A_PERSON if rows else 0


@app.command()
def reindex(vault: Vault = None, as_json: Json = False) -> int:
    """Build the search index anew from the notes. It is derived data: nothing can be lost."""
    screen = Screen.open(as_json=as_json)
    with opened(vault) as palace, screen.progress("Reindex", at_once=True):
        answer = palace.reindex()
    screen.show(answer, render.reindexed(answer))
    return 0


def _machine_zone() -> str:
    """The name of this machine's time zone; UTC where it cannot be told, and that is said."""
    from vault_palace.services import zones

    _, why = zones.machine_zone()
    if why:
        put(sys.stderr, f"{why} Or give --timezone.")
    return zones.machine_zone_name()


def _standard_input() -> str:
    """All of standard input as UTF-8, as far as any content may go; a BOM is not part of the text."""
    data = sys.stdin.buffer.read(MOST_INPUT + 1)
    if len(data) > MOST_INPUT:
        raise BudgetExceeded(
            f"Standard input goes on beyond {MOST_INPUT} bytes.", hint="Split it into several memories."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArguments(
            f"Standard input is not UTF-8 (byte {error.start}).", hint="Convert it to UTF-8 first."
        ) from None


def declined() -> int:
    """Say that a person said no."""
    put(sys.stderr, "Nothing was changed.")
    return 0


@contextmanager
def _stopping() -> Iterator[Any]:
    """Let the first Ctrl-C ask for a stop between two notes, and the second one end the program."""
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        before = signal.signal(signal.SIGINT, ask)
    except ValueError:  # not the main thread: signals are somebody else's
        yield lambda: False
        return
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


# The commands of the other modules, which need what is above; at the end, so that it is there.
from vault_palace.surfaces.cli import connecting, drawing, past  # noqa: E402, F401
