"""The keys of the configuration. Attribute names are Python's; the stack file spells them in camelCase.

Every model is frozen and refuses unknown keys. What follows from other values (a cluster's location, its secrets'
names) is filled in before validation (`defaults.py`), so an attribute that is not optional here always has its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import (
    Field,
    SecretStr,
    SkipValidation,
    StrictBool,
    StrictInt,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from identity import naming
from identity.catalogue_rows import ControlPlaneIdentity
from identity.clouds import CLOUDS, LOCAL_CLOUD, Cloud
from identity.credentials.certificate import KEY_SIZES
from identity.settings import arm_ids, types
from identity.settings.access import AccessSettings
from identity.settings.base import Model
from identity.settings.creation import CreationSettings
from identity.settings.problems import enumerate_words
from identity.settings.value_spec import ValueSpec, integer, refused
from identity.settings.workloads import WorkloadSettings


class VaultSettings(Model):
    """The Key Vault that holds the credentials of all hosted clusters of the stack."""

    name: types.VaultName
    soft_delete_retention_days: Annotated[StrictInt, integer(7, 90, "days")] = 90
    purge_protection: StrictBool = True
    public_network_access: StrictBool = True
    # For callers that neither list allows.
    default_action: Literal["Allow", "Deny"] = "Deny"
    allowed_ip_ranges: tuple[types.IpRange, ...] = ()
    allowed_subnet_ids: tuple[arm_ids.SubnetId, ...] = ()


class KeyVaultUserSettings(Model):
    """The identity with which the CSI driver reads the vault."""

    source: Literal["aks-addon", "existing", "created"] = "aks-addon"
    # Of an existing one.
    client_id: types.ClientId | None = None
    object_id: types.ObjectId | None = None
    # Of the one to create.
    name: types.ManagedIdentityName | None = None


class ManagementClusterSettings(Model):
    """The AKS cluster on which the hosted control planes run."""

    resource_group: types.ResourceGroup
    name: types.ManagedClusterName
    # What the stack makes it of; without it the cluster exists already.
    create: CreationSettings | None = None
    access: AccessSettings = AccessSettings()
    # One of the user's own, instead of `access`.
    kubeconfig: types.FilePath | None = None
    context: types.NonEmpty | None = None


class PropagationSettings(Model):
    """When a certificate counts as known to Entra ID: so many sign-ins in a row, spread over the settle time."""

    successes: Annotated[StrictInt, integer(1, 100, "sign-ins in a row")] = 5
    settle_seconds: Annotated[StrictInt, integer(0, 3600, "seconds")] = 30
    timeout_seconds: Annotated[StrictInt, integer(1, 7200, "seconds")] = 600


def _key_size(bits: int) -> int:
    if bits not in KEY_SIZES:
        raise ValueError
    return bits


class CredentialSettings(Model):
    """Life and renewal of the certificates that the stack issues."""

    lifetime_days: Annotated[StrictInt, integer(2, 730, "days")] = 90
    renew_before_days: Annotated[StrictInt, integer(1, 729, "days")] = 45
    key_size: Annotated[
        StrictInt,
        ValueSpec(
            accepted=f"the bits of an RSA key: {enumerate_words(map(str, KEY_SIZES), last='or')}",
            blank=str(KEY_SIZES[0]),
            check=_key_size,
        ),
    ] = KEY_SIZES[0]
    # `hold` keeps the certificates there are; pull-request previews use it.
    renewal: Literal["auto", "hold"] = "auto"
    propagation: PropagationSettings = PropagationSettings()


class ProbeSettings(Model):
    """The credential probe; `clusterSide: stack` needs its image."""

    image: types.Image | None = None


class KmsKey(Model):
    """One version of the key that encrypts etcd."""

    key_vault_name: types.VaultName
    key_name: types.KeyName
    key_version: types.KeyVersion


_KEY_URL: Final = re.compile(r"https://([^/.]+)\.([^/]+)/keys/([^/]+)/([^/]+)/?")


class KmsSettings(Model):
    """Encryption of etcd; `key_vault_resource_group` is the stack's own unless given."""

    active_key: Annotated[
        KmsKey,
        ValueSpec(
            accepted="a mapping with keyVaultName, keyName and keyVersion, or the key's URL "
            "https://<vault>.<the cloud's vault suffix>/keys/<key>/<version>",
            blank="<url>",
            check=lambda key: key,
            hint="`az keyvault key show --vault-name <vault> --name <key> --query key.kid` prints it",
        ),
    ]
    key_vault_resource_group: types.ResourceGroup

    @field_validator("active_key", mode="before")
    @classmethod
    def _take_url_apart(cls, key: Any, info: ValidationInfo) -> Any:
        """Read a key's URL; the validation's context is the stack's cloud, or what stands there instead."""
        if not isinstance(key, str):
            return key
        match = _KEY_URL.fullmatch(key)
        if match is None:
            raise refused("")
        vault, suffix, name, version = match.groups()
        if isinstance(info.context, Cloud) and suffix != info.context.vault_suffix:
            raise refused(f"the vaults of this cloud are at {info.context.vault_suffix}")
        try:
            return KmsKey.model_validate({"keyVaultName": vault, "keyName": name, "keyVersion": version})
        except ValidationError as error:
            part = error.errors()[0]
            raise refused(f"{part['loc'][0]}: {part['ctx']['reason'] or 'not of the form for one'}") from None


