"""Whether the vault has each identity's secret, and the key-vault-user may read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from identity.credentials import rfc3339
from identity.credentials.certificate_rules import CLOCK_SKEW
from ops.doctor.checks.check import Fault, Stage, fault, of_identity, of_stack, renewal, role_fault
from ops.world.expected import Identity, StateRole
from ops.world.seen import NotReadError, Part, StackWorld, entry, known


@of_stack(Stage.VAULT, Part.VAULT, Part.STATE)
def vault(world: StackWorld) -> Iterator[Fault]:
    """Whether the key vault exists, in the stack's tenant, and uses Azure RBAC."""
    state = known(world.state)
    if not state.is_up or not state.vault_id:
        return  # a stack of self-managed clusters may have none
    name, vault = state.vault_name, known(world.vault)
    if vault is None:
        yield fault(world, "no vault", name=name)
        return
    if vault.tenant_id.lower() != state.tenant_id.lower():
        yield fault(world, "vault of another tenant", name=name, actual=vault.tenant_id, tenant=state.tenant_id)
    if not vault.uses_roles:
        yield fault(world, "access policies", name=name)
    if (own := state.own_vault) is None:
        return
    for setting, actual, expected in (
        (f"publicNetworkAccess of {name}", vault.public_network_access, own.public_network_access),
        (f"the default action of {name} for other networks", vault.default_action, own.default_action),
    ):
        if actual.lower() != expected.lower():
            yield fault(world, "vault setting", setting=setting, actual=actual, expected=expected)


@of_stack(Stage.VAULT, Part.ROLES, Part.STATE)
def reader_role(world: StackWorld) -> Iterator[Fault]:
    """Whether the key-vault-user, the CSI driver's identity, has its role on the whole vault."""
    state = known(world.state)
    if state.is_up and not (state.key_vault_user and state.identities):
        return  # identities without a certificate need no reader
    if state.is_up and not state.reader_roles and not any(identity.reader_roles for identity in state.identities):
        raise NotReadError(
            f"the vault {state.vault_name} and its reader belong to another stack: run the doctor on that stack"
        )
    yield from _unreadable(world, state.reader_roles, state.vault_name)


@of_identity(Stage.VAULT, Part.SECRETS)
def secret(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the identity's secret is in the vault, enabled, valid, and as the stack delivered it."""
    vault, name = known(world.state).vault_name, identity.secret
    secret = entry(world.secrets, name)
    if secret is None:
        yield fault(world, "no secret", name=name, vault=vault)
        return
    new_credential = renewal(world, identity)
    if not secret.enabled:
        yield fault(world, "secret disabled", name=name, vault=vault, version=secret.version)
    elif secret.expires is not None and secret.expires <= world.now:
        yield fault(world, "secret expired", name=name, date=rfc3339.render(secret.expires), renewal=new_credential)
    elif secret.not_before is not None and secret.not_before > world.now + CLOCK_SKEW:
        named = f", which {world.command('renew')} names" if identity.generation is not None else ""
        date = rfc3339.render(secret.not_before)
        yield fault(world, "secret of the future", name=name, vault=vault, date=date, named=named)
    elif (actual := secret.thumbprint) and (expected := identity.thumbprint) and actual != expected:
        yield fault(world, "another certificate", name=name, actual=actual, expected=expected, renewal=new_credential)


@of_identity(Stage.VAULT, Part.ROLES)
def secret_reader(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the key-vault-user has its role on the identity's secret, with `keyVaultUserScope: secrets`."""
    yield from _unreadable(world, identity.reader_roles, identity.secret)


def _unreadable(world: StackWorld, roles: Iterable[StateRole], name: str) -> Iterator[Fault]:
    """The faults of the key-vault-user's roles on the vault, or on the secret, of that name."""
    for role in roles:
        if evidence := role_fault(world, role):
            reader = known(world.state).key_vault_user
            yield fault(world, "no reader", reader=reader, name=name, evidence=evidence)
