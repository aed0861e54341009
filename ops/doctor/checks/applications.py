"""Whether nobody else can sign in as an identity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Check, Fault, Stage, of_identity
from ops.world.expected import Identity
from ops.world.seen import Part, StackWorld, entry


def _find_added(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the identity's application has only the credentials that the stack gave it."""
    application = entry(world.applications, identity.client_id) if identity.generation is not None else None
    if application is not None and application.added:
        yield Fault(
            evidence=f"somebody added to the application {identity.client_id}: {'; '.join(application.added)}",
            fix=f"if it is not meant to be there, remove it: `az ad app credential delete --id {identity.client_id} "
            "--key-id <id>`, `az ad app federated-credential delete` for a federated credential",
        )


CHECKS: Final[tuple[Check, ...]] = (
    of_identity(Stage.APPLICATIONS, "added-credentials", (Part.APPLICATIONS,), _find_added),
)
