"""What the tools do: each takes its checked arguments to one method of the palace and renders the answer.

One table binds a tool's words, its method, its text and what of it may be left out when the answer is
over its budget. No rule of the vault lives here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_palace.core.errors import InvalidArguments
from vault_palace.core.model import Layer
from vault_palace.services import answers
from vault_palace.surfaces.mcp import fit, render, schemas
from vault_palace.surfaces.mcp.metrics import Metrics, ToolMetrics
from vault_palace.surfaces.mcp.texts import BRIEF_TOKENS, MOST_TOKENS, TOOLS, ToolText

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace

Arguments = dict[str, Any]

# A page of hits costs more as JSON than the values that the palace counts: it is asked for fewer at first,
# and again with fewer still when that was too much, so that the cursor fits what is shown.
VALUES_SHARE = 0.6
# The estimate may be a quarter too low for random letters and rare signs: so no answer is over MOST_TOKENS.
SURE_TOKENS = MOST_TOKENS * 78 // 100
ASKED_AGAIN = 3
AT_ONCE = 0.7  # seconds in which healthcheck tells what it knows


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool: arguments by name, and the lines back to the caller."""

    palace: Callable[[], Palace]  # opened on first use
    arguments: Arguments
    metrics: Metrics
    progress: Callable[[int, int, str], None] | None = None
    cancelled: Callable[[], bool] = _never


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool's row: words, what it does, the form of its answer and what that may cost."""

    text: ToolText
    run: Callable[[Call], Mapping[str, Any]]
    shape: fit.Shape
    output: schemas.Schema
    budget: int

    @property
    def name(self) -> str:
        return self.text.name


def answer(tool: Tool, call: Call) -> fit.Answered:
    """Do what *call* asks and give the answer within its budget, saying what was left out."""
    most = int(call.arguments.get("max_tokens", tool.budget))
    return fit.within(tool.shape, render.plain(tool.run(call)), min(most, SURE_TOKENS))


def revs_told(tool: Tool, structured: Mapping[str, Any]) -> dict[str, str]:
    """The revs of notes by path as an answer tells them to the caller; empty for a note that is gone."""
    told: dict[str, str] = {}
    for gone in _LEAVES.get(tool.name, ()):
        told[structured[gone]] = ""
    path = structured.get("saved_path") or structured.get("path")
    if isinstance(path, str) and isinstance(structured.get("rev"), str):
        told[path] = structured["rev"]
    return told


# The keys of answers that name the place which a note has left.
_LEAVES: Mapping[str, tuple[str, ...]] = {
    "purge_memory": ("path",),
    "restore_memory": ("path",),
    "move_file": ("source",),
}


def _wake_up(call: Call) -> Mapping[str, Any]:
    # The text says it all; a list of the same lines beside it would halve what fits into the budget.
    return {"brief": call.palace().wake_up(**call.arguments)["brief"]}


def _write(call: Call) -> Mapping[str, Any]:
    return call.palace().write(**call.arguments)


def _read(call: Call) -> Mapping[str, Any]:
    given = call.arguments
    named = [name for name in ("path", "id", "title", "query") if name in given]
    if len(named) != 1:
        raise InvalidArguments(
            "read_memory needs exactly one of path, id, title and query.",
            hint=f"It was given {', '.join(named)}." if named else "Give one of them.",
            argument=named[1] if named else "path",
        )
    allowed = (
        ("query", "layer", "max_tokens") if "query" in given else ("max_tokens", "section", "touch", *named)
    )
    # Sediment Palace took a layer beside a path and did not use it.
    odd = [name for name in given if name not in allowed and not (name == "layer" and "path" in given)]
    if odd:
        raise InvalidArguments(
            f"{odd[0]} does not go with {named[0]}.", hint="Leave it out.", argument=odd[0]
        )
    if "query" in given:
        return _paged(call.palace().find, given)
    return call.palace().read(**{name: value for name, value in given.items() if name != "layer"})


def _goes_on(structured: fit.Structured) -> None:
    """Where a read goes on, once its content was cut to the budget of the whole answer."""
    from vault_palace.services import recall

    recall.go_on(structured)


def _search(call: Call) -> Mapping[str, Any]:
    return _paged(call.palace().search, call.arguments)


def _paged(ask: Callable[..., Mapping[str, Any]], given: Arguments) -> Mapping[str, Any]:
    """A page of hits, each without what its path says already."""
    page = _page(ask, given)
    return {**page, "matches": [_brief(match) for match in page["matches"]]}


def _brief(match: Mapping[str, Any]) -> dict[str, Any]:
    folder, _, name = match["path"].rpartition("/")
    said = {"title": name.removesuffix(".md"), "layer": _LAYERS.get(folder.partition("/")[0])}
    return {key: value for key, value in match.items() if value is not None and value != said.get(key)}


_LAYERS = {layer.folder: layer.value for layer in Layer}


