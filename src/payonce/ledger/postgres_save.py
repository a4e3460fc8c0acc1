"""What a flush hands over, as statements: one for each kind of row, however many rows there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from payonce.ledger.log import Log
from payonce.ledger.postgres_link import Statement
from payonce.ledger.postgres_values import bigints, bigints_or_null, byteas, held, texts, utf8
from payonce.ledger.queries import queries
from payonce.ledger.rows import FindingRow, ItemRow, OpenRow, OutputRow, Saved
from payonce.ledger.sqlite_rows import SETTLEMENT_CODE, SHIFT, STATE_CODE, place, request_columns

_SQL: Final = queries("postgres", "write")


def of_log(log: Log) -> Iterator[Statement]:
    """A transaction's events, payloads and completed nodes."""
    entries = log.entries
    where = [None if e.batch is None else e.batch << SHIFT | (e.n or 0) for e in entries]
    if entries:
        columns = (bigints([e.seq for e in entries]), bigints_or_null(where), utf8([e.body for e in entries]))
        yield _SQL["add_events"], (*columns, bigints([e.mark for e in entries]))
    if log.payloads:
        kept = log.payloads
        yield (
            _SQL["add_payloads"],
            (
                bigints([p.seq for p in kept]),
                texts([p.kind for p in kept]),
                bigints([place(p.batch, p.n) for p in kept]),
                byteas([p.digest for p in kept]),
                byteas([p.body for p in kept]),
            ),
        )
    if log.nodes:
        nodes = log.nodes
        levels, places = bigints([n.level for n in nodes]), bigints([n.index for n in nodes])
        yield _SQL["add_nodes"], (levels, places, byteas([n.hash for n in nodes]))


def of_saved(number: int, saved: Saved, *, targets: bool) -> Iterator[Statement]:
    """Rows of one batch: closed intents go before opened ones come, and those before they are changed."""
    base = place(number)
    if saved.closed:
        yield _SQL["close_intents"], (bigints([base | n for n in saved.closed]),)
    if saved.opened:
        yield _SQL["open_intents"], _opened(saved.opened, base, targets=targets)
    if saved.changed:
        yield _SQL["change_intents"], _changed(saved.changed, base)
        renewed = [row for row in saved.changed if row.request is not None]
        if renewed:
            yield _SQL["change_requests"], _requests(renewed, base)
    if saved.begun:
        yield _SQL["begin_items"], (bigints([base | row.n for row in saved.begun]), saved.begun[0].updated_us)
    if moved := saved.moved():
        yield _SQL["save_items"], _items(moved, base)
    if saved.outputs:
        yield _SQL["add_outputs"], _outputs(saved.outputs, base)
    if saved.findings:
        yield _SQL["add_findings"], _findings(saved.findings)


def _items(rows: Sequence[ItemRow], base: int) -> tuple[Any, ...]:
    return (
        bigints([base | r.n for r in rows]),
        bigints([STATE_CODE[r.state] for r in rows]),
        bigints([SETTLEMENT_CODE[r.settlement] for r in rows]),
        bigints([r.generation for r in rows]),
        bigints([r.step for r in rows]),
        bigints([r.attempts for r in rows]),
        bigints([r.spent for r in rows]),
        bigints([r.not_before_us for r in rows]),
        texts([held(r.reference) or None for r in rows]),
        bigints_or_null([r.billed_minor for r in rows]),
        texts([r.billed_currency or None for r in rows]),
        texts([held(r.code) or None for r in rows]),
        texts([held(r.message) or None for r in rows]),
        texts([None if r.carry == "{}" else r.carry for r in rows]),
        bigints([r.first_sent_us for r in rows]),
        bigints([r.updated_us for r in rows]),
    )


def _opened(rows: Sequence[OpenRow], base: int, *, targets: bool) -> tuple[Any, ...]:
    requests = [request_columns(row.request) for row in rows if row.request is not None]
    assert len(requests) == len(rows), "a new intent comes with its request"
    methods, paths, headers, bodies = zip(*requests, strict=True)
    return (
        bigints([base | r.n for r in rows]),
        texts([r.target or None if targets else None for r in rows]),
        bigints([r.fence for r in rows]),
        texts([r.key for r in rows]),
        byteas([r.digest for r in rows]),
        bigints([r.first_sent_us for r in rows]),
        bigints([r.sent_us for r in rows]),
        bigints([r.send_by_us for r in rows]),
        bigints([r.deadline_us for r in rows]),
        bigints_or_null([r.hold_minor for r in rows]),
        texts([r.hold_currency for r in rows]),
        texts(methods),
        texts(paths),
        texts(headers),
        byteas(bodies),
    )


def _changed(rows: Sequence[OpenRow], base: int) -> tuple[Any, ...]:
    return (
        bigints([base | r.n for r in rows]),
        bigints([r.fence for r in rows]),
        bigints([r.first_sent_us for r in rows]),
        bigints([r.sent_us for r in rows]),
        bigints([r.send_by_us for r in rows]),
        bigints([r.deadline_us for r in rows]),
        bigints_or_null([r.seen_us for r in rows]),
        bigints([r.flags for r in rows]),
        texts([held(r.code) for r in rows]),
        texts([held(r.message) for r in rows]),
        bigints([r.lookups for r in rows]),
        bigints([r.lookup_failures for r in rows]),
        bigints([r.retry_at_us for r in rows]),
        bigints_or_null([r.hold_minor for r in rows]),
        texts([r.hold_currency for r in rows]),
    )


def _requests(rows: Sequence[OpenRow], base: int) -> tuple[Any, ...]:
    requests = [request_columns(row.request) for row in rows if row.request is not None]
    methods, paths, headers, bodies = zip(*requests, strict=True)
    return (
        bigints([base | r.n for r in rows]),
        texts([r.key for r in rows]),
        byteas([r.digest for r in rows]),
        texts(methods),
        texts(paths),
        texts(headers),
        byteas(bodies),
    )


def _outputs(rows: Sequence[OutputRow], base: int) -> tuple[Any, ...]:
    last = {row.n: row for row in rows}  # one statement cannot write a row twice; the last one counts
    found = last.values()
    return bigints([base | o.n for o in found]), byteas([o.output for o in found]), texts([o.kept for o in found])


def _findings(rows: Sequence[FindingRow]) -> tuple[Any, ...]:
    return (
        bigints([f.batch for f in rows]),
        texts([f.item for f in rows]),
        texts([f.kind for f in rows]),
        texts([f.data for f in rows]),
        bigints([f.opened_us for f in rows]),
    )
