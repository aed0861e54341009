"""The identity flow of managed Azure HostedClusters: settings in, stack built, outputs out."""

from __future__ import annotations

import pulumi

from components.azure.management_cluster import create_management_cluster
from components.azure.providers import register_providers
from components.kubernetes.provider import with_kubernetes_provider
from components.lookups import configuration
from components.lookups.access_check import check_access
from components.lookups.credential_loss_check import check_credential_losses
from components.lookups.prerequisites import look_up
from components.lookups.shared_stack import take_outputs
from components.lookups.tenant_check import check_tenant
from components.stack import IdentityStack
from identity.settings import ConfigurationError


async def main() -> pulumi.Inputs:
    """Build the stack. Look-ups report whatever is wrong with its configuration or surroundings before any resource."""
    try:
        settings = configuration.load()
        shared = await take_outputs(settings)
        await check_credential_losses(settings, shared)
        providers = register_providers(settings)
        deployer = await check_tenant(settings, providers)
        prerequisites = await look_up(settings, providers, shared)
        await check_access(settings, providers, prerequisites.management_cluster)
        cluster = create_management_cluster(settings, providers, deployer.object_id)
        providers = with_kubernetes_provider(settings, providers, cluster)
    except ConfigurationError as error:
        raise pulumi.RunError(str(error)) from None
    return IdentityStack(settings, providers, deployer, prerequisites, shared, cluster).outputs()


pulumi.run(main)
