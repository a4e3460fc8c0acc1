"""The batch file: what it says is taken exactly, and everything wrong with it is said at once, each at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from payonce.core.errors import ConfigError, UsageError
from payonce.core.model import SECOND_US
from payonce.service import batchfile
from payonce.service.batchfile_check import BatchFileError
from payonce.service.batchfile_limits import fit_lease

GOOD = """
[batch]
id = "refunds"
operation = "refund"
input = "refunds.csv"

[item]
id = "charge_id"
amount = "amount"
currency = {value = "USD"}

[limits]
concurrency = 64
rate = "80/s"
budget = {USD = "15000.00", JPY = "5800"}
grace = "1.5s"

[ledger]
url = "sqlite:books/payonce.db"

[provider]
kind = "http"
headers = {Authorization = "Bearer ${API_TOKEN}"}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "batch.toml"
    path.write_text(text)
    return path


def problems(folder: Path, text: str) -> list[tuple[str, str]]:
    with pytest.raises(BatchFileError) as caught:
        batchfile.load(write(folder, text))
    assert caught.value.exit_code == 2
    return [(problem.column or "", problem.code) for problem in caught.value.problems]


def test_a_sound_file_is_taken_exactly(tmp_path: Path) -> None:
    """Amounts become minor units, durations microseconds, rates calls per 1,000 seconds, paths absolute."""
    file = batchfile.load(write(tmp_path, GOOD))
    assert file.limits.budget == {"USD": 1_500_000, "JPY": 5800}
    assert file.limits.rate_per_ks == 80_000
    assert file.limits.grace_us == 1_500_000
    assert file.ledger == f"sqlite:{tmp_path}/books/payonce.db"


def test_credentials_are_not_resolved(tmp_path: Path) -> None:
    """A reference to the environment stays a reference: settings never hold a credential."""
    assert batchfile.load(write(tmp_path, GOOD)).provider["headers"] == {"Authorization": "Bearer ${API_TOKEN}"}


def test_every_fault_is_reported_at_once(tmp_path: Path) -> None:
    """A misspelt name, a wrong type, a float amount, a bad rate and a missing setting all show, with their lines."""
    text = (
        GOOD.replace('operation = "refund"', 'operatoin = "refund"')
        .replace("concurrency = 64", 'concurrency = "64"')
        .replace('"15000.00"', "15000.0")
        .replace("80/s", "80")
    )
    assert problems(tmp_path, text) == [
        ("batch.operation", "missing_setting"),
        ("batch.operatoin", "unknown_setting"),
        ("limits.concurrency", "bad_setting"),
        ("limits.rate", "bad_setting"),
        ("limits.budget", "bad_setting"),
    ]


def test_an_unknown_name_names_the_nearest(tmp_path: Path) -> None:
    """``did you mean`` is part of the message, and the line is that of the setting."""
    with pytest.raises(BatchFileError, match="did you mean 'concurrency'") as caught:
        batchfile.load(write(tmp_path, GOOD.replace("concurrency", "concurency")))
    assert caught.value.problems[0].line == 13


@pytest.mark.parametrize("table", ["batch", "item", "provider"])
def test_a_needed_table_is_missed(tmp_path: Path, table: str) -> None:
    """Without one of the three tables nothing can be run, and the message names it."""
    assert (table, "missing_setting") in problems(tmp_path, GOOD.replace(f"[{table}]", "[input]"))


def test_bad_toml_has_line_and_column(tmp_path: Path) -> None:
    """A syntax error is placed where an editor shows it."""
    with pytest.raises(ConfigError, match="line 3, column") as caught:
        batchfile.load(write(tmp_path, "\n[batch]\nid = refunds\n"))
    assert caught.value.code == "bad_toml"


def test_a_missing_file_says_what_next(tmp_path: Path) -> None:
    """The hint leads to ``payonce init``."""
    with pytest.raises(UsageError) as caught:
        batchfile.load(tmp_path / "none.toml")
    assert "payonce init" in caught.value.hint


def test_a_stated_lease_shortens_an_unstated_timeout(tmp_path: Path) -> None:
    """A call must fit twice into the lease: with a lease of 3 s its timeout is 1.5 s."""
    file = batchfile.load(write(tmp_path, GOOD.replace('grace = "1.5s"', 'lease = "3s"')))
    assert file.provider["timeout"] == "1500ms"
    assert file.warnings == ()


def test_a_stated_timeout_lengthens_a_stated_lease(tmp_path: Path) -> None:
    """Where both are stated and do not fit, the lease gives way, with a warning."""
    text = GOOD.replace('grace = "1.5s"', 'lease = "3s"').replace('kind = "http"', 'kind = "http"\ntimeout = "5s"')
    file = batchfile.load(write(tmp_path, text))
    assert file.limits.lease_us == 10 * SECOND_US
    assert "limits.lease was raised" in file.warnings[0]


def test_an_unstated_lease_follows_a_long_timeout() -> None:
    """A minute's timeout takes a lease of two minutes, silently: nothing that was stated changes."""
    assert fit_lease(lease_us=None, timeout_us=60 * SECOND_US) == (120 * SECOND_US, None, ())
