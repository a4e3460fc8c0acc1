"""Templates: exact, typed, encoded where they must be, and never able to become something else."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.errors import ConfigError
from payonce.core.model import Item
from payonce.core.money import Money
from payonce.providers.http_body import FormBody, JsonBody
from payonce.providers.templates import Context, Names, Template, check_names

NAMES = Names({})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def context(money: Money | None = None, **fields: Any) -> Context:
    return Context(Item(1, "r 1", "ch/1", money or Money("12.50", "USD"), fields), "key-1", "b-1")


def template(text: str, names: Names = NAMES) -> Template:
    return Template(text, place="[provider.call] path", names=names)


def render(tree: Any, **fields: Any) -> bytes:
    return JsonBody(tree, place="[provider.call] json", names=NAMES).render(context(**fields))


def test_every_built_in_placeholder() -> None:
    """As the interface lists them."""
    text = "{id}|{target}|{amount}|{amount_minor}|{currency}|{currency_lower}|{key}|{batch}|{col}"
    assert template(text).text(context(col="x")) == "r 1|ch/1|12.50|1250|USD|usd|key-1|b-1|x"


def test_braces_that_are_meant_as_such() -> None:
    """Doubled."""
    assert template("{{{id}}} }}{{").text(context()) == "{r 1} }{"


@pytest.mark.parametrize("text", ["{", "}", "{id", "id}", "{}", "{ }", "{a{b}c}"])
def test_braces_that_make_no_sense_are_refused(text: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError) as caught:
        template(text)
    assert caught.value.code == "bad_template"


def test_a_placeholder_alone_keeps_its_type_in_json() -> None:
    """The minor amount is a number, a CSV column stays text, a JSON column keeps its value."""
    tree = {"a": "{amount_minor}", "b": "{amount}", "csv": "{qty}", "json": "{obj}", "in": "n={amount_minor}", "n": 1}
    found = render(tree, qty="007", obj={"x": [1, None, True]})
    assert found == b'{"a":1250,"b":"12.50","csv":"007","json":{"x":[1,null,true]},"in":"n=1250","n":1}'


def test_decimals_keep_their_digits_in_json() -> None:
    """A price with many decimals is not rounded to a float."""
    assert render({"p": "{p}"}, p=Decimal("0.12345678901234567890")) == b'{"p":0.12345678901234567890}'


@given(JSON)
def test_any_value_survives_its_template(value: Any) -> None:
    """Whatever the column holds, the body is that value as JSON; it cannot break out of its place."""
    assert json.loads(render({"a": ["{v}", "x"]}, v=value)) == {"a": [value, "x"]}


@given(TEXT, TEXT)
def test_text_cannot_break_out_of_a_json_string(before: str, value: str) -> None:
    """Quotes, backslashes and control characters are escaped."""
    literal = before.replace("{", "{{").replace("}", "}}")
    assert json.loads(render({"a": f"{literal}-{{v}}"}, v=value)) == {"a": f"{before}-{value}"}


@given(TEXT)
def test_a_value_in_a_path_is_one_segment_and_one_parameter(value: str) -> None:
    """It cannot reach another resource, add a parameter or end the path."""
    one = template("/v1/things/{v}/refunds?of={v}&x=1")
    try:
        found = one.path(context(v=value))
    except ConfigError:
        assert value in ("", ".", "..")
        return
    assert found.isascii()
    assert " " not in found
    parts = urlsplit(found)
    assert [unquote(part) for part in parts.path.split("/")] == ["", "v1", "things", value, "refunds"]
    assert parse_qs(parts.query, keep_blank_values=True) == {"of": [value], "x": ["1"]}


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_a_value_that_is_no_segment_is_refused_in_a_path(value: str) -> None:
    """``/v1/charges//refunds`` and ``/v1/charges/../refunds`` are other resources."""
    with pytest.raises(ConfigError) as caught:
        template("/v1/charges/{v}/refunds").path(context(v=value))
    assert caught.value.code == "template_unfilled"
    assert "r 1" in caught.value.message


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\n", "a\x00", "é", "a\x7f"])
def test_a_header_value_stays_in_its_line(value: str) -> None:
    """No second header, no second request."""
    with pytest.raises(ConfigError):
        template("{v}").header(context(v=value))


