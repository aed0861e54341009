"""The seed: a YAML file with what exists in a local cloud from the start, its tenant and subscription included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from localcloud.azure.authorization import built_in_roles
from localcloud.azure.conditions import parse as parse_condition
from localcloud.azure.shared.held import HeldFaults
from localcloud.core import yaml_text
from localcloud.core.clouds import place, problems
from localcloud.core.store import Store
from localcloud.runtime.seed_errors import InvalidSeedError, SeedConflictError

DEFAULT: Final = Path(__file__).resolve().parents[1] / "seed.yaml"
DEPLOYER: Final = "deployer"
"""The deployer among the members of a group, which are user principal names besides."""
_KIND: Final = "environment"
_KEY: Final = "seed"


def _is_uuid(text: str) -> str:
    if str(UUID(text)) != text:
        raise ValueError("lower-case letters and hyphens are expected, as Azure prints a UUID")
    return text


def _is_condition(text: str) -> str:
    parse_condition(text)
    return text


_Uuid = Annotated[str, AfterValidator(_is_uuid)]
_Name = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class SeededResourceGroup(_Part):
    """A resource group, in the seed's location unless it has its own."""

    name: _Name
    location: _Name | None = None


_Group = Annotated[SeededResourceGroup, BeforeValidator(lambda one: {"name": one} if isinstance(one, str) else one)]


class SeededIdentity(_Part):
    """A user-assigned managed identity; with `credential`, its document is issued to `run/msi/<name>.json`.

    Without ids it gets new ones. `on_nodes`: it is attached to the nodes of every seeded cluster, so that
    IMDS issues its tokens.
    """

    name: _Name
    resource_group: _Name
    credential: bool = False
    client_id: _Uuid | None = None
    object_id: _Uuid | None = None
    on_nodes: bool = False


class SeededCluster(_Part):
    """An AKS cluster, whose Key Vault add-on's identity is attached to its nodes: IMDS issues its tokens.

    `network_policy`: the engine that enforces policies there, as ARM shows it; on this machine none does.
    """

    name: _Name
    resource_group: _Name
    network_policy: Literal["none", "azure", "calico", "cilium"] = "none"


class SeededKey(_Part):
    """A version of an RSA key of a vault."""

    name: _Name
    version: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class SeededVault(_Part):
    """A key vault with role-based access and purge protection."""

    name: Annotated[str, Field(pattern="^[a-zA-Z][a-zA-Z0-9-]{1,22}[a-zA-Z0-9]$")]
    resource_group: _Name
    keys: tuple[SeededKey, ...] = ()


class SeededResource(_Part):
    """A verbatim document of ARM; a child's `type` and `name` have a segment for each parent.

    Without a location, a child has none and any other resource has the seed's.
    """

    type: Annotated[str, Field(pattern="^[A-Za-z.]+(/[A-Za-z]+)+$")]
    name: _Name
    resource_group: _Name
    location: str | None = None
    sku: dict[str, str] | None = None
    identity: dict[str, Any] | None = None
    properties: dict[str, Any] = {}


class SeededRole(_Part):
    """A role of the deployer's under a condition (Azure ABAC, version 2.0)."""

    role: _Name
    condition: Annotated[str, AfterValidator(_is_condition)]


class SeededUser(_Part):
    """A member of the tenant, who can sign in with a device code."""

    user_principal_name: _Name
    display_name: _Name


class SeededGroup(_Part):
    """A security group; its members are `deployer` and user principal names."""

    display_name: _Name
    object_id: _Uuid
    members: tuple[str, ...] = ()


class Seed(_Part):
    """A seed file; every list may be empty or absent."""

    tenant_id: _Uuid
    subscription_id: _Uuid
    location: _Name
    resource_groups: tuple[_Group, ...] = ()
    # Roles of the deployer on the subscription, by Azure's display names.
    deployer_roles: tuple[SeededRole | _Name, ...] = ()
    managed_identities: tuple[SeededIdentity, ...] = ()
    clusters: tuple[SeededCluster, ...] = ()
    vaults: tuple[SeededVault, ...] = ()
    resources: tuple[SeededResource, ...] = ()
    users: tuple[SeededUser, ...] = ()
    groups: tuple[SeededGroup, ...] = ()
    # Cluster roles, their bindings and custom resource definitions, for a real kube-apiserver.
    kubernetes_objects: tuple[dict[str, Any], ...] = ()
    # Faults that are held after each start with this file.
    faults: HeldFaults | None = None


def load(file: Path) -> Seed:
    """Read a seed; raises OSError, or `InvalidSeedError` with every problem and its place."""
    try:
        seed = Seed.model_validate(yaml_text.load(file.read_bytes()))
    except yaml.YAMLError as error:
        raise InvalidSeedError(f"{file}: {error}") from None
    except ValidationError as error:
        raise InvalidSeedError("\n".join(f"{file}: {problem}" for problem in problems(error))) from None
    if dangling := list(_dangling(seed)):
        raise InvalidSeedError("\n".join(f"{file}: {problem}" for problem in dangling))
    return seed


def choose(store: Store, wanted: Seed | None = None) -> Seed:
    """The seed: `wanted`, else the one before, else the default, kept from now on; raises SeedConflictError."""
    with store.transaction():
        known = store.get(_KIND, _KEY)
        before = None if known is None else Seed.model_validate(known)
        chosen = wanted or before or load(DEFAULT)
        if before is not None and _tenancy(before) != _tenancy(chosen):
            raise SeedConflictError(
                f"this local cloud has the tenant {before.tenant_id} with the subscription {before.subscription_id}, "
                f"which are fixed; the seed has {chosen.tenant_id} and {chosen.subscription_id}: remove the local "
                "cloud with `localcloud stop --remove`, or start another one in a state directory of its own"
            )
        if chosen != before:
            store.put(_KIND, _KEY, chosen.model_dump(mode="json", by_alias=True))
    return chosen


def _tenancy(seed: Seed) -> tuple[str, str]:
    return seed.tenant_id, seed.subscription_id


def _dangling(seed: Seed) -> Iterator[str]:
    groups = {group.name.lower() for group in seed.resource_groups}
    for key in ("managed_identities", "clusters", "vaults", "resources"):
        for index, entry in enumerate(getattr(seed, key)):
            if entry.resource_group.lower() not in groups:
                where = place((to_camel(key), index, "resourceGroup"))
                yield f"{where}: {entry.resource_group!r} is not among resourceGroups"
    for index, resource in enumerate(seed.resources):
        if resource.type.count("/") != resource.name.count("/") + 1:
            where = place(("resources", index, "name"))
            yield f"{where}: {resource.name!r} has not one name for each segment of {resource.type}"
    known = {role.role_name for role in built_in_roles().values()}
    for index, entry in enumerate(seed.deployer_roles):
        name = entry if isinstance(entry, str) else entry.role
        if name not in known:
            where = place(("deployerRoles", index))
            yield f"{where}: {name!r} is not an emulated built-in role; accepted: {', '.join(sorted(known))}"
    members = {DEPLOYER, *(user.user_principal_name for user in seed.users)}
    for index, group in enumerate(seed.groups):
        for number, member in enumerate(group.members):
            if member not in members:
                where = place(("groups", index, "members", number))
                yield f"{where}: {member!r} is neither {DEPLOYER!r} nor among users"
