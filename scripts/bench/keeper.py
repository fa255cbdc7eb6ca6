"""How long a person's save takes to reach search and map, and what the keeper costs while nothing happens.

    python -m scripts.bench.keeper --notes 1000 [--rounds 20] [--vault DIR] [--idle 120]

A real `vault-palace watch` process keeps the vault; a real server answers over MCP beside it. Saves are
atomic or in place. A vault in DIR is made once and used again, with cache and state in `DIR.state`. The
process's CPU time and memory are read from /proc, so this needs Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scripts.bench.make_vault import complete, make
from scripts.bench.wire import Server, command_line, ours
from vault_palace.core.policy import Policy
from vault_palace.services.init import init, template_root

PATIENCE = 120.0  # seconds until a change that nobody sees is given up
LOOK = 0.01
CALM = 3.0  # the keeper is at rest when it used next to no CPU time for so long
TICK = os.sysconf("SC_CLK_TCK")
MAP = "PALACE_MAP.md"


@dataclass
class Process:
    """The keeper's process, seen from outside."""

    process: subprocess.Popen[str]

    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self, what: str = "VmRSS") -> float:
        """Megabytes in memory."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(rf"{what}:\s+(\d+) kB", text)
        return int(found[1]) / 1024 if found else 0.0

    def rest(self, limit: float) -> bool:
        """Wait until it is calm; whether it was within *limit* seconds. Says now and then how it goes."""
        began = told = time.monotonic()
        while time.monotonic() - began < limit:
            before = self.cpu()
            time.sleep(CALM)
            if self.cpu() - before < 0.05 * CALM:
                return True
            if time.monotonic() - told > 30:
                told = time.monotonic()
                print(
                    f"  ... {told - began:.0f} s, {self.cpu():.0f} s CPU, {self.memory():.0f} MB", flush=True
                )
        return False


def watch(vault: Path, state: Path) -> Process:
    env = {
        **os.environ,
        "VAULT_PALACE_CACHE_DIR": str(state / "cache"),
        "VAULT_PALACE_STATE_DIR": str(state / "state"),
    }
    command = [sys.executable, "-m", "vault_palace", "watch", "--vault", str(vault)]
    log = (state / "watch.log").open("w", encoding="utf-8")
    return Process(subprocess.Popen(command, env=env, stdout=log, stderr=log, text=True))


def furnish(vault: Path, count: int) -> None:
    """A vault after `init` with *count* notes that have all their properties."""
    began = time.monotonic()
    paths = make(vault, count)
    print(f"  {count} notes made in {time.monotonic() - began:.0f} s", flush=True)
    complete(vault, paths, datetime.now(UTC), Policy(timezone="UTC"))
    init(vault, template=template_root(), zone_name="UTC")
    print(f"  and given their properties, {time.monotonic() - began:.0f} s", flush=True)


class Hands:
    """A person's saves, and when they are seen."""

    def __init__(self, vault: Path, server: Server, seed: int) -> None:
        self.vault, self.server = vault, server
        self.maker = random.Random(seed)
        self.paths = sorted(
            str(place.relative_to(vault)) for place in vault.glob("0[12]_*/room */*.md") if place.is_file()
        )

    def save(self, path: str, text: str, *, atomic: bool) -> None:
        place = self.vault / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if atomic:
            temporary = place.with_name(f".{place.name}.tmp")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(place)
        else:
            place.write_text(text, encoding="utf-8")

    def seconds(self, right: Callable[[], bool]) -> float:
        """From now until it is right."""
        began = time.perf_counter()
        while not right():
            if time.perf_counter() - began > PATIENCE:
                raise TimeoutError("a change was not seen")
            time.sleep(LOOK)
        return time.perf_counter() - began

    def finds(self, word: str, path: str) -> bool:
        _, answer = self.server.call("search_room", {"query": word})
        return any(match["path"] == path for match in answer["matches"])

    def section(self, title: str) -> str:
        """The lines of one list of the map."""
        with contextlib.suppress(OSError):
            text = (self.vault / MAP).read_text(encoding="utf-8")
            found = re.search(rf"^#+ [^\n]*{title}[^\n]*\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE)
            return found[1] if found else ""
        return ""

    # -- what is measured ----------------------------------------------------------------------------------

    def edit(self, *, atomic: bool) -> float:
        """A word typed into a note, until search finds it there."""
        path, word = self.maker.choice(self.paths), f"zq{self.maker.getrandbits(40):010x}"
        text = (self.vault / path).read_text(encoding="utf-8")
        self.save(path, f"{text}\nTyped {word} here.\n", atomic=atomic)
        return self.seconds(lambda: self.finds(word, path))

    def new(self, *, atomic: bool) -> float:
        """A plain new note, until the map lists it under the newest."""
        name = f"Bench {self.maker.getrandbits(40):010x}"
        self.save(f"01_Shallow/bench/{name}.md", f"# {name}\n\nTyped by hand.\n", atomic=atomic)
        return self.seconds(lambda: name in self.section("Newest"))

    def density(self, *, atomic: bool) -> float:
        """The density of the strongest note of all lowered, until the map does not list it as such."""
        found = re.search(r"\[\[(note \d{6})", self.section("Strongest"))
        if found is None:
            raise TimeoutError("the map lists no strongest note")
        (place,) = self.vault.glob(f"0*/room */{found[1]}.md")
        text = re.sub(r"(?m)^density: .*$", "density: 0.3", place.read_text(encoding="utf-8"), count=1)
        self.save(str(place.relative_to(self.vault)), text, atomic=atomic)
        return self.seconds(lambda: found[1] not in self.section("Strongest"))


def show(name: str, seconds: list[float]) -> None:
    """One line: median, the 95th percentile and the worst, in milliseconds."""
    ordered = sorted(seconds)
    high = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    cells = "".join(f"{value * 1000:>10.0f}" for value in (statistics.median(ordered), high, ordered[-1]))
    print(f"  {name:36}{len(ordered):>6}{cells}", flush=True)


def measure(vault: Path, state: Path, rounds: int, idle: float, limit: float) -> int:
    print("the keeper starts", flush=True)
    began = time.monotonic()
    keeper = watch(vault, state)
    try:
        if not keeper.rest(limit):
            print(f"it is not at rest after {limit:.0f} s")
            return 1
        took = time.monotonic() - began - CALM
        most = keeper.memory("VmHWM")
        print(f"first contact: {took:.0f} s, {keeper.cpu():.0f} s CPU, {most:.0f} MB at most", flush=True)
        with ours(vault, state) as server:
            server.call("search_room", {"query": "bakela"})
            keeper.rest(limit)
            hands = Hands(vault, server, seed=time.time_ns())
            print(f"  {'milliseconds from save to':36}{'times':>6}{'median':>10}{'p95':>10}{'worst':>10}")
            for name, act in (
                ("search right, a word typed", hands.edit),
                ("map right, a new note", hands.new),
                ("map right, a density", hands.density),
            ):
                for how, atomic in (("atomic", True), ("in place", False)):
                    seconds = []
                    for _ in range(rounds):
                        seconds.append(act(atomic=atomic))
                        # Not at the same point of the keeper's own rhythm each time.
                        time.sleep(0.3 + hands.maker.random())
                    show(f"{name} ({how})", seconds)
        keeper.rest(limit)
        time.sleep(30)  # what waits for quiet, and for the journal note's pause
        keeper.rest(limit)
        spent, since = keeper.cpu(), time.monotonic()
        time.sleep(idle)
        hourly = (keeper.cpu() - spent) * 3600 / (time.monotonic() - since)
        print(f"idle for {idle:.0f} s: {hourly:.1f} s CPU an hour, {keeper.memory():.0f} MB in memory")
        return 0
    except TimeoutError as error:
        print(f"{error}; the keeper said: {(state / 'watch.log').read_text(encoding='utf-8')[-2000:]}")
        return 1
    finally:
        keeper.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            keeper.process.wait(30)
        keeper.process.kill()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20, help="saves of each kind and manner")
    parser.add_argument("--idle", type=float, default=120, help="seconds of doing nothing that are measured")
    parser.add_argument("--limit", type=float, default=3600, help="seconds that the first contact may take")
    parser.add_argument("--vault", type=Path, help="made when missing, and used again")
    asked = parser.parse_args()
    if not Path("/proc/self/stat").exists():
        print("CPU time and memory of a process are read from /proc, which is not here.", file=sys.stderr)
        return 2
    print(command_line())
    with tempfile.TemporaryDirectory(prefix="vault-palace-bench-") as folder:
        vault = (asked.vault or Path(folder) / "vault").resolve()
        state = vault.with_name(f"{vault.name}.state")
        state.mkdir(parents=True, exist_ok=True)
        if not (vault / "01_Shallow").is_dir():
            furnish(vault, asked.notes)
        return measure(vault, state, asked.rounds, asked.idle, asked.limit)


if __name__ == "__main__":
    sys.exit(main())
