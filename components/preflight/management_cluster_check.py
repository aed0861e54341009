"""The management cluster as ARM describes it: whether anything can run there, and its secrets-store add-on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pulumi

from components.azure.key_vault_user import ExistingIdentity
from components.azure.providers import management_cluster_id
from identity.aks.azure_rbac import CREATING, FAILED, AksCluster
from identity.credentials import renewal_request
from identity.outputs import StackOutputs
from identity.secrets_store import ACCEPTED, ADD_ON, rotation_command, rotation_fault
from identity.settings import ManagementClusterSettings, Problem, Settings


def running_cluster(
    settings: Settings, cluster: ManagementClusterSettings, answer: Mapping[str, Any], last: StackOutputs[Any]
) -> AksCluster | None:
    """The management cluster; None if it does not exist, or if nothing can run on it yet.

    `answer` is the cluster as ARM describes it, empty if there is none; `last` has the outputs of the last complete
    run.
    """
    if not answer:
        return None
    aks = AksCluster.of(management_cluster_id(settings, cluster), answer)
    if cluster.create is None:
        return aks
    if aks.state == CREATING or (aks.state in FAILED and "managementClusterId" not in last):
        pulumi.log.info(f'"{cluster.name}" is {aks.state}, so nothing runs there yet: the run goes on without it')
        return None
    return aks


def add_on_rotation(cluster: ManagementClusterSettings, answer: Mapping[str, Any]) -> Iterator[Problem]:
    """A fault in the add-on's rotation: it mounts the secrets if the cluster runs it, for any key-vault-user."""
    fault = rotation_fault(_profile(answer))
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


def add_on_identity(answer: Mapping[str, Any]) -> ExistingIdentity | None:
    """The identity of the secrets-store add-on; None if the cluster does not run it."""
    add_on = _profile(answer)
    identity = add_on.get("identity") or {}
    if add_on.get("enabled") and identity.get("clientId") and identity.get("objectId"):
        return ExistingIdentity(client_id=identity["clientId"], object_id=identity["objectId"])
    return None


def without_add_on(settings: Settings, answer: Mapping[str, Any]) -> Iterator[Problem]:
    """A key-vault-user that is the add-on's identity, where the cluster does not run the add-on."""
    cluster = settings.management_cluster
    is_wanted = settings.has_key_vault_user and settings.key_vault_user.source == "aks-addon"
    if not is_wanted or cluster is None or cluster.create is not None or not answer:
        return
    if add_on_identity(answer) is None:
        yield Problem(
            place=("keyVaultUser", "source"),
            rule="add-on-disabled",
            found=f'aks-addon, but "{cluster.name}" does not run the add-on azure-keyvault-secrets-provider',
            accepted="aks-addon with the add-on switched on, existing, or created",
            fix="`az aks enable-addons --addons azure-keyvault-secrets-provider --enable-secret-rotation "
            f"--resource-group {cluster.resource_group} --name {cluster.name}`",
        )


def _profile(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The secrets-store add-on in AKS's answer."""
    return (answer.get("addonProfiles") or {}).get(ADD_ON) or {}
