"""Whether HyperShift has a control plane in a namespace that the stack makes, or has made.

Such a namespace is neither made, nor adopted, nor deleted: the run ends before the first resource, or leaves it to
HyperShift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pulumi

from components.preflight.cluster_reader import ClusterReader
from components.preflight.own_namespaces import OwnNamespaces
from identity.aks.control_planes import control_planes, described, unreadable
from identity.azure.errors import AccessError
from identity.settings import ConfigurationError, Problem, Settings
from identity.settings.schema.problems import to_set

_LEAVE_IT: Final = "Then the namespace stays in the cluster, with what HyperShift has in it"


async def check_control_planes(settings: Settings, own: OwnNamespaces, reader: ClusterReader | None) -> frozenset[str]:
    """Names of the hosted clusters whose namespaces this run hands over to HyperShift.

    Those are the stack's `own` namespaces that hold a control plane, if the configuration has changed to
    `clusterSide: hypershift`.
    Raises ConfigurationError if the run would make or delete a namespace with a control plane, and RunError if an
    update cannot see that. A preview goes on with a warning, as the preview identity may not reach the cluster.
    """
    owned = own.names
    own_sides = (cluster.namespace_name for cluster in settings.hosted_clusters if settings.makes_cluster_side(cluster))
    namespaces = {*owned.values(), *own_sides}
    if not namespaces:
        return frozenset()
    if settings.management_cluster is None:
        raise ConfigurationError([_without_cluster(owned)])
    if reader is None:
        return frozenset()
    found = await _seen(reader, sorted(namespaces))
    if problems := list(_problems(settings, owned, found)):
        raise ConfigurationError(problems)
    handed_over = frozenset(name for name, namespace in owned.items() if namespace in found)
    for name in sorted(handed_over):
        pulumi.log.info(
            f"{owned[name]} is left to HyperShift: it stays in the cluster with all that HyperShift has in it, and the "
            "next run takes it out of the stack's state"
        )
    return handed_over


async def _seen(reader: ClusterReader, namespaces: list[str]) -> Mapping[str, str]:
    """The control planes in these namespaces; none for a preview that cannot see them."""
    try:
        return await _fetch_control_planes(reader, namespaces)
    except AccessError as error:
        text = f"idstack:managementCluster: {unreadable(namespaces, str(error))}"
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(f"{text}. This is a preview: `up` looks again")
            return {}
        raise pulumi.RunError(f"{text}. Nothing was changed.") from None


async def _fetch_control_planes(reader: ClusterReader, namespaces: list[str]) -> Mapping[str, str]:
    return await reader.ask(lambda server: control_planes(server, namespaces))


def _problems(settings: Settings, owned: Mapping[str, str], found: Mapping[str, str]) -> Iterator[Problem]:
    configured = {cluster.name: cluster.namespace_name for cluster in settings.hosted_clusters}
    for index, cluster in enumerate(settings.hosted_clusters):
        if settings.makes_cluster_side(cluster) and (namespace := cluster.namespace_name) in found:
            holds = described({namespace: found[namespace]})
            yield Problem(
                place=("hostedClusters", index, "name"),
                rule="namespace-in-use",
                found=f'"{cluster.name}" with clusterSide: stack, but {holds}',
                accepted="a hosted cluster for which HyperShift has no control plane, or clusterSide: hypershift",
                fix=f"{to_set(('clusterSide',), 'hypershift')}. {_LEAVE_IT}",
            )
    for name, namespace in owned.items():
        if namespace in found and configured.get(name) != namespace:
            yield Problem(
                place=("hostedClusters",),
                rule="namespace-left-behind",
                found=f'no "{name}" in {namespace} any more, but {described({namespace: found[namespace]})}',
                accepted="every hosted cluster whose namespace the stack created and HyperShift uses",
                fix=f'put "{name}" back with clusterSide: hypershift for one run. {_LEAVE_IT}, and "{name}" may go',
            )


def _without_cluster(owned: Mapping[str, str]) -> Problem:
    return Problem(
        place=("managementCluster",),
        rule="namespace-out-of-sight",
        found=f"nothing, but the stack has made {', '.join(owned.values())} there with clusterSide: stack",
        accepted="the management cluster, until a run with clusterSide: hypershift has left them to HyperShift",
        fix="put managementCluster back",
    )
