"""Reads a stack at one moment: the parts that the chosen checks need (file, backend, access, Azure), and no others; of
a selected hosted cluster, identity or pod the rest is neither read nor checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from identity.aks.api_server import AccessRequirements, ApiServer
from identity.azure.client import AzureClient
from identity.azure.errors import AccessError, AzureRefusedError
from identity.credentials import rfc3339
from identity.settings import ConfigurationError
from identity.settings.schema.problems import value_at
from identity.similar import did_you_mean
from ops.access.clients import api_server, deployer, sign_in_refusal
from ops.stack import local_cloud, lock
from ops.stack.engine import Engine
from ops.stack.environment import project_name
from ops.stack.errors import CommandError, NoManagementClusterError, why_unreadable
from ops.stack.settings import access_requirements, settings_in_the_file_of
from ops.stack.stack_document import backend_folder
from ops.stack.state_file import StateDamagedError
from ops.world.azure import read_azure
from ops.world.cluster_state import ProbeResults, local_probes, read_control_plane
from ops.world.expected import Cluster, GrantedPrincipal, Identity, StackState, expected
from ops.world.seen import (
    NOT_READ,
    AzureView,
    Part,
    SeenAccess,
    SeenConfiguration,
    SeenControlPlane,
    SeenLock,
    SeenRun,
    StackWorld,
    Unread,
    attempt,
    known,
)

P = TypeVar("P", bound=GrantedPrincipal)


class Subject(Protocol):
    """The subject of a check or a row: a stack (both None), a hosted cluster, or one of its identities."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def identity(self) -> str | None: ...


