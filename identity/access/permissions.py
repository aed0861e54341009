"""What the deployer does on the management cluster: the verbs the stack needs, and no others.

One table for the ClusterRole, or the Roles of single namespaces, that grant them (`idstack rbac`), the check before the
first resource, and the local cluster's own roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

ROLE_NAME: Final = "idstack:deployer"
_RBAC: Final = "rbac.authorization.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_MANAGE: Final = ("get", "list", "watch", "create", "patch", "delete")
_LOOK: Final = ("get", "list", "watch")


@dataclass(frozen=True)
class PolicyRule:
    """Verbs on resources of one API group ("" is the core group), in every namespace."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]

    def each(self) -> Iterator[Permission]:
        """One permission for each pair of resource and verb."""
        for resource in self.resources:
            for verb in self.verbs:
                yield Permission(self.group, resource, verb)


@dataclass(frozen=True, order=True)
class Permission:
    """One verb on one resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"

    @property
    def attributes(self) -> dict[str, str]:
        """The `resourceAttributes` of an access review for the whole cluster."""
        return {"group": self.group, "resource": self.resource, "verb": self.verb}

    def attributes_in(self, namespace: str) -> dict[str, str]:
        """The same for one namespace, or for that namespace itself."""
        if (self.group, self.resource) not in _WITHOUT_NAMESPACE:
            return {**self.attributes, "namespace": namespace}
        return {**self.attributes, "name": namespace} if self.resource == "namespaces" else self.attributes


RULES: Final = (
    # What `components/` creates, reads and deletes. Namespaces: those of the hosted control planes.
    PolicyRule("", ("namespaces", "configmaps", "secrets"), _MANAGE),
    PolicyRule("apps", ("deployments",), _MANAGE),
    PolicyRule("policy", ("poddisruptionbudgets",), _MANAGE),
    PolicyRule(_NETWORKING, ("networkpolicies",), _MANAGE),
    PolicyRule("secrets-store.csi.x-k8s.io", ("secretproviderclasses",), _MANAGE),
    PolicyRule("infrastructure.cluster.x-k8s.io", ("azureclusteridentities",), _MANAGE),
    PolicyRule("hypershift.openshift.io", ("hostedclusters",), _MANAGE),
    # How it went: why a pod is not ready, what is mounted, which kinds there are.
    PolicyRule("", ("pods", "events"), _LOOK),
    PolicyRule("secrets-store.csi.x-k8s.io", ("secretproviderclasspodstatuses",), _LOOK),
    # The kubernetes provider waits for a Deployment by watching these as well, and for as long as it may not
    # (pulumi/pulumi-kubernetes `provider/pkg/await/deployment.go`).
    PolicyRule("apps", ("replicasets",), _LOOK),
    PolicyRule("", ("persistentvolumeclaims",), _LOOK),
    # Whether HyperShift has a control plane in a namespace, which then is never deleted.
    PolicyRule("hypershift.openshift.io", ("hostedcontrolplanes",), _LOOK),
    PolicyRule("apiextensions.k8s.io", ("customresourcedefinitions",), _LOOK),
)


# (group, resource) of what belongs to no namespace.
_WITHOUT_NAMESPACE: Final = frozenset({("", "namespaces"), ("apiextensions.k8s.io", "customresourcedefinitions")})


def permissions(*, network_policies: bool = True) -> tuple[Permission, ...]:
    """All of them, or those of a stack without network policies (`blockInstanceMetadata`)."""
    rules = [rule for rule in RULES if network_policies or rule.group != _NETWORKING]
    return tuple(permission for rule in rules for permission in rule.each())


def manifests(*, group: str | None = None, user: str | None = None) -> list[dict[str, Any]]:
    """ClusterRole and binding for an Entra group, or for a user or service principal, by object id."""
    rules = [_rule(rule.group, rule.resources, rule.verbs) for rule in RULES]
    return _role("ClusterRole", {"name": ROLE_NAME}, rules, _subjects(group, user))


def namespaced_manifests(
    namespaces: Sequence[str], *, group: str | None = None, user: str | None = None
) -> list[dict[str, Any]]:
    """The same rights in these namespaces alone: a Role and its binding in each, which is made if it is missing.

    What belongs to no namespace stays in a ClusterRole: kinds may be looked at, and of the namespaces these alone
    changed. RBAC cannot name what does not exist yet, so a namespace of any name may be created.
    """
    subjects = _subjects(group, user)
    found: list[dict[str, Any]] = []
    for namespace in namespaces:
        rules = [
            _rule(rule.group, inside, rule.verbs)
            for rule in RULES
            if (inside := [each for each in rule.resources if (rule.group, each) not in _WITHOUT_NAMESPACE])
        ]
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        found += _role("Role", {"name": ROLE_NAME, "namespace": namespace}, rules, subjects)
    whole = [
        _rule("", ["namespaces"], ["create"]),
        {
            **_rule("", ["namespaces"], [each for each in _MANAGE if each != "create"]),
            "resourceNames": list(namespaces),
        },
        _rule("apiextensions.k8s.io", ["customresourcedefinitions"], _LOOK),
    ]
    return [*found, *_role("ClusterRole", {"name": f"{ROLE_NAME}:{namespaces[0]}"}, whole, subjects)]


def _subjects(group: str | None, user: str | None) -> list[dict[str, str]]:
    return [
        {"apiGroup": _RBAC, "kind": kind, "name": name}
        for kind, name in (("Group", group), ("User", user))
        if name is not None
    ]


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _role(
    kind: str, metadata: dict[str, str], rules: list[dict[str, Any]], subjects: list[dict[str, str]]
) -> list[dict[str, Any]]:
    """A role of this kind and its binding of the same name."""
    version, name = f"{_RBAC}/v1", metadata["name"]
    return [
        {"apiVersion": version, "kind": kind, "metadata": dict(metadata), "rules": rules},
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
            "subjects": [dict(each) for each in subjects],
        },
    ]
