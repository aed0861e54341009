"""Whether a thing exists, asked of a real ARM, Graph and Kubernetes API: its id as the provider would have it."""

from __future__ import annotations

import base64
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubernetes import client

from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.legacy_login import LegacyLogin
from identity.azure.client import AzureClient
from identity.azure.errors import AccessError, AzureRefusedError
from identity.clouds import Cloud
from identity.credentials.certificate import issue
from identity.naming import owner_mark
from localcloud.testing import networks as network_world
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld, cluster_body, storage_account_body
from localcloud.testing.azure import Application, KeyCredential
from localcloud.testing.hosts import Certificates
from localcloud.testing.kubernetes import config_map, model
from localcloud.testing.plugins import AZURE_NATIVE as RESOURCES
from localcloud.testing.plugins import AzureAd
from ops.access.clients import KubernetesObjects, StackAccess, management_cluster
from ops.recovery.orphans import Finders
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit import cases
from tests.unit.azure_world import IssuedTokens
from tests.unit.ops.conftest import FakeEngine
from tests.unit.ops.recovery.conftest import FindersOf

APPLICATION = "azuread:index/application:Application"
PRINCIPAL = "azuread:index/servicePrincipal:ServicePrincipal"
REGISTRATION = "azuread:index/applicationCertificate:ApplicationCertificate"
OWN_SECRET = "idstack:index:CredentialSecret"
# azure-native's own, of which the program has none.
UNUSED = "azure-native:keyvault:Secret"
TAG = "idstack:local:hc1-kms-entra"
CSI = "secrets-store.csi.x-k8s.io"
KEY_ID = "3a7b47a2-a1d0-5cc8-a2df-c3f5130e5401"
BEGIN = datetime(2026, 11, 21, 17, 13, 57, tzinfo=UTC)
# ARM spells these two groups this way.
IDENTITY = (
    f"{SUBSCRIPTION}/resourcegroups/identity-local/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-disk"
)
FEDERATED = f"{IDENTITY}/federatedIdentityCredentials/hc1-disk-fed-id-node"
SECRET = f"{VAULT}/secrets/kms-hc1-json"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/hc1oidc"
CONTAINER = f"{ACCOUNT}/blobServices/default/containers/hc1oidc"
CLUSTER = f"{SUBSCRIPTION}/resourcegroups/identity-local/providers/Microsoft.ContainerService/managedClusters/mgmt"
ASSIGNMENT = f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/9883867c-f74a-573e-94cc-d5d1434935bb"

IN_ARM = cases.read(Path(__file__).with_name("in-arm.yaml"), {**vars(network_world), **globals()})


@pytest.fixture
def made(world: ArmWorld) -> ArmWorld:
    """A world with one thing of each of ARM's types."""
    reader = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
    assignee = {"principalId": world.deployer.object_id, "principalType": "ServicePrincipal"}
    trust = {"issuer": "https://issuer", "subject": "system:serviceaccount:a:b", "audiences": ["openshift"]}
    world.create_vault()
    for path, body in (
        (SECRET, {"properties": {"value": "{}"}}),
        (IDENTITY, {"location": "eastus"}),
        (FEDERATED, {"properties": trust}),
        (ASSIGNMENT, {"properties": {"roleDefinitionId": reader, **assignee}}),
        (ACCOUNT, storage_account_body()),
        (CONTAINER, {"properties": {"publicAccess": "Container"}}),
        (CLUSTER, cluster_body()),
    ):
        assert world.call("PUT", path, body).status_code in {200, 201}
    network_world.make(world)
    return world


def application(world: ArmWorld, *tags: str) -> Application:
    return world.cloud.directory.create_application("kms-hc1", properties={"tags": list(tags)})


def test_every_type_that_the_program_has_in_azure_is_looked_for() -> None:
    assert IN_ARM.keys() == RESOURCES.keys() - {UNUSED} | {OWN_SECRET}
    assert {APPLICATION, PRINCIPAL, REGISTRATION} == AzureAd()._resources.keys()


def test_a_resource_is_found_by_the_id_that_its_inputs_determine(finders: FindersOf, made: ArmWorld) -> None:
    found = {type_token: finders().find(type_token, inputs) for type_token, (_, inputs) in IN_ARM.items()}
    assert found == {type_token: expected for type_token, (expected, _) in IN_ARM.items()}
    for type_token, (expected, inputs) in IN_ARM.items():
        assert finders({(type_token, expected)}).find(type_token, inputs) is None, "the state has it already"


def test_a_resource_that_is_not_there_is_not_found(finders: FindersOf) -> None:
    assert not [type_token for type_token, (_, inputs) in IN_ARM.items() if finders().find(type_token, inputs)]