RowT = TypeVar("RowT", bound=Subject)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The selected names; without any, everything. A pod excludes other names."""

    cluster: str | None = None
    identity: str | None = None
    namespace: str | None = None
    pod: str | None = None

    @classmethod
    def of(cls, cluster: str | None, identity: str | None, pod: str | None) -> Self:
        """Parse `<identity>` or `<cluster>/<identity>`, and `<namespace>/<name>`. Raises ValueError with the reason."""
        if pod is not None:
            namespace, _, name = pod.partition("/")
            if cluster or identity:
                raise ValueError("--pod already selects the cluster and its identities: leave out the other option")
            if not namespace or not name or "/" in name:
                raise ValueError(f"--pod: found {pod!r}; accepted: <namespace>/<name>")
            return cls(namespace=namespace, pod=name)
        of_identity, _, field = (identity or "").rpartition("/")
        if of_identity and cluster not in (None, of_identity):
            raise ValueError(f"--identity {identity} is not of the cluster {cluster}")
        return cls(cluster=of_identity or cluster, identity=field or None)

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    def has(self, cluster: str | None, identity: str | None) -> bool:
        """Whether this place is selected by its names; one of the whole stack (None), or of a whole cluster, always."""
        return self.cluster in (None, cluster or self.cluster) and self.identity in (None, identity or self.identity)

    def of_rows(self, rows: Iterable[RowT]) -> list[RowT]:
        """Those of the selected identities."""
        return [row for row in rows if self.has(row.cluster, row.identity)]

    def of_state(self, state: StackState) -> StackState:
        """The selected part of the state. Raises CommandError for a name that the stack does not have.

        For a pod of no Deployment of the stack's identities, all identities of the cluster: `of_plane` finds those that
        the pod mounts.
        """
        if self.is_everything or not state.is_up:
            return state
        clusters = [
            cluster
            for cluster in state.clusters
            if self.cluster in (None, cluster.cluster) and self.namespace in (None, cluster.namespace)
        ]
        if not clusters:
            name, names, kind = str(self.cluster), [cluster.cluster for cluster in state.clusters], "hosted cluster"
            if self.namespace is not None:
                name, names = self.namespace, [cluster.namespace for cluster in state.clusters]
                kind = "control plane in"
            listed = f"there are {', '.join(names) or 'none'}{did_you_mean(name, names)}"
            raise CommandError(f"the stack has deployed no {kind} {name}; {listed}")
        if self.pod is not None:
            deployment = self.pod.rsplit("-", 2)[0]
            consumers = [
                replace(cluster, identities=_of_deployment(cluster, deployment), guests=()) for cluster in clusters
            ]
            is_known = any(cluster.identities for cluster in consumers)
            return replace(state, clusters=tuple(consumers if is_known else clusters))
        narrowed = [
            replace(cluster, identities=self._of_identity(cluster.identities), guests=self._of_identity(cluster.guests))
            for cluster in clusters
        ]
        if not any(cluster.identities or cluster.guests for cluster in narrowed):
            known_names = dict.fromkeys(
                identity.identity for cluster in clusters for identity in (*cluster.identities, *cluster.guests)
            )
            raise CommandError(
                f"no identity {self.identity} in {', '.join(cluster.cluster for cluster in clusters)}; there are "
                f"{', '.join(known_names)}{did_you_mean(self.identity or '', known_names)}"
            )
        return replace(state, clusters=tuple(cluster for cluster in narrowed if cluster.identities or cluster.guests))

    def of_plane(self, cluster: Cluster, plane: SeenControlPlane) -> tuple[Cluster, SeenControlPlane]:
        """Cluster and control plane with the selected pod alone. Raises CommandError for a pod that does not exist."""
        if self.pod is None or isinstance(plane.pods, Unread):
            return cluster, plane
        pods = {pod.name: pod for pod in known(plane.pods)}
        if self.pod not in pods:
            raise CommandError(f"there is no pod {self.pod} in {self.namespace}{did_you_mean(self.pod, pods)}")
        pod = pods[self.pod]
        own = {identity.identity for identity in _of_deployment(cluster, pod.deployment)}
        identities = tuple(
            replace(identity, mounts=tuple(mount for mount in identity.mounts if mount.deployment == pod.deployment))
            for identity in cluster.identities
            if identity.identity in own or identity.secret_provider_class in pod.classes.values()
        )
        if not identities:
            owners = dict.fromkeys(mount.deployment for identity in cluster.identities for mount in identity.mounts)
            raise CommandError(
                f"the pod {self.namespace}/{self.pod} mounts no credential of this stack; those of {cluster.cluster} "
                f"are mounted by {', '.join(owners)}"
            )
        return replace(cluster, identities=identities, guests=()), replace(plane, pods=(pod,))

    def _of_identity(self, principals: Collection[P]) -> tuple[P, ...]:
        return tuple(principal for principal in principals if self.identity in (None, principal.identity))


EVERYTHING: Final = Selection()


def _of_deployment(cluster: Cluster, deployment: str) -> tuple[Identity, ...]:
    return tuple(
        identity for identity in cluster.identities if any(mount.deployment == deployment for mount in identity.mounts)
    )


CLUSTER: Final = frozenset({Part.ACCESS, Part.CONTROL_PLANES, Part.REPORTS})
AZURE: Final = frozenset(
    {Part.VAULT, Part.SECRETS, Part.ADD_ON, Part.ROLES, Part.APPLICATIONS, Part.ISSUERS, Part.MANAGED_IDENTITIES}
)


def read_world(engine: Engine, parts: Set[Part], selection: Selection = EVERYTHING) -> StackWorld:
    """Read these parts of the world for the selection. A part that cannot be read is `Unread`.

    Raises CommandError for a selected name that the stack does not have, and for a local stack without a local cloud.
    """
    local_cloud.of(engine.stack)
    configuration = read_configuration(engine) if Part.CONFIGURATION in parts else NOT_READ
    placeholders = None
    if not isinstance(configuration, Unread) and configuration.prevents_sign_in:
        placeholders = Unread(f"{engine.file.name} still has placeholders, with which no sign-in works")
    state = attempt(lambda: expected(engine.state())) if Part.STATE in parts else NOT_READ
    if isinstance(state, Unread) and Part.STATE in parts:
        # Mostly because of the backend: other reads would fail in the same way.
        everything = ("state", "locks", "last_run", "decryption", "sign_in", "access", "vault", "add_on")
        unread: dict[str, Any] = dict.fromkeys(everything, placeholders or state)
        unread["configuration"] = configuration if placeholders else state
        return StackWorld(stack=engine.stack, now=datetime.now(UTC), control_planes={}, **unread)
    if isinstance(state, StackState):
        state = selection.of_state(state)
    sign_in: str | Unread | None = placeholders or NOT_READ
    if placeholders is None and not parts.isdisjoint(CLUSTER | AZURE):
        # Tried once instead of before each read behind it.
        sign_in = attempt(lambda: sign_in_refusal(engine))
    if isinstance(sign_in, str):
        parts -= CLUSTER | AZURE
    access, control_planes = (placeholders, {}) if placeholders else _cluster(engine, state, parts)
    if isinstance(state, StackState) and selection.pod is not None:
        for cluster in state.clusters:  # the one of its namespace
            if not isinstance(plane := control_planes.get(cluster.cluster, NOT_READ), Unread):
                narrowed, control_planes[cluster.cluster] = selection.of_plane(cluster, plane)
                state = replace(state, clusters=(narrowed,))
    return StackWorld(
        stack=engine.stack,
        now=datetime.now(UTC),
        state=state,
        locks=read_locks(engine) if Part.LOCKS in parts else NOT_READ,
        last_run=read_last_run(engine) if Part.HISTORY in parts else NOT_READ,
        decryption=read_decryption(engine) if Part.DECRYPTION in parts else NOT_READ,
        configuration=configuration,
        sign_in=sign_in,
        access=access,
        control_planes=control_planes,
        **vars(_azure(engine, state, parts)),
    )


def _azure(engine: Engine, state: StackState | Unread, parts: Collection[Part]) -> AzureView:
    if isinstance(state, Unread) or not set(parts) & AZURE:
        return AzureView()
    try:
        with deployer(engine) as clients:
            return read_azure(clients, state, parts)
    except (AccessError, CommandError) as error:
        return read_azure(Unread.because(error, f"Azure: {error}"), state, parts)


def _cluster(
    engine: Engine, state: StackState | Unread, parts: Collection[Part]
) -> tuple[SeenAccess | Unread, dict[str, SeenControlPlane | Unread]]:
    if not set(parts) & CLUSTER:
        return NOT_READ, {}
    clusters = () if isinstance(state, Unread) else state.clusters
    results = probe_results(engine) if Part.REPORTS in parts else None
    try:
        with api_server(engine) as server:
            access: SeenAccess | Unread = NOT_READ
            if Part.ACCESS in parts:
                access = read_access(server, access_requirements(engine))
            if isinstance(state, Unread) or not set(parts) & {Part.CONTROL_PLANES, Part.REPORTS}:
                return access, {}
            return access, {
                cluster.cluster: read_control_plane(server, cluster, parts, results) for cluster in clusters
            }
    except (AccessError, CommandError) as error:
        unread = Unread.because(error, f"the management cluster: {error}")
        return refused(error), {cluster.cluster: unread for cluster in clusters}


def probe_results(engine: Engine) -> ProbeResults | Unread | None:
    """The reports of the local cloud's probes, read once; None on Azure."""
    local = local_cloud.of(engine.stack)
    return None if local is None else engine.once("probes", lambda: attempt(lambda: local_probes(local)))


