"""The start of the program: one message reports everything that is wrong, before the first resource."""

from __future__ import annotations

import pulumi
import pytest

from identity.settings import ConfigurationError
from identity.settings.problems import for_stack
from tests.unit.components import world
from tests.unit.components.program import Program


def test_a_refused_configuration_is_one_message_and_no_resource(program: Program) -> None:
    wrong = {"tenantId": None, "vault": {"name": "kv_dev", "defaultAction": "Allow"}, "clusterSide": "hypershft"}
    with pytest.raises(ConfigurationError) as refused:
        world.settings(**wrong)

    recorder = program(**wrong, options={"refused": True})

    assert str(recorder.failure) == for_stack(str(refused.value), "test")
    assert str(recorder.failure).startswith("The stack's configuration has 3 problems; nothing was changed.\n\n")
    assert (recorder.registered, recorder.invoked) == ([], [])


def test_the_language_host_shows_the_message_without_a_trace(program: Program) -> None:
    """A RunError is shown as it is; what it came from is left out."""
    failure = program(tenantId=None, options={"refused": True}).failure

    assert isinstance(failure, pulumi.RunError)
    assert (failure.__cause__, failure.__suppress_context__) == (None, True)


def test_a_stack_that_failed_exports_nothing(program: Program) -> None:
    recorder = program(tenantId=None, options={"refused": True})

    assert recorder.stack_outputs.values == {}


def test_a_secret_configuration_value_is_not_in_the_message(program: Program) -> None:
    clusters = world.with_managed_identity({"secretName": "not a name"})

    recorder = program(
        hostedClusters=clusters, tenantId=None, secret_keys=("hostedClusters",), options={"refused": True}
    )

    assert "not a name" not in str(recorder.failure)
