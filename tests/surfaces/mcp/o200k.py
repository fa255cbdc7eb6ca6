"""What texts really cost in o200k tokens, where npm's gpt-tokenizer is at hand."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence

import pytest

_SCRIPT = """
const {encode} = require('gpt-tokenizer/cjs/encoding/o200k_base');
const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
// A long word takes it long, so a long text is counted in pieces, which adds a little.
const pieces = text => text.length < 4000 ? [text] : text.match(/[^]{1,1000}/g);
const cost = text => encode(text, {allowedSpecial: 'all'}).length;
const count = text => pieces(text).reduce((sum, piece) => sum + cost(piece), 0);
console.log(JSON.stringify(texts.map(count)));
"""


def counted(texts: Sequence[str]) -> list[int]:
    """The tokens of each text; skips the test where they cannot be counted."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not here to count tokens")
    done = subprocess.run(
        [node, "-e", _SCRIPT],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "Cannot find module" in done.stderr:
        pytest.skip("npm's gpt-tokenizer is not here to count tokens (NODE_PATH may name its folder)")
    assert done.returncode == 0, done.stderr
    found: list[int] = json.loads(done.stdout)
    return found
