"""The one store of ARM resources: documents by lower-cased id, as the resource's GET returns them.

A document has `id`, `name`, `type` and, as the type has it, `location`, `tags`, `properties`, `identity`. Some members
stay inside the local cloud: `seeded`, true for what the seed created and no stack owns, and when it was created and
changed, which the list of resources shows on request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from localcloud.core.clock import now, rfc3339
from localcloud.core.store import Document, Store

KIND: Final = "arm"
# Answered without `tags` while they have none, as recorded of Azure (`upgrade-*` in pulumi-azure-native's
# `provider/pkg/provider/testdata/recorded`); a vault's and an account's are `{}` then.
_TAGS_OR_NOTHING: Final = frozenset(
    {"microsoft.resources/resourcegroups", "microsoft.containerservice/managedclusters"}
    | {"microsoft.network/publicipaddresses", "microsoft.network/virtualnetworks"}
)


@dataclass(frozen=True)
class Resources:
    """Typed access to the ARM documents of a store."""

    store: Store

    def get(self, resource_id: str) -> Document | None:
        """The resource with this id, in any letter case."""
        return self.store.get(KIND, resource_id.lower())

    def put(self, resource: Document) -> Document:
        """Write a resource under its own id; returns it."""
        before, instant = self.get(resource["id"]), rfc3339(now())
        times = {"createdTime": before.get("createdTime", instant) if before else instant, "changedTime": instant}
        self.store.put(KIND, resource["id"].lower(), {**resource, **times})
        return resource

    def delete(self, resource_id: str) -> bool:
        """Remove a resource with its children and the role assignments on it; returns whether it existed.

        A recovered vault comes back without its role assignments (azure-docs `key-vault/general/soft-delete-overview`).
        """
        key = resource_id.lower()
        with self.store.transaction():
            for below, _ in self.store.items(KIND, f"{key}/"):
                self.store.delete(KIND, below)
            return self.store.delete(KIND, key)

    def below(self, scope: str, type_name: str) -> Iterator[Document]:
        """Every resource of the type within `scope`: a subscription, a group or a parent resource."""
        for _, document in self.store.items(KIND, f"{scope.lower().rstrip('/')}/"):
            if document["type"].lower() == type_name.lower():
                yield document


def public(resource: Document) -> dict[str, Any]:
    """The resource as a caller sees it, without what the local cloud notes for itself."""
    hidden = {"seeded", "createdTime", "changedTime"}
    if not resource.get("tags") and resource["type"].lower() in _TAGS_OR_NOTHING:
        hidden.add("tags")
    return {name: value for name, value in resource.items() if name not in hidden}
