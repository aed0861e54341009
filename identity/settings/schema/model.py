"""The keys of the configuration; `hosted_clusters.py` and the other modules have those of its structures.

Attribute names are Python's; the stack file spells them in camelCase. `make generate` writes each key, its type, its
default and its description to `docs/reference/configuration.md` and `Pulumi.yaml`.

Every model is frozen and refuses unknown keys. What follows from other values (a cluster's location, its secrets'
names) is filled in before validation (`load.py`), so an attribute that is not optional here always has its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, SkipValidation, StrictBool, StrictInt

from identity import naming
from identity.clouds import CLOUDS, DEFAULT_CLOUD, LOCAL_CLOUD, Cloud
from identity.credentials.certificate_rules import KEY_SIZES
from identity.credentials.secret_tags import ENCRYPTION_KEY_ID, MOST_TAGS, OWN_TAGS, SIGNING_KEY_ID
from identity.naming import STACK_TAG
from identity.outputs import ClusterSide
from identity.settings.schema import arm_ids, types
from identity.settings.schema.access import AccessSettings, CreationSettings
from identity.settings.schema.base import FilledIn, Model
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.problems import enumerate_words
from identity.settings.schema.schema_node import ValueSpec, form, integer

# Each is a rule in policies/rules.py.
PolicyName: TypeAlias = Literal[
    "vault-purge-protection",
    "network-open-to-all",
    "role-wider-than-catalogue",
    "certificate-life",
    "image-by-tag",
    "identity-shared-between-clusters",
]
Reason = Annotated[str, form("reason")]
ResourceLabel = Annotated[str, form("resource-label")]


class PolicyWaiverSettings(Model):
    """One waiver."""

    policy: PolicyName = Field(description="The policy that is waived.")
    resource: ResourceLabel = Field(description="The resource that may break it, by its name in the stack.")
    reason: Reason = Field(description="Why; the run prints it beside what is waived.")


class VaultSettings(Model):
    """The Key Vault that holds the credentials of all hosted clusters of the stack."""

    name: types.VaultName = Field(description="Name of the vault, unique in Azure.")
    soft_delete_retention_days: Annotated[StrictInt, integer(7, 90, "days")] = Field(
        90, description="How long a deleted vault or secret can be recovered. It cannot be changed later."
    )
    purge_protection: StrictBool = Field(
        True, description="Nobody can purge the vault before that time; once on, it stays on."
    )
    public_network_access: StrictBool = Field(
        True, description="The vault has a public endpoint; `false` leaves private endpoints only."
    )
    default_action: Literal["Allow", "Deny"] = Field(
        "Deny",
        description="What the vault's firewall does with callers that neither list allows; `Deny` needs one of them.",
    )
    allowed_ip_ranges: tuple[types.IpRange, ...] = Field(
        (), description="Public addresses that reach the vault; the deployer must be in one of the two lists."
    )
    allowed_subnet_ids: tuple[arm_ids.SubnetId, ...] = Field(
        (),
        description="Subnets that reach the vault; the nodes of the management cluster must be in one of the two "
        "lists.",
    )


class KeyVaultUserSettings(Model):
    """The identity with which the CSI driver reads the vault."""

    source: Literal["aks-addon", "existing", "created"] = Field(
        "aks-addon",
        description="Which identity it is: that of the AKS add-on, an `existing` one (`clientId` and `objectId`), or "
        "one `created` by this stack (`name`).",
    )
    client_id: types.ClientId | None = Field(None, description="Client id of an `existing` identity.")
    object_id: types.ObjectId | None = Field(
        None, description="Object id of an `existing` identity's service principal, which gets the role on the vault."
    )
    name: types.ManagedIdentityName | None = Field(None, description="Name of the managed identity to create.")


class ManagementClusterSettings(Model):
    """The AKS cluster on which the hosted control planes run."""

    resource_group: types.ResourceGroup = Field(description="Resource group of the cluster; it exists already.")
    name: types.ManagedClusterName = Field(description="Name of the AKS cluster.")
    create: CreationSettings | None = Field(
        None,
        description="The stack creates the cluster, with these keys (`docs/guides/aks-access.md`); without `create` "
        "the cluster exists already.",
    )
    access: AccessSettings = Field(
        AccessSettings(),
        description="How the stack signs in to the cluster's API server (`docs/guides/aks-access.md`).",
    )
    kubeconfig: types.FilePath | None = Field(
        None, description="Path of a kubeconfig of your own, used instead of `access`."
    )
    context: types.NonEmpty | None = Field(
        None, description="Context in that kubeconfig; its current one unless given."
    )


class PropagationSettings(Model):
    """When a certificate counts as known to Entra ID: after a number of sign-ins in a row, spread over a time."""

    successes: Annotated[StrictInt, integer(1, 100, "sign-ins in a row")] = Field(
        5, description="Number of sign-ins in a row that must succeed before a new certificate is written to the vault."
    )
    settle_seconds: Annotated[StrictInt, integer(0, 3600, "seconds")] = Field(
        30, description="Time over which these sign-ins are spread."
    )
    timeout_seconds: Annotated[StrictInt, integer(1, 7200, "seconds")] = Field(
        600, description="The run fails if they have not succeeded after this time."
    )


def _key_size(bits: int) -> int:
    if bits not in KEY_SIZES:
        raise ValueError
    return bits


class CredentialSettings(Model):
    """Lifetime and renewal of the certificates that the stack issues."""

    lifetime_days: Annotated[StrictInt, integer(2, 730, "days")] = Field(
        90, description="Lifetime of a certificate; a change applies from each certificate's next renewal."
    )
    renew_before_days: Annotated[StrictInt, integer(1, 729, "days")] = Field(
        45,
        description="How long before its end a certificate is renewed at the latest: at least a third of "
        "`lifetimeDays`, or 30 days if that is less. Each identity is due at a time of its own, earlier by up to a "
        "sixth of the time until then.",
    )
    key_size: Annotated[
        StrictInt,
        ValueSpec(
            rule="key-size",
            accepted=f"the bits of an RSA key: {enumerate_words(map(str, KEY_SIZES), last='or')}",
            blank=str(KEY_SIZES[0]),
            check=_key_size,
        ),
    ] = Field(KEY_SIZES[0], description="Bits of a certificate's RSA key; a change applies from its next renewal.")
    renewal: Literal["auto", "hold"] = Field(
        "auto", description="`hold` keeps the certificates that exist, for previews of pull requests."
    )
    propagation: PropagationSettings = Field(
        PropagationSettings(), description="When a certificate counts as known to Entra ID, which is replicated."
    )


class ProbeSettings(Model):
    """The credential probe, which proves each mounted credential."""

    image: types.Image | None = Field(
        None, description="Container image of the probe; required with `clusterSide: stack`."
    )


def _known_cloud(cloud: Cloud | str) -> Cloud:
    if isinstance(cloud, Cloud):
        return cloud
    raise ValueError(
        "only stacks named local or local-<word> have the local cloud, once `.venv/bin/idstack up` has started it"
        if cloud == LOCAL_CLOUD
        else ""
    )


# The credential's own tags are on the secrets as well.
_MOST_TAGS: Final = MOST_TAGS - len(OWN_TAGS)


def _few_tags(tags: Mapping[str, str]) -> Mapping[str, str]:
    if len(tags) > _MOST_TAGS:
        raise ValueError(f"{len(tags)} tags")
    if len({name.lower() for name in tags}) < len(tags):
        raise ValueError("two names differ only in the case of letters")
    if taken := sorted(
        name for name in tags if name.lower() in (*OWN_TAGS, SIGNING_KEY_ID, ENCRYPTION_KEY_ID, STACK_TAG)
    ):
        raise ValueError(f'"{taken[0]}", which the stack writes itself')
    return tags


class Settings(Model):
    """All settings of a stack."""

    cloud: Annotated[
        SkipValidation[Cloud],
        ValueSpec(
            rule="cloud",
            accepted=enumerate_words((*CLOUDS, LOCAL_CLOUD), last="or"),
            blank=DEFAULT_CLOUD,
            check=_known_cloud,
        ),
        FilledIn(f"`{DEFAULT_CLOUD}`"),
    ] = Field(description="Azure cloud of the stack; `local` is the cloud on this machine.")
    backend: types.StateBackend | None = Field(
        None,
        description="Where the stack's state is; `idstack` and `make` use it, whatever backend you are logged in to "
        "(`docs/guides/stacks.md`).",
    )
    tenant_id: types.TenantId = Field(description="Entra ID tenant of the applications and the vault.")
    subscription_id: types.SubscriptionId = Field(
        description="Subscription of the vault, the managed identities and the hosted clusters."
    )
    location: types.Location = Field(
        description="Region of the vault and the managed identities. It cannot be changed later."
    )
    resource_group: types.ResourceGroup = Field(
        description="Resource group of the vault and the managed identities; it exists already."
    )
    tags: Annotated[
        dict[types.TagName, types.TagValue],
        ValueSpec(
            rule="tags",
            accepted=f"at most {_MOST_TAGS} tags, a name and a string each",
            blank="<value>",
            check=_few_tags,
        ),
    ] = Field(
        default_factory=dict, description="Tags of every Azure resource that the stack creates. Others' tags stay."
    )
    protect: StrictBool = Field(
        True,
        description="Protects the vault, a created cluster, created infrastructure, a created issuer, the Entra "
        "applications and an applied HostedCluster against deletion.",
    )
    cluster_side: ClusterSide = Field(
        "stack",
        description="Who makes SecretProviderClasses, cloud configurations and pods: `stack`, this program; "
        "`hypershift`, HyperShift's operators (`docs/guides/hypershift.md`). Those of a hosted cluster with workload "
        "identities are always HyperShift's.",
    )
    roles: Literal["hypershift", "builtin"] = Field(
        "hypershift",
        description="Which roles the identities get: those that `hypershift create` assigns to whole resource groups, "
        "or `builtin`, the narrower ones of production at the resources themselves (`docs/guides/first-stack.md`).",
    )
    shared_stack: types.StackName | None = Field(
        None,
        description="Stack that has the vault and the key-vault-user of this one (`docs/guides/stacks.md`); `vault` "
        "and `keyVaultUser` are then left out. Without it both belong to this stack.",
    )
    vault: VaultSettings | None = Field(
        None,
        description="The Key Vault of the credentials. Required, unless `sharedStack` has it, or every hosted cluster "
        "signs in with workload identities and the stack knows none of the keys that sign their tokens.",
    )
    key_vault_user: KeyVaultUserSettings = Field(
        KeyVaultUserSettings(),
        description="The key-vault-user: the identity with which the CSI driver reads the vault.",
    )
    key_vault_user_scope: Literal["vault", "secrets"] = Field(
        "vault",
        description="Where the key-vault-user has its role: at the whole `vault`, or at each of the stack's `secrets` "
        "that pods mount (`docs/explanation/isolation.md`).",
    )
    block_instance_metadata: StrictBool = Field(
        False,
        description="With `clusterSide: stack`: a NetworkPolicy keeps the pods of each control plane's namespace from "
        "the nodes' instance metadata, where the key-vault-user's tokens are, and from the wire server "
        "(`docs/explanation/isolation.md`). It needs a network-policy engine.",
    )
    management_cluster: ManagementClusterSettings | None = Field(
        None,
        description="The AKS cluster on which the hosted control planes run. Required with `clusterSide: stack` and "
        "with `keyVaultUser.source: aks-addon`.",
    )
    credentials: CredentialSettings = Field(
        CredentialSettings(), description="The certificates that the stack issues, and their renewal."
    )
    probe: ProbeSettings = Field(
        ProbeSettings(), description="The credential probe, which signs in with each mounted credential."
    )
    hosted_clusters: tuple[HostedClusterSettings, ...] = Field((), description="The hosted clusters of the stack.")
    allow_credential_loss: tuple[types.ClusterName, ...] = Field(
        (),
        description="Hosted clusters that may lose credentials in use in the next run, and `key-vault-user` if that "
        "may be replaced; without it such a run is refused (`docs/guides/stacks.md`). Remove it afterwards.",
    )
    policy_waivers: tuple[PolicyWaiverSettings, ...] = Field(
        (),
        description="Policies that resources of the stack may break, each with its reason "
        "(`docs/reference/policies.md`).",
    )

    @property
    def vault_id(self) -> str:
        """ARM id of the stack's own vault; empty without one."""
        return "" if self.vault is None else naming.vault_id(self.subscription_id, self.resource_group, self.vault.name)

    @property
    def management_cluster_id(self) -> str:
        """ARM id of the AKS cluster; empty without one."""
        cluster = self.management_cluster
        return "" if cluster is None else naming.cluster_id(self.subscription_id, cluster.resource_group, cluster.name)

    def group_id(self, name: str) -> str:
        """ARM id of a resource group of the subscription."""
        return naming.resource_group_id(self.subscription_id, name)

    def identity_id(self, name: str) -> str:
        """ARM id of a managed identity that the stack makes."""
        return naming.managed_identity_id(self.subscription_id, self.resource_group, name)

    def issuer_account_id(self, name: str) -> str:
        """ARM id of the storage account of an issuer that the stack makes."""
        return naming.storage_account_id(self.subscription_id, self.resource_group, name)

    @property
    def uses_vault(self) -> bool:
        """Whether the stack keeps something in a vault; one without hosted clusters has it for other stacks."""
        return not self.hosted_clusters or any(cluster.uses_vault for cluster in self.hosted_clusters)

    @property
    def has_key_vault_user(self) -> bool:
        """Whether the stack has a key-vault-user of its own, because pods mount what is in its vault.

        With a vault for other stacks alone it has one if the configuration describes it.
        """
        if self.shared_stack is not None:
            return False
        is_described = self.vault is not None and "key_vault_user" in self.model_fields_set
        mounts = not self.hosted_clusters or any(cluster.has_credentials for cluster in self.hosted_clusters)
        return is_described or mounts

    @property
    def writes_to_management_cluster(self) -> bool:
        """Whether the stack creates objects in the management cluster."""
        return self.makes_cluster_sides or any(cluster.hosted_cluster for cluster in self.hosted_clusters)

    @property
    def asks_aks_for_kubeconfig(self) -> bool:
        """Whether each run, a preview too, gets the address of the management cluster from AKS."""
        cluster = self.management_cluster
        return cluster is not None and cluster.kubeconfig is None and self.writes_to_management_cluster

    @property
    def makes_cluster_sides(self) -> bool:
        """Whether the stack makes the objects of a control plane."""
        return any(map(self.makes_cluster_side, self.hosted_clusters))

    def makes_cluster_side(self, cluster: HostedClusterSettings) -> bool:
        """Whether the stack makes the objects of this control plane, and not HyperShift.

        Only HyperShift runs the API server that issues the tokens of workload identities.
        """
        return self.cluster_side == "stack" and cluster.has_credentials