class ImportedCredentialSettings(Model):
    """A credential document issued elsewhere: a secret configuration value, a file, or a secret in the vault."""

    value: SecretStr | None = None
    file: types.FilePath | None = None
    secret_name: types.SecretName | None = None


class IdentitySettings(Model):
    """One control-plane identity of a hosted cluster."""

    enabled: StrictBool = True
    source: Literal["entra-application", "managed-identity"] = "entra-application"
    secret_name: types.SecretName
    # Of a managed identity.
    resource_id: arm_ids.ManagedIdentityId | None = None
    client_id: types.ClientId | None = None
    credential: ImportedCredentialSettings | None = None


class HostedClusterObjectSettings(Model):
    """The user's part of a HostedCluster that the stack applies: a HostedCluster as YAML, here or in a file."""

    manifest: dict[str, Any] | None = None
    file: types.FilePath | None = None


class HostedClusterSettings(Model):
    """One hosted cluster. Its resource groups, network and DNS zone exist already."""

    name: types.ClusterName
    namespace: types.Namespace = "clusters"
    infra_id: types.InfraId = Field(alias="infraID")
    issuer_url: types.IssuerUrl = Field(alias="issuerURL")
    resource_group: types.ManagedResourceGroup
    location: types.Location
    vnet_id: arm_ids.VnetId = Field(alias="vnetID")
    subnet_id: arm_ids.SubnetId = Field(alias="subnetID")
    security_group_id: arm_ids.SecurityGroupId = Field(alias="securityGroupID")
    dns_zone_resource_group: types.ResourceGroup
    object_encoding: Literal["utf-8", "base64", "hex"] = "utf-8"
    kms: KmsSettings
    # A row of the catalogue each, by its field; the ones the user does not mention are here as well.
    identities: dict[types.IdentityField, IdentitySettings]
    # With clusterSide: stack.
    workloads: tuple[WorkloadSettings, ...] = ()
    # With clusterSide: hypershift.
    hosted_cluster: HostedClusterObjectSettings | None = None

    @property
    def namespace_name(self) -> str:
        """Namespace of the control plane on the management cluster."""
        return naming.control_plane_namespace(self.namespace, self.name)

    def identity(self, row: ControlPlaneIdentity) -> IdentitySettings:
        """The settings of one row of the catalogue."""
        return self.identities[row.field]


def _known_cloud(cloud: Cloud | str) -> Cloud:
    if isinstance(cloud, Cloud):
        return cloud
    raise ValueError(
        "only stacks named local or local-<word> have the local cloud, once `make up` has started it"
        if cloud == LOCAL_CLOUD
        else ""
    )


def _few_tags(tags: Mapping[str, str]) -> Mapping[str, str]:
    if len(tags) > 50:
        raise ValueError(f"{len(tags)} tags")
    if len({name.lower() for name in tags}) < len(tags):
        raise ValueError("two names differ only in the case of letters")
    return tags


class Settings(Model):
    """All settings of a stack."""

    cloud: Annotated[
        SkipValidation[Cloud],
        ValueSpec(
            accepted=enumerate_words((*CLOUDS, LOCAL_CLOUD), last="or"),
            blank="AzurePublicCloud",
            check=_known_cloud,
        ),
    ]
    tenant_id: types.TenantId
    subscription_id: types.SubscriptionId
    location: types.Location
    resource_group: types.ResourceGroup
    tags: Annotated[
        dict[types.TagName, types.TagValue],
        ValueSpec(accepted="at most 50 tags, a name and a text each", blank="<text>", check=_few_tags),
    ] = Field(default_factory=dict)
    # Protects the vault, a created cluster and the applications against deletion.
    protect: StrictBool = True
    cluster_side: Literal["stack", "hypershift"] = "stack"
    roles: Literal["hypershift", "builtin"] = "hypershift"
    # The stack that has the vault and its reader; without it both are this stack's own.
    shared_stack: types.StackName | None = None
    # None with a shared stack, and only then.
    vault: VaultSettings | None = None
    key_vault_user: KeyVaultUserSettings = KeyVaultUserSettings()
    management_cluster: ManagementClusterSettings | None = None
    credentials: CredentialSettings = CredentialSettings()
    probe: ProbeSettings = ProbeSettings()
    hosted_clusters: tuple[HostedClusterSettings, ...] = ()
    # Clusters that may lose credentials in use in the next run (`identity/settings/credential_loss.py`).
    allow_credential_loss: tuple[types.ClusterName, ...] = ()

    @property
    def writes_to_management_cluster(self) -> bool:
        """Whether the stack creates objects in the management cluster."""
        return any(self.cluster_side == "stack" or each.hosted_cluster for each in self.hosted_clusters)
