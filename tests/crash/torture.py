"""Runs that are really killed, again and again, for as long as asked: ``python -m tests.crash.torture --seconds 600``.

Each round is a small batch on one store against the built-in provider over HTTP, with faults mixed in. Its runs are
killed by SIGKILL at a named crash point or at a random instant, several at once, or frozen past their lease and woken; in
the end one run is let through. Then it is counted from the provider's own books alone: what was executed twice, what was
lost (an item without a state, or one whose state the books contradict), what is left to a person. All choices come from
one seed, which is printed; the instants at which processes die are the machine's.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from payonce.core.states import ItemState
from payonce.engine.crashpoints import CRASH_POINTS
from payonce.ledger.connect import connect
from payonce.service.trailing import Against, verify_trail
from tests.crash.harness import Job, Provider
from tests.crash.torture_child import Process, end, fork, start

FAULTS = {
    "error_500_after": 0.05,
    "reset_after": 0.05,
    "reset_before": 0.05,
    "silent_after": 0.02,
    "rate_limited": 0.02,
}
# keys, look-up, and whether items may be left to a person
PROMISES = ((True, True, False), (True, False, False), (False, True, False), (False, False, True))
ENDS = {0, 1, 3, 75}
ITEMS = 100
LEASE_S = 3
THROUGH_THE_COMMAND = 0.1  # the share of runs that are started as a shell would


@dataclass
class Tally:
    """What came of the rounds on one store."""

    batches: int = 0
    items: int = 0
    kills: int = 0
    frozen: int = 0
    doubled: int = 0
    lost: int = 0
    unknown: int = 0
    wrong: int = 0
    points: Counter[str] = field(default_factory=Counter)

    def row(self, name: str) -> str:
        """A line of the table."""
        cells = (self.batches, self.items, self.kills, self.frozen, self.doubled, self.lost, self.unknown, self.wrong)
        return name.ljust(10) + "".join(str(cell).rjust(9) for cell in cells)


HEAD = "store     " + "".join(
    name.rjust(9) for name in ("batches", "items", "kills", "frozen", "doubled", "lost", "unknown", "wrong")
)


@dataclass
class Round:
    """One batch: its runs, killed in different ways, and the count at the end."""

    job: Job
    provider: Provider
    draw: random.Random
    tally: Tally
    alone: bool
    started: list[Process] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    over: bool = False

    def start(self, *, file_limit: int | None = None, **env: str) -> Process:
        """One more run, most of them forked. What it says goes to a file, so that no pipe holds it up."""
        way = start if self.draw.random() < THROUGH_THE_COMMAND else fork
        process = way(
            ["run", str(self.job.folder / "batch.toml"), "--json"],
            folder=self.job.folder,
            env=self.job.environment(**env),
            log=self.job.folder / f"run-{len(self.started)}.log",
            file_limit=file_limit,
        )
        self.started.append(process)
        return process

    def ended(self, process: Process, within: float = 90) -> bool:
        """Waits for a run's end; whether it was killed. A run that does not end, or ends as no run may, is wrong."""
        try:
            code = process.wait(within)
        except subprocess.TimeoutExpired:
            end(process)
            process.wait(10)
            self.fault(f"run {self.started.index(process)} did not end within {within:g} s")
            return False
        if code == -signal.SIGKILL:
            self.tally.kills += 1
            return True
        self.over = code in (0, 1)
        log = (self.job.folder / f"run-{self.started.index(process)}.log").read_text()
        if code not in ENDS or "Traceback" in log or '"internal_error"' in log:
            self.fault(f"run {self.started.index(process)} ended with {code}")
        return False

    def fault(self, text: str) -> None:
        """Something that may not be."""
        self.said.append(text)
        self.tally.wrong += 1

    def at_a_point(self, point: str) -> None:
        """Dies at a named instant."""
        count = self.draw.choice((1, 2, 5, 9)) if point not in ("before_finish", "after_take_over") else 1
        limit = self._nearly_full() if "spool" in point else None
        if self.ended(self.start(PAYONCE_CRASH_AT=f"{point}:{count}", file_limit=limit)):
            self.tally.points[point] += 1

    def _nearly_full(self) -> int | None:
        """A limit on the size of files that the ledger reaches in this run: its answers go to the spool then."""
        files = [f.stat().st_size for f in self.job.folder.glob("ledger.*") if f.suffix in (".db", ".jsonl", ".db-wal")]
        return max(files) + self.draw.choice((4_000, 30_000, 120_000)) if files else None

    def at_an_instant(self, processes: int) -> None:
        """Dies at any instant: while it starts, reads, seals, recovers, sends or waits."""
        running = [self.start() for _ in range(processes)]
        if self.draw.random() < 0.7:
            self._until_a_call(running)
            time.sleep(self.draw.random() * 0.4)
        else:
            time.sleep(self.draw.random() * 2.5)
        for process in running:
            end(process)
            if self.ended(process):
                self.tally.points["at random"] += 1
            time.sleep(self.draw.random() * 0.1 * (processes > 1))

    def frozen(self) -> None:
        """Stands still past its lease, while another process goes on where the store allows that; then wakes."""
        first = self.start()
        self._until_a_call([first])
        time.sleep(self.draw.random() * 0.2)
        first.send_signal(signal.SIGSTOP)
        second = None if self.alone else self.start()
        time.sleep(LEASE_S + 1.5 * self.draw.random())
        first.send_signal(signal.SIGCONT)
        self.tally.frozen += 1
        for process in (first, second):
            if process is not None:
                self.ended(process)

    def _until_a_call(self, running: list[Process]) -> None:
        before = self.provider.stats()["calls"]
        until = time.monotonic() + 20
        while time.monotonic() < until and all(process.poll() is None for process in running):
            if self.provider.stats()["calls"] > before:
                return
            time.sleep(0.01)

    def close(self, *, left_open: bool) -> None:
        """Lets one run through and counts."""
        process = self.start()
        self.ended(process, within=180)
        executed = Counter({ref: n for ref, n in self.provider.executed().items() if ref.startswith(self.job.prefix)})
        ledger = connect(self.job.ledger, create=False, read_only=True)
        try:
            states = {item.id: item.state for item in ledger.items(self.job.name, limit=self.job.items + 1).items}
            faults = ledger.check()
        finally:
            ledger.close()
        unknown = sum(state is ItemState.UNKNOWN for state in states.values())
        self.tally.batches += 1
        self.tally.items += self.job.items
        self.tally.doubled += sum(executed.values()) - len(executed)
        self.tally.unknown += unknown
        self.tally.lost += sum(map(self._is_lost, *self._sides(states, executed)))
        if process.poll() not in ((0, 1) if left_open else (0,)):
            self.fault(f"the last run ended with {process.poll()}: {Counter(states.values())}")
        if unknown and not left_open:
            self.fault(f"{unknown} unknown items with a provider that can tell")
        for fault in faults:
            self.fault(fault)
        found = verify_trail(self.job.ledger, Against())
        for broken in found.faults:
            self.fault(str(broken.as_json()))

    def _sides(
        self, states: dict[str, ItemState], executed: Counter[str]
    ) -> tuple[list[str], list[ItemState | None], list[int]]:
        ids = [f"{self.job.prefix}{k}" for k in range(self.job.items)]
        return ids, [states.get(item) for item in ids], [executed[item] for item in ids]

    def _is_lost(self, item: str, state: ItemState | None, executed: int) -> bool:
        """Without a state, without an end, or with one that the provider's books contradict."""
        ends = {ItemState.COMMITTED: executed > 0, ItemState.UNKNOWN: True, ItemState.REFUSED: not executed}
        lost = state is None or not ends.get(state, False)
        if lost:
            self.fault(f"{item} is {state}, executed {executed} times")
        return lost


