"""Whether the vault has each identity's secret, for a reader who may read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from identity.credentials import rfc3339
from ops.doctor.model.check import Check, Fault, Stage, WholeStack, of_identity, of_stack
from ops.doctor.model.fixes import renewal
from ops.doctor.model.roles import lost
from ops.world.expected import Identity
from ops.world.parts import Part
from ops.world.seen import NotReadError, entry, known
from ops.world.stack_world import StackWorld


def _find_vault(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the key vault is there, in the stack's tenant, and decides by roles."""
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


VAULT = of_stack(Stage.VAULT, "vault", (Part.VAULT, Part.STATE), _find_vault)


def _find_reader_role(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the key-vault-user, as whom the CSI driver reads the vault, has its role on the whole vault."""
    state = known(world.state)
    if state.is_up and not (state.key_vault_user and state.identities):
        return  # nobody reads a vault for identities that have no certificate
    if state.is_up and not state.reader_roles and not any(each.reader_roles for each in state.identities):
        raise NotReadError(
            f"the vault {state.vault_name} is another stack's, and so is its reader: run the doctor on that one"
        )
    for role in state.reader_roles:
        if evidence := lost(world, role):
            yield Fault(
                evidence=f"the key-vault-user {state.key_vault_user} may not read {state.vault_name}: {evidence}",
                fix=f"{world.repair}; Azure takes up to ten minutes to apply a role",
            )


READER_ROLE = of_stack(Stage.VAULT, "reader-role", (Part.ROLES, Part.STATE), _find_reader_role)


# Of clocks that disagree (identity.credentials.certificate.CLOCK_SKEW).
_SKEW: Final = timedelta(minutes=5)


def _find_secret(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the identity's secret is in the vault, enabled, valid now, and the one that the stack delivered."""
    vault, name = known(world.state).vault_name, identity.secret
    found = entry(world.secrets, name)
    of = f"--vault-name {vault} --name {name}"
    if found is None:
        yield Fault(
            evidence=f"there is no secret {name} in {vault}",
            fix=f"if it was deleted, `az keyvault secret recover {of}`, then {world.repair}",
        )
        return
    another = renewal(world, identity)
    if not found.enabled:
        yield Fault(
            evidence=f"the current version of {name} ({found.version}) is disabled",
            fix=f"`az keyvault secret set-attributes {of} --enabled true`",
        )
    elif found.expires is not None and found.expires <= world.now:
        yield Fault(evidence=f"{name} expired at {rfc3339.render(found.expires)}", fix=another)
    elif found.not_before is not None and found.not_before > world.now + _SKEW:
        yield Fault(evidence=f"{name} is not valid before {rfc3339.render(found.not_before)}", fix=another)
    elif found.thumbprint and identity.thumbprint and found.thumbprint != identity.thumbprint:
        yield Fault(
            evidence=f"{name} has the certificate {found.thumbprint}; the stack delivered {identity.thumbprint}",
            fix=f"{world.repair}; if it still differs, {another}",
        )


SECRET = of_identity(Stage.VAULT, "secret", (Part.SECRETS,), _find_secret)


def _find_secret_reader(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the key-vault-user has its role on the identity's secret, where it has none on the whole vault."""
    for role in identity.reader_roles:
        if evidence := lost(world, role):
            user = known(world.state).key_vault_user
            yield Fault(
                evidence=f"the key-vault-user {user} may not read {identity.secret}: {evidence}",
                fix=f"{world.repair}; Azure takes up to ten minutes to apply a role",
            )


SECRET_READER = of_identity(Stage.VAULT, "secret-reader", (Part.ROLES,), _find_secret_reader)

CHECKS: Final[tuple[Check, ...]] = (
    VAULT,
    READER_ROLE,
    SECRET,
    SECRET_READER,
)
