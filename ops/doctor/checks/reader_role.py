"""Whether the key-vault-user, as whom the CSI driver reads the vault, has its role on the whole vault."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.roles import lost
from ops.doctor.model.seen import NotRead, known
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    state = known(world.state)
    if state.is_up and not state.key_vault_user:
        return
    if state.is_up and not state.reader_roles and not any(each.reader_roles for each in state.identities):
        raise NotRead(
            f"the vault {state.vault_name} is another stack's, and so is its reader: run the doctor on that one"
        )
    for role in state.reader_roles:
        if evidence := lost(world, role):
            yield Fault(
                evidence=f"the key-vault-user {state.key_vault_user} may not read {state.vault_name}: {evidence}",
                fix=f"{world.repair}; Azure takes up to ten minutes to apply a role",
            )


CHECK = of_stack(Stage.VAULT, "reader-role", (Part.ROLES, Part.STATE), _find)
