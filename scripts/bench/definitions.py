"""What the tools cost an agent: tokens of every definition before a call, and of typical answers afterwards.

    python -m scripts.bench.definitions [--install] [--notes N] [--sediment-palace PATH]
        [--basic-memory COMMAND] [--server-memory COMMAND] [--mcp-obsidian COMMAND] [--obsidian-rest COMMAND]

Counts the compact JSON of each tool's name, description and input schema, as `tools/list` gives them, and
both forms of an answer: the text, and the structured content, of which a host may show either to the model.
Tokens are o200k's and need Node and npm's gpt-tokenizer below `.tools/`; `--install` puts it there.

Every server answers over the same N notes of plain English (200 unless said), and is started as its own pages
say. The peers' commands, once they are installed (basic-memory wants Python 3.12 or later):

    pip install basic-memory                           --basic-memory "basic-memory mcp"
    npm install @modelcontextprotocol/server-memory    --server-memory "npx mcp-server-memory"
    npm install mcp-obsidian                           --mcp-obsidian "npx mcp-obsidian"
    pip install mcp-obsidian                           --obsidian-rest "mcp-obsidian"

The last one asks a running Obsidian for its answers, so only its definitions are counted.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scripts.bench.make_vault import LAYERS, make
from scripts.bench.wire import NoAnswerError, Server, command_line, ours, sediment_palace
from vault_palace.surfaces.mcp.texts import PRESETS

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
COUNT = """
const { countTokens } = require("gpt-tokenizer/encoding/o200k_base");
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => countTokens(text))));
"""


def definition(tool: dict[str, Any]) -> str:
    """A tool as a host hands it to a model."""
    kept = {key: tool[key] for key in ("name", "description", "inputSchema")}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def tokens(texts: Sequence[str]) -> list[int] | None:
    """o200k tokens of each text; None when Node or the tokenizer is missing."""
    if shutil.which("node") is None or not (TOOLS / "node_modules" / "gpt-tokenizer").is_dir():
        return None
    counted = subprocess.run(
        ["node", "-e", COUNT],
        input=json.dumps(list(texts)),
        cwd=TOOLS,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return [int(count) for count in json.loads(counted.stdout)]


def report(who: str, server: Server, core: Collection[str] = ()) -> None:
    """The sizes of one server's tools, the largest first; of *core*, those of a preset, the sum as well."""
    listed = server.ask("tools/list", {})["tools"]
    texts = {tool["name"]: definition(tool) for tool in listed}
    whole = "[" + ",".join(texts.values()) + "]"
    some = "[" + ",".join(text for name, text in texts.items() if name in core) + "]"
    counts = tokens([*texts.values(), whole, some, server.hello.get("instructions", "") or ""])
    print(f"\n{who}: {len(texts)} tools, {len(whole)} characters", end="")
    print(f", {counts[-3]} tokens (instructions {counts[-1]} more)" if counts else "")
    if counts and core:
        print(f"  preset core: {len(core)} tools, {counts[-2]} tokens")
    for at, (name, text) in sorted(enumerate(texts.items()), key=lambda pair: -len(pair[1][1])):
        print(f"  {name:24}{len(text):6} characters" + (f"{counts[at]:6} tokens" if counts else ""))
    if counts is None:
        print("  Tokens not counted: Node or gpt-tokenizer is missing (--install brings the latter).")


def answers(who: str, server: Server, calls: Sequence[Ask]) -> None:
    """The sizes of what *calls* are answered."""
    texts: list[str] = []
    for ask in calls:
        result = server.ask("tools/call", {"name": ask.tool, "arguments": ask.arguments})
        if result.get("isError"):
            raise NoAnswerError(f"{who} {ask.tool}: {result.get('content')}")
        structured = result.get("structuredContent")
        texts.append("\n".join(block.get("text", "") for block in result.get("content", ())))
        texts.append("" if structured is None else json.dumps(structured, ensure_ascii=False))
    counts = tokens(texts)
    print(f"\n{who}: answers in {'tokens' if counts else 'characters'}, as text and as structured content")
    sizes = counts or [len(text) for text in texts]
    for at, ask in enumerate(calls):
        structured_size = f"{sizes[2 * at + 1]:7}" if texts[2 * at + 1] else "      -"
        print(f"  {ask.what:28}{ask.tool:20}{sizes[2 * at]:7}{structured_size}")


