"""What a batch of calls costs, as one page to file: nothing is loaded from elsewhere, and it prints."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from payonce.service.costs import Breakdown, Group

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;color:#1b1b1b;margin:2rem auto;max-width:60rem;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}.sub{color:#616161}
table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left}
th{font-weight:600;background:#f5f5f5}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.b{width:30%}td.b div{background:#1565c0;height:.8rem;min-width:1px}
@media print{body{margin:0;max-width:none}}
"""
_FACTS: Final = (
    ("spent", "Spent"), ("reserved", "Reserved"), ("left", "Left of the budget"), ("per_item", "Per item"),
    ("projected", "Projected total"), ("over_reserve", "Above their reservation"), ("paid_again", "Paid again"),
    ("paid_again_amount", "Which may have cost"),
)  # fmt: skip


def page(found: Breakdown) -> str:
    """The page."""
    title = f"Cost of {escape(found.batch)}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>\n"
        + "".join(_currency(code, facts) for code, facts in found.summary.items())
        + section(found)
        + "</body></html>\n"
    )


def section(found: Breakdown) -> str:
    """The breakdown alone, for a page of something else."""
    longest = {total.currency: max(1, max(g.billed for g in found.groups if g.currency == total.currency))
               for total in found.totals}  # fmt: skip
    rows = "".join(_row(group, longest[group.currency]) for group in found.groups)
    sums = "".join(_row(group, 0) for group in found.totals)
    return (
        f"<h2>Cost by {escape(found.by)}</h2><p class='sub'>Billed is what the ledger has, rounded a call at a time; exact "
        "is the sum of what the calls cost before that.</p><table><tr>"
        f'<th>{escape(found.by)}</th><th class="n">Items</th><th class="n">Billed</th><th class="n">Exact</th>'
        f'<th class="n">Per item</th><th></th></tr>{rows}{sums}</table>\n'
    )


def _currency(code: str, facts: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><td>{label}</td><td class="n">{escape(str(facts[name]))}</td></tr>'
        for name, label in _FACTS
        if facts[name] is not None
    )
    return f"<h2>{escape(code)}</h2><table>{rows}</table>\n"


def _row(group: Group, longest: int) -> str:
    shown = group.as_json()
    label = escape(group.value or ("not stated" if longest else "all"))
    bar = f'<td class="b"><div style="width:{group.billed * 100 // longest}%"></div></td>' if longest else "<td></td>"
    return (
        f'<tr><td>{label}</td><td class="n">{group.items}</td><td class="n">{shown["billed"]} {group.currency}</td>'
        f'<td class="n">{shown["exact"]}</td><td class="n">{shown["per_item"]}</td>{bar}</tr>'
    )
