"""Everything that a run looks up and checks before its first resource, in this order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pulumi

from components.azure.context import CredentialStore
from components.azure.providers import Deployer, Providers, provider_error, register_providers
from components.preflight.cluster_checks import (
    check_access,
    check_control_planes,
    check_key_rotations,
    check_signing_key_secrets,
    cluster_reader,
    own_namespaces,
)
from components.preflight.configuration import refuse_other_spelling
from components.preflight.prerequisites import Prerequisites, look_up
from components.preflight.problems import problem
from components.preflight.shared_stack import last_outputs, read_shared_store
from identity import checkout
from identity.catalogue_rows import Scope
from identity.clouds import LOCAL_CLOUD
from identity.credentials import renewal_request
from identity.outputs import StackOutputs
from identity.settings import ConfigurationError, Settings
from identity.settings.rules.authentication import refuse_changed_authentication
from identity.settings.rules.credential_loss import find_losses, refuse_losses, unused_allowances
from identity.settings.schema.problems import to_set
from identity.symptoms import az_login

# openshift/hypershift etcd-upload/azure_uploader.go:72; pull request 9457, which changes that, is open.
_SUFFIX: Final = "core.windows.net"


def warn_of_backups(settings: Settings) -> None:
    """Warn for each hosted cluster with an identity for backups, in every cloud but the public one."""
    if settings.cloud.storage_suffix == _SUFFIX:
        return
    for index, cluster in enumerate(settings.hosted_clusters):
        if fields := cluster.users_of(Scope.BACKUP_STORAGE):
            pulumi.log.warn(
                f"idstack:hostedClusters[{index}] has {' and '.join(fields)}, and HyperShift uploads etcd backups to "
                f"<account>.blob.{_SUFFIX} alone, which {settings.cloud.name} does not have "
                "(openshift/hypershift#9457): the identity is made, and an HCPEtcdBackup fails"
            )


def check_credential_losses(settings: Settings, shared: CredentialStore | None, last: StackOutputs[Any]) -> None:
    """Compare the configuration with the outputs of the `last` complete run, which name the credentials in use.

    Raises ConfigurationError with every name in another letter case, with every loss that the configuration does not
    allow, and with every cluster that would sign in another way.
    """
    refuse_other_spelling(settings, last)
    refuse_changed_authentication(((row.name, row.authentication) for row in settings.hosted_clusters), last)
    losses = find_losses(settings, settings.vault_id if shared is None else shared.vault_id, last)
    refuse_losses(settings, losses)
    for name in unused_allowances(settings, losses):
        pulumi.log.warn(
            f"idstack:allowCredentialLoss names {name}, which loses nothing: remove it before it lets a mistake pass"
        )


# Entra ID's code for an assertion that is not valid yet, or no longer, by its own clock.
_OUT_OF_TIME: Final = "AADSTS700024"


def check_tenant_of_last_run(settings: Settings, last: StackOutputs[Any]) -> None:
    """Raise ConfigurationError if the outputs of the `last` complete run are of another tenant.

    Nothing moves between tenants: all that the state names would be lost to this stack.
    """
    before = last.get("tenantId")
    if before is None or before.lower() == settings.tenant_id:
        return
    place = ("tenantId",)
    moved = problem("tenant-of-last-run", place, tenant=settings.tenant_id, before=before, set=to_set(place, before))
    raise ConfigurationError([moved])


async def check_tenant(settings: Settings, providers: Providers) -> Deployer:
    """Compare the provider's tenant with the configured one. Raises RunError if they differ or the sign-in fails."""
    try:
        client_config = await pulumi.runtime.invoke_async(
            "azure-native:authorization:getClientConfig", {}, pulumi.InvokeOptions(provider=providers.azure)
        )
    except Exception as error:
        reason = provider_error(error).rstrip(".")
        login = az_login(reason, f"az login --tenant {settings.tenant_id}")
        fix = f"Sign in with {login} (in CI: set the ARM_* variables of the providers)."
        if settings.cloud.name == LOCAL_CLOUD:
            fix = "`.venv/bin/idstack local start` starts the local cloud."
        if _OUT_OF_TIME in reason:
            fix = "This machine's clock and Entra ID's are more than five minutes apart: set it right."
        raise pulumi.RunError(f"the deployer cannot sign in to Azure: {reason}. Nothing was changed. {fix}") from None
    if client_config["tenantId"].lower() != settings.tenant_id:
        raise pulumi.RunError(
            f"signed in to the tenant {client_config['tenantId']}, but idstack:tenantId is {settings.tenant_id}. "
            f"Nothing was changed. Sign in with `az login --tenant {settings.tenant_id}` (in CI: set ARM_TENANT_ID), "
            f"or correct it with {to_set(('tenantId',), client_config['tenantId'])}."
        )
    return Deployer.of(client_config)


def commit_to_record(last: StackOutputs[Any]) -> str | None:
    """The checkout's commit; None without a repository. Raises RunError rather than drop the recorded one unread."""
    try:
        return checkout.commit(Path.cwd(), pulumi.get_stack())
    except checkout.UnreadableCheckoutError as error:
        if "commit" not in last:
            pulumi.log.warn(f"{error}. So the stack does not record its commit")
            return None
        raise pulumi.RunError(
            f"{error}. Nothing was changed: the stack records the commit {last['commit']}, from which it is renewed, "
            "and this run would drop it."
        ) from None


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What a run knows before its first resource; `providers` are the Azure providers of the look-ups.

    - `shared`: the shared stack's store; None if vault and key-vault-user are this stack's own.
    - `last`: the outputs of the last complete run.
    - `handed_over`: the names of the Kubernetes resources in the state, by hosted cluster whose namespace this run
      leaves to HyperShift.
    - `commit`: the checkout's, None without one and in a run that only renews.
    - `renews_only`: whether the run only renews certificates and changes nothing else.
    """

    providers: Providers
    deployer: Deployer
    prerequisites: Prerequisites
    shared: CredentialStore | None
    last: StackOutputs[Any]
    handed_over: Mapping[str, frozenset[str]]
    commit: str | None
    renews_only: bool


async def preflight(settings: Settings) -> Preflight:
    """Look everything up and check it; raises ConfigurationError or RunError with what is wrong."""
    warn_of_backups(settings)
    shared = await read_shared_store(settings)
    last = await last_outputs()
    check_tenant_of_last_run(settings, last)
    renews_only = renewal_request.is_renewal_run(os.environ)
    commit = None if renews_only else commit_to_record(last)
    if not renews_only:
        check_credential_losses(settings, shared, last)
    providers = register_providers(settings)
    deployer = await check_tenant(settings, providers)
    prerequisites = await look_up(settings, providers, shared, last)
    reader = cluster_reader(settings, providers, prerequisites.management_cluster.running)
    await check_access(settings, reader)
    handed_over: dict[str, frozenset[str]] = {}
    if not renews_only:
        own = await own_namespaces()
        handed_over = dict.fromkeys(await check_control_planes(settings, own, reader), own.objects)
        await check_key_rotations(settings, last, reader)
        await check_signing_key_secrets(settings, reader)
    return Preflight(
        providers=providers,
        deployer=deployer,
        prerequisites=prerequisites,
        shared=shared,
        last=last,
        handed_over=handed_over,
        commit=commit,
        renews_only=renews_only,
    )
