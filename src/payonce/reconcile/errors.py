"""Why a statement cannot be used. Nothing is matched then: an unread statement is never one with zero rows."""

from __future__ import annotations

from typing import NoReturn

from payonce.core.errors import InputError, Problem


class StatementError(InputError):
    """The statement is refused; ``problems`` say where and why. No class was given to any item."""


def refuse(
    message: str, *, code: str, hint: str, file: str = "", line: int | None = None, column: str | None = None
) -> NoReturn:
    """Refuses a statement as a whole for one reason."""
    problem = Problem(file, line, column, None, code, message)
    raise StatementError(message, problems=(problem,), code=code, hint=hint)


def refuse_all(problems: tuple[Problem, ...], *, file: str) -> NoReturn:
    """Refuses a statement for the rows that cannot be read, all of them named."""
    first = problems[0]
    where = f"{file}, line {first.line}" if first.line else file
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise StatementError(
        f"{where}: {first.message}{more}",
        problems=problems,
        code=first.code,
        hint="nothing was matched; a statement is read whole or not at all",
    )
