"""Values survive the way to the engine and back, marks included."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plugin import UNKNOWN, Secret, contains_secret, contains_unknown, unwrap
from plugin.values import from_struct, to_struct

_scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.just(UNKNOWN)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | inner.map(Secret), max_leaves=12
)


@given(st.dictionaries(st.text(), _values))
def test_properties_survive_the_wire(properties: dict[str, Any]) -> None:
    assert from_struct(to_struct(properties)) == properties


def test_an_output_value_without_a_value_is_unknown() -> None:
    wire = to_struct({"out": {"4dabf18193072939515e22adb298388d": "d0e6a833031e9bbcd3f4e8bde6ca49a4", "secret": True}})

    received = from_struct(wire)["out"]

    assert isinstance(received, Secret), "an output marked secret stays secret"
    assert received.value is UNKNOWN


def test_marks_are_found_at_any_depth() -> None:
    value = {"list": [1, {"secret": Secret(["x", UNKNOWN])}]}

    assert contains_secret(value)
    assert contains_unknown(value)
    assert unwrap(value) == {"list": [1, {"secret": ["x", UNKNOWN]}]}
    assert not contains_secret(unwrap(value))


def test_a_secret_does_not_show_itself() -> None:
    assert "hunter2" not in f"{Secret('hunter2')} {Secret('hunter2')!r} {[Secret('hunter2')]}"
