"""The other reports and the other ways of writing: columns by name, in any order, units and times proven or declared."""

from __future__ import annotations

import json
import zipfile

import pytest

from payonce.core.errors import ConfigError
from payonce.reconcile.errors import StatementError
from tests.unit.reconcile.kit import read, written

ADYEN = """Company Account,Merchant Account,Psp Reference,Merchant Reference,Payment Method,Creation Date,TimeZone,Type,Modification Reference,Gross Currency,Gross Debit (GC),Gross Credit (GC),Exchange Rate,Net Currency,Net Debit (NC),Net Credit (NC),Commission (NC),Markup (NC),Scheme Fees (NC),Interchange (NC),Payment Method Variant,Modification Merchant Reference,Batch Number
Acme,AcmeEU,PSP1,order-1,visa,2025-09-04 10:00:00,CEST,Settled,MOD0,EUR,,25.00,1,EUR,,24.50,,,0.10,0.40,visa,,7
Acme,AcmeEU,PSP1,order-1,visa,2025-09-05 10:00:00,CEST,Refunded,MOD1,EUR,12.50,,1,EUR,12.50,,,,,,visa,rf-1,7
Acme,AcmeEU,PSP2,order-2,visa,2025-09-05 10:00:01,CEST,Refunded,MOD2,JPY,1200,,1,EUR,7.00,,,,,,visa,rf-2,7
Acme,AcmeEU,PSP2,order-2,visa,2025-09-08 10:00:01,CEST,RefundedReversed,MOD2,JPY,,1200,1,EUR,,7.00,,,,,visa,rf-2,7
"""
STL = """"RH",2025/09/05 00:00:00 -0700,"A","ACCT1",009
"FH",1
"SH",2025/09/04 00:00:00 -0700,2025/09/04 23:59:59 -0700,"ACCT1",""
"CH","Transaction ID","Invoice ID","PayPal Reference ID","PayPal Reference ID Type","Transaction Event Code","Transaction Initiation Date","Transaction Completion Date","Transaction  Debit or Credit","Gross Transaction Amount","Gross Transaction Currency","Fee Debit or Credit","Fee Amount","Fee Currency","Custom Field","Consumer ID","Payment Tracking ID","Store ID"
"SB","RF1","inv-1","PAY1","TXN","T1107","2025/09/04 10:00:00 -0700","2025/09/04 10:00:01 -0700","DR","125000","USD","","","","op-1","","",""
"SB","PAY9","inv-9","","","T0006","2025/09/04 11:00:00 -0700","2025/09/04 11:00:01 -0700","CR","5000","USD","DR","175","USD","","","",""
"SB","FX1","","RF1","TXN","T0200","2025/09/04 10:00:00 -0700","2025/09/04 10:00:01 -0700","DR","100","EUR","","","","","","",""
"SF","x"
"SC",3
"RF","x"
"RC",3
"FF",1
"""
OPENROUTER = """created_at,generation_id,user,cost_total,model_permaslug,cancelled
2026-06-28 03:46:57.713,gen-1,row-1,0.001234,m/a,false
2026-06-28 03:46:58.001,gen-2,row-2,0,m/a,false
"""


def test_adyen_settlement_by_debit_and_credit_columns(tmp_path) -> None:
    """Own reference, currency without decimals, a refund that was reversed, the merchant account."""
    found = read(written(tmp_path, ADYEN))
    by = {entry.reference: entry for entry in found.entries}
    assert (by["MOD1"].legs, by["MOD1"].owns, by["MOD1"].target) == ((1250,), ("rf-1",), "PSP1")
    assert (by["MOD2"].legs, by["MOD2"].returned, by["MOD2"].currency) == ((1200,), 1200, "JPY")
    assert found.accounts == {"AcmeEU"} and "MOD0" not in by


def test_paypal_settlement_without_decimal_separator(tmp_path) -> None:
    """125000 with DR is 1,250.00 out; only body rows count; a conversion stays with its refund."""
    found = read(written(tmp_path, STL))
    (entry,) = [entry for entry in found.entries if entry.legs]
    assert (entry.reference, entry.legs, entry.owns) == ("RF1", (125000,), ("op-1", "inv-1"))
    assert [row.role for row in entry.attached] == ["fx"]
    assert found.rows == found.used + len(found.ignored)


def test_a_report_that_counts_other_rows_than_it_has_is_refused(tmp_path) -> None:
    """It was cut off; absence in it would prove nothing."""
    with pytest.raises(StatementError) as error:
        read(written(tmp_path, STL.replace('"SC",3', '"SC",4')))
    assert error.value.code == "incomplete"


def test_openrouter_costs_are_exact(tmp_path) -> None:
    """Six decimals, free calls included, columns in any order."""
    found = read(written(tmp_path, OPENROUTER), operation="call")
    assert [(e.reference, e.legs, e.owns) for e in found.entries] == [
        ("gen-1", (1234,), ("row-1",)),
        ("gen-2", (0,), ("row-2",)),
    ]


