"""The identity flow of managed Azure HostedClusters: settings in, stack built, outputs out."""

from __future__ import annotations

import pulumi

from components import configuration
from components.aks_access import check_access
from components.cluster_provider import create_cluster, with_cluster
from components.losses import check_losses
from components.prerequisites import look_up
from components.providers import check_tenant, register_providers
from components.shared_stack import take_outputs
from components.stack import IdentityStack
from identity.settings import ConfigurationError


async def main() -> pulumi.Inputs:
    """Build the stack; whatever is wrong with its configuration or surroundings is said before the first resource."""
    try:
        settings = configuration.load()
        shared = await take_outputs(settings)
        await check_losses(settings, shared)
        providers = register_providers(settings)
        deployer = await check_tenant(settings, providers)
        prerequisites = await look_up(settings, providers, shared)
        await check_access(settings, providers, prerequisites.management_cluster)
        cluster = create_cluster(settings, providers, deployer)
        providers = with_cluster(settings, providers, cluster)
    except ConfigurationError as error:
        raise pulumi.RunError(str(error)) from None
    return IdentityStack(settings, providers, deployer, prerequisites, shared, cluster).outputs()


pulumi.run(main)
