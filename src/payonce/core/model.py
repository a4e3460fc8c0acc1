"""The things payonce keeps: batches, items, intents, requests, declarations. Frozen values, nothing that acts.

All times are microseconds since the epoch (``_us``), all durations microseconds, all amounts integer minor units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from payonce.core.keys import KeyFormat
from payonce.core.money import Money
from payonce.core.states import BatchState, ItemState, Settlement
from payonce.core.values import value

SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class KeyDeclaration:
    """How a provider deduplicates on an idempotency key.

    ``carrier`` names the place it travels in (``header Idempotency-Key``). ``retention_us`` is how long the provider
    promises at least to remember it, from the first send; None means for ever. ``stores_errors``: error answers are
    remembered and replayed too. Whatever it answered, what it executed under a key is remembered: a provider that
    forgets a key when it answers an error, though it may have executed, promises no keys.
    """

    carrier: str
    format: KeyFormat = KeyFormat()
    retention_us: int | None = None
    stores_errors: bool = False

    @property
    def window_us(self) -> int | None:
        """How long after its first send a key may be sent again: retention less the larger of 5 % and 5 minutes, the
        margin never being more than half (SPEC section 13)."""
        if self.retention_us is None:
            return None
        margin = min(max(self.retention_us // 20, 300 * SECOND_US), self.retention_us // 2)
        return self.retention_us - margin


@dataclass(frozen=True, slots=True)
class LookupDeclaration:
    """How an item can be looked up. ``lag_us``: an execution older than this is surely shown.

    ``own_reference`` and ``key`` say whether the provider echoes ours; without either, executions are told apart by
    time, amount and what is committed to other items.
    """

    by: str
    lag_us: int = 0
    own_reference: bool = False
    key: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """What an adapter promises about its provider (SPEC section 5). Data: printed by ``payonce providers``, tested.

    ``max_execution_us``: after this long an unanswered call can no longer start executing. ``preflight`` is the cheap
    read of an item's target, empty where there is none. ``sources`` are the public pages the facts come from.
    """

    kind: str
    operation: str
    key: KeyDeclaration | None = None
    lookup: LookupDeclaration | None = None
    max_execution_us: int = 60 * SECOND_US
    timeout_us: int = 10 * SECOND_US
    steps: tuple[str, ...] = ("call",)
    statement: tuple[str, ...] = ()
    settles_later: bool = False
    reverse: str = ""
    rate: str = ""
    identity: str = ""
    preflight: str = ""
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def guarantee(self) -> str:
        """In one sentence, what happens after a crash or a lost answer (SPEC section 13)."""
        if self.key and self.lookup:
            return (
                "Keys and look-up: after a crash or a lost answer payonce looks the item up, then sends the same key "
                "and bytes inside the key's window; nothing is left to a person."
            )
        if self.key:
            return (
                "Keys, no look-up: after a crash or a lost answer payonce sends the same key and bytes inside the "
                "key's window; what is older than the window is left to a person."
            )
        if self.lookup:
            return (
                "Look-up, no keys: after a crash or a lost answer payonce waits for the longest execution and the "
                "look-up's lag, looks up, and sends again only what is proven absent; what the look-up cannot tell "
                "apart is left to a person."
            )
        return (
            "Neither keys nor look-up: nothing is ever sent again; a crash leaves at most `concurrency` items unknown, "
            "each with its evidence, for a statement or a person."
        )


@value
class Request:
    """One call, exactly as it goes out: a resend uses these bytes and never builds them again.

    ``path`` is relative to the provider's base address and holds no credentials; ``headers`` are those that belong to
    the item (the key's header, content type), never authentication.
    """

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NewItem:
    """A validated item about to be sealed. ``fields`` are the input's other columns, as text or JSON values."""

    id: str
    money: Money | None
    target: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None


# An item about to be sealed as a ledger keeps it: id, target (the id where it has none), minor units, currency, and its
# fields as canonical JSON.
PlainItem = tuple[str, str, int | None, str | None, str]


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """Some items about to be sealed, column by column: nothing is done for each of them until someone asks.

    ``targets`` may be the very same list as ``ids``.
    """

    ids: Sequence[str]
    targets: Sequence[str]
    minors: Sequence[int | None]
    currencies: Sequence[str | None]
    fields: Sequence[str]

    @classmethod
    def of(cls, items: Sequence[PlainItem]) -> PlainColumns:
        """The columns of some rows, at least one."""
        return cls(*zip(*items, strict=True))

    def __len__(self) -> int:
        """How many items."""
        return len(self.ids)

    def __iter__(self) -> Iterator[PlainItem]:
        """The items one by one."""
        return zip(self.ids, self.targets, self.minors, self.currencies, self.fields, strict=True)

    def keep(self, selected: Sequence[bool]) -> PlainColumns:
        """The selected items only."""
        ids = list(compress(self.ids, selected))
        targets = ids if self.targets is self.ids else list(compress(self.targets, selected))
        minors, currencies = list(compress(self.minors, selected)), list(compress(self.currencies, selected))
        return PlainColumns(ids, targets, minors, currencies, list(compress(self.fields, selected)))


@dataclass(frozen=True, slots=True)
class PlainItems:
    """Validated items about to be sealed, in order, in blocks of some thousand: the quick way for millions of them."""

    blocks: Iterable[PlainColumns]


@value
class Item:
    """An item as the ledger holds it. ``n`` is its place in the input, from 1.

    ``attempts`` counts the calls sent, ``spent`` those that count against the limit of attempts. ``not_before_us`` is
    the earliest time a planned item may be sent. ``carry`` are results of earlier steps.
    """

    n: int
    id: str
    target: str
    money: Money | None
    fields: Mapping[str, Any]
    state: ItemState = ItemState.PLANNED
    settlement: Settlement = Settlement.NONE
    generation: int = 0
    step: int = 0
    attempts: int = 0
    spent: int = 0
    not_before_us: int = 0
    reference: str | None = None
    billed: Money | None = None
    code: str | None = None
    message: str | None = None
    carry: Mapping[str, Any] = field(default_factory=dict)
    updated_us: int = 0


@dataclass(frozen=True, slots=True)
class OpenIntent:
    """The durable record that a pending (or unknown) item's call may have been sent, and all that resolving it needs.

    ``first_sent_us`` is the time of the first intent under this key and starts the key's window; ``sent_us`` the time
    of the latest intent; a call under it left between ``sent_us`` and ``send_by_us``, if at all. ``deadline_us`` is
    when its caller gave up at the latest. ``seen_us`` is when an answer or error was seen for the latest call, None
    if none was; ``code`` and ``message`` are that answer's, and why a look-up failed is the item's. ``intent`` is False
    where the current step has had no intent yet (between two steps).
    """

    item: Item
    key: str | None
    request: Request | None
    first_sent_us: int
    sent_us: int
    send_by_us: int
    deadline_us: int
    fence: int
    seen_us: int | None = None
    burnt: bool = False
    final: bool = False
    in_progress: bool = False
    already_done: bool = False
    code: str | None = None
    message: str | None = None
    lookups: int = 0
    lookup_failures: int = 0
    retry_at_us: int = 0
    intent: bool = True


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """What a batch is sealed as. ``limits`` and ``config`` may be refreshed at a later start; the rest never changes.

    ``account`` and ``mode`` bind the batch to one provider account; None means the adapter cannot tell.
    ``provider_digest`` covers the settings that decide what a call does (address, templates, answer rules).
    """

    id: str
    operation: str
    provider: str
    namespace: str = "payonce"
    account: str | None = None
    mode: str | None = None
    targets: bool = False
    source: str | None = None
    source_digest: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """How a batch is run. Budgets and maxima in minor units by currency; ``rate`` in calls per 1,000 seconds, exact.

    ``on_unknown`` is ``hold`` or ``pay_again``: what becomes of an item of which no rule tells whether it was executed."""

    concurrency: int = 16
    rate_per_ks: int | None = None
    attempts: int = 5
    budget: Mapping[str, int] = field(default_factory=dict)
    max_amount: Mapping[str, int] = field(default_factory=dict)
    reserve: Mapping[str, int] = field(default_factory=dict)
    on_unknown: str = "hold"
    pay_again_limit: Mapping[str, int] = field(default_factory=dict)
    stop_after_refusals: int | None = None
    stop_after_consecutive: int | None = None
    grace_us: int = 30 * SECOND_US
    lease_us: int = 30 * SECOND_US


@dataclass(frozen=True, slots=True)
class Batch:
    """A sealed batch and where it stands. ``seal`` is the digest of its normalised items, ``number`` its row.

    ``held``: it was stopped for something a person has to look at; only an operator's RESUME makes it runnable."""

    spec: BatchSpec
    number: int
    state: BatchState
    seal: str
    items: int
    reason: str | None = None
    reason_code: str | None = None
    held: bool = False
    limits: Mapping[str, Any] = field(default_factory=dict)
    created_us: int = 0
    started_us: int | None = None
    ended_us: int | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many items of one state and currency there are, and their money: asked amounts, for committed ones billed."""

    state: ItemState
    currency: str | None
    items: int
    minor: int


@dataclass(frozen=True, slots=True)
class Status:
    """A batch's counts and money, derived in the same transactions as the states themselves.

    ``trouble`` is why the running process makes no headway, as far as it knows (never stored). ``live_workers`` are
    those whose lease is not over and whose process, if on this host, exists."""

    batch: Batch
    tallies: tuple[Tally, ...]
    calls_sent: int = 0
    lookups: int = 0
    rate_limited: int = 0
    live_workers: int = 0
    trouble: str | None = None

    def count(self, state: ItemState) -> int:
        """How many items are in a state."""
        return sum(t.items for t in self.tallies if t.state is state)

    def minor(self, currency: str, *states: ItemState) -> int:
        """Minor units of one currency over some states."""
        return sum(t.minor for t in self.tallies if t.currency == currency and t.state in states)

    @property
    def currencies(self) -> tuple[str, ...]:
        """All currencies of the batch, sorted."""
        return tuple(sorted({t.currency for t in self.tallies if t.currency}))


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something: user and host for people, process and worker for programs.

    ``steady_us`` is what a worker's steady clock, which nobody can set, showed as it joined; it means something within one
    ``boot`` of one host. 0 where it was not read."""

    user: str = ""
    host: str = ""
    pid: int = 0
    program: str = "payonce"
    boot: str = ""
    pid_start: str = ""
    steady_us: int = 0


@dataclass(frozen=True, slots=True)
class Worker:
    """A process's right to work on a batch: its ``fence`` is unique and grows; writes under an older one fail.

    ``steady_us`` is what its steady clock showed at ``now_us`` as it joined; 0 where the ledger could not read it."""

    batch: str
    fence: int
    lease_until_us: int
    now_us: int
    state: BatchState
    reason: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    control: int = 0
    slow_until_us: int = 0
    pace_per_ks: int | None = None
    others: int = 0
    steady_us: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the trail: its sequence number, and its canonical JSON, which is what is hashed."""

    seq: int
    batch: str | None
    n: int | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Finding:
    """A discrepancy: its class (SPEC section 10), the item if any, and both sides' facts."""

    kind: str
    item: str | None
    data: Mapping[str, Any] = field(default_factory=dict)
    state: str = "open"
    id: int = 0
    opened_us: int = 0
