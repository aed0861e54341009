"""What was seen of a stack: metadata, objects and reports of one moment, without any secret's value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from identity import yaml_text
from identity.azure.errors import AccessError
from identity.azure.records import FederatedCredentialRecord, RoleAssignmentRecord, SecretMetadata
from identity.credentials import rfc3339
from identity.settings import Problem
from identity.settings.schema.schema_node import PLACEHOLDER
from ops.stack.errors import CommandError
from ops.world.expected import StackState, VaultRecord

T = TypeVar("T")
_MAX_LENGTH: Final = 300  # of a refusal, which ends with the service's JSON


@dataclass(frozen=True)
class Unread:
    """A value that could not be read; `why` is shown to the user, `is_forbidden` if a right is missing."""

    why: str
    is_forbidden: bool = False

    @classmethod
    def because(cls, error: Exception, why: str | None = None) -> Self:
        """A read that failed with this error; `why` replaces its message."""
        return cls(str(error) if why is None else why, isinstance(error, AccessError) and error.is_forbidden)


NOT_READ: Final = Unread("it was not read")
"""A value that no check needs."""


def attempt(read: Callable[[], T]) -> T | Unread:
    """Read a value; unread if the engine, Azure or the management cluster refuses."""
    try:
        return read()
    except CommandError as error:
        return Unread.because(error)
    except AccessError as error:
        return Unread.because(error, " ".join(str(error).split())[:_MAX_LENGTH])


class NotReadError(Exception):
    """A check needs a value that could not be read; the message has the reason."""

    def __init__(self, why: str, *, is_forbidden: bool = False) -> None:
        super().__init__(why)
        self.is_forbidden = is_forbidden


def known(seen: T | Unread) -> T:
    """The value; raises NotReadError."""
    if isinstance(seen, Unread):
        raise NotReadError(seen.why, is_forbidden=seen.is_forbidden)
    return seen


def entry(seen: Mapping[str, T | Unread], key: str) -> T:
    """The value of a key; raises NotReadError, also for a key that was not read."""
    if key not in seen:
        raise NotReadError(f"{key} was not read")
    return known(seen[key])


class Part(StrEnum):
    """The parts of a world; each value is the right to read it."""

    STATE = "to read the stack's state in the backend"
    LOCKS = "to list the backend's lock files"
    HISTORY = "to read the stack's history in the backend"
    DECRYPTION = "to use the stack's secrets provider"
    CONFIGURATION = "to read the stack's configuration"
    SIGN_IN = "to sign in to Azure"
    ACCESS = "to sign in to the management cluster"
    VAULT = "Reader on the key vault"
    SECRETS = "Reader on the key vault, for the metadata of its secrets"
    ADD_ON = "Reader on the management cluster"
    ROLES = "Reader at the scopes of the role assignments"
    APPLICATIONS = "Application.Read.All in Microsoft Graph"
    ISSUERS = "to reach the issuers of the hosted clusters over HTTPS"
    MANAGED_IDENTITIES = "Reader on the resource group of the managed identities"
    CONTROL_PLANES = "get and list on the objects of the control plane's namespace"
    REPORTS = "get on pods/proxy in the control plane's namespace, for the probes' reports"


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


# The keys by which backend, Azure and the management cluster are reached.
_FOR_SIGN_IN: Final = frozenset({"backend", "tenantId", "subscriptionId", "managementCluster"})


@dataclass(frozen=True, kw_only=True)
class SeenConfiguration:
    """The refused values of the configuration, and the names in its `hostedClusters`, None for one without a name.

    Without a refused value it has the enabled identities by hosted cluster instead.
    """

    refused: tuple[Problem, ...] = ()
    clusters: tuple[str | None, ...] = ()
    identities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def cluster_of(self, problem: Problem) -> str | None:
        """The hosted cluster of a refused value; None for a value of the stack."""
        match problem.place:
            case ("hostedClusters", int(index), *_):
                return self.clusters[index]
        return None

    @property
    def prevents_sign_in(self) -> bool:
        """Whether no sign-in can work before the placeholders are filled in."""
        return any(PLACEHOLDER in value.found and value.place[0] in _FOR_SIGN_IN for value in self.refused)


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


EXCEPTIONS: Final = {"actions": "notActions", "dataActions": "notDataActions"}
"""The members of a permission in ARM: an entry grants what matches one of its patterns and none of its exceptions."""


@dataclass(frozen=True, kw_only=True)
class SeenRoleDefinition:
    """A role definition in ARM with its permissions; a custom one can be changed."""

    name: str
    is_custom: bool
    permissions: tuple[Mapping[str, tuple[str, ...]], ...]


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
    credentials: tuple[FederatedCredentialRecord, ...]

    def trusts(self, issuer: str, subject: str, audience: str) -> bool:
        """Whether a credential of it fits such a token: Entra ID compares all three."""
        place = (issuer, subject)
        return any((one.issuer, one.subject) == place and audience in one.audiences for one in self.credentials)


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


_CONDITIONS: Final[Mapping[str, Sequence[str]]] = yaml_text.load(
    Path(__file__).with_name("conditions.yaml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class HostedClusterCondition:
    """One condition of a HostedCluster; `status` is True, False or Unknown.

    `is_unverifiable`: HyperShift cannot verify it for this cluster, so Unknown counts as True.
    """

    cluster: str
    type: str
    status: str
    reason: str
    message: str
    is_unverifiable: bool = False

    @property
    def is_expected(self) -> bool:
        """Whether a running cluster has this status."""
        if self.type in _CONDITIONS["anyStatus"] or (self.is_unverifiable and self.status == "Unknown"):
            return True
        return self.status == ("False" if self.type in _CONDITIONS["false"] else "True")

    @property
    def is_shown(self) -> bool:
        """Whether it is in the table: a main condition, or one with an unexpected status."""
        return self.type in _CONDITIONS["shown"] or not self.is_expected

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "expected": self.is_expected,
        }


@dataclass(frozen=True, kw_only=True)
class ProbeStep:
    """The last sign-in, or the last proof call with its HTTP status and the required permission, and its time.

    `error` is None also before the first one.
    """

    ok: bool
    error: str | None
    at: str | None = None
    status: int | None = None
    action: str | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return cls(**{name: answer[name] for name in cls.__dataclass_fields__ if name in answer})


@dataclass(frozen=True, kw_only=True)
class SeenReport:
    """The last report of a credential probe (`identity/credentials/probe/report.py`, GET /readyz).

    `file` is the path in the pod. Client, thumbprint and end are those of the loaded document, None without one.
    `document` is the whole answer, for scripts.
    """

    is_ready: bool  # its sign-in and its proof call worked
    file: str | None
    client_id: str | None
    thumbprint: str | None
    expires: datetime | None
    sign_in: ProbeStep
    proof: ProbeStep
    document: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, answer: Any, mounts: Path | None = None) -> Self:
        """Parse an answer; `mounts` are the local kubelet's volumes. Raises ValueError for anything else."""
        if not isinstance(answer, Mapping) or "signIn" not in answer:
            raise ValueError("it is no report of a probe")
        # Every document of ours names the client so.
        document = {"clientID" if key == "clientId" else key: value for key, value in answer.items()}
        file, expires = document["credentialFile"], document["notAfter"]
        return cls(
            is_ready=document["ready"],
            file=file if file is None or mounts is None else _path_in_pod(Path(file), mounts),
            client_id=document.get("clientID"),
            thumbprint=document.get("thumbprint"),
            expires=rfc3339.parse(expires) if expires else None,
            sign_in=ProbeStep.of(document["signIn"]),
            proof=ProbeStep.of(document["proof"]),
            document=document,
        )


