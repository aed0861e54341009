"""What the checks expect, out of a state."""

from __future__ import annotations

from typing import Any

import pytest

from identity.azure.records import FederatedCredentialRecord
from identity.catalogue import CONTROL_PLANE
from ops.world.expected import ExpectedIssuer, StateRole, accesses, expected
from tests.unit.ops.stacks import output
from tests.unit.ops.states import below, grants, identity, with_parents, workload
from tests.unit.ops.states import cluster as hosted_cluster

KMS_IDENTITY = identity("hc1", "kms")
KMS = next(row for row in CONTROL_PLANE if row.field == "kms")


def stack(**outputs: Any) -> Any:
    return below(None, "pulumi:pulumi:Stack", "idstack-dev", outputs=outputs)


def role(roles: Any, word: str, **changes: Any) -> Any:
    name = f"{roles['urn'].rpartition('::')[2]}-{word}"
    inputs = {"principalId": f"{name}-principal", "roleDefinitionId": "/roles/r", "scope": "/scope"}
    return below(
        roles, "azure-native:authorization:RoleAssignment", name, id=f"/scope/{name}", inputs=inputs, **changes
    )


def state(*resources: Any, pending: tuple[Any, ...] = ()) -> Any:
    return {"version": 3, "deployment": {"resources": with_parents(*resources), "pending_operations": list(pending)}}


def cluster(**identities: Any) -> dict[str, Any]:
    return {"hc1": {"namespace": "clusters", "controlPlane": identities}}


def outputs(side: str = "stack") -> dict[str, Any]:
    identities = {
        "kms": output(KMS.secret_provider_class, "kms-hc1-json"),
        "ingress": output("managed-azure-ingress", "ingress-hc1-json", generation="a2"),
    }
    return {"clusterSide": side, "keyVaultName": "kv", "hostedClusters": cluster(**identities)}


def test_an_identity_has_its_own_roles_and_the_reader_those_of_the_vault() -> None:
    found = expected(
        state(
            stack(**outputs()),
            role(grants(identity("hc1", "ingress")), "dns"),
            role(grants(identity("hc1", "ingress")), "vnet", delete=True),
            role(grants(identity("hc10", "ingress")), "dns"),
            role(grants(identity("hc1", "kms")), "kms-vault-kv"),
            role(grants(KMS_IDENTITY, "reader"), "secret"),
            role(grants(None), "vault"),
        )
    )

    assert {
        expected_identity.identity: [role.resource for role in expected_identity.roles]
        for expected_identity in found.identities
    } == {
        "ingress": ["hc1-ingress-roles-dns"],
        "kms": ["hc1-kms-roles-kms-vault-kv"],
    }
    assert [reader_role.id for reader_role in found.reader_roles] == ["/scope/key-vault-user-roles-vault"]
    of_secrets = {one.identity: [role.resource for role in one.reader_roles] for one in found.identities}
    assert of_secrets == {"ingress": [], "kms": ["hc1-kms-reader-secret"]}, "it may be on each secret"
    assert [expected_identity.generation for expected_identity in found.identities] == ["a2", None]


ISSUER = "https://hc1oidc.blob.core.windows.net/hc1oidc"
SUBJECT = "system:serviceaccount:kube-system:kms-provider"
CREDENTIAL = {"issuer": ISSUER, "subject": SUBJECT, "audiences": ["openshift"]}
FEDERATED = "azure-native:managedidentity:FederatedIdentityCredential"
MANAGED_IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
DOCUMENTS: tuple[str, Any, Any] = (
    "idstack:index:IssuerDocuments",
    {"issuer": ISSUER, "keys": [{"jwk": {"kid": "kid-1"}}]},
    {},
)
OWN_KEY: tuple[str, Any, Any] = ("idstack:index:SigningKey", {}, {"keyId": "kid-2"})


@pytest.mark.parametrize(
    ("kind", "name", "issuer"),
    [
        (DOCUMENTS, "hc1", ExpectedIssuer(address=ISSUER, keys=("kid-1",), is_ours=True)),
        (OWN_KEY, "hc1", ExpectedIssuer(address=ISSUER, keys=("kid-2",), is_ours=False)),
        (OWN_KEY, "hc10", ExpectedIssuer(address=ISSUER, keys=(), is_ours=False)),
    ],
    ids=["made", "existing", "no-key"],
)
def test_a_workload_identity_has_what_a_token_is_compared_with(
    kind: tuple[str, Any, Any], name: str, issuer: ExpectedIssuer
) -> None:
    kms_identity, disk_identity = (workload("hc1", field) for field in ("kms", "disk"))

    hosted = {"namespace": "clusters", "controlPlane": {}, "dataPlane": {"kms": "client"}}
    clusters = {"hc1": {**hosted, "hostedClusterSpec": {"issuerURL": ISSUER}}}

    found = expected(
        state(
            stack(clusterSide="hypershift", hostedClusters=clusters),
            below(kms_identity, MANAGED_IDENTITY, "an-identity", id="/id/kms"),
            below(kms_identity, FEDERATED, "a-credential", id="/id/1", inputs=CREDENTIAL),
            below(disk_identity, FEDERATED, "another-credential", id="/id/2", inputs=CREDENTIAL),
            below(hosted_cluster(name), kind[0], "a-name", id="/id/3", inputs=kind[1], outputs=kind[2]),
        )
    )

    [kms] = found.guests
    credential = FederatedCredentialRecord.of({"id": "/id/1", "name": "a-credential", "properties": CREDENTIAL})
    assert (kms.resource_id, kms.client_id) == ("/id/kms", "client")
    assert (kms.credentials, kms.issuer) == ((credential,), issuer)
    [described] = cluster(kms=output(KMS.secret_provider_class, "kms-hc1-json")).values()
    managed = {**described, "dataPlane": {"diskMSIClientID": "client"}, "hostedClusterSpec": {"issuerURL": ISSUER}}
    [disk] = expected(state(stack(hostedClusters={"hc1": managed}))).guests
    assert (disk.issuer, disk.resource_id) == (None, ""), "of a managed cluster it is expected if the stack makes it"


