"""The keys of a hosted cluster and of each of its identities."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SecretStr, StrictBool, ValidationError, ValidationInfo, field_validator

from identity import naming
from identity.catalogue_rows import ControlPlaneIdentity
from identity.clouds import Cloud
from identity.settings import arm_ids, types
from identity.settings.base import FilledIn, Model
from identity.settings.value_spec import ValueSpec, refused
from identity.settings.workloads import WorkloadSettings


class KmsKey(Model):
    """One version of the key that encrypts etcd."""

    key_vault_name: types.VaultName = Field(description="Vault of the key.")
    key_name: types.KeyName = Field(description="Name of the key; it exists already.")
    key_version: types.KeyVersion = Field(description="Version of the key.")


_KEY_URL: Final = re.compile(r"https://([^/.]+)\.([^/]+)/keys/([^/]+)/([^/]+)/?")


class KmsSettings(Model):
    """Encryption of etcd."""

    active_key: Annotated[
        KmsKey,
        ValueSpec(
            rule="kms-key",
            accepted="a mapping with keyVaultName, keyName and keyVersion, or the key's URL "
            "https://<vault>.<the cloud's vault suffix>/keys/<key>/<version>",
            blank="<url>",
            check=lambda key: key,
            hint="`az keyvault key show --vault-name <vault> --name <key> --query key.kid` prints it",
        ),
    ] = Field(description="Key that encrypts etcd, as its URL or as a mapping.")
    key_vault_resource_group: Annotated[types.ResourceGroup, FilledIn("the stack's `resourceGroup`")] = Field(
        description="Resource group of the key's vault."
    )

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

    value: SecretStr | None = Field(
        None, description="The document itself, as a secret of the configuration (`pulumi config set --secret`)."
    )
    file: types.FilePath | None = Field(None, description="Path of a file with the document.")
    secret_name: types.SecretName | None = Field(
        None, description="Name of a secret that exists in the vault; it is mounted as it is."
    )


class IdentitySettings(Model):
    """One control-plane identity of a hosted cluster."""

    enabled: StrictBool = Field(
        True, description="Only an identity that the HostedCluster API does not require can be switched off."
    )
    source: Literal["entra-application", "managed-identity"] = Field(
        "entra-application",
        description="Where its credential comes from: the stack makes an Entra application and issues a certificate, "
        "or a managed identity has one that was issued elsewhere.",
    )
    secret_name: Annotated[types.SecretName, FilledIn("`<stem>-<cluster>-json`")] = Field(
        description="Name of the Key Vault secret that holds the credential."
    )
    resource_id: arm_ids.ManagedIdentityId | None = Field(
        None, description="Resource id of the managed identity; required with `source: managed-identity`."
    )
    client_id: types.ClientId | None = Field(
        None, description="Client id of the managed identity; a run fails if Azure has another one."
    )
    credential: ImportedCredentialSettings | None = Field(
        None, description="Credential of the managed identity, as exactly one of the three."
    )


class HostedClusterObjectSettings(Model):
    """The user's part of a HostedCluster that the stack applies: a HostedCluster as YAML, here or in a file."""

    manifest: dict[str, Any] | None = Field(None, description="The HostedCluster as a mapping.")
    file: types.FilePath | None = Field(None, description="Path of a YAML file with the HostedCluster.")


class HostedClusterSettings(Model):
    """One hosted cluster. Its resource groups, network and DNS zone exist already."""

    name: types.ClusterName = Field(description="Name of the HostedCluster.")
    namespace: types.Namespace = Field("clusters", description="Namespace of the HostedCluster.")
    infra_id: Annotated[types.InfraId, FilledIn("the cluster's name")] = Field(
        alias="infraID",
        description="Infrastructure id of the HostedCluster, which must be the same there: the names of the role "
        "assignments are made of it.",
    )
    issuer_url: types.IssuerUrl = Field(
        alias="issuerURL", description="OIDC issuer of the hosted cluster, for its data-plane identities."
    )
    resource_group: types.ManagedResourceGroup = Field(
        description="Resource group of the hosted cluster's own resources; it exists already."
    )
    location: Annotated[types.Location, FilledIn("the stack's `location`")] = Field(
        description="Region of the hosted cluster."
    )
    vnet_id: arm_ids.VnetId = Field(alias="vnetID", description="Virtual network of the nodes; it exists already.")
    subnet_id: arm_ids.SubnetId = Field(alias="subnetID", description="Subnet of the nodes, in that network.")
    security_group_id: arm_ids.SecurityGroupId = Field(
        alias="securityGroupID", description="Network security group of the nodes; it exists already."
    )
    dns_zone_resource_group: types.ResourceGroup = Field(
        description="Resource group of the DNS zone; it exists already."
    )
    object_encoding: Literal["utf-8", "base64", "hex"] = Field(
        "utf-8", description="How the secrets in the vault are encoded."
    )
    kms: KmsSettings = Field(description="Encryption of etcd with a key in a Key Vault.")
    identities: Annotated[
        dict[types.IdentityField, IdentitySettings], FilledIn("all of them, each with its defaults")
    ] = Field(description="The control-plane identities, by field of the HostedCluster API.")
    workloads: tuple[WorkloadSettings, ...] = Field(
        (),
        description="With `clusterSide: stack`: Deployments of your own that mount identities (`docs/hypershift.md`).",
    )
    hosted_cluster: HostedClusterObjectSettings | None = Field(
        None,
        description="With `clusterSide: hypershift`: the stack applies the HostedCluster. Your part of it is one of "
        "the two; the stack adds the identity part (`docs/hypershift.md`).",
    )

    @property
    def namespace_name(self) -> str:
        """Namespace of the control plane on the management cluster."""
        return naming.control_plane_namespace(self.namespace, self.name)

    def identity(self, row: ControlPlaneIdentity) -> IdentitySettings:
        """The settings of one row of the catalogue."""
        return self.identities[row.field]
