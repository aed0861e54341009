"""Whether role assignments allow a request to Kubernetes: SubjectAccessReview (authorization.k8s.io/v1).

"Azure RBAC for Kubernetes authorization", by the rules of github.com/kubeguard/guard, `authz/providers/azure`: each
request is a data action, `Microsoft.ContainerService/managedClusters/[<API group>/]<resource>/<read, write, ...>`, on
the cluster or on a namespace of it. kube-apiserver evaluates its own roles first; either kind can allow a request.

Every managed cluster here is this machine's one Kubernetes API, so what one of them allows is allowed; without Azure
RBAC on any of them there is no opinion. A request with a wildcard, for which AKS tries every operation, is
denied. Left out: impersonation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from localcloud.azure.arm.containerservice import ManagedClusters
from localcloud.azure.local_azure import LocalAzure
from localcloud.azure.resource_store import Resources
from localcloud.core.arm_ids import is_uuid

_ALLOWED: Final = {"allowed": True, "reason": "Access allowed by Azure RBAC"}
_DENIED: Final = {
    "allowed": False,
    "denied": True,
    "reason": "User does not have access to the resource in Azure. Update role assignment to allow access.",
}
_NOT_ASKED: Final = {"allowed": False}  # a cluster without Azure RBAC does not ask
_NO_OPINION: Final = {"allowed": False, "reason": "Azure does not have opinion for this user."}
_ANY: Final = "*"
_ACTIONS: Final = {
    **dict.fromkeys(("get", "list", "watch"), "read"),
    **dict.fromkeys(("create", "patch", "update"), "write"),
    **dict.fromkeys(("delete", "deletecollection"), "delete"),
    **{verb: f"{verb}/action" for verb in ("bind", "escalate", "use", "impersonate")},
}


class AccessReviews:
    """Answers SubjectAccessReviews."""

    def __init__(self, cloud: LocalAzure) -> None:
        self._cloud = cloud
        self._resources = Resources(cloud.store)

    def status(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The `status` of a SubjectAccessReview with this `spec`."""
        clusters = list(self._clusters())
        if not clusters:
            return _NOT_ASKED
        who = self._object_id(str(spec.get("user", "")))
        if who is None:
            return _NO_OPINION
        principals = [who, *filter(is_uuid, spec.get("groups") or ())]
        action, namespace = _data_action(spec)
        scopes = [f"{cluster}/namespaces/{namespace}" if namespace else cluster for cluster in clusters]
        is_allowed = _ANY not in action and any(
            self._cloud.authorization.allowed(principal, action, scope, data=True)
            for principal in principals
            for scope in scopes
        )
        return _ALLOWED if is_allowed else _DENIED

    def _clusters(self) -> Iterator[str]:
        """Ids of the clusters on which role assignments decide."""
        for cluster in self._resources.below(f"/subscriptions/{self._cloud.subscription_id}", ManagedClusters.name):
            if (cluster["properties"].get("aadProfile") or {}).get("enableAzureRBAC"):
                yield cluster["id"]

    def _object_id(self, user: str) -> str | None:
        """The object id of a Kubernetes user, None for a user that is not in Entra ID."""
        if is_uuid(user):
            return user
        person = self._cloud.people.user_by_name(user)
        return person.object_id if person else None


def _data_action(spec: Mapping[str, Any]) -> tuple[str, str]:
    """The data action of a request, and the namespace it is for ("": none)."""
    asked: Mapping[str, Any] = spec.get("resourceAttributes") or {}
    if not asked:
        path = spec.get("nonResourceAttributes") or {}
        parts = [path.get("path", ""), _ACTIONS.get(path.get("verb", ""), path.get("verb", ""))]
        return _joined(*parts), ""
    resource, verb = asked.get("resource", ""), asked.get("verb", "")
    if (resource, asked.get("subresource")) == ("pods", "exec"):
        return _joined("pods", "exec", "action"), asked.get("namespace", "")
    return _joined(asked.get("group", ""), resource, _ACTIONS.get(verb, verb)), asked.get("namespace", "")


def _joined(*parts: str) -> str:
    return "/".join([ManagedClusters.name, *(part.strip("/") for part in parts if part.strip("/"))])