def test_more_decimals_than_the_currency_has_need_a_declared_rounding(tmp_path) -> None:
    """Refused without one; exact half-even with it."""
    path = written(tmp_path, OPENROUTER.replace("0.001234", "0.0012345"))
    with pytest.raises(StatementError, match="rounding"):
        read(path, operation="call")
    assert read(path, operation="call", rounding="half_even").entries[0].legs == (1234,)


def test_the_api_listing_in_minor_units(tmp_path) -> None:
    """Nested objects become dotted columns; the page must be the last one."""
    refund = {"id": "re_1", "object": "refund", "amount": 1250, "currency": "usd", "charge": "ch_1", "status": "succeeded",
              "created": 1757000000, "metadata": {"op": "op1"}}  # fmt: skip
    pending = {**refund, "id": "re_2", "status": "pending"}
    path = written(
        tmp_path, json.dumps({"object": "list", "has_more": False, "data": [refund, pending]}), "refunds.json"
    )
    found = read(path)
    assert [(e.reference, e.legs, e.pending, e.owns) for e in found.entries] == [
        ("re_1", (1250,), False, ("op1",)), ("re_2", (), True, ("op1",))]  # fmt: skip
    with pytest.raises(StatementError, match="has_more"):
        read(written(tmp_path, json.dumps({"has_more": True, "data": [refund]}), "page.json"))


GENERIC = {"reference": "ref", "amount": "amount", "currency": {"value": "USD"}}


@pytest.mark.parametrize(
    ("amounts", "code"), [(["1,234"], "ambiguous_number"), (["1.234,50", "12.50"], "mixed_numbers"), (["12.50.1"], "bad_amount"), ([""], "bad_amount")]
)  # fmt: skip
def test_amounts_that_cannot_be_read_for_certain_are_refused(tmp_path, amounts, code) -> None:
    """Nothing is guessed and no row becomes zero."""
    text = "ref;amount\n" + "".join(f"r{n};{amount}\n" for n, amount in enumerate(amounts))
    with pytest.raises(StatementError) as error:
        read(written(tmp_path, text), **GENERIC)
    assert error.value.code == code


def test_one_value_settles_the_doubtful_ones_of_its_file(tmp_path) -> None:
    """12.50 proves the point, so 1,234 is grouped."""
    found = read(written(tmp_path, "ref;amount\na;1,234\nb;12.50\n"), **GENERIC)
    assert [entry.legs for entry in found.entries] == [(123400,), (1250,)]


@pytest.mark.parametrize(
    ("days", "first"), [(["04/05/2025"], None), (["04/05/2025", "13/05/2025"], "2025-05-04"), (["04/05/2025", "04/13/2025"], "2025-04-05")]
)  # fmt: skip
def test_dates_are_proven_by_the_whole_column(tmp_path, days, first) -> None:
    """04/05 alone is refused; one day above twelve decides for all."""
    from payonce.core.events import iso

    path = written(tmp_path, "ref;amount;day\n" + "".join(f"r{n};1.00;{day}\n" for n, day in enumerate(days)))
    if first is None:
        with pytest.raises(StatementError) as error:
            read(path, **GENERIC, time="day")
        assert error.value.code == "ambiguous_date"
        assert iso(read(path, **GENERIC, time="day", time_format="%d/%m/%Y").coverage.from_us).startswith("2025-05-04")
    else:
        assert iso(read(path, **GENERIC, time="day").coverage.from_us).startswith(first)


def test_a_day_covers_all_of_itself_and_a_second_all_of_itself(tmp_path) -> None:
    """The period ends with the resolution of its last row."""
    from payonce.core.events import iso

    day = read(written(tmp_path, "ref,amount,t\na,1.00,2025-09-04\n"), **GENERIC, time="t")
    assert iso(day.coverage.to_us) == "2025-09-05T00:00:00.000000Z"
    second = read(written(tmp_path, "ref,amount,t\na,1.00,2025-09-04T10:00:00Z\n"), **GENERIC, time="t")
    assert iso(second.coverage.to_us) == "2025-09-04T10:00:01.000000Z"


def test_overlapping_files_unite_by_counts(tmp_path) -> None:
    """Twice in one and once in the other is twice; files of different times keep everything."""
    rows = "ref,amount,t\n{}"
    one = written(tmp_path, rows.format("a,1.00,2025-09-01\na,1.00,2025-09-01\nb,2.00,2025-09-03\n"), "one.csv")
    two = written(tmp_path, rows.format("a,1.00,2025-09-01\nb,2.00,2025-09-03\nc,3.00,2025-09-04\n"), "two.csv")
    found = read(one, two, **GENERIC, time="t")
    assert {e.reference: e.legs for e in found.entries} == {"a": (100, 100), "b": (200,), "c": (300,)}
    assert found.rows == 6 and found.used == 4 and len(found.ignored) == 2
    assert read(one, one, **GENERIC, time="t").used == 3
    later = written(tmp_path, rows.format("z,1.00,2025-12-01\n"), "later.csv")
    assert len(read(one, later, **GENERIC, time="t").coverage.gaps) == 1


