"""Leaves the tags alone that others write on the stack's resources: an Azure Policy, or a person.

Decision record 0101 has the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

from components.preflight.azure_objects import (
    Answers,
    AzureLookup,
    managed_identity,
    private_zone,
    private_zone_link,
    resource_group,
    security_group,
    storage_account,
    virtual_network,
)
from components.preflight.unchangeable import made_lookups
from identity.credentials.secret_tags import OWNER
from identity.naming import STACK_TAG, managed_identity_id, storage_account_id
from identity.outputs import StackOutputs
from identity.settings import HostedClusterSettings, Settings
from identity.settings.schema.model import managed_identity_of
from identity.settings.schema.problems import Place

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
