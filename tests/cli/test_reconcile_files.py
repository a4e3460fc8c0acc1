"""Several exports of one report: what was made of rows that are in two of them, in words and in JSON."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Desk
from tests.cli.test_reconcile import rows, save


@pytest.fixture
def ran(desk: Desk) -> Desk:
    """Eight refunds, all executed."""
    desk.write(items=8)
    assert desk("run", "batch.toml", "--yes", "--no-reconcile").code == 0
    return desk


def test_two_overlapping_files_are_united_by_counts(ran: Desk) -> None:
    """A row in both files is one row; nothing is found."""
    found = rows(ran)
    one, two = save(ran, found[:5], "one.csv"), save(ran, found[3:], "two.csv")
    said = ran("reconcile", "refunds", "--statement", one, "--statement", two, "--json")
    assert said.code == 0, said.err
    assert said.json["statement"]["rows"] == 10 and said.json["statement"]["rows_ignored"] == 2
    assert said.json["classes"]["matched"] == 8


def test_what_was_assumed_of_equal_rows_is_said(ran: Desk) -> None:
    """Without a reference a row in both files may be one or two: refused until it is declared, and then told everywhere."""
    found = rows(ran)
    one, two = save(ran, found[:5], "one.csv"), save(ran, found[4:], "two.csv")
    plain = (
        '[statement]\nown_reference = "reference"\namount_minor = "amount"\ncurrency = "currency"\ntime = "created"\n'
    )
    words = ("reconcile", "refunds", "--statement", one, "--statement", two, "--map", "map.toml")
    (ran.folder / "map.toml").write_text(plain)
    said = ran(*words, "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "unclear_overlap")
    (ran.folder / "map.toml").write_text(plain + 'equal_rows = "once"\n')
    statement = ran(*words, "--json").json["statement"]
    assert (statement["rows"], statement["rows_used"], statement["rows_ignored"]) == (9, 8, 1)
    assert "assumed: 1 equal row without a reference is in one.csv and in two.csv: counted once" in ran(*words).out
    ran(*words, "--html", "page.html")
    assert "counted once, as [statement] equal_rows says" in (ran.folder / "page.html").read_text()
