"""Statements damaged in every way: each reader gives an error with a code or a right result, never a traceback.

A result is right as far as that can be judged without the readers: every row of the file is used or ignored, references
stand in the file word for word, and no amount comes out of a cell that holds none.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from payonce.core.errors import PayonceError
from payonce.reconcile.mapping import read_mapping
from payonce.reconcile.statement import Statement, Wanted, read_statement
from tests.properties.mutations import json_bodies, torn_bytes
from tests.unit.reconcile.test_reports import ADYEN, OPENROUTER, STL

CASES = Path(__file__).parents[1] / "data" / "cases"
_SHM = Path("/dev/shm")
MAPPED = {"reference": "id", "amount": "amount", "currency": "currency", "time": "created"}
PLAIN = """id,amount,currency,created
re_1,12.50,USD,2026-11-01T10:00:00Z
re_2,7.25,USD,2026-11-02T10:00:00Z
re_3,1000.00,EUR,2026-11-03T10:00:00Z
"""
API: list[Any] = [
    {"object": "list", "has_more": False, "data": [
        {"id": "re_1", "object": "refund", "amount": 1250, "currency": "usd", "charge": "ch_1", "status": "succeeded",
         "created": 1_800_000_000, "balance_transaction": "txn_1", "metadata": {"payonce_item": "r1"}},
        {"id": "re_2", "object": "refund", "amount": 725, "currency": "usd", "charge": "ch_2", "status": "failed",
         "created": 1_800_000_100, "balance_transaction": "txn_2", "metadata": {}},
    ]},
    {"transaction_details": [{"transaction_info": {
        "transaction_id": "RF1", "transaction_event_code": "T1107", "transaction_status": "S",
        "transaction_initiation_date": "2025-09-04T10:00:00-0700", "paypal_reference_id": "PAY1",
        "transaction_amount": {"currency_code": "USD", "value": "-12.50"}, "custom_field": "op-1"}}],
     "start_date": "2025-09-04T00:00:00-0700", "end_date": "2025-09-05T00:00:00-0700", "page": 1, "total_pages": 1},
]  # fmt: skip
# Name of the file, bytes, operation, mapping.
SAMPLES: dict[str, tuple[str, bytes, str, dict[str, Any]]] = {
    "stripe": ("s.csv", (CASES / "stripe_balance_export_fee_rows.csv").read_bytes(), "refund", {}),
    "paypal activity": ("s.csv", (CASES / "paypal_fx_four_rows.csv").read_bytes(), "refund", {}),
    "paypal thousands": ("s.csv", (CASES / "paypal_en_thousands.csv").read_bytes(), "refund", {}),
    "paypal settlement": ("s.csv", STL.encode(), "refund", {}),
    "adyen": ("s.csv", ADYEN.encode(), "refund", {}),
    "openrouter": ("s.csv", OPENROUTER.encode(), "call", {}),
    "mapped": ("s.csv", PLAIN.encode(), "refund", MAPPED),
    "mapped tabs": ("s.tsv", PLAIN.replace(",", "\t").encode("utf-16"), "refund", MAPPED),
    "parquet": ("s.parquet", (CASES / "amounts_float64.parquet").read_bytes(), "refund", MAPPED),
    "api": ("s.json", json.dumps(API[0]).encode(), "refund", {}),
}
UNSHRUNK = (Phase.explicit, Phase.generate)


@contextmanager
def written(name: str, data: bytes) -> Iterator[Path]:
    """A file, in memory where possible."""
    with tempfile.TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None) as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path


def read(sample: str, data: bytes) -> Statement | None:
    """The statement; None where it is refused, with a code and a reason."""
    name, _, operation, mapping = SAMPLES[sample]
    with written(name, data) as path:
        try:
            return read_statement([path], Wanted(operation, read_mapping(mapping) if mapping else None))
        except PayonceError as error:
            refusal = error
    assert refusal.code, repr(refusal)
    assert refusal.message, repr(refusal)
    return None


def judge(sample: str, data: bytes) -> None:
    """A refusal, or a result that accounts for every row with references that are in the file."""
    found = read(sample, data)
    if found is None:
        return
    assert found.rows == found.used + len(found.ignored), found
    assert found.used > 0, "a statement without a usable row is an error"
    text = _text(data)
    for entry in found.entries:
        assert all(isinstance(leg, int) for leg in entry.legs)
        reference = entry.reference or ""
        # As it is, as it stands inside of a quoted field, or as JSON writes it.
        forms = (reference, reference.replace('"', '""'), json.dumps(reference)[1:-1])
        assert not text or any(form in text for form in forms), entry


def _text(data: bytes) -> str:
    """The file as text; empty where it is none."""
    for encoding in ("utf-8-sig", "utf-16"):
        try:
            return data.decode(encoding).replace("\r\n", "\n")
        except UnicodeError:
            continue
    return ""


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_samples_are_read(sample: str) -> None:
    """What is mutated below is good to begin with (doubles for money are refused, always)."""
    _, data, _, _ = SAMPLES[sample]
    assert (read(sample, data) is None) == (sample == "parquet")


def _fuzz(sample: str, data: st.DataObject) -> None:
    whole = SAMPLES[sample][1]
    pieces = [whole, *([] if sample == "parquet" else [whole[: len(whole) // 2], whole + whole])]
    judge(sample, data.draw(torn_bytes(pieces)))
    if sample == "api":
        judge(sample, data.draw(json_bodies(API)))


def test_a_list_without_any_currency_is_refused() -> None:
    """A listing whose amounts all lack their currency was once an unforeseen error."""
    amount = b'"transaction_amount":{"value":"-12.50"}'
    info = b'"transaction_id":"RF1","transaction_event_code":"T1107","transaction_status":"S","transaction_initiation_date":'
    info += b'"2025-09-04T10:00:00-0700","paypal_reference_id":"PAY1",' + amount
    data = b'{"transaction_details":[{"transaction_info":{' + info + b'}}],"start_date":"2025-09-04T00:00:00-0700",'
    data += b'"end_date":"2025-09-05T00:00:00-0700","page":1,"total_pages":1}'
    assert read("api", data) is None


@pytest.mark.parametrize("sample", SAMPLES)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=UNSHRUNK)
@given(data=st.data())
def test_damaged_bytes(sample: str, data: st.DataObject) -> None:
    """Cut, flipped, doubled, in another encoding, of another structure."""
    _fuzz(sample, data)


@pytest.mark.lengthy
@pytest.mark.parametrize("sample", SAMPLES)
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_bytes_at_length(sample: str, data: st.DataObject) -> None:
    """As above, others each time, many more."""
    _fuzz(sample, data)


NO_AMOUNT = [
    "",
    "-",
    "1e2",
    "NaN",
    "inf",
    "1.234.5",
    "0x10",
    "12,5O",
    "--5",
    "5-",
    "1 2 3",
    "USD",
    "٣.٥٠",
    "1.",
    "12.345",
    "9" * 40,
]


@pytest.mark.parametrize("cell", NO_AMOUNT)
def test_a_cell_that_is_no_amount_stops_the_file(cell: str) -> None:
    """Never zero, never a guess: the file is refused."""
    assert read("mapped", PLAIN.replace("12.50", f'"{cell}"').encode()) is None, cell


@pytest.mark.parametrize("offset", ["+25:00", "-50:22", "+01:75", "+9900", "-2400"])
def test_an_offset_that_there_is_not_stops_the_file(offset: str) -> None:
    """Found by fuzzing: an offset beyond a day was an error of ours."""
    assert read("mapped", PLAIN.replace("10:00:00Z", f"10:00:00{offset}", 1).encode()) is None
    assert read("mapped", PLAIN.replace("10:00:00Z", "10:00:00+0530", 1).encode()) is not None


@pytest.mark.parametrize("sample", [name for name in SAMPLES if name not in ("parquet", "api", "mapped tabs")])
def test_rows_of_other_widths(sample: str) -> None:
    """A row with a cell less, or one more, in each place of the file: an error or a result that adds up."""
    lines = SAMPLES[sample][1].decode("utf-8-sig").splitlines()
    for k, line in enumerate(lines):
        for changed in (line.rpartition(",")[0], f"{line},x", "", ",,,", f"{line}\n{line}", '"' + line):
            judge(sample, "\n".join([*lines[:k], changed, *lines[k + 1 :]]).encode())
