"""One look at a stack: reads the parts that the chosen checks need, and no others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
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
from ops.world.azure import AzureView, read_azure, unread_azure
from ops.world.backend import read_decryption, read_last_run, read_locks
from ops.world.configuration import read_configuration
from ops.world.control_planes import read_control_planes
from ops.world.expected import StackState
from ops.world.parts import Part
from ops.world.seen import NOT_READ, Unread
from ops.world.selection import EVERYTHING, Selection
from ops.world.stack_world import SeenAccess, SeenControlPlane, StackWorld
from ops.world.state import expected

_CLUSTER: Final = frozenset({Part.ACCESS, Part.CONTROL_PLANES, Part.REPORTS})
_AZURE: Final = frozenset(
    {Part.VAULT, Part.SECRETS, Part.ADD_ON, Part.ROLES, Part.APPLICATIONS, Part.ISSUERS, Part.MANAGED_IDENTITIES}
)


@dataclass(frozen=True)
class DoctorSources:
    """The sources of the world: the engine, Azure and the management cluster, with the caller's sign-ins.

    `mounts` is the directory of the local kubelet's volumes, None for a stack on Azure.
    """

    engine: Engine
    azure: Callable[[], AbstractContextManager[AzureClient]]
    api_server: Callable[[], AbstractContextManager[ApiServer]]
    mounts: Path | None

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """The sources of a stack. Raises CommandError for a local stack without a local cloud."""
        local = local_cloud.of(engine.stack)
        return cls(
            engine,
            partial(deployer, engine),
            partial(api_server, engine),
            Path(local.mounts_dir) if local else None,
        )


def look(sources: DoctorSources, parts: Set[Part], selection: Selection = EVERYTHING) -> StackWorld:
    """Read these parts of the world for the selection. A part that cannot be read is `Unread`.

    Raises CommandError for a selected name that the stack does not have.
    """
    engine = sources.engine
    state = _state(engine) if Part.STATE in parts else NOT_READ
    if isinstance(state, Unread) and Part.STATE in parts:
        return _without_state(engine.stack, state)
    if isinstance(state, StackState):
        state = selection.of_state(state)
    decryption = read_decryption(engine) if Part.DECRYPTION in parts else NOT_READ
    if isinstance(decryption, str):  # the clients of Azure and the cluster need the configuration first
        parts = parts - _AZURE - _CLUSTER - {Part.CONFIGURATION}
    access, control_planes = _cluster(sources, state, parts)
    if isinstance(state, StackState):
        state, control_planes = _selected(selection, state, control_planes)
    return StackWorld(
        stack=engine.stack,
        now=datetime.now(UTC),
        state=state,
        locks=read_locks(engine, sources.azure) if Part.LOCKS in parts else NOT_READ,
        last_run=read_last_run(engine) if Part.HISTORY in parts else NOT_READ,
        decryption=decryption,
        configuration=read_configuration(engine) if Part.CONFIGURATION in parts else NOT_READ,
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
    """A world without a state, mostly because of the backend: other reads would fail in the same way."""
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
    """The clusters and control planes of the selected pod."""
    clusters, narrowed_planes = [], dict(planes)
    for cluster in state.clusters:
        narrowed, plane = cluster, planes.get(cluster.cluster, NOT_READ)
        if not isinstance(plane, Unread):
            narrowed, narrowed_planes[cluster.cluster] = selection.of_plane(cluster, plane)
        clusters.append(narrowed)
    return replace(state, clusters=tuple(clusters)), narrowed_planes


def _azure(sources: DoctorSources, state: StackState | Unread, parts: Collection[Part]) -> AzureView:
    if isinstance(state, Unread) or not set(parts) & _AZURE:
        return AzureView(vault=NOT_READ, secrets={}, add_on=NOT_READ, applications={})
    try:
        with sources.azure() as clients:
            return read_azure(clients, state, parts)
    except (AccessError, CommandError) as error:
        return unread_azure(Unread.because(error, f"Azure: {error}"), state)


def _cluster(
    sources: DoctorSources, state: StackState | Unread, parts: Collection[Part]
) -> tuple[SeenAccess | Unread, dict[str, SeenControlPlane | Unread]]:
    if not set(parts) & _CLUSTER:
        return NOT_READ, {}
    clusters = () if isinstance(state, Unread) else state.clusters
    try:
        with sources.api_server() as server:
            access: SeenAccess | Unread = NOT_READ
            if Part.ACCESS in parts:
                engine = sources.engine
                access = read_access(server, engine.configured(), rights_on_cluster(engine))
            if isinstance(state, Unread) or not set(parts) & {Part.CONTROL_PLANES, Part.REPORTS}:
                return access, {}
            return access, dict(read_control_planes(server, state, parts, sources.mounts))
    except (AccessError, CommandError) as error:
        unread = Unread.because(error, f"the management cluster: {error}")
        return refused(error), {cluster.cluster: unread for cluster in clusters}
