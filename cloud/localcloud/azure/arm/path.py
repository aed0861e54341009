"""Parses the path of an ARM request; whether the resource exists is checked elsewhere.

Four forms, all of which ARM compares without case (Azure REST guidelines; azure-docs `resource-id`):

- `/subscriptions/{s}` and `/subscriptions/{s}/resourceGroups/{g}`, themselves of namespace Microsoft.Resources;
- `{scope}/providers/{namespace}/{type}/{name}[/{childType}/{childName}...]`, also on another resource as scope;
- `/subscriptions/{s}/providers` and `/subscriptions/{s}/providers/{namespace}`, the providers themselves;
- the first two without the last name (a collection), or with one more segment in a POST (an action).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from localcloud.azure.shared.refusals import not_emulated, refusal

RESOURCES = "Microsoft.Resources"
_PROVIDERS = re.compile(r"/?subscriptions/[^/]+/providers(/[^/]+)?/?", re.IGNORECASE)


@dataclass(frozen=True)
class ArmPath:
    """A request path. Segments keep the letter case they were sent in; `key` is the store's key.

    Attributes:
        scope: the id before `providers/{namespace}`, "" for a tenant-wide one; None for a subscription or group.
        namespace: as sent, `Microsoft.Resources` for subscriptions and resource groups.
        types: type segments, outermost first.
        names: one name per type, or one fewer when the path means a collection.
        verb: the action of a POST, else None.
    """

    scope: str | None
    namespace: str
    types: tuple[str, ...]
    names: tuple[str, ...]
    verb: str | None = None

    @property
    def type(self) -> str:
        """`Microsoft.KeyVault/vaults/secrets`, in the letter case of the request."""
        return "/".join((self.namespace, *self.types))

    @property
    def is_collection(self) -> bool:
        """Whether the last name is missing, so that the request is about all resources of the type."""
        return len(self.names) < len(self.types)

    @property
    def name(self) -> str:
        """The resource's own name."""
        return self.names[-1]

    @property
    def id(self) -> str:
        """The resource's (or the collection's) id, in the letter case of the request."""
        return self._join(self.types, self.names)

    @property
    def key(self) -> str:
        """The id in lower case."""
        return self.id.lower()

    @property
    def parent_id(self) -> str | None:
        """Id of the parent of a child type, None for a top-level type."""
        return self._join(self.types[:-1], self.names[: len(self.types) - 1]) if len(self.types) > 1 else None

    @property
    def outermost(self) -> ArmPath:
        """The top-level resource that this one is or belongs to."""
        return replace(self, types=self.types[:1], names=self.names[:1])

    @property
    def authorization_scope(self) -> str:
        """The scope of the permission check: the resource, or a collection's parent (Azure/CloudShell issue 561)."""
        if not self.is_collection:
            return self.id
        if self.parent_id is not None:
            return self.parent_id
        return "/" if self.scope is None else f"{self.scope}/providers/{self.namespace}"

    @property
    def subscription(self) -> str | None:
        """The subscription's id (a UUID when well formed), None for a tenant-wide path."""
        return _value_after(f"{self.id}/", "subscriptions")

    @property
    def resource_group(self) -> str | None:
        """The resource group's name, if the path has one."""
        return _value_after(f"{self.id}/", "resourcegroups")

    @property
    def group_id(self) -> str | None:
        """Id of the path's resource group."""
        if self.resource_group is None:
            return None
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.resource_group}"

    def _join(self, types: tuple[str, ...], names: tuple[str, ...]) -> str:
        pairs = "".join(f"/{type_name}/{name}" for type_name, name in zip(types, names, strict=False))
        rest = pairs if len(names) == len(types) else f"{pairs}/{types[-1]}"
        return rest if self.scope is None else f"{self.scope}/providers/{self.namespace}{rest}"


def parse(path: str, method: str) -> ArmPath:
    """Parse a request path; raises 404 for a path that is not an ARM path, and 501 for one of providers alone."""
    # An empty one has no meaning: openshift/cloud-network-config-controller asks for `networkInterfaces/%2F<name>`.
    segments = [segment for segment in path.split("/") if segment]
    scope: str | None
    lowered = [segment.lower() for segment in segments]
    if not segments:
        raise refusal("InvalidRequestUri", path=path)
    if "providers" not in lowered or _PROVIDERS.fullmatch(path):
        namespace, scope, rest = RESOURCES, None, segments
    else:
        at = len(lowered) - 1 - lowered[::-1].index("providers")
        if len(segments) <= at + 2:
            raise not_emulated("arm", f"{method} {path}")
        namespace, scope, rest = (
            segments[at + 1],
            "".join(f"/{segment}" for segment in segments[:at]),
            segments[at + 2 :],
        )
    verb = rest.pop() if method == "POST" and len(rest) % 2 else None
    return ArmPath(scope, namespace, tuple(rest[0::2]), tuple(rest[1::2]), verb)


def _value_after(path: str, word: str) -> str | None:
    segments = path.strip("/").split("/")
    for name, value in zip(segments[0::2], segments[1::2], strict=False):
        if name.lower() == word:
            return value
        if name.lower() == "providers":
            return None
    return None
