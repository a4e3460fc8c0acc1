"""A tiny provider that keeps exactly the promises it declares, and no more: the far side for tests of the decisions.

It knows nothing of payonce's states. What it executed is the truth that a test compares with.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from payonce.core.model import SECOND_US, Declaration, KeyDeclaration, LookupDeclaration
from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, Execution, NotExecuted, Outcome, Refused, Stop, Unresolved

ASKED = Money("10.00", "USD")
TIMEOUT_US = 10 * SECOND_US
RUNNING_US = 5 * SECOND_US


@dataclass(frozen=True)
class Fate:
    """What becomes of one call.

    ``what`` the provider does with it once it arrives, ``late`` how late that is as a part (0 to 1) of the longest
    execution time, ``lost`` whether the answer is lost, ``slow`` whether it runs for a while before it answers.
    ``crash`` kills the caller before or after it sends, and ``asleep_us`` is how long nothing happens after that, or
    after the call. ``lookup`` is what becomes of the next look-up.
    """

    what: str = "execute"
    late: float = 0.0
    lost: bool = False
    slow: bool = False
    crash: str = "no"
    asleep_us: int = 0
    lookup: str = "answered"


@dataclass(frozen=True)
class Promises:
    """What the provider promises, and keeps."""

    keys: bool = True
    retention_us: int | None = 3600 * SECOND_US
    stores_errors: bool = True
    lookup: str = "reference"  # reference, key, neither (no echo), none
    lag_us: int = 0
    max_execution_us: int = 60 * SECOND_US
    guards: bool = False  # refuses what was done already: "already refunded"
    steps: int = 1

    @property
    def declaration(self) -> Declaration:
        """The same as data."""
        key = KeyDeclaration("header", retention_us=self.retention_us, stores_errors=self.stores_errors)
        lookup = LookupDeclaration(
            "target", lag_us=self.lag_us, own_reference=self.lookup == "reference", key=self.lookup == "key"
        )
        return Declaration(
            "tiny",
            "refund",
            key=key if self.keys else None,
            lookup=None if self.lookup == "none" else lookup,
            max_execution_us=self.max_execution_us,
            timeout_us=TIMEOUT_US,
            steps=tuple(f"step{n}" for n in range(self.steps)),
        )


@dataclass(frozen=True)
class Done:
    """One execution: of which step, when, under which key, and whether it was ours."""

    reference: str
    step: int
    at_us: int
    key: str | None
    ours: bool = True


@dataclass
class Memory:
    """What is remembered under a key: since when, until when the first call runs, and its stored answer."""

    first_us: int
    ready_us: int
    answer: Outcome | None


@dataclass
class TinyFar:
    """The provider. Calls arrive in time order; late ones wait in the wire until their time has come."""

    promises: Promises
    done: list[Done] = field(default_factory=list)
    memory: dict[str, Memory] = field(default_factory=dict)
    wire: list[tuple[int, int, str | None, Fate]] = field(default_factory=list)

    def advance(self, now_us: int) -> None:
        """Lets everything arrive that is due."""
        for arrival in sorted((a for a in self.wire if a[0] <= now_us), key=lambda a: a[0]):
            self.wire.remove(arrival)
            self._arrive(*arrival)

    def call(self, at_us: int, *, step: int, key: str | None, fate: Fate) -> tuple[Outcome, bool, int]:
        """One call: its outcome as the caller sees it, whether it was a replay, and when the caller saw it."""
        self.advance(at_us)
        if fate.what == "no connection":
            return NotExecuted("no_connection", load=True), False, at_us + 1
        arrives_us = at_us + int(fate.late * self.promises.max_execution_us)
        if arrives_us > at_us:
            self.wire.append((arrives_us, step, key, fate))
            return Unresolved("timeout"), False, at_us + TIMEOUT_US
        outcome, replayed, answers_us = self._arrive(at_us, step, key, fate)
        if fate.lost or answers_us > at_us + TIMEOUT_US:
            return Unresolved("timeout"), False, at_us + TIMEOUT_US
        return outcome, replayed, answers_us

    def _arrive(self, at_us: int, step: int, key: str | None, fate: Fate) -> tuple[Outcome, bool, int]:
        known = self._known(key, at_us)
        if known is not None:
            if at_us < known.ready_us:
                return Unresolved("key_in_use", in_progress=True), False, at_us
            if known.answer is not None:
                answer = known.answer
                if isinstance(answer, Unresolved) and self.promises.stores_errors:
                    answer = replace(answer, burnt=True)
                return answer, True, at_us
        ready_us = at_us + (2 * TIMEOUT_US if fate.slow else RUNNING_US)
        answer, stored = self._execute(at_us, step, key, fate)
        if key is not None and self.promises.keys and stored is not None:
            first_us = known.first_us if known else at_us
            self.memory[key] = Memory(first_us, ready_us, stored)
        return answer, False, ready_us

    def _known(self, key: str | None, at_us: int) -> Memory | None:
        if key is None or not self.promises.keys or key not in self.memory:
            return None
        retention_us = self.promises.retention_us
        known = self.memory[key]
        return known if retention_us is None or at_us < known.first_us + retention_us else None

    def _execute(self, at_us: int, step: int, key: str | None, fate: Fate) -> tuple[Outcome, Outcome | None]:
        """The answer, and what is stored under the key (None: nothing)."""
        if fate.what == "stop":
            return Stop("bad_credentials"), None
        if fate.what == "rate limited":
            return NotExecuted("rate_limited", load=True), None
        if fate.what == "busy":
            return NotExecuted("busy"), None
        if self.promises.guards and any(d.step == step for d in self.done):
            refused: Outcome = AlreadyDone("already_refunded")
            return refused, refused if self.promises.stores_errors else None
        if fate.what == "refuse":
            refused = Refused("disputed")
            return refused, refused if self.promises.stores_errors else None
        if fate.what == "error before":
            error: Outcome = Unresolved("http_500")
            return error, error if self.promises.stores_errors else None
        reference = f"re_{len(self.done)}"
        self.done.append(Done(reference, step, at_us, key))
        executed = Executed(reference, billed=ASKED)
        if fate.what == "error after":
            # What was executed under a key is remembered, whatever was answered.
            return Unresolved("http_500"), Unresolved("http_500") if self.promises.stores_errors else executed
        return executed, executed

    def lookup(self, at_us: int, *, step: int, item: str, early: bool) -> tuple[Execution, ...]:
        """All executions of a step on the target; younger ones than the lag may be missing."""
        self.advance(at_us)
        shown = []
        for done in self.done:
            if done.step != step or (at_us - done.at_us < self.promises.lag_us and not early):
                continue
            own = item if self.promises.lookup == "reference" and done.ours else None
            key = done.key if self.promises.lookup == "key" and done.ours else None
            shown.append(Execution(done.reference, ASKED, own, key, done.at_us))
        return tuple(shown)
