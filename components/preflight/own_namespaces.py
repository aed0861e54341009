"""The control planes' namespaces in this stack's state: of a run that failed or was interrupted as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from components.preflight.last_outputs import of_own_state
from components.preflight.shared_stack import this_stack
from identity import resource_types
from identity.naming import cluster_side_name, namespace_guard_name

# Type and outputs of each resource in a stack's last snapshot, by its URN, but of those that wait for their deletion
# (pulumi/pulumi v3.259.0, `pkg/backend/backend.go`, GetStackResourceOutputs).
READ_STACK_RESOURCE_OUTPUTS: Final = "pulumi:pulumi:readStackResourceOutputs"
_OF_A_NAMESPACE: Final = cluster_side_name("") + "-namespace"


@dataclass(frozen=True, kw_only=True)
class OwnNamespaces:
    """What the state has in the management cluster.

    `names` are the namespaces by hosted cluster, without those that a run has left to HyperShift already; `objects` are
    the names of all Kubernetes resources.
    """

    names: Mapping[str, str]
    objects: frozenset[str]


async def own_namespaces() -> OwnNamespaces:
    """Look into the state; raises RunError if it cannot be read."""
    outputs = await of_own_state(
        READ_STACK_RESOURCE_OUTPUTS, {"stackName": this_stack()}, "state, which has the namespaces that it made,"
    )
    resources: dict[str, Mapping[str, Any]] = {urn.rpartition("::")[2]: each for urn, each in outputs.items()}
    made = {
        name.removesuffix(_OF_A_NAMESPACE): str(each["outputs"]["metadata"]["name"])
        for name, each in resources.items()
        if each["type"] == resource_types.NAMESPACE
    }
    return OwnNamespaces(
        names={cluster: name for cluster, name in made.items() if not _is_handed_over(resources, cluster)},
        objects=frozenset(name for name, each in resources.items() if each["type"].startswith("kubernetes:")),
    )


def _is_handed_over(resources: Mapping[str, Mapping[str, Any]], cluster: str) -> bool:
    """Whether a run has reached the guard, which comes after every object that it leaves to HyperShift."""
    guard = resources.get(namespace_guard_name(cluster))
    return guard is not None and guard["outputs"]["handedOver"] is True
