"""The whole program: settings in, stack built, outputs out. `__main__.py` runs it, and so may a program of your own."""

from __future__ import annotations

from typing import Final

import pulumi

from components.azure.management_cluster import create_management_cluster
from components.kubernetes.provider import with_kubernetes_provider
from components.plugin.resources import StackOwner
from components.preflight import configuration
from components.preflight.preflight import preflight
from components.stack import IdentityStack, renewed_outputs
from identity.settings import ConfigurationError
from identity.settings.schema.problems import for_stack

# After a RunError Pulumi's own code 1 makes the language host report the program's end as a second error; with this one
# it takes the error for shown (pulumi/pulumi v3.259 `sdk/python/cmd/pulumi-language-python-exec`).
_SHOWN: Final = 32


async def program() -> pulumi.Inputs:
    """`identity_stack` in a program that does nothing else: it shows a RunError once, and ends."""
    try:
        return await identity_stack()
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        raise SystemExit(_SHOWN) from error


async def identity_stack() -> pulumi.Inputs:
    """Build the stack that the configuration `idstack:` describes; returns what it exports.

    Raises RunError for a wrong configuration or environment before any resource is registered. The next run finds the
    credentials in use by these outputs: a program with outputs of its own exports them all together.
    """
    try:
        settings = configuration.load()
        checked = await preflight(settings)
        checked.prerequisites.foreign_tags.leave_alone()
        cluster = create_management_cluster(settings, checked.providers, checked.deployer)
        providers = with_kubernetes_provider(settings, checked.providers, cluster, hands_over=bool(checked.handed_over))
    except (ConfigurationError, pulumi.RunError) as error:
        raise pulumi.RunError(for_stack(str(error), pulumi.get_stack())) from None
    owner = StackOwner("owner", pulumi.ResourceOptions(provider=checked.providers.own))
    # It is registered before all that depends on it in the state: the engine writes resources that are not targets in
    # the order of registration, and refuses a state in which a dependency comes later.
    await owner.urn.future()
    # A renewal may run before an `up` has made the owner, and changes no tag.
    stack = IdentityStack(settings, checked, providers, cluster, None if checked.renews_only else owner)
    outputs = stack.outputs()
    return renewed_outputs(checked.last, outputs) if checked.renews_only else outputs
