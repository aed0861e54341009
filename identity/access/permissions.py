"""What the deployer does on the management cluster: the verbs the stack needs, where it needs them, and no others.

One table for the Roles of single namespaces, or the ClusterRole, that grant them (`idstack rbac`), the check before the
first resource, and the local cluster's own roles. `identity/access/stack_rights.py` tells what a configuration needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

ROLE_NAME: Final = "idstack:deployer"
_RBAC: Final = "rbac.authorization.k8s.io"
_MANAGE: Final = ("get", "list", "watch", "create", "patch", "delete")
_LOOK: Final = ("get", "list", "watch")
# Of a Secret. RBAC cannot limit `create` to a name: nothing has one yet when that is asked.
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

    def each(self, namespace: str = "") -> Iterator[Permission]:
        """One permission for each resource, verb and name."""
        for resource in self.resources:
            for verb in self.verbs:
                for name in self.names or ("",):
                    yield Permission(self.group, resource, verb, namespace, name)

    def manifest(self) -> dict[str, Any]:
        """The rule as a Role has it."""
        named = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs), **named}


@dataclass(frozen=True, order=True)
class Permission:
    """One verb on one resource: in a namespace, everywhere without one; on the object of a name, on all without one."""

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
        found = {"group": self.group, "resource": self.resource, "verb": self.verb}
        return found | {key: text for key in ("namespace", "name") if (text := getattr(self, key))}


@dataclass(frozen=True)
class NamespaceRights:
    """What a stack does in one namespace; `is_made`: the namespace is the stack's own."""

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
    return NamespaceRights(namespace, (*rules, *_LOOKS), is_made=cluster_side)


_CLUSTER_SIDE: Final = (
    # What `components/kubernetes` creates, reads and deletes.
    PolicyRule("", ("configmaps",), _MANAGE),
    PolicyRule("apps", ("deployments",), _MANAGE),
    PolicyRule("policy", ("poddisruptionbudgets",), _MANAGE),
    PolicyRule("secrets-store.csi.x-k8s.io", ("secretproviderclasses",), _MANAGE),
    PolicyRule("infrastructure.cluster.x-k8s.io", ("azureclusteridentities",), _MANAGE),
    # The kubernetes provider waits for a Deployment by watching these as well, and for as long as it may not
    # (pulumi/pulumi-kubernetes `provider/pkg/await/deployment.go`).
    PolicyRule("apps", ("replicasets",), _LOOK),
    PolicyRule("", ("persistentvolumeclaims",), _LOOK),
)
_NETWORK_POLICIES: Final = PolicyRule("networking.k8s.io", ("networkpolicies",), _MANAGE)
_HOSTED_CLUSTERS: Final = PolicyRule("hypershift.openshift.io", ("hostedclusters",), _MANAGE)
_LOOKS: Final = (
    # How it went: why a pod is not ready, what is mounted.
    PolicyRule("", ("pods", "events"), _LOOK),
    PolicyRule("secrets-store.csi.x-k8s.io", ("secretproviderclasspodstatuses",), _LOOK),
    # Whether HyperShift has a control plane in a namespace, which then is never deleted.
    PolicyRule("hypershift.openshift.io", ("hostedcontrolplanes",), _LOOK),
)
# Which kinds there are.
_KINDS: Final = PolicyRule("apiextensions.k8s.io", ("customresourcedefinitions",), _LOOK)
_NAMESPACES: Final = ("namespaces",)
# What any stack may need, in any namespace.
_ANYWHERE: Final = in_namespace("", cluster_side=True, network_policies=True, hosted_clusters=True, secrets=None)


def permissions() -> tuple[Permission, ...]:
    """All that any stack may need, everywhere: what the deployer of a new cluster has as its administrator."""
    rules = (PolicyRule("", _NAMESPACES, _MANAGE), *_ANYWHERE.rules, _KINDS)
    return tuple(permission for rule in rules for permission in rule.each())


def needed(rights: Sequence[NamespaceRights]) -> tuple[Permission, ...]:
    """What a stack with these rights asks for, each where it needs it."""
    whole = (permission for rule in _of_the_cluster(rights) for permission in rule.each())
    inside = (permission for each in rights for rule in each.rules for permission in rule.each(each.namespace))
    return (*whole, *inside)


def manifests(
    rights: Sequence[NamespaceRights], stack: str, *, group: str | None = None, user: str | None = None
) -> list[dict[str, Any]]:
    """A Role and its binding in each namespace, which is made if it is missing: for an Entra group, or for a user or
    service principal, by object id. The names have the stack's: stacks may share the namespace of HostedClusters.

    What belongs to no namespace stays in a ClusterRole: kinds may be looked at, and of the namespaces the stack's own
    changed. RBAC cannot name what does not exist yet, so a namespace of any name may be created.
    """
    subjects, name = _subjects(group, user), f"{ROLE_NAME}:{stack}"
    found: list[dict[str, Any]] = []
    for each in rights:
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each.namespace}})
        found += _role("Role", {"name": name, "namespace": each.namespace}, each.rules, subjects)
    return [*found, *_role("ClusterRole", {"name": name}, _of_the_cluster(rights), subjects)]


def cluster_wide_manifests(
    rights: Sequence[NamespaceRights] = (_ANYWHERE,),
    stack: str | None = None,
    *,
    group: str | None = None,
    user: str | None = None,
) -> list[dict[str, Any]]:
    """The same as one ClusterRole and its binding, for namespaces of every name; Secrets keep their names.

    By default of all that any stack may need: the local cluster's deployer has it.
    """
    rules: dict[tuple[str, tuple[str, ...], tuple[str, ...]], PolicyRule] = {}
    for rule in (rule for each in rights for rule in each.rules):
        key = (rule.group, rule.resources, rule.verbs)
        known = rules.setdefault(key, rule).names
        both = dict.fromkeys((*known, *rule.names)) if known and rule.names else ()
        rules[key] = replace(rule, names=tuple(both))
    whole = [PolicyRule("", _NAMESPACES, _MANAGE)] if any(each.is_made for each in rights) else []
    name = ROLE_NAME if stack is None else f"{ROLE_NAME}:{stack}"
    return _role("ClusterRole", {"name": name}, [*whole, *rules.values(), _KINDS], _subjects(group, user))


def _of_the_cluster(rights: Sequence[NamespaceRights]) -> list[PolicyRule]:
    own = tuple(each.namespace for each in rights if each.is_made)
    named = tuple(each for each in _MANAGE if each not in _CREATE)
    made = [PolicyRule("", _NAMESPACES, _CREATE), PolicyRule("", _NAMESPACES, named, own)] if own else []
    return [*made, _KINDS]


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
            "subjects": [dict(each) for each in subjects],
        },
    ]
