"""The published case files that are inputs, each with the outcome that its kind of fault must have."""

from __future__ import annotations

from tests.unit.intake.intakekit import amounts, case, codes, only_problem


def test_bank_export_with_preamble_is_read_with_its_decimal_comma() -> None:
    """Lines above the header, semicolons and a decimal comma are proven by the file; its negative amounts are no items."""
    with case("dkb_bom_preamble.csv", id="Kundenreferenz", amount="Betrag (€)", currency_value="EUR") as intake:
        assert codes(intake) == {6: "negative_amount", 7: "negative_amount", 8: "negative_amount"}
        assert [entry.line for entry in intake.ignored] == [1, 2, 3, 4]
        assert intake.counts.items == 0


def test_thousands_commas_are_read_where_the_file_proves_the_point() -> None:
    """-1,250.00 is known to be negative, not a fraction; no row of the export becomes an item."""
    with case("paypal_en_thousands.csv", id="Transaction ID", amount="Gross", currency="Currency") as intake:
        assert set(codes(intake).values()) == {"negative_amount"}
        assert intake.counts.refused == 3


def test_carriage_returns_alone_end_lines() -> None:
    """A file with CR line ends has its rows, at the lines an editor shows."""
    with case("cr_only.csv") as intake:
        assert amounts(intake) == {"C1": "10.00 USD", "C2": "11.00 USD"}
        assert [item.line for item in intake.items()] == [2, 3]
        assert str(intake.totals[0].total) == "21.00 USD"


def test_quoted_line_breaks_keep_the_physical_lines() -> None:
    """A row that goes over several lines is named by its first one, and the rows after it by theirs."""
    with case("quoted_newline_crlf.csv") as intake:
        assert [(item.id, item.line) for item in intake.items()] == [("Q1", 2), ("Q2", 4), ("Q3", 6)]
        assert [item.fields["memo"] for item in intake.items()] == [
            "line one\nline two, with comma",
            'said "hello"\r\nthen left',
            "plain",
        ]
        assert str(intake.totals[0].total) == "33.00 USD"


def test_a_renamed_column_is_named_with_its_new_name() -> None:
    """The same mapping on the new layout is refused: the missing column, and what is there instead."""
    mapping = {"id": "Kundenreferenz", "amount": "Betrag (EUR)", "currency_value": "EUR"}
    with case("renamed_columns_old.csv", **mapping) as intake:
        assert codes(intake) == {2: "negative_amount"}
    with case("renamed_columns_new.csv", **mapping) as intake:
        problem = only_problem(intake)
        assert (problem.code, problem.line, problem.column) == ("missing_column", 1, "Betrag (EUR)")
        assert "did you mean 'Betrag'" in problem.message
        assert "'Kundenreferenz'" in problem.message
        assert intake.counts.rows == 0


def test_ids_that_a_spreadsheet_mangled_are_refused() -> None:
    """Each mangled id is refused as what it is; the others are kept exactly, to be found at the provider or not."""
    with case("excel_mangled_ids.csv", id="op_ref", target="charge_id", amount="amount", currency="currency") as intake:
        assert codes(intake) == {
            2: "mangled_target",
            4: "mangled_target",
            9: "mangled_target",
            10: "mangled_target",
            11: "mangled_target",
            12: "missing_target",
            13: "mangled_target",
            14: "mangled_target",
            15: "mangled_target",
        }
        assert {item.id: item.target for item in intake.items()} == {
            "2": "9912140633506420",
            "4": "219E02BE",
            "5": "12E4",
            "6": "00123456",
            "7": "123456",
        }
        assert {note.code for note in intake.notes} >= {"numberlike_target", "round_target"}


def test_mangled_ids_are_refused_as_ids_too() -> None:
    """The rules for ids and targets are the same."""
    with case("excel_mangled_ids.csv", id="charge_id", amount="amount", currency="currency") as intake:
        assert set(codes(intake)) == {2, 4, 9, 10, 11, 12, 13, 14, 15}
        assert codes(intake)[12] == "missing_id"


