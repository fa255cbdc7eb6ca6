"""What the tools cost before an agent has called one: characters, and o200k tokens where Node can count them.

    python -m scripts.bench.definitions [--install] [--sediment-palace PATH]

Counts the compact JSON of each tool's name, description and input schema, as `tools/list` gives them. Tokens
need Node and npm's gpt-tokenizer below `.tools/`; `--install` puts it there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.bench.make_vault import make
from scripts.bench.wire import Server, command_line, ours, sediment_palace

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


def report(who: str, server: Server) -> None:
    """The sizes of one server's tools, the largest first."""
    listed = server.ask("tools/list", {})["tools"]
    texts = {tool["name"]: definition(tool) for tool in listed}
    whole = "[" + ",".join(texts.values()) + "]"
    counts = tokens([*texts.values(), whole, server.hello.get("instructions", "") or ""])
    print(f"\n{who}: {len(texts)} tools, {len(whole)} characters", end="")
    print(f", {counts[-2]} tokens (instructions {counts[-1]} more)" if counts else "")
    for at, (name, text) in sorted(enumerate(texts.items()), key=lambda pair: -len(pair[1][1])):
        print(f"  {name:18}{len(text):6} characters" + (f"{counts[at]:6} tokens" if counts else ""))
    if counts is None:
        print("  Tokens not counted: Node or gpt-tokenizer is missing (--install brings the latter).")


def main() -> int:
    """Print the sizes of our tools, and of Sediment Palace's when a checkout is given."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--install", action="store_true", help="npm install gpt-tokenizer below .tools/")
    asked.add_argument("--sediment-palace", type=Path, metavar="PATH", help="a checkout of it")
    given = asked.parse_args()
    if given.install:
        TOOLS.mkdir(exist_ok=True)
        npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(TOOLS)]
        subprocess.run([*npm, "gpt-tokenizer"], check=True)
    print(command_line())
    with tempfile.TemporaryDirectory(prefix="vault-palace-bench-") as folder:
        base = Path(folder)
        make(base / "ours", 1)
        with ours(base / "ours", base / "state") as server:
            report("vault-palace", server)
        if given.sediment_palace is not None:
            make(base / "theirs" / "memory", 1)
            with sediment_palace(given.sediment_palace, base / "theirs") as server:
                report("sediment-palace", server)
    return 0


if __name__ == "__main__":
    sys.exit(main())
