"""The types of a `StackWorld`: metadata, objects and reports of one moment, without any secret's value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

from identity.azure.records import RoleAssignmentRecord, SecretMetadata
from ops.world.cluster_state import HostedClusterCondition, SeenMount
from ops.world.expected import FederatedTrust, StackState
from ops.world.seen import NOT_READ, Unread


@dataclass(frozen=True, kw_only=True)
class SeenLock:
    """A lock on the stack. `runs` is None if this machine cannot see the process."""

    owner: str
    since: datetime
    runs: bool | None


@dataclass(frozen=True, kw_only=True)
class SeenRun:
    """The run that decides whether the stack is complete: `kind` is update or destroy, `started` a date in RFC 3339.

    `has_failed`: it failed after it had changed something, and none has completed since.
    """

    kind: str
    started: str
    has_failed: bool


@dataclass(frozen=True, kw_only=True)
class RefusedValue:
    """A refused value of the configuration; `cluster` is its hosted cluster.

    `prevents_sign_in`: it is a placeholder in a key that a sign-in needs.
    """

    cluster: str | None
    path: str
    found: str
    accepted: str
    fix: str
    prevents_sign_in: bool = False


@dataclass(frozen=True, kw_only=True)
class SeenConfiguration:
    """The refused values of the configuration; without any, the enabled identities by hosted cluster."""

    refused: tuple[RefusedValue, ...]
    identities: Mapping[str, tuple[str, ...]]

    @property
    def prevents_sign_in(self) -> bool:
        """Whether no sign-in can work before the placeholders are filled in."""
        return any(value.prevents_sign_in for value in self.refused)


@dataclass(frozen=True, kw_only=True)
class SeenAccess:
    """The API server of the management cluster after a sign-in, with the stack's missing permissions as texts.

    `is_read_only`: the user may not write at all, so that the missing permissions are no evidence about the deployer.
    """

    server: str
    who: str
    missing: tuple[str, ...]
    hint: str
    is_read_only: bool


@dataclass(frozen=True, kw_only=True)
class SeenVault:
    tenant_id: str
    uses_roles: bool
    public_network_access: str
    default_action: str


@dataclass(frozen=True, kw_only=True)
class SeenAddOn:
    """The secrets-store add-on of an AKS cluster in ARM."""

    is_enabled: bool
    config: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class SeenPermission:
    """One entry of a role definition: it grants actions that match a pattern and none of its exceptions."""

    actions: tuple[str, ...]
    exceptions: tuple[str, ...]
    data_actions: tuple[str, ...]
    data_exceptions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SeenRoleDefinition:
    """A role definition in ARM; a custom one can be changed."""

    name: str
    is_custom: bool
    permissions: tuple[SeenPermission, ...]


@dataclass(frozen=True, kw_only=True)
class SeenApplication:
    """An Entra application with the ends of its certificates by thumbprint (SHA-1, upper-case hexadecimal).

    `is_enabled` is that of its service principal; None without one. `added` are the credentials of others.
    """

    certificates: Mapping[str, datetime]
    is_enabled: bool | None
    added: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SeenIssuer:
    """An OIDC issuer without authentication; `problem` is why Entra ID gets no keys there, empty if it gets them."""

    keys: tuple[str, ...]  # ids
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class SeenManagedIdentity:
    """A managed identity with its federated credentials in ARM."""

    client_id: str
    trusts: tuple[FederatedTrust, ...]


@dataclass(frozen=True, kw_only=True)
class SeenClass:
    provider: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class SeenContainer:
    """A container of a pod: its mounted volumes by path, and the variables with a value."""

    mounts: Mapping[str, str]
    variables: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class SeenPod:
    """A pod. `classes` are the SecretProviderClasses of its volumes, by volume.

    `waiting` has the kubelet's reasons why containers do not run; empty without any.
    """

    name: str
    created: datetime
    phase: str
    is_ready: bool
    waiting: str
    classes: Mapping[str, str]
    containers: Mapping[str, SeenContainer]

    @property
    def deployment(self) -> str:
        """Its Deployment: a pod is called `<deployment>-<template hash>-<suffix>`."""
        return self.name.rsplit("-", 2)[0]


@dataclass(frozen=True, kw_only=True)
class SeenWarning:
    """An event of type Warning about a pod."""

    pod: str
    reason: str
    message: str
    last: datetime


@dataclass(frozen=True, kw_only=True)
class SeenReport:
    """The last report of a credential probe (`identity/credentials/probe/report.py`).

    `file` is the path in the pod. Client, thumbprint and end are those of the loaded document, None without one.
    """

    file: str | None
    client_id: str | None
    thumbprint: str | None
    expires: datetime | None
    is_signed_in: bool
    sign_in_error: str | None
    is_proven: bool
    proof_status: int | None
    proof_error: str | None
    action: str | None


@dataclass(frozen=True, kw_only=True)
class SeenHostedCluster:
    """A HostedCluster: its `spec` and its conditions."""

    spec: Mapping[str, Any]
    conditions: tuple[HostedClusterCondition, ...]


@dataclass(frozen=True, kw_only=True)
class SeenControlPlane:
    """The namespace of one hosted cluster's control plane.

    `reports` are those of the credential probes, by pod. `hosted_cluster` is None before HyperShift has one, and
    without HyperShift.
    """

    classes: Mapping[str, SeenClass] | Unread
    mounts: tuple[SeenMount, ...] | Unread
    pods: tuple[SeenPod, ...] | Unread
    warnings: tuple[SeenWarning, ...] | Unread
    reports: Mapping[str, SeenReport | Unread]
    hosted_cluster: SeenHostedCluster | Unread | None = None


@dataclass(frozen=True, kw_only=True)
class AzureView:
    """The parts of a world in Azure. In the mappings, None stands for a resource that does not exist.

    `add_on` is the management cluster's, None if there is no such cluster. `secrets` are by name, `roles` by ARM id,
    `assignments` by the key of an `ExpectedAccess`, `definitions` by the role's GUID, `applications` by client id,
    `issuers` by address, `managed_identities` by ARM id.
    """

    vault: SeenVault | Unread | None = NOT_READ
    secrets: Mapping[str, SecretMetadata | Unread | None] = field(default_factory=dict)
    add_on: SeenAddOn | Unread | None = NOT_READ
    roles: Mapping[str, RoleAssignmentRecord | Unread | None] = field(default_factory=dict)
    assignments: Mapping[str, tuple[RoleAssignmentRecord, ...] | Unread] = field(default_factory=dict)
    definitions: Mapping[str, SeenRoleDefinition | Unread | None] = field(default_factory=dict)
    applications: Mapping[str, SeenApplication | Unread | None] = field(default_factory=dict)
    issuers: Mapping[str, SeenIssuer | Unread] = field(default_factory=dict)
    managed_identities: Mapping[str, SeenManagedIdentity | Unread | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StackWorld(AzureView):
    """One look at a stack.

    `last_run` is None before the first one. `decryption` is why the stack's secrets cannot be decrypted, `sign_in` why
    the deployer cannot sign in to Azure, None if they can. `control_planes` are by hosted cluster.
    """

    stack: str
    now: datetime
    state: StackState | Unread
    locks: tuple[SeenLock, ...] | Unread
    last_run: SeenRun | Unread | None
    decryption: str | Unread | None
    configuration: SeenConfiguration | Unread
    sign_in: str | Unread | None = None
    access: SeenAccess | Unread
    control_planes: Mapping[str, SeenControlPlane | Unread]

    def command(self, *words: str) -> str:
        """A command of `idstack` for the stack, in back quotes: its name, the stack, its options."""
        names = [*takewhile(lambda word: not word.startswith("-"), words)]
        return f"`{' '.join(['.venv/bin/idstack', *names, '--stack', self.stack, *words[len(names) :]])}`"

    @property
    def repair(self) -> str:
        """The command that restores the resources of the stack's program."""
        return self.command("up", "--refresh")
