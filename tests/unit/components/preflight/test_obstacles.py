"""Unregistered resource providers and locks: what they would stop half-way is refused before its first resource."""

from __future__ import annotations

from typing import Any, Final

import pytest

from components.preflight.obstacles import used_providers
from identity.credentials import renewal_request
from tests.unit.components.configurations import AZURE, CONFIGURATIONS
from tests.unit.components.program import Program
from tests.unit.components.refusals import refused
from tests.unit.components.world import GROUPS, hosted_cluster, lookups, settings

_LOCK: Final = f"{GROUPS}/identity-dev/providers/Microsoft.Authorization/locks/frozen"
_NONE: Final[dict[str, Any]] = {"unregistered": [], "locks": {}}
_OBSTACLES: Final = {**_NONE, "unregistered": ["Microsoft.KeyVault"], "locks": {_LOCK: "ReadOnly"}}
_REPORTED: Final = [("subscriptionId", "resource-provider-unregistered"), ("subscriptionId", "scope-locked")]
_SHAPES: Final = {**CONFIGURATIONS, **AZURE}
# Modules of azure-native whose namespace is another's, or registered in every subscription.
_ELSEWHERE: Final = {"privatedns": "network", "authorization": "", "resources": ""}


@pytest.mark.parametrize(
    "shape", ["no cluster", "infrastructure", "an issuer", "workload identities", "a cluster with groups"]
)
def test_the_providers_asked_for_are_those_of_what_the_stack_makes(program: Program, shape: str) -> None:
    changes = _SHAPES[shape]
    types = (resource.type.split(":") for resource in program(**changes).registered)
    made = {_ELSEWHERE.get(module, module) for package, module, *_ in types if package == "azure-native"}

    assert {name.partition(".")[2].lower() for name in used_providers(settings(**changes))} == made - {""}


def test_both_are_in_one_report_before_the_first_resource(program: Program) -> None:
    unregistered = Exception(
        'Status=409 Code="MissingSubscriptionRegistration" Message="The subscription is not registered to use '
        "namespace 'Microsoft.Network'.\""
    )

    invokes = lookups(findObstacles=_OBSTACLES, getVault=unregistered, getVirtualNetwork=unregistered)
    problems = refused(program, hostedClusters=[hosted_cluster(kms=None)], invokes=invokes)

    assert problems == [("hostedClusters[0].vnetID", "resource-unreadable"), *_REPORTED]


def test_a_lock_of_deletions_is_a_warning_and_a_renewal_asks_for_nothing(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", warned.append)

    def asked(obstacles: dict[str, Any]) -> bool:
        recorder = program(invokes=lookups(findObstacles=obstacles), lookups_only=True)
        return "idstack:index:findObstacles" in {call.function for call in recorder.invoked}

    assert asked({**_NONE, "locks": {_LOCK: "CanNotDelete"}})
    assert warned == [f"locks forbid to delete or replace anything there: {_LOCK}"]
    monkeypatch.setenv(renewal_request.VARIABLE, "{}")
    assert not asked(_OBSTACLES)


@pytest.mark.parametrize(("allowed", "renew_before"), [(60.0, 45), (30.0, 10)])
def test_certificates_that_live_longer_than_the_tenant_allows_are_refused(
    program: Program, allowed: float, renew_before: int
) -> None:
    """The certificates of the stack live for 90 days, and are renewed 45 days before their end."""
    invokes = lookups(findObstacles={**_NONE, "certificateDays": allowed})
    recorder = program(invokes=invokes, options={"refused": True})

    [asked] = [call.arguments for call in recorder.invoked if call.function == "idstack:index:findObstacles"]
    assert (recorder.problems, asked["makesApplications"]) == (
        [("credentials.lifetimeDays", "certificate-lifetime")],
        True,
    )
    assert f"renewBeforeDays {renew_before}`" in str(recorder.failure)
