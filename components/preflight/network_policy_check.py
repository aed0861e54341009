"""Whether the cluster, as ARM describes it, enforces the NetworkPolicy of `blockInstanceMetadata`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from identity.credentials import renewal_request
from identity.settings import Problem, Settings
from identity.settings.schema.problems import path_of, to_remove

# Microsoft.ContainerService/managedClusters, `networkProfile.networkPolicy` and `networkDataplane`.
_ENGINES: Final = ("azure", "calico", "cilium")
# The value of `networkPlugin` with which the cluster's owner installs a plugin that ARM does not know.
_OWN_PLUGIN: Final = "none"


def unenforced_block(settings: Settings, answer: Mapping[str, Any]) -> Iterator[Problem]:
    """The setting, if nothing would enforce it; `answer` is the cluster as ARM describes it, empty if there is none.

    It does not stop a renewal: an expired certificate would be worse.
    """
    cluster = settings.management_cluster
    if not settings.block_instance_metadata or cluster is None or renewal_request.is_renewal_run(os.environ):
        return
    if not answer and cluster.create is None:
        return  # reported as missing
    place = ("blockInstanceMetadata",)
    if not answer and cluster.create is not None:
        if cluster.create.network.policy in _ENGINES:
            return
        engine = ("managementCluster", "create", "network", "policy")
        yield Problem(
            place=place,
            rule="metadata-block-unenforced",
            found=f"true, but {path_of(engine)} is {cluster.create.network.policy}",
            accepted="true with an engine that enforces a NetworkPolicy",
            fix=f"{to_remove(engine)}, or {to_remove(place)}",
        )
        return
    profile = answer.get("networkProfile") or {}
    if profile.get("networkPlugin") == _OWN_PLUGIN or profile.get("networkPolicy") in _ENGINES:
        return
    if profile.get("networkDataplane") == "cilium":
        return
    update = f"az aks update --resource-group {cluster.resource_group} --name {cluster.name} --network-policy azure"
    yield Problem(
        place=place,
        rule="metadata-block-unenforced",
        found=f'true, but nothing on "{cluster.name}" enforces a NetworkPolicy',
        accepted=f"true where AKS runs a network-policy engine: networkPolicy {', '.join(_ENGINES)}",
        fix=f"`{update}` (calico with kubenet), or {to_remove(place)}",
    )
