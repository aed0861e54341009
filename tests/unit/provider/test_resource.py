"""What every resource of the plugin has in common, and what a refused input shows of itself."""

from __future__ import annotations

from typing import Any

import pytest

from identity import resource_types
from plugin import PluginError
from provider.__main__ import RESOURCES
from provider.resource import Inputs, rotation

IMPORTED = {resource_types.CREDENTIAL_SECRET, resource_types.SIGNING_KEY, resource_types.ENCRYPTION_KEY}


def urn(token: str) -> str:
    return f"urn:pulumi:dev::idstack::{token}::hc1-thing"


@pytest.mark.parametrize("token", RESOURCES)
@pytest.mark.parametrize("old", [{}, {"schema": 0}, {"schema": 2}, {"schema": "x"}])
def test_a_state_of_another_version_is_refused_in_words(token: str, old: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="the state has the schema"):
        RESOURCES[token].check(urn(token), old, {})


@pytest.mark.parametrize("token", sorted(RESOURCES.keys() - IMPORTED))
def test_what_its_stack_alone_knows_is_not_imported(token: str) -> None:
    with pytest.raises(PluginError, match=r"^hc1-thing cannot be imported: .*\b[Rr]emove "):
        RESOURCES[token].read(urn(token), "id", {}, {})


@pytest.mark.parametrize(
    "name", ["hc1-disk-2-cloud-provider-entra-schedule", "hc1-disk-2-cloud-provider-credential-secret"]
)
def test_the_command_of_a_message_names_stack_and_identity(name: str) -> None:
    command = "`.venv/bin/idstack rotate --force --stack dev --identity hc1-disk-2/cloudProvider`"
    assert rotation(urn("x").replace("hc1-thing", name), "--force") == command


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "nothing"),
        (True, "True"),
        (0, "0"),
        (0.5, "0.5"),
        ("MARKER", "a string"),
        (["MARKER"], "a list"),
        ({"key": "MARKER"}, "an object"),
    ],
)
def test_a_refusal_shows_no_value_that_may_be_secret(value: Any, found: str) -> None:
    inputs = Inputs({"name": value})
    inputs.refuse("name", "something else")
    [failure] = inputs.failures
    assert failure.reason.startswith(f"found {found}; accepted: ")
