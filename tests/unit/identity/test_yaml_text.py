"""YAML that every reader takes for the same values."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from identity.yaml_text import dump, load, load_as_go

# What Go's libraries take for no text: resolve.go of go.yaml.in/yaml v2 and v3, with strconv's ParseInt and ParseFloat.
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INTEGER = re.compile(r"[-+]?(0[bB][01]+|0[oO]?[0-7]*|0[xX][0-9a-fA-F]+|[1-9][0-9]*)", re.ASCII)
_WORDS = {
    *("y", "Y", "n", "N"),
    *(
        form(word)
        for word in ("yes", "no", "on", "off", "true", "false", "null")
        for form in (str, str.title, str.upper)
    ),
    *("", "~", "<<", ".nan", ".NaN", ".NAN"),
    *(f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")),
}


def is_text_to_go(text: str) -> bool:
    plain = text.replace("_", "") if text[:1] in set("+-0123456789") else text
    number = _FLOAT.fullmatch(plain) or _INTEGER.fullmatch(plain)
    return text not in _WORDS and not (number and text[:1] in set("+-.0123456789"))


def scalars(text: str) -> list[yaml.ScalarNode]:
    """The document's scalars."""
    node: Any = yaml.compose(text)
    return [scalar for pair in node.value for scalar in pair]


# Numbers of every base, with what makes one of them or does not.
numbers = st.from_regex(r"\A[-+]?(0[xobXOB]?)?[0-9a-fA-F_.]{1,8}([eE][-+]?[0-9_]{1,3})?\Z")
texts = st.one_of(st.text(), numbers, st.sampled_from(sorted(_WORDS)), st.dates().map(str))


@given(st.dictionaries(texts, texts, min_size=1))
def test_a_text_stays_a_text_for_every_reader(content: dict[str, str]) -> None:
    written = dump(content)

    assert yaml.safe_load(written) == content
    assert load_as_go(written) == load(written) == content
    assert all(scalar.style or is_text_to_go(scalar.value) for scalar in scalars(written))


@given(numbers)
def test_a_plain_scalar_is_read_as_go_does(text: str) -> None:
    assert isinstance(load_as_go(text), str) == is_text_to_go(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 017", 15),
        ("a: 0o17", 15),
        ("a: -0b11", -3),
        ("a: 0x_1F", 31),
        ("a: 1_0e3", 10000.0),
        ("a: 08", 8.0),
        ("a: 1:30", "1:30"),
        ("a: 0b2", "0b2"),
        ("a: on", True),
        ("a: N", False),
        ("a: 2001-01-01", "2001-01-01"),
        ("a: ~", None),
        ("a: 1\n---\na: 2", 1),
        (json.dumps({"a": "\t"}), "\t"),
    ],
)
def test_what_go_reads(text: str, value: object) -> None:
    found = load_as_go(text)["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("key", "name"), [("on", "true"), ("1", "1"), ("1.5", "1.5"), ("a", "a")])
def test_a_key_is_a_string(key: str, name: str) -> None:
    assert load_as_go(f"labels: {{{key}: x}}") == {"labels": {name: "x"}}


@pytest.mark.parametrize(
    "text",
    [
        *("a: .inf", "a: .nan", "a: !!binary aGk=", "a: !!set {b}", "a: !!timestamp 2001-01-01", "a: &b [*b]"),
        *("a: !!timestamp x", "a: !!bool x", "a: !b c", pytest.param("[" * 1000, id="nested deeply")),
    ],
)
def test_what_json_cannot_hold_is_no_yaml(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_as_go(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, text) for text in ("on", "N", "12:30", "2001-01-01")),
        *(("017", 15), ("0o17", 15), ("True", True), ("1e3", 1000.0)),
    ],
)
def test_what_is_a_text_to_pulumi_and_what_is_none(text: str, value: object) -> None:
    assert load(f"a: {text}") == {"a": value}


def test_a_file_of_windows_is_read() -> None:
    for encoded in ("a: é".encode("utf-16"), "a: é".encode("utf-8-sig")):
        assert load_as_go(encoded) == load(encoded) == {"a": "é"}


def test_two_documents_are_two_and_share_nothing() -> None:
    shared = {"x": ["1"]}
    written = dump({"a": shared}, {"b": shared})
    assert list(yaml.safe_load_all(written)) == [{"a": shared}, {"b": shared}]
    assert "&" not in written
