"""Whether the identity's secret is in the vault, enabled, valid now, and the one that the stack delivered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from identity.credentials import rfc3339
from ops.doctor.model.check import Fault, Part, Stage, of_identity
from ops.doctor.model.expected import Identity
from ops.doctor.model.fixes import renewal
from ops.doctor.model.seen import entry, known
from ops.doctor.model.world import World

# Of clocks that disagree (identity.credentials.certificate.CLOCK_SKEW).
_SKEW: Final = timedelta(minutes=5)


def _find(world: World, identity: Identity) -> Iterator[Fault]:
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


CHECK = of_identity(Stage.VAULT, "secret", (Part.SECRETS,), _find)
