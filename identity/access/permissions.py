"""What the deployer does on the management cluster: the verbs the stack needs, and no others.

One table for the ClusterRole that grants them (`idstack rbac`), the check before the first resource, and
the local cluster's own roles.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def permissions(*, network_policies: bool = True) -> tuple[Permission, ...]:
    """All of them, or those of a stack without network policies (`blockInstanceMetadata`)."""
    rules = [rule for rule in RULES if network_policies or rule.group != _NETWORKING]
    return tuple(permission for rule in rules for permission in rule.each())


def manifests(*, group: str | None = None, user: str | None = None) -> list[dict[str, Any]]:
    """ClusterRole and binding for an Entra group, or for a user or service principal, by object id."""
    subjects = [
        {"apiGroup": _RBAC, "kind": kind, "name": name}
        for kind, name in (("Group", group), ("User", user))
        if name is not None
    ]
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": ROLE_NAME},
            "rules": [
                {"apiGroups": [rule.group], "resources": list(rule.resources), "verbs": list(rule.verbs)}
                for rule in RULES
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ROLE_NAME},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ROLE_NAME},
            "subjects": subjects,
        },
    ]
