"""What the stack has made in Azure: refuses what nobody can change of it, and leaves the tags alone that others wrote.

azure-native plans such a change as an update, or as the replacement of a cluster with all that runs in it. An Azure
Policy or a person writes tags; decision record 0101 has the reasons.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pulumi

from components.azure.management_cluster import NODE_POOL
from components.preflight.azure_objects import (
    Answers,
    AzureLookup,
    is_same_location,
    managed_identity,
    management_cluster,
    own_vault,
    private_zone,
    private_zone_link,
    resource_group,
    security_group,
    storage_account,
    virtual_network,
)
from identity.credentials import renewal_request
from identity.credentials.secret_tags import OWNER
from identity.naming import STACK_TAG, managed_identity_id, storage_account_id
from identity.outputs import StackOutputs
from identity.settings import HostedClusterSettings, ManagementClusterSettings, Problem, Settings, VaultSettings
from identity.settings.schema.model import managed_identity_of
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


_AZURE: Final = "azure-native:"


@dataclass(frozen=True)
class _Tagged:
    """A resource in Azure: type token, names (group and its own) and tags."""

    type: str
    names: frozenset[str]
    tags: Mapping[str, str]


@dataclass(frozen=True)
class ForeignTags:
    """The names of tags that others wrote, and the resources that were read."""

    names: frozenset[str] = frozenset()
    resources: tuple[_Tagged, ...] = field(default=())

    @classmethod
    def among(cls, answers: Answers, settings: Settings, last: StackOutputs[Any]) -> ForeignTags:
        """The tags in ARM's answers whose names neither the configuration nor the `last` complete run has.

        A stack that has not recorded its names has no foreign ones: a name that was taken out would stay.
        """
        if "tagNames" not in last:
            return cls()
        own = {name.lower() for name in (*settings.tags, *last["tagNames"], STACK_TAG, OWNER)}
        lookups = dict.fromkeys(lookup for _, lookup in (*made_lookups(settings), *tagged_lookups(settings)))
        resources = tuple(_tagged(lookup, answers[lookup]) for lookup in lookups if lookup in answers)
        names = {name for resource in resources for name in resource.tags if name.lower() not in own}
        return cls(frozenset(names), resources)

    def leave_alone(self) -> None:
        """Keep them on every resource that is registered from now on."""
        if self.names:
            pulumi.runtime.register_stack_transformation(self._transformed)

    def _transformed(self, args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        own = args.props.get("tags")
        if not args.type_.startswith(_AZURE) or not isinstance(own, Mapping):
            return None
        given = {value for value in args.props.values() if isinstance(value, str)}
        live = next((one.tags for one in self.resources if one.type == args.type_ and one.names <= given), {})
        kept = {name: value for name, value in live.items() if name in self.names}
        known = {name: value for name, value in own.items() if isinstance(value, str)}
        if live and (live.keys() - kept.keys() != own.keys() or not known.items() <= live.items()):
            # This run writes the tags, and ARM replaces all of them.
            return pulumi.ResourceTransformationResult({**args.props, "tags": {**kept, **own}}, args.opts)
        ignored = [f"tags[{json.dumps(name, ensure_ascii=False)}]" for name in sorted(self.names)]
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(ignore_changes=ignored))
        return pulumi.ResourceTransformationResult(args.props, opts)


def tagged_lookups(settings: Settings) -> Iterator[tuple[Place, AzureLookup]]:
    """What the stack makes with tags, beside `made_lookups`; none of it needs to exist."""
    subscription, group, reader = settings.subscription_id, settings.resource_group, settings.key_vault_user.name
    if reader is not None and settings.has_key_vault_user:
        yield ("keyVaultUser", "name"), managed_identity(managed_identity_id(subscription, group, reader))
    for index, hosted in enumerate(settings.hosted_clusters):
        place: Place = ("hostedClusters", index)
        identities = (
            *(managed_identity_of(settings, hosted, row) for row in hosted.federated_rows),
            *(managed_identity_of(settings, hosted, row) for row in hosted.optional_rows),
        )
        yield from ((place, managed_identity(arm_id)) for arm_id in identities)
        if hosted.issuer == "create" and hosted.issuer_name is not None:
            yield place, storage_account(storage_account_id(subscription, group, hosted.issuer_name))
        if hosted.infrastructure == "create":
            yield from ((place, lookup) for lookup in _infrastructure(hosted, subscription))


def _infrastructure(hosted: HostedClusterSettings, subscription: str) -> Iterator[AzureLookup]:
    names = hosted.names(subscription)
    yield from map(resource_group, names.groups)
    yield virtual_network(names.network_id)
    yield security_group(names.security_group_id)
    if hosted.dns is not None:
        zone = names.private_zone_id(hosted.dns.base_domain)
        yield private_zone(zone)
        yield private_zone_link(hosted, zone, subscription)


def _tagged(lookup: AzureLookup, answer: Mapping[str, Any]) -> _Tagged:
    module, _, function = lookup.function.partition(":")
    names = frozenset(value for _, value in lookup.arguments)
    return _Tagged(f"{_AZURE}{module}:{function.removeprefix('get')}", names, answer.get("tags") or {})
