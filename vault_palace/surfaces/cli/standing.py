"""How a palace stands, for a person: `status` and `healthcheck`. Answers in, lines and tables out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from vault_palace.services.answers import HealthAnswer, ProblemAnswer, ServerAnswer, StatusAnswer
from vault_palace.surfaces.cli.render import FAINT, GOOD, STRONG, WARN
from vault_palace.surfaces.cli.screen import Block, Says, Table

BAD = "bold red"
FEW = 5  # names of agents in one cell

_Facts = Mapping[str, object]


def health(answer: HealthAnswer) -> list[Block]:
    """Whether it works, and what is wrong; what is odd in notes is only counted."""
    ok = answer["status"] == "ok"
    faults = answer["fault_count"]
    said: list[Block] = [Says(f"{answer['vault']}: {answer['status']}", GOOD if ok else BAD)]
    said += _faults(answer["problems"][:faults])
    said.append(Says(f"Index: {_index(answer['index'])}", FAINT))
    said.append(Says(f"Keeper: {_keeper(answer['watch'], ())}", FAINT))
    if answer["note"]:
        said.append(Says(answer["note"], FAINT))
    odd = answer["problem_count"] - faults
    if odd:
        said.append(Says(f"Problems in notes: {odd} (vault-palace check)", WARN))
    return said


def status(answer: StatusAnswer) -> list[Block]:
    """The palace at a glance."""
    layers = tuple((layer, str(count)) for layer, count in answer["layers"].items())
    facts = (answer["mode"], answer["timezone"], f"vault-palace {answer['version']}")
    said: list[Block] = [
        Says(answer["vault"], STRONG),
        Says(" · ".join(filter(None, facts)), FAINT),
        *_faults(answer["faults"]),
        Table(("layer", "notes"), (*layers, ("archive", str(answer["archived"])))),
    ]
    if answer["proposed"]:
        said.append(Says(f"Proposed, wait for your yes in _System/Review.md: {answer['proposed']}", WARN))
    for rows, title in (
        (answer["decaying_soon"], "About to decay"),
        (answer["rising_soon"], "About to rise"),
    ):
        if rows:
            shown = tuple((row["path"], row["to"] or "stays", row["reason"]) for row in rows)
            said.append(Table(("note", "to", "reason"), shown, title))
    said.append(Says(f"Index: {_index(answer['index'])}", FAINT))
    said.append(Says(f"Keeper: {_keeper(answer['watch'], answer['servers'])}", FAINT))
    said += _servers(answer["servers"])
    if answer["lock"]:
        said.append(Says(f"Write lock: {answer['lock']}", WARN))
    if answer["open_operations"]:
        said.append(Says(f"Unfinished operations: {answer['open_operations']} (vault-palace recover)", WARN))
    if answer["problem_count"]:
        said.append(Says(f"Problems: {answer['problem_count']} (vault-palace check)", WARN))
    return said


def _faults(faults: Sequence[ProblemAnswer]) -> list[Block]:
    return [Says(f"Fault {fault['code']}: {fault['message']}", BAD) for fault in faults]


def _index(facts: _Facts) -> str:
    said = [str(facts.get("state", "unknown"))]
    # It also holds the pages of the system, so that its number is not that of the memories above.
    if said != ["ready"] and "notes" in facts:
        said.append(f"notes {facts['notes']}")
    size = facts.get("bytes")
    if isinstance(size, int):
        said.append(f"{size / 1_000_000:.1f} MB")
    if facts.get("compared"):
        said.append(f"compared {facts['compared']}")
    if facts.get("reason"):
        said.append(str(facts["reason"]))
    if facts.get("path"):
        said.append(str(facts["path"]))
    return ", ".join(said)


def _keeper(watch: _Facts, servers: Sequence[ServerAnswer]) -> str:
    """Who keeps the vault, and how, where that process says so."""
    holder = str(watch.get("holder") or "")
    if not holder:
        return "none (vault-palace watch)"
    keepers = [server["watch"] for server in servers if server["watch"].get("keeper") is True]
    its = keepers[0] if keepers else watch if watch.get("keeper") is True else {}
    said = [holder]
    if its:
        lag = its.get("lag")
        said.append(f"mode {its.get('mode')}")
        said.append(f"{lag} s behind" if isinstance(lag, int) and lag else "in step")
    if its.get("trouble"):
        said.append(str(its["trouble"]))
    return ", ".join(said)


def _servers(servers: Sequence[ServerAnswer]) -> Iterator[Block]:
    if not servers:
        yield Says("Servers: none is running", FAINT)
        return
    rows = tuple(
        (
            str(server["pid"]),
            server["transport"] + (" read-only" if server["read_only"] else ""),
            server["started"],
            _names(server["agents"]),
            str(sum(server["agents"].values())),
        )
        for server in servers
    )
    yield Table(("process", "on", "since", "agents", "calls"), rows, "Servers")
    calls = _calls(servers)
    if calls:
        title = "Calls" if len(servers) == 1 else "Calls, with the times of the slowest server"
        yield Table(("call", "times", "errors", "p50 ms", "p95 ms"), calls, title)
    yield from _followed(servers)


def _names(agents: Mapping[str, int]) -> str:
    names = [name or "unnamed" for name, _ in sorted(agents.items(), key=lambda item: (-item[1], item[0]))]
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


def _calls(servers: Sequence[ServerAnswer]) -> tuple[tuple[str, ...], ...]:
    """Each kind of call, counted over all servers; of the times, which cannot be added, the slowest."""
    counts: Counter[str] = Counter()
    codes: dict[str, Counter[str]] = {}
    slowest: dict[str, tuple[float, float]] = {}
    for server in servers:
        for row, seen in server["calls"].items():
            counts[row] += int(_number(seen.get("count")))
            its = codes.setdefault(row, Counter())
            by_code = seen.get("errors_by_code")
            for code, count in (by_code if isinstance(by_code, dict) else {}).items():
                its[str(code)] += int(_number(count))
            known = slowest.get(row, (0.0, 0.0))
            slowest[row] = (
                max(known[0], _number(seen.get("p50_ms"))),
                max(known[1], _number(seen.get("p95_ms"))),
            )
    return tuple(
        (
            row,
            str(counts[row]),
            ", ".join(f"{code} {count}" for code, count in sorted(codes[row].items())) or "0",
            f"{slowest[row][0]:g}",
            f"{slowest[row][1]:g}",
        )
        for row in sorted(counts)
    )


def _followed(servers: Sequence[ServerAnswer]) -> Iterator[Block]:
    seen = [row for server in servers for row in server["calls"].values() if "followed" in row]
    hits, missed, waiting = (
        int(sum(_number(row.get(key)) for row in seen)) for key in ("followed", "missed", "waiting")
    )
    if hits + missed + waiting:
        rate = f" ({hits / (hits + missed):.0%})" if hits + missed else ""
        undecided = f", {waiting} undecided" if waiting else ""
        yield Says(f"Searches followed by a read: {hits} of {hits + missed}{rate}{undecided}", FAINT)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
