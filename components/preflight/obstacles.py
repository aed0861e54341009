"""What would stop a run half-way: unregistered resource providers, locks, and the tenant's app management policy."""

from __future__ import annotations

import os

import pulumi

from components.azure.providers import Providers, ask_own_plugin
from components.preflight.problems import problem
from identity import resource_types
from identity.azure.deployer_rights import written_scopes
from identity.credentials import renewal_request
from identity.credentials.schedule import least_renew_before_days
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


async def find_obstacles(settings: Settings, providers: Providers, *, makes_applications: bool) -> list[Problem]:
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
        "makesApplications": makes_applications,
    }
    found = await ask_own_plugin(resource_types.FIND_OBSTACLES, question, pulumi.InvokeOptions(provider=providers.own))
    missing, read_only = found["unregistered"], [lock for lock, level in found["locks"].items() if level == "ReadOnly"]
    if undeletable := ", ".join(sorted(found["locks"].keys() - {*read_only})):
        pulumi.log.warn(f"locks forbid to delete or replace anything there: {undeletable}")
    register = [f"`az provider register --subscription {subscription} --wait --namespace {name}`" for name in missing]
    unregistered = problem(
        "resource-provider-unregistered",
        ("subscriptionId",),
        subscription=subscription,
        missing=" and ".join(missing),
        register=" and ".join(register),
    )
    locked = problem(
        "scope-locked",
        ("subscriptionId",),
        subscription=subscription,
        locks=", ".join(read_only),
        ids=" ".join(read_only),
    )
    place: Place = ("credentials", "lifetimeDays")
    lifetime, before = settings.credentials.lifetime_days, settings.credentials.renew_before_days
    days = int(found.get("certificateDays", lifetime))
    kept = before if before < days else least_renew_before_days(days)
    short_lived = Problem(
        place=place,
        rule="certificate-lifetime",
        found=f"{lifetime}, but the tenant's app management policy allows a new application's certificate fewer days",
        accepted=f"at most {days}",
        fix=f"{to_set(place, str(days))} and {to_set(('credentials', 'renewBeforeDays'), str(kept))}, or let the "
        "policy's owner exempt the deployer",
    )
    refusals = ((missing, unregistered), (read_only, locked), (days < lifetime, short_lived))
    return [problem for is_met, problem in refusals if is_met]
