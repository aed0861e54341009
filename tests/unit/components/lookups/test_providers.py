"""The explicit providers, and the errors for another tenant or a missing kubeconfig."""

from __future__ import annotations

from tests.unit.components.conftest import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import DEPLOYER, GROUPS, KUBECONFIG, SUBSCRIPTION, TENANT, lookups

AZURE = "pulumi:providers:azure-native"
ENTRA = "pulumi:providers:azuread"
KUBERNETES = "pulumi:providers:kubernetes"
OTHER_TENANT = "88888888-8888-4777-8666-555555555555"


def signed_in_to(tenant: str) -> dict[str, str]:
    return {"tenantId": tenant, "objectId": DEPLOYER}


def test_tenant_subscription_and_cloud_are_pinned(stack: RecordingMonitor) -> None:
    azure, entra = stack.one(AZURE, "azure").inputs, stack.one(ENTRA, "entra").inputs

    assert (azure["tenantId"], azure["subscriptionId"], azure["environment"]) == (TENANT, SUBSCRIPTION, "public")
    assert (entra["tenantId"], entra["environment"]) == (TENANT, "public")


def test_another_cloud_is_named_as_the_providers_name_it(program: Program) -> None:
    recorder = program(cloud="AzureUSGovernmentCloud", hostedClusters=[])

    assert recorder.one(AZURE).inputs["environment"] == "usgovernment"
    assert recorder.one(ENTRA).inputs["environment"] == "usgovernment"


def test_the_kubernetes_provider_gets_the_kubeconfigs_contents_as_a_secret(stack: RecordingMonitor) -> None:
    provider = stack.one(KUBERNETES, "kubernetes")

    assert provider.inputs["kubeconfig"] == KUBECONFIG
    assert provider.secrets == {"kubeconfig"}


def test_objects_on_the_cluster_survive_a_new_address_of_it(stack: RecordingMonitor) -> None:
    assert stack.one(KUBERNETES).inputs["clusterIdentifier"] == (
        f"{GROUPS}/aks-dev/providers/Microsoft.ContainerService/managedClusters/aks-mgmt-dev"
    )


def test_the_kubeconfigs_context_can_be_chosen(program: Program) -> None:
    cluster = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "kubeconfig": "kubeconfig", "context": "admin"}

    assert program(managementCluster=cluster, lookups_only=True).one(KUBERNETES).inputs["context"] == "admin"


def test_an_unreadable_kubeconfig_is_an_error_with_a_fix(program: Program) -> None:
    cluster = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "kubeconfig": "absent"}

    recorder = program(managementCluster=cluster, options={"refused": True})

    assert str(recorder.failure) == (
        'idstack:managementCluster.kubeconfig: found "absent", which cannot be read '
        "([Errno 2] No such file or directory: 'absent'). Accepted is the path of a kubeconfig file, or nothing: then "
        "the stack makes its own for aks-dev/aks-mgmt-dev."
    )
    assert [each for each in recorder.names() if not each.startswith("pulumi:providers:")] == []


def test_another_tenant_is_an_error_before_the_first_resource(program: Program) -> None:
    elsewhere = lookups(getClientConfig=signed_in_to(OTHER_TENANT))

    recorder = program(invokes=elsewhere, options={"refused": True})

    assert str(recorder.failure) == (
        f"signed in to the tenant {OTHER_TENANT}, but idstack:tenantId is {TENANT}. Nothing was changed. Sign in with "
        f"`az login --tenant {TENANT}` (in CI: set ARM_TENANT_ID), or correct it with `pulumi config set "
        f"idstack:tenantId {OTHER_TENANT}`."
    )
    assert [each for each in recorder.names() if not each.startswith("pulumi:providers:")] == []
    assert [each.function for each in recorder.invoked if each.provider] == [
        "azure-native:authorization:getClientConfig"
    ]


def test_a_failed_sign_in_of_the_deployer_is_an_error_with_a_fix(program: Program) -> None:
    refused = lookups(getClientConfig=RuntimeError("AADSTS7000215: Invalid client\nsecret provided."))

    recorder = program(invokes=refused, options={"refused": True})

    assert str(recorder.failure) == (
        "the deployer cannot sign in to Azure: AADSTS7000215: Invalid client secret provided. Nothing was changed. "
        f"Sign in with `az login --tenant {TENANT}` (in CI: set the ARM_* variables of the providers)."
    )
    assert [each for each in recorder.names() if not each.startswith("pulumi:providers:")] == []


def test_a_tenant_is_the_same_in_capitals(program: Program) -> None:
    tenant = "ABCDEF99-8888-4777-8666-555555555555"

    recorder = program(
        hostedClusters=[], tenantId=tenant.lower(), invokes=lookups(getClientConfig=signed_in_to(tenant))
    )

    assert recorder.stack_outputs.values["tenantId"] == tenant.lower()