def test_an_application_is_found_by_its_tag_whatever_its_name(finders: FindersOf, world: ArmWorld) -> None:
    application(world, "idstack:local:hc1-disk-entra")
    mine = application(world, TAG)
    inputs = {"displayName": "another", "tags": [TAG]}
    assert finders().find(APPLICATION, inputs) == f"/applications/{mine.object_id}"
    assert finders().find(APPLICATION, {"displayName": "kms-hc1", "tags": ["idstack:dev:hc1-kms-entra"]}) is None
    quoted = application(world, "it's")
    assert finders().find(APPLICATION, {"tags": ["it's"]}) == f"/applications/{quoted.object_id}"


def test_of_two_applications_none_is_chosen_but_the_one_in_use_is_said(azure: AzureClient, world: ArmWorld) -> None:
    spare, used = (application(world, TAG) for _ in range(2))
    issued = issue("kms", not_before=BEGIN, lifetime=timedelta(days=90))
    key = KeyCredential.of(x509.load_pem_x509_certificate(issued.certificate_pem.encode()))
    world.cloud.directory.update(replace(used, keys=(key,)))
    world.create_vault()
    world.call("PUT", SECRET, {"properties": {"value": "{}"}, "tags": {"thumbprint": issued.thumbprint}})

    taken = {(APPLICATION, f"/applications/{spare.object_id}")}
    with pytest.raises(CommandError, match=f"more than one application with the tag {TAG}") as raised:
        Finders(azure, None, world.cloud.subscription_id, taken, VAULT).find(APPLICATION, {"tags": [TAG]})

    assert f"/applications/{used.object_id} is in use, and not in the stack's state" in str(raised.value)
    unused = f"/applications/{spare.object_id} is in the stack's state, and none of its certificates is in the vault"
    assert unused in str(raised.value)


@given(owners=st.lists(st.sampled_from([None, "ours", "theirs", "others"]), max_size=3))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_only_the_application_with_this_stacks_owner_id_is_found(
    finders: FindersOf, world: ArmWorld, owners: list[str | None]
) -> None:
    name = f"idstack:local:{uuid.uuid4()}"
    made = [(owner, application(world, name, *([owner_mark(owner)] if owner else []))) for owner in owners]
    ours = [f"/applications/{app.object_id}" for owner, app in made if owner == "ours"]
    # The order in which Graph keeps them.
    inputs = {"tags": sorted([owner_mark("ours"), name], reverse=len(owners) % 2 == 0)}

    if len(ours) > 1:
        with pytest.raises(CommandError, match="more than one application"):
            finders().find(APPLICATION, inputs)
    else:
        assert finders().find(APPLICATION, inputs) == next(iter(ours), None)


def test_a_service_principal_is_found_by_its_applications_client_id(finders: FindersOf, world: ArmWorld) -> None:
    app_id = application(world, TAG).app_id
    assert finders().find(PRINCIPAL, {"clientId": app_id}) is None
    principal = world.cloud.directory.create_service_principal(app_id)
    assert finders().find(PRINCIPAL, {"clientId": app_id}) == f"/servicePrincipals/{principal.object_id}"


def register(world: ArmWorld, owner: Application, begin: datetime, key_id: str | None = None) -> str:
    """Register one more certificate; returns the id that azuread gives it."""
    issued = issue("kms-hc1", not_before=begin, lifetime=timedelta(days=90))
    key = KeyCredential.of(x509.load_pem_x509_certificate(issued.certificate_pem.encode()))
    key = key if key_id is None else replace(key, key_id=key_id)
    current = world.cloud.directory.application(owner.object_id)
    assert current is not None
    world.cloud.directory.set_key_credentials(owner.object_id, [*current.key_credentials, key])
    return f"{owner.object_id}/certificate/{key.key_id}"


def test_a_registration_is_found_by_the_second_its_certificate_begins(finders: FindersOf, world: ArmWorld) -> None:
    owner = application(world, TAG)
    register(world, owner, BEGIN)
    mine = register(world, owner, BEGIN + timedelta(seconds=1))
    inputs = {"applicationId": f"/applications/{owner.object_id}", "startDate": "2026-11-21T17:13:58Z"}
    assert finders().find(REGISTRATION, inputs) == mine
    assert finders({(REGISTRATION, mine)}).find(REGISTRATION, inputs) is None, (
        "the one in the state is not the one looked for"
    )
    assert finders().find(REGISTRATION, {**inputs, "startDate": "2027-01-05T17:13:58Z"}) is None