# -- the same notes for everyone ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """One call, and what an agent wants of it."""

    what: str
    tool: str
    arguments: dict[str, Any]


START, SEARCH, READ, WRITE, AGE = (
    "start of a session",
    "search, 10 hits",
    "read a note",
    "write a note",
    "what ageing would do",
)
QUERY = "billing invoices"
NEW = (
    "Retries of webhooks",
    "Webhooks of billing are retried five times. After that the event goes to a queue, read on Mondays.",
)
_THINGS = (
    "billing",
    "search",
    "export",
    "login",
    "webhook",
    "invoice",
    "report",
    "import",
    "calendar",
    "backup",
)
_PARTS = ("service", "worker", "schema", "dashboard", "queue", "cache", "page", "script", "job", "contract")
_FACTS = (
    "The {thing} {part} keeps its state in Postgres: one place to look when an invoice is missing.",
    "Deploys of the {thing} {part} happen on Tuesdays; a release on a Friday cost us a weekend in spring.",
    "Its slowest query was the one by customer and month, which an index on both columns made quick.",
    "Anna decided against a second region for now: the contract asks for a recovery within a day.",
    "The old {thing} {part} is read by two reports still, so the table stays until they are moved.",
    "Billing asks for the numbers before the fifth day of each month, and invoices follow from them.",
)


