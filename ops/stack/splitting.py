"""Moves a hosted cluster from one stack's state to another's, with `pulumi state move`.

Names of resources, applications, identities and secrets do not depend on the stack, so that they stay as they are. Only
their tags name the stack (`idstack sweep`). Decision record 0063.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from identity import resource_types
from identity.settings import Settings
from identity.similar import did_you_mean
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import settings_of
from ops.stack.state import UNKNOWN, PlanStep, StateResource, name_of, type_of, without

_NOTHING: Final = frozenset({"same", "read", "refresh"})
# The second stack has its own.
_OF_EACH_STACK: Final = frozenset({resource_types.STACK, resource_types.STACK_OWNER})


@dataclass(frozen=True)
class Moved:
    """The number of moved resources. `was_begun`: an earlier run had written the second state."""

    resources: int
    was_begun: bool = False


def move(source: Engine, target: Engine, cluster: str) -> Moved:
    """Move the cluster's resources, or finish a move that was interrupted between the engine's two writes.

    The engine writes the state of `target` first, then that of `source` (pulumi/pulumi `pkg/cmd/pulumi/state/
    state_move.go`). Raises CommandError, before anything is moved, unless the configurations of both stacks are those
    for after the move, and either `source` has the cluster and `target` is empty, or `target` has the whole cluster.
    """
    before, after = source.resources(), target.resources()
    component, copy = clusters_in(before).get(cluster), clusters_in(after).get(cluster)
    if problems := [*_of_states(source, target, cluster, before, after), *_of_configurations(source, target, cluster)]:
        raise CommandError("nothing was moved:\n" + "\n".join(f"  {problem}" for problem in problems))
    if component is None:
        return Moved(0, was_begun=True)
    if copy is None:
        source.move(component, target.stack)
    else:
        source.replace_state(without(source.state(), {resource["urn"] for resource in _below(before, component)}))
    return Moved(len(before) - len(source.resources()), was_begun=copy is not None)


def clusters_in(resources: Iterable[StateResource]) -> dict[str, str]:
    """The hosted clusters in a state: URN of the component by name."""
    return {
        name_of(resource["urn"]): resource["urn"]
        for resource in resources
        if resource["type"] == resource_types.HOSTED_CLUSTER
    }


def changes(target: Engine) -> dict[str, str]:
    """The operations of the next `up`, by resource name.

    Raises CommandError if it creates, deletes or replaces anything, because the configuration differs from the first
    stack's. The provider for the management cluster, which each stack has, is created in the state alone.
    """
    steps = [step for step in target.planned()["steps"] if step["op"] not in _NOTHING and not _stays(step)]
    relevant = [step for step in steps if type_of(step["urn"]) not in _OF_EACH_STACK]
    planned = {name_of(step["urn"]): step["op"] for step in relevant}
    if harmful := {name_of(step["urn"]): step["op"] for step in relevant if not _is_harmless(step)}:
        listed = "".join(f"\n  {operation} {name}" for name, operation in harmful.items())
        raise CommandError(
            f"the cluster is in {target.stack} now, and nothing has changed in Azure, but its next `up` would:{listed}"
            f"\nDo not run it: Pulumi.{target.stack}.yaml differs from the first stack's configuration in the inputs "
            f"of these resources. Correct it until `make preview STACK={target.stack}` shows none of them"
        )
    return planned


def _of_states(
    source: Engine, target: Engine, cluster: str, before: Sequence[StateResource], after: Sequence[StateResource]
) -> Iterator[str]:
    component, copy = clusters_in(before).get(cluster), clusters_in(after).get(cluster)
    if copy is None:
        if component is None:
            yield f"{source.stack} has no hosted cluster {cluster}{did_you_mean(cluster, clusters_in(before))}"
        if any(resource["type"] != resource_types.STACK for resource in after):
            yield f"{target.stack} has resources already; name a stack without any"
    elif component is not None and (missing := _unknown_to(_below(after, copy), _below(before, component))):
        listed = "".join(f"\n    {resource['urn']} ({resource.get('id') or 'a component'})" for resource in missing)
        yield (
            f"{cluster} is in the states of both {source.stack} and {target.stack}, and they contradict each other: "
            f"{target.stack} lacks, or has with another id, these resources of {source.stack}:{listed}\n    One of the "
            f"two was changed alone since the move began, or restored. Run neither `up` nor `down` of either, and "
            "check each of these in Azure. `idstack pulumi --stack "
            f"{source.stack} -- state delete <URN>` removes one that no longer exists from the state, and changes "
            "nothing in Azure; then run this command again"
        )


def _below(resources: Sequence[StateResource], root: str) -> list[StateResource]:
    """The resource with the URN `root` and its descendants; a state has parents before their children."""
    urns = {root}
    below = []
    for resource in resources:
        if resource["urn"] == root or resource.get("parent") in urns:
            urns.add(resource["urn"])
            below.append(resource)
    return below


def _unknown_to(known: Iterable[StateResource], resources: Iterable[StateResource]) -> list[StateResource]:
    """The `resources` that are not among the `known` ones of another stack with an equal id."""
    known_identities = {_identity(resource) for resource in known}
    return [resource for resource in resources if _identity(resource) not in known_identities]


def _identity(resource: StateResource) -> tuple[str, str]:
    """The URN without its stack, and the provider's id, which are equal in both stacks."""
    return resource["urn"].partition("::")[2], resource.get("id", "")


def _is_harmless(step: PlanStep) -> bool:
    """Whether a step updates a resource, or creates a provider or component, which is in the state alone."""
    if step["op"] == "create":
        state = step["newState"]
        return not state["custom"] or state["type"].startswith(resource_types.PROVIDER)
    return step["op"] == "update"


def _of_configurations(source: Engine, target: Engine, cluster: str) -> Iterator[str]:
    before, after = settings_of(source), settings_of(target)
    if cluster in _names(before):
        yield f"Pulumi.{source.stack}.yaml still has {cluster}; take it out of idstack:hostedClusters"
    if _names(after) != [cluster]:
        yield f"Pulumi.{target.stack}.yaml needs {cluster}, and no other, in idstack:hostedClusters"
    if (after.shared_stack or "").rpartition("/")[2] != source.stack:
        yield f"Pulumi.{target.stack}.yaml needs idstack:sharedStack: <organization>/<project>/{source.stack}"
    if before.resource_group != after.resource_group:
        yield (
            f"Pulumi.{target.stack}.yaml has the resourceGroup {after.resource_group}; managed identities stay in "
            f"{before.resource_group}"
        )


def _stays(step: PlanStep) -> bool:
    """Whether a replacement is planned only because of inputs that are unknown in a preview.

    An update (of tags) of a managed identity makes its principal unknown, an input of its role assignments.
    """
    reasons, inputs = step.get("replaceReasons") or (), step["newState"].get("inputs") or {}
    return bool(reasons) and all(inputs.get(reason) == UNKNOWN for reason in reasons)


def _names(settings: Settings) -> list[str]:
    return [cluster.name for cluster in settings.hosted_clusters]
