"""Which known name was probably meant."""

from __future__ import annotations

import pytest

from identity.similar import did_you_mean, similar


@pytest.mark.parametrize(
    ("found", "expected"),
    [("ingres", "ingress"), ("INGRESS", "ingress"), ("dsk", "disk"), ("xyz", None), ("", None)],
    ids=["a letter less", "another case", "a vowel less", "nothing like it", "empty"],
)
def test_the_name_that_is_most_alike_is_meant(found: str, expected: str | None) -> None:
    assert similar(found, ["disk", "ingress", "kms"]) == expected


def test_a_message_ends_with_the_question_only_if_there_is_an_answer() -> None:
    assert did_you_mean("hc2", ["hc1"]) == '; did you mean "hc1"?'
    assert did_you_mean("prod", ["hc1"]) == ""