def plain_note(number: int) -> tuple[str, str]:
    """Title and text of one note, the same for the same number."""
    thing, part = _THINGS[number % len(_THINGS)], _PARTS[number // len(_THINGS) % len(_PARTS)]
    facts = [_FACTS[(number + step) % len(_FACTS)].format(thing=thing, part=part) for step in range(4)]
    title = f"{thing} {part} {number // (len(_THINGS) * len(_PARTS)) + 1}".capitalize()
    return title, " ".join(facts[:2]) + "\n\n" + " ".join(facts[2:])


def fill_ours(vault: Path, count: int, today: datetime) -> None:
    """A vault of *count* plain notes as it is after some months: all layers, some about to fade."""
    template = ["init", "--vault", str(vault), "--timezone", "UTC", "--confirm"]
    subprocess.run([sys.executable, "-m", "vault_palace", *template], check=True, stdout=subprocess.DEVNULL)
    for number in range(count):
        title, body = plain_note(number)
        folder, layer, life = LAYERS[0 if number % 10 < 6 else 1 if number % 10 < 9 else 2]
        born = today - timedelta(days=3 + number % 5 if layer == "shallow" else 40 + number % 50)
        head = (
            f"id: mem_{number:012x}\nlayer: {layer}\ncreated: {born:%Y-%m-%dT%H:%M:%S}\n"
            f"last_touched: {born:%Y-%m-%dT%H:%M:%S}\ndensity: {number % 9 / 10 + 0.1:.1f}\nstreak: 0\n"
            f"decay_days: {life}\nstatus: active\ntags:\n  - {title.split()[0].lower()}\n"
        )
        place = vault / folder / title.split()[1] / f"{title}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"---\n{head}---\n\n{body}\n", encoding="utf-8")


def our_calls() -> list[Ask]:
    title, body = NEW
    return [
        Ask(START, "wake_up", {}),
        Ask(SEARCH, "search_room", {"query": QUERY}),
        Ask(READ, "read_memory", {"title": plain_note(0)[0]}),
        Ask(WRITE, "write_memory", {"title": title, "content": body}),
        Ask(AGE, "metabolize", {"dry_run": True}),
    ]


def basic_memory_calls() -> list[Ask]:
    title, body = NEW
    return [
        Ask(START, "recent_activity", {}),
        Ask(SEARCH, "search_notes", {"query": QUERY, "page_size": 10, "search_type": "text"}),
        Ask(READ, "read_note", {"identifier": plain_note(0)[0]}),
        Ask(WRITE, "write_note", {"title": title, "content": body, "directory": "notes"}),
    ]


def server_memory_calls() -> list[Ask]:
    title, body = NEW
    entity = {"name": title, "entityType": "note", "observations": [body]}
    return [
        Ask(START, "read_graph", {}),
        Ask(SEARCH, "search_nodes", {"query": "Billing"}),
        Ask(READ, "open_nodes", {"names": [plain_note(0)[0]]}),
        Ask(WRITE, "create_entities", {"entities": [entity]}),
    ]


# -- the peers ----------------------------------------------------------------------------------------------


def basic_memory(command: str, base: Path, count: int) -> None:
    """basic-memory in a home of its own, its notes written through its own tool."""
    (base / "basic-memory").mkdir()
    env = {"HOME": str(base), "BASIC_MEMORY_HOME": str(base / "basic-memory"), "BASIC_MEMORY_ENV": "user"}
    with Server(shlex.split(command), env) as server:
        report("basic-memory", server)
        for number in range(count):
            title, body = plain_note(number)
            server.ask(
                "tools/call",
                {"name": "write_note", "arguments": {"title": title, "content": body, "directory": "notes"}},
            )
        answers("basic-memory", server, basic_memory_calls())


def server_memory(command: str, base: Path, count: int) -> None:
    """server-memory with one entity a note: the text is its observation."""
    with Server(shlex.split(command), {"MEMORY_FILE_PATH": str(base / "memory.jsonl")}) as server:
        report("server-memory", server)
        entities = [
            {"name": title, "entityType": "note", "observations": [body]}
            for title, body in map(plain_note, range(count))
        ]
        server.ask("tools/call", {"name": "create_entities", "arguments": {"entities": entities}})
        answers("server-memory", server, server_memory_calls())


def mcp_obsidian(command: str, vault: Path) -> None:
    """npm's mcp-obsidian on our vault: it finds names, and reads what it is given."""
    path = next(vault.glob(f"*/*/{plain_note(0)[0]}.md")).relative_to(vault).as_posix()
    with Server([*shlex.split(command), str(vault)]) as server:
        report("mcp-obsidian (npm)", server)
        calls = [
            Ask(SEARCH, "search_notes", {"query": "billing"}),
            Ask(READ, "read_notes", {"paths": [path]}),
        ]
        answers("mcp-obsidian (npm)", server, calls)


def main() -> int:
    """Print the sizes of our tools and answers, and those of the peers whose commands are given."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--install", action="store_true", help="npm install gpt-tokenizer below .tools/")
    asked.add_argument("--notes", type=int, default=200, metavar="N", help="plain notes to answer over")
    asked.add_argument("--sediment-palace", type=Path, metavar="PATH", help="a checkout of it")
    for peer in ("basic-memory", "server-memory", "mcp-obsidian", "obsidian-rest"):
        asked.add_argument(f"--{peer}", metavar="COMMAND", help=f"how {peer} is started")
    given = asked.parse_args()
    if given.install:
        TOOLS.mkdir(exist_ok=True)
        npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(TOOLS)]
        subprocess.run([*npm, "gpt-tokenizer"], check=True)
    print(command_line())
    with tempfile.TemporaryDirectory(prefix="vault-palace-bench-") as folder:
        base = Path(folder)
        fill_ours(base / "ours", given.notes, datetime.now(UTC))
        with ours(base / "ours", base / "state") as server:
            report("vault-palace", server, PRESETS["core"])
            answers("vault-palace", server, our_calls())
        if given.basic_memory:
            basic_memory(given.basic_memory, base, given.notes)
        if given.server_memory:
            server_memory(given.server_memory, base, given.notes)
        if given.mcp_obsidian:
            mcp_obsidian(given.mcp_obsidian, base / "ours")
        if given.obsidian_rest:
            with Server(shlex.split(given.obsidian_rest), {"OBSIDIAN_API_KEY": "none"}) as server:
                report("mcp-obsidian (PyPI)", server)
        if given.sediment_palace is not None:
            make(base / "theirs" / "memory", 1)
            with sediment_palace(given.sediment_palace, base / "theirs") as server:
                report("sediment-palace", server)
    return 0


if __name__ == "__main__":
    sys.exit(main())
