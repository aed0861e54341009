"""One look at a stack: every part that the chosen checks need, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from identity.access.api_server import ApiServer
from identity.access.azure_client import AzureClient
from identity.access.errors import AccessError
from ops.access.azure import deployer
from ops.access.management_cluster import api_server
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import rights_on_cluster
from ops.world.access import read_access, refused
from ops.world.azure import AzureView, read_azure, unseen
from ops.world.backend import read_decryption, read_last_run, read_locks
from ops.world.configuration import read_configuration
from ops.world.control_planes import read_control_planes
from ops.world.expected import StackState
from ops.world.parts import Part
from ops.world.seen import Unread
from ops.world.selection import EVERYTHING, Selection
from ops.world.stack_world import SeenAccess, SeenControlPlane, StackWorld
from ops.world.state import expected

_AZURE: Final = frozenset(
    {
        *(Part.VAULT, Part.SECRETS, Part.ADD_ON, Part.ROLES, Part.APPLICATIONS),
        *(Part.ISSUERS, Part.MANAGED_IDENTITIES),
    }
)
_CLUSTER: Final = frozenset({Part.ACCESS, Part.CONTROL_PLANES, Part.REPORTS})
_NOT_WANTED: Final = Unread("it was not looked for")


@dataclass(frozen=True)
class DoctorSources:
    """Whom the readers ask: the engine, Azure and the management cluster, each as whoever runs the doctor.

    `mounts` is where the local kubelet mounts volumes, None for a stack on Azure.
    """

    engine: Engine
    azure: Callable[[], AbstractContextManager[AzureClient]]
    api_server: Callable[[], AbstractContextManager[ApiServer]]
    mounts: Path | None

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """Those of the stack's own commands. Raises CommandError for a local stack without a local cloud."""
        local = local_cloud.of(engine.stack)
        return cls(
            engine,
            lambda: deployer(engine.stack, engine.configured(), local),
            lambda: api_server(engine),
            Path(local.mounts_dir) if local else None,
        )


def look(sources: DoctorSources, parts: Set[Part], selection: Selection = EVERYTHING) -> StackWorld:
    """The world as it is now, as far as the parts and the selection go. What cannot be read is unread.

    Raises CommandError for a selected name that the stack does not have.
    """
    engine = sources.engine
    state = _state(engine) if Part.STATE in parts else _NOT_WANTED
    if isinstance(state, Unread) and Part.STATE in parts:
        return _without_state(engine.stack, state)
    if isinstance(state, StackState):
        state = selection.of_state(state)
    decryption = read_decryption(engine) if Part.DECRYPTION in parts else _NOT_WANTED
    if isinstance(decryption, str):  # whoever asks Azure or the cluster needs the configuration first
        parts = parts - _AZURE - _CLUSTER - {Part.CONFIGURATION}
    access, control_planes = _cluster(sources, state, parts)
    if isinstance(state, StackState):
        state, control_planes = _selected(selection, state, control_planes)
    return StackWorld(
        stack=engine.stack,
        now=datetime.now(UTC),
        state=state,
        locks=read_locks(engine, sources.azure) if Part.LOCKS in parts else _NOT_WANTED,
        last_run=read_last_run(engine) if Part.HISTORY in parts else _NOT_WANTED,
        decryption=decryption,
        configuration=read_configuration(engine) if Part.CONFIGURATION in parts else _NOT_WANTED,
        access=access,
        control_planes=control_planes,
        **vars(_azure(sources, state, parts)),
    )


def _state(engine: Engine) -> StackState | Unread:
    try:
        return expected(engine.state())
    except CommandError as error:
        return Unread.because(error)


def _without_state(stack: str, why: Unread) -> StackWorld:
    """Whoever has no state has no backend, mostly: each further question would only wait for the same answer."""
    azure = AzureView(vault=why, secrets={}, add_on=why, applications={})
    return StackWorld(
        stack=stack,
        now=datetime.now(UTC),
        state=why,
        locks=why,
        last_run=why,
        decryption=why,
        configuration=why,
        access=why,
        control_planes={},
        **vars(azure),
    )


def _selected(
    selection: Selection, state: StackState, planes: Mapping[str, SeenControlPlane | Unread]
) -> tuple[StackState, dict[str, SeenControlPlane | Unread]]:
    """What the pod that was named leaves of the clusters."""
    clusters, seen = [], dict(planes)
    for cluster in state.clusters:
        narrowed, plane = cluster, planes.get(cluster.cluster, _NOT_WANTED)
        if not isinstance(plane, Unread):
            narrowed, seen[cluster.cluster] = selection.of_plane(cluster, plane)
        clusters.append(narrowed)
    return replace(state, clusters=tuple(clusters)), seen


def _azure(sources: DoctorSources, state: StackState | Unread, parts: Collection[Part]) -> AzureView:
    if isinstance(state, Unread) or not set(parts) & _AZURE:
        return AzureView(vault=_NOT_WANTED, secrets={}, add_on=_NOT_WANTED, applications={})
    try:
        with sources.azure() as clients:
            return read_azure(clients, state, parts)
    except (AccessError, CommandError, KeyError) as error:
        return unseen(Unread.because(error, f"Azure: {error}"), state)


def _cluster(
    sources: DoctorSources, state: StackState | Unread, parts: Collection[Part]
) -> tuple[SeenAccess | Unread, dict[str, SeenControlPlane | Unread]]:
    if not set(parts) & _CLUSTER:
        return _NOT_WANTED, {}
    clusters = () if isinstance(state, Unread) else state.clusters
    try:
        with sources.api_server() as server:
            access: SeenAccess | Unread = _NOT_WANTED
            if Part.ACCESS in parts:
                engine = sources.engine
                access = read_access(server, engine.configured(), rights_on_cluster(engine))
            if isinstance(state, Unread) or not set(parts) & {Part.CONTROL_PLANES, Part.REPORTS}:
                return access, {}
            return access, dict(read_control_planes(server, state, parts, sources.mounts))
    except (AccessError, CommandError) as error:
        why = Unread.because(error, f"the management cluster: {error}")
        return refused(error), {each.cluster: why for each in clusters}
