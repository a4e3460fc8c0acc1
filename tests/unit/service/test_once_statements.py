"""What one guarded call asks of its ledger: few statements, each with its reason, so that none creeps in unseen."""

from __future__ import annotations

from pathlib import Path

import payonce
from payonce.ledger.sqlite import SqliteLedger
from payonce.service.single_desk import desk_of

# Of the intent, and of the result: what is done and to what.
INTENT = [
    "BEGIN IMMEDIATE",
    "PRAGMA data_version",
    "SELECT meta",
    "INSERT items",
    "INSERT item_ids",
    "SELECT intents",  # whether the target is held
    "INSERT intents",
    "UPDATE items",
    "INSERT tallies",
    "INSERT tallies",
    "UPDATE batches",
    "INSERT events",
    "UPDATE head",
    "COMMIT",
]
RESULT = [
    "BEGIN IMMEDIATE",
    "PRAGMA data_version",
    "DELETE intents",
    "UPDATE items",
    "INSERT tallies",
    "INSERT tallies",
    "INSERT events",
    "UPDATE head",
    "COMMIT",
]


def kind(statement: str) -> str:
    """The verb of a statement and the table it is about."""
    words = statement.replace("(", " ").split()
    tables = ("item_ids", "intents", "items", "tallies", "batches", "events", "head", "meta", "workers")
    if words[0] in ("BEGIN", "PRAGMA", "COMMIT"):
        return " ".join(words[:2]).removesuffix(";")
    verbs = {"INSERT": "INTO", "DELETE": "FROM", "SELECT": "FROM"}
    rest = words[words.index(verbs[words[0]]) :] if words[0] in verbs else words
    return f"{words[0]} {next(word for word in rest if word in tables)}"


def test_a_guarded_call_asks_for_no_more_than_it_needs(tmp_path: Path) -> None:
    """Once the batch and its worker are known: one transaction before the body, one after it, and nothing else."""
    ledger = f"sqlite:{tmp_path / 'payonce.db'}"

    def pay(item: str) -> None:
        money = payonce.Money("10.00", "USD")
        with payonce.once(ledger, batch="payouts", item=item, money=money, target=f"to-{item}", key=True) as call:
            call.executed(f"tr_{item}")

    pay("warm")
    store = desk_of(ledger).store
    assert isinstance(store, SqliteLedger) and store._writer is not None and store._reader is not None
    asked: list[str] = []
    for connection in (store._writer, store._reader):
        connection.set_trace_callback(asked.append)
    pay("next")
    for connection in (store._writer, store._reader):
        connection.set_trace_callback(None)
    # A statement that fires triggers is told again for each of them.
    own = [
        text for text, before in zip(asked, ["", *asked], strict=False) if text != before and not text.startswith("--")
    ]
    assert [kind(statement) for statement in own] == INTENT + RESULT