def test_a_registration_is_found_by_the_key_id_that_the_plan_knows(finders: FindersOf, world: ArmWorld) -> None:
    owner = application(world, TAG)
    register(world, owner, BEGIN)
    mine = register(world, owner, BEGIN, KEY_ID)
    inputs = {"applicationId": f"/applications/{owner.object_id}", "startDate": "2026-11-21T17:13:57Z"}
    assert finders().find(REGISTRATION, {**inputs, "keyId": KEY_ID.upper()}) == mine
    assert finders().find("idstack:index:SignInGate", {"registration": KEY_ID}) == KEY_ID
    assert finders({(REGISTRATION, mine)}).find(REGISTRATION, {**inputs, "keyId": KEY_ID}) is None
    assert finders().find(REGISTRATION, {**inputs, "keyId": KEY_ID.replace("4", "5")}) is None, (
        "a certificate of the same second is another one"
    )


def test_of_two_certificates_of_one_second_the_state_may_have_one(finders: FindersOf, world: ArmWorld) -> None:
    owner = application(world, TAG)
    first, second = (register(world, owner, BEGIN) for _ in range(2))
    inputs = {"applicationId": f"/applications/{owner.object_id}", "startDate": "2026-11-21T17:13:57Z"}
    assert finders({(REGISTRATION, first)}).find(REGISTRATION, inputs) == second
    with pytest.raises(CommandError, match="more than one certificate") as raised:
        finders().find(REGISTRATION, inputs)
    assert first in str(raised.value)
    assert second in str(raised.value)


@pytest.mark.parametrize(
    ("type_token", "inputs"),
    [
        (REGISTRATION, {"startDate": "2026-11-21T17:13:57Z"}),
        (PRINCIPAL, {}),
        (OWN_SECRET, {"vaultId": VAULT}),
        (APPLICATION, {"tags": []}),
        ("azure-native:authorization:RoleAssignment", {"scope": GROUP}),
        ("idstack:index:Certificate", {"commonName": "kms-hc1"}),
        ("idstack:index:SignInGate", {}),
        ("pulumi:providers:azure-native", {}),
    ],
)
def test_nothing_is_looked_for_without_what_names_it(
    finders: FindersOf, type_token: str, inputs: dict[str, Any]
) -> None:
    assert finders().find(type_token, inputs) is None


def obj(kind: str, name: str, namespace: str | None, api_version: str = "v1") -> dict[str, Any]:
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


@pytest.fixture
def inhabited(official: client.ApiClient) -> None:
    """A namespace with a ConfigMap, a Secret and a SecretProviderClass."""
    core = client.CoreV1Api(official)
    core.create_namespace(model(client.V1Namespace, obj("Namespace", "clusters-hc1", None)))
    core.create_namespaced_config_map("clusters-hc1", model(client.V1ConfigMap, config_map("azure-cloud-config", {})))
    secret = {**obj("Secret", "azure-cloud-config", "clusters-hc1"), "data": {"cloud.conf": "e30="}}
    core.create_namespaced_secret("clusters-hc1", model(client.V1Secret, secret))
    provider_class = obj("SecretProviderClass", "managed-azure-kms", "clusters-hc1", f"{CSI}/v1")
    body = {**provider_class, "spec": {"provider": "azure", "parameters": {}}}
    place = (CSI, "v1", "clusters-hc1", "secretproviderclasses")
    client.CustomObjectsApi(official).create_namespaced_custom_object(*place, body)


OBJECTS = [
    ("kubernetes:core/v1:Namespace", obj("Namespace", "clusters-hc1", None), "clusters-hc1"),
    (
        "kubernetes:core/v1:ConfigMap",
        obj("ConfigMap", "azure-cloud-config", "clusters-hc1"),
        "clusters-hc1/azure-cloud-config",
    ),
    (
        f"kubernetes:{CSI}/v1:SecretProviderClass",
        obj("SecretProviderClass", "managed-azure-kms", "clusters-hc1", f"{CSI}/v1"),
        "clusters-hc1/managed-azure-kms",
    ),
    ("kubernetes:core/v1:ConfigMap", obj("ConfigMap", "another", "clusters-hc1"), None),
    ("kubernetes:core/v1:ConfigMap", obj("ConfigMap", "azure-cloud-config", "elsewhere"), None),
    ("kubernetes:core/v1:Unknown", obj("Unknown", "x", "clusters-hc1"), None),
    ("kubernetes:example.com/v1:Unknown", obj("Unknown", "x", "clusters-hc1", "example.com/v1"), None),
]


