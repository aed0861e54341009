"""What Azure lets nobody change of what the stack has made is refused with the present value, also in a preview."""

from __future__ import annotations

from typing import Any

import pytest

from identity.credentials import renewal_request
from tests.unit.components.azure.test_infrastructure import created
from tests.unit.components.program import Program
from tests.unit.components.refusals import PROVIDERS, refused
from tests.unit.components.world import lookups
from tests.unit.identity.settings.world import creation

VAULT = {"name": "kv-idstack-dev", "defaultAction": "Allow"}
POOL = {"name": "system", "vmSize": "Standard_D4s_v5", "maxPods": 250, "availabilityZones": ["3", "1", "2"]}
NETWORK = {"networkPlugin": "azure", "networkPolicy": "azure"}


def vault(**properties: Any) -> dict[str, Any]:
    """ARM's answer for a vault as the stack has made it, with these `properties`."""
    made = {"softDeleteRetentionInDays": 90, "enablePurgeProtection": True, **properties}
    return {"location": "East US", "properties": made}


@pytest.mark.parametrize("is_preview", [True, False])
@pytest.mark.parametrize(
    ("answer", "key"),
    [
        (vault(softDeleteRetentionInDays=7), "vault.softDeleteRetentionDays"),
        ({**vault(), "location": "westus"}, "location"),
    ],
)
def test_another_value_of_the_vault_is_refused(
    program: Program, answer: dict[str, Any], key: str, is_preview: bool
) -> None:
    options = {"refused": True, "preview": is_preview}
    recorder = program(options=options, vault=VAULT, invokes=lookups(getVault=answer))

    assert (recorder.problems, recorder.names()) == ([(key, "unchangeable")], PROVIDERS)


def test_purge_protection_stays_on_and_can_be_switched_on(program: Program) -> None:
    off = {**VAULT, "purgeProtection": False}
    unprotected = {"location": "eastus", "properties": {"softDeleteRetentionInDays": 90}}

    assert refused(program, vault=off, invokes=lookups(getVault=vault())) == [("vault.purgeProtection", "unchangeable")]
    assert program(vault=VAULT, invokes=lookups(getVault=unprotected), lookups_only=True).failure is None


@pytest.mark.parametrize(
    ("answer", "keys"),
    [
        ({"agentPoolProfiles": [POOL], "networkProfile": NETWORK, "location": "eastus"}, []),
        (
            {"agentPoolProfiles": [{"name": "system", "vmSize": "Standard_D2s_v5", "maxPods": 110}]},
            ["nodePool.vmSize", "nodePool.maxPods", "nodePool.zones"],
        ),
        ({"agentPoolProfiles": [{**POOL, "name": "other", "vmSize": "Standard_D2s_v5"}]}, []),
        (
            {"networkProfile": {"networkPlugin": "kubenet", "networkPolicy": "calico"}},
            ["network.plugin", "network.policy"],
        ),
    ],
    ids=["as configured", "another pool", "a pool of somebody else", "another network"],
)
def test_machines_and_network_of_a_made_cluster_stay(program: Program, answer: Any, keys: list[str]) -> None:
    recorder = program(
        managementCluster=creation(),
        keyVaultUser={"source": "created", "name": "kv-user"},
        clusterSide="hypershift",
        invokes=lookups(getManagedCluster=answer),
        options={"refused": True},
        lookups_only=True,
    )

    assert recorder.problems == [(f"managementCluster.create.{key}", "unchangeable") for key in keys]


def test_infrastructure_that_the_stack_has_made_stays_in_its_region(program: Program) -> None:
    problems = refused(
        program,
        hostedClusters=[created()],
        clusterSide="hypershift",
        invokes=lookups(getResourceGroup={"location": "westus"}),
    )

    assert problems == [("hostedClusters[0].location", "unchangeable")]


def test_a_vault_that_cannot_be_read_is_not_a_new_one(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    forbidden = Exception('Status=403 Code="AuthorizationFailed" Message="no"')
    own = lookups(getVault=lambda asked: forbidden if asked["vaultName"] == "kv-idstack-dev" else {})

    assert refused(program, invokes=own) == [("vault.name", "resource-unreadable")]

    # It changes no vault, and its custom role reads none.
    monkeypatch.setenv(renewal_request.VARIABLE, "{}")
    assert program(invokes=own, lookups_only=True).failure is None
