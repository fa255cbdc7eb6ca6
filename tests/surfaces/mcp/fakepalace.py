"""A palace of a few lines, in memory: enough to drive every tool without a vault."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from vault_palace.core.errors import NotFound
from vault_palace.core.model import Problem
from vault_palace.services import answers

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace


def match(number: int = 1, **other: Any) -> answers.Match:
    hit: dict[str, Any] = {
        "path": f"01_Shallow/note {number}.md",
        "snippet": "the team chose events",
        "id": f"mem_{number:012x}",
        "title": f"Note {number}",
        "layer": "shallow",
        "density": 0.2,
        "age_days": 3,
        "decays_on": "2026-12-08",
        "why": "title",
    }
    return cast("answers.Match", hit | other)


class FakePalace:
    """Answers every verb and remembers how it was called. `fail` raises instead, `hook` runs first."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.fail: Exception | None = None
        self.hook: Callable[[], None] = lambda: None
        self.body = "Body with [[x]]\n"
        self.metadata: dict[str, object] = {"id": "mem_1", "density": 0.2, "tags": ["apollo"]}
        self.hits = [match(1), match(2)]
        self.map = "# Map\n"
        self.problems: list[answers.ProblemAnswer] = []
        self.closed = threading.Event()

    @property
    def as_palace(self) -> Palace:
        return cast("Palace", self)

    def _called(self, verb: str, arguments: dict[str, Any]) -> None:
        self.calls.append((verb, arguments))
        self.hook()
        if self.fail is not None:
            raise self.fail

    def close(self) -> None:
        self.closed.set()

    def wake_up(self, **arguments: Any) -> answers.BriefAnswer:
        self._called("wake_up", arguments)
        return answers.BriefAnswer(
            brief="Memory briefing.\nLasting:\n- 03_Bedrock/apollo.md: events",
            since="2026-11-24",
            left_out={},
            sections=[],
        )

    def write(self, content: str, **arguments: Any) -> answers.WriteAnswer:
        self._called("write", {"content": content, **arguments})
        related = answers.Related(
            path="01_Shallow/x.md", title="X", link="[[X]]", kind="link", why="same words"
        )
        return answers.WriteAnswer(
            saved_path="01_Shallow/apollo.md",
            id="mem_0a1b2c3d4e5f",
            rev="0123456789ab",
            mode=arguments.get("mode", "create"),
            related=[related],
            warnings=[],
        )

    def read(self, **arguments: Any) -> answers.ReadAnswer:
        self._called("read", arguments)
        if arguments.get("path") == "01_Shallow/gone.md":
            raise NotFound("There is no such note.", hint="Search for it.", path="01_Shallow/gone.md")
        return answers.ReadAnswer(
            path="01_Shallow/apollo.md",
            title="Apollo",
            metadata=self.metadata,
            content=self.body,
            rev="0123456789ab",
            backlinks=["01_Shallow/x.md"],
            truncated=False,
            warnings=[],
        )

    def find(self, query: str, **arguments: Any) -> answers.FindAnswer:
        self._called("find", {"query": query, **arguments})
        return answers.FindAnswer(
            query=query, layer=arguments.get("layer"), matches=self.hits, cursor=None, note=""
        )

    def search(self, query: str, **arguments: Any) -> answers.SearchAnswer:
        self._called("search", {"query": query, **arguments})
        # As the palace does: whole hits, as many as the budget of values holds.
        shown = self.hits[: max(1, arguments["max_tokens"] // 40)] if "max_tokens" in arguments else self.hits
        return answers.SearchAnswer(
            room=arguments.get("room", ""),
            query=query,
            matches=list(shown),
            total=len(self.hits),
            cursor=f"after {len(shown)}" if len(shown) < len(self.hits) else None,
            note="",
        )

    def rate(self, **arguments: Any) -> answers.RateAnswer:
        self._called("rate", arguments)
        return answers.RateAnswer(
            path="01_Shallow/apollo.md",
            id="mem_1",
            before={"density": 0.2, "pinned": False, "decay_days": 7},
            after={"density": 0.8, "pinned": False, "decay_days": 7},
            decays_on=None,
            rev="0123456789ab",
        )

    def metabolize(
        self,
        *,
        progress: Callable[[int, int, str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        **arguments: Any,
    ) -> answers.MetabolizeAnswer:
        self._called("metabolize", arguments)
        stopped = False
        for number in range(1, 4):
            if cancelled is not None and cancelled():
                stopped = True
                break
            if progress is not None:
                progress(number, 3, f"01_Shallow/{number}.md")
        decision = answers.DecisionAnswer(
            path="01_Shallow/a.md", to="sediment", rule="1", reason="density 0.6 and 8 days old"
        )
        return answers.MetabolizeAnswer(
            dry_run=bool(arguments.get("dry_run")),
            scanned=3,
            promoted_count=1,
            archived_count=0,
            decaying_count=0,
            promoted=["02_Sediment/a.md"],
            archived=[],
            decaying=[],
            decisions=[decision],
            waiting=[],
            skipped=[answers.SkippedAnswer(path="01_Shallow/b.md", reason="open in Obsidian")],
            note="",
            cancelled=stopped,
        )

    def purge(self, path: str, **arguments: Any) -> answers.PurgeAnswer:
        self._called("purge", {"path": path, **arguments})
        return answers.PurgeAnswer(path=path, archived_to=f"_Archive/{path}", reason="unspecified")

    def restore(self, path: str, **arguments: Any) -> answers.RestoreAnswer:
        self._called("restore", {"path": path, **arguments})
        return answers.RestoreAnswer(path=path, restored_to="01_Shallow/apollo.md", layer="shallow")

    def move(self, source: str, dest_layer: str, **arguments: Any) -> answers.MoveAnswer:
        self._called("move", {"source": source, "dest_layer": dest_layer, **arguments})
        left = ["01_Shallow/y.md: two notes have that name"]
        return answers.MoveAnswer(
            source=source, destination="02_Sediment/apollo.md", links_rewritten=1, links_left=left
        )

    def read_map(self) -> answers.MapAnswer:
        self._called("read_map", {})
        return answers.MapAnswer(map=self.map, truncated=False)

    def update_map(self, action: str, link: str) -> answers.MapEditAnswer:
        self._called("update_map", {"action": action, "link": link})
        return answers.MapEditAnswer(action=action, link=link, changed=True)

    def recover(self) -> answers.RecoverAnswer:
        self._called("recover", {})
        done = answers.RecoveredAnswer(
            operation_id="op1",
            operation="write",
            status="finished",
            path="01_Shallow/a.md",
            detail="new text",
        )
        return answers.RecoverAnswer(unresolved_count=1, recovered_count=1, recovered=[done])

    def faults(self) -> list[Problem]:
        return []

    def health(self, patience: float | None = None) -> answers.HealthAnswer:
        self._called("health", {})
        return answers.HealthAnswer(
            status="ok",
            service="vault-palace",
            version="0.1.0",
            vault="/vault",
            mode="palace",
            index={"state": "ready", "notes": 3},
            watch={"mode": "events", "keeper": False, "holder": "process 7 on desk"},
            layers={"shallow": 3, "sediment": 0, "bedrock": 0, "archived": 0},
            fault_count=0,
            problems=self.problems,
            problem_count=len(self.problems),
            waiting=[],
            tomorrow=[],
            note="",
        )
