"""The verbs that the deployer needs on the management cluster.

One table for the Roles of namespaces or the ClusterRole that grant them (`idstack rbac`), the check before the first
resource, and the local cluster's roles; `rights_of` decides what a configuration needs, namespace by namespace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE
from identity.settings import HostedClusterSettings, Settings

ROLE_NAME: Final = "idstack:deployer"
_RBAC: Final = "rbac.authorization.k8s.io"
_MANAGE: Final = ("get", "list", "watch", "create", "patch", "delete")
_READ: Final = ("get", "list", "watch")
# Of a Secret. RBAC cannot limit `create` to a name: the request has none.
_CREATE: Final = ("create",)
# The kubernetes provider reads, writes and deletes by name, and watches a single object by its name
# (pulumi/pulumi-kubernetes `provider/pkg/await/await.go`); it lists no Secrets.
_BY_NAME: Final = ("get", "watch", "patch", "delete")


@dataclass(frozen=True)
class PolicyRule:
    """Verbs on resources of one API group ("" is the core group); `names` of the objects, empty for all of them."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()

    def permissions(self, namespace: str = "") -> Iterator[Permission]:
        """One permission for each resource, verb and name."""
        for resource in self.resources:
            for verb in self.verbs:
                for name in self.names or ("",):
                    yield Permission(self.group, resource, verb, namespace, name)

    def manifest(self) -> dict[str, Any]:
        """The rule as in a Role."""
        named = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs), **named}


