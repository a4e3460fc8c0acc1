"""The demonstration: a real run against a real server, really killed, run again, and compared with the provider's truth.

Nothing is staged: provider and run are processes of their own, the kill is SIGKILL, and what was executed is read from
the provider's books, which payonce does not write. Everything stays in a folder for the reader to look into.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from payonce.core.errors import UsageError
from payonce.core.model import Item
from payonce.core.money import format_minor
from payonce.core.states import ItemState
from payonce.service import initialising, inspecting, trailing, trailing_keys
from payonce.service.demo_provider import SimulatedProvider
from payonce.service.opening import opened

Say = Callable[[str], None]
BATCH = "demo-refunds"
_RUN_TIMEOUT_S = 300.0
_LATENCY = "40ms"


@dataclass(frozen=True, slots=True)
class Found:
    """What the comparison of provider and ledger showed. ``matched`` items agree in reference, amount and number.

    ``executed_minor`` is the money of all executions in USD cents, ``planned_minor`` that of the batch. ``open_found`` and
    ``open_again`` are the items whose intent was open at the kill: those that had been executed, which the second run found
    and did not send again, and those that had not been, which it sent. ``proved`` is the item whose proof was written to
    ``proof.json`` and checked with the public key alone.
    """

    items: int
    killed_at: int
    executed: int
    duplicates: int
    matched: int
    folder: Path
    was_killed: bool
    second_exit: int
    executed_minor: int
    planned_minor: int
    open_found: int
    open_again: int
    proved: str

    @property
    def sound(self) -> bool:
        """Whether everything is as promised: really killed, each item executed once, and the ledger says the same."""
        return self.was_killed and self.second_exit == 0 and self.items == self.executed == self.matched

    def as_json(self) -> dict[str, Any]:
        """The JSON contract of ``payonce demo --json``."""
        return {
            "items": self.items,
            "killed_at": self.killed_at,
            "executed": self.executed,
            "duplicates": self.duplicates,
            "matched": self.matched,
            "folder": str(self.folder),
            "money": {
                "planned": format_minor(self.planned_minor, "USD"),
                "executed": format_minor(self.executed_minor, "USD"),
            },
            "open": {"found": self.open_found, "sent_again": self.open_again},
            "proof": {"item": self.proved, "file": str(self.folder / "proof.json")},
            "ok": self.sound,
        }


def run(*, items: int, kill_at: int | None, parent: Path, say: Say) -> Found:
    """The whole demonstration in a fresh folder under ``parent``.

    ``kill_at`` is the number of executions at which the first run is killed, by default two in five. Raises UsageError
    for numbers that make no sense; whatever happens, no process is left running.
    """
    at = items * 2 // 5 if kill_at is None else kill_at
    if not 0 < at < items:
        raise UsageError(
            f"cannot kill at item {at} of {items}",
            code="usage",
            hint="choose --kill-at between 1 and one less than --items",
        )
    folder = fresh_folder(parent)
    with SimulatedProvider.started(folder, latency=_LATENCY, command=_payonce("simulate")) as provider:
        _write(folder, items=items, url=provider.url)
        say(f"the provider listens on {provider.url}; its own books are in {folder / 'provider.jsonl'}")
        say(f"$ payonce run {folder / 'batch.toml'}")
        killed, executed = _first_run(folder, provider, at=at)
        left = _left_open(folder, provider)
        say(_after_the_kill(folder, left, executed=executed, killed=killed))
        say("the same command again")
        exit_code = _second_run(folder)
        found = _compare(folder, provider, left, killed_at=executed, was_killed=killed, second_exit=exit_code)
        if killed:
            say(
                f"of the open intents {found.open_found} were found by look-up and not sent again; "
                f"{found.open_again} had never arrived and were sent again"
            )
        say(
            f"$ payonce trail prove {BATCH} {found.proved} --out proof.json; payonce trail verify-proof proof.json: it holds"
        )
        return found


def fresh_folder(parent: Path) -> Path:
    """``payonce-demo``, or the first of ``payonce-demo-2``, ``-3`` ... that does not exist; made now."""
    number = 1
    while True:
        folder = parent / ("payonce-demo" if number == 1 else f"payonce-demo-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise UsageError(
                f"cannot make {folder}: {error.strerror}", code="file_unwritable", hint="go to a folder of your own"
            ) from error
        else:
            return folder.resolve()


def _write(folder: Path, *, items: int, url: str) -> None:
    text = initialising.batch_file(url=url, batch=BATCH, brisk=True)
    (folder / "batch.toml").write_text(text, encoding="utf-8")
    (folder / "refunds.csv").write_text(initialising.sample(items), encoding="utf-8")


def _payonce(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "payonce", *arguments]


def _environment() -> dict[str, str]:
    """The demonstration keeps to its own ledger, whatever the environment names."""
    return {name: value for name, value in os.environ.items() if name != "PAYONCE_LEDGER"}


@contextmanager
def _started_run(folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{name}.json").open("wb") as out, (folder / f"{name}.log").open("wb") as log:
        command = _payonce("run", "batch.toml", "--yes", "--json")
        child = subprocess.Popen(command, cwd=folder, stdout=out, stderr=log, env=_environment())  # noqa: S603
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()
            child.wait()


def _first_run(folder: Path, provider: SimulatedProvider, *, at: int) -> tuple[bool, int]:
    """Kills the run once the provider has executed ``at`` items. Whether it was alive then, and what was executed."""
    with _started_run(folder, "first-run") as child:
        provider.wait_until_executed(at, or_until=lambda: child.poll() is not None)
        child.send_signal(signal.SIGKILL)
        killed = child.wait() == -signal.SIGKILL
    return killed, provider.executed()


def _second_run(folder: Path) -> int:
    with _started_run(folder, "second-run") as child:
        try:
            return child.wait(timeout=_RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return -1


@dataclass(frozen=True, slots=True)
class _Left:
    """What the killed run left: committed items, the items with an open intent, and which of those were executed."""

    committed: int
    opened: frozenset[str]
    executed: frozenset[str]


def _left_open(folder: Path, provider: SimulatedProvider) -> _Left:
    with opened(f"sqlite:{folder / 'payonce.db'}", read_only=True) as ledger:
        committed = ledger.status(BATCH).count(ItemState.COMMITTED)
        pending = frozenset(item.id for item in inspecting.items(ledger, BATCH, states=[ItemState.PENDING]))
    executed = frozenset(str(effect["ref"]) for effect in provider.effects())
    return _Left(committed, pending, pending & executed)


def _after_the_kill(folder: Path, left: _Left, *, executed: int, killed: bool) -> str:
    if not killed:
        return f"the run ended by itself before it could be killed; see {folder / 'first-run.log'}"
    return (
        f"killed with SIGKILL: the provider had executed {executed}, the ledger knew of {left.committed}; "
        f"{len(left.opened)} intents were open, of which {len(left.executed)} had been executed"
    )


def _compare(
    folder: Path, provider: SimulatedProvider, left: _Left, *, killed_at: int, was_killed: bool, second_exit: int
) -> Found:
    """Every item of the ledger against the provider's true executions."""
    by_item: dict[str, list[dict[str, Any]]] = {}
    effects = provider.effects()
    for effect in effects:
        by_item.setdefault(str(effect["ref"]), []).append(effect)
    with opened(f"sqlite:{folder / 'payonce.db'}", read_only=True) as ledger:
        items = list(inspecting.items(ledger, BATCH))
    matched = sum(_agrees(item, by_item.get(item.id, [])) for item in items)
    (folder / "effects.json").write_bytes(orjson.dumps(effects, option=orjson.OPT_INDENT_2))
    return Found(
        items=len(items),
        killed_at=killed_at,
        executed=len(effects),
        duplicates=sum(len(found) - 1 for found in by_item.values()),
        matched=matched,
        folder=folder,
        was_killed=was_killed,
        second_exit=second_exit,
        executed_minor=sum(int(effect["amount_minor"]) for effect in effects),
        planned_minor=sum(item.money.minor for item in items if item.money is not None),
        open_found=len(left.executed),
        open_again=len(left.opened - left.executed),
        proved=_prove(folder, min(left.executed, default=items[0].id)),
    )


def _prove(folder: Path, item: str) -> str:
    """Makes a key, writes the proof of an item and checks it as somebody else would. Raises UsageError if it does not hold."""
    url = f"sqlite:{folder / 'payonce.db'}"
    made = trailing_keys.make(url, out=None, rotate=False, reason="the demonstration")
    proof = trailing.prove(url, batch=BATCH, item=item, key=None, kept=None)
    (folder / "proof.json").write_bytes(orjson.dumps(proof, option=orjson.OPT_INDENT_2))
    trailing.check_proof(folder / "proof.json", made["public_file"])
    return item


def _agrees(item: Item, executions: list[dict[str, Any]]) -> bool:
    if len(executions) != 1 or item.state is not ItemState.COMMITTED or item.billed is None:
        return False
    truth = executions[0]
    currency = str(truth["currency"]).upper()
    return (
        truth["id"] == item.reference
        and currency == item.billed.currency
        and format_minor(int(truth["amount_minor"]), currency) == item.billed.text
    )
