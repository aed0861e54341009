"""What brings another credential of an identity into the vault."""

from __future__ import annotations

from ops.doctor.model.expected import Identity
from ops.doctor.model.world import World


def renewal(world: World, identity: Identity) -> str:
    """The command, if the stack issues the identity's certificates; where to begin, if another tool does."""
    if identity.generation is None:
        return f"issue the credential anew where it comes from, then {world.make('up')}"
    return world.command("rotate", "--identity", f"{identity.cluster}/{identity.identity}", "--force")
