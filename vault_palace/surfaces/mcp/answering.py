"""What all that is no tool shares: a question put to the palace, and a refusal in the protocol's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from vault_palace.core.errors import (
    BudgetExceeded,
    Conflict,
    InvalidArguments,
    NotFound,
    PathViolation,
    PolicyViolation,
    VaultError,
)
from vault_palace.surfaces.mcp import render

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace

T = TypeVar("T")

Context = ServerRequestContext[None, Any]

# What the caller can mend; the rest is the vault's or the machine's trouble.
_CALLERS = (BudgetExceeded, Conflict, InvalidArguments, NotFound, PathViolation, PolicyViolation)


class Ask(Protocol):
    """Puts a question to the palace in a thread, on behalf of whoever sent the request."""

    async def __call__(self, context: Context, question: Callable[[Palace], T]) -> T: ...


def refused(error: VaultError, **data: object) -> MCPError:
    """*error* as the answer to a request that is no tool call."""
    code = INVALID_PARAMS if isinstance(error, _CALLERS) else INTERNAL_ERROR
    facts = render.plain({"code": error.code, **error.facts, **data})
    return MCPError(code, render.plain(f"{error.code}: {error}"), facts)
