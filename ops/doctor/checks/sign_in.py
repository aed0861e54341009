"""Whether the probe's last sign-in with the mounted credential worked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Fault, Part, Stage, of_identity
from ops.doctor.model.expected import Identity
from ops.doctor.model.fixes import renewal
from ops.doctor.model.reports import reports_of
from ops.doctor.model.world import World

# learn.microsoft.com/entra/identity-platform/reference-error-codes
_FIXES: Final = (
    ("AADSTS700027", "the certificate is not registered: {repair}"),
    ("AADSTS7000112", "the service principal is disabled: `az ad sp update --id {client} --set accountEnabled=true`"),
    ("AADSTS700016", "the tenant has no such application: {recover}"),
    ("AADSTS7000222", "the certificate has expired: {rotate}"),
    ("AADSTS700024", "the clock of the node, or of Entra ID, is wrong: set the node's right"),
    ("AADSTS90002", "there is no such tenant: correct `tenantId`, then {up}"),
    ("AADSTS53003", "a Conditional Access policy for workload identities refuses it: look at the sign-in logs"),
)
_UNREACHED: Final = "let the pod reach the authority: look at its network policies, proxy and DNS"


def _find(world: World, identity: Identity) -> Iterator[Fault]:
    for _, pod, report in reports_of(world, identity):
        error = report.sign_in_error
        if report.is_signed_in or not (error or report.expires):
            continue
        fix = next((fix for code, fix in _FIXES if f"{code}:" in (error or "")), _UNREACHED)
        yield Fault(
            evidence=f"{pod.name}: {error or 'it has not signed in yet'}",
            fix=fix.format(
                repair=world.repair,
                recover=world.make("recover"),
                up=world.make("up"),
                client=identity.client_id,
                rotate=renewal(world, identity),
            ),
        )


CHECK = of_identity(Stage.SIGN_IN, "sign-in", (Part.REPORTS, Part.CONTROL_PLANES), _find)
