"""Refuses what Azure lets nobody change of a resource that the stack has made, before the run reaches it.

azure-native plans such a change as an update, or as the replacement of a cluster with all that runs in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from components.azure.management_cluster import NODE_POOL
from components.preflight.azure_objects import Answers, AzureLookup, management_cluster, own_vault, resource_group
from components.preflight.infrastructure_checks import is_same_location
from identity.credentials import renewal_request
from identity.settings import ManagementClusterSettings, Problem, Settings, VaultSettings
from identity.settings.schema.problems import Place, show, to_set

# Key, configured value, and the present one: None where the answer has none.
_Values: TypeAlias = tuple[Place, object, object]


def made_lookups(settings: Settings) -> Iterator[tuple[Place, AzureLookup]]:
    """What the stack makes and then cannot change everything of; none of it needs to exist.

    A renewal changes nothing of it, and its identity may read the cluster alone.
    """
    if settings.management_cluster is not None and settings.management_cluster.create is not None:
        yield ("managementCluster", "name"), management_cluster(settings.management_cluster)
    if renewal_request.is_renewal_run(os.environ):
        return
    if settings.vault is not None:
        yield ("vault", "name"), own_vault(settings, settings.vault)
    for index, hosted in enumerate(settings.hosted_clusters):
        if hosted.infrastructure == "create":
            group = hosted.names(settings.subscription_id).managed_group
            yield ("hostedClusters", index, "location"), resource_group(group)


def refused_changes(settings: Settings, answers: Answers) -> Iterator[Problem]:
    """A problem for each value that is another in Azure; what the stack has not made yet has no answer."""
    for place, lookup in made_lookups(settings):
        if (answer := answers.get(lookup)) is None:
            continue
        for key, configured, present in _values(place, answer, settings):
            if present is None or _is_same(configured, present):
                continue
            yield Problem(
                place=key,
                rule="unchangeable",
                found=show(configured) if not isinstance(configured, list) else str(configured),
                accepted=f"{_text(present)}, as {lookup.description} has it: Azure lets nobody change that",
                fix=f"put {_text(present)} back" if isinstance(present, list) else to_set(key, _bare(present)),
            )


def _values(place: Place, answer: Mapping[str, Any], settings: Settings) -> Iterator[_Values]:
    location = answer.get("location")
    if place[0] == "hostedClusters":
        yield place, settings.hosted_clusters[int(place[1])].location, location
        return
    yield ("location",), settings.location, location
    if place[0] == "vault" and settings.vault is not None:
        yield from _of_vault(settings.vault, answer.get("properties") or {})
    elif settings.management_cluster is not None:
        yield from _of_cluster(settings.management_cluster, answer)


def _of_vault(vault: VaultSettings, properties: Mapping[str, Any]) -> Iterator[_Values]:
    days = properties.get("softDeleteRetentionInDays")
    yield ("vault", "softDeleteRetentionDays"), vault.soft_delete_retention_days, days
    # It can be switched on.
    yield ("vault", "purgeProtection"), vault.purge_protection, properties.get("enablePurgeProtection") or None


def _of_cluster(cluster: ManagementClusterSettings, answer: Mapping[str, Any]) -> Iterator[_Values]:
    if (creation := cluster.create) is None:
        return
    at: Place = ("managementCluster", "create")
    for pool in answer.get("agentPoolProfiles") or ():
        if pool.get("name") == NODE_POOL:
            yield (*at, "nodePool", "vmSize"), creation.node_pool.vm_size, pool.get("vmSize")
            yield (*at, "nodePool", "maxPods"), creation.node_pool.max_pods, pool.get("maxPods")
            zones = sorted(map(int, pool.get("availabilityZones") or ()))
            yield (*at, "nodePool", "zones"), list(creation.node_pool.zones), zones
    network = answer.get("networkProfile") or {}
    yield (*at, "network", "plugin"), creation.network.plugin, network.get("networkPlugin")
    yield (*at, "network", "policy"), creation.network.policy, network.get("networkPolicy")


def _is_same(configured: object, present: object) -> bool:
    if isinstance(configured, str):
        return is_same_location(configured, present)
    return configured == present


def _bare(value: object) -> str:
    # The engine passes every number on as a float.
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if value is True else str(value)


def _text(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else _bare(value)
