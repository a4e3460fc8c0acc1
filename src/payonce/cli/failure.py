"""How errors look: what is wrong, where, what to do next; as text on standard error, or as one JSON document.

Imported only when something went wrong.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Sequence
from typing import Any

import click

from payonce.cli.common import Common
from payonce.cli.screen import Screen
from payonce.core.errors import PayonceError, Problem

_MOST_PROBLEMS = 50
_LONGEST_VALUE = 60
# Outside of `run` nothing is sent, so an unforeseen error is reported like any other that sent nothing. Once a run has
# begun, calls may have gone out: then it must not look like "nothing was sent" (2), nor like "start me again" (75).
_UNFORESEEN_UNSENT, _UNFORESEEN_SENDING = 2, 1
_INTERRUPTED = 75
# What the operating system says of disks and permissions.
_NO_FAULT_OF_OURS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.EMFILE, errno.ENFILE),
}


def report(error: BaseException, common: Common) -> int:
    """Reports an error and returns the exit code. Raises only what must end the process at once (SystemExit)."""
    screen = Screen(common)
    match error:
        case SystemExit():
            raise error
        case BrokenPipeError():
            screen.close_output()
            return 0
        case click.UsageError():
            if type(error).__name__ == "NoArgsIsHelpError" and not common.json:  # click 8.2 and later
                click.echo(error.format_message(), err=True, color=common.color)
                return 2
            _show(screen, message=error.format_message(), code="usage", hint=_usage_hint(error))
            return 2
        case click.ClickException():
            _show(screen, message=error.format_message(), code="usage", hint="")
            return 2
        case KeyboardInterrupt() | click.Abort():
            _show(screen, message="interrupted", code="interrupted", hint="the same command goes on")
            return _INTERRUPTED
        case PayonceError():
            return _known(error, screen, debug=common.debug)
        case OSError(errno=int(number)) if number in _NO_FAULT_OF_OURS and not common.sending:
            return _refused(error, screen, debug=common.debug)
        case _:
            return _unforeseen(error, screen, common)


def _known(error: PayonceError, screen: Screen, *, debug: bool) -> int:
    problems: Sequence[Problem] = getattr(error, "problems", ())
    hint = error.hint
    if error.code == "no_ledger" and screen.common.named and not screen.common.named[1].endswith(".toml"):
        hint = f"{hint}, or give the batch file's path"
    _show(screen, message=error.message, code=error.code, hint=hint, problems=problems)
    if debug:
        screen.note(traceback.format_exc())
    return error.exit_code


def _refused(error: OSError, screen: Screen, *, debug: bool) -> int:
    """A disk without room, a file without permission: nobody's bug."""
    where = f"{error.filename}: " if isinstance(error.filename, str) else ""
    _show(screen, message=f"{where}{error.strerror}", code="system_refused", hint="make room, or check the permissions")
    if debug:
        screen.note("".join(traceback.format_exception(error)))
    return _UNFORESEEN_UNSENT


def _unforeseen(error: BaseException, screen: Screen, common: Common) -> int:
    what = " ".join(str(error).split())[:500]
    hint = "run it again with --debug and report what it prints"
    if common.sending:
        hint = f"payonce status shows where it stands; the same command goes on safely; {hint}"
    _show(screen, message=f"internal error: {type(error).__name__}: {what}", code="internal_error", hint=hint)
    if common.debug:
        screen.note("".join(traceback.format_exception(error)))
    return _UNFORESEEN_SENDING if common.sending else _UNFORESEEN_UNSENT


def _usage_hint(error: click.UsageError) -> str:
    return f"{error.ctx.command_path} --help" if error.ctx else "payonce --help"


def _show(screen: Screen, *, message: str, code: str, hint: str, problems: Sequence[Problem] = ()) -> None:
    if screen.common.json:
        screen.document(
            {
                "error": {
                    "code": code,
                    "message": message,
                    "hint": screen.common.in_their_words(hint),
                    "problems": as_json(problems),
                }
            }
        )
        return
    screen.error(message)
    if len(problems) == 1 and problems[0].message in message:
        problems = ()
    for problem in problems[:_MOST_PROBLEMS]:
        screen.complaint(place(problem), problem.message)
    if len(problems) > _MOST_PROBLEMS:
        screen.complaint("", f"and {len(problems) - _MOST_PROBLEMS} more; --json lists all")
    if hint:
        screen.next_step(hint)


def as_json(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """Problems in the shape of the JSON contract."""
    return [
        {"file": p.file, "line": p.line, "column": p.column, "value": p.value, "code": p.code, "message": p.message}
        for p in problems
    ]


def place(problem: Problem) -> str:
    """Where a problem is, as editors and compilers write it, and what stands there: ``refunds.csv:12 amount '$10'``."""
    where = f"{problem.file}:{problem.line}" if problem.line is not None else problem.file
    if problem.column:
        where = f"{where} {problem.column}"
    if problem.value is None:
        return where
    value = problem.value
    return f"{where} {value!r}" if len(value) <= _LONGEST_VALUE else f"{where} {value[:_LONGEST_VALUE]!r}..."
