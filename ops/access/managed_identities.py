"""Reads a stack's optional managed identities from ARM, as the stack's deployer."""

from __future__ import annotations

from dataclasses import replace

from identity.outputs import StackOutputs
from ops.access.azure import deployer
from ops.outputs.managed_identities import ManagedIdentities, read
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.errors import CommandError


def read_managed_identities(engine: Engine, outputs: StackOutputs[str]) -> ManagedIdentities:
    """What can be read now; a stack without any asks nobody. Nothing is raised: what cannot be read is named."""
    if not any(each.get("managedIdentities") for each in outputs.get("hostedClusters", {}).values()):
        return ManagedIdentities()
    try:
        with deployer(engine.stack, engine.configured(), local_cloud.of(engine.stack)) as clients:
            return read(outputs, clients.resource)
    except CommandError as error:
        return replace(read(outputs, None), unread=(f"the managed identities: {error}",))
