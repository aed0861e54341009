"""A literal world with one hosted cluster `hc1` in the public cloud: settings, lookups, arguments of components."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pulumi

from components.azure.context import ClusterContext, CredentialStore
from components.azure.control_plane_identity import ImportedCredential, summary_of
from components.azure.providers import Deployer
from components.azure.vault import Vault
from identity import catalogue, catalogue_rows
from identity.plugin_schema import CredentialDocument
from identity.settings import Settings, load_settings
from tests.unit import specification
from tests.unit.components.recorder import RecordingMonitor

SUBSCRIPTION, TENANT, GROUPS = specification.SUBSCRIPTION, specification.TENANT, specification.GROUPS
VNET, SUBNET, SECURITY_GROUP = specification.VNET, specification.SUBNET, specification.SECURITY_GROUP
DEPLOYER = "dddddddd-0000-4000-8000-000000000001"
DEPLOYER_CLIENT = "dddddddd-0000-4000-8000-000000000002"
ROTATION = {"enableSecretRotation": "true", "rotationPollInterval": "2m"}
ADD_ON = {"clientId": "aaaaaaaa-0000-4000-8000-000000000001", "objectId": "aaaaaaaa-0000-4000-8000-000000000002"}
REGISTRY = {"clientId": "bbbbbbbb-0000-4000-8000-000000000001", "principalId": "bbbbbbbb-0000-4000-8000-000000000002"}
KUBECONFIG = "apiVersion: v1\nkind: Config\n"

VAULT = f"{GROUPS}/identity-dev/providers/Microsoft.KeyVault/vaults/kv-idstack-dev"
MANAGEMENT_CLUSTER = f"{GROUPS}/aks-dev/providers/Microsoft.ContainerService/managedClusters/aks-mgmt-dev"
KMS_VAULT = f"{GROUPS}/etcd-dev/providers/Microsoft.KeyVault/vaults/kv-etcd-dev"
REGISTRY_IDENTITY = (
    f"{GROUPS}/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-image-registry"
)
IDENTITIES = tuple(identity for identity in catalogue.CONTROL_PLANE if identity.enabled_by_default)
"""The rows of the identities that `hc1` has: those that nobody has to switch on."""
MOUNTS = tuple((identity, mount) for identity in IDENTITIES for mount in identity.mounts)
"""Each mount of `hc1`, with the row of its identity."""
ROLES = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions"
DOCUMENT: CredentialDocument[pulumi.Input[str]] = {
    "file": "ciro.json",
    "clientId": REGISTRY["clientId"],
    "thumbprint": "0A1B",
    "notBefore": "2026-11-21T00:00:00Z",
    "notAfter": "2027-02-19T00:00:00Z",
    "renewAfter": "2027-01-05T00:00:00Z",
    "cannotRenewAfter": "2027-02-19T00:00:00Z",
}


def hosted_cluster(**changes: Any) -> dict[str, Any]:
    """The configuration of `hc1`."""
    return {
        "name": "hc1",
        "infraID": "hc1-infra",
        "issuerURL": "https://hc1oidc.blob.core.windows.net/hc1oidc",
        "resourceGroup": "hc1-managed",
        "vnetID": VNET,
        "subnetID": SUBNET,
        "securityGroupID": SECURITY_GROUP,
        "dnsZoneResourceGroup": "dns-dev",
        "kms": {
            "activeKey": "https://kv-etcd-dev.vault.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef",
            "keyVaultResourceGroup": "etcd-dev",
        },
        **changes,
    }


SECOND_CLUSTER = hosted_cluster(
    name="hc2", infraID="hc2-infra", issuerURL="https://hc2oidc.blob.core.windows.net/hc2oidc"
)


def with_managed_identity(credential: Mapping[str, str], **changes: Any) -> list[dict[str, Any]]:
    """`hostedClusters` in which the image registry's credential is issued elsewhere; `changes` are the identity's."""
    identity = {"source": "managed-identity", "resourceId": REGISTRY_IDENTITY, "credential": credential, **changes}
    return [hosted_cluster(identities={"imageRegistry": identity})]


def configuration(**changes: Any) -> dict[str, str]:
    """Pulumi's configuration of the stack, without the namespace; a change to None removes a key."""
    config: dict[str, Any] = {
        "cloud": "AzurePublicCloud",
        "tenantId": TENANT,
        "subscriptionId": SUBSCRIPTION,
        "location": "eastus",
        "resourceGroup": "identity-dev",
        "tags": {"team": "identity"},
        "vault": {"name": "kv-idstack-dev", "defaultAction": "Allow"},
        "managementCluster": {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "kubeconfig": "kubeconfig"},
        "probe": {"image": "idstack.azurecr.io/idstack/credential-probe:1.0"},
        "hostedClusters": [hosted_cluster()],
        **changes,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in config.items()
        if value is not None
    }


def settings(**changes: Any) -> Settings:
    """The stack's settings."""
    return load_settings(configuration(**changes), secret_keys=(), local=None)


