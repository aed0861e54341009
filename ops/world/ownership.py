"""The owner of a resource: the hosted cluster and the identity of the components above it.

States, plans and event logs all have the parents. Without a state only names and tags tell the owner (`ops/sweep`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, FEDERATED_IDENTITIES, OPTIONAL
from identity.naming import kebab
from ops.stack.state import StateResource, name_of, type_of

_IDENTITIES: Final = frozenset(
    {resource_types.CONTROL_PLANE_IDENTITY, resource_types.DATA_PLANE_IDENTITY, resource_types.OPTIONAL_IDENTITY}
)
# Suffixes of an identity's `RoleGrants` whose roles another principal holds (components/azure).
_READER: Final = "-reader"
_ATTACHER: Final = "-attacher-roles"
_ATTACHED_BY: Final = {row.field: row.attached_by for row in OPTIONAL if row.attached_by}


@dataclass(frozen=True, order=True)
class ResourceOwner:
    """The hosted cluster and the identity's field; empty for resources that all clusters, or all identities, share."""

    cluster: str = ""
    identity: str = ""

    @property
    def name(self) -> str:
        """Its name in messages and `--identity`: `hc1/ingress`."""
        return f"{self.cluster}/{self.identity}"


KEY_VAULT_USER: Final = ResourceOwner(identity="key-vault-user")
"""The holder of the roles to read secrets; it owns no resources."""


class Ownership:
    """The owners of resources, by the URNs of their parents."""

    def __init__(self, parents: Mapping[str, str]) -> None:
        self._parents = parents

    @classmethod
    def of(cls, resources: Iterable[StateResource]) -> Self:
        """The owners in a state, or in a plan."""
        return cls({resource["urn"]: resource.get("parent", "") for resource in resources})

    def owner(self, urn: str) -> ResourceOwner:
        """The owner of a resource; empty if its parents are not known."""
        chain = [urn]
        while parent := self._parents.get(chain[0], ""):
            chain.insert(0, parent)
        depth = next((at for at, link in enumerate(chain) if type_of(link) == resource_types.HOSTED_CLUSTER), None)
        if depth is None:
            return ResourceOwner()
        cluster = name_of(chain[depth])
        for parent, child in pairwise(chain[depth : depth + 3]):
            words = name_of(child).removeprefix(f"{name_of(parent)}-")
            if type_of(child) in _IDENTITIES:
                return ResourceOwner(cluster, _FIELDS.get(words, ""))
            if type_of(parent) == resource_types.CLUSTER_SIDE:
                return ResourceOwner(cluster, _mounting(words))
        return ResourceOwner(cluster)

    def holder(self, urn: str) -> ResourceOwner:
        """The principal of a role assignment: its owner, the key-vault-user, or the one that attaches the identity."""
        grants = name_of(self._parents.get(urn, ""))
        if resource_types.KEY_VAULT_USER in urn or grants.endswith(_READER):
            return KEY_VAULT_USER
        owner = self.owner(urn)
        if grants.endswith(_ATTACHER):
            return ResourceOwner(owner.cluster, _ATTACHED_BY.get(owner.identity, ""))
        return owner


def by_owner(resources: Collection[StateResource], type_token: str) -> dict[ResourceOwner, list[StateResource]]:
    """The resources of one type by owner, in the order of the state, without those that wait for their deletion."""
    ownership = Ownership.of(resources)
    resources_by_owner: dict[ResourceOwner, list[StateResource]] = {}
    for resource in resources:
        if resource["type"] == type_token and not resource.get("delete"):
            resources_by_owner.setdefault(ownership.owner(resource["urn"]), []).append(resource)
    return resources_by_owner


def _mounting(words: str) -> str:
    """The field of the identity that an object of the cluster side belongs to; empty for none."""
    prefixes = [prefix for prefix in _ON_CLUSTER_SIDE if f"{words}-".startswith(f"{prefix}-")]
    return _ON_CLUSTER_SIDE[max(prefixes, key=len)] if prefixes else ""


_CONTROL_PLANE: Final = {kebab(row.field): row.field for row in CONTROL_PLANE}
# The suffix of an identity's component, behind its cluster's name.
_FIELDS: Final = {
    **_CONTROL_PLANE,
    **{f"{row.kind}-{row.name}": row.field for row in FEDERATED_IDENTITIES},
    **{row.name: row.field for row in OPTIONAL},
}
# The prefixes of objects on the cluster side, behind the cluster side's own name.
_ON_CLUSTER_SIDE: Final = {
    **_CONTROL_PLANE,
    **{row.probe_name(mount): row.field for row in CONTROL_PLANE for mount in row.mounts},
}
