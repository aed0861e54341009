"""What the stack has made in Azure: what nobody can change is refused, and the tags of others stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from identity.credentials import renewal_request
from tests.unit.components.azure.test_infrastructure import created
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.refusals import PROVIDERS, refused
from tests.unit.components.simulation import a_uuid
from tests.unit.components.world import REGISTRY, lookups
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


VAULT_RESOURCE = ("azure-native:keyvault:Vault", "vault-vault")
DISK = ("azure-native:managedidentity:UserAssignedIdentity", "hc1-data-plane-disk-identity")
OWN = {"team": "identity"}
MARKED = {**OWN, "idstack-stack": "idstack:test", "idstack-owner": a_uuid("owner")}
FOREIGN = {"CreatedOn": "2026", 'cost "centre"': "7"}
IGNORED = ['tags["CreatedOn"]', r'tags["cost \"centre\""]']


def run(program: Program, vault: Any, disk: Any, recorded: Any = ("team",), **changes: Any) -> RecordingMonitor:
    """A run with these tags on vault and disk identity; `recorded` are the names that the last run exported."""
    last: Mapping[str, Any] = {} if recorded is None else {"tagNames": list(recorded)}

    def identity(asked: Mapping[str, Any]) -> Any:
        return {**REGISTRY, "tags": disk if asked["resourceName"] == "hc1-disk-hc1-infra" else MARKED}

    answers = lookups(
        readStackOutputs={"outputs": last, "secretOutputNames": []},
        getVault=lambda asked: {"tags": vault} if asked["vaultName"] == "kv-idstack-dev" else {},
        getUserAssignedIdentity=identity,
    )
    return program(invokes=answers, **{"clusterSide": "hypershift", **changes})


def registered(recorder: RecordingMonitor, resource: tuple[str, str]) -> tuple[Any, list[str]]:
    """Tags of a resource, and what the engine ignores of it."""
    found = recorder.one(*resource)
    return found.inputs["tags"], list(found.request.ignoreChanges)


def test_tags_of_others_are_ignored_and_recorded_as_nobodys(program: Program) -> None:
    recorder = run(program, OWN, {**MARKED, **FOREIGN})

    assert registered(recorder, VAULT_RESOURCE) == (OWN, IGNORED), "on every resource: a policy writes them on all"
    assert registered(recorder, DISK) == (MARKED, IGNORED)
    assert recorder.stack_outputs.values["tagNames"] == ["team"]


@pytest.mark.parametrize(
    "own",
    [{**MARKED, "team": "other"}, {**MARKED, "left": "over"}, {"team": "identity"}],
    ids=["another value", "a name taken out", "a mark removed"],
)
def test_a_write_of_own_tags_sends_those_of_others_along(program: Program, own: dict[str, str]) -> None:
    """ARM replaces all tags of a resource."""
    recorder = run(program, OWN, {**own, **FOREIGN}, recorded=("team", "left"))

    assert registered(recorder, DISK) == ({**MARKED, **FOREIGN}, [])
    assert registered(recorder, VAULT_RESOURCE) == (OWN, IGNORED)


def test_letter_case_makes_no_foreign_name(program: Program) -> None:
    recorder = run(program, {"Team": "identity"}, MARKED, hostedClusters=[])

    assert registered(recorder, VAULT_RESOURCE) == (OWN, [])


def test_without_a_record_every_name_is_the_stacks(program: Program) -> None:
    """A name that the configuration no longer has would stay for ever."""
    recorder = run(program, {**OWN, **FOREIGN}, MARKED, recorded=None, hostedClusters=[])

    assert registered(recorder, VAULT_RESOURCE) == (OWN, [])


def test_a_renewal_reads_no_tags(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(renewal_request.VARIABLE, "{}")

    recorder = run(program, {**OWN, **FOREIGN}, MARKED, lookups_only=True)

    assert not [call for call in recorder.invoked if call.function.endswith("getUserAssignedIdentity")]
