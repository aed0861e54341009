"""Moves a hosted cluster from one stack's state to another's, with the engine's own `pulumi state move`.

Names of resources, applications, identities and secrets do not depend on the stack, so the second stack's program finds
its resources as they are. What differs are their tags: they name the stack (`idstack sweep`). Decision record 0063.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from identity.settings import Settings
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import settings_of
from ops.stack.state import OWNER, UNKNOWN, PlanStep, StateResource, name_of, type_of

_COMPONENT: Final = "idstack:hypershift:HostedCluster"
_NOTHING: Final = frozenset({"same", "read", "refresh"})
_HARMLESS: Final = "update"
_STACK: Final = "pulumi:pulumi:Stack"
# What the second stack has of its own.
_OF_EACH_STACK: Final = frozenset({_STACK, OWNER})


def move(source: Engine, target: Engine, cluster: str) -> int:
    """Move the cluster's resources; returns how many there were.

    Raises CommandError, before anything is moved, unless the configurations of both stacks are as they are to be
    afterwards, `source` has the cluster and `target` has nothing.
    """
    resources = source.resources()
    found = clusters_in(resources).get(cluster)
    if problems := [*_of_states(source, target, cluster, found), *_of_configurations(source, target, cluster)]:
        raise CommandError("nothing was moved:\n" + "\n".join(f"  {each}" for each in problems))
    assert found is not None, "a cluster that the stack does not have is a problem"
    source.move(found, target.stack)
    return len(resources) - len(source.resources())


def clusters_in(resources: Iterable[StateResource]) -> dict[str, str]:
    """The hosted clusters in a state: URN of the component by name."""
    return {name_of(each["urn"]): each["urn"] for each in resources if each["type"] == _COMPONENT}


def changes(target: Engine) -> dict[str, str]:
    """What the next `up` would do: operation by resource name.

    Raises CommandError if it is more than updates, because the configuration differs from the first stack's.
    """
    steps = [each for each in target.planned()["steps"] if each["op"] not in _NOTHING and not _stays(each)]
    planned = {name_of(each["urn"]): each["op"] for each in steps if type_of(each["urn"]) not in _OF_EACH_STACK}
    if harmful := {name: operation for name, operation in planned.items() if operation != _HARMLESS}:
        listed = "".join(f"\n  {operation} {name}" for name, operation in harmful.items())
        raise CommandError(
            f"the cluster is in {target.stack} now, and nothing has changed in Azure, but its next `up` would:{listed}"
            f"\nDo not run it: Pulumi.{target.stack}.yaml differs from the first stack's configuration in what these "
            f"are made of. Correct it until `make preview STACK={target.stack}` shows updates alone"
        )
    return planned


def _of_states(source: Engine, target: Engine, cluster: str, found: str | None) -> Iterator[str]:
    if found is None:
        yield f"{source.stack} has no hosted cluster {cluster}"
    if any(_is_somebodys(each) for each in target.resources()):
        yield f"{target.stack} has resources already; name a stack without any"


def _is_somebodys(resource: StateResource) -> bool:
    return resource["type"] != _STACK


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
    return bool(reasons) and all(inputs.get(each) == UNKNOWN for each in reasons)


def _names(settings: Settings) -> list[str]:
    return [each.name for each in settings.hosted_clusters]
