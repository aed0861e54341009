"""The control planes' namespaces in this stack's state, also after a failed or interrupted run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from components.preflight.last_outputs import of_own_state
from components.preflight.shared_stack import this_stack
from identity import resource_types
from identity.naming import cluster_side_name, namespace_guard_name

# Type and outputs of the resources in a stack's last snapshot, by URN, without those that wait for their deletion
# (pulumi/pulumi v3.259.0, `pkg/backend/backend.go`, GetStackResourceOutputs).
READ_STACK_RESOURCE_OUTPUTS: Final = "pulumi:pulumi:readStackResourceOutputs"
_NAMESPACE_SUFFIX: Final = cluster_side_name("") + "-namespace"


@dataclass(frozen=True, kw_only=True)
class OwnNamespaces:
    """The Kubernetes resources in the state.

    `names` are the namespaces by hosted cluster, without those that a run has already left to HyperShift; `objects` are
    the names of all Kubernetes resources.
    """

    names: Mapping[str, str]
    objects: frozenset[str]


async def own_namespaces() -> OwnNamespaces:
    """Read the state; raises RunError if that fails."""
    outputs = await of_own_state(
        READ_STACK_RESOURCE_OUTPUTS, {"stackName": this_stack()}, "state, which has the namespaces that it made,"
    )
    resources: dict[str, Mapping[str, Any]] = {urn.rpartition("::")[2]: resource for urn, resource in outputs.items()}
    namespaces = {
        name.removesuffix(_NAMESPACE_SUFFIX): str(resource["outputs"]["metadata"]["name"])
        for name, resource in resources.items()
        if resource["type"] == resource_types.NAMESPACE
    }
    return OwnNamespaces(
        names={cluster: name for cluster, name in namespaces.items() if not _is_handed_over(resources, cluster)},
        objects=frozenset(name for name, resource in resources.items() if resource["type"].startswith("kubernetes:")),
    )


def _is_handed_over(resources: Mapping[str, Mapping[str, Any]], cluster: str) -> bool:
    """Whether a run has reached the guard, which comes after every object that it leaves to HyperShift."""
    guard = resources.get(namespace_guard_name(cluster))
    return guard is not None and guard["outputs"]["handedOver"] is True
