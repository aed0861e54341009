"""The resources of a stack by its state and its outputs, which the checks expect to exist."""

from __future__ import annotations

from dataclasses import dataclass

from identity.outputs import ClusterSide
from ops.world.ownership import ResourceOwner


@dataclass(frozen=True, kw_only=True)
class ExpectedRole:
    """A role assignment in the state; `resource` is its name in the program."""

    resource: str
    id: str  # ARM id
    principal_id: str
    role_definition_id: str
    scope: str


@dataclass(frozen=True, kw_only=True)
class ExpectedAccess:
    """A scope where an identity needs the actions of its role on one resource type and its child types.

    With an empty `type` it needs all actions there that no other scope has.
    """

    principal_id: str
    scope: str
    type: str

    @property
    def key(self) -> str:
        """The key, in the roles that were read, of the principal's roles at the scope and above."""
        return f"{self.principal_id} at {self.scope}"


@dataclass(frozen=True, kw_only=True)
class GrantedPrincipal:
    """An identity of one hosted cluster with its role assignments.

    `role_guid` is production's role, whose actions it needs with any role; `accesses` has the scopes.
    """

    cluster: str
    identity: str  # its field in the HostedCluster API
    roles: tuple[ExpectedRole, ...]
    role_guid: str
    accesses: tuple[ExpectedAccess, ...]

    @property
    def owner(self) -> ResourceOwner:
        return ResourceOwner(self.cluster, self.identity)


@dataclass(frozen=True, kw_only=True)
class FederatedTrust:
    """A federated credential, with which Entra ID compares the token of a service account."""

    issuer: str
    subject: str
    audience: str


@dataclass(frozen=True, kw_only=True)
class ExpectedIssuer:
    """An OIDC issuer; `keys` are the ids of the keys that it must publish, empty if the stack knows none.

    `is_ours`: the stack publishes its documents.
    """

    address: str
    keys: tuple[str, ...]
    is_ours: bool


@dataclass(frozen=True, kw_only=True)
class FederatedIdentity(GrantedPrincipal):
    """A managed identity that service accounts of a hosted cluster use.

    `issuer` is None for a managed cluster whose issuer the stack does not publish.
    """

    resource_id: str  # ARM id
    client_id: str
    trusts: tuple[FederatedTrust, ...]
    issuer: ExpectedIssuer | None
    probes: tuple[str, ...] = ()  # Deployments that sign in with its tokens, on a local stack alone


@dataclass(frozen=True, kw_only=True)
class ExpectedMount:
    """A mount of the credential in the pods of `deployment`, from the catalogue.

    `variable` is the environment variable with the file's path, if the consumer needs one; `document` is the path of a
    cloud configuration that names the file, `document_secret` the Kubernetes Secret with it. `file` is the file's name
    if it differs from the secret's.
    """

    deployment: str
    container: str
    directory: str
    variable: str | None = None
    document: str | None = None
    document_secret: str | None = None
    file: str | None = None

    def path(self, secret: str) -> str:
        return f"{self.directory}/{self.file or secret}"


@dataclass(frozen=True, kw_only=True)
class Identity(GrantedPrincipal):
    """One control-plane identity of one hosted cluster.

    `generation` and `thumbprint` belong to the certificate that the stack delivered last, or to the outputs if another
    tool stored it; only certificates from the stack have a generation. `reader_roles` are the key-vault-user's on this
    secret, with `readerScope: secrets`.
    """

    namespace: str  # of the control plane
    client_id: str
    secret: str
    object_encoding: str
    secret_provider_class: str
    thumbprint: str | None
    generation: str | None
    reader_roles: tuple[ExpectedRole, ...]
    mounts: tuple[ExpectedMount, ...]
    # From `spec` of a HostedCluster to the object that names the identity; none if the API has no field for it.
    hosted_cluster_path: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One hosted cluster; `home` is the namespace of its HostedCluster, `namespace` that of its control plane.

    `guests` are the identities whose pods have tokens of service accounts; `side` creates the control plane's objects.
    """

    cluster: str
    home: str
    namespace: str
    side: ClusterSide
    identities: tuple[Identity, ...]
    guests: tuple[FederatedIdentity, ...] = ()
    identity: None = None


@dataclass(frozen=True, kw_only=True)
class OwnVault:
    """The network rules that the stack gave its vault, as ARM spells them."""

    public_network_access: str
    default_action: str


@dataclass(frozen=True, kw_only=True)
class StackState:
    """A stack that was brought up.

    `management_cluster` is its ARM id, None without one. `own_vault` is None with a shared stack's vault.
    `reader_roles` are the key-vault-user's on the whole vault: none with `readerScope: secrets` or a shared stack's
    vault. `pending` describes the operations that a killed engine has interrupted.
    """

    cluster_side: ClusterSide  # of the clusters that sign in with certificates
    vault_id: str
    vault_name: str
    tenant_id: str
    key_vault_user: str  # client id
    attach_command: str | None
    management_cluster: str | None
    clusters: tuple[Cluster, ...]
    own_vault: OwnVault | None
    reader_roles: tuple[ExpectedRole, ...]
    pending: tuple[str, ...] = ()
    is_up: bool = True  # False: it was never brought up, and everything else is empty

    @property
    def identities(self) -> tuple[Identity, ...]:
        """The control-plane identities of all clusters, in the catalogue's order."""
        return tuple(identity for cluster in self.clusters for identity in cluster.identities)

    @property
    def guests(self) -> tuple[FederatedIdentity, ...]:
        """The guests of all clusters, in the catalogue's order."""
        return tuple(guest for cluster in self.clusters for guest in cluster.guests)

    @property
    def principals(self) -> tuple[GrantedPrincipal, ...]:
        """The identities of both planes."""
        return (*self.identities, *self.guests)
