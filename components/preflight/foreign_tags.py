"""Tags that others wrote on what the stack has made: a run leaves them alone.

An Azure Policy or a person writes tags; decision record 0101 has the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

from components.preflight.azure_objects import Answers, AzureLookup, NamedObject
from identity.credentials.secret_tags import OWNER
from identity.naming import STACK_TAG
from identity.outputs import StackOutputs
from identity.settings import Settings

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
