"""The table of docs/reference/performance.md, from the JSON files of the last measurements.

    python benchmarks/table.py [--bench build/bench] [--write docs/reference/performance.md]

Prints the table; ``--write`` puts it between the two marks of the page. A benchmark that has left no file has no row.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

START: Final = "<!-- figures: made by benchmarks/table.py -->\n"
END: Final = "<!-- end of the figures -->\n"
Found = dict[str, Any]
Row = tuple[str, str, str]


def throughput(found: Found) -> Iterator[Row]:
    """Items a second against the bare loop."""
    proof = found["proof"]
    what = f"`payonce run`, provider takes {found['latency']}{', checkpoints on' if proof else ''}"
    (name,) = (name for name in found["ratios"] if not name.endswith("_whole"))
    rates = f"{found['payonce_per_s']:,.0f} items/s, bare loop {found['bare_per_s']:,.0f}/s"
    yield what, f"{rates}: **{found['ratios'][name]:.2f}**", {"20ms": "1.0", "0ms": "0.6"}.get(found["latency"], "")
    if proof:
        whole = found["ratios"][f"{name}_whole"]
        yield "the same with plan, reconcile and verify, all commands together", f"**{whole:.2f}**", ""


def ledger(found: Found) -> Iterator[Row]:
    """The ledger alone."""
    rates = f"{found['payonce_per_s']:,.0f} items/s, plain inserts {found['plain_per_s']:,.0f}/s"
    group = found["group"]
    yield f"ledger alone, groups of {group}", f"{rates}: **{found['ratios']['ledger_alone']:.2f}**", "0.5"
    yield "ledger on disk", f"**{found['bytes_per_item']:.0f}** bytes an item", "at most 900"


def once(found: Found) -> Iterator[Row]:
    """One guarded call."""
    medians = found["medians"]
    beside = f"two fsyncs alone {medians['two_fsyncs_ms']:.2f} ms"
    yield "`payonce.once` around a call", f"**{medians['once_ms']:.2f}** ms, {beside}", "at most 3 ms"
    if "once_without_fsync_ms" in medians:
        plain = f"as many plain statements {medians['plain_without_fsync_ms']:.2f} ms"
        text = f"**{medians['once_without_fsync_ms']:.2f}** ms, {plain}"
        yield "the same without the fsync's own time", text, "at most 0.3 ms"


def start(found: Found) -> Iterator[Row]:
    """New interpreters."""
    bare = found["programs"]["interpreter"]["ms"]
    for name, wanted in (("import payonce", "at most 60 ms"), ("payonce --help", "at most 150 ms")):
        yield f"`{name}`", f"**{found['programs'][name]['ms']:.0f}** ms, the interpreter alone {bare:.0f} ms", wanted


def plan(found: Found) -> Iterator[Row]:
    """Reading and sealing an input."""
    seal, duckdb = found["steps"].get("seal"), found["steps"]["duckdb"]
    if seal is not None:
        text = (
            f"**{seal['seconds']:.1f}** s, {seal['peak_mb']:.0f} MB; DuckDB reads the file in {duckdb['seconds']:.1f} s"
        )
        wanted = "at most 120 s" if found["rows"] == 10_000_000 else ""
        yield f"plan {found['rows']:,} rows of {found['format'].upper()}", text, wanted


def scale(found: Found) -> Iterator[Row]:
    """A very large batch."""
    titles = {"resume": "to the first call", "relaunch": "and end of the finished batch", "status": ""}
    wanted = {"resume": "at most 1 s", "relaunch": "at most 1 s", "status": "at most 0.2 s"}
    for name, seconds in found["seconds"].items():
        if name in titles:
            what = f"{name} {titles[name]} of {found.get('items', 10_000_000):,} items".replace("  ", " ")
            yield what, f"**{seconds:.2f}** s", wanted[name]
    yield "memory throughout", f"**{found['peak_mb']:.0f}** MB", "at most 200 MB"
    if found.get("claim_ratio"):
        yield "claiming at the end against the start", f"**{found['claim_ratio']:.2f}** of the time", "at most 1.10"


def workers(found: Found) -> Iterator[Row]:
    """Several processes on PostgreSQL."""
    rates = ", ".join(f"{n}: {rate:,.0f}/s" for n, rate in found["medians"].items())
    growth = ", ".join(f"**{ratio:.2f}**" for ratio in found["ratios"].values())
    what = f"worker processes on PostgreSQL, {found['concurrency']} in flight each, provider takes {found['latency']}"
    yield what, f"{rates}; against one process {growth}", "grows until the cores are full"


def reconcile(found: Found) -> Iterator[Row]:
    """Ledger against statement."""
    ours, duckdb = found["payonce"], found["duckdb"]
    text = f"**{ours['seconds']:.1f}** s, {ours['peak_mb']:.0f} MB; DuckDB's join alone {duckdb['seconds']:.1f} s"
    yield f"reconcile {found['items']:,} items with as many rows", text, ""


def trail(found: Found) -> Iterator[Row]:
    """Checking and proving."""
    steps = {step["what"]: step for step in found["steps"]}
    for name in (f"verify {found['verify']} events", f"prove one item of {found['prove']} events"):
        if name in steps:
            yield f"`trail`: {name}", f"**{steps[name]['seconds']:.2f}** s", ""


def transports(found: Found) -> Iterator[Row]:
    """The transport alone."""
    for one in found["rounds"]:
        if one["loop"] == "uvloop":
            text = f"**{one['calls_per_s']:,}** calls/s, {one['cpu_us']:.0f} us of processor a call"
            yield f"{one['what']}, {found['in_flight']} in flight", text, ""


MADE: Final[dict[str, Callable[[Found], Iterator[Row]]]] = {
    made.__name__: made
    for made in (throughput, ledger, once, start, plan, scale, workers, reconcile, trail, transports)
}


def table(folder: Path) -> str:
    """The table, and on what it was measured."""
    files: list[Found] = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    order = list(MADE)
    files = sorted((f for f in files if f.get("benchmark") in MADE), key=lambda f: order.index(f["benchmark"]))
    lines = ["| what | measured | wanted |", "| --- | --- | --- |"]
    for found in files:
        lines += [f"| {' | '.join(row)} |" for row in MADE[found["benchmark"]](found)]
    machines = dict.fromkeys(
        f"{m['cores']} cores ({m['processor']}), {m['system']}, Python {m['python']}, SQLite {m['sqlite']}"
        for m in (found["machine"] for found in files)
    )
    return "\n".join([*lines, "", f"Measured on {'; '.join(machines) or 'nothing yet'}."]) + "\n"


def main() -> None:
    """Prints the table, or writes it into the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", type=Path, default=Path("build/bench"))
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    made = table(given.bench)
    print(made, end="")
    if given.write:
        page = given.write.read_text(encoding="utf-8")
        before, _, rest = page.partition(START)
        _, _, after = rest.partition(END)
        given.write.write_text(before + START + made + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
