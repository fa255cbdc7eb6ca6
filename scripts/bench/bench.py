"""Medians of write, read, search and a metabolize dry run over stdio, beside Sediment Palace in the same run.

    python -m scripts.bench.bench --notes 1000 10000 [--sediment-palace PATH_OF_A_CHECKOUT]

The calls of the two servers alternate, so that a busy moment of the machine meets both. Ours fsyncs each
write; Sediment Palace does not. Its time and scan limits are raised, or it would not answer at 10,000 notes.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.bench.make_vault import COMMON, RARE, make
from scripts.bench.wire import Server, command_line, ours, sediment_palace

OURS, THEIRS = "vault-palace", "sediment-palace"


@dataclass(frozen=True, slots=True)
class Call:
    """A call to measure: text in braces is filled in each round; made once in *every* rounds."""

    name: str
    tool: str
    ours: Mapping[str, Any]
    theirs: Mapping[str, Any]
    every: int = 1


_WRITE = {"content": "{text}", "path": "bench/w{at}.md", "layer": "shallow"}
CALLS = (
    Call("write", "write_memory", _WRITE, _WRITE),
    Call("read", "read_memory", {"path": "{path}"}, {"path": "{path}"}),
    Call("read, no touch", "read_memory", {"path": "{path}", "touch": False}, {"path": "{path}"}),
    Call("search, rare word", "search_room", {"query": RARE}, {"query": RARE, "room": "."}, 3),
    Call("search, common word", "search_room", {"query": COMMON}, {"query": COMMON, "room": "."}, 3),
    Call("metabolize, dry run", "metabolize", {"dry_run": True}, {"dry_run": True}, 7),
)


def filled(arguments: Mapping[str, Any], **values: object) -> dict[str, Any]:
    """*arguments* with the braces of their texts filled in."""
    return {
        name: value.format(**values) if isinstance(value, str) else value for name, value in arguments.items()
    }


def measure(count: int, rounds: int, peer: Path | None) -> dict[str, dict[str, list[float]]]:
    """The seconds of each call, by what is measured and by server, on a fresh vault of *count* notes."""
    seconds: dict[str, dict[str, list[float]]] = {call.name: {} for call in CALLS}
    maker = random.Random(count)
    with tempfile.TemporaryDirectory(prefix="vault-palace-bench-") as folder, contextlib.ExitStack() as open_:
        base = Path(folder)
        paths = make(base / "ours", count)
        servers: dict[str, Server] = {OURS: open_.enter_context(ours(base / "ours", base / "state"))}
        if peer is not None:
            make(base / "theirs" / "memory", count)
            servers[THEIRS] = open_.enter_context(sediment_palace(peer, base / "theirs"))
        for server in servers.values():  # the first call pays for indexing and warms the caches
            server.call("search_room", {"query": RARE, "room": "."})
        text = "Order holds within one partition only. " * 50 + f"[[{Path(paths[0]).stem}]]\n"
        for at in range(rounds):
            path = maker.choice(paths)
            for call in CALLS:
                if at % call.every:
                    continue
                for who, server in servers.items():
                    arguments = call.ours if who == OURS else call.theirs
                    took, _ = server.call(call.tool, filled(arguments, at=at, path=path, text=text))
                    seconds[call.name].setdefault(who, []).append(took)
    return seconds


def show(count: int, seconds: Mapping[str, Mapping[str, list[float]]]) -> None:
    """One table: medians in milliseconds, and how many times theirs is ours."""
    print(f"\n{count} notes, median ms (number of calls)")
    print(f"  {'call':22}{OURS:>20}{THEIRS:>22}{'ratio':>9}")
    for name, by_server in seconds.items():
        medians = {who: statistics.median(times) for who, times in by_server.items()}
        cells = [
            f"{medians[who] * 1000:.2f} ({len(by_server[who])})" if who in medians else "not measured"
            for who in (OURS, THEIRS)
        ]
        ratio = f"{medians[THEIRS] / medians[OURS]:.1f}" if len(medians) == 2 else ""
        print(f"  {name:22}{cells[0]:>20}{cells[1]:>22}{ratio:>9}")


def main() -> int:
    """Measure at each size and print the tables."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--notes", type=int, nargs="+", default=[1000, 10000])
    asked.add_argument("--rounds", type=int, default=21)
    asked.add_argument("--sediment-palace", type=Path, metavar="PATH", help="a checkout of it")
    given = asked.parse_args()
    print(command_line())
    for count in given.notes:
        show(count, measure(count, given.rounds, given.sediment_palace))
    return 0


if __name__ == "__main__":
    sys.exit(main())
