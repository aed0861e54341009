"""Looks up what the stack needs but does not create, before the first resource. One report has every problem.

The results are plain values, so every preview knows them.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi

from components.azure.context import CredentialStore, vault_of
from components.azure.control_plane_identity import ImportedCredential
from components.azure.providers import Providers, provider_error
from components.azure.vault import ExistingIdentity
from components.preflight.azure_objects import (
    AzureLookup,
    compare_infrastructure,
    earlier_documents,
    imported_identities,
    management_cluster,
    optional_lookups,
    required_lookups,
)
from components.preflight.cluster_checks import (
    add_on_identity,
    add_on_rotation,
    running_cluster,
    without_add_on,
)
from components.preflight.hosted_cluster_manifest import read_manifests
from components.preflight.imported_documents import imported_credential, read_existing_keys
from components.preflight.made_resources import ForeignTags, made_lookups, refused_changes, tagged_lookups
from components.preflight.obstacles import find_obstacles
from identity import resource_types
from identity.aks.azure_rbac import AksCluster
from identity.credentials import renewal_request
from identity.credentials.symptoms import fix_of_read
from identity.naming import parse_arm_id
from identity.outputs import StackOutputs
from identity.plugin_schema import SecretAddresses
from identity.settings import ConfigurationError, Problem, Settings
from identity.settings.schema.problems import Place, path_of, to_remove


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


# How azure-native says that ARM has no such object; a name in the message of another refusal does not count.
_MISSING: Final = re.compile(r'\bStatus=404\b|\bCode="\w*NotFound"')


@dataclass(frozen=True, kw_only=True)
class Prerequisites:
    """The results of the look-ups.

    - `management_cluster`: the cluster as ARM describes it, None if there is none, or none yet;
      `node_resource_group`: the resource group of its nodes; `add_on_identity`: the identity of its secrets-store
      add-on.
    - `imported`: the managed identities' credentials by hosted cluster and catalogue field.
    - `manifests`: the user's parts of the HostedClusters by hosted cluster.
    - `signing_key_files`: by hosted cluster the id of the signing key in the file that the configuration names.
    - `foreign_tags`: tags that others wrote on what the stack has made.
    """

    management_cluster: AksCluster | None
    node_resource_group: str | None
    add_on_identity: ExistingIdentity | None
    imported: Mapping[str, Mapping[str, ImportedCredential]]
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
    required, made = list(required_lookups(settings, shared, vault)), list(made_lookups(settings))
    made += [] if renews_only else tagged_lookups(settings)
    optional = [*optional_lookups(settings), *earlier_documents(settings, vault)]
    lookups = list(dict.fromkeys([*(lookup for _, lookup in [*required, *made]), *optional]))
    outcomes, keys, obstacles, _ = await asyncio.gather(
        asyncio.gather(*(_read(lookup, providers) for lookup in lookups), return_exceptions=True),
        asyncio.to_thread(read_existing_keys, settings, vault),
        find_obstacles(settings, providers),
        prefetch_secrets(settings, providers, vault),
    )
    results = dict(zip(lookups, outcomes, strict=True))
    problems = [
        _not_found(place, lookup, results[lookup], is_made=(place, lookup) in made)
        for place, lookup in [*required, *made]
        if isinstance(results[lookup], Exception) and not ((place, lookup) in made and _is_unmade(results[lookup]))
    ]
    answers = {lookup: answer for lookup, answer in results.items() if isinstance(answer, Mapping)}
    imported: dict[str, dict[str, ImportedCredential]] = {
        hosted_cluster.name: {} for hosted_cluster in settings.hosted_clusters
    }
    for index, hosted in enumerate(settings.hosted_clusters):
        place: Place = ("hostedClusters", index)
        if hosted.infrastructure == "existing":
            problems += compare_infrastructure(hosted, place, answers, settings)
        for name, identity in imported_identities(hosted):
            try:
                at = (*place, "identities", name)
                if (credential := imported_credential(settings, identity, at, answers, vault)) is not None:
                    imported[hosted.name][name] = credential
            except ConfigurationError as error:
                problems += error.problems
    manifests = read_manifests(settings, parse_arm_id(vault).name if vault else "")
    cluster = settings.management_cluster
    described = {} if cluster is None else answers.get(management_cluster(cluster), {})
    problems += [
        *manifests.problems,
        *unenforced_block(settings, described),
        *([] if cluster is None else add_on_rotation(cluster, described)),
        *without_add_on(settings, described),
        *([] if renews_only else refused_changes(settings, answers)),
        *keys.problems,
        *obstacles,
    ]
    aks = None if cluster is None else running_cluster(settings, cluster, described, last)
    if problems:
        raise ConfigurationError(problems)
    return Prerequisites(
        management_cluster=aks,
        node_resource_group=described.get("nodeResourceGroup"),
        add_on_identity=add_on_identity(described),
        imported=imported,
        manifests=manifests.documents,
        signing_key_files=keys.of_files,
        foreign_tags=ForeignTags() if renews_only else ForeignTags.among(answers, settings, last),
    )


async def _read(lookup: AzureLookup, providers: Providers) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await pulumi.runtime.invoke_async(
        f"azure-native:{lookup.function}", dict(lookup.arguments), pulumi.InvokeOptions(provider=providers.azure)
    )
    return answer


def _is_missing(error: object) -> bool:
    return _MISSING.search(provider_error(error)) is not None


def _is_unmade(error: object) -> bool:
    """Without its resource provider (`obstacles.py`) nothing of a type was ever made."""
    return _is_missing(error) or "MissingSubscriptionRegistration" in provider_error(error)


def _not_found(place: Place, lookup: AzureLookup, error: object, *, is_made: bool) -> Problem:
    reason, missing = provider_error(error), _is_missing(error)
    return Problem(
        place=place,
        rule="resource-missing" if missing else "resource-unreadable",
        found=f"{lookup.description}, which {'does not exist' if missing else f'cannot be read: {reason}'}",
        accepted="one that can be read, or does not exist yet"
        if is_made
        else "one that exists: the stack does not create it",
        fix="create it, or correct the name" if missing else fix_of_read(reason),
    )
