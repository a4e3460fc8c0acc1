"""What an id may be, and which ids were mangled on their way through a spreadsheet or a data frame.

An id is compared exactly, case included; nothing here repairs one: what cannot be what the provider calls it is refused
with how to get the right one. Pure. The rules hold for targets too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from payonce.intake.idwords import MONTHS, PLACEHOLDERS, TOTALS

MAX_LENGTH: Final = 512
# What decoders put where they could not read a character.
LOST: Final = "\ufffd"
_TEXT_COLUMN: Final = "export the column as text and do not open the file in a spreadsheet before it is used"
_SCIENTIFIC: Final = re.compile(r"[-+]?(?:\d+(?:[.,]\d+)?[eE][-+]\d{1,3}|\d[.,]\d+[eE]\d{1,3})", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?\d+[.,]0+", re.ASCII)
# No grouping begins with a zero.
_GROUPED: Final = re.compile(
    r"(?!0)(?:\d{1,3}(?:(?:,\d{3})+|(?:\.\d{3}){2,}|(?:[ \u00a0\u202f\u2009'’]\d{3})+)(?:\.\d+)?|\d{1,2}(?:,\d{2})+,\d{3})",
    re.ASCII,
)
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])"
_NUMBER_OF_MONTH: Final = r"(?:0?[1-9]|1[0-2])"
_DATE: Final = re.compile(
    rf"\d{{1,2}}[-. /]{{1,2}}(?:{MONTHS})\.?(?:[-. /]{{1,2}}\d{{2,4}})?|(?:{MONTHS})\.?[-. /]{{1,2}}\d{{2,4}}"
    rf"|(?:{_DAY}/{_NUMBER_OF_MONTH}|{_NUMBER_OF_MONTH}/{_DAY})/(?:\d{{4}}|\d\d)|{_DAY}\.{_NUMBER_OF_MONTH}\.\d{{4}}"
    r"|\d{4}-\d\d-\d\d[ T]00:00:00(?:\.0+)?",
    re.ASCII,
)
_ERROR: Final = re.compile(
    r"#[A-ZÀ-Ý][A-ZÀ-Ý0-9/_]*[!?]|#N/A(?: N/A)?|#NV|#ND|#N/D|#DIV/0!|#GETTING_DATA", re.IGNORECASE
)
_NUMBERLIKE: Final = re.compile(r"\d+(?:[eE]\d+|[.,]\d+)", re.ASCII)
# Leaving a text without it never makes it another one to a reader; str.strip leaves it.
_NO_WIDTH: Final = "\ufeff"
# What a mangled id that is no word looks like at first sight; plain numbers of up to 15 digits are none.
_AT_FIRST: Final = re.compile(
    r"[-+#='’?<(]|(?!\d{1,15}$)\d[\d.,'’ \u00a0\u202f\u2009]*(?:[eE][-+]?\d+)?$|\d{1,2}[-. /]|\d{4}-\d\d-\d\d[ T]00"
    rf"|(?:{MONTHS})[-. /]"
)
_SHORT_WORDS: Final = PLACEHOLDERS | TOTALS
_INITIALS: Final = frozenset("0123456789+-#='’?<(")
_LONGEST_MONTH: Final = 10
_WORD_INITIALS: Final = frozenset(word[0] for word in _SHORT_WORDS)
_LONGEST_WORD: Final = max(map(len, _SHORT_WORDS))


@dataclass(frozen=True, slots=True)
class IdFault:
    """Why an id cannot be used: a stable code, what is wrong and how to fix it."""

    code: str
    message: str


def fault_of(text: str) -> IdFault | None:
    """What is wrong with an id whose outer blanks are gone, None if nothing is."""
    if not text:
        return IdFault("missing_id", "is missing; every row needs one")
    if len(text) > MAX_LENGTH:
        return IdFault("id_too_long", f"has {len(text)} characters, {MAX_LENGTH} at most are allowed; shorten it")
    if not text.isprintable():
        bad = next((c for c in text if unicodedata.category(c) in ("Cc", "Cs")), None)
        if bad is not None:
            what = "an unpaired surrogate" if unicodedata.category(bad) == "Cs" else "a control character"
            return IdFault("bad_character", f"holds {what} (U+{ord(bad):04X}); remove it")
    if LOST in text:
        return _spoilt("holds U+FFFD, which stands for a character that was lost on the way; export it again as UTF-8")
    return mangled(text) if may_be_mangled(text) else None


def trimmed(text: str) -> str:
    """A text without the blanks around it, no-break spaces of any width included."""
    bare = text.strip()
    while bare[:1] == _NO_WIDTH or bare[-1:] == _NO_WIDTH:
        bare = bare.strip(_NO_WIDTH).strip()
    return bare


def may_be_mangled(text: str) -> bool:
    """A cheap test that lets most sound ids pass; True says nothing yet."""
    return _AT_FIRST.match(text) is not None or text.lower() in _SHORT_WORDS


def suspects(texts: Sequence[str]) -> Iterator[int]:
    """The places of the ids that ``may_be_mangled`` holds for, quickly where there are none."""
    shortest = min(map(len, texts))
    initials = set("".join(set(map(itemgetter(0), texts))).lower())
    if shortest <= _LONGEST_MONTH or not _INITIALS.isdisjoint(initials):
        for place, found in enumerate(map(_AT_FIRST.match, texts)):
            if found is not None:
                yield place
    if shortest > _LONGEST_WORD or _WORD_INITIALS.isdisjoint(initials):
        return
    if not _SHORT_WORDS.isdisjoint(map(str.lower, texts)):
        yield from (place for place, text in enumerate(texts) if text.lower() in _SHORT_WORDS)


def mangled(text: str) -> IdFault | None:
    """Whether a spreadsheet or a data frame made this of another id. Nothing is guessed back."""
    lower = text.lower()
    if lower in PLACEHOLDERS:
        return IdFault("missing_id", f"reads {text!r}, which stands for no value; every row needs one")
    if lower in TOTALS:
        return IdFault("total_row", f"reads {text!r}: a row of totals is no item; remove it from the file")
    if not text.strip("#"):
        return _spoilt("is what a spreadsheet shows where a column is too narrow; widen the column and export again")
    if text[0] == "#":
        return _spoilt("is a formula's error; mend the formula and export again") if _ERROR.fullmatch(text) else None
    if text[0] in "'’":
        return _spoilt("begins with a spreadsheet's text mark; remove the apostrophe")
    if text[0] == "=":
        return _spoilt("is a spreadsheet's formula; export the values instead of the formulas")
    return _mangled_number(text)


def _mangled_number(text: str) -> IdFault | None:
    if _SCIENTIFIC.fullmatch(text):
        return _spoilt(f"is in scientific notation, its last digits are lost; {_TEXT_COLUMN}")
    if _FLOAT.fullmatch(text):
        return _spoilt(
            f"was a number with decimals on its way, leading zeros and long ids do not survive that; {_TEXT_COLUMN}"
        )
    if _GROUPED.fullmatch(text):
        return _spoilt(f"has its digits grouped like an amount; {_TEXT_COLUMN}")
    if _DATE.fullmatch(text):
        return _spoilt(f"is a date, which spreadsheets make of ids such as MAR1 or 3-1; {_TEXT_COLUMN}")
    return None


def _spoilt(why: str) -> IdFault:
    return IdFault("mangled_id", why)


def like_a_number(text: str) -> bool:
    """An id such as ``12E4`` or ``1.234``: kept exactly, but the next spreadsheet would take it for a number. Worth a warning."""
    return _NUMBERLIKE.fullmatch(text) is not None


def lost_digits(text: str) -> bool:
    """A number of 16 digits or more whose digits behind the fifteenth are zeros, as spreadsheets leave them."""
    return len(text) > 15 and text.isascii() and text.isdigit() and not text[15:].strip("0")


def alike(text: str) -> str:
    """What people see of a text: composed and decomposed letters are the same, invisible characters are none."""
    composed = unicodedata.normalize("NFKC", text)
    return "".join(c for c in composed if unicodedata.category(c) != "Cf").strip()


def folded(text: str) -> str:
    """The id with what people overlook taken away: case, blanks, invisible characters, leading zeros, compatibility
    forms. Only for warnings: ids are never matched by it."""
    if text.isascii():
        return "".join(text.lower().split()).lstrip("0")
    wide = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in wide if not c.isspace() and unicodedata.category(c) != "Cf").lstrip("0")
