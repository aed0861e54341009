"""One hosted cluster: its identities with their roles, and the identity part of its HostedCluster."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from identity.credentials import rfc3339
from identity.credentials.schedule import age_when_due
from identity.naming import kebab
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.simulation import a_uuid, issued
from tests.unit.components.world import (
    IDENTITIES,
    KMS_VAULT,
    SECURITY_GROUP,
    SUBNET,
    VNET,
    grants,
    hosted_cluster,
    lookups,
)
from tests.unit.specification import GROUPS, specification

MANAGED, NSG, NETWORK, DNS = (f"{GROUPS}/{name}" for name in ("hc1-managed", "hc1-nsg", "hc1-network", "dns-dev"))

# component: the role that HyperShift's CLI assigns, scopes
ROLES = {
    "cloud-provider": ("a1f96423-95ce-4224-ab27-4e3dc72facd4", {MANAGED, NSG, NETWORK}),
    "ingress": ("0336e1d3-7a87-462b-b6db-342b63f7802c", {MANAGED, NETWORK, DNS}),
    "file": ("0d7aedc0-15fd-4a67-a412-efad370c947e", {MANAGED, NSG, NETWORK}),
    "disk": ("5b7237c5-45e1-49d6-bc18-a1f62f400748", {MANAGED}),
    "network": ("be7a6435-15ae-4171-8f30-4a343eff9e8f", {MANAGED, NETWORK}),
    "image-registry": ("8b32b316-c2f5-4ddf-b05b-83dacd2d08b5", {MANAGED}),
    "control-plane-operator": ("b24988ac-6180-42a0-ab88-20f7382dd24c", {MANAGED, NSG, NETWORK}),
    "node-pool-management": ("b24988ac-6180-42a0-ab88-20f7382dd24c", {MANAGED, NETWORK}),
    "kms": ("12338af0-0e69-4776-bea7-57ae8d297424", {KMS_VAULT}),
}
ROUTES = f"{GROUPS}/hub/providers/Microsoft.Network/routeTables/routes"
NAT = f"{GROUPS}/hub/providers/Microsoft.Network/natGateways/nat"
PUBLIC_ZONE = f"{GROUPS}/dns-dev/providers/Microsoft.Network/dnszones/example.com"
PRIVATE_ZONE = f"{GROUPS}/hub/providers/Microsoft.Network/privateDnsZones/hc1.example.com"
# Production's roles at the resources of Azure/ARO-HCP's bicep and validation.
PRODUCTION = {
    "cloud-provider": ("a1f96423-95ce-4224-ab27-4e3dc72facd4", {MANAGED, SUBNET, SECURITY_GROUP, ROUTES, NAT}),
    "ingress": ("0336e1d3-7a87-462b-b6db-342b63f7802c", {MANAGED, SUBNET, PUBLIC_ZONE, PRIVATE_ZONE}),
    "file": ("0d7aedc0-15fd-4a67-a412-efad370c947e", {MANAGED, VNET, SECURITY_GROUP, ROUTES, NAT}),
    "disk": ("5b7237c5-45e1-49d6-bc18-a1f62f400748", {MANAGED}),
    "network": ("be7a6435-15ae-4171-8f30-4a343eff9e8f", {MANAGED, VNET}),
    "image-registry": ("8b32b316-c2f5-4ddf-b05b-83dacd2d08b5", {MANAGED, VNET}),
    "control-plane-operator": ("fc0c873f-45e9-4d0d-a7d1-585aab30c6ed", {MANAGED, VNET, SECURITY_GROUP}),
    "node-pool-management": ("88366f10-ed47-4cc0-9fab-c8a06148393e", {MANAGED, SUBNET}),
    "kms": ("12338af0-0e69-4776-bea7-57ae8d297424", {KMS_VAULT}),
    "data-plane-file": ("0d7aedc0-15fd-4a67-a412-efad370c947e", {MANAGED, VNET, SECURITY_GROUP, ROUTES, NAT}),
    "data-plane-disk": ("5b7237c5-45e1-49d6-bc18-a1f62f400748", {MANAGED}),
    "data-plane-image-registry": ("8b32b316-c2f5-4ddf-b05b-83dacd2d08b5", {MANAGED, VNET}),
}

NOT_BEFORE = datetime(2026, 11, 21, 8, 55, tzinfo=UTC)

# field: component, secret, SecretProviderClass
SECRETS = {
    identity.field: (kebab(identity.field), f"{identity.secret_stem}-hc1-json", identity.secret_provider_class)
    for identity in IDENTITIES
}

DATA_PLANE = {
    "imageRegistryMSIClientID": a_uuid("hc1-data-plane-image-registry-identity", "client"),
    "diskMSIClientID": a_uuid("hc1-data-plane-disk-identity", "client"),
    "fileMSIClientID": a_uuid("hc1-data-plane-file-identity", "client"),
}


def managed_identity(field: str) -> dict[str, str]:
    """The API's ManagedIdentity object of one identity."""
    component, secret, _ = SECRETS[field]
    return {
        "clientID": a_uuid(f"hc1-{component}-entra-application", "client"),
        "credentialsSecretName": secret,
        "objectEncoding": "utf-8",
    }


SPEC = specification(
    control_plane={
        identity.field: managed_identity(identity.field)
        for identity in IDENTITIES
        if identity.hosted_cluster_path and identity.hosted_cluster_path[-2] == "controlPlane"
    },
    data_plane=DATA_PLANE,
    kms=managed_identity("kms"),
)