@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_what_is_no_text_cannot_stand_inside_one(value: Any) -> None:
    """``null`` must not become the text "None" in somebody's payment."""
    with pytest.raises(ConfigError) as caught:
        template("ref {v}").text(context(v=value))
    assert caught.value.code == "template_unfilled"


def test_a_missing_field_is_named() -> None:
    """A JSON Lines row may lack what others have."""
    with pytest.raises(ConfigError, match="charge_id"):
        template("{charge_id}").text(context())


def test_a_mapped_column_stands_for_what_it_is_mapped_to() -> None:
    """Where fields do not hold it; where they do, the input's own text wins."""
    names = Names({"charge_id": "id", "cents": "amount_minor"})
    assert template("{charge_id}", names).value(context()) == "r 1"
    assert template("{cents}", names).value(context()) == 1250
    assert template("{cents}", names).value(context(cents="1250")) == "1250"


def test_an_item_without_money_cannot_fill_an_amount() -> None:
    """An amount left out is never sent."""
    bare = Context(Item(1, "r", "t", None, {}), None, "b")
    for text in ("{amount}", "{amount_minor}", "{currency}", "{key}"):
        with pytest.raises(ConfigError):
            template(text).text(bare)


def test_unknown_placeholders_are_found_with_the_columns() -> None:
    """Named, with the nearest column."""
    with pytest.raises(ConfigError) as caught:
        check_names([template("{chargeid}")], columns=["charge_id"], mapped={})
    assert caught.value.code == "unknown_placeholder"
    assert "chargeid" in caught.value.message
    assert "charge_id" in caught.value.hint
    check_names([template("{charge_id} {id} {ref}")], columns=["charge_id"], mapped={"ref": "target"})


def test_a_form_with_nested_fields() -> None:
    """``a[b]=c``, lists by number; the order is that of the batch file."""
    form = FormBody(
        {
            "charge": "{target}",
            "amount": "{amount_minor}",
            "metadata": {"ref": "{id}", "n": 1},
            "expand": ["a", "b"],
            "ok": True,
        },
        place="[provider.call] form",
        names=NAMES,
    )
    assert form.render(context()) == (
        b"charge=ch%2F1&amount=1250&metadata%5Bref%5D=r+1&metadata%5Bn%5D=1&expand%5B0%5D=a&expand%5B1%5D=b&ok=true"
    )


@given(TEXT)
def test_a_form_value_stays_one_value(value: str) -> None:
    """It cannot add a field."""
    form = FormBody({"a": "{v}", "b": "x"}, place="form", names=NAMES)
    found = parse_qs(form.render(context(v=value)).decode(), keep_blank_values=True, strict_parsing=True)
    assert found == {"a": [value], "b": ["x"]}


def test_the_same_item_gives_the_same_bytes() -> None:
    """A resend could be built again and would not differ."""
    tree = {"b": 1, "a": {"z": "{id}", "y": [1.5, "{amount}"]}}
    assert len({render(tree) for _ in range(5)}) == 1
    assert render(tree) == b'{"b":1,"a":{"z":"r 1","y":[1.5,"12.50"]}}'


@pytest.mark.parametrize("tree", [{"{id}": 1}, {"a": float("inf")}])
def test_trees_that_cannot_be_bodies(tree: dict[str, Any]) -> None:
    """Placeholders in names would be sent as they are; infinity would be sent as null."""
    with pytest.raises(ConfigError):
        JsonBody(tree, place="json", names=NAMES)


def test_a_number_beyond_json_writers_is_refused_and_not_rounded() -> None:
    """It has to be a text."""
    with pytest.raises(ConfigError):
        render({"a": "{v}"}, v=2**70)
