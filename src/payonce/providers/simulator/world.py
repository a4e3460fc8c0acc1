"""The simulated provider: a deterministic state machine that turns a call into a plan.

No I/O, no clock of its own, no randomness beyond the seed; the same calls at the same times give the same answers and
the same effects. Executions that are due later happen as soon as anything looks at the world, and carry the time at
which they were due, so no timer is needed for them.

The books (`store.py`) hold the true effects. They are for auditors: code under test must only see what `handle`
answers. A transaction is written to the journal before it is made and before its answer is given, effect and key in
one line, so a killed process never remembers one without the other.

Not thread-safe: one event loop, or one lock around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from payonce.providers.simulator import admin, keyring, spoil
from payonce.providers.simulator.behaviours import Account, Config
from payonce.providers.simulator.choose import Chooser
from payonce.providers.simulator.execution import execute
from payonce.providers.simulator.faults import DELAYED, Fault, Kind
from payonce.providers.simulator.journal import Journal
from payonce.providers.simulator.limiter import Limiter
from payonce.providers.simulator.plan import Abort, Answer, Call, Close, Plan, Reply, Wait
from payonce.providers.simulator.reads import View, read
from payonce.providers.simulator.requests import Request, bearer, error, parse_request
from payonce.providers.simulator.stats import Stats
from payonce.providers.simulator.store import Effect, Scheduled, Store, Transaction


class World:
    """One provider. `clock` gives integer microseconds since the epoch; `history` is what a journal kept."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Callable[[], int],
        seed: int = 0,
        journal: Journal | None = None,
        history: Iterable[Transaction] = (),
    ) -> None:
        self._clock = clock
        self._seed = seed
        self._journal = journal
        self._latest = self._started_us = clock()
        self._tickets = 0
        self._start_afresh(config)
        for change in history:
            self._store.apply(change)

    @property
    def config(self) -> Config:
        """The behaviours in force."""
        return self._config

    @property
    def store(self) -> Store:
        """The books, for the provider's own rooms and for auditors."""
        self.now()
        return self._store

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Everything that was truly executed until now, in order."""
        return tuple(self.store.effects)

    @property
    def stats(self) -> Stats:
        """What was counted at the door since the start or the last reset."""
        return self._stats

    def now(self) -> int:
        """The time in microseconds, never earlier than before; everything due has been executed."""
        self._latest = max(self._latest, self._clock())
        while (work := self._store.take_due(self._latest)) is not None:
            self._run(work)
        return self._latest

    def configure(self, config: Config) -> None:
        """Takes other behaviours into force; books and counts stay."""
        self._config = config
        self._chooser = Chooser(config, seed=self._seed, started_us=self._started_us)
        for charge_id, charge in config.charges.items():
            self._store.apply(Transaction(charge=(charge_id, charge)))

    def reset(self) -> None:
        """Forgets effects, keys, scheduled work and counts, in the journal too; the behaviours stay."""
        if self._journal is not None:
            self._journal.clear()
        self._started_us = self.now()
        self._start_afresh(self._config)

    def close(self) -> None:
        """Gives the journal back; the books stay readable, but no call may be handled any more."""
        if self._journal is not None:
            self._journal.close()

    def commit(self, change: Transaction) -> None:
        """Makes a change, in the journal first. Raises what the journal raises, and then changes nothing."""
        if self._journal is not None:
            self._journal.append(change)
        self._store.apply(change)

    def handle(self, call: Call) -> Plan:
        """Decides about one call; what it executes at once is executed when this returns."""
        now = self.now()
        path, _, query = call.target.partition("?")
        self._tickets += 1
        ticket = self._tickets
        if path.startswith("/_sim/"):
            return Answer(ticket, admin.answer(self, call, path=path, query=query))
        is_read = call.method in ("GET", "HEAD")
        self._stats.arrived(now, read=is_read)
        account = self._account(call)
        refusal = spoil.unauthorised() if account is None else self._limit(now, read=is_read)
        latency_us = self._chooser.latency_us(str(ticket))
        if account is None or refusal is not None:
            self._stats.refused(refusal)
            return Answer(ticket, refusal or spoil.unauthorised(), latency_us)
        if is_read:
            return self._read(path, query=query, account=account, ticket=ticket, latency_us=latency_us)
        if call.method != "POST":
            return Answer(ticket, error(405, "method_not_allowed", f"{call.method} is not supported."), latency_us)
        return self._write(call, path=path, account=account, ticket=ticket, latency_us=latency_us)

    def resume(self, ticket: int) -> Plan:
        """What to do about a plan to wait, now that its time has come (asking too early gives Wait again)."""
        self.now()
        if ticket not in self._waiting:
            return Close(ticket)
        found = self._waiting[ticket]
        if isinstance(found, Reply):
            del self._waiting[ticket]
            return Answer(ticket, found)
        return Wait(ticket, found)

    def done(self, ticket: int) -> None:
        """The call was answered, or its client is gone; harmless when repeated."""
        self._stats.closed(ticket)
        self._waiting.pop(ticket, None)

    def _start_afresh(self, config: Config) -> None:
        self._store = Store()
        self._stats = Stats()
        self._limiter = Limiter()
        self._waiting: dict[int, int | Reply] = {}
        self._reads: dict[str, int] = {}
        self.configure(config)

    def _account(self, call: Call) -> Account | None:
        config = self._config
        token = bearer(call.headers)
        if config.api_keys:
            return config.api_keys.get(token or "")
        return config.account if token or not config.require_auth else None

    def _limit(self, now: int, *, read: bool) -> Reply | None:
        limit = self._config.rate_limit
        if limit is None or (read and not limit.reads):
            return None
        wait_us = self._limiter.wait_us(now, per_second=limit.per_second)
        return spoil.rate_limited(wait_us, retry_as=limit.retry_as, now=now) if wait_us else None

    def _read(self, path: str, *, query: str, account: Account, ticket: int, latency_us: int) -> Plan:
        now = self._latest
        reply = read(View(self._store, self._config, account, now), path=path, query=query)
        if not self._chooser.counts:
            return Answer(ticket, reply, latency_us)
        nth = self._reads[path] = self._reads.get(path, 0) + 1
        fault = self._chooser.choose(
            subject=path, operation="read", read=True, nth=nth, total=self._stats.lookups, now=now
        )
        if fault is None:
            return Answer(ticket, reply, latency_us)
        return spoil.read_plan(fault, reply, ticket=ticket, now=now, after_us=latency_us)

    def _write(self, call: Call, *, path: str, account: Account, ticket: int, latency_us: int) -> Plan:
        now, config = self._latest, self._config
        request = parse_request(
            call, path=path, account=account.id, key_max_length=config.key_max_length, intents=self._store.by_intent
        )
        fault = self._fault(request, path=path)
        self._stats.opened(ticket, target=path if isinstance(request, Reply) else request.target)
        early = spoil.before_the_key(fault, ticket=ticket, now=now) if fault is not None else None
        if early is not None:
            self._stats.refused(early.reply if isinstance(early, Answer) else None)
            return early
        if isinstance(request, Reply):
            return Answer(ticket, request, latency_us)
        known = keyring.check(request, store=self._store, config=config, now=now)
        if known is not None:
            self._stats.replayed(known)
            return spoil.deliver(known, fault=fault, ticket=ticket, after_us=latency_us)
        if fault is not None and fault.kind in DELAYED:
            return self._schedule(request, fault, ticket=ticket, latency_us=latency_us)
        reply = self._execute(request, fault, at=now, arrived_us=now, ready_at=now + latency_us)
        return spoil.deliver(reply, fault=fault, ticket=ticket, after_us=latency_us)

    def _fault(self, request: Request | Reply, *, path: str) -> Fault | None:
        """The fault of this call. Counts are kept in the journal, so a script goes on after a restart."""
        if not self._chooser.counts:
            return None
        if isinstance(request, Reply):
            subject, operation = path, "invalid"
        else:
            subject, operation = request.ref or request.key or request.digest, request.operation
        self.commit(Transaction(counted=subject))
        store = self._store
        return self._chooser.choose(
            subject=subject,
            operation=operation,
            read=False,
            nth=store.counts[subject],
            total=store.counted,
            now=self._latest,
        )

    def _schedule(self, request: Request, fault: Fault, *, ticket: int, latency_us: int) -> Plan:
        now, store = self._latest, self._store
        accepted = Reply(202, b'{"status":"processing"}') if fault.kind is Kind.ACCEPTED_202 else None
        due = now + fault.after_us
        ready_at = due if accepted is None else now + latency_us
        work = Scheduled(
            number=store.scheduled_so_far,
            due_us=due,
            arrived_us=now,
            ticket=ticket,
            kind=fault.kind,
            request=request,
            keeps_answer=accepted is not None,
        )
        entry = keyring.entry_of(request, config=self._config, arrived_us=now, ready_at=ready_at, reply=accepted)
        self.commit(Transaction(scheduled=work, key=entry))
        if accepted is not None:
            return Answer(ticket, accepted, latency_us)
        if fault.kind is Kind.LATE_EXECUTION:
            return Abort(ticket)
        self._waiting[ticket] = due
        return Wait(ticket, due)

    def _run(self, work: Scheduled) -> None:
        """Executes what was scheduled, at the time at which it was due."""
        reply = self._execute(
            work.request, None, at=work.due_us, arrived_us=work.arrived_us, ready_at=work.due_us, work=work
        )
        if work.ticket in self._waiting:
            self._waiting[work.ticket] = reply

    def _execute(
        self,
        request: Request,
        fault: Fault | None,
        *,
        at: int,
        arrived_us: int,
        ready_at: int,
        work: Scheduled | None = None,
    ) -> Reply:
        """Executes or refuses; effect and key become true together. Returns the answer as it was composed."""
        config = self._config
        outcome = execute(request, fault, store=self._store, config=config, seed=self._seed, at=at)
        entry = None
        if outcome.remembered is not None and (work is None or not work.keeps_answer):
            entry = keyring.entry_of(
                request, config=config, arrived_us=arrived_us, ready_at=ready_at, reply=outcome.remembered
            )
        if outcome.effect is not None or entry is not None or work is not None:
            finished = None if work is None else work.number
            self.commit(Transaction(effect=outcome.effect, key=entry, finished=finished))
        return outcome.given
