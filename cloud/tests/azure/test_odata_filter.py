"""`$filter` is read as OData has it: blanks, letter case, quotes and brackets; anything else is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.azure.shared.odata_filter import (
    AnyOf,
    Called,
    Compared,
    InvalidFilterError,
    Joined,
    Negated,
    OneOf,
    Path,
    parse,
    terms,
)


@pytest.mark.parametrize(
    "text", ["a eq 'b'", "a  eq   'b'", " a EQ 'b' ", "(a eq 'b')"], ids=["plain", "blanks", "letter case", "brackets"]
)
def test_blanks_case_and_brackets_do_not_count(text: str) -> None:
    assert parse(text) == Compared("a", "eq", "b")


def test_every_form_is_read() -> None:
    assert parse("a in ('b', 'c')") == OneOf("a", ("b", "c"))
    assert parse("startswith(a,'b')") == Called("startswith", (Path("a"), "b"))
    assert parse("tags/any(t:t eq 'b')") == AnyOf("tags", "t", Compared("t", "eq", "b"))
    assert parse("not (a eq true)") == Negated(Compared("a", "eq", True))
    assert parse("a eq null and atScope()") == Joined("and", (Compared("a", "eq", None), Called("atscope", ())))


def test_and_binds_closer_than_or() -> None:
    found = parse("a eq '1' or b eq '2' and c eq '3'")

    assert isinstance(found, Joined)
    assert found.operator == "or"
    assert found.conditions[1] == Joined("and", (Compared("b", "eq", "2"), Compared("c", "eq", "3")))
    assert len(terms(parse("a eq '1' and b eq '2'"))) == 2
    assert terms(found) == (found,)


@given(st.text())
def test_a_text_is_any_text(text: str) -> None:
    quoted = text.replace("'", "''")
    assert parse(f"a eq '{quoted}' and b eq 'c'") == Joined(
        "and", (Compared("a", "eq", text), Compared("b", "eq", "c"))
    )


@pytest.mark.parametrize(
    "text", ["a", "a eq", "a eq 'b", "a eq 'b' c", "a eq 'b' and", "eq 'b'", "a in 'b'", "a ~ 'b'"]
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(InvalidFilterError):
        parse(text)


@given(st.text())
def test_nothing_else_goes_wrong(text: str) -> None:
    with suppress(InvalidFilterError):
        parse(text)