def _path_in_pod(file: Path, mounts: Path) -> str:
    """A file's path in its pod: below the local kubelet's volumes, it follows namespace and pod."""
    for root in (mounts, mounts.resolve()):
        if file.is_relative_to(root):
            return str(Path("/", *file.relative_to(root).parts[2:]))
    return str(file)


@dataclass(frozen=True, kw_only=True)
class SeenMount:
    """A SecretProviderClassPodStatus: the driver's mount in a pod; `versions` are by object id."""

    pod: str
    secret_provider_class: str
    is_mounted: bool
    versions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class SeenHostedCluster:
    """A HostedCluster: its `spec` and its conditions."""

    spec: Mapping[str, Any]
    conditions: tuple[HostedClusterCondition, ...]


@dataclass(frozen=True, kw_only=True)
class SeenControlPlane:
    """The namespace of one hosted cluster's control plane.

    `classes` has the `spec` of each SecretProviderClass. `reports` are those of the credential probes, by pod.
    `hosted_cluster` is None before HyperShift has one, and without HyperShift.
    """

    classes: Mapping[str, Mapping[str, Any]] | Unread
    mounts: tuple[SeenMount, ...] | Unread
    pods: tuple[SeenPod, ...] | Unread
    warnings: tuple[SeenWarning, ...] | Unread
    reports: Mapping[str, SeenReport | Unread]
    hosted_cluster: SeenHostedCluster | Unread | None = None


@dataclass(frozen=True, kw_only=True)
class AzureView:
    """The parts of a world in Azure. In the mappings, None stands for a resource that does not exist.

    `add_on` has `enabled` and `config` of the secrets-store add-on in the profile of the management cluster, None if
    there is no such cluster. `secrets` are by name, `roles` by ARM id, `assignments` by the key of an `ExpectedAccess`,
    `definitions` by the role's GUID, `applications` by client id, `issuers` by address, `managed_identities` by ARM id.
    """

    vault: VaultRecord | Unread | None = NOT_READ
    secrets: Mapping[str, SecretMetadata | Unread | None] = field(default_factory=dict)
    add_on: Mapping[str, Any] | Unread | None = NOT_READ
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
