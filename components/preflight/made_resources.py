"""What the stack has made in Azure: refuses what nobody can change of it, and leaves the tags alone that others wrote.

azure-native plans such a change as an update, or as the replacement of a cluster with all that runs in it. An Azure
Policy or a person writes tags; decision record 0101 has the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import pulumi

from components.azure.management_cluster import NODE_POOL
from components.preflight.azure_objects import (
    Answers,
    AzureLookup,
    Existence,
    NamedObject,
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
from identity.credentials.secret_tags import OWNER
from identity.naming import STACK_TAG
from identity.outputs import StackOutputs
from identity.settings import HostedClusterSettings, Problem, Settings, VaultSettings
from identity.settings.schema.access import CreationSettings
from identity.settings.schema.problems import Place, show, to_set

# Key, configured value, and the present one: None where the answer has none.
_Values: TypeAlias = tuple[Place, object, object]
# Nobody can change the values that it finds in an answer.
_Unchangeable: TypeAlias = Callable[[Mapping[str, Any]], Iterable[_Values]]


def made_objects(settings: Settings, *, renews_only: bool) -> list[NamedObject]:
    """What the stack makes with tags, or cannot change everything of; none of it needs to exist.

    A renewal changes nothing of it, and its identity may read the cluster alone.
    """
    cluster = settings.management_cluster
    made: list[tuple[Place, AzureLookup, _Unchangeable]] = []
    if cluster is not None and cluster.create is not None:
        values = _nothing if renews_only else partial(_of_cluster, settings, cluster.create)
        made.append((("managementCluster", "name"), management_cluster(cluster), values))
    if not renews_only:
        made += _made(settings)
    return [NamedObject(at, lookup, [partial(_is_kept, values)], Existence.MADE_HERE) for at, lookup, values in made]


def _made(settings: Settings) -> Iterator[tuple[Place, AzureLookup, _Unchangeable]]:
    if settings.vault is not None:
        yield ("vault", "name"), own_vault(settings, settings.vault), partial(_of_vault, settings, settings.vault)
    if (reader := settings.key_vault_user.name) is not None and settings.has_key_vault_user:
        yield ("keyVaultUser", "name"), managed_identity(settings.identity_id(reader)), _nothing
    for index, hosted in enumerate(settings.hosted_clusters):
        place: Place = ("hostedClusters", index)
        for name in hosted.identity_names.values():
            yield place, managed_identity(settings.identity_id(name)), _nothing
        if hosted.issuer == "create" and hosted.issuer_name is not None:
            yield place, storage_account(settings.issuer_account_id(hosted.issuer_name)), _nothing
        if hosted.infrastructure == "create":
            names = hosted.names(settings.subscription_id)
            at: Place = (*place, "location")
            yield at, resource_group(names.managed_group), partial(_of_infrastructure, at, hosted)
            for group in names.groups:
                yield place, resource_group(group), _nothing
            yield place, virtual_network(names.network_id), _nothing
            yield place, security_group(names.security_group_id), _nothing
            if hosted.dns is not None:
                zone = names.private_zone_id(hosted.dns.base_domain)
                yield place, private_zone(zone), _nothing
                yield place, private_zone_link(hosted, zone, settings.subscription_id), _nothing


def _is_kept(values: _Unchangeable, what: NamedObject, answer: Mapping[str, Any], _: Answers) -> Iterator[Problem]:
    for key, configured, present in values(answer):
        if present is None or _is_same(configured, present):
            continue
        yield Problem(
            place=key,
            rule="unchangeable",
            found=show(configured) if not isinstance(configured, list) else str(configured),
            accepted=f"{_text(present)}, as {what.lookup.description} has it: Azure lets nobody change that",
            fix=f"put {_text(present)} back" if isinstance(present, list) else to_set(key, _bare(present)),
        )


def _nothing(answer: Mapping[str, Any]) -> Iterable[_Values]:
    return ()


def _of_infrastructure(at: Place, hosted: HostedClusterSettings, answer: Mapping[str, Any]) -> Iterator[_Values]:
    yield at, hosted.location, answer.get("location")


def _of_vault(settings: Settings, vault: VaultSettings, answer: Mapping[str, Any]) -> Iterator[_Values]:
    properties = answer.get("properties") or {}
    days = properties.get("softDeleteRetentionInDays")
    yield ("location",), settings.location, answer.get("location")
    yield ("vault", "softDeleteRetentionDays"), vault.soft_delete_retention_days, days
    # It can be switched on.
    yield ("vault", "purgeProtection"), vault.purge_protection, properties.get("enablePurgeProtection") or None


def _of_cluster(settings: Settings, creation: CreationSettings, answer: Mapping[str, Any]) -> Iterator[_Values]:
    yield ("location",), settings.location, answer.get("location")
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
    def among(
        cls, made: Iterable[NamedObject], answers: Answers, settings: Settings, last: StackOutputs[Any]
    ) -> ForeignTags:
        """The tags on what the stack has `made` whose names neither the configuration nor the `last` complete run has.

        A stack that has not recorded its names has no foreign ones: a name that was taken out would stay.
        """
        if "tagNames" not in last:
            return cls()
        own = {name.lower() for name in (*settings.tags, *last["tagNames"], STACK_TAG, OWNER)}
        lookups = dict.fromkeys(each.lookup for each in made)
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


def _tagged(lookup: AzureLookup, answer: Mapping[str, Any]) -> _Tagged:
    module, _, function = lookup.function.partition(":")
    names = frozenset(value for _, value in lookup.arguments)
    return _Tagged(f"{_AZURE}{module}:{function.removeprefix('get')}", names, answer.get("tags") or {})