def egress(**changes: Any) -> dict[str, Any]:
    """The egress load balancer of `hc1` as the provider answers it."""
    balancer = f"{GROUPS}/hc1-managed/providers/Microsoft.Network/loadBalancers/hc1-infra"
    frontend = {"id": f"{balancer}/frontendIPConfigurations/hc1-infra"}
    pool = {"id": f"{balancer}/backendAddressPools/hc1-infra"}
    return {
        "location": "eastus",
        "frontendIPConfigurations": [{**frontend, "publicIPAddress": {"id": f"{balancer}-address"}}],
        "outboundRules": [{"backendAddressPool": pool, "frontendIPConfigurations": [frontend]}],
        **changes,
    }


def lookups(**changes: Any) -> Mapping[str, Any]:
    """Azure where everything exists; `changes` are answers by the function's last word (`getVault=...`)."""
    answers: dict[str, Any | Callable[[Mapping[str, Any]], Any]] = {
        # Its own outputs, before the first `up`.
        "pulumi:pulumi:readStackOutputs": {"outputs": {}, "secretOutputNames": []},
        "pulumi:pulumi:readStackResourceOutputs": {"outputs": {}},
        "idstack:index:prefetchSecrets": {},
        "idstack:index:findObstacles": {"unregistered": [], "locks": {}},
        "azure-native:authorization:getClientConfig": {
            "tenantId": TENANT,
            "objectId": DEPLOYER,
            "clientId": DEPLOYER_CLIENT,
        },
        "azure-native:resources:getResourceGroup": {"location": "eastus"},
        "azure-native:network:getVirtualNetwork": {"location": "eastus"},
        "azure-native:network:getSubnet": {"networkSecurityGroup": {"id": SECURITY_GROUP}},
        "azure-native:network:getNetworkSecurityGroup": {"location": "eastus"},
        "azure-native:storage:getStorageAccount": {},
        "azure-native:containerregistry:getRegistry": {},
        "azure-native:network:getLoadBalancer": egress(),
        "azure-native:dns:getZone": {},
        "azure-native:privatedns:getPrivateZone": {"numberOfVirtualNetworkLinks": 1},
        "azure-native:privatedns:getVirtualNetworkLink": {"virtualNetwork": {"id": VNET}},
        "azure-native:keyvault:getVault": {},
        "azure-native:keyvault:getSecret": {"properties": {}},
        "azure-native:managedidentity:getUserAssignedIdentity": REGISTRY,
        "azure-native:containerservice:getManagedCluster": {
            "nodeResourceGroup": "MC_aks-dev_aks-mgmt-dev_eastus",
            "addonProfiles": {
                "azureKeyvaultSecretsProvider": {"enabled": True, "identity": ADD_ON, "config": ROTATION}
            },
            "networkProfile": {"networkPlugin": "azure", "networkPolicy": "azure", "networkDataplane": "azure"},
        },
    }
    for word, answer in changes.items():
        answers[next(token for token in answers if token.endswith(f":{word}"))] = answer
    return answers


def key_vault(**changes: Any) -> Vault:
    """The vault `kv-idstack-dev`; `changes` are keys of its settings."""
    configured = settings(vault={"name": "kv-idstack-dev", "defaultAction": "Allow", **changes})
    assert configured.vault is not None
    return Vault("vault", configured, configured.vault)


def store(made: Vault | None = None) -> CredentialStore:
    """The vault, with the add-on's identity as its key-vault-user; of another stack if this one has `made` none."""
    return CredentialStore(
        vault_id=VAULT,
        vault_uri="https://kv-idstack-dev.vault.azure.net/" if made is None else made.vault_uri,
        key_vault_user_client_id=ADD_ON["clientId"],
        vault=[] if made is None else [made],
    )


def context(made: Vault | None = None, **changes: Any) -> ClusterContext:
    """What the parts of `hc1` share; `changes` are those of the stack's configuration."""
    configured = settings(**changes)
    return ClusterContext(
        settings=configured,
        cluster=configured.hosted_clusters[0],
        store=store(made),
        deployer=Deployer(tenant_id=TENANT, object_id=DEPLOYER, is_service_principal=True),
        connection=None,
        stack_owner="an-owner-id",
    )


def imported_credential(document: CredentialDocument[pulumi.Input[str]] | None = None) -> ImportedCredential:
    """The credential of the managed identity of `REGISTRY`: in a file, or in the vault already."""
    summary = summary_of(DOCUMENT if document is None else document)
    ids = {"client_id": REGISTRY["clientId"], "principal_id": REGISTRY["principalId"]}
    return ImportedCredential(**ids, document=document, summary=summary)


def row(field: str) -> catalogue_rows.ControlPlaneIdentity:
    """The catalogue's row of that field."""
    return next(identity for identity in catalogue.CONTROL_PLANE if identity.field == field)


def grants(recorder: RecordingMonitor, component: str) -> set[tuple[str, str]]:
    """Role (its GUID) and scope of every role that a component assigns to its identity."""
    return {
        (resource.inputs["roleDefinitionId"].removeprefix(f"{ROLES}/"), resource.inputs["scope"])
        for resource in recorder.all("azure-native:authorization:RoleAssignment")
        if resource.parent == f"{component}-roles"
    }
