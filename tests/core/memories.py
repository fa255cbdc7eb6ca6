"""Memories for the tests of the rules: a plain one to vary, generated ones, and a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from vault_palace.core.frontmatter import patch, read
from vault_palace.core.memory import Reading, changes, read_memory
from vault_palace.core.model import ARCHIVE, Decision, Layer, Memory, Plan
from vault_palace.core.policy import Policy

TODAY = date(2026, 11, 30)
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
POLICY = Policy()


def ago(days: float) -> datetime:
    """The wall time so many days before NOON."""
    return NOON.replace(tzinfo=None) - timedelta(days=days)


def later(days: float) -> datetime:
    """The aware clock so many days after NOON."""
    return NOON + timedelta(days=days)


def changed(note: Memory, **values: Any) -> Memory:
    """*note* with properties that a table names."""
    return replace(note, **values)


def memory(layer: Layer = Layer.SHALLOW, *, age: float = 0, idle: int = -1, **values: Any) -> Memory:
    """A memory of so many days, with so many whole untouched days (-1: touched today)."""
    base = Memory(
        path=f"{layer.folder}/a.md",
        layer=layer,
        recorded_layer=layer,
        created=ago(max(age, idle + 1)),
        last_touched=ago(idle + 1),
        decay_days=POLICY.lifetime(layer),
    )
    return replace(base, **values)


def reading(
    text: str,
    *,
    path: str = "01_Shallow/a.md",
    now: datetime = NOON,
    file_time: datetime | None = None,
    policy: Policy = POLICY,
) -> Reading:
    """What *text* says as a note at *path*, in a file that is three days old."""
    layer = Layer.of_folder(path.removeprefix(f"{ARCHIVE}/").split("/")[0])
    assert layer is not None
    at = file_time or now - timedelta(days=3)
    return read_memory(path, layer, read(text), file_time=at, now=now, policy=policy)


def written(text: str, before: Reading, after: Memory) -> str:
    """*text* after the changes that make it say *after*."""
    return patch(text, changes(before.memory, after, before.fills))


def carried_out(plan: Plan) -> list[Memory]:
    """The memories that a plan leaves in the layers, at the paths they then have."""
    return [placed(decision) for decision in plan.decisions if decision.to != ARCHIVE]


def placed(decision: Decision) -> Memory:
    """The memory after a decision, in the folder of its layer."""
    rest = decision.path.partition("/")[2]
    return replace(decision.after, path=f"{decision.after.layer.folder}/{rest}")


def links_of(*paths: str, among: Mapping[str, tuple[str, ...]] | None = None) -> dict[str, tuple[str, ...]]:
    """Each of *paths* linked by all the others."""
    return dict(among or {}) | {path: tuple(other for other in paths if other != path) for path in paths}


def memories(
    layers: tuple[Layer, ...] = (Layer.SHALLOW, Layer.SEDIMENT),
    *,
    pinned: bool | None = None,
) -> st.SearchStrategy[Memory]:
    """Notes as a vault holds them after years: rated, linked, half settled, with streaks of all sorts.

    *pinned* None means some are and some are not.
    """

    def build(layer: Layer, values: dict[str, Any]) -> Memory:
        backlinks = values["backlinks"]
        age, touched, since = values.pop("age"), values.pop("touched"), values.pop("since")
        return Memory(
            path=f"{layer.folder}/a.md",
            layer=layer,
            recorded_layer=layer,
            created=ago(age),
            last_touched=ago(min(touched, age)),
            layer_since=None if since is None else ago(min(since, age)),
            streak=values.pop("use") + min(backlinks, 5),
            **values,
        )

    return st.builds(
        build,
        st.sampled_from(layers),
        st.fixed_dictionaries(
            {
                "age": st.integers(0, 90),
                "touched": st.integers(-1, 60),
                "since": st.none() | st.integers(0, 60),
                "use": st.integers(-9, 14),
                "backlinks": st.integers(0, 8),
                "missed": st.integers(0, 4),
                "decay_days": st.none() | st.integers(1, 12) | st.sampled_from([0.5, 0.7, 2.5, 7.0]),
                "density": st.sampled_from([0.0, 0.2, 0.4999, 0.5, 0.7999, 0.8, 1.0]),
                "pinned": st.booleans() if pinned is None else st.just(pinned),
            }
        ),
    )
