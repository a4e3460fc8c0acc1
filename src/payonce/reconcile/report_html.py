"""A reconciliation as one self-contained HTML page that can be filed: no script, no font, no address outside.

Everything from the two sides is escaped. The page shows the balance equation for each currency, both sides of every
finding next to each other, and the money by class.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any, Final

from payonce.core.events import iso
from payonce.core.money import format_minor
from payonce.reconcile.model import Kind
from payonce.reconcile.report import Report, discrepancy_json

_MOST_ROWS: Final = 5000
_WORDS: Final = {
    Kind.MATCHED: "agree in reference, amount and currency",
    Kind.AMOUNT_MISMATCH: "the provider billed another amount",
    Kind.CURRENCY_MISMATCH: "the provider billed another currency",
    Kind.MISSING_AT_PROVIDER: "executed in the ledger, not in the statement",
    Kind.MISSING_IN_LEDGER: "in the statement, not in the ledger",
    Kind.DUPLICATE: "executed more than once",
    Kind.CREDIT_MISMATCH: "a contributor's credit is wrong",
    Kind.STATUS_MISMATCH: "came back, or stands otherwise at the provider",
    Kind.NOT_COVERED: "outside what the statement covers: nothing is said",
}
_COLOURS: Final = {
    Kind.MATCHED: "#2e7d32",
    Kind.AMOUNT_MISMATCH: "#c62828",
    Kind.CURRENCY_MISMATCH: "#ad1457",
    Kind.MISSING_AT_PROVIDER: "#ef6c00",
    Kind.MISSING_IN_LEDGER: "#6a1b9a",
    Kind.DUPLICATE: "#b71c1c",
    Kind.CREDIT_MISMATCH: "#00695c",
    Kind.STATUS_MISMATCH: "#1565c0",
    Kind.NOT_COVERED: "#757575",
}
_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;color:#1b1b1b;margin:2rem auto;max-width:75rem;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
th{font-weight:600;background:#f5f5f5}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.sub{color:#616161}.tag{color:#fff;border-radius:3px;padding:0 .4rem;white-space:nowrap}.ok{color:#2e7d32;font-weight:600}
.bad{color:#c62828;font-weight:600}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:#616161}dd{margin:0;overflow-wrap:anywhere}
@media print{body{margin:0;max-width:none}h2{break-after:avoid}tr{break-inside:avoid}}
@media(max-width:40rem){table{display:block;overflow-x:auto}}
"""


