"""One look at a stack: reads the parts that the chosen checks need, and no others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from identity.azure.errors import AccessError
from ops.access.azure import deployer
from ops.access.management_cluster import api_server
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import rights_on_cluster
from ops.world.access import read_access, refused
from ops.world.azure import read_azure, unread_azure
from ops.world.backend import read_decryption, read_last_run, read_locks
from ops.world.configuration import read_configuration
from ops.world.control_planes import read_control_planes
from ops.world.expected import StackState
from ops.world.parts import Part
from ops.world.seen import NOT_READ, Unread
from ops.world.selection import EVERYTHING, Selection
from ops.world.stack_world import AzureView, SeenAccess, SeenConfiguration, SeenControlPlane, StackWorld
from ops.world.state import expected

_CLUSTER: Final = frozenset({Part.ACCESS, Part.CONTROL_PLANES, Part.REPORTS})
_AZURE: Final = frozenset(
    {Part.VAULT, Part.SECRETS, Part.ADD_ON, Part.ROLES, Part.APPLICATIONS, Part.ISSUERS, Part.MANAGED_IDENTITIES}
)


def look(engine: Engine, parts: Set[Part], selection: Selection = EVERYTHING) -> StackWorld:
    """Read these parts of the world for the selection. A part that cannot be read is `Unread`.

    Raises CommandError for a selected name that the stack does not have, and for a local stack without a local cloud.
    """
    local = local_cloud.of(engine.stack)
    configuration = read_configuration(engine) if Part.CONFIGURATION in parts else NOT_READ
    placeholders = _placeholders(engine, configuration)
    state = _state(engine) if Part.STATE in parts else NOT_READ
    if isinstance(state, Unread) and Part.STATE in parts:
        # Mostly because of the backend: other reads would fail in the same way.
        everything = ("state", "locks", "last_run", "decryption", "access", "vault", "add_on")
        unread: dict[str, Any] = dict.fromkeys(everything, placeholders or state)
        unread["configuration"] = configuration if placeholders else state
        return StackWorld(stack=engine.stack, now=datetime.now(UTC), control_planes={}, **unread)
    if isinstance(state, StackState):
        state = selection.of_state(state)
    mounts = Path(local.mounts_dir) if local else None
    access, control_planes = (placeholders, {}) if placeholders else _cluster(engine, state, parts, mounts)
    if isinstance(state, StackState):
        state, control_planes = _selected(selection, state, control_planes)
    return StackWorld(
        stack=engine.stack,
        now=datetime.now(UTC),
        state=state,
        locks=read_locks(engine, partial(deployer, engine)) if Part.LOCKS in parts else NOT_READ,
        last_run=read_last_run(engine) if Part.HISTORY in parts else NOT_READ,
        decryption=read_decryption(engine) if Part.DECRYPTION in parts else NOT_READ,
        configuration=configuration,
        access=access,
        control_planes=control_planes,
        **vars(_azure(engine, state, parts)),
    )


def _state(engine: Engine) -> StackState | Unread:
    try:
        return expected(engine.state())
    except CommandError as error:
        return Unread.because(error)


def _placeholders(engine: Engine, configuration: SeenConfiguration | Unread) -> Unread | None:
    """Why nothing is signed in to with this configuration; None if it is filled in."""
    if isinstance(configuration, Unread) or not configuration.prevents_sign_in:
        return None
    return Unread(f"{engine.file.name} still has placeholders, with which no sign-in works")


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


def _azure(engine: Engine, state: StackState | Unread, parts: Collection[Part]) -> AzureView:
    if isinstance(state, Unread) or not set(parts) & _AZURE:
        return AzureView()
    try:
        with deployer(engine) as clients:
            return read_azure(clients, state, parts)
    except (AccessError, CommandError) as error:
        return unread_azure(Unread.because(error, f"Azure: {error}"), state)


def _cluster(
    engine: Engine, state: StackState | Unread, parts: Collection[Part], mounts: Path | None
) -> tuple[SeenAccess | Unread, dict[str, SeenControlPlane | Unread]]:
    if not set(parts) & _CLUSTER:
        return NOT_READ, {}
    clusters = () if isinstance(state, Unread) else state.clusters
    try:
        with api_server(engine) as server:
            access: SeenAccess | Unread = NOT_READ
            if Part.ACCESS in parts:
                access = read_access(server, engine.configured(), rights_on_cluster(engine))
            if isinstance(state, Unread) or not set(parts) & {Part.CONTROL_PLANES, Part.REPORTS}:
                return access, {}
            return access, dict(read_control_planes(server, state, parts, mounts))
    except (AccessError, CommandError) as error:
        unread = Unread.because(error, f"the management cluster: {error}")
        return refused(error), {cluster.cluster: unread for cluster in clusters}
