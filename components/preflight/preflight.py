"""Everything that a run looks up and checks before its first resource, in this order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.azure.credential_store import CredentialStore
from components.azure.deployer import Deployer
from components.azure.providers import Providers, register_providers
from components.preflight.access_check import check_access
from components.preflight.backup_cloud_check import warn_of_backups
from components.preflight.cluster_reader import cluster_reader
from components.preflight.control_plane_check import check_control_planes
from components.preflight.credential_loss_check import check_credential_losses
from components.preflight.key_rotation_check import check_key_rotations
from components.preflight.last_outputs import last_outputs
from components.preflight.own_namespaces import own_namespaces
from components.preflight.prerequisites import Prerequisites, look_up
from components.preflight.shared_stack import take_outputs
from components.preflight.tenant_check import check_tenant, check_tenant_of_last_run
from components.preflight.unmanaged_signing_key_check import check_signing_key_secrets
from identity.credentials import renewal_request
from identity.outputs import StackOutputs
from identity.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What a run knows before its first resource; `providers` are the Azure providers of the look-ups.

    - `shared`: the shared stack's store; None if vault and key-vault-user are this stack's own.
    - `last`: the outputs of the last complete run.
    - `handed_over`: the names of the Kubernetes resources in the state, by hosted cluster whose namespace this run
      leaves to HyperShift.
    - `renews_only`: whether the run only renews certificates and changes nothing else.
    """

    providers: Providers
    deployer: Deployer
    prerequisites: Prerequisites
    shared: CredentialStore | None
    last: StackOutputs[Any]
    handed_over: Mapping[str, frozenset[str]]
    renews_only: bool


async def preflight(settings: Settings) -> Preflight:
    """Look everything up and check it; raises ConfigurationError or RunError with what is wrong."""
    warn_of_backups(settings)
    shared = await take_outputs(settings)
    last = await last_outputs()
    check_tenant_of_last_run(settings, last)
    renews_only = renewal_request.is_renewal_run(os.environ)
    if not renews_only:
        check_credential_losses(settings, shared, last)
    providers = register_providers(settings)
    deployer = await check_tenant(settings, providers)
    prerequisites = await look_up(settings, providers, shared, last)
    reader = cluster_reader(settings, providers, prerequisites.management_cluster)
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
        renews_only=renews_only,
    )