@dataclass(frozen=True, order=True)
class Permission:
    """One verb on one resource; without `namespace` in all namespaces, without `name` on all objects."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        of_group = f".{self.group}" if self.group else ""
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {self.resource}{of_group}{name}{f' in {self.namespace}' if self.namespace else ''}"

    @property
    def everywhere(self) -> Permission:
        """The same for all objects of the cluster."""
        return replace(self, namespace="", name="")

    @property
    def attributes(self) -> dict[str, str]:
        """The `resourceAttributes` of an access review."""
        attributes = {"group": self.group, "resource": self.resource, "verb": self.verb}
        return attributes | {key: text for key in ("namespace", "name") if (text := getattr(self, key))}


@dataclass(frozen=True)
class NamespaceRights:
    """What a stack does in one namespace; `is_made`: the stack makes the namespace."""

    namespace: str
    rules: tuple[PolicyRule, ...]
    is_made: bool


def in_namespace(
    namespace: str,
    *,
    cluster_side: bool = False,
    network_policies: bool = False,
    hosted_clusters: bool = False,
    secrets: Collection[str] | None = (),
) -> NamespaceRights:
    """What a stack with these objects needs there; `secrets` are the names of its Secrets, None for any name."""
    rules = [
        *(_CLUSTER_SIDE if cluster_side else ()),
        *((_NETWORK_POLICIES,) if network_policies else ()),
        *((_HOSTED_CLUSTERS,) if hosted_clusters else ()),
    ]
    if secrets is None:
        rules.append(PolicyRule("", ("secrets",), _MANAGE))
    elif secrets:
        rules.append(PolicyRule("", ("secrets",), _CREATE))
        rules.append(PolicyRule("", ("secrets",), _BY_NAME, tuple(secrets)))
    return NamespaceRights(namespace, (*rules, *_READS), is_made=cluster_side)


_CLUSTER_SIDE: Final = (
    # What `components/kubernetes` creates, reads and deletes.
    PolicyRule("", ("configmaps",), _MANAGE),
    PolicyRule("apps", ("deployments",), _MANAGE),
    PolicyRule("policy", ("poddisruptionbudgets",), _MANAGE),
    PolicyRule("secrets-store.csi.x-k8s.io", ("secretproviderclasses",), _MANAGE),
    PolicyRule("infrastructure.cluster.x-k8s.io", ("azureclusteridentities",), _MANAGE),
    # The kubernetes provider watches these too while it waits for a Deployment (pulumi/pulumi-kubernetes
    # `provider/pkg/await/deployment.go`).
    PolicyRule("apps", ("replicasets",), _READ),
    PolicyRule("", ("persistentvolumeclaims",), _READ),
)
_NETWORK_POLICIES: Final = PolicyRule("networking.k8s.io", ("networkpolicies",), _MANAGE)
_HOSTED_CLUSTERS: Final = PolicyRule("hypershift.openshift.io", ("hostedclusters",), _MANAGE)
_READS: Final = (
    # Why a pod is not ready, and what it mounts.
    PolicyRule("", ("pods", "events"), _READ),
    PolicyRule("secrets-store.csi.x-k8s.io", ("secretproviderclasspodstatuses",), _READ),
    # A namespace with a control plane of HyperShift is never deleted.
    PolicyRule("hypershift.openshift.io", ("hostedcontrolplanes",), _READ),
)
# Which kinds there are.
_KINDS: Final = PolicyRule("apiextensions.k8s.io", ("customresourcedefinitions",), _READ)
_NAMESPACES: Final = ("namespaces",)
# What any stack may need, in any namespace.
_ANYWHERE: Final = in_namespace("", cluster_side=True, network_policies=True, hosted_clusters=True, secrets=None)


def permissions() -> tuple[Permission, ...]:
    """All that any stack may need: what the deployer of a new cluster has as its administrator."""
    rules = (PolicyRule("", _NAMESPACES, _MANAGE), *_ANYWHERE.rules, _KINDS)
    return tuple(permission for rule in rules for permission in rule.permissions())


def needed(rights: Sequence[NamespaceRights]) -> tuple[Permission, ...]:
    """The permissions that a stack with these rights needs, in the cluster and in its namespaces."""
    cluster_wide = (permission for rule in _of_the_cluster(rights) for permission in rule.permissions())
    namespaced = (permission for own in rights for rule in own.rules for permission in rule.permissions(own.namespace))
    return (*cluster_wide, *namespaced)


def manifests(
    rights: Sequence[NamespaceRights], stack: str, *, group: str | None = None, user: str | None = None
) -> list[dict[str, Any]]:
    """A Role and its binding in each namespace, and the namespace if it is missing: for an Entra group, or for a user
    or service principal, by object id. Names end in the stack's, as stacks may share the namespace of HostedClusters.

    A ClusterRole lets it read the kinds and change the stack's own namespaces. RBAC cannot limit `create` to a name, so
    it may create a namespace of any name.
    """
    subjects, name = _subjects(group, user), f"{ROLE_NAME}:{stack}"
    documents: list[dict[str, Any]] = []
    for own in rights:
        documents.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own.namespace}})
        documents += _role("Role", {"name": name, "namespace": own.namespace}, own.rules, subjects)
    return [*documents, *_role("ClusterRole", {"name": name}, _of_the_cluster(rights), subjects)]


def cluster_wide_manifests(
    rights: Sequence[NamespaceRights] = (_ANYWHERE,),
    stack: str | None = None,
    *,
    group: str | None = None,
    user: str | None = None,
) -> list[dict[str, Any]]:
    """The same as one ClusterRole and its binding, for all namespaces; Secrets stay limited to their names.

    By default all that any stack may need, which the local cluster's deployer has.
    """
    rules: dict[tuple[str, tuple[str, ...], tuple[str, ...]], PolicyRule] = {}
    for rule in (rule for own in rights for rule in own.rules):
        key = (rule.group, rule.resources, rule.verbs)
        known = rules.setdefault(key, rule).names
        both = dict.fromkeys((*known, *rule.names)) if known and rule.names else ()
        rules[key] = replace(rule, names=tuple(both))
    namespaces = [PolicyRule("", _NAMESPACES, _MANAGE)] if any(own.is_made for own in rights) else []
    name = ROLE_NAME if stack is None else f"{ROLE_NAME}:{stack}"
    return _role("ClusterRole", {"name": name}, [*namespaces, *rules.values(), _KINDS], _subjects(group, user))


def _of_the_cluster(rights: Sequence[NamespaceRights]) -> list[PolicyRule]:
    names = tuple(own.namespace for own in rights if own.is_made)
    by_name = tuple(verb for verb in _MANAGE if verb not in _CREATE)
    if not names:
        return [_KINDS]
    return [PolicyRule("", _NAMESPACES, _CREATE), PolicyRule("", _NAMESPACES, by_name, names), _KINDS]


def _subjects(group: str | None, user: str | None) -> list[dict[str, str]]:
    return [
        {"apiGroup": _RBAC, "kind": kind, "name": name}
        for kind, name in (("Group", group), ("User", user))
        if name is not None
    ]


def _role(
    kind: str, metadata: dict[str, str], rules: Sequence[PolicyRule], subjects: list[dict[str, str]]
) -> list[dict[str, Any]]:
    """A role of this kind and its binding of the same name."""
    version, name = f"{_RBAC}/v1", metadata["name"]
    return [
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": dict(metadata),
            "rules": [rule.manifest() for rule in rules],
        },
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
            "subjects": [dict(subject) for subject in subjects],
        },
    ]


# Of all consumers: the next `up` deletes those of a disabled identity.
_CONFIGURATIONS: Final = tuple(
    dict.fromkeys(
        file.secret
        for row in CONTROL_PLANE
        for mount in row.mounts
        for file in (mount.config, mount.platform)
        if file is not None
    )
)


def rights_of(settings: Settings) -> tuple[NamespaceRights, ...]:
    """The rights in each namespace in which the stack has objects; none if it has none on the management cluster."""
    homes: dict[str, list[HostedClusterSettings]] = {}
    for cluster in settings.hosted_clusters:
        if cluster.hosted_cluster is not None:  # without it the stack writes no Secret, not even of a signing key
            homes.setdefault(cluster.namespace, []).append(cluster)
    return (*_cluster_sides(settings), *(_home(namespace, clusters) for namespace, clusters in homes.items()))


def _cluster_sides(settings: Settings) -> Iterator[NamespaceRights]:
    for cluster in filter(settings.makes_cluster_side, settings.hosted_clusters):
        yield in_namespace(
            cluster.namespace_name,
            cluster_side=True,
            network_policies=settings.block_instance_metadata,
            secrets=_CONFIGURATIONS,
        )


def _home(namespace: str, clusters: list[HostedClusterSettings]) -> NamespaceRights:
    """The rights in a namespace of HostedClusters, which has the Secrets with their keys."""
    keys = [cluster.signing_key_secret for cluster in clusters if cluster.signing_key is not None]
    keys += [cluster.encryption_key_secret for cluster in clusters if cluster.encryption_key_secret is not None]
    return in_namespace(namespace, hosted_clusters=True, secrets=keys)