def _page(ask: Callable[..., Mapping[str, Any]], given: Arguments) -> Mapping[str, Any]:
    if "max_tokens" not in given:
        return ask(**given)
    most = given["max_tokens"]
    values = int(most * VALUES_SHARE)
    for _ in range(ASKED_AGAIN):
        page = ask(**(given | {"max_tokens": values}))
        cost = fit.cost(fit.compact(render.plain({**page, "matches": [*map(_brief, page["matches"])]})))
        if cost <= most or len(page["matches"]) <= 1:
            break
        values = max(1, int(values * most / cost * 0.9))
    return page


def _rate(call: Call) -> Mapping[str, Any]:
    return call.palace().rate(**call.arguments)


def _metabolize(call: Call) -> Mapping[str, Any]:
    return call.palace().metabolize(**call.arguments, progress=call.progress, cancelled=call.cancelled)


def _purge(call: Call) -> Mapping[str, Any]:
    return call.palace().purge(**call.arguments)


def _restore(call: Call) -> Mapping[str, Any]:
    return call.palace().restore(**call.arguments)


def _move(call: Call) -> Mapping[str, Any]:
    return call.palace().move(**call.arguments)


def _read_map(call: Call) -> Mapping[str, Any]:
    return call.palace().read_map()


def _update_map(call: Call) -> Mapping[str, Any]:
    return call.palace().update_map(call.arguments["action"], call.arguments["details"]["link"])


def _recover(call: Call) -> Mapping[str, Any]:
    return call.palace().recover()


def _health(call: Call) -> Mapping[str, Any]:
    return call.palace().health(AT_ONCE)


def _metrics(call: Call) -> Mapping[str, Any]:
    return call.metrics.snapshot()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    run: Callable[[Call], Mapping[str, Any]]
    show: Callable[[render.Answer], str]
    answers: tuple[type, ...] = ()
    cuts: tuple[str, ...] = ()
    told: str = ""
    shortened: Callable[[fit.Structured], None] | None = None
    budget: int = 6_000


# Budgets are of the whole answer where the caller names none; the palace keeps a read to 6,000 tokens of
# text and a page of hits to fewer, so these bind only when properties or paths are extraordinary.
_ROWS: Mapping[str, _Row] = {
    "wake_up": _Row(
        run=_wake_up,
        show=render.wake_up,
        answers=(answers.BriefAnswer,),
        cuts=("brief",),
        budget=BRIEF_TOKENS,
    ),
    "write_memory": _Row(
        run=_write,
        show=render.write,
        answers=(answers.WriteAnswer,),
        cuts=("related", "warnings"),
        told="warnings",
        budget=1_500,
    ),
    "read_memory": _Row(
        run=_read,
        show=render.read,
        answers=(answers.ReadAnswer, answers.FindAnswer),
        cuts=("matches", "metadata", "outline", "backlinks", "title", "content"),
        told="more",
        shortened=_goes_on,
        budget=9_000,
    ),
    "search_room": _Row(
        run=_search, show=render.search, answers=(answers.SearchAnswer,), cuts=("matches",), told="note"
    ),
    "rate_memory": _Row(run=_rate, show=render.rate, answers=(answers.RateAnswer,)),
    "metabolize": _Row(
        run=_metabolize,
        show=render.metabolize,
        answers=(answers.MetabolizeAnswer,),
        cuts=("decaying", "waiting", "skipped", "promoted", "archived", "decisions"),
        told="note",
    ),
    "purge_memory": _Row(run=_purge, show=render.purge, answers=(answers.PurgeAnswer,), cuts=("links_left",)),
    "restore_memory": _Row(
        run=_restore, show=render.restore, answers=(answers.RestoreAnswer,), cuts=("links_left",)
    ),
    "move_file": _Row(
        run=_move, show=render.move, answers=(answers.MoveAnswer,), cuts=("links_left",), budget=2_000
    ),
    "read_map": _Row(
        run=_read_map, show=render.read_map, answers=(answers.MapAnswer,), cuts=("map",), budget=9_000
    ),
    "update_map": _Row(run=_update_map, show=render.update_map, answers=(answers.MapEditAnswer,)),
    "recover_journal": _Row(
        run=_recover, show=render.recover, answers=(answers.RecoverAnswer,), cuts=("recovered",), budget=3_000
    ),
    "healthcheck": _Row(
        run=_health,
        show=render.health,
        answers=(answers.HealthAnswer,),
        cuts=("problems", "index"),
        budget=4_000,
    ),
    "get_metrics": _Row(run=_metrics, show=render.metrics),
}


ADVICE = "Ask for fewer at once, a section, or a larger max_tokens."


def _tool(text: ToolText) -> Tool:
    row = _ROWS[text.name]
    output = schemas.output_schema(*row.answers) if row.answers else schemas.map_schema(ToolMetrics)
    sized = any(argument.name == "max_tokens" for argument in text.arguments)
    shape = fit.Shape(
        show=row.show, cuts=row.cuts, told=row.told, advice=ADVICE if sized else "", shortened=row.shortened
    )
    return Tool(text=text, run=row.run, shape=shape, output=output, budget=row.budget)


def catalogue() -> dict[str, Tool]:
    """Every tool by name, in the order in which they are listed."""
    return {text.name: _tool(text) for text in TOOLS}