def test_a_certificate_counts_once_it_is_in_the_vault_and_not_by_the_outputs() -> None:
    token = "idstack:index:CredentialSecret"
    written = {"thumbprint": "DE11", "generation": "a1"}
    secret = below(identity("hc1", "ingress"), token, "a-secret", id="x", inputs=written)

    found = {
        expected_identity.identity: expected_identity
        for expected_identity in expected(state(stack(**outputs()), secret)).identities
    }

    assert (found["ingress"].thumbprint, found["ingress"].generation) == ("DE11", "a1")
    assert found["kms"].thumbprint == output("", "")["thumbprint"], "another tool stored it"


def test_probes_are_expected_where_the_stack_makes_the_cluster_side() -> None:
    *_, kms = expected(state(stack(**outputs()))).identities

    assert [(mount.deployment, mount.container, mount.path) for mount in kms.mounts] == [
        ("probe-kms", "credential-probe", "/mnt/certs"),
        ("probe-kms-2", "credential-probe", "/mnt/kms"),
    ]
    assert kms.namespace == "clusters-hc1"
    *_, of_hypershift = expected(state(stack(**outputs("hypershift")))).identities
    assert [mount.deployment for mount in of_hypershift.mounts] == [mount.deployment for mount in KMS.mounts]
    assert of_hypershift.hosted_cluster_path == KMS.hosted_cluster_path


def test_a_stack_without_outputs_was_never_brought_up_and_a_vaults_rules_are_those_of_its_inputs() -> None:
    properties = {"publicNetworkAccess": "Enabled", "networkAcls": {"defaultAction": "Deny"}}
    vault = below(None, "azure-native:keyvault:Vault", "vault-vault", id="x", inputs={"properties": properties})
    own = expected(state(stack(**outputs()), vault)).own_vault
    assert own is not None
    assert (own.public_network_access, own.default_action) == ("Enabled", "Deny")
    assert expected(state(stack(**outputs()))).own_vault is None
    found = expected({"version": 3, "deployment": {"resources": None}})

    assert (found.is_up, found.identities, found.reader_roles) == (False, (), ())
    operation = {"type": "creating", "resource": role(grants(identity("hc1", "ingress")), "dns")}
    assert expected(state(pending=(operation,))).pending == ("creating hc1-ingress-roles-dns",)


GROUPS = "/subscriptions/s/resourceGroups"
NETWORK = f"{GROUPS}/net/providers/Microsoft.Network"
VNET = f"{NETWORK}/virtualNetworks/vnet"
SUBNET = f"{VNET}/subnets/default"
NSG = f"{GROUPS}/nsg/providers/Microsoft.Network/networkSecurityGroups/nsg"
ROUTES = f"{NETWORK}/routeTables/routes"
VAULT = f"{GROUPS}/etcd/providers/Microsoft.KeyVault/vaults/kv"
NETWORK_OF = {"subscriptionID": "s", "vnetID": VNET, "subnetID": SUBNET, "securityGroupID": NSG}
TYPES = {
    VNET: "Microsoft.Network/virtualNetworks",
    SUBNET: "Microsoft.Network/virtualNetworks/subnets",
    NSG: "Microsoft.Network/networkSecurityGroups",
}


def places(spec: Any, **scopes: str) -> dict[str, str]:
    """The resource type by scope, for roles at these scopes by the last word of their names."""
    same: Any = {"principal_id": "p", "principal_type": None, "role_definition_id": "r"}
    roles = [StateRole(resource=f"hc1-x-roles-{word}", id=word, scope=scope, **same) for word, scope in scopes.items()]
    return {access.scope: access.type for access in accesses(roles, spec)}


@pytest.mark.parametrize(
    ("scopes", "expected_places"),
    [
        ({"managed": f"{GROUPS}/NET"}, {f"{GROUPS}/NET": "", VNET: TYPES[VNET], SUBNET: TYPES[SUBNET]}),
        (
            {"managed": f"{GROUPS}/managed", "nsg": f"{GROUPS}/nsg", "vnet": f"{GROUPS}/net", "dns": f"{GROUPS}/dns"},
            {f"{GROUPS}/managed": "", **TYPES, f"{GROUPS}/dns": "Microsoft.Network/dnsZones"},
        ),
        (
            {"managed": f"{GROUPS}/managed", "subnet": SUBNET, "routes": ROUTES},
            {f"{GROUPS}/managed": "", SUBNET: TYPES[SUBNET], ROUTES: "Microsoft.Network/routeTables"},
        ),
        ({"network": VNET}, {VNET: TYPES[VNET], SUBNET: TYPES[SUBNET]}),
        ({"vault": VAULT}, {VAULT: "Microsoft.KeyVault/vaults"}),
        ({}, {}),
    ],
    ids=["one group for everything", "groups", "resources", "network and subnet", "a vault", "nothing"],
)
def test_a_role_is_needed_at_the_places_within_its_scope(
    scopes: dict[str, str], expected_places: dict[str, str]
) -> None:
    group = scopes.get("managed", "managed").rpartition("/")[2].lower()

    assert places({"platform": {"azure": {**NETWORK_OF, "resourceGroup": group}}}, **scopes) == expected_places
