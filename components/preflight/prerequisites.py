"""Looks up what the stack needs but does not create, before the first resource. One report has every problem.

The results are plain values, so every preview knows them. Unregistered resource providers and locks are in the report
as well: they would stop the run half-way, whatever the configuration says.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.azure.context import CredentialStore, vault_of
from components.azure.providers import Providers, provider_error
from components.preflight.azure_objects import Answers, AzureLookup, AzureObject, Existence, required_objects
from components.preflight.cluster_answer import DescribedCluster, described_cluster
from components.preflight.hosted_cluster_manifest import read_manifests
from components.preflight.imported_documents import (
    ImportedCredentials,
    imported_credentials,
    imported_objects,
    read_existing_keys,
)
from components.preflight.made_resources import ForeignTags, made_objects
from identity import resource_types
from identity.azure.deployer_rights import written_scopes
from identity.credentials import renewal_request
from identity.credentials.symptoms import fix_of_read
from identity.naming import parse_arm_id
from identity.outputs import StackOutputs
from identity.plugin_schema import ObstacleQuestion, SecretAddresses
from identity.settings import ConfigurationError, Problem, Settings


@dataclass(frozen=True, kw_only=True)
class Prerequisites:
    """The results of the look-ups.

    - `manifests`: the user's parts of the HostedClusters by hosted cluster.
    - `signing_key_files`: by hosted cluster the id of the signing key in the file that the configuration names.
    - `foreign_tags`: tags that others wrote on what the stack has made.
    """

    management_cluster: DescribedCluster
    imported: ImportedCredentials
    manifests: Mapping[str, Mapping[str, Any]]
    signing_key_files: Mapping[str, str]
    foreign_tags: ForeignTags


async def look_up(
    settings: Settings, providers: Providers, shared: CredentialStore | None, last: StackOutputs[Any]
) -> Prerequisites:
    """Look everything up in parallel. Raises ConfigurationError with everything that is missing or unusable.

    `shared` is the shared stack's vault, None if the vault is this stack's own; `last` are the outputs of the last
    complete run.
    """
    vault = vault_of(settings, shared)
    renews_only = renewal_request.is_renewal_run(os.environ)
    required = [*required_objects(settings, shared, vault), *imported_objects(settings, vault)]
    made = list(made_objects(settings, renews_only=renews_only))
    (answers, unanswered), keys, obstacles, _ = await asyncio.gather(
        _ask([*required, *made], providers),
        asyncio.to_thread(read_existing_keys, settings, vault),
        find_obstacles(settings, providers),
        prefetch_secrets(settings, providers, vault),
    )
    imported, unusable = imported_credentials(settings, answers, vault)
    manifests = read_manifests(settings, parse_arm_id(vault).name if vault else "")
    cluster = described_cluster(settings, answers, last)
    problems = [
        *unanswered,
        *(problem for each in required for problem in each.refusals(answers)),
        *unusable,
        *manifests.problems,
        *cluster.problems,
        *(problem for each in made for problem in each.refusals(answers)),
        *keys.problems,
        *obstacles,
    ]
    if problems:
        raise ConfigurationError(problems)
    return Prerequisites(
        management_cluster=cluster,
        imported=imported,
        manifests=manifests.documents,
        signing_key_files=keys.of_files,
        foreign_tags=ForeignTags() if renews_only else ForeignTags.among(made, answers, settings, last),
    )


async def _ask(objects: Sequence[AzureObject], providers: Providers) -> tuple[Answers, list[Problem]]:
    """The answers, each look-up once, and a problem for each object that should have had one."""
    lookups = list(dict.fromkeys(each.lookup for each in objects))
    outcomes = await asyncio.gather(*(_read(lookup, providers) for lookup in lookups), return_exceptions=True)
    results = dict(zip(lookups, outcomes, strict=True))
    problems = [
        _not_found(each, results[each.lookup])
        for each in objects
        if isinstance(results[each.lookup], Exception) and _must_answer(each, results[each.lookup])
    ]
    return {lookup: answer for lookup, answer in results.items() if isinstance(answer, Mapping)}, problems


async def _read(lookup: AzureLookup, providers: Providers) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await pulumi.runtime.invoke_async(
        f"azure-native:{lookup.function}", dict(lookup.arguments), pulumi.InvokeOptions(provider=providers.azure)
    )
    return answer


# How azure-native says that ARM has no such object; a name in the message of another refusal does not count.
_MISSING: Final = re.compile(r'\bStatus=404\b|\bCode="\w*NotFound"')


def _must_answer(what: AzureObject, error: object) -> bool:
    """Whether the error counts; without its resource provider (`find_obstacles`) nothing of a type was ever made."""
    if what.existence is not Existence.MADE_HERE:
        return what.existence is Existence.REQUIRED
    reason = provider_error(error)
    return _MISSING.search(reason) is None and "MissingSubscriptionRegistration" not in reason


def _not_found(what: AzureObject, error: object) -> Problem:
    reason = provider_error(error)
    missing = _MISSING.search(reason) is not None
    return Problem(
        place=what.place,
        rule="resource-missing" if missing else "resource-unreadable",
        found=f"{what.lookup.description}, which " + ("does not exist" if missing else f"cannot be read: {reason}"),
        accepted=what.existence.value,
        fix="create it, or correct the name" if missing else fix_of_read(reason),
    )


async def prefetch_secrets(settings: Settings, providers: Providers, vault: str) -> None:
    """Prefetch every secret that a schedule decides by; `vault` is the vault's ARM id, empty without one."""
    if not vault:
        return
    arguments: SecretAddresses = {
        "cloud": settings.cloud.name,
        "tenantId": settings.tenant_id,
        "vaultId": vault,
        "secretNames": _secret_names(settings),
    }
    options = pulumi.InvokeOptions(provider=providers.own)
    await pulumi.runtime.invoke_async(resource_types.PREFETCH_SECRETS, {**arguments}, options)


def _secret_names(settings: Settings) -> list[str]:
    return [
        identity.secret_name
        for cluster in settings.hosted_clusters
        for row in cluster.enabled_rows
        if (identity := cluster.identity(row)).source == "entra-application"
    ]


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
