"""Three shapes of stack: all in one, a shared stack, and a stack of hosted clusters that takes its outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import (
    ADD_ON,
    MANAGEMENT_CLUSTER,
    REGISTRY,
    SUBSCRIPTION,
    TENANT,
    VAULT,
    hosted_cluster,
    lookups,
    with_managed_identity,
)

SHARED = "organization/idstack/shared-dev"
OTHER = "33333333-3333-4333-8333-333333333333"
OUTPUTS = {
    "keyVaultId": VAULT,
    "keyVaultName": "kv-idstack-dev",
    "keyVaultUri": "https://kv-idstack-dev.vault.azure.net/",
    "keyVaultUserClientId": ADD_ON["clientId"],
    "managementClusterId": MANAGEMENT_CLUSTER,
    "tenantId": TENANT,
    "hostedClusters": {},
}
# Of a stack of hosted clusters: its own managed identities are in another resource group than the shared vault.
CLUSTER_STACK = {"sharedStack": SHARED, "vault": None, "resourceGroup": "hc1-identity"}
REFERENCE = "pulumi:pulumi:StackReference"


def exporting(outputs: Mapping[str, Any], *secret: str) -> dict[str, Any]:
    """Azure, and a shared stack with these outputs."""
    shared = {"name": SHARED, "outputs": dict(outputs), "secretOutputNames": list(secret)}
    own: dict[str, Any] = {"name": "", "outputs": {}, "secretOutputNames": []}
    return {
        **lookups(),
        "pulumi:pulumi:readStackOutputs": lambda arguments: shared if arguments["name"] == SHARED else own,
    }


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in OUTPUTS.items() if name not in names}


@pytest.fixture(scope="module")
def cluster_stack(program: Program) -> RecordingMonitor:
    return program(invokes=exporting(OUTPUTS), **CLUSTER_STACK)


def test_a_stack_of_hosted_clusters_makes_neither_vault_nor_key_vault_user(
    cluster_stack: RecordingMonitor, stack: RecordingMonitor
) -> None:
    made = set(stack.names()) - set(cluster_stack.names())

    assert made == {
        "azure-native:authorization:RoleAssignment key-vault-user-roles-vault",
        "azure-native:keyvault:Vault vault-vault",
        "idstack:azure:KeyVaultUser key-vault-user",
        "idstack:azure:RoleGrants key-vault-user-roles",
        "idstack:azure:Vault vault",
    }
    assert set(cluster_stack.names()) - set(stack.names()) == {f"{REFERENCE} {SHARED}"}


def test_its_secrets_are_in_the_shared_vault_for_its_key_vault_user(cluster_stack: RecordingMonitor) -> None:
    secrets = cluster_stack.all("idstack:index:CredentialSecret")
    schedules = cluster_stack.all("idstack:index:RenewalSchedule")
    classes = cluster_stack.all("kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass")

    assert {resource.inputs["vaultId"] for resource in (*secrets, *schedules)} == {VAULT}
    parameters = [class_.inputs["spec"]["parameters"] for class_ in classes]
    assert {(parameter["keyvaultName"], parameter["userAssignedIdentityID"]) for parameter in parameters} == {
        ("kv-idstack-dev", ADD_ON["clientId"])
    }
    identities = cluster_stack.all("azure-native:managedidentity:UserAssignedIdentity")
    assert {identity.inputs["resourceGroupName"] for identity in identities} == {"hc1-identity"}


def test_it_exports_what_a_stack_with_its_own_vault_exports(
    cluster_stack: RecordingMonitor, stack: RecordingMonitor
) -> None:
    def exported(recorder: RecordingMonitor) -> dict[str, Any]:
        outputs = json.loads(json.dumps(recorder.stack_outputs.values))
        del outputs["hostedClusters"]["hc1"]["credentialsInUse"]  # their identities are in another resource group
        return dict(outputs)

    assert exported(cluster_stack) == exported(stack)


def test_a_stored_credential_is_looked_up_in_the_shared_vault(program: Program) -> None:
    clusters = with_managed_identity({"secretName": "uamsi-ciro"})

    recorder = program(invokes=exporting(OUTPUTS), **CLUSTER_STACK, hostedClusters=clusters, clusterSide="hypershift")

    looked_up = [call.arguments for call in recorder.invoked if call.function == "azure-native:keyvault:getSecret"]
    assert looked_up == [
        {"resourceGroupName": "identity-dev", "vaultName": "kv-idstack-dev", "secretName": "uamsi-ciro"}
    ]
    shown = recorder.stack_outputs.values["hostedClusters"]["hc1"]["controlPlane"]["imageRegistry"]
    assert shown["clientID"] == REGISTRY["clientId"]


def test_a_shared_stack_needs_neither_kubeconfig_nor_probe(program: Program) -> None:
    recorder = program(
        hostedClusters=[], probe=None, managementCluster={"resourceGroup": "aks-dev", "name": "aks-mgmt-dev"}
    )

    assert [name for name in recorder.names() if "idstack:azure" in name] == [
        "idstack:azure:KeyVaultUser key-vault-user",
        "idstack:azure:RoleGrants key-vault-user-roles",
        "idstack:azure:Vault vault",
    ]
    assert [name for name in recorder.names() if "kubernetes" in name] == []
    owner = {"ownerId": recorder.stack_outputs.values["ownerId"]}
    assert recorder.stack_outputs.values == {**OUTPUTS, **owner, "clusterSide": "stack", "tagNames": ["team"]}


def test_a_stack_of_hosted_clusters_needs_no_add_on(program: Program) -> None:
    invokes = {
        **exporting(without("managementClusterId")),
        "azure-native:containerservice:getManagedCluster": {"nodeResourceGroup": "MC"},
    }

    assert program(invokes=invokes, **CLUSTER_STACK, lookups_only=True).failure is None


def refused(program: Program, invokes: Mapping[str, Any], **changes: Any) -> list[tuple[str, str]]:
    """Place and rule of each problem; nothing but the reference was registered."""
    recorder = program(invokes=invokes, options={"refused": True}, **{**CLUSTER_STACK, **changes})
    assert recorder.failure is not None, "everything was accepted"
    assert [name for name in recorder.names() if not name.startswith(REFERENCE)] == []
    return recorder.problems


@pytest.mark.parametrize(
    ("answer", "name", "rule"),
    [
        (Exception(f'unknown stack "{SHARED}"'), SHARED, "shared-stack-missing"),
        (Exception("blob: 403 forbidden"), SHARED, "shared-stack-unreadable"),
        ({"outputs": {}, "secretOutputNames": []}, "organization/idstack/test", "shared-stack-is-this-stack"),
    ],
)
def test_a_stack_that_shares_nothing_is_one_problem(program: Program, answer: Any, name: str, rule: str) -> None:
    found = refused(program, {**lookups(), "pulumi:pulumi:readStackOutputs": answer}, sharedStack=name)

    assert found == [("sharedStack", rule)]


@pytest.mark.parametrize(
    ("names", "listed"),
    [(("keyVaultUserClientId",), "keyVaultUserClientId"), (("keyVaultId", "tenantId"), "keyVaultId and tenantId")],
)
def test_a_missing_output_is_named(program: Program, names: tuple[str, ...], listed: str) -> None:
    recorder = program(invokes=exporting(without(*names)), options={"refused": True}, **CLUSTER_STACK)

    assert recorder.problems == [("sharedStack", "shared-stack-output-missing")]
    assert f"whose outputs lack {listed}\n" in str(recorder.failure)


def test_a_secret_output_does_not_cross(program: Program) -> None:
    assert refused(program, exporting(OUTPUTS, "keyVaultUri")) == [("sharedStack", "shared-stack-output-secret")]


@pytest.mark.parametrize(
    "changes",
    [
        {"keyVaultId": VAULT.replace("kv-idstack-dev", "evil.example?x=")},
        {"keyVaultId": VAULT.replace("kv-idstack-dev", "evil.example")},
        {"keyVaultId": VAULT.replace("identity-dev", "..")},
        {"keyVaultId": MANAGEMENT_CLUSTER},
        {"managementClusterId": f"{MANAGEMENT_CLUSTER}#"},
    ],
    ids=str,
)
def test_an_output_that_is_no_resource_id_is_refused_and_nothing_is_asked(
    program: Program, changes: dict[str, str]
) -> None:
    recorder = program(invokes=exporting({**OUTPUTS, **changes}), options={"refused": True}, **CLUSTER_STACK)

    assert recorder.problems == [("sharedStack", "shared-stack-output-malformed")]
    assert f"whose output {next(iter(changes))} is not of the form" in str(recorder.failure)
    assert [call.function for call in recorder.invoked if call.function != "pulumi:pulumi:readStackOutputs"] == []


def test_an_unused_secret_output_does_not_matter(program: Program) -> None:
    outputs = {**OUTPUTS, "ownAddition": "secret"}

    assert program(invokes=exporting(outputs, "ownAddition"), **CLUSTER_STACK, lookups_only=True).failure is None


def test_tenant_subscription_and_management_cluster_are_the_shared_stacks(program: Program) -> None:
    elsewhere = MANAGEMENT_CLUSTER.replace("aks-mgmt-dev", "aks-other")
    outputs = {
        **OUTPUTS,
        "tenantId": OTHER,
        "keyVaultId": VAULT.replace(SUBSCRIPTION, OTHER),
        "managementClusterId": elsewhere,
    }

    assert refused(program, exporting(outputs)) == [
        ("tenantId", "shared-stack-id-mismatch"),
        ("subscriptionId", "shared-stack-id-mismatch"),
        ("managementCluster.name", "shared-stack-cluster-mismatch"),
    ]


def test_a_missing_shared_vault_is_in_the_report(program: Program) -> None:
    gone = Exception('Status=404 Code="ResourceNotFound"')
    invokes = {**exporting(OUTPUTS), "azure-native:keyvault:getVault": gone}

    recorder = program(invokes=invokes, options={"refused": True}, **CLUSTER_STACK, hostedClusters=[hosted_cluster()])

    assert recorder.problems == [
        ("sharedStack", "resource-missing"),
        ("hostedClusters[0].kms.activeKey.keyVaultName", "resource-missing"),
    ]


def test_the_reader_of_single_secrets_gets_its_role_on_those_of_this_stack(
    program: Program, cluster_stack: RecordingMonitor
) -> None:
    outputs = {**OUTPUTS, "keyVaultUserObjectId": ADD_ON["objectId"]}
    recorder = program(invokes=exporting(outputs), **CLUSTER_STACK, clusterSide="hypershift")
    made = {resource.inputs["scope"] for resource in recorder.registered if resource.name.endswith("-reader-secret")}

    assert made == {
        f"{VAULT}/secrets/{resource.inputs['secretName']}"
        for resource in recorder.all("idstack:index:CredentialSecret")
    }
    assert not [resource for resource in cluster_stack.registered if "-reader" in resource.name]