def read_configuration(engine: Engine) -> SeenConfiguration | Unread:
    """The refused values of the configuration, or the enabled identities."""
    try:
        settings = settings_in_the_file_of(engine)
    except CommandError as error:
        return Unread.because(error)
    except ConfigurationError as error:
        clusters = value_at(engine.written(), ("hostedClusters",))
        names = [value_at(cluster, ("name",)) for cluster in clusters] if isinstance(clusters, list) else []
        named = tuple(name if isinstance(name, str) and name else None for name in names)
        return SeenConfiguration(refused=error.problems, clusters=named)
    enabled = {
        cluster.name: cluster.enabled_rows if cluster.has_credentials else cluster.federated_rows
        for cluster in settings.hosted_clusters
    }
    return SeenConfiguration(identities={name: tuple(row.field for row in rows) for name, rows in enabled.items()})


_READS: Final = frozenset({"get", "list", "watch"})


def read_access(server: ApiServer, required: AccessRequirements) -> SeenAccess | Unread:
    """Sign in, and check the permissions and every kind that a stack needs."""
    try:
        server.check_sign_in()
        missing = server.missing(required)
    except AccessError as error:
        return refused(error)
    reads = {permission for permission in required.permissions if permission.verb in _READS}
    writes, lacking = set(required.permissions) - reads, set(server.lacking)
    return SeenAccess(
        server=server.server,
        who=server.who,
        missing=tuple(missing),
        hint=server.hint,
        is_read_only=writes <= lacking and not reads <= lacking,
    )


def refused(error: AccessError | CommandError) -> SeenAccess | Unread:
    """A failed access; unread if the caller lacks the right to try it."""
    text = " ".join(str(error).split())
    is_forbidden = isinstance(error, AzureRefusedError) and error.is_forbidden
    if is_forbidden or isinstance(error, NoManagementClusterError):
        return Unread.because(error, text)
    return SeenAccess(
        server="the management cluster",
        who="the stack",
        missing=(f"a sign-in: {text}",),
        hint="correct what the error names (docs/guides/aks-access.md)",
        is_read_only=False,
    )


# In the errors of a key service that refuses the caller.
_REFUSED: Final = ("Forbidden", "AuthorizationFailed", "StatusCode=403", "RESPONSE 403")


Azure: TypeAlias = Callable[[], AbstractContextManager[AzureClient]]


