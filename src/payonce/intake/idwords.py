"""Words that stand in a column of ids and are no ids: for no value, for a row of totals, for a month of a date. Pure."""

from __future__ import annotations

from typing import Final

# What databases, spreadsheets and data frames write where there is nothing.
_NOTHING: Final = (
    "nan null none nil na n/a n.a. nat undefined missing empty inf -inf +inf infinity -infinity <na> (null) (blank) - -- ? "
    "\\n true false wahr falsch vrai faux"
)
PLACEHOLDERS: Final = frozenset(_NOTHING.split())
_SUMS: Final = (
    "total|totals|grand total|sub total|subtotal|sub-total|sum|sums|in total|overall total|"
    "summe|gesamt|gesamtsumme|insgesamt|zwischensumme|endsumme|gesamtbetrag|"
    "somme|total général|total general|sous-total|totale|totale generale|subtotale|suma|suma total|soma|total geral|"
    "totaal|subtotaal|totalt|summa|i alt|yhteensä|samtals|celkem|összesen|toplam|ukupno|"
    "итого|всего|σύνολο|合計|小計|総計|合计|小计|总计|總計|합계|총계"
)
_CURRENCIES: Final = "usd|eur|gbp|chf|jpy|inr|cad|aud|pln|sek|brl|mxn"
_LONGEST_BEFORE_CURRENCY: Final = 8
# As people write them above or beside a sum: with a colon, or with the currency.
TOTALS: Final = frozenset(
    f"{word}{code}{colon}"
    for word in _SUMS.split("|")
    for code in ("", *(f" {code}" for code in _CURRENCIES.split("|") if len(word) <= _LONGEST_BEFORE_CURRENCY))
    for colon in ("", ":", " :")
)
_ENGLISH: Final = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec"
_OTHER: Final = (
    "Mrz|Mär|März|Mai|Okt|Dez|mai|dez|"
    "janv|févr|mars|avr|juin|juil|août|déc|ene|abr|ago|dic|gen|giu|lug|ott|fev|mrt|mei|okt|maj|des"
)
# As spreadsheets write them, which is never all in capitals: an id such as MAR-01 was not touched by one.
MONTHS: Final = f"{_ENGLISH}|{_ENGLISH.lower()}|{_OTHER}"