def test_repeated_rows() -> None:
    """An equal repeat is refused with both lines; of two contents under one id none is taken; partial refunds are."""
    with case("duplicates_input.csv", id="op_key", target="charge_id", amount="amount", currency="currency") as intake:
        assert codes(intake) == {3: "duplicate_id", 8: "duplicate_id", 9: "duplicate_id"}
        repeat = next(problem for problem in intake.problems if problem.line == 3)
        assert "line 2" in repeat.message
        assert sorted(amounts(intake)) == ["order-1", "order-2-line-1", "order-2-line-2", "order-3-a", "order-3-b"]
        assert intake.shared_targets.examples == (("ch_2", (4, 5)), ("ch_3", (6, 7)))


def test_a_missing_currency_is_refused_and_case_does_not_matter() -> None:
    """``inr`` is INR; a row without a currency is no item."""
    with case("currency_mismatch.csv", id="op_key", target="charge_id", amount="amount", currency="currency") as intake:
        assert codes(intake) == {5: "missing_currency"}
        assert amounts(intake) == {"fx-1": "1000.00 GBP", "fx-2": "1.00 EUR", "fx-3": "1000.00 INR"}


def test_missing_zero_negative_and_spelled_out_amounts_are_refused() -> None:
    """None of the eight rows becomes an item, each for its own reason."""
    with case(
        "amount_missing_or_zero.csv", id="op_key", target="charge_id", amount="amount", currency="currency"
    ) as intake:
        assert codes(intake) == {
            2: "missing_amount",
            3: "zero_amount",
            4: "zero_amount",
            5: "missing_amount",
            6: "missing_amount",
            7: "negative_amount",
            8: "missing_amount",
            9: "bad_amount",
        }
        assert intake.counts.items == 0


def test_amounts_have_the_decimals_of_their_currency() -> None:
    """Every amount is exact in its currency's minor unit or refused."""
    with case("amounts_by_currency.csv") as intake:
        minors = {item.id: item.money.minor for item in intake.items() if item.money}
        assert minors == {
            "J1": 5800,
            "J2": 5800,
            "K1": 18600,
            "K2": 18600,
            "B1": 35200,
            "U1": 2010000,
            "U2": 1,
            "D1": 1999,
            "D2": 820,
            "D3": 14505,
            "D4": 13107201,
            "L1": 12345,
            "X1": 1000,
        }
        refused = {4, 7, 11, 16}
        assert {line: code for line, code in codes(intake).items() if line in refused} == dict.fromkeys(
            refused, "not_representable"
        )
        assert codes(intake)[19] == codes(intake)[20] == "unknown_currency"
        assert codes(intake)[21] == "missing_currency"


def test_a_repeated_record_key_is_refused_with_both_lines() -> None:
    """Two requests under one custom id: neither is taken, and both lines are named."""
    with case("llm_batch_requests_dup_custom_id.jsonl", id="custom_id", operation="call") as intake:
        assert codes(intake) == {1: "duplicate_id", 3: "duplicate_id"}
        first = next(iter(intake.problems))
        assert "line 3" in first.message
        assert [item.id for item in intake.items()] == ["row-2"]


def test_two_batches_of_one_payment() -> None:
    """Both files are sound by themselves; that they meet on one charge shows only beside each other."""
    with case("batch_a_by_charge.csv", id="charge_id", amount="amount", currency="currency") as first:
        assert first.ok
        assert first.counts.items == 2
    with case("batch_b_by_payment_intent.csv", id="payment_intent", amount="amount", currency="currency") as second:
        assert second.ok
        assert second.counts.items == 2


def test_statement_rows_are_no_items() -> None:
    """Exports with money in both directions give no items where ids repeat or amounts are negative."""
    with case("same_id_purchase_and_fee.csv", id="fitid", amount="amount", currency="currency") as intake:
        assert intake.counts.refused == 3
        assert set(intake.problem_codes) == {"negative_amount", "duplicate_id"}
    with case("identical_rows_legit.csv", id="Date", amount="Amount", currency_value="EUR") as intake:
        assert intake.counts.items == 0
        assert not intake.ok
    with case("paypal_fx_four_rows.csv", id="Transaction ID", amount="Net", currency="Currency") as intake:
        assert codes(intake) == {2: "negative_amount", 3: "negative_amount"}
