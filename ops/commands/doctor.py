"""`idstack doctor`: why something does not work: the access to the management cluster, or what is reported there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from identity.access.api_server import AccessRequirements
from identity.access.errors import AccessError
from identity.access.kinds import CustomKind, required_kinds
from identity.access.permissions import permissions
from identity.settings import Settings
from ops.access.cluster_state import read_cluster_state
from ops.access.management_cluster import stack_access
from ops.commands.options import DEFAULT_STACK, JsonOption, Screen, StackOption
from ops.outputs.cluster_state import ClusterState
from ops.stack.engine import Engine
from ops.stack.environment import variables
from ops.stack.errors import CommandError


class Stage(StrEnum):
    """What can be checked."""

    ACCESS = "access"
    HOSTED_CLUSTERS = "hosted-clusters"


def doctor(
    stage: Annotated[Stage, typer.Option(help="What to check.")] = Stage.ACCESS,
    stack: StackOption = DEFAULT_STACK,
    as_json: JsonOption = False,
) -> None:
    """Sign in to the management cluster as the stack does, and list what is missing there or not as expected.

    `access`: permissions and kinds. `hosted-clusters`: the HostedClusters' conditions, and what pods have mounted.
    """
    screen, engine = Screen(as_json), Engine(stack)
    match stage:
        case Stage.ACCESS:
            _check_access(engine, screen)
        case Stage.HOSTED_CLUSTERS:
            _check_hosted_clusters(engine, screen)


def _check_access(engine: Engine, screen: Screen) -> None:
    try:
        with stack_access(engine).api_server(variables(engine.stack)) as server:
            server.check_sign_in()
            configured = engine.configured()
            needed = permissions(network_policies=bool(configured.get("blockInstanceMetadata")))
            missing = server.missing(AccessRequirements(needed, _kinds(configured)))
    except AccessError as error:
        raise CommandError(str(error)) from None
    if screen.as_json:
        found = {"stack": engine.stack, "stage": Stage.ACCESS, "server": server.server, "missing": missing}
        screen.document(found)
    else:
        screen.console.print(f"signed in to {server.server} as {server.who}")
    if missing:
        raise CommandError(f"{Stage.ACCESS}: {'; '.join(missing)}. {server.hint}")
    if not screen.as_json:
        screen.console.print("every permission and kind that the stack needs is there")


def _check_hosted_clusters(engine: Engine, screen: Screen) -> None:
    state = read_cluster_state(engine, engine.outputs()) or ClusterState()
    wrong = list(state.wrong())
    if screen.as_json:
        screen.document({"stack": engine.stack, "stage": Stage.HOSTED_CLUSTERS, "wrong": wrong, **state.to_json()})
    if wrong:
        raise CommandError("\n".join([f"{Stage.HOSTED_CLUSTERS}:", *(f"  {each}" for each in wrong)]))
    if not screen.as_json:
        screen.console.print("every condition is as expected, and every pod has the version of the vault")


def _kinds(configuration: Mapping[str, Any]) -> tuple[CustomKind, ...]:
    """The custom kinds of the stack's objects, by its configuration without secrets."""
    clusters = configuration.get("hostedClusters") or ()
    side = configuration.get("clusterSide", Settings.model_fields["cluster_side"].default)
    return required_kinds(
        makes_cluster_side=side == "stack",
        applies_hosted_clusters=any(each.get("hostedCluster") for each in clusters),
    )
