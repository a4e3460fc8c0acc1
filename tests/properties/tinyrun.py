"""One item driven by the decisions against a tiny provider, the way the engine and the ledger do it, in simulated time.

No engine and no ledger: what is tested is that the decisions alone keep an item from being paid twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from payonce.core.decide import (
    Commit,
    Doubt,
    GiveUp,
    LeaveOut,
    LookUp,
    NextStep,
    PlanAgain,
    Refuse,
    SendAgain,
    SendNext,
    Verdict,
    after_reply,
    after_sighting,
    judge,
    next_move,
)
from payonce.core.model import SECOND_US, Declaration, Item, OpenIntent
from payonce.core.outcome import Found
from payonce.core.states import ItemState
from tests.properties.tinyfar import ASKED, TIMEOUT_US, Fate, TinyFar

SEND_WINDOW_US = 2 * SECOND_US
MOST_MOVES = 300
Move = Callable[..., object]


@dataclass
class TinyRun:
    """One item, from planned to its end. ``fates`` decide what happens; when they are used up, all goes well."""

    far: TinyFar
    fates: Iterator[Fate]
    attempts: int = 3
    now_us: int = 10_000_000 * SECOND_US
    item: Item = field(default_factory=lambda: Item(1, "r1", "ch_1", ASKED, {}))
    intent: OpenIntent | None = None
    first_sent_us: int = 0
    moves: int = 0
    naive: bool = False

    @property
    def declaration(self) -> Declaration:
        """What the provider promises."""
        return self.far.promises.declaration

    def run(self) -> ItemState:
        """Until the item is decided. Then everything still on its way arrives."""
        while self.item.state.is_open:
            self.moves += 1
            assert self.moves < MOST_MOVES, f"no end in sight: {self.intent}"
            if self.item.state is ItemState.PLANNED:
                self._send(resend=False)
            else:
                self._resolve()
        self.far.advance(self.now_us + 10**15)
        return self.item.state

    def _key(self) -> str | None:
        return f"key-{self.item.step}-{self.item.generation}" if self.declaration.key else None

    def _send(self, *, resend: bool) -> None:
        """Intent, call, answer, verdict."""
        fate = next(self.fates, Fate())
        now, old, key = self.now_us, self.intent, self._key()
        fresh = old is None or not old.intent
        if fresh:
            first = self.first_sent_us or now if old is None else now
        else:
            assert old is not None
            first = old.first_sent_us
            assert old.key == key, "a resend under another key"
        self.item = replace(self.item, state=ItemState.PENDING, attempts=self.item.attempts + 1)
        self.intent = OpenIntent(
            self.item,
            key,
            None,
            first_sent_us=first,
            sent_us=now,
            send_by_us=now + SEND_WINDOW_US,
            deadline_us=now + SEND_WINDOW_US + TIMEOUT_US,
            fence=1,
            burnt=False if fresh or old is None else old.burnt,
            retry_at_us=now,
        )
        if fate.crash == "before":
            self.now_us += fate.asleep_us
            return
        sent_us = now + (SEND_WINDOW_US - 1 if fate.slow else 0)
        outcome, replayed, seen_us = self.far.call(sent_us, step=self.item.step, key=key, fate=fate)
        if fate.crash == "after":
            self.now_us = sent_us + fate.asleep_us
            return
        self.now_us = seen_us
        verdict = after_reply(
            outcome,
            item=self.item,
            declaration=self.declaration,
            resend=resend,
            replayed=replayed,
            attempts=self.attempts,
        )
        self._apply(verdict)
        self.now_us += fate.asleep_us

    def _apply(self, verdict: Verdict) -> None:
        """What the ledger does with a verdict."""
        item, intent = self.item, self.intent
        assert intent is not None
        match verdict:
            case Commit(executed):
                self._end(ItemState.COMMITTED, reference=executed.reference)
            case Refuse():
                self._end(ItemState.REFUSED)
            case GiveUp():
                self._end(ItemState.UNKNOWN)
            case LeaveOut():
                self._end(ItemState.SKIPPED)
            case NextStep():
                self.item = replace(item, step=item.step + 1)
                self.intent = replace(intent, item=self.item, intent=False, seen_us=None, lookup_failures=0)
            case PlanAgain():
                spent = 0 if verdict.load or not verdict.spends else 1
                generation = item.generation + verdict.new_generation
                used = intent.intent and not verdict.new_generation
                self.first_sent_us = intent.first_sent_us if used else 0
                self.item = replace(item, state=ItemState.PLANNED, spent=item.spent + spent, generation=generation)
                self.intent = None
            case Doubt():
                self.item = replace(item, spent=item.spent + verdict.spends)
                self.intent = replace(
                    intent,
                    item=self.item,
                    seen_us=self.now_us,
                    burnt=intent.burnt or verdict.burnt,
                    final=intent.final or verdict.final,
                    in_progress=verdict.in_progress,
                    already_done=intent.already_done or verdict.already_done,
                    retry_at_us=self.now_us + SECOND_US,
                    code=verdict.code,
                )

    def _end(self, state: ItemState, *, reference: str | None = None) -> None:
        self.item = replace(self.item, state=state, reference=reference)

    def _resolve(self) -> None:
        intent = self.intent
        assert intent is not None
        move = next_move(intent, self.declaration, attempts=self.attempts, now_us=self.now_us)
        match move:
            case GiveUp():
                self._apply(move)
            case LookUp(at_us):
                self.now_us = max(self.now_us, at_us)
                self._look_up(intent)
            case SendAgain(at_us):
                self.now_us = max(self.now_us, at_us)
                self._send(resend=True)
            case SendNext(at_us):
                self.now_us = max(self.now_us, at_us)
                self._send(resend=False)

    def _look_up(self, intent: OpenIntent) -> None:
        fate = next(self.fates, Fate())
        if fate.lookup == "failed":
            self.intent = replace(
                intent, lookup_failures=intent.lookup_failures + 1, retry_at_us=self.now_us + SECOND_US
            )
            return
        shown = self.far.lookup(
            self.now_us, step=self.item.step, item=self.item.id, early=fate.lookup == "shows young ones"
        )
        sighting = judge(Found(shown), intent, self.declaration, claimed=frozenset())
        verdict = after_sighting(sighting, intent, self.declaration, attempts=self.attempts, now_us=self.now_us)
        if isinstance(verdict, SendAgain):
            self._send(resend=True)
        else:
            self._apply(verdict)
