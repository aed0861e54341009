"""Looks up what the stack needs but does not create, before the first resource. One report has all that is missing.

The results are plain values, so every preview knows them.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import pulumi

from components.azure.credential_store import CredentialStore, vault_of
from components.azure.imported_credential import (
    ExistingIdentity,
    ImportedCredentialArgs,
    ImportedDocument,
    StoredDocument,
)
from components.azure.providers import Providers, management_cluster_id, provider_error
from components.preflight.azure_objects import (
    AzureLookup,
    created_cluster,
    earlier_documents,
    imported_identities,
    is_stored,
    managed_identity,
    management_cluster,
    optional_lookups,
    required_lookups,
    stored_secret,
)
from components.preflight.delivered_secrets import look_at_secrets
from components.preflight.hosted_cluster_manifest import read_manifests
from components.preflight.imported_documents import read_document, read_stored, stored_before
from components.preflight.infrastructure_checks import compare_infrastructure
from components.preflight.issuer_check import read_existing_keys
from components.preflight.network_policy_check import unenforced_block
from identity.aks.azure_rbac import CREATING, FAILED, AksCluster
from identity.credentials import renewal_request
from identity.credentials.document import InvalidCredentialError
from identity.naming import parse_arm_id
from identity.outputs import StackOutputs
from identity.secrets_store import ACCEPTED, ADD_ON, rotation_command, rotation_fault
from identity.settings import (
    ConfigurationError,
    HostedClusterSettings,
    IdentitySettings,
    ManagementClusterSettings,
    Problem,
    Settings,
)
from identity.settings.schema.problems import Place

# How azure-native says that ARM has no such object; a name in the message of another refusal does not count.
_MISSING: Final = re.compile(r'\bStatus=404\b|\bCode="\w*NotFound"')


@dataclass(frozen=True, kw_only=True)
class Prerequisites:
    """The results of the look-ups.

    - `management_cluster`: the cluster as ARM describes it, None if there is none, or none yet;
      `node_resource_group`: the resource group of its nodes; `add_on_identity`: the identity of its secrets-store
      add-on. If the stack makes the cluster, only the first can be set.
    - `imported`: the managed identities' credentials by hosted cluster and catalogue field.
    - `manifests`: the user's parts of the HostedClusters by hosted cluster.
    - `signing_key_files`: by hosted cluster the id of the signing key in the file that the configuration names.
    """

    management_cluster: AksCluster | None = None
    node_resource_group: str | None = None
    add_on_identity: ExistingIdentity | None = None
    imported: Mapping[tuple[str, str], ImportedCredentialArgs] = field(default_factory=dict)
    manifests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    signing_key_files: Mapping[str, str] = field(default_factory=dict)

    def imported_of(self, cluster: str) -> dict[str, ImportedCredentialArgs]:
        """The managed identities of one hosted cluster by field."""
        return {name: each for (owner, name), each in self.imported.items() if owner == cluster}


async def look_up(
    settings: Settings, providers: Providers, shared: CredentialStore | None, last: StackOutputs[Any]
) -> Prerequisites:
    """Look everything up, side by side. Raises ConfigurationError with all that is missing or cannot be used.

    `shared` is the shared stack's vault, None if the vault is this stack's own; `last` are the outputs of the last
    complete run.
    """
    vault = vault_of(settings, shared)
    required = list(required_lookups(settings, shared, vault))
    optional = [*optional_lookups(settings), *earlier_documents(settings, vault)]
    lookups = list(dict.fromkeys([*(lookup for _, lookup in required), *optional]))
    answers, _ = await asyncio.gather(
        asyncio.gather(*(_read(lookup, providers) for lookup in lookups), return_exceptions=True),
        look_at_secrets(settings, vault),
    )
    found = dict(zip(lookups, answers, strict=True))
    keys = await asyncio.to_thread(read_existing_keys, settings, vault)
    created = created_cluster(settings)
    problems = [
        _not_found(place, lookup, found[lookup])
        for place, lookup in required
        if isinstance(found[lookup], Exception) and not (lookup == created and _is_missing(found[lookup]))
    ]
    builder = _PrerequisitesBuilder(
        {lookup: answer for lookup, answer in found.items() if isinstance(answer, Mapping)}, vault, problems
    )
    aks = None if settings.management_cluster is None else builder.cluster(settings, settings.management_cluster, last)
    prerequisites = replace(builder.build(settings), management_cluster=aks, signing_key_files=keys.of_files)
    problems += keys.problems
    if problems:
        raise ConfigurationError(problems)
    return prerequisites


async def _read(lookup: AzureLookup, providers: Providers) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await pulumi.runtime.invoke_async(
        f"azure-native:{lookup.function}", dict(lookup.arguments), pulumi.InvokeOptions(provider=providers.azure)
    )
    return answer


def _is_missing(error: object) -> bool:
    return _MISSING.search(provider_error(error)) is not None


def _not_found(place: Place, lookup: AzureLookup, error: object) -> Problem:
    reason, missing = provider_error(error), _is_missing(error)
    return Problem(
        place=place,
        rule="resource-missing" if missing else "resource-unreadable",
        found=f"{lookup.description}, which {'does not exist' if missing else f'cannot be read: {reason}'}",
        accepted="one that exists: the stack does not create it",
        fix="create it, or correct the name" if missing else "let the deployer read it (role Reader), then try again",
    )


def _profile(cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    """The secrets-store add-on in AKS's answer."""
    return (cluster.get("addonProfiles") or {}).get(ADD_ON) or {}


