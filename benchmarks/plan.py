"""Rows a second through reading, validating and sealing an input, beside DuckDB's own time for reading the same file.

    python benchmarks/plan.py [--rows 1000000] [--format csv|jsonl|parquet] [--quoted] [--rounds 3] [--no-ledger] [--out FILE.json]

Each step runs in a process of its own, so that its peak memory is its own, and the steps run in turn, so that a
machine's changing speed meets all of them. DuckDB reads every column as text and looks at every value; it validates
nothing. Figures are medians over the rounds. The file is made in a temporary folder (TMPDIR), 67 MB a million rows.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from facts import save

COLUMNS = ("refund_id", "charge_id", "amount", "currency", "reason")
STEPS = ("duckdb", "read", "items", "seal")
TITLES = {
    "duckdb": "DuckDB reads the file",
    "read": "read and validate",
    "items": "  and take the items",
    "seal": "  and seal them in a SQLite ledger",
}


def rows(count: int) -> Any:
    """Made-up refunds, each on a charge of its own, always the same."""
    chance = random.Random(1)
    for number in range(count):
        amount = f"{chance.randrange(100, 50_000) / 100:.2f}"
        yield f"RF-{number:08d}", f"ch_3N{chance.getrandbits(64):016x}", amount, "USD", "requested_by_customer"


def write(folder: Path, count: int, kind: str, *, quoted: bool) -> Path:
    """A file of that many rows."""
    path = folder / f"input.{kind}"
    if kind == "parquet":
        import duckdb

        source = write(folder, count, "csv", quoted=False)
        with duckdb.connect() as database:
            database.execute(f"COPY (FROM read_csv('{source}', all_varchar = true)) TO '{path}' (FORMAT parquet)")
        return path
    separator = '","' if quoted else ","
    edge = '"' if quoted else ""
    with path.open("w", encoding="utf-8") as file:
        if kind == "csv":
            file.write(f"{edge}{separator.join(COLUMNS)}{edge}\n")
            file.writelines(f"{edge}{separator.join(row)}{edge}\n" for row in rows(count))
        else:
            file.writelines(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in rows(count))
    return path


def duckdb_reads(path: Path) -> int:
    """DuckDB takes every value of the file as text."""
    import duckdb

    how = {
        "csv": "read_csv(?, all_varchar = true)",
        "jsonl": "read_json(?, format = 'nd')",
        "parquet": "read_parquet(?)",
    }
    values = ", ".join(f"max(strlen({name}::VARCHAR))" for name in COLUMNS)
    with duckdb.connect(config={"threads": 2}) as database:
        found = database.execute(f"SELECT count(*), {values} FROM {how[path.suffix[1:]]}", [str(path)]).fetchone()
    assert found is not None
    return int(found[0])


def payonce_reads(path: Path, step: str) -> int:
    """payonce reads the file, and takes or seals its items."""
    from payonce.intake import InputSettings, ItemColumns, read

    item = ItemColumns(id="refund_id", target="charge_id", amount="amount", currency="currency")
    with read(InputSettings(source=path.name, item=item), base_dir=path.parent, operation="refund") as intake:
        intake.raise_if_bad()
        if step == "items":
            return sum(1 for _ in intake.items())
        if step == "seal":
            from payonce.core.model import Actor, BatchSpec, PlainItems
            from payonce.ledger.connect import connect

            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                ledger = connect(f"sqlite:{folder}/ledger.db", create=True, marks=Path(folder))
                spec = BatchSpec(id="bench", operation="refund", provider="simulator", targets=True)
                ledger.seal(spec, PlainItems(intake.rows()), seal=intake.seal, actor=Actor())
                ledger.close()
        return intake.counts.items


def child(step: str, path: Path) -> None:
    """One step in this process: its time, processor time and peak memory as JSON."""
    start = time.perf_counter()
    found = duckdb_reads(path) if step == "duckdb" else payonce_reads(path, step)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    made = {"rows": found, "seconds": seconds, "cpu_s": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}
    print(json.dumps(made))


def measure(path: Path, count: int, rounds: int, steps: list[str]) -> dict[str, dict[str, float]]:
    """All steps, each as often as there are rounds, in turn."""
    found: dict[str, list[dict[str, float]]] = {step: [] for step in steps}
    for _ in range(rounds):
        for step in steps:
            command = [sys.executable, __file__, "--child", step, "--file", str(path)]
            made = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            assert made["rows"] == count, made
            found[step].append(made)
    return {
        step: {
            "seconds": statistics.median(made["seconds"] for made in all_made),
            "rows_per_s": count / statistics.median(made["seconds"] for made in all_made),
            "cpu_s": statistics.median(made["cpu_s"] for made in all_made),
            "peak_mb": max(made["peak_mb"] for made in all_made),
        }
        for step, all_made in found.items()
    }


def main() -> None:
    """Makes the file, measures, prints a table."""
    parser = argparse.ArgumentParser(description="Reading, validating and sealing an input.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--format", choices=["csv", "jsonl", "parquet"], default="csv")
    parser.add_argument("--quoted", action="store_true", help="every field of the CSV in quotes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-ledger", action="store_true", help="leave the ledger out")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", choices=STEPS)
    parser.add_argument("--file", type=Path)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.file)
        return
    steps = [step for step in STEPS if not (options.no_ledger and step == "seal")]
    with tempfile.TemporaryDirectory(prefix="payonce-bench-") as folder:
        path = write(Path(folder), options.rows, options.format, quoted=options.quoted)
        size = path.stat().st_size
        found = measure(path, options.rows, options.rounds, steps)
    print(f"{options.rows} rows, {options.format}{' quoted' if options.quoted else ''}, {size / 1e6:.0f} MB")
    print(f"{'':36}{'seconds':>10}{'cpu s':>10}{'rows/s':>12}{'peak MB':>10}")
    for step, figures in found.items():
        times = f"{figures['seconds']:>10.2f}{figures['cpu_s']:>10.2f}{figures['rows_per_s']:>12,.0f}"
        print(f"{TITLES[step]:36}{times}{figures['peak_mb']:>10.0f}")
    save(options.out, "plan", rows=options.rows, format=options.format, steps=found)


if __name__ == "__main__":
    main()