@pytest.mark.usefixtures("inhabited")
def test_many_threads_find_objects_of_any_kind_by_namespace_and_name(
    finders: FindersOf, cluster: KubernetesObjects
) -> None:
    asked = OBJECTS * 5
    with ThreadPoolExecutor(len(asked)) as pool:
        found = list(pool.map(lambda case: finders(cluster=cluster).find(case[0], case[1]), asked))
    assert found == [expected for _, _, expected in asked]
    type_token, inputs, expected = OBJECTS[1]
    assert expected is not None
    secret = {("kubernetes:core/v1:Secret", expected)}
    assert finders(secret, cluster).find(type_token, inputs) == expected, "an object of another kind has its id"
    assert finders({(type_token, expected)}, cluster).find(type_token, inputs) is None
    assert finders().find(type_token, inputs) is None, "without a cluster no object is looked for"


@pytest.mark.usefixtures("inhabited")
def test_what_a_plan_masks_of_a_secret_is_read(finders: FindersOf, cluster: KubernetesObjects) -> None:
    inputs = obj("Secret", "azure-cloud-config", "clusters-hc1")
    assert finders(cluster=cluster).masked(inputs) == {"data": {"cloud.conf": "e30="}}
    assert finders(cluster=cluster).masked({**inputs, "kind": "ConfigMap"}) == {}


def test_a_principal_without_rights_gets_the_refusal(world: ArmWorld, cloud: Cloud, certificates: Certificates) -> None:
    vault, inputs = IN_ARM["azure-native:keyvault:Vault"]
    with AzureClient(cloud, IssuedTokens(world, world.principal()), str(certificates.ca_file)) as stranger:
        finders = Finders(stranger, None, world.cloud.subscription_id, frozenset())
        with pytest.raises(
            AzureRefusedError, match=rf"reading https://127.0.0.1:\d+{vault}: 403 .*AuthorizationFailed"
        ):
            finders.find("azure-native:keyvault:Vault", inputs)
        with pytest.raises(AzureRefusedError, match=r"reading .*/v1.0/applications: 403 .*Authorization_RequestDenied"):
            finders.find(APPLICATION, {"tags": [TAG]})


AKS: Final = {"resourceGroup": "aks", "name": "aks"}


def by_file(engine: FakeEngine, kubeconfig: Path, **more: str) -> AbstractContextManager[KubernetesObjects]:
    """The cluster of a stack whose configuration names this file."""
    engine.configures(subscriptionId="a-subscription", managementCluster={**AKS, "kubeconfig": str(kubeconfig), **more})
    return management_cluster(Engine("dev"))


def test_a_cluster_that_cannot_be_reached_is_reported(tmp_path: Path, kubeconfig: Path, engine: FakeEngine) -> None:
    silent = tmp_path / "silent"
    silent.write_text(kubeconfig.read_text().replace("https://127.0.0.1:", "https://127.0.0.2:"))
    reason = r"the API server at https://127\.0\.0\.2.* cannot be reached"
    with pytest.raises(AccessError, match=reason), by_file(engine, silent):
        pass
    with pytest.raises(AccessError, match="nowhere"), by_file(engine, kubeconfig, context="nowhere"):
        pass
    with pytest.raises(AzureRefusedError, match=r"^no role$"), by_file(engine, kubeconfig):
        raise AzureRefusedError("no role")  # of Azure, not of the cluster


def test_without_a_kubeconfig_file_recovery_signs_in_as_the_stack_does(
    kubeconfig: Path, certificates: Certificates, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = base64.b64encode(certificates.ca_file.read_bytes()).decode()
    text = kubeconfig.read_text().replace(
        f"certificate-authority: {certificates.ca_file}", f"certificate-authority-data: {authority}"
    )
    known = Kubeconfig.parse(text, "AKS's")
    asked: list[str] = []

    def as_the_stack(of: Engine) -> StackAccess:
        asked.append(of.stack)
        return StackAccess(known, LegacyLogin(), AksCluster("/id"))

    monkeypatch.setattr("ops.access.clients.stack_access", as_the_stack)
    engine.configures(managementCluster=AKS)
    with management_cluster(Engine("dev")) as found:
        assert found.read("v1", "Namespace", None, "default")
        assert not found.read("v1", "Namespace", None, "clusters-hc1")
    assert asked == ["dev"]

    known = known.only(known.chosen(), user={"token": "wrong"})
    with (
        pytest.raises(AccessError, match="does not accept the token"),
        management_cluster(Engine("dev")),
    ):
        pass

    with by_file(engine, kubeconfig) as found:
        assert found.read("v1", "Namespace", None, "default")
    assert asked == ["dev", "dev"], "a file that is named goes first"
