"""A literal world with one hosted cluster `hc1` in the public cloud: settings, lookups, arguments of components."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi

from components.azure.context import ClusterContext, CredentialStore
from components.azure.control_plane_identity import ImportedCredential, summary_of
from components.azure.providers import Deployer
from components.azure.vault import Vault
from identity import catalogue, catalogue_rows
from identity.plugin_schema import CredentialDocument
from identity.settings import Settings, load_settings
from tests.unit import cases, specification
from tests.unit.components.recorder import RecordingMonitor

SUBSCRIPTION, TENANT, GROUPS = specification.SUBSCRIPTION, specification.TENANT, specification.GROUPS
VNET, SUBNET, SECURITY_GROUP = specification.VNET, specification.SUBNET, specification.SECURITY_GROUP
DEPLOYER = "dddddddd-0000-4000-8000-000000000001"
DEPLOYER_CLIENT = "dddddddd-0000-4000-8000-000000000002"
KUBECONFIG = "apiVersion: v1\nkind: Config\n"

VAULT = f"{GROUPS}/identity-dev/providers/Microsoft.KeyVault/vaults/kv-idstack-dev"
MANAGEMENT_CLUSTER = f"{GROUPS}/aks-dev/providers/Microsoft.ContainerService/managedClusters/aks-mgmt-dev"
KMS_VAULT = f"{GROUPS}/etcd-dev/providers/Microsoft.KeyVault/vaults/kv-etcd-dev"
REGISTRY_IDENTITY = (
    f"{GROUPS}/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-image-registry"
)
EGRESS = f"{GROUPS}/hc1-managed/providers/Microsoft.Network/loadBalancers/hc1-infra"
_WORLD = cases.read(Path(__file__).with_name("world.yaml"), globals())
_LOOKUPS = _WORLD["lookups"]
_ADD_ON = _LOOKUPS["azure-native:containerservice:getManagedCluster"]["addonProfiles"]["azureKeyvaultSecretsProvider"]
ADD_ON, ROTATION = _ADD_ON["identity"], _ADD_ON["config"]
REGISTRY = _LOOKUPS["azure-native:managedidentity:getUserAssignedIdentity"]
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
    return {**copy.deepcopy(_WORLD["hosted cluster"]), **changes}


SECOND_CLUSTER = hosted_cluster(
    name="hc2", infraID="hc2-infra", issuerURL="https://hc2oidc.blob.core.windows.net/hc2oidc"
)


def with_managed_identity(credential: Mapping[str, str], **changes: Any) -> list[dict[str, Any]]:
    """`hostedClusters` in which the image registry's credential is issued elsewhere; `changes` are the identity's."""
    identity = {"source": "managed-identity", "resourceId": REGISTRY_IDENTITY, "credential": credential, **changes}
    return [hosted_cluster(identities={"imageRegistry": identity})]


def configuration(**changes: Any) -> dict[str, str]:
    """Pulumi's configuration of the stack, without the namespace; a change to None removes a key."""
    config = {**_WORLD["configuration"], "hostedClusters": [hosted_cluster()], **changes}
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
    return {**copy.deepcopy(_LOOKUPS["azure-native:network:getLoadBalancer"]), **changes}


def lookups(**changes: Any) -> Mapping[str, Any]:
    """Azure where everything exists; `changes` are answers by the function's last word (`getVault=...`)."""
    answers: dict[str, Any | Callable[[Mapping[str, Any]], Any]] = copy.deepcopy(_LOOKUPS)
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
