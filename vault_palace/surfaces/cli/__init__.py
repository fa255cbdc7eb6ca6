"""The command line's outer edge: an exit status for every end, and never a traceback for an expected error.

Exit statuses: 0 done; 1 done, but something is left for a person (`check` found problems, `recover` left an
operation open); 2 wrong arguments; 10 to 22 the errors of `vault_palace.core.errors`, one each; 70 a fault of
the program; 74 the output could not be written; 130 stopped by Ctrl-C; 141 the output's reader went away.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence

from vault_palace.core.errors import VaultError

FAULT, OUTPUT_FAILED, INTERRUPTED, READER_GONE = 70, 74, 130, 141
_FULL = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; prints every error itself."""
    args = list(sys.argv[1:] if argv is None else argv)
    from vault_palace.surfaces.cli import screen

    unheard = screen.open_closed_streams()
    screen.make_safe(sys.stdout, sys.stderr)
    as_json = wants_json(args)
    try:
        status = _guarded(args, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        screen.close_quietly(sys.stdout)
        return READER_GONE
    except OSError as error:
        screen.close_quietly(sys.stdout)
        screen.complain("output_failed", f"The output could not be written: {error.strerror or error}.")
        return OUTPUT_FAILED
    if unheard and status == 0:
        screen.complain("output_failed", "Standard output is closed: what was to be said is lost.")
        return OUTPUT_FAILED
    return status


def wants_json(args: Sequence[str]) -> bool:
    """Whether the caller is a program; asked before the arguments are parsed, for they may be wrong."""
    options = args[: args.index("--")] if "--" in args else args
    return "--json" in options


def _guarded(args: list[str], as_json: bool) -> int:
    from vault_palace.surfaces.cli import screen

    try:
        from vault_palace.surfaces.cli.app import run

        return run(args)
    except VaultError as error:
        screen.refuse(error, as_json=as_json)
        return error.exit_status
    except KeyboardInterrupt:
        # What a signal cut off, the journal finishes or undoes at the next start.
        screen.refuse(VaultError("Stopped."), as_json=as_json, code="interrupted")
        return INTERRUPTED
    except Exception as error:  # the one catch-all of this surface
        if isinstance(error, OSError) and (isinstance(error, BrokenPipeError) or error.errno in _FULL):
            raise  # the services name their own; what is left is the output
        screen.fault(error, as_json=as_json)
        return FAULT
