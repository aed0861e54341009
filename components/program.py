"""The whole program: settings in, stack built, outputs out. `__main__.py` runs it, and so may a program of your own."""

from __future__ import annotations

import os

import pulumi

from components.azure.management_cluster import create_management_cluster
from components.azure.providers import register_providers
from components.kubernetes.provider import with_kubernetes_provider
from components.plugin.resources import StackOwner
from components.preflight import configuration
from components.preflight.access_check import check_access
from components.preflight.backup_cloud_check import warn_of_backups
from components.preflight.control_plane_check import check_control_planes
from components.preflight.credential_loss_check import check_credential_losses
from components.preflight.key_rotation_check import check_key_rotations
from components.preflight.last_outputs import last_outputs
from components.preflight.own_namespaces import own_namespaces
from components.preflight.prerequisites import look_up
from components.preflight.shared_stack import take_outputs
from components.preflight.tenant_check import check_tenant, check_tenant_of_last_run
from components.preflight.unmanaged_signing_key_check import check_signing_key_secrets
from components.renewed_outputs import renewed_outputs
from components.stack import IdentityStack
from identity.credentials import renewal_request
from identity.settings import ConfigurationError
from identity.settings.schema.problems import for_stack


async def identity_stack() -> pulumi.Inputs:
    """Build the stack that the configuration `idstack:` describes; returns what it exports.

    Raises RunError with whatever look-ups find wrong with its configuration or surroundings, before any resource. The
    next run finds the credentials in use by these outputs: a program with outputs of its own exports them all together.
    """
    try:
        settings = configuration.load()
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
        aks = prerequisites.management_cluster
        kubeconfig = await check_access(settings, providers, aks)
        handed_over: dict[str, frozenset[str]] = {}
        if not renews_only:
            own = await own_namespaces()
            clusters = await check_control_planes(settings, providers, own, aks, kubeconfig)
            handed_over = dict.fromkeys(clusters, own.objects)
            await check_key_rotations(settings, providers, last, aks, kubeconfig)
            await check_signing_key_secrets(settings, providers, aks, kubeconfig)
        cluster = create_management_cluster(settings, providers, deployer)
        providers = with_kubernetes_provider(settings, providers, cluster, hands_over=bool(handed_over))
    except (ConfigurationError, pulumi.RunError) as error:
        raise pulumi.RunError(for_stack(str(error), pulumi.get_stack())) from None
    owner = StackOwner("owner")
    # In each run before all that depends on it in the state: what is no target is written as it was, in the order of
    # registration, and the engine refuses a state in which a dependency comes later.
    await owner.urn.future()
    # A renewal may run before an `up` has made the owner, and changes no tag.
    stack = IdentityStack(
        settings,
        providers,
        deployer,
        prerequisites,
        shared,
        cluster,
        last,
        handed_over,
        None if renews_only else owner,
    )
    outputs = stack.outputs()
    return renewed_outputs(last, outputs) if renews_only else outputs
