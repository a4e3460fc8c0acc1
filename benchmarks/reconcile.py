"""How long a large reconciliation takes: a SQLite ledger of N committed items against a statement of N rows.

    python benchmarks/reconcile.py [--items 1000000] [--dir DIR]

The ledger's items and the statement are made first and not measured. Measured, in a process of its own: reading both
sides, comparing, and the report, with the peak of its memory. Beside it: DuckDB's own full outer join of the same columns,
from the same statement and the ledger's lines already in a file. A thousandth of the rows has a fault, so that findings,
their histories and the report are part of it.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from facts import save

from payonce.core.model import BatchSpec, NewItem
from payonce.core.money import Money
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect

BATCH = "bench"
HEADER = "refund_id,type,charge,amount,currency,created,idempotency_key,reference\n"


def build(folder: Path, items: int) -> None:
    """The ledger (rows written directly: a million calls would measure something else) and the statement."""
    store = connect(f"sqlite:{folder / 'payonce.db'}", create=True)
    first = NewItem("RR-0000000001", Money.of_minor(101, "USD"), "ch_000000000001")
    batch = store.seal(BatchSpec(BATCH, "refund", "simulator", targets=True), [first], seal="", actor=this_actor())
    store.close()
    base = sqlite3.connect(folder / "payonce.db")
    base.execute("delete from items")
    base.execute(
        "insert into items (place, id, target, minor, currency, state, settlement, generation, step, attempts, spent, "
        "not_before_us, reference, billed_minor, billed_currency, first_sent_us, updated_us) "
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?2) "
        "select (?1 << 32) | i, printf('RR-%010d', i), printf('ch_%012d', i), i % 9000 + 100, 'USD', 2, 0, 0, 0, 1, 1, 0, "
        "printf('re_%016x', i), i % 9000 + 100, 'USD', 0, 1796041316000000 from n",
        (batch.number, items),
    )
    base.execute("update batches set items = ?", (items,))
    base.commit()
    base.close()
    with (folder / "statement.csv").open("w") as file:
        file.write(HEADER)
        for start in range(1, items + 1, 10_000):
            file.write("".join(row(i) for i in range(start, min(start + 10_000, items + 1))))


def row(i: int) -> str:
    """One row; every thousandth has another amount, the one after it is not there."""
    if i % 1000 == 1 and i > 1:
        return ""
    amount = i % 9000 + 100 + (i % 1000 == 0)
    return f"re_{i:016x},refund,ch_{i:012d},{amount},usd,2026-11-30T08:{i // 60 % 60:02}:{i % 60:02}.000000Z,,RR-{i:010d}\n"


def measured(folder: Path) -> dict[str, float]:
    """The command's own function in this process: seconds, processor seconds, peak megabytes, matched."""
    from payonce.reconcile.model import Kind
    from payonce.service.reconciling import Asked, reconcile_files

    store = connect(f"sqlite:{folder / 'payonce.db'}", create=False)
    start, spent = time.perf_counter(), time.process_time()
    report = reconcile_files(store, Asked(BATCH, (folder / "statement.csv",)), actor=this_actor())
    took, cpu = time.perf_counter() - start, time.process_time() - spent
    store.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(took, 2), "cpu_seconds": round(cpu, 2), "peak_mb": round(peak),
            "matched": report.result.counts[Kind.MATCHED], "findings": len(report.result.discrepancies)}  # fmt: skip


def joined(folder: Path) -> dict[str, float]:
    """DuckDB alone: both sides from files, one full outer join, the classes counted."""
    import duckdb

    # The ledger's side is given to it as a file.
    base = sqlite3.connect(folder / "payonce.db")
    with (folder / "lines").open("w") as file:
        for row in base.execute("select place & 4294967295, reference, billed_minor from items order by place"):
            file.write("\x1f".join(map(str, row)) + "\n")
    base.close()
    start, spent = time.perf_counter(), time.process_time()
    with duckdb.connect(config={"threads": 2, "memory_limit": "1100MB", "temp_directory": str(folder)}) as base:
        base.execute(
            "select count(*) filter (s.amount = l.minor), count(*) filter (s.amount <> l.minor), count(*) filter (l.ref is null), "
            "count(*) filter (s.refund_id is null) from read_csv(?, header=true) s full outer join read_csv(?, header=false, "
            "delim='\x1f', quote='', columns={'n': 'bigint', 'ref': 'varchar', 'minor': 'bigint'}) l on s.refund_id = l.ref",
            [str(folder / "statement.csv"), str(folder / "lines")],
        ).fetchall()
    took, cpu = time.perf_counter() - start, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(took, 2), "cpu_seconds": round(cpu, 2), "peak_mb": round(peak)}


def main() -> None:
    """Builds, then measures each in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=["payonce", "duckdb"])
    given = parser.parse_args()
    if given.only:
        print(json.dumps(measured(given.dir) if given.only == "payonce" else joined(given.dir)))
        return
    with tempfile.TemporaryDirectory(dir=given.dir) as name:
        folder = Path(name)
        build(folder, given.items)
        sides: dict[str, dict[str, float]] = {}
        for what in ("payonce", "duckdb"):
            command = [sys.executable, __file__, "--only", what, "--dir", name]
            sides[what] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            print(f"{given.items} x {given.items}, {what}: {json.dumps(sides[what])}")
    save(given.out, "reconcile", items=given.items, **sides)


if __name__ == "__main__":
    main()
