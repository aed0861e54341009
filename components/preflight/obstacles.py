"""What would stop a run half-way: unregistered resource providers, locks, and the tenant's app management policy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pulumi

from components.azure.providers import Providers
from identity import resource_types
from identity.azure.deployer_rights import written_scopes
from identity.credentials import renewal_request
from identity.credentials.schedule import least_renew_before_days
from identity.outputs import StackOutputs
from identity.plugin_schema import ObstacleQuestion
from identity.settings import Problem, Settings
from identity.settings.schema.problems import Place, to_set


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


async def find_obstacles(settings: Settings, providers: Providers, last: StackOutputs[Any]) -> list[Problem]:
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
        "makesApplications": makes_applications(settings, last),
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
    short_lived = _short_lived(settings, found.get("certificateDays"))
    return [*([unregistered] if missing else []), *([locked] if read_only else []), *short_lived]


def makes_applications(settings: Settings, last: StackOutputs[Any]) -> bool:
    """Whether one is not among the outputs of the `last` run: a policy may exempt those that exist."""
    known = {(name, field) for name, row in last.get("hostedClusters", {}).items() for field in row["controlPlane"]}
    return any(
        cluster.identity(row).source == "entra-application" and (cluster.name, row.field) not in known
        for cluster in settings.hosted_clusters
        for row in cluster.enabled_rows
    )


def _short_lived(settings: Settings, allowed: float | None) -> Iterator[Problem]:
    lifetime, before = settings.credentials.lifetime_days, settings.credentials.renew_before_days
    if allowed is None or lifetime <= allowed:
        return
    place: Place = ("credentials", "lifetimeDays")
    least = least_renew_before_days(days := int(allowed))
    renewal = "" if least <= before < days else f" and {to_set(('credentials', 'renewBeforeDays'), str(least))}"
    exempt = "let the policy's owner exempt the deployer"
    yield Problem(
        place=place,
        rule="certificate-lifetime",
        found=f"{lifetime}, but the tenant's app management policy allows a new application's certificate fewer days",
        accepted=f"at most {days}",
        fix=f"{to_set(place, str(days))}{renewal}, or {exempt}" if days >= 2 else exempt,
    )
