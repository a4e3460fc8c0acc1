"""The end of a simulated world: nothing goes wrong any more, so all must end well, and then it is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from payonce.core.model import SECOND_US, Status
from payonce.core.states import BatchState, ItemState
from payonce.testing.simulator.process import BATCH, tell

if TYPE_CHECKING:
    from payonce.testing.simulator.world import World

_MOST_STARTS: Final = 80
_RUN_US: Final = 600 * SECOND_US


class Calm:
    """Liveness: within a bounded number of starts and of simulated time every item is settled."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _status(self) -> Status:
        return self.world.store.status(BATCH)

    def become_settled(self) -> None:
        """Nothing goes wrong any more: runs, and an honest operator in between, until every item is settled."""
        self._until_over()
        for _ in range(_MOST_STARTS):
            if self.world.auditor.violations:
                return
            status = self._status()
            self.world.auditor.count(status)
            if status.batch.state is BatchState.FINISHED or _is_cancelled_out(status):
                if not self.world.operator.settle_unknown():
                    return
            elif not self.world.operator.let_go_on(status):
                return
            for _ in range(self.world.rng.choice((1, 1, 2))):
                self.world.start()
            self._until_over()
        self.world.auditor.blame(f"not settled after {_MOST_STARTS} starts: {_counts(self._status())} (liveness)")

    def _until_over(self) -> None:
        """Lets what is running end."""
        if self.world.running and not self.world.timeline.stopped:
            # A wait that was written while the clock was ahead lasts longer by that when it has been set back; and where
            # turns are far apart, each process wastes some on what another one has sent.
            longer_us = 2 * max(self.world.scenario.jumps_us) if self.world.scenario.clock else 0
            longer_us += len(self.world.scenario.items) * 10_000 * SECOND_US // (self.world.limits.rate_per_ks or 10**9)
            self.world.timeline.run(
                until_us=self.world.timeline.now_us + _RUN_US + longer_us, most_steps=self.world.most_steps
            )
        if not self.world.auditor.violations and self.world.running:
            self.world.auditor.blame(f"{self.world.running[0].name} does not end: {_counts(self._status())} (liveness)")
        self.world.timeline.stopped = bool(self.world.auditor.violations)

    def judge(self) -> None:
        """All claims against all facts; then the same command once more, which must make no call."""
        if self.world.auditor.violations:
            return
        self.world.let_pass(self.world.far.quiet_us - self.world.timeline.now_us + SECOND_US)
        items = self.world.store.rows()
        batch = self._status().batch
        self.world.auditor.settled(items, batch, self.world.store.findings_about(BATCH))
        for fault in self.world.store.check():
            self.world.auditor.blame(f"the ledger's own check: {fault}")
        if batch.state is BatchState.FINISHED and not self.world.auditor.violations:
            before = (self.world.far.calls, self.world.far.look_ups)
            process = self.world.start()
            self._until_over()
            if process.error is not None or (self.world.far.calls, self.world.far.look_ups) != before:
                self.world.auditor.blame(
                    f"running a finished batch again made calls, or failed: {tell(process)} (invariant 4)"
                )


def _counts(status: Status) -> str:
    counts = ", ".join(f"{status.count(state)} {state.value}" for state in ItemState if status.count(state))
    return f"{status.batch.state.value} with {counts}"


def _is_cancelled_out(status: Status) -> bool:
    cancelled = status.batch.state is BatchState.CANCELLED
    return cancelled and not status.count(ItemState.PENDING) and not status.count(ItemState.PLANNED)
