"""Whether the loader accepts the mounted document, and it is the identity's own. The check never reads its content."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from identity.credentials import rfc3339
from ops.doctor.model.check import Check, Fault, Stage, of_identity
from ops.doctor.model.lookups import REFUSED_DOCUMENT, renewal, reports_of
from ops.world.expected import Identity
from ops.world.seen import Part, StackWorld, entry

# The driver polls, then the loader polls its file, as in `mount`.
_LOAD_TIMEOUT: Final = timedelta(minutes=10)


def _find(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    fix = renewal(world, identity)
    for _, pod, report in reports_of(world, identity):
        error = report.sign_in_error or ""
        if error.startswith(REFUSED_DOCUMENT):
            yield Fault(evidence=f"{pod.name} cannot use {identity.secret}: {' '.join(error.split())}", fix=fix)
            continue
        client, expires, thumbprint = report.client_id, report.expires, report.thumbprint
        secret = entry(world.secrets, identity.secret)
        if client and client.lower() != identity.client_id.lower():
            evidence = f"{pod.name} loaded the credential of client {client}; the identity is {identity.client_id}"
        elif expires and expires <= world.now:
            evidence = f"{pod.name} loaded a credential that expired at {rfc3339.render(expires)}"
        elif (
            thumbprint
            and identity.thumbprint not in (None, thumbprint)
            and secret is not None
            and world.now - secret.created >= _LOAD_TIMEOUT
        ):
            evidence = f"{pod.name} loaded the certificate {thumbprint}; the stack delivered {identity.thumbprint}"
        else:
            continue
        yield Fault(evidence=evidence, fix=fix)


CHECKS: Final[tuple[Check, ...]] = (
    of_identity(Stage.DOCUMENT, "document", (Part.REPORTS, Part.CONTROL_PLANES, Part.SECRETS), _find),
)
