"""The keys of a hosted cluster and of each of its identities."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, StrictBool

from identity import naming
from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.catalogue_rows import ControlPlaneIdentity, DataPlaneIdentity, OptionalManagedIdentity, Scope
from identity.naming import InfrastructureNames
from identity.settings.schema import arm_ids, types
from identity.settings.schema.base import FilledIn, Model
from identity.settings.schema.endpoints import (
    DnsSettings,
    IssuerName,
    NetworkSettings,
    PrivateSettings,
    SigningKeySettings,
    Topology,
)
from identity.settings.schema.kms import KmsSettings
from identity.settings.schema.workloads import (
    DataPlaneField,
    FederatedSuffix,
    IdentityField,
    OptionalIdentityField,
    WorkloadIdentityField,
    WorkloadSettings,
)

Authentication: TypeAlias = Literal["managed-identities", "workload-identities"]
# `azureAuthenticationConfigType` of each (api/hypershift/v1beta1/azure.go:1006-1020).
AUTHENTICATION_TYPES: Final = MappingProxyType[Authentication, str](
    {"managed-identities": "ManagedIdentities", "workload-identities": "WorkloadIdentities"}
)
ObjectEncoding: TypeAlias = Literal["utf-8", "base64", "hex"]
DEFAULT_ENCODING: Final = "utf-8"
# Of keys that name existing infrastructure.
_CREATED: Final = "required; with `infrastructure: create` {}"


class ImportedCredentialSettings(Model):
    """A credential document issued elsewhere: a file, or a secret in the vault."""

    file: types.DocumentPath | None = Field(
        None, description="Path of a file with the document; keep it outside of the repository."
    )
    secret_name: types.SecretName | None = Field(
        None, description="Name of a secret that exists in the vault; it is mounted as it is."
    )


class IdentitySettings(Model):
    """One control-plane identity of a hosted cluster."""

    enabled: Annotated[
        StrictBool,
        FilledIn(
            "`true` if the hosted cluster needs it, of an optional one as `docs/reference/optional-identities.md` says"
        ),
    ] = Field(description="Only an identity that the HostedCluster API does not require can be switched off.")
    source: Literal["entra-application", "managed-identity"] = Field(
        "entra-application",
        description="Where its credential comes from: the stack makes an Entra application and issues a certificate, "
        "or a managed identity has one that was issued elsewhere.",
    )
    secret_name: Annotated[types.SecretName, FilledIn("`<stem>-<cluster>-json`")] = Field(
        description="Name of the Key Vault secret that holds the credential."
    )
    object_encoding: Annotated[ObjectEncoding, FilledIn("the cluster's `objectEncoding`")] = Field(
        description="How that secret is encoded in the vault."
    )
    custom_role: types.RoleDefinitionGuid | None = Field(
        None,
        description="Role definition that it has instead of its role of `roles`, at the same scopes: what an adopted "
        "hosted cluster had before (`docs/guides/migration.md`).",
    )
    resource_id: arm_ids.ManagedIdentityId | None = Field(
        None, description="Resource id of the managed identity; required with `source: managed-identity`."
    )
    client_id: types.ClientId | None = Field(
        None, description="Client id of the managed identity; a run fails if Azure has another one."
    )
    credential: ImportedCredentialSettings | None = Field(
        None, description="Credential of the managed identity, as exactly one of the two."
    )


_NO_CREDENTIAL: Final = IdentitySettings.model_construct(
    enabled=False, secret_name="", object_encoding=DEFAULT_ENCODING
)


class DataPlaneIdentitySettings(Model):
    """A managed identity of service accounts that existed before the stack; Azure renames nothing."""

    name: types.ManagedIdentityName | None = Field(
        None, description="Name of the managed identity; without it `<cluster>-<identity>-<infraID>`."
    )
    location: types.Location | None = Field(
        None, description="Region of the managed identity; without it the stack's `location`."
    )
    federated_credentials: dict[FederatedSuffix, types.FederatedCredentialName] = Field(
        default_factory=dict,
        description="Names of its federated credentials by the last word of the names that the stack gives: "
        "`<cluster>-<identity>-fed-id-<word>`; of a sole one, whose name has no such word, by `account`.",
    )


class HostedClusterObjectSettings(Model):
    """A HostedCluster that the stack applies: written by the stack, by the user, or by both."""

    release_image: types.Image | None = Field(
        None,
        description="Release of the hosted cluster. With it the stack writes the whole HostedCluster; it needs "
        "`pullSecret`, `dns` with both zones and, unless it is private with a Private Link, `externalDnsDomain`.",
    )
    pull_secret: types.KubernetesSecretName | None = Field(
        None, description="Secret with the pull secret, which exists in the HostedCluster's namespace."
    )
    service_account_signing_key: types.KubernetesSecretName | None = Field(
        None,
        description="Secret with the private key (`key`) that signs the tokens of the service accounts, which exists "
        "in the HostedCluster's namespace. Needed where the stack itself knows of none (`docs/guides/hypershift.md`).",
    )
    etcd_encryption: Annotated[Literal["aescbc", "none"] | None, FilledIn("`aescbc`, unless `kms` encrypts etcd")] = (
        Field(
            None,
            description="With `releaseImage` and without `kms`: how etcd is encrypted, `aescbc` with a key that the "
            "stack makes, or `none`. Once encrypted, etcd stays encrypted (`docs/reference/hosted-clusters.md`).",
        )
    )
    manifest: dict[str, Any] | None = Field(None, description="Your part of the HostedCluster as a mapping.")
    file: types.FilePath | None = Field(None, description="Path of a YAML file with your part of the HostedCluster.")


class HostedClusterSettings(Model):
    """One hosted cluster."""

    name: types.ClusterName = Field(description="Name of the HostedCluster.")
    namespace: types.Namespace = Field("clusters", description="Namespace of the HostedCluster.")
    infra_id: Annotated[types.InfraId, FilledIn("the cluster's name, a hyphen for each dot")] = Field(
        alias="infraID",
        description="Infrastructure id of the HostedCluster, which must be the same there: the names of the role "
        "assignments derive from it.",
    )
    authentication: Authentication = Field(
        "managed-identities",
        description="How its identities sign in: with certificates in the vault (managed Azure), or with tokens of its "
        "own service accounts (self-managed Azure, `docs/guides/self-managed.md`). A HostedCluster never changes it.",
    )
    issuer: Literal["existing", "create"] = Field(
        "existing",
        description="Who makes the cluster's OIDC issuer: it exists already, or the stack makes it and the key that "
        "signs the tokens of the cluster's service accounts (`docs/explanation/issuer.md`).",
    )
    issuer_name: IssuerName | None = Field(
        None, description="With `issuer: create`: name of its storage account and of the container in it."
    )
    issuer_url: Annotated[types.IssuerUrl, FilledIn("with `issuer: create` the address of that container")] = Field(
        alias="issuerURL",
        description="OIDC issuer of the hosted cluster, for its data-plane identities; required with `issuer: "
        "existing`.",
    )
    service_account_signing_key: SigningKeySettings | None = Field(
        None,
        description="The key that signs the tokens of the cluster's service accounts (`docs/explanation/issuer.md`).",
    )
    infrastructure: Literal["existing", "create"] = Field(
        "existing",
        description="Whether resource groups, network, subnet, network security group, private DNS zone and egress "
        "load balancer exist already, or the stack makes them under HyperShift's names and deletes them after the "
        "HostedCluster (`docs/guides/hypershift.md`).",
    )
    network: Annotated[NetworkSettings | None, FilledIn("with `infrastructure: create` as below")] = Field(
        None, description="With `infrastructure: create`: address ranges of the virtual network."
    )
    resource_group: Annotated[types.ManagedResourceGroup, FilledIn(_CREATED.format("`<name>-<infraID>`"))] = Field(
        description="Resource group of the hosted cluster's own resources."
    )
    location: Annotated[types.Location, FilledIn("the stack's `location`")] = Field(
        description="Region of the hosted cluster. It cannot be changed later."
    )
    vnet_id: Annotated[arm_ids.VnetId, FilledIn(_CREATED.format("`<name>-<infraID>` in `<name>-vnet-<infraID>`"))] = (
        Field(alias="vnetID", description="Virtual network of the nodes, in `location`.")
    )
    subnet_id: Annotated[arm_ids.SubnetId, FilledIn(_CREATED.format("`default` in that network"))] = Field(
        alias="subnetID", description="Subnet of the nodes, in that network."
    )
    security_group_id: Annotated[
        arm_ids.SecurityGroupId, FilledIn(_CREATED.format("`<name>-<infraID>-nsg` in `<name>-nsg-<infraID>`"))
    ] = Field(alias="securityGroupID", description="Network security group of the subnet, in `location`.")
    route_table_id: arm_ids.RouteTableId | None = Field(
        None,
        alias="routeTableID",
        description="Route table of the subnet, if it has one. With `roles: builtin` the identities that write the "
        "subnet have their role there.",
    )
    nat_gateway_id: arm_ids.NatGatewayId | None = Field(
        None, alias="natGatewayID", description="NAT gateway of the subnet, if it has one, for the same roles."
    )
    dns_zone_resource_group: Annotated[types.ResourceGroup, FilledIn(_CREATED.format("that of `dns.publicZoneID`"))] = (
        Field(description="Resource group of the public DNS zone; it exists already.")
    )
    dns: DnsSettings | None = Field(None, description="Domain and DNS zones of the hosted cluster.")
    external_dns_domain: types.DomainName | None = Field(
        None,
        description="Domain in which HyperShift's external DNS publishes the control plane's host names, such as "
        "`api-<name>.<externalDnsDomain>`. A HostedCluster needs it, unless `topology` is Private with a Private Link.",
    )
    external_dns_zone_id: arm_ids.DnsZoneId | None = Field(
        None,
        alias="externalDnsZoneID",
        description="Public DNS zone of `externalDnsDomain`, for the identity `externalDNS`; it exists already.",
    )
    backup_storage_account_id: arm_ids.StorageAccountId | None = Field(
        None,
        alias="backupStorageAccountID",
        description="Storage account of backups, for the identities that write them; it exists already.",
    )
    object_encoding: ObjectEncoding = Field(
        DEFAULT_ENCODING, description="How the secrets in the vault are encoded, unless an identity has its own."
    )
    kms: KmsSettings | None = Field(
        None,
        description="Encryption of etcd with a key in a Key Vault or a managed HSM; without it "
        "`hostedCluster.etcdEncryption` decides.",
    )
    topology: Topology | None = Field(
        None,
        description="From where the API server can be reached; a HostedCluster never changes between `Public` and "
        "the others.",
    )
    private: PrivateSettings | None = Field(
        None, description="Private access to the API server, with `PublicAndPrivate` and `Private`."
    )
    identities: Annotated[
        dict[IdentityField, IdentitySettings],
        FilledIn("all of them, each with its defaults; none with `authentication: workload-identities`"),
    ] = Field(description="The control-plane identities, by field of the HostedCluster API.")
    data_plane_identities: dict[DataPlaneField, DataPlaneIdentitySettings] = Field(
        default_factory=dict,
        description="Data-plane identities that existed before the stack, by field of the HostedCluster API "
        "(`docs/guides/migration.md`).",
    )
    workload_identities: dict[WorkloadIdentityField, DataPlaneIdentitySettings] = Field(
        default_factory=dict,
        description="With `authentication: workload-identities`: identities that existed before the stack, by field of "
        "the HostedCluster API (`docs/guides/self-managed.md`).",
    )
    managed_identities: tuple[OptionalIdentityField, ...] = Field(
        (), description="Managed identities that few hosted clusters need (`docs/reference/optional-identities.md`)."
    )
    container_registry_id: arm_ids.RegistryId | None = Field(
        None,
        alias="containerRegistryID",
        description="Container registry from which the nodes pull images, for `acrPull`; it exists already.",
    )
    management_issuer_url: types.IssuerUrl | None = Field(
        None,
        alias="managementIssuerURL",
        description="OIDC issuer of the management cluster, for the managed identities that its service accounts use.",
    )
    workloads: tuple[WorkloadSettings, ...] = Field(
        (),
        description="With `clusterSide: stack`: Deployments of your own that mount identities "
        "(`docs/reference/hosted-clusters.md`).",
    )
    hosted_cluster: HostedClusterObjectSettings | None = Field(
        None,
        description="With `clusterSide: hypershift`: the stack applies the HostedCluster, which it writes itself "
        "(`releaseImage`) or which you give as one of `manifest` and `file` (`docs/guides/hypershift.md`).",
    )

    @property
    def namespace_name(self) -> str:
        """Namespace of the control plane on the management cluster."""
        return naming.control_plane_namespace(self.namespace, self.name)

    @property
    def has_credentials(self) -> bool:
        """Whether its control plane signs in with certificates in the vault."""
        return self.authentication == "managed-identities"

    @property
    def uses_vault(self) -> bool:
        """Whether the vault has something of it: credentials, a signing key, or a key of etcd."""
        return self.has_credentials or self.signing_key is not None or self.encryption_key_secret is not None

    @property
    def federated_rows(self) -> tuple[DataPlaneIdentity, ...]:
        """The managed identities that its service accounts use, in the catalogue's order."""
        if self.has_credentials:
            return DATA_PLANE
        return tuple(
            row.federated for row in CONTROL_PLANE if row.federated is not None and self._has_workload_identity(row)
        )

    def _has_workload_identity(self, row: ControlPlaneIdentity) -> bool:
        if row.setting is not None and getattr(self, row.setting) is None:
            return False
        is_private = row.workload is not None and row.workload.private
        return not is_private or self.topology != "Public" or row.field in self.workload_identities

    @property
    def signing_key_secret(self) -> str:
        """Secret in the HostedCluster's namespace that `spec.serviceAccountSigningKey` names."""
        return naming.signing_key_secret_name(self.name)

    @property
    def signing_key(self) -> SigningKeySettings | None:
        """The signing key that the stack gives to the cluster; None if it does not have one."""
        if self.issuer == "create":
            return self.service_account_signing_key or SigningKeySettings()
        return self.service_account_signing_key

    @property
    def signing_key_vault_secret(self) -> str | None:
        """Key Vault secret of that key."""
        if self.signing_key is None:
            return None
        if self.issuer_name is not None:
            return naming.signing_key_vault_secret(self.name, self.signing_key.signing)
        return self.signing_key.vault_secret_name or naming.signing_key_vault_secret(self.name)

    @property
    def encryption_key_secret(self) -> str | None:
        """Secret with the key that encrypts etcd, which the stack makes; None if it makes none."""
        written = self.hosted_cluster
        if written is None or written.release_image is None or self.kms is not None:
            return None
        return None if written.etcd_encryption == "none" else naming.encryption_key_secret_name(self.name)

    @property
    def disabled_capabilities(self) -> tuple[str, ...]:
        """The required entries of `spec.capabilities.disabled`: the capabilities whose identity is off."""
        if not self.has_credentials:
            return ()  # the API requires each of the identities
        return tuple(
            row.capability for row in CONTROL_PLANE if row.capability is not None and not self.identity(row).enabled
        )

    @property
    def needs_host_names(self) -> bool:
        """Whether HyperShift tells the control plane's services apart by host names in `externalDnsDomain`.

        Behind the shared ingress of a public managed cluster, and with Swift, the API server's address is its host
        name. A private cluster with a Private Link has that of its own router, and a self-managed one that of a load
        balancer (openshift/hypershift at 3ee9615,
        `control-plane-operator/controllers/hostedcontrolplane/infra/infra.go:254-276, 519-536`).
        """
        if not self.has_credentials:
            return self.private is not None and self.private.type != "PrivateLink"
        return self.topology != "Private" or self.private is None or self.private.type != "PrivateLink"

    @property
    def signing_key_reference(self) -> str | None:
        """The name in `spec.serviceAccountSigningKey`, if the configuration has it."""
        if self.signing_key is not None:
            return self.signing_key_secret
        return self.hosted_cluster.service_account_signing_key if self.hosted_cluster is not None else None

    def names(self, subscription_id: str) -> InfrastructureNames:
        """The names that HyperShift gives the cluster's infrastructure."""
        return InfrastructureNames(subscription_id, self.name, self.infra_id)

    def identity(self, row: ControlPlaneIdentity) -> IdentitySettings:
        """The settings of one row of the catalogue; disabled in a cluster without credentials."""
        return self.identities.get(row.field, _NO_CREDENTIAL)

    def federated_identity(self, field: str) -> DataPlaneIdentitySettings:
        """The settings of one row of `federated_rows`, with defaults if there are none."""
        settings = self.data_plane_identities if self.has_credentials else self.workload_identities
        return settings.get(field, DataPlaneIdentitySettings())

    @property
    def enabled_rows(self) -> tuple[ControlPlaneIdentity, ...]:
        """The rows of the enabled control-plane identities, in the catalogue's order."""
        return tuple(row for row in CONTROL_PLANE if self.identity(row).enabled)

    def users_of(self, scope: Scope) -> list[str]:
        """The fields of the identities that have a role at the resource of an optional scope."""
        fields = [row.field for row in self.enabled_rows if scope in (*row.hypershift.scopes, *row.builtin.scopes)]
        fields += [row.field for row in self.optional_rows if any(scope in grant.scopes for grant in row.grants)]
        return fields

    @property
    def identity_names(self) -> dict[str, str]:
        """By field the names of the managed identities that the stack makes: `federated_rows` and `optional_rows`."""
        rows = [(row.field, row.name, self.federated_identity(row.field).name) for row in self.federated_rows]
        rows += [(row.field, row.name, None) for row in self.optional_rows]
        return {
            field: existing or naming.data_plane_identity_name(self.name, name, self.infra_id)
            for field, name, existing in rows
        }

    @property
    def federated_key(self) -> str:
        """The key under which the configuration has the settings of `federated_rows`."""
        return "dataPlaneIdentities" if self.has_credentials else "workloadIdentities"

    def optional_resource(self, scope: Scope) -> str | None:
        """ARM id of a scope's resource that only optional identities use; None if it is not configured."""
        return {
            Scope.BACKUP_STORAGE: self.backup_storage_account_id,
            Scope.REGISTRY: self.container_registry_id,
            Scope.EXTERNAL_ZONE: self.external_dns_zone_id,
        }[scope]

    @property
    def optional_rows(self) -> tuple[OptionalManagedIdentity, ...]:
        """The rows of the enabled managed identities, in the catalogue's order."""
        return tuple(row for row in OPTIONAL if row.field in self.managed_identities)