class Torture:
    """Rounds on all stores in turn, until the time or the number of kills is reached."""

    def __init__(self, seed: int, stores: list[str], folder: Path) -> None:
        self.draw = random.Random(seed)
        self.seed = seed
        self.stores = stores
        self.folder = folder
        self.tallies = {store: Tally() for store in stores}
        self.server: Any = None
        self.rounds = 0
        self._points: list[str] = []
        self._providers: dict[tuple[bool, bool], Provider] = {}

    @property
    def kills(self) -> int:
        """Processes that died by SIGKILL."""
        return sum(tally.kills for tally in self.tallies.values())

    @property
    def clean(self) -> bool:
        """Whether nothing was doubled, lost or wrong."""
        return not any(t.doubled or t.lost or t.wrong for t in self.tallies.values())

    def round(self) -> None:
        """One batch on the next store."""
        store = self.stores[self.rounds % len(self.stores)]
        self.rounds += 1
        folder = self.folder / f"round-{self.rounds}-{store}"
        folder.mkdir(parents=True)
        keys, lookup, left_open = self.draw.choice(PROMISES)
        provider = self._provider(keys=keys, lookup=lookup)
        provider.post("/_sim/reset", {})
        job = Job(folder, provider.url, ITEMS, keys=keys, lookup=lookup, max_execution="200ms", timeout="500ms")
        job.prefix = f"r{self.rounds}x"
        job.concurrency = self.draw.choice((2, 8))
        job.id_header = self.draw.choice(("", "Request-Id"))
        job.limits = {"lease": f"{LEASE_S}s", "attempts": 30}
        job.ledger = self._ledger(store, folder)
        job.env = {"XDG_STATE_HOME": str(folder / "state")}
        job.write()
        round_ = Round(job, provider, self.draw, self.tallies[store], alone=store == "jsonl")
        try:
            for _ in range(self.draw.randrange(6, 14)):
                self._hurt(round_)
                if round_.over:
                    break
            round_.close(left_open=left_open)
        finally:
            for process in round_.started:
                if process.poll() is None:
                    end(process)
                    process.wait(10)
        if round_.said:
            print(f"round {self.rounds} ({store}, keys {keys}, look-up {lookup}), kept in {folder}:", flush=True)
            print("".join(f"  {line}\n" for line in round_.said), flush=True)
        else:
            shutil.rmtree(folder)

    def _provider(self, *, keys: bool, lookup: bool) -> Provider:
        """One for each kind of promise."""
        known = self._providers.get((keys, lookup))
        if known is None:
            folder = self.folder / f"provider-{keys}-{lookup}"
            folder.mkdir()
            known = self._providers[keys, lookup] = Provider.start(
                folder,
                latency={"min": "5ms", "max": "60ms"},
                keys="honoured" if keys else "ignored",
                lookup=lookup,
                # A remembered error burns its key: without a look-up such an item is a person's, rightly.
                probability={**FAULTS, **({} if lookup else {"error_500_after": 0})},
                seed=self.draw.randrange(1 << 30),
            )
        return known

    def close(self) -> None:
        """Ends the providers."""
        for provider in self._providers.values():
            provider.close()

    def _hurt(self, round_: Round) -> None:
        way = self.draw.random()
        if way < 0.5:
            if not self._points:
                self._points = self.draw.sample(CRASH_POINTS, len(CRASH_POINTS))
            round_.at_a_point(self._points.pop())
        elif way < 0.8:
            round_.at_an_instant(1)
        elif way < 0.93:
            round_.at_an_instant(1 if round_.alone else self.draw.choice((2, 3)))
        else:
            round_.frozen()

    def _ledger(self, store: str, folder: Path) -> str:
        if store == "postgres":
            if self.server is None:
                from tests.postgres import Server

                self.server = Server.start(run=self.folder)
            return str(self.server.url())
        return f"{store}:{folder / 'ledger'}.{'db' if store == 'sqlite' else store}"

    def table(self) -> str:
        """What came of it."""
        total = Tally()
        for tally in self.tallies.values():
            for name in ("batches", "items", "kills", "frozen", "doubled", "lost", "unknown", "wrong"):
                setattr(total, name, getattr(total, name) + getattr(tally, name))
            total.points += tally.points
        points = ", ".join(f"{point} {count}" for point, count in sorted(total.points.items()))
        rows = [tally.row(store) for store, tally in self.tallies.items()]
        return "\n".join([f"seed {self.seed}", HEAD, *rows, total.row("all"), f"killed: {points}"])


def main() -> int:
    """The command line. Exit code 1 where anything was doubled, lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--kills", type=int, default=1 << 30, help="stop after so many")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--stores", default="sqlite,jsonl,postgres")
    parser.add_argument("--folder", type=Path, default=None)
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 30) if args.seed is None else args.seed
    folder = args.folder or Path(tempfile.mkdtemp(prefix="payonce-torture-"))
    torture = Torture(seed, args.stores.split(","), folder)
    print(f"seed {seed}, in {folder}", flush=True)
    until, told = time.monotonic() + args.seconds, time.monotonic()
    try:
        while time.monotonic() < until and torture.kills < args.kills:
            torture.round()
            if time.monotonic() - told > 30:
                told = time.monotonic()
                print(f"{torture.rounds} batches, {torture.kills} kills", flush=True)
    finally:
        torture.close()
    print(torture.table(), flush=True)
    if torture.clean:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if torture.clean else 1


if __name__ == "__main__":
    sys.exit(main())
