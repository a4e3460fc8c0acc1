"""Words that stand in a column of ids and are no ids: for no value, for a row of totals, for a month of a date. Pure."""

from __future__ import annotations

from typing import Final

# What databases, spreadsheets and data frames write where there is nothing.
PLACEHOLDERS: Final = frozenset(
    r"nan null none nil na n/a n.a. nat undefined missing empty inf -inf +inf infinity -infinity <na> (null) (blank) - -- ? "
    r"\n true false wahr falsch vrai faux".split()
)
_TOTAL_WORDS: Final = (
    "total|totals|grand total|sub total|subtotal|sub-total|sum|sums|in total|overall total|"
    "summe|gesamt|gesamtsumme|insgesamt|zwischensumme|endsumme|gesamtbetrag|"
    "somme|total général|total general|sous-total|totale|totale generale|subtotale|suma|suma total|soma|total geral|"
    "totaal|subtotaal|totalt|summa|i alt|yhteensä|samtals|celkem|összesen|toplam|ukupno|"
    "итого|всего|σύνολο|合計|小計|総計|合计|小计|总计|總計|합계|총계"
).split("|")
# As people write them above a sum: with a colon, or with the currency.
_CURRENCIES: Final = ("", " usd", " eur", " gbp", " chf", " jpy", " inr", " cad", " aud", " pln", " sek", " brl", " mxn")
TOTALS: Final = frozenset(
    f"{word}{code}{colon}"
    for word in _TOTAL_WORDS
    for code in (_CURRENCIES if len(word) <= 8 else ("",))
    for colon in ("", ":", " :")
)
_ENGLISH: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Sept Oct Nov Dec".split()
_OTHER: Final = (
    "Mrz Mär März Mai Okt Dez "
    "janv févr mars avr juin juil août déc ene abr ago dic gen giu lug ott fev mrt mei okt maj des"
).split()
# As spreadsheets write them, which is never all in capitals: an id such as MAR-01 was not touched by one.
MONTHS: Final = "|".join(
    dict.fromkeys([*_ENGLISH, *(month.lower() for month in _ENGLISH), *_OTHER, "dez", "mai"])
)