def test_the_specification_has_every_identity_where_the_api_wants_it(stack: RecordingMonitor) -> None:
    assert stack.outputs_of("hc1")["spec"] == SPEC


def test_the_outputs_have_a_row_for_each_identity(stack: RecordingMonitor) -> None:
    outputs = stack.outputs_of("hc1")

    assert outputs["data_plane"] == DATA_PLANE
    assert outputs["control_plane"] == {
        field: {
            **managed_identity(field),
            "secretProviderClass": secret_provider_class,
            "notAfter": "2027-02-19T08:55:00Z",
            "renewAfter": rfc3339.render(NOT_BEFORE + age_when_due(90, 45, secret)),
            "thumbprint": issued("a").thumbprint,
            "generation": "a1",
        }
        for field, (_, secret, secret_provider_class) in SECRETS.items()
    }


@pytest.mark.parametrize("component", ROLES)
def test_an_identity_has_the_role_of_hypershifts_cli_at_each_of_its_scopes(
    stack: RecordingMonitor, component: str
) -> None:
    role, scopes = ROLES[component]

    assert grants(stack, f"hc1-{component}") == {(role, scope) for scope in scopes}


@pytest.fixture(scope="module")
def with_production_roles(program: Program) -> RecordingMonitor:
    dns = {"baseDomain": "example.com", "publicZoneID": PUBLIC_ZONE, "privateZoneID": PRIVATE_ZONE}
    cluster = hosted_cluster(routeTableID=ROUTES, natGatewayID=NAT, dns=dns)
    subnet = {"networkSecurityGroup": {"id": SECURITY_GROUP}, "routeTable": {"id": ROUTES}, "natGateway": {"id": NAT}}
    return program(
        invokes=lookups(getSubnet=subnet), roles="builtin", clusterSide="hypershift", hostedClusters=[cluster]
    )


@pytest.mark.parametrize("component", PRODUCTION)
def test_with_builtin_roles_an_identity_has_productions_role_at_the_resources(
    with_production_roles: RecordingMonitor, component: str
) -> None:
    role, scopes = PRODUCTION[component]

    assert grants(with_production_roles, f"hc1-{component}") == {(role, scope) for scope in scopes}


def test_with_builtin_roles_a_role_is_not_assigned_again_inside_of_its_scope(program: Program) -> None:
    inside = {key: hosted_cluster()[key].replace("/hc1-network/", "/hc1-managed/") for key in ("vnetID", "subnetID")}
    recorder = program(
        invokes=lookups(getPrivateZone={"numberOfVirtualNetworkLinks": 1}),
        roles="builtin",
        clusterSide="hypershift",
        hostedClusters=[hosted_cluster(**inside)],
    )

    role, _ = PRODUCTION["ingress"]
    assert grants(recorder, "hc1-ingress") == {(role, MANAGED), (role, DNS)}
    role, _ = PRODUCTION["file"]
    assert grants(recorder, "hc1-file") == {(role, MANAGED), (role, SECURITY_GROUP)}


def test_a_role_that_an_identity_keeps_is_at_the_same_scopes(program: Program) -> None:
    kept = "7d8bb4e4-6fa7-4545-96cf-20fce11b705d"
    cluster = hosted_cluster(identities={"controlPlaneOperator": {"customRole": kept}})
    recorder = program(hostedClusters=[cluster], clusterSide="hypershift")

    _, scopes = ROLES["control-plane-operator"]
    assert grants(recorder, "hc1-control-plane-operator") == {(kept, scope) for scope in scopes}
    assert grants(recorder, "hc1-disk") == {(ROLES["disk"][0], MANAGED)}


def test_an_identity_that_is_off_has_no_key_in_the_specification(program: Program) -> None:
    """The guest's image registry keeps its own: HyperShift skips the control plane's only."""
    cluster = hosted_cluster(identities={"imageRegistry": {"enabled": False}})
    outputs = program(hostedClusters=[cluster], clusterSide="hypershift").outputs_of("hc1")
    identities = outputs["spec"]["platform"]["azure"]["azureAuthenticationConfig"]["managedIdentities"]

    assert "imageRegistry" not in identities["controlPlane"]
    assert "imageRegistry" not in outputs["control_plane"]
    assert outputs["data_plane"] == DATA_PLANE


def test_secrets_can_be_named_and_encoded_otherwise(program: Program) -> None:
    own = {"kms": {"secretName": "etcd", "objectEncoding": "hex"}}
    recorder = program(hostedClusters=[hosted_cluster(objectEncoding="base64", identities=own)])

    outputs = recorder.outputs_of("hc1")
    kms = outputs["spec"]["secretEncryption"]["kms"]["azure"]["kms"]
    assert (kms["credentialsSecretName"], kms["objectEncoding"]) == ("etcd", "hex")
    found = {field: identity["objectEncoding"] for field, identity in outputs["control_plane"].items()}
    assert found == {**dict.fromkeys(SECRETS, "base64"), "kms": "hex"}
    secret = recorder.one("idstack:index:CredentialSecret", "hc1-kms-credential-secret").inputs
    schedule = recorder.one("idstack:index:RenewalSchedule", "hc1-kms-entra-schedule").inputs
    assert [(resource["secretName"], resource["objectEncoding"]) for resource in (secret, schedule)] == [
        ("etcd", "hex")
    ] * 2
    secret_provider_class = recorder.one(
        "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass", "hc1-cluster-side-kms-class-object"
    )
    objects = secret_provider_class.inputs["spec"]["parameters"]["objects"]
    assert objects == "\narray:\n  - |\n    objectName: etcd\n    objectEncoding: hex\n    objectType: secret\n"