def page(report: Report, *, more: str = "") -> str:
    """The page; ``more`` is a section of its own at the end."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Reconciliation of {escape(report.batch)}</title><style>{_STYLE}</style></head><body>",
        _head(report),
        _balance(report),
        _classes(report),
        _chart(report),
        _findings(report),
        _rest(report),
        more,
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _head(report: Report) -> str:
    statement, coverage = report.statement, report.statement.coverage
    period = (
        "not known"
        if coverage.from_us is None or coverage.to_us is None
        else f"up to {iso(coverage.to_us)}"
        if statement.period == "asked"
        else f"{iso(coverage.from_us)} to {iso(coverage.to_us)}"
    )
    facts = {
        "Batch": report.batch,
        "Operation": report.operation,
        "Account": report.account or "not stated",
        "Statement": ": ".join(filter(None, (statement.layout, ", ".join(statement.files)))),
        "SHA-256": statement.sha256,
        "Rows": f"{statement.rows} read = {statement.used} used + {statement.rows - statement.used} ignored",
        "Period": period,
        "Made": iso(report.at_us),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    count = len(report.result.discrepancies)
    verdict = f'<p class="bad">{count} findings</p>' if count else '<p class="ok">Ledger and statement agree.</p>'
    return f"<h1>Reconciliation of {escape(report.batch)}</h1>{verdict}<dl>{listed}</dl>"


def _balance(report: Report) -> str:
    rows = []
    for currency, sums in report.result.balance.items():
        if not currency:
            continue
        cells = (sums.ledger, sums.explained, sums.statement, sums.not_covered)
        numbers = "".join(f'<td class="n">{format_minor(minor, currency)}</td>' for minor in cells)
        rows.append(f"<tr><td>{currency}</td>{numbers}<td>balances</td></tr>")
    return (
        "<h2>Balance</h2><p class='sub'>Ledger + findings = statement, to the minor unit.</p><table><tr><th>Currency</th>"
        '<th class="n">Ledger</th><th class="n">+ findings</th><th class="n">= statement</th>'
        f'<th class="n">Not covered</th><th></th></tr>{"".join(rows)}</table>'
    )


def _classes(report: Report) -> str:
    rows = []
    for kind in Kind:
        count = report.result.counts.get(kind, 0)
        rows.append(f'<tr><td>{_tag(kind)}</td><td class="n">{count}</td><td class="sub">{_WORDS[kind]}</td></tr>')
    return f'<h2>Classes</h2><table><tr><th>Class</th><th class="n">Number</th><th></th></tr>{"".join(rows)}</table>'


def _chart(report: Report) -> str:
    """The money that each class moves, one picture for each currency; drawn to scale within it."""
    charts = []
    for currency in report.result.balance:
        sums: Counter[Kind] = Counter()
        for found in report.result.discrepancies:
            if currency in (found.currency, found.statement_currency):
                sums[found.kind] += abs(found.statement - found.ledger)
        shown = [(kind, minor) for kind, minor in sums.items() if minor]
        if shown and currency:
            charts.append(_bars(currency, shown))
    return f"<h2>Money by class</h2>{''.join(charts)}" if charts else ""


def _bars(currency: str, shown: list[tuple[Kind, int]]) -> str:
    longest = max(minor for _, minor in shown)
    height = 28 * len(shown)
    bars = []
    for place, (kind, minor) in enumerate(sorted(shown, key=lambda pair: -pair[1])):
        # Whole pixels from whole numbers: no float is needed to draw either.
        width, y = max(1, minor * 460 // longest), 28 * place
        text = f"{format_minor(minor, currency)} {currency}"
        bars.append(
            f'<text x="0" y="{y + 17}" font-size="13">{kind.value}</text>'
            f'<rect x="180" y="{y + 4}" width="{width}" height="18" fill="{_COLOURS[kind]}"/>'
            f'<text x="{186 + width}" y="{y + 17}" font-size="13">{text}</text>'
        )
    return f'<svg viewBox="0 0 820 {height}" role="img" aria-label="money by class in {currency}" width="100%">{"".join(bars)}</svg>'


def _findings(report: Report) -> str:
    found = report.result.discrepancies
    if not found:
        return ""
    rows = "".join(_finding(discrepancy_json(report, d), d.kind) for d in found[:_MOST_ROWS])
    more = f"<p class='sub'>{len(found) - _MOST_ROWS} more are in the CSV files.</p>" if len(found) > _MOST_ROWS else ""
    return (
        '<h2>Findings</h2><table><tr><th>Class</th><th>Item</th><th>Reference</th><th class="n">Ledger</th>'
        f'<th class="n">Statement</th><th>Rows</th><th>What</th></tr>{rows}</table>{more}'
    )


def _finding(row: dict[str, Any], kind: Kind) -> str:
    ledger = (
        f"{row['ledger_amount']} {row['currency']}" if row["ledger_amount"] is not None else (row["expected"] or "")
    )
    statement = (
        f"{row['statement_amount']} {row['statement_currency']}"
        if row["statement_amount"] is not None
        else (row["found"] or "")
    )
    rows = ", ".join(map(str, row["statement_rows"]))
    attached = "".join(
        f"<br>{escape(a['role'])}: {a['amount']} {a['currency']} (row {a['row']})" for a in row["attached"]
    )
    life = f"<br><span class='sub'>finding {row['finding']}, {row['finding_state']}</span>" if row["finding"] else ""
    return (
        f"<tr><td>{_tag(kind)}</td><td>{escape(row['item'] or '')}</td><td>{escape(row['reference'] or '')}</td>"
        f'<td class="n">{escape(ledger)}</td><td class="n">{escape(statement)}</td><td>{escape(rows)}</td>'
        f"<td>{escape(row['note'])}{attached}{life}</td></tr>"
    )


def _rest(report: Report) -> str:
    parts = []
    if report.applied:
        listed = "".join(
            f"<li>{escape(str(c['item']))}: {escape(str(c['proves']))}</li>" for c in report.applied[:_MOST_ROWS]
        )
        parts.append(f"<h2>Written to the ledger</h2><ul>{listed}</ul>")
    if report.statement.assumed:
        listed = "".join(f"<li>{escape(text)}</li>" for text in report.statement.assumed)
        parts.append(f"<h2>Assumed</h2><ul>{listed}</ul>")
    ignored = Counter(why for _, why in report.statement.ignored)
    if ignored:
        listed = "".join(f"<li>{count}: {escape(why)}</li>" for why, count in ignored.most_common())
        parts.append(f"<h2>Ignored rows</h2><ul>{listed}</ul>")
    return "".join(parts)


def _tag(kind: Kind) -> str:
    return f'<span class="tag" style="background:{_COLOURS[kind]}">{kind.value}</span>'
