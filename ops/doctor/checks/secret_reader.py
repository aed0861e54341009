"""Whether the key-vault-user has its role on the identity's secret, where it has none on the whole vault."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, of_identity
from ops.doctor.model.expected import Identity
from ops.doctor.model.roles import lost
from ops.doctor.model.seen import known
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    for role in identity.reader_roles:
        if evidence := lost(world, role):
            user = known(world.state).key_vault_user
            yield Fault(
                evidence=f"the key-vault-user {user} may not read {identity.secret}: {evidence}",
                fix=f"{world.repair}; Azure takes up to ten minutes to apply a role",
            )


CHECK = of_identity(Stage.VAULT, "secret-reader", (Part.ROLES,), _find)
