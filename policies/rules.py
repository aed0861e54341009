"""The rules: one function each, whose docstring is the sentence that a reviewer reads.

A rule gets one resource and yields its violations: found, accepted, fix. A value that a preview does not know yet
raises `UnknownValueError`; the `up` that follows knows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Final, Self, cast

from identity import resource_types
from identity.catalogue import CONTROL_PLANE, FEDERATED_IDENTITIES, OPTIONAL
from identity.catalogue_rows import GrantedIdentity
from identity.naming import control_plane_identity_name, kebab
from identity.plugin_schema import RenewalScheduleInputs
from identity.roles import (
    AKS_RBAC_CLUSTER_ADMIN_ROLE,
    KEY_VAULT_SECRETS_USER_ROLE,
    MANAGED_IDENTITY_OPERATOR_ROLE,
    STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE,
    Role,
)
from identity.settings.schema.model import PolicyName
from identity.settings.schema.problems import NAMESPACE


@dataclass(frozen=True)
class StackConfig:
    """A stack's configuration, as far as rules need it.

    `is_protected` is its `protect`: stacks with it are production. `clusters` are the names of its hosted clusters;
    `waivers` have the reason by policy and resource, `custom_roles` the role's GUID by the identity's component.
    """

    is_protected: bool = True
    clusters: tuple[str, ...] = ()
    waivers: Mapping[tuple[str, str], str] = field(default_factory=dict)
    custom_roles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the variable that the engine sets. Malformed entries are left out: the program reports them."""
        config: dict[str, str] = json.loads(environ.get("PULUMI_CONFIG") or "{}")
        clusters = _list(config.get(f"{NAMESPACE}:hostedClusters"))
        waivers = _list(config.get(f"{NAMESPACE}:policyWaivers"))
        return cls(
            is_protected=config.get(f"{NAMESPACE}:protect") != "false",
            clusters=tuple(str(cluster.get("name")) for cluster in clusters),
            custom_roles={
                control_plane_identity_name(str(cluster.get("name")), name): str(identity["customRole"]).lower()
                for cluster in clusters
                for name, identity in _mapping(cluster.get("identities")).items()
                if "customRole" in _mapping(identity)
            },
            waivers={
                (waiver["policy"], waiver["resource"]): waiver["reason"]
                for waiver in waivers
                if {"policy", "resource", "reason"} <= waiver.keys()
            },
        )

    def cluster_of(self, resource: str) -> str | None:
        """The hosted cluster of the resource with this name, which begins with the cluster's name."""
        owners = [name for name in self.clusters if resource.startswith(f"{name}-")]
        return max(owners, key=len, default=None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(text: str | None) -> list[dict[str, Any]]:
    entries = json.loads(text) if text else []
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


# learn.microsoft.com/entra/identity/enterprise-apps/tutorial-enforce-secret-standards: the lifetime it recommends.
LONGEST_LIFE_DAYS: Final = 180
# A range with fewer fixed bits has at least a thousandth of all IPv4 addresses; no real network is as large.
_LEAST_PREFIX: Final = 10
_DIGEST: Final = re.compile(r"@sha256:[0-9a-f]{64}$")
_SUBSCRIPTION: Final = re.compile(r"/subscriptions/[^/]+/?|/providers/microsoft\.management/.*|/", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class CheckedResource:
    """One resource as the program registers it. `kinds` are the types of its parents and its own, outermost first."""

    kinds: tuple[str, ...]
    name: str
    inputs: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return self.kinds[-1]


@dataclass(frozen=True)
class Violation:
    """What is wrong with a resource."""

    found: str
    accepted: str
    fix: str


@dataclass(frozen=True)
class RuleContext:
    """What rules know beside the resource. `principals` has the cluster of every identity seen so far in this run."""

    stack: StackConfig
    principals: dict[str, str] = field(default_factory=dict)


Rule = Callable[[CheckedResource, RuleContext], Iterator[Violation]]


def vault_purge_protection(resource: CheckedResource, context: RuleContext) -> Iterator[Violation]:
    """A protected stack's vault cannot be purged: a deleted one keeps its secrets recoverable."""
    if resource.kind != resource_types.VAULT or not context.stack.is_protected:
        return
    if not resource.inputs["properties"].get("enablePurgeProtection"):
        yield Violation(
            found="purge protection is off in a stack with `protect: true`",
            accepted="a vault that cannot be purged before its retention ends",
            fix="`.venv/bin/idstack pulumi -- config set --path vault.purgeProtection true`",
        )


def network_open_to_all(resource: CheckedResource, context: RuleContext) -> Iterator[Violation]:
    """A protected stack's vault answers to listed networks alone."""
    if resource.kind != resource_types.VAULT or not context.stack.is_protected:
        return
    properties = resource.inputs["properties"]
    rules = properties.get("networkAcls") or {}
    if properties.get("publicNetworkAccess") == "Disabled":
        return
    if rules.get("defaultAction", "Allow") != "Deny":
        yield Violation(
            found="the vault's firewall lets every network in",
            accepted="`defaultAction: Deny`, with the networks of deployers and nodes listed",
            fix="`.venv/bin/idstack pulumi -- config set --path vault.defaultAction Deny`",
        )
    for rule in rules.get("ipRules") or ():
        if ip_network(rule["value"], strict=False).prefixlen < _LEAST_PREFIX:
            yield Violation(
                found=f"{rule['value']} is let in, which is nearly everybody",
                accepted=f"ranges of /{_LEAST_PREFIX} or smaller, of your own",
                fix="correct vault.allowedIpRanges in the stack's file",
            )


def role_wider_than_catalogue(resource: CheckedResource, context: RuleContext) -> Iterator[Violation]:
    """Every identity has the role that the catalogue or its `customRole` gives it, at a resource group or below."""
    if resource.kind != resource_types.ROLE_ASSIGNMENT:
        return
    allowed = {role.guid: role.name for role in _roles_of(resource, context.stack)}
    kept = context.stack.custom_roles.items()
    allowed |= {guid: "its customRole" for name, guid in kept if resource.name.startswith(f"{name}-roles-")}
    guid = str(resource.inputs["roleDefinitionId"]).rpartition("/")[2].lower()
    if guid not in allowed:
        yield Violation(
            found=f"the role {guid} at {resource.inputs['scope']}",
            accepted=" or ".join(sorted(set(allowed.values())))
            or "no role at all: the catalogue knows no such identity",
            fix="give the role in identity/catalogue.py, where a review sees it, or take the assignment out",
        )
    if _SUBSCRIPTION.fullmatch(resource.inputs["scope"]):
        yield Violation(
            found=f"a role at the whole of {resource.inputs['scope']}",
            accepted="a resource group, or a resource in one",
            fix="assign it where the identity works (`Scope` in identity/catalogue_rows.py)",
        )


def certificate_life(resource: CheckedResource, context: RuleContext) -> Iterator[Violation]:
    """No certificate lives longer than 180 days: a copied key works until its certificate ends."""
    # The schedule has what the settings say. A certificate keeps its own until its renewal.
    if resource.kind != resource_types.RENEWAL_SCHEDULE:
        return
    days = int(cast(RenewalScheduleInputs[str], resource.inputs)["lifetimeDays"])
    if days > LONGEST_LIFE_DAYS:
        yield Violation(
            found=f"a certificate of {days} days",
            accepted=f"at most {LONGEST_LIFE_DAYS} days",
            fix=f"`.venv/bin/idstack pulumi -- config set --path credentials.lifetimeDays {LONGEST_LIFE_DAYS}`, then a "
            "renewal",
        )


def image_by_tag(resource: CheckedResource, context: RuleContext) -> Iterator[Violation]:
    """A protected stack names every image by its digest: the owner of a tag can move it."""
    if not context.stack.is_protected:
        return
    for image in _images(resource):
        if not _DIGEST.search(image):
            yield Violation(
                found=f"the image {image}",
                accepted="an image with its digest, <name>@sha256:<64 hexadecimal digits>",
                fix=f"`skopeo inspect --format '{{{{.Digest}}}}' docker://{image}` prints the digest",
            )


def identity_shared_between_clusters(resource: CheckedResource, context: RuleContext) -> Iterator[Violation]:
    """No two hosted clusters of a stack have one identity: one cluster would have the other's rights."""
    cluster = None if resource.name.endswith(_KEY_VAULT_USER_SUFFIX) else context.stack.cluster_of(resource.name)
    if (
        resource.kind != resource_types.ROLE_ASSIGNMENT
        or cluster is None
        or not _CLUSTER_COMPONENTS & {*resource.kinds}
    ):
        return
    principal = str(resource.inputs["principalId"])
    first = context.principals.setdefault(principal, cluster)
    if first != cluster:
        yield Violation(
            found=f"the identity with object id {principal}, which {first} has as well",
            accepted="an identity of its own for each hosted cluster",
            fix=f"give {cluster} another `resourceId` and credential in the stack's file",
        )


# Everything below a component of these types belongs to one cluster; the deployer's roles are below others.
_CLUSTER_COMPONENTS: Final = frozenset(
    f"idstack:azure:{kind}" for kind in ("ControlPlaneIdentity", "DataPlaneIdentity", "OptionalIdentity")
)
# Components whose one role does not come from a row.
_OTHER_ROLES: Final[Mapping[str, Role]] = {
    resource_types.KEY_VAULT_USER: KEY_VAULT_SECRETS_USER_ROLE,
    resource_types.MANAGEMENT_CLUSTER: AKS_RBAC_CLUSTER_ADMIN_ROLE,
    resource_types.OIDC_ISSUER: STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE,
}

# End of the name of the key-vault-user's assignment on a secret; clusters of one vault share it.
_KEY_VAULT_USER_SUFFIX: Final = "-reader-secret"

RULES: Final[Mapping[PolicyName, Rule]] = {
    "vault-purge-protection": vault_purge_protection,
    "network-open-to-all": network_open_to_all,
    "role-wider-than-catalogue": role_wider_than_catalogue,
    "certificate-life": certificate_life,
    "image-by-tag": image_by_tag,
    "identity-shared-between-clusters": identity_shared_between_clusters,
}
"""Every rule, by the name that a waiver gives."""


def _roles_of(resource: CheckedResource, stack: StackConfig) -> list[Role]:
    """The catalogue's roles of the identity that the assignment is for, by the name behind the cluster's."""
    own = resource.name.removeprefix(f"{stack.cluster_of(resource.name)}-")
    if resource_types.CONTROL_PLANE_IDENTITY in resource.kinds:
        if resource.name.endswith(_KEY_VAULT_USER_SUFFIX):
            return [KEY_VAULT_SECRETS_USER_ROLE]
        return _in_both_sets(row for row in CONTROL_PLANE if own.startswith(f"{kebab(row.field)}-roles-"))
    if resource_types.DATA_PLANE_IDENTITY in resource.kinds:
        return _in_both_sets(row for row in FEDERATED_IDENTITIES if own.startswith(f"{row.kind}-{row.name}-roles-"))
    if resource_types.OPTIONAL_IDENTITY in resource.kinds:
        attacher = [MANAGED_IDENTITY_OPERATOR_ROLE] if "-attacher-roles-" in own else []
        rows = [row for row in OPTIONAL if own.startswith(f"{row.name}-roles-")]
        return attacher or [grant.role for row in rows for grant in row.grants]
    return [role for kind, role in _OTHER_ROLES.items() if kind in resource.kinds]


def _in_both_sets(rows: Iterable[GrantedIdentity]) -> list[Role]:
    return [role for row in rows for role in (row.hypershift.role, row.builtin.role)]


def _images(resource: CheckedResource) -> list[str]:
    spec = resource.inputs.get("spec") or {}
    if resource.kind == resource_types.DEPLOYMENT:
        return [str(container["image"]) for container in spec["template"]["spec"]["containers"]]
    if resource.kind.endswith(":HostedCluster") and resource.kind.startswith("kubernetes:"):
        return [str(spec["release"]["image"])] if spec.get("release") else []
    return []
