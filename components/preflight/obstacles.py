"""What would stop a run half-way whatever the configuration says: unregistered resource providers, and locks."""

from __future__ import annotations

import os

import pulumi

from components.azure.providers import Providers
from identity import resource_types
from identity.azure.deployer_rights import written_scopes
from identity.credentials import renewal_request
from identity.plugin_schema import ObstacleQuestion
from identity.settings import Problem, Settings


def used_providers(settings: Settings) -> list[str]:
    """The resource providers of what the stack makes itself."""
    clusters, management = settings.hosted_clusters, settings.management_cluster
    uses = {
        "Microsoft.ContainerService": management is not None and management.create is not None,
        "Microsoft.KeyVault": settings.vault is not None,
        "Microsoft.ManagedIdentity": bool(clusters) or settings.key_vault_user.source == "created",
        "Microsoft.Network": any(cluster.infrastructure == "create" for cluster in clusters),
        "Microsoft.Storage": any(cluster.issuer == "create" for cluster in clusters),
    }
    return [name for name, is_used in uses.items() if is_used]


async def find_obstacles(settings: Settings, providers: Providers) -> list[Problem]:
    """What refuses a run, and a warning of locks that refuse deletions alone; nothing in a run that only renews."""
    if renewal_request.is_renewal_run(os.environ):
        return []
    subscription = settings.subscription_id
    question: ObstacleQuestion = {
        "cloud": settings.cloud.name,
        "tenantId": settings.tenant_id,
        "subscriptionId": subscription,
        "namespaces": used_providers(settings),
        "scopes": written_scopes(settings),
    }
    options = pulumi.InvokeOptions(provider=providers.own)
    found = await pulumi.runtime.invoke_async(resource_types.FIND_OBSTACLES, {**question}, options)
    missing, read_only = found["unregistered"], [lock for lock, level in found["locks"].items() if level == "ReadOnly"]
    if kept := ", ".join(sorted(found["locks"].keys() - {*read_only})):
        pulumi.log.warn(f"locks forbid to delete or replace anything there: {kept}")
    register = [f"`az provider register --subscription {subscription} --wait --namespace {name}`" for name in missing]
    unregistered = Problem(
        place=("subscriptionId",),
        rule="resource-provider-unregistered",
        found=f'"{subscription}", not registered to use {" and ".join(missing)}',
        accepted="a subscription with the resource providers of what the stack makes",
        fix=f"let a Contributor of the subscription run {' and '.join(register)}",
    )
    locked = Problem(
        place=("subscriptionId",),
        rule="scope-locked",
        found=f'"{subscription}", whose locks forbid changes: {", ".join(read_only)}',
        accepted="no ReadOnly lock on what the stack writes to",
        fix=f"let an Owner or User Access Administrator run `az lock delete --ids {' '.join(read_only)}`",
    )
    return [*([unregistered] if missing else []), *([locked] if read_only else [])]
