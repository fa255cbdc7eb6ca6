"""Start to answered `initialize`, beside a bare SDK server with one tool, the starts alternating.

python -m scripts.bench.start [--rounds 9] [--notes 1000]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from scripts.bench.make_vault import make
from scripts.bench.wire import Server, command_line, ours

BARE = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("bare", version="1", log_level="WARNING")


@server.tool()
def echo(text: str) -> str:
    return text


server.run("stdio")
"""


def main() -> int:
    """Measure and print medians, minima and the ratio."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rounds", type=int, default=9)
    asked.add_argument("--notes", type=int, default=1000)
    given = asked.parse_args()
    times: dict[str, list[float]] = {"bare SDK server": [], "vault-palace": []}
    with tempfile.TemporaryDirectory(prefix="vault-palace-bench-") as folder:
        base = Path(folder)
        make(base / "vault", given.notes)
        bare = base / "bare.py"
        bare.write_text(BARE, encoding="utf-8")
        for at in range(given.rounds + 1):
            with Server([sys.executable, str(bare)]) as server:
                plain = server.started
            with ours(base / "vault", base / "state") as server:
                palace = server.started
                if at == 0:  # the first start finds no cache and perhaps no compiled modules
                    server.call("search_room", {"query": "x"})
            if at:
                times["bare SDK server"].append(plain)
                times["vault-palace"].append(palace)
    print(command_line())
    print(f"start to answered initialize, {given.rounds} starts each, {given.notes} notes, ms")
    for who, seconds in times.items():
        print(f"  {who:16} median {statistics.median(seconds) * 1000:7.0f}   min {min(seconds) * 1000:7.0f}")
    middle = [statistics.median(seconds) for seconds in times.values()]
    print(f"  vault-palace / bare: {middle[1] / middle[0]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
