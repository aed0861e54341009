"""Three shapes of stack: all in one, a shared stack, and a stack of hosted clusters that takes its outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.components.conftest import Program
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
    secrets = cluster_stack.all("azure-native:keyvault:Secret")
    classes = cluster_stack.all("kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass")

    assert {(each.inputs["resourceGroupName"], each.inputs["vaultName"]) for each in secrets} == {
        ("identity-dev", "kv-idstack-dev")
    }
    parameters = [each.inputs["spec"]["parameters"] for each in classes]
    assert {(each["keyvaultName"], each["userAssignedIdentityID"]) for each in parameters} == {
        ("kv-idstack-dev", ADD_ON["clientId"])
    }
    identities = cluster_stack.all("azure-native:managedidentity:UserAssignedIdentity")
    assert {each.inputs["resourceGroupName"] for each in identities} == {"hc1-identity"}


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

    recorder = program(invokes=exporting(OUTPUTS), **CLUSTER_STACK, hostedClusters=clusters)

    looked_up = [each.arguments for each in recorder.invoked if each.function == "azure-native:keyvault:getSecret"]
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
    assert recorder.stack_outputs.values == {**OUTPUTS, "clusterSide": "stack"}


def test_a_stack_of_hosted_clusters_needs_no_add_on(program: Program) -> None:
    invokes = {
        **exporting(without("managementClusterId")),
        "azure-native:containerservice:getManagedCluster": {"nodeResourceGroup": "MC"},
    }

    assert program(invokes=invokes, **CLUSTER_STACK, lookups_only=True).failure is None


def refused(program: Program, invokes: Mapping[str, Any], **changes: Any) -> str:
    """The report, once nothing but the reference was registered."""
    recorder = program(invokes=invokes, options={"refused": True}, **{**CLUSTER_STACK, **changes})
    assert recorder.failure is not None, "everything was accepted"
    assert [name for name in recorder.names() if not name.startswith(REFERENCE)] == []
    return str(recorder.failure)


def report(key: str, found: str, accepted: str, fix: str) -> str:
    return (
        "The stack's configuration has 1 problem; nothing was changed.\n\n"
        f"idstack:{key}\n  found:    {found}\n  accepted: {accepted}\n  fix:      {fix}"
    )


def test_a_shared_stack_that_does_not_exist_is_one_problem(program: Program) -> None:
    invokes = {**lookups(), "pulumi:pulumi:readStackOutputs": Exception(f'unknown stack "{SHARED}"')}

    assert refused(program, invokes) == report(
        "sharedStack",
        f'"{SHARED}", which does not exist',
        "a stack in the same backend that has been brought up",
        "`pulumi stack ls --all` lists them; `pulumi config set sharedStack <organization>/<project>/<stack>`, "
        f"or bring it up with `pulumi up --stack {SHARED}`",
    )


def test_a_backend_that_does_not_answer_is_an_error_of_its_own(program: Program) -> None:
    invokes = {**lookups(), "pulumi:pulumi:readStackOutputs": Exception("blob: 403 forbidden")}

    assert f'"{SHARED}", which cannot be read: blob: 403 forbidden\n' in refused(program, invokes)


@pytest.mark.parametrize(
    ("names", "listed"),
    [(("keyVaultUserClientId",), "keyVaultUserClientId"), (("keyVaultId", "tenantId"), "keyVaultId and tenantId")],
)
def test_a_missing_output_is_named(program: Program, names: tuple[str, ...], listed: str) -> None:
    assert refused(program, exporting(without(*names))) == report(
        "sharedStack",
        f'"{SHARED}", which has no output {listed}',
        "a stack of this program with a vault of its own, brought up to the end",
        f"`pulumi up --stack {SHARED}`, then try again",
    )


def test_a_secret_output_does_not_cross(program: Program) -> None:
    assert refused(program, exporting(OUTPUTS, "keyVaultUri")) == report(
        "sharedStack",
        f'"{SHARED}", which marks keyVaultUri as secret',
        "outputs that are not secret: no secret crosses from one stack to another",
        f"export it without a secret mark, then `pulumi up --stack {SHARED}`",
    )


def test_an_unused_secret_output_does_not_matter(program: Program) -> None:
    outputs = {**OUTPUTS, "ownAddition": "secret"}

    assert program(invokes=exporting(outputs, "ownAddition"), **CLUSTER_STACK, lookups_only=True).failure is None


def test_a_stack_does_not_share_with_itself(program: Program) -> None:
    assert refused(program, lookups(), sharedStack="organization/idstack/test") == report(
        "sharedStack",
        '"organization/idstack/test", which is this stack itself',
        "another stack",
        "`pulumi config rm sharedStack`",
    )


def test_tenant_subscription_and_management_cluster_are_the_shared_stacks(program: Program) -> None:
    elsewhere = MANAGEMENT_CLUSTER.replace("aks-mgmt-dev", "aks-other")
    outputs = {
        **OUTPUTS,
        "tenantId": OTHER,
        "keyVaultId": VAULT.replace(SUBSCRIPTION, OTHER),
        "managementClusterId": elsewhere,
    }

    reports = refused(program, exporting(outputs)).split("\n\n")

    assert reports[0] == "The stack's configuration has 3 problems; nothing was changed."
    assert reports[1] == (
        f'idstack:tenantId\n  found:    "{TENANT}"\n'
        f'  accepted: "{OTHER}", as in {SHARED}, whose vault carries the credentials\n'
        f"  fix:      `pulumi config set tenantId {OTHER}`"
    )
    assert reports[2].startswith(f'idstack:subscriptionId\n  found:    "{SUBSCRIPTION}"\n  accepted: "{OTHER}"')
    assert reports[3].startswith(
        'idstack:managementCluster.name\n  found:    "aks-mgmt-dev" in the resource group "aks-dev"\n'
        f'  accepted: "aks-other" in "aks-dev", as in {SHARED}: its nodes have the key-vault-user\n'
    )


def test_a_missing_shared_vault_is_in_the_report(program: Program) -> None:
    gone = Exception('Status=404 Code="ResourceNotFound"')
    invokes = {**exporting(OUTPUTS), "azure-native:keyvault:getVault": gone}

    recorder = program(invokes=invokes, options={"refused": True}, **CLUSTER_STACK, hostedClusters=[hosted_cluster()])

    assert (
        "idstack:sharedStack\n"
        '  found:    the key vault "kv-idstack-dev" in the resource group "identity-dev", which does not exist\n'
    ) in str(recorder.failure)
