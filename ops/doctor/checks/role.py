"""Whether ARM has the identity's role assignments as the stack made them."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, of_principal
from ops.doctor.model.expected import GrantedPrincipal
from ops.doctor.model.roles import lost
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, identity: GrantedPrincipal) -> Iterator[Fault]:
    for role in identity.roles:
        if evidence := lost(world, role):
            yield Fault(evidence=evidence, fix=world.repair)


CHECK = of_principal(Stage.PROOF_CALL, "role", (Part.ROLES,), _find)
