"""The control planes that HyperShift runs on a management cluster, and the refusals that protect them.

HyperShift keeps the HostedControlPlane of a HostedCluster in the namespace `<namespace>-<name>`
(openshift/hypershift 3ee9615, `hypershift-operator/controllers/manifests/manifests.go:24`), which is also the namespace
of a stack with `clusterSide: stack`. Its deletion would delete the control plane with its etcd.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from identity.aks.api_server import ApiServer
from identity.hypershift import API_VERSION
from identity.naming import control_plane_namespace

_PATH: Final = f"/apis/{API_VERSION}/namespaces/{{}}/hostedcontrolplanes"


def control_planes(server: ApiServer, namespaces: Iterable[str]) -> dict[str, str]:
    """The names of the HostedControlPlanes, by those of the namespaces that hold one.

    Empty if HyperShift is not installed. Raises AccessError if the API server does not answer or refuses.
    """
    names: dict[str, str] = {}
    for namespace in dict.fromkeys(namespaces):
        items = (server.read(_PATH.format(namespace)) or {}).get("items") or []
        if items:
            names[namespace] = str(items[0]["metadata"]["name"])
    return names


def described(names: Mapping[str, str]) -> str:
    """The control planes in words, for a message: `clusters-hc1 holds HyperShift's control plane "hc1"`."""
    return ", ".join(f'{namespace} holds HyperShift\'s control plane "{name}"' for namespace, name in names.items())


def refusal(names: Mapping[str, str], stack: str) -> str:
    """Why nothing is deleted, and what to do instead."""
    return (
        f"{described(names)}, and the stack would delete it with the namespace. Nothing of it was deleted. To keep the "
        f"cluster, leave the namespace to HyperShift: `.venv/bin/idstack pulumi --stack {stack} -- config set "
        f"clusterSide hypershift`, then "
        f"`.venv/bin/idstack up --stack {stack}`. To delete the cluster, let HyperShift do it first: "
        f"{_deletions(names)}, and wait until it is gone, as its deletion needs the stack's identities; then run the "
        "command again"
    )


def identities_in_use(names: Mapping[str, str]) -> str:
    """Why no identity is deleted."""
    return (
        f"{described(names)}, which signs in with the stack's identities. Nothing was deleted. Delete the hosted "
        f"cluster first: {_deletions(names)}, and wait until it is gone, as its deletion needs the identities, too"
    )


def _deletions(names: Mapping[str, str]) -> str:
    """The commands that let HyperShift delete the clusters, without the stack's roles, which its own CLI would delete.

    A HostedCluster has the name of its control plane, and its namespace is a part of the control plane's.
    """
    return ", ".join(
        f"`kubectl --namespace {namespace.removesuffix(control_plane_namespace('', name))} delete hostedcluster {name}`"
        for namespace, name in names.items()
    )


def unreadable(namespaces: Iterable[str], reason: object) -> str:
    """Why the namespaces count as if they held a control plane: they cannot be read."""
    return (
        f"whether {', '.join(namespaces)} holds a control plane of HyperShift cannot be seen ({reason}), so nothing is "
        "deleted. The deployer needs `list` on hostedcontrolplanes.hypershift.openshift.io (`.venv/bin/idstack rbac` "
        "prints its role)"
    )
