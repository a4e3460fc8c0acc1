"""Which findings are open, and what open ones mean for a run's exit code. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from payonce.core.model import Finding
from payonce.core.states import BatchState
from payonce.core.wording import some
from payonce.engine.run import RunOutcome

# Another amount or currency was billed than was asked (SPEC invariant 10): exit code 4 until a person has dealt with it.
WRONG_MONEY: Final = frozenset({"amount_mismatch", "currency_mismatch"})
# The provider shows something else than the ledger: exit code 1. Not what came back later: that is a new fact of an item that
# was committed, and changes no run's end.
DIFFERS: Final = frozenset({"duplicate", "missing_at_provider", "missing_in_ledger", "credit_mismatch"})
_GOOD: Final = (0, 1)


def open_findings(rows: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings that nobody has acknowledged or resolved, out of all rows of a batch."""
    last: dict[int, tuple[Finding, str]] = {}
    for row in rows:
        first = row.data.get("of")
        if isinstance(first, int) and first in last:
            last[first] = last[first][0], str(row.data.get("state"))
        else:
            last[row.id] = row, row.state
    return tuple(row for row, state in last.values() if state == "open")


def with_findings(outcome: RunOutcome, rows: Sequence[Finding]) -> RunOutcome:
    """The end of a run with what its batch's open findings add: a batch that is over ends with the same code however often
    it is run, until a person has dealt with them. A run that ended early keeps its own reason."""
    over = outcome.state in (BatchState.FINISHED, BatchState.CANCELLED)
    if outcome.exit_code not in _GOOD or not over:
        return outcome
    found = open_findings(rows)
    wrong = [row for row in found if row.kind in WRONG_MONEY]
    if wrong:
        text = f"another amount or currency was billed: {some(len(wrong), 'finding')} open"
        return replace(outcome, exit_code=4, code=outcome.code or wrong[0].kind, reason=outcome.reason or text)
    if any(row.kind in DIFFERS for row in found):
        return replace(outcome, exit_code=1)
    return outcome
