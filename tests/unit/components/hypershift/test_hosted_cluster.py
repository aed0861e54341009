"""One hosted cluster: its identities with their roles, and the identity part of its HostedCluster."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from identity.credentials import rfc3339
from identity.credentials.schedule import age_when_due
from identity.naming import kebab
from tests.unit import cases
from tests.unit.components import world
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.simulation import a_uuid, issued
from tests.unit.components.world import (
    IDENTITIES,
    SECURITY_GROUP,
    grants,
    hosted_cluster,
    lookups,
)
from tests.unit.specification import GROUPS, specification

MANAGED, NSG, NETWORK, DNS = (f"{GROUPS}/{name}" for name in ("hc1-managed", "hc1-nsg", "hc1-network", "dns-dev"))

ROUTES = f"{GROUPS}/hub/providers/Microsoft.Network/routeTables/routes"
NAT = f"{GROUPS}/hub/providers/Microsoft.Network/natGateways/nat"
PUBLIC_ZONE = f"{GROUPS}/dns-dev/providers/Microsoft.Network/dnszones/example.com"
PRIVATE_ZONE = f"{GROUPS}/hub/providers/Microsoft.Network/privateDnsZones/hc1.example.com"
# The kind of roles, the identity's component
GRANTS = {
    (roles, component): {(role, scope) for role, scopes in granted.items() for scope in scopes}
    for roles, components in cases.read(Path(__file__).with_name("roles.yaml"), {**vars(world), **globals()}).items()
    for component, granted in components.items()
}
INGRESS, FILE = "0336e1d3-7a87-462b-b6db-342b63f7802c", "0d7aedc0-15fd-4a67-a412-efad370c947e"

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


@pytest.fixture(scope="module")
def with_roles(program: Program, stack: RecordingMonitor) -> dict[str, RecordingMonitor]:
    """The stack with each kind of roles."""
    dns = {"baseDomain": "example.com", "publicZoneID": PUBLIC_ZONE, "privateZoneID": PRIVATE_ZONE}
    cluster = hosted_cluster(routeTableID=ROUTES, natGatewayID=NAT, dns=dns)
    subnet = {"networkSecurityGroup": {"id": SECURITY_GROUP}, "routeTable": {"id": ROUTES}, "natGateway": {"id": NAT}}
    builtin = program(
        invokes=lookups(getSubnet=subnet), roles="builtin", clusterSide="hypershift", hostedClusters=[cluster]
    )
    return {"hypershift": stack, "builtin": builtin}


@pytest.mark.parametrize(("roles", "component"), GRANTS)
def test_an_identity_has_its_role_at_each_of_its_scopes(
    with_roles: dict[str, RecordingMonitor], roles: str, component: str
) -> None:
    assert grants(with_roles[roles], f"hc1-{component}") == GRANTS[roles, component]


def test_with_builtin_roles_a_role_is_not_assigned_again_inside_of_its_scope(program: Program) -> None:
    inside = {key: hosted_cluster()[key].replace("/hc1-network/", "/hc1-managed/") for key in ("vnetID", "subnetID")}
    recorder = program(
        invokes=lookups(getPrivateZone={"numberOfVirtualNetworkLinks": 1}),
        roles="builtin",
        clusterSide="hypershift",
        hostedClusters=[hosted_cluster(**inside)],
    )

    assert grants(recorder, "hc1-ingress") == {(INGRESS, MANAGED), (INGRESS, DNS)}
    assert grants(recorder, "hc1-file") == {(FILE, MANAGED), (FILE, SECURITY_GROUP)}


def test_a_role_that_an_identity_keeps_is_at_the_same_scopes(program: Program) -> None:
    kept = "7d8bb4e4-6fa7-4545-96cf-20fce11b705d"
    cluster = hosted_cluster(identities={"controlPlaneOperator": {"customRole": kept}})
    recorder = program(hostedClusters=[cluster], clusterSide="hypershift")

    usual = GRANTS["hypershift", "control-plane-operator"]
    assert grants(recorder, "hc1-control-plane-operator") == {(kept, scope) for _, scope in usual}
    assert grants(recorder, "hc1-disk") == GRANTS["hypershift", "disk"]


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
