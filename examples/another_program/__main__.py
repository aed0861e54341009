"""A Pulumi program of your own with an identity stack in it, and a resource that uses its outputs."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import resources

from components.program import identity_stack


async def main() -> pulumi.Inputs:
    """The identity stack, and a resource group that names its vault."""
    identities = await identity_stack()
    group = resources.ResourceGroup(
        "workloads", resource_group_name="workloads", tags={"credentials": identities["keyVaultName"]}
    )
    # The next run finds the credentials in use by the outputs of the identity stack: export them all, by their names.
    return {**identities, "workloads": group.name}


pulumi.run(main)
