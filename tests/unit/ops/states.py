"""Resources as a state has them, each with its parents: the components of a hosted cluster and of its identities."""

from __future__ import annotations

from typing import Any, Final

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, FEDERATED_IDENTITIES, OPTIONAL
from identity.naming import cluster_side_name, control_plane_identity_name, federated_identity_name

ROLE_GRANTS: Final = "idstack:azure:RoleGrants"
_STACK: Final = "urn:pulumi:dev::idstack::"


class Resource(dict[str, Any]):
    """One resource of a state; `line` is what it is below, from the top."""

    line: tuple[Resource, ...] = ()


def below(parent: Any | None, token: str, name: str, **changes: Any) -> Any:
    """A resource below another one, None for the stack; without an id it is a component."""
    above = "" if parent is None else f"{parent['urn'].rpartition('::')[0].removeprefix(_STACK)}$"
    urn = f"{_STACK}{above}{token}::{name}"
    made = Resource(urn=urn, type=token, custom="id" in changes, parent=parent["urn"] if parent else "", **changes)
    made.line = () if parent is None else (*parent.line, parent)
    return made


def cluster(name: str = "hc1") -> Any:
    """The component of a hosted cluster."""
    return below(None, resource_types.HOSTED_CLUSTER, name)


def identity(name: str, field: str) -> Any:
    """The component of an identity, by the cluster's name and the identity's field."""
    kinds = {
        **{
            row.field: (resource_types.DATA_PLANE_IDENTITY, federated_identity_name(name, row.kind, row.name))
            for row in reversed(FEDERATED_IDENTITIES)
        },
        **{row.field: (resource_types.OPTIONAL_IDENTITY, f"{name}-{row.name}") for row in OPTIONAL},
        **{
            row.field: (resource_types.CONTROL_PLANE_IDENTITY, control_plane_identity_name(name, row.field))
            for row in CONTROL_PLANE
        },
    }
    return below(cluster(name), *kinds[field])


def workload(name: str, field: str) -> Any:
    """The component of a workload identity."""
    [row] = [
        federated_identity
        for federated_identity in FEDERATED_IDENTITIES
        if federated_identity.field == field and federated_identity.kind == "workload"
    ]
    component = federated_identity_name(name, row.kind, row.name)
    return below(cluster(name), resource_types.DATA_PLANE_IDENTITY, component)


def cluster_side(name: str = "hc1") -> Any:
    """The component of the objects in the control plane's namespace."""
    return below(cluster(name), resource_types.CLUSTER_SIDE, cluster_side_name(name))


def grants(component: Any | None, name: str = "roles") -> Any:
    """A component's `RoleGrants`; those of the key-vault-user for None."""
    if component is None:
        component = below(None, resource_types.KEY_VAULT_USER, "key-vault-user")
    return below(component, ROLE_GRANTS, f"{component['urn'].rpartition('::')[2]}-{name}")


def with_parents(*resources: Any) -> list[Any]:
    """The resources, and before them what they are below."""
    found = {member["urn"]: member for resource in resources for member in (*resource.line, resource)}
    return list(found.values())
