"""The whole program: settings in, stack built, outputs out. `__main__.py` runs it, and so may a program of your own."""

from __future__ import annotations

import pulumi

from components.azure.management_cluster import create_management_cluster
from components.kubernetes.provider import with_kubernetes_provider
from components.plugin.resources import StackOwner
from components.preflight import configuration
from components.preflight.preflight import preflight
from components.renewed_outputs import renewed_outputs
from components.stack import IdentityStack
from identity.settings import ConfigurationError
from identity.settings.problems import for_stack


async def identity_stack() -> pulumi.Inputs:
    """Build the stack that the configuration `idstack:` describes; returns what it exports.

    Raises RunError with whatever look-ups find wrong with its configuration or surroundings, before any resource. The
    next run finds the credentials in use by these outputs: a program with outputs of its own exports them all together.
    """
    try:
        settings = configuration.load()
        found = await preflight(settings)
        cluster = create_management_cluster(settings, found.providers, found.deployer)
        providers = with_kubernetes_provider(settings, found.providers, cluster, hands_over=bool(found.handed_over))
    except (ConfigurationError, pulumi.RunError) as error:
        raise pulumi.RunError(for_stack(str(error), pulumi.get_stack())) from None
    owner = StackOwner("owner")
    # In each run before all that depends on it in the state: what is no target is written as it was, in the order of
    # registration, and the engine refuses a state in which a dependency comes later.
    await owner.urn.future()
    # A renewal may run before an `up` has made the owner, and changes no tag.
    stack = IdentityStack(settings, found, providers, cluster, None if found.renews_only else owner)
    outputs = stack.outputs()
    return renewed_outputs(found.last, outputs) if found.renews_only else outputs
