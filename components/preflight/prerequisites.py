"""Looks up what the stack needs but does not create, before the first resource. One report has every problem.

The results are plain values, so every preview knows them. What would stop the run half-way (`obstacles.py`) is in the
report as well.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.azure.context import CredentialStore
from components.azure.providers import Providers, ask_own_plugin, provider_error
from components.preflight.azure_objects import (
    Answers,
    Existence,
    NamedObject,
    made_objects,
    required_objects,
)
from components.preflight.cluster_answer import DescribedCluster, described_cluster
from components.preflight.foreign_tags import ForeignTags
from components.preflight.hosted_cluster_manifest import read_manifests
from components.preflight.imported_documents import (
    ImportedCredentials,
    imported_credentials,
    imported_identities,
    read_existing_keys,
)
from components.preflight.obstacles import find_obstacles
from identity import resource_types
from identity.credentials import renewal_request
from identity.naming import parse_arm_id
from identity.outputs import StackOutputs
from identity.plugin_schema import SecretAddresses
from identity.settings import ConfigurationError, Problem, Settings
from identity.symptoms import fix_of_read


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
    vault = settings.vault_id if shared is None else shared.vault_id
    renews_only = renewal_request.is_renewal_run(os.environ)
    required, made = list(required_objects(settings, shared, vault)), made_objects(settings, renews_only=renews_only)
    imported = list(imported_identities(settings, vault))
    (answers, unanswered), keys, obstacles, _ = await asyncio.gather(
        _ask([*required, *(each for one in imported for each in (one.managed, one.secret)), *made], providers),
        asyncio.to_thread(read_existing_keys, settings, vault),
        # A policy may exempt applications that exist, or be younger than they are.
        find_obstacles(settings, providers, makes_applications=bool(_secret_names(settings) and not last)),
        prefetch_secrets(settings, providers, vault),
    )
    credentials, unusable = imported_credentials(settings, imported, answers, vault)
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
        imported=credentials,
        manifests=manifests.documents,
        signing_key_files=keys.of_files,
        foreign_tags=ForeignTags() if renews_only else ForeignTags.among(made, answers, settings, last),
    )


async def _ask(objects: Sequence[NamedObject], providers: Providers) -> tuple[Answers, list[Problem]]:
    """The answers, each look-up once, and a problem for each object that should have had one."""
    lookups = list(dict.fromkeys(each.lookup for each in objects))
    azure, invoke = pulumi.InvokeOptions(provider=providers.azure), pulumi.runtime.invoke_async
    asked = (invoke(f"azure-native:{lookup.function}", dict(lookup.arguments), azure) for lookup in lookups)
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    results = dict(zip(lookups, outcomes, strict=True))
    problems = [
        _not_found(each, results[each.lookup])
        for each in objects
        if isinstance(results[each.lookup], Exception) and _must_answer(each, results[each.lookup])
    ]
    return {lookup: answer for lookup, answer in results.items() if isinstance(answer, Mapping)}, problems


# How azure-native says that ARM has no such object; a name in the message of another refusal does not count.
_MISSING: Final = re.compile(r'\bStatus=404\b|\bCode="\w*NotFound"')


def _must_answer(what: NamedObject, error: object) -> bool:
    """Whether the error counts; without its resource provider (`obstacles.py`) nothing of a type was ever made."""
    if what.existence is not Existence.MADE_HERE:
        return what.existence is Existence.REQUIRED
    reason = provider_error(error)
    return _MISSING.search(reason) is None and "MissingSubscriptionRegistration" not in reason


def _not_found(what: NamedObject, error: object) -> Problem:
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
    await ask_own_plugin(resource_types.PREFETCH_SECRETS, arguments, pulumi.InvokeOptions(provider=providers.own))


def _secret_names(settings: Settings) -> list[str]:
    return [
        identity.secret_name
        for cluster in settings.hosted_clusters
        for row in cluster.enabled_rows
        if (identity := cluster.identity(row)).source == "entra-application"
    ]