def read_locks(engine: Engine, azure: Azure | None = None) -> tuple[SeenLock, ...] | Unread:
    """The locks on the stack, if its backend shows them; `azure` or the deployer reads those in a storage account."""
    try:
        backend = engine.backend()
        folder = f"locks/organization/{project_name(engine.root)}/{engine.stack}"
        if (directory := backend_folder(backend)) is not None:
            locks = dict(_files(directory / folder))
        elif (address := urlsplit(backend)).scheme == "azblob":
            locks = _blobs(address, f".pulumi/{folder}", engine.environment, azure or partial(deployer, engine))
        else:
            return Unread(
                f"the locks of {backend.partition('?')[0]} cannot be read; `up` names the owner of a lock and "
                "changes nothing"
            )
    except (AccessError, CommandError) as error:
        return Unread.because(error)
    except OSError as error:
        return Unread(f"the locks cannot be read: {why_unreadable(error)}")
    return tuple(_lock(text, written, engine) for text, written in locks.items())


def _files(folder: Path) -> Iterator[tuple[str, datetime]]:
    """Content and time of each lock file; raises OSError."""
    # `glob` would find nothing in a folder that it may not read. The draft of a full disk locks the stack as well.
    files = folder.iterdir() if folder.is_dir() else ()
    for file in sorted(file for file in files if ".json" in file.name):
        with suppress(FileNotFoundError):  # its engine has ended
            yield file.read_text(encoding="utf-8"), datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _blobs(address: SplitResult, folder: str, environment: Mapping[str, str], azure: Azure) -> dict[str, datetime]:
    """Content of each lock file in the container of an address of gocloud.dev/blob/azureblob."""
    query = parse_qs(address.query)
    account = query.get("storage_account", [environment.get("AZURE_STORAGE_ACCOUNT", "")])[0]
    if not account:
        raise CommandError("the backend's address names no storage_account, and AZURE_STORAGE_ACCOUNT is not set")
    prefix = query.get("prefix", [""])[0]
    with azure() as clients:
        container = f"https://{account}.blob.{clients.cloud.storage_suffix}/{address.netloc}"
        names = clients.blob_names(container, f"{prefix}{folder}/")
        now = datetime.now(UTC)
        return {
            clients.blob(f"{container}/{quote(name)}").decode(): now for name in sorted(names) if name.endswith(".json")
        }


def _lock(text: str, written: datetime, engine: Engine) -> SeenLock:
    try:
        document: dict[str, Any] = json.loads(text)
    except ValueError:
        return SeenLock(owner="an engine that could not write its lock", since=written, runs=False)
    owner = lock.Owner(
        user=str(document.get("username", "an unknown user")),
        host=str(document.get("hostname", "an unknown machine")),
        pid=int(document.get("pid", 0)),
        since=str(document.get("timestamp", "")),
    )
    with suppress(ValueError):
        written = rfc3339.parse(owner.since)
    return SeenLock(
        owner=f"{owner.user}@{owner.host} (pid {owner.pid})",
        since=written,
        runs=lock.owner_runs(owner, engine.engines, is_local=engine.is_local) if owner.pid else None,
    )


# Options of a run of some of the stack's resources: a renewal, for example.
_PARTIAL: Final = frozenset({"pulumi.flag.target", "pulumi.flag.exclude"})


def read_last_run(engine: Engine) -> SeenRun | Unread | None:
    """The `up` or `destroy` that decides whether the stack is complete; None before the first one.

    It is the newest run of all resources that completed, or a later one that failed after a change. One that failed
    before any change leaves the stack as it was, and a partial run repairs only another partial one.
    """
    newest, has_succeeded_in_part = None, False
    try:
        for update in engine.updates():
            newest = newest or update
            is_partial = not _PARTIAL.isdisjoint(update.get("environment") or {})
            if update["result"] == "succeeded":
                if not is_partial:
                    break
                has_succeeded_in_part = True
            elif update["result"] == "failed" and not (is_partial and has_succeeded_in_part):
                changes = (update.get("resourceChanges") or {}).items()
                if any(count for operation, count in changes if operation != "same"):
                    return SeenRun(kind=update["kind"], started=update["startTime"], has_failed=True)
    except CommandError as error:
        return Unread.because(error)
    return newest and SeenRun(kind=newest["kind"], started=newest["startTime"], has_failed=False)


def read_decryption(engine: Engine) -> str | Unread | None:
    """Why the stack's secrets cannot be decrypted, None if they can."""
    try:
        refusal = engine.decryption_refusal()
    except StateDamagedError as error:
        return Unread.because(error)
    if refusal is not None and any(word in refusal for word in _REFUSED):
        return Unread(refusal)
    return refusal
