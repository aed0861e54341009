"""What ARM says of the management cluster before the first resource, and what the stack refuses of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

from components.azure.vault import ExistingIdentity
from components.preflight.azure_objects import Answers, management_cluster
from components.preflight.problems import problem
from identity.aks.azure_rbac import CREATING, FAILED, AksCluster
from identity.credentials import renewal_request
from identity.outputs import StackOutputs
from identity.secrets_store import ACCEPTED, ADD_ON, rotation_command, rotation_fault
from identity.settings import ManagementClusterSettings, Problem, Settings
from identity.settings.schema.problems import path_of, to_remove


@dataclass(frozen=True, kw_only=True)
class DescribedCluster:
    """The management cluster as ARM describes it, and the problems.

    `running` is None if there is none, or if nothing can run on it yet. `node_resource_group` is the resource group of
    its nodes; `add_on_identity` that of its secrets-store add-on, None if the cluster does not run it.
    """

    running: AksCluster | None = None
    node_resource_group: str | None = None
    add_on_identity: ExistingIdentity | None = None
    problems: list[Problem] = field(default_factory=list)


def described_cluster(settings: Settings, answers: Answers, last: StackOutputs[Any]) -> DescribedCluster:
    """Read and check the cluster; `last` has the outputs of the last complete run."""
    cluster = settings.management_cluster
    if cluster is None:
        return DescribedCluster()
    answer = answers.get(management_cluster(cluster), {})
    add_on = (answer.get("addonProfiles") or {}).get(ADD_ON) or {}
    identity = _add_on_identity(add_on)
    problems = [*unenforced_block(settings, cluster, answer), *_add_on_rotation(cluster, add_on)]
    if answer and identity is None and cluster.create is None:
        problems += _without_add_on(settings, cluster)
    return DescribedCluster(
        running=_running(settings, cluster, answer, last),
        node_resource_group=answer.get("nodeResourceGroup"),
        add_on_identity=identity,
        problems=problems,
    )


def _running(
    settings: Settings, cluster: ManagementClusterSettings, answer: Mapping[str, Any], last: StackOutputs[Any]
) -> AksCluster | None:
    if not answer:
        return None
    aks = AksCluster.of(settings.management_cluster_id, answer)
    if cluster.create is None:
        return aks
    if aks.state == CREATING or (aks.state in FAILED and "managementClusterId" not in last):
        pulumi.log.info(f'"{cluster.name}" is {aks.state}, so nothing runs there yet: the run goes on without it')
        return None
    return aks


# Microsoft.ContainerService/managedClusters, `networkProfile.networkPolicy` and `networkDataplane`.
_ENGINES: Final = ("azure", "calico", "cilium")
# The value of `networkPlugin` with which the cluster's owner installs a plugin that ARM does not know.
_OWN_PLUGIN: Final = "none"


def unenforced_block(
    settings: Settings, cluster: ManagementClusterSettings, answer: Mapping[str, Any]
) -> Iterator[Problem]:
    """The setting, if nothing would enforce it; `answer` is the cluster as ARM describes it, empty if there is none.

    It does not stop a renewal: an expired certificate would be worse.
    """
    if not settings.block_instance_metadata or renewal_request.is_renewal_run(os.environ):
        return
    place = ("blockInstanceMetadata",)
    if not answer:
        if cluster.create is None:
            return  # reported as missing
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


def _add_on_rotation(cluster: ManagementClusterSettings, add_on: Mapping[str, Any]) -> Iterator[Problem]:
    """A fault in the add-on's rotation: it mounts the secrets if the cluster runs it, for any key-vault-user."""
    fault = rotation_fault(add_on)
    if fault is None:
        return
    command = rotation_command(cluster.resource_group, cluster.name)
    if cluster.create is not None:
        pulumi.log.warn(
            f'the secrets-store add-on of "{cluster.name}" was changed outside of the stack: {fault}. An `up` with '
            f"--refresh puts it right, and so does `{command}`"
        )
    elif renewal_request.cannot_wait(os.environ):
        pulumi.log.warn(
            f'the secrets-store add-on of "{cluster.name}": {fault}. Restart the pods that use what is replaced, '
            f"and put it right: `{command}`"
        )
    else:
        yield Problem(
            place=("managementCluster", "name"),
            rule="add-on-rotation",
            found=f'"{cluster.name}" with the secrets-store add-on, but {fault}',
            accepted=ACCEPTED,
            fix=f"`{command}`",
        )


def _add_on_identity(add_on: Mapping[str, Any]) -> ExistingIdentity | None:
    identity = add_on.get("identity") or {}
    if add_on.get("enabled") and identity.get("clientId") and identity.get("objectId"):
        return ExistingIdentity(client_id=identity["clientId"], object_id=identity["objectId"])
    return None


def _without_add_on(settings: Settings, cluster: ManagementClusterSettings) -> Iterator[Problem]:
    """A key-vault-user that is the add-on's identity, where the cluster does not run the add-on."""
    if settings.has_key_vault_user and settings.key_vault_user.source == "aks-addon":
        yield problem("add-on-disabled", ("keyVaultUser", "source"), cluster=cluster.name, group=cluster.resource_group)
