"""The end of a command that ran a batch: what became of it, in words or as the last document, and the exit code.

Shared by the commands that run: ``run`` and ``work``. Reads the ledger once more for what is left to a person.
"""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from payonce.cli.screen import Screen
from payonce.cli.summary import outcome_json, show_outcome
from payonce.cli.words import show_costs
from payonce.core.errors import PayonceError
from payonce.core.model import Status
from payonce.core.states import ItemState
from payonce.engine.run import RunOutcome
from payonce.service import inspecting, trailing_run
from payonce.service.costs import summary
from payonce.service.opening import opened
from payonce.service.report import item_json

if TYPE_CHECKING:
    from payonce.service.reconciling_run import Reconciled

_MOST_LISTED = 20


def end_on_sigterm() -> None:
    """Until the engine watches signals itself, SIGTERM ends the command as Ctrl-C does: exit code 75, nothing sent."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended: its outcome, and the last counts seen where the ledger could not give them any more."""

    batch: str
    file: str
    ledger: str
    outcome: RunOutcome
    last: Status | None
    checkpoints: trailing_run.Checkpoints | None = None
    reconciled: Reconciled | None = None

    @property
    def exit_code(self) -> int:
        """The run's own, or, where that is good, the reconciliation's."""
        found = self.reconciled.exit_code if self.reconciled is not None else 0
        return max(self.outcome.exit_code, found)

    @property
    def status(self) -> Status | None:
        """The counts at the end, or the last ones seen."""
        return self.outcome.status or self.last


def tell(screen: Screen, ended: Ended) -> None:
    """Shows how it ended: one document, or words with the one next step."""
    unknown, open_ = _left(ended)
    made, proof = ended.checkpoints, ended.reconciled
    outcome = replace(ended.outcome, exit_code=ended.exit_code)
    if screen.common.json:
        document = outcome_json(outcome, batch=ended.batch, status=ended.status, unknown=unknown, findings=open_)
        document["reconciliation"] = proof.document if proof is not None else None
        document["cost"] = _costs(ended)
        screen.document({**document, "checkpoints": made.shown} if made is not None and made.shown else document)
    else:
        about = {"batch": ended.batch, "file": ended.file}
        show_outcome(
            screen, outcome, **about, status=ended.status, unknown=unknown, findings=open_,
            reconciled=proof.document if proof is not None else None,
        )  # fmt: skip
        show_costs(screen, _costs(ended))
        for text in made.shown if made is not None else ():
            screen.line(text)
    for warning in made.warnings if made is not None else ():
        screen.warn(warning)


def _costs(ended: Ended) -> dict[str, Any]:
    """What a batch of calls cost; empty for another, and where the ledger cannot be read."""
    if ended.status is None:
        return {}
    try:
        with opened(ended.ledger, read_only=True) as ledger:
            return summary(ledger, ended.status)
    except PayonceError:
        return {}


def _left(ended: Ended) -> tuple[list[dict[str, Any]], int | None]:
    """What is left to a person: the first unknown items and how many findings are open.

    None of both where the ledger cannot be read, which has been said by then.
    """
    try:
        with opened(ended.ledger, read_only=True) as ledger:
            found = inspecting.items(ledger, ended.batch, states=[ItemState.UNKNOWN], limit=_MOST_LISTED)
            return [item_json(item) for item in found], inspecting.findings_open(ledger, ended.batch)
    except PayonceError:
        return [], None
