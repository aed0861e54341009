"""The identity flow of managed Azure HostedClusters: settings in, stack built, outputs out."""

from __future__ import annotations

import os

import pulumi

from components.azure.management_cluster import create_management_cluster
from components.azure.plugin_resources import StackOwner
from components.azure.providers import register_providers
from components.kubernetes.provider import with_kubernetes_provider
from components.lookups import configuration
from components.lookups.access_check import check_access
from components.lookups.backup_cloud_check import warn_of_backups
from components.lookups.control_plane_check import check_control_planes
from components.lookups.credential_loss_check import check_credential_losses
from components.lookups.key_rotation_check import check_key_rotations
from components.lookups.last_outputs import last_outputs
from components.lookups.own_namespaces import own_namespaces
from components.lookups.prerequisites import look_up
from components.lookups.shared_stack import take_outputs
from components.lookups.signing_key_secret_check import check_signing_key_secrets
from components.lookups.tenant_check import check_tenant, check_tenant_of_last_run
from components.renewed_outputs import renewed_outputs
from components.stack import IdentityStack
from identity.credentials import renewal_request
from identity.settings import ConfigurationError
from identity.settings.problems import for_stack


async def main() -> pulumi.Inputs:
    """Build the stack. Look-ups report whatever is wrong with its configuration or surroundings before any resource."""
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


pulumi.run(main)