class _PrerequisitesBuilder:
    """Builds `Prerequisites` from the answers; a missing object has been reported before."""

    def __init__(self, answers: Mapping[AzureLookup, Mapping[str, Any]], vault: str, problems: list[Problem]) -> None:
        self._answers = answers
        self._vault = vault
        self._problems = problems

    def build(self, settings: Settings) -> Prerequisites:
        """Everything that can be used; the rest is added to the problems."""
        imported: dict[tuple[str, str], ImportedCredentialArgs] = {}
        for index, cluster in enumerate(settings.hosted_clusters):
            place: Place = ("hostedClusters", index)
            self._problems += compare_infrastructure(cluster, place, self._answers, settings)
            for name, identity in imported_identities(cluster):
                at: Place = (*place, "identities", name)
                credential = self._credential(settings, cluster, identity, at)
                if credential is not None:
                    imported[cluster.name, name] = credential
        manifests = read_manifests(settings, parse_arm_id(self._vault).name if self._vault else "")
        self._problems += manifests.problems
        cluster_answer = self._cluster(settings.management_cluster)
        self._problems += unenforced_block(settings, cluster_answer)
        is_created = created_cluster(settings) is not None
        self._rotation(settings.management_cluster, cluster_answer)
        return Prerequisites(
            node_resource_group=None if is_created else cluster_answer.get("nodeResourceGroup"),
            add_on_identity=None if is_created else self._add_on(settings, cluster_answer),
            imported=imported,
            manifests=manifests.documents,
        )

    def cluster(
        self, settings: Settings, cluster: ManagementClusterSettings, last: StackOutputs[Any]
    ) -> AksCluster | None:
        """The management cluster; None for one that is not there, or that nothing can run on yet."""
        answer = self._cluster(cluster)
        if not answer:
            return None
        aks = AksCluster.of(management_cluster_id(settings, cluster), answer)
        if cluster.create is None:
            return aks
        if aks.state == CREATING or (aks.state in FAILED and "managementClusterId" not in last):
            pulumi.log.info(f'"{cluster.name}" is {aks.state}, so nothing runs there yet: the run goes on without it')
            return None
        return aks

    def _cluster(self, cluster: ManagementClusterSettings | None) -> Mapping[str, Any]:
        return {} if cluster is None else self._answers.get(management_cluster(cluster), {})

    def _rotation(self, cluster: ManagementClusterSettings | None, answer: Mapping[str, Any]) -> None:
        """Whoever the key-vault-user is, the add-on mounts the secrets, if the cluster runs it."""
        fault = rotation_fault(_profile(answer))
        if cluster is None or fault is None:
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
            self._problems.append(
                Problem(
                    place=("managementCluster", "name"),
                    rule="add-on-rotation",
                    found=f'"{cluster.name}" with the secrets-store add-on, but {fault}',
                    accepted=ACCEPTED,
                    fix=f"`{command}`",
                )
            )

    def _add_on(self, settings: Settings, answer: Mapping[str, Any]) -> ExistingIdentity | None:
        is_wanted = settings.has_key_vault_user and settings.key_vault_user.source == "aks-addon"
        if not is_wanted or settings.management_cluster is None or not answer:
            return None
        add_on = _profile(answer)
        identity = add_on.get("identity") or {}
        if add_on.get("enabled") and identity.get("clientId") and identity.get("objectId"):
            return ExistingIdentity(client_id=identity["clientId"], object_id=identity["objectId"])
        cluster = settings.management_cluster
        self._problems.append(
            Problem(
                place=("keyVaultUser", "source"),
                rule="add-on-disabled",
                found=f'aks-addon, but "{cluster.name}" does not run the add-on azure-keyvault-secrets-provider',
                accepted="aks-addon with the add-on switched on, existing, or created",
                fix="`az aks enable-addons --addons azure-keyvault-secrets-provider --enable-secret-rotation "
                f"--resource-group {cluster.resource_group} --name {cluster.name}`",
            )
        )
        return None

    def _credential(
        self, settings: Settings, cluster: HostedClusterSettings, identity: IdentitySettings, place: Place
    ) -> ImportedCredentialArgs | None:
        answer = self._answers.get(managed_identity(identity))
        if answer is None or identity.credential is None:
            return None
        principal = ExistingIdentity(client_id=answer["clientId"], object_id=answer["principalId"])
        if identity.client_id is not None and identity.client_id != principal.client_id:
            self._problems.append(
                Problem(
                    place=(*place, "clientId"),
                    rule="client-id-mismatch",
                    found=f'"{identity.client_id}", but the managed identity has the client id "{principal.client_id}"',
                    accepted="the identity's own client id, or nothing",
                    fix="remove it, or correct resourceId",
                )
            )
        now = datetime.now(UTC)
        document: ImportedDocument | StoredDocument
        try:
            if is_stored(identity):
                stored = self._answers.get(stored_secret(self._vault, identity))
                if stored is None:
                    return None
                document = read_stored(stored, now=now)
            else:
                document = read_document(
                    identity.credential,
                    now=now,
                    tenant_id=settings.tenant_id,
                    client_id=principal.client_id,
                    object_encoding=identity.object_encoding,
                )
                self._refuse_older(document, identity, place)
                for remark in document.remarks:
                    pulumi.log.warn(f"the credential document {document.path} is taken, though {remark}")
        except InvalidCredentialError as error:
            self._problems.append(_unusable((*place, "credential"), error))
        except (OSError, UnicodeDecodeError) as error:
            self._problems.append(
                Problem(
                    place=(*place, "credential", "file"),
                    rule="credential-file-unreadable",
                    found=f'"{identity.credential.file}", which cannot be read ({error.__class__.__name__})',
                    accepted="the path of a file with the credential document, from the project's folder",
                    fix="put the document there, or correct the path",
                )
            )
        else:
            return ImportedCredentialArgs(principal=principal, document=document)
        return None

    def _refuse_older(self, document: ImportedDocument, identity: IdentitySettings, place: Place) -> None:
        """Refuse a document that is older than the vault's; a run that only renews writes none."""
        secret = self._answers.get(stored_secret(self._vault, identity))
        if secret is None or renewal_request.is_renewal_run(os.environ):
            return
        before = stored_before(secret, parse_arm_id(self._vault).name, identity.secret_name)
        if why := before.why_it_stays(document.thumbprint, document.dates.not_before):
            self._problems.append(
                Problem(
                    place=(*place, "credential", "file"),
                    rule="credential-document-older",
                    found=f'"{document.path}", whose document is older than that of the vault: {why}',
                    accepted="a document that begins later than the vault's, or the same one",
                    fix=before.ways_out,
                )
            )


def _unusable(place: Place, error: InvalidCredentialError) -> Problem:
    return Problem(
        place=place,
        rule="credential-document-invalid",
        found="".join(("a credential document that cannot be used:", *(f"\n    - {each}" for each in error.problems))),
        accepted="the document that the MSI data plane issued for this identity, as it is",
        fix="have it issued again",
    )
