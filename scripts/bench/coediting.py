"""Many seeds of the co-editing torture, and what they lost: the figures of SPEC §6.

    python -m scripts.bench.coediting --seeds 20 --operations 2000

A simulated Obsidian, a plain editor, two agents, the ageing and the keeper share one vault (tests/coediting).
Ends with 1 when a promise was broken, and names the seed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.coediting.judgement import Verdict, judge
from tests.coediting.torture import Torture


def run(seed: int, operations: int, folder: Path | None) -> Verdict:
    """The verdict on one run."""
    torture = Torture(Path(tempfile.mkdtemp(dir=folder)), seed)
    try:
        torture.run(operations)
        torture.settle()
        return judge(torture)
    finally:
        torture.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--operations", type=int, default=2000)
    parser.add_argument("--folder", type=Path, help="where vaults are made; a folder in memory is fast")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    broken = 0
    started = time.monotonic()
    for seed in range(asked.first, asked.first + asked.seeds):
        verdict = run(seed, asked.operations, asked.folder)
        counts += verdict.counts
        broken += bool(verdict.faults)
        print(f"seed {seed}: {len(verdict.faults)} promises broken", flush=True)
        for fault in verdict.faults:
            print(f"    {fault}")
    for name, count in sorted(counts.items()):
        print(f"{count:9}  {name}")
    print(f"{asked.seeds} seeds in {time.monotonic() - started:.0f} s, {broken} with broken promises")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
