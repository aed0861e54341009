"""Moves a hosted cluster from one stack's state to another's, with the engine's own `pulumi state move`.

Names of resources, applications, identities and secrets do not depend on the stack, so the second stack's program finds
its resources as they are. What differs are their tags: they name the stack (`idstack sweep`). Decision record 0063.
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
# What the second stack has of its own.
_OF_EACH_STACK: Final = frozenset({resource_types.STACK, resource_types.STACK_OWNER})


@dataclass(frozen=True)
class Moved:
    """How many resources left the first stack's state. `was_begun`: an earlier run had written the second one's."""

    resources: int
    was_begun: bool = False


def move(source: Engine, target: Engine, cluster: str) -> Moved:
    """Move the cluster's resources, or finish a move that was cut off between the engine's two writes.

    The engine writes the state of `target` first, then that of `source` (pulumi/pulumi `pkg/cmd/pulumi/state/
    state_move.go`). Raises CommandError, before anything is moved, unless the configurations of both stacks are as they
    are to be afterwards, and either `source` has the cluster and `target` has nothing, or `target` has the whole
    cluster.
    """
    before, after = source.resources(), target.resources()
    found, begun = clusters_in(before).get(cluster), clusters_in(after).get(cluster)
    if problems := [*_of_states(source, target, cluster, before, after), *_of_configurations(source, target, cluster)]:
        raise CommandError("nothing was moved:\n" + "\n".join(f"  {problem}" for problem in problems))
    if found is None:
        return Moved(0, was_begun=True)
    if begun is None:
        source.move(found, target.stack)
    else:
        source.replace_state(without(source.state(), {each["urn"] for each in _below(before, found)}))
    return Moved(len(before) - len(source.resources()), was_begun=begun is not None)


def clusters_in(resources: Iterable[StateResource]) -> dict[str, str]:
    """The hosted clusters in a state: URN of the component by name."""
    return {
        name_of(resource["urn"]): resource["urn"]
        for resource in resources
        if resource["type"] == resource_types.HOSTED_CLUSTER
    }


def changes(target: Engine) -> dict[str, str]:
    """What the next `up` would do: operation by resource name.

    Raises CommandError if it makes, deletes or replaces anything, because the configuration differs from the first
    stack's. Each stack has its own way to the management cluster, which is made in its state alone.
    """
    steps = [step for step in target.planned()["steps"] if step["op"] not in _NOTHING and not _stays(step)]
    shown = [each for each in steps if type_of(each["urn"]) not in _OF_EACH_STACK]
    planned = {name_of(each["urn"]): each["op"] for each in shown}
    if harmful := {name_of(each["urn"]): each["op"] for each in shown if not _is_harmless(each)}:
        listed = "".join(f"\n  {operation} {name}" for name, operation in harmful.items())
        raise CommandError(
            f"the cluster is in {target.stack} now, and nothing has changed in Azure, but its next `up` would:{listed}"
            f"\nDo not run it: Pulumi.{target.stack}.yaml differs from the first stack's configuration in what these "
            f"are made of. Correct it until `make preview STACK={target.stack}` shows none of them"
        )
    return planned


def _of_states(
    source: Engine,
    target: Engine,
    cluster: str,
    before: Sequence[StateResource],
    after: Sequence[StateResource],
) -> Iterator[str]:
    found, begun = clusters_in(before).get(cluster), clusters_in(after).get(cluster)
    if begun is None:
        if found is None:
            yield f"{source.stack} has no hosted cluster {cluster}{did_you_mean(cluster, clusters_in(before))}"
        if any(_is_somebodys(each) for each in after):
            yield f"{target.stack} has resources already; name a stack without any"
    elif found is not None and (missing := _unknown_to(_below(after, begun), _below(before, found))):
        listed = "".join(f"\n    {each['urn']} ({each.get('id') or 'a component'})" for each in missing)
        yield (
            f"{cluster} is in the states of both {source.stack} and {target.stack}, and they contradict each other: "
            f"{target.stack} has not, or has with another id, what the state of {source.stack} has:{listed}\n    One "
            f"of the two was changed alone since the move began, or restored. Run no `up` and no `down` of either, and "
            "look for each of these in Azure. What no longer exists, `idstack pulumi --stack "
            f"{source.stack} -- state delete <URN>` takes out of the state, and touches nothing in Azure; then run "
            "this command again"
        )


def _below(resources: Sequence[StateResource], root: str) -> list[StateResource]:
    """The resource with the URN `root` and all below it; a state has parents before their children."""
    urns = {root}
    found = []
    for resource in resources:
        if resource["urn"] == root or resource.get("parent") in urns:
            urns.add(resource["urn"])
            found.append(resource)
    return found


def _unknown_to(known: Iterable[StateResource], resources: Iterable[StateResource]) -> list[StateResource]:
    """Those of the `resources` that are not among the `known` of another stack with an equal id."""
    there = {_identity(each) for each in known}
    return [resource for resource in resources if _identity(resource) not in there]


def _identity(resource: StateResource) -> tuple[str, str]:
    """What is equal in both stacks: the URN without its stack, and the provider's id."""
    return resource["urn"].partition("::")[2], resource.get("id", "")


def _is_harmless(step: PlanStep) -> bool:
    """Whether a step changes what there is, or makes something in the state alone: a provider, or a component."""
    if step["op"] == "create":
        made = step["newState"]
        return not made["custom"] or made["type"].startswith(resource_types.PROVIDER)
    return step["op"] == "update"


def _is_somebodys(resource: StateResource) -> bool:
    return resource["type"] != resource_types.STACK


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
    """Whether a replacement is planned only because a preview does not know what an update (of tags) leaves as it is.

    The principal of a managed identity is such an input of its role assignments.
    """
    reasons, inputs = step.get("replaceReasons") or (), step["newState"].get("inputs") or {}
    return bool(reasons) and all(inputs.get(reason) == UNKNOWN for reason in reasons)


def _names(settings: Settings) -> list[str]:
    return [cluster.name for cluster in settings.hosted_clusters]