def test_totals_and_blank_rows_are_named_and_ragged_ones_refused(tmp_path) -> None:
    """Rows in = used + ignored; a row that was cut off makes the file unusable."""
    found = read(written(tmp_path, "ref,amount\na,1.00\n,\nTotal,1.00\n"), **GENERIC)
    assert found.rows == 3 and found.used == 1 and [why for _, why in found.ignored] == ["blank", "a row of totals"]
    with pytest.raises(StatementError) as error:
        read(written(tmp_path, "ref,amount,x\na,1.00,y\nb,2.00\n"), **GENERIC)
    assert error.value.code == "ragged_row"


def test_credits_at_the_official_price_times_a_multiplier(tmp_path) -> None:
    """A constant, a column or one for each model; exact, or rounded as declared."""
    text = "ref,amount,model,price,credit\na,1.00,m1,1.10,1.21\nb,1.00,m2,1.10,1.32\nc,1.00,m1,0.33,0.37\n"
    credit = {"official_price": "price", "credit": "credit"}
    path = written(tmp_path, text)
    flat = read(path, **GENERIC, credit={**credit, "multiplier": "1.1"})
    assert [e.credits for e in flat.entries] == [(), (("1.210", "1.32", "3"),), (("0.363", "0.37", "4"),)]
    by_model = {
        "multiplier": {"column": "model", "values": {"m1": "1.1", "m2": "1.2"}},
        "decimals": 2,
        "rounding": "up",
    }
    assert [e.credits for e in read(path, **GENERIC, credit={**credit, **by_model}).entries] == [(), (), ()]


def workbook(path, rows: str) -> None:
    """A workbook of one sheet with these rows of XML."""
    ns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{rel}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {ns} xmlns:r="{rel}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{rel}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {ns}><sheetData>{rows}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w") as book:
        for name, text in parts.items():
            book.writestr(name, text)


def test_a_workbook_keeps_leading_zeros_and_exact_amounts(tmp_path) -> None:
    """Text cells stay text; number cells are exact decimals."""

    def text(ref: str, value: str) -> str:
        return f'<c r="{ref}" t="inlineStr"><is><t>{value}</t></is></c>'

    header = f'<row r="1">{text("A1", "ref")}{text("B1", "amount")}</row>'
    workbook(tmp_path / "s.xlsx", f'{header}<row r="2">{text("A2", "00123")}<c r="B2"><v>12.5</v></c></row>')
    found = read(tmp_path / "s.xlsx", **GENERIC)
    assert (found.entries[0].reference, found.entries[0].legs) == ("00123", (1250,))


def test_a_mapping_with_a_misspelt_setting_is_refused() -> None:
    """The nearest name is given."""
    from payonce.reconcile.mapping import read_mapping

    with pytest.raises(ConfigError, match="referense"):
        read_mapping({"referense": "x"})


@pytest.mark.parametrize(
    ("text", "code"),
    [("", "empty_file"), ("a,b\n1,2\n", "unknown_report"), ("balance_transaction_id,reporting_category,currency,gross,net,source_id,fee\nt,charge,usd,1.00,1.00,ch_1,0.00\n", "no_usable_rows")],
)  # fmt: skip
def test_what_is_no_statement_for_this_batch_is_an_error(tmp_path, text, code) -> None:
    """Never an empty account."""
    with pytest.raises(StatementError) as error:
        read(written(tmp_path, text))
    assert error.value.code == code or not text


def test_a_file_without_anything_in_it_is_an_error_with_its_reason(tmp_path) -> None:
    """A byte order mark alone, and brackets deeper than anything is nested: refused, never a fault of the program."""
    for name, data, code in (("s.csv", b"\xff\xfe", "empty_file"), ("s.json", b"[" * 200_000, "bad_json")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(StatementError) as error:
            read(tmp_path / name)
        assert error.value.code == code


def test_transfers_are_read_from_the_balance_report(tmp_path) -> None:
    """A transfer and its reversal are one entry that came back; payouts of the same report are none."""
    text = (
        "balance_transaction_id,created,reporting_category,currency,gross,fee,net,source_id\n"
        "t1,2026-11-30 08:00:00,transfer,usd,-10.00,0.00,-10.00,tr_1\nt2,2026-11-30 09:00:00,transfer_reversal,usd,10.00,0.00,10.00,tr_1\n"
        "t3,2026-11-30 09:00:00,transfer,usd,-5.00,0.00,-5.00,tr_2\nt4,2026-11-30 10:00:00,payout,usd,-7.00,0.00,-7.00,po_1\n"
    )
    found = read(written(tmp_path, text), operation="transfer")
    assert [(e.reference, e.legs, e.returned) for e in found.entries] == [("tr_1", (1000,), 1000), ("tr_2", (500,), 0)]
