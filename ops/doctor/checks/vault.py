"""Whether the key vault is there, in the stack's tenant, and decides by roles."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, WholeStack, of_stack
from ops.doctor.model.seen import known
from ops.doctor.model.world import StackWorld


def _find(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    state = known(world.state)
    if not state.is_up or not state.vault_id:
        return  # a stack of self-managed clusters may keep nothing in one
    name, vault = state.vault_name, known(world.vault)
    if vault is None:
        yield Fault(
            evidence=f"there is no vault {name} in its resource group",
            fix=f"if it was deleted, `az keyvault recover --name {name}`, otherwise {world.repair}",
        )
        return
    if vault.tenant_id.lower() != state.tenant_id.lower():
        yield Fault(
            evidence=f"the vault {name} trusts the tenant {vault.tenant_id}; the stack's is {state.tenant_id}",
            fix=f"`az keyvault update --name {name} --set properties.tenantId={state.tenant_id}`",
        )
    if not vault.uses_roles:
        yield Fault(
            evidence=f"the vault {name} decides by access policies, so that no role assignment counts",
            fix=f"`az keyvault update --name {name} --enable-rbac-authorization true`",
        )
    own = state.own_vault
    if own is not None and vault.public_network_access.lower() != own.public_network_access.lower():
        yield Fault(
            evidence=f"publicNetworkAccess of {name} is {vault.public_network_access}; the stack made it "
            f"{own.public_network_access}",
            fix=world.repair,
        )
    if own is not None and vault.default_action.lower() != own.default_action.lower():
        yield Fault(
            evidence=f"the vault {name} answers other networks with {vault.default_action}; the stack made it "
            f"{own.default_action}",
            fix=world.repair,
        )


CHECK = of_stack(Stage.VAULT, "vault", (Part.VAULT, Part.STATE), _find)
