"""Whose a resource is: the hosted cluster's and the identity's below whose components the program made it.

States, plans and event logs all have the parents. Only what Azure lists without a state is known by names and tags
(`ops/sweep`).
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
    {
        resource_types.CONTROL_PLANE_IDENTITY,
        resource_types.DATA_PLANE_IDENTITY,
        resource_types.OPTIONAL_IDENTITY,
    }
)
# Ends of the names of an identity's `RoleGrants` whose roles somebody else holds (components/azure).
_READER: Final = "-reader"
_ATTACHER: Final = "-attacher-roles"
_ATTACHED_BY: Final = {row.field: row.attached_by for row in OPTIONAL if row.attached_by}


@dataclass(frozen=True, order=True)
class ResourceOwner:
    """The hosted cluster and the identity's field; empty for what all clusters, or all identities, share."""

    cluster: str = ""
    identity: str = ""

    @property
    def name(self) -> str:
        """As messages and `--identity` have it: `hc1/ingress`."""
        return f"{self.cluster}/{self.identity}"


KEY_VAULT_USER: Final = ResourceOwner(identity="key-vault-user")
"""The holder of the roles that read secrets; nothing else is its own."""


class Ownership:
    """The owners of the resources whose parents are known, by URN."""

    def __init__(self, parents: Mapping[str, str]) -> None:
        self._parents = parents

    @classmethod
    def of(cls, resources: Iterable[StateResource]) -> Self:
        """Those of a state, or of a plan."""
        return cls({each["urn"]: each.get("parent", "") for each in resources})

    def owner(self, urn: str) -> ResourceOwner:
        """Whose the resource is; nobody's if its parents are not known."""
        line = [urn]
        while above := self._parents.get(line[0], ""):
            line.insert(0, above)
        depth = next((at for at, each in enumerate(line) if type_of(each) == resource_types.HOSTED_CLUSTER), None)
        if depth is None:
            return ResourceOwner()
        cluster = name_of(line[depth])
        for above, each in pairwise(line[depth : depth + 3]):
            words = name_of(each).removeprefix(f"{name_of(above)}-")
            if type_of(each) in _IDENTITIES:
                return ResourceOwner(cluster, _FIELDS.get(words, ""))
            if type_of(above) == resource_types.CLUSTER_SIDE:
                return ResourceOwner(cluster, _mounting(words))
        return ResourceOwner(cluster)

    def holder(self, urn: str) -> ResourceOwner:
        """Who has the role of a role assignment: its owner, the key-vault-user, or who attaches the identity."""
        grants = name_of(self._parents.get(urn, ""))
        if resource_types.KEY_VAULT_USER in urn or grants.endswith(_READER):
            return KEY_VAULT_USER
        owner = self.owner(urn)
        if grants.endswith(_ATTACHER):
            return ResourceOwner(owner.cluster, _ATTACHED_BY.get(owner.identity, ""))
        return owner


def by_owner(resources: Collection[StateResource], type_token: str) -> dict[ResourceOwner, list[StateResource]]:
    """The resources of one type by their owners, in the order of the state; what waits for its deletion is left out."""
    ownership = Ownership.of(resources)
    found: dict[ResourceOwner, list[StateResource]] = {}
    for each in resources:
        if each["type"] == type_token and not each.get("delete"):
            found.setdefault(ownership.owner(each["urn"]), []).append(each)
    return found


def _mounting(words: str) -> str:
    """The field of the identity that an object of the cluster side is for; empty for none."""
    found = [each for each in _ON_CLUSTER_SIDE if f"{words}-".startswith(f"{each}-")]
    return _ON_CLUSTER_SIDE[max(found, key=len)] if found else ""


_CONTROL_PLANE: Final = {kebab(row.field): row.field for row in CONTROL_PLANE}
# What the name of an identity's component has behind its cluster's.
_FIELDS: Final = {
    **_CONTROL_PLANE,
    **{f"{row.kind}-{row.name}": row.field for row in FEDERATED_IDENTITIES},
    **{row.name: row.field for row in OPTIONAL},
}
# With what the names of objects on the cluster side begin, behind the cluster side's own.
_ON_CLUSTER_SIDE: Final = {
    **_CONTROL_PLANE,
    **{row.probe_name(mount): row.field for row in CONTROL_PLANE for mount in row.mounts},
}
