"""Whether Entra ID knows the identity's certificate, and lets it sign in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from identity.credentials import rfc3339
from identity.credentials.symptom import Family
from identity.credentials.symptoms import find
from ops.doctor.model.check import Check, Fault, Stage, of_identity
from ops.doctor.model.lookups import of_symptom, renewal, reports_of
from ops.world.expected import Identity
from ops.world.seen import Part, StackWorld, entry


def _find_registration(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether Entra ID has the application, enabled, with the certificate that the stack delivered."""
    if identity.generation is None:
        return  # a managed identity: Azure keeps its certificates, which are not readable
    client, application = identity.client_id, entry(world.applications, identity.client_id)
    if application is None:
        yield Fault(
            evidence=f"Entra ID has no application with the client id {client}",
            fix=f"{world.command('recover')} creates another one, with a new credential and its roles",
        )
        return
    if application.is_enabled is None:
        yield Fault(evidence=f"the application {client} has no service principal", fix=world.repair)
    elif not application.is_enabled:
        yield Fault(
            evidence=f"the service principal of {client} is disabled",
            fix=f"`az ad sp update --id {client} --set accountEnabled=true`",
        )
    elif identity.thumbprint is not None and identity.thumbprint not in application.certificates:
        yield Fault(
            evidence=f"the certificate {identity.thumbprint} is not registered on the application {client}",
            fix=_revoke_or_register(world, identity),
        )
    elif identity.thumbprint is not None and (end := application.certificates[identity.thumbprint]) <= world.now:
        yield Fault(
            evidence=f"the registration of {identity.thumbprint} ended at {rfc3339.render(end)}",
            fix=renewal(world, identity),
        )


def _revoke_or_register(world: StackWorld, identity: Identity) -> str:
    """The certificate may have been removed after a leak, and the vault still has its key."""
    rotate = ("rotate", "--identity", f"{identity.cluster}/{identity.identity}")
    revocation, registration = world.command(*rotate, "--revoke", "--now"), world.command(*rotate, "--register")
    return f"if it was removed because its key leaked, {revocation}; otherwise {registration}"


REGISTRATION = of_identity(Stage.SIGN_IN, "registration", (Part.APPLICATIONS,), _find_registration)


_UNREACHED: Final = "let the pod reach the authority: check its network policies, proxy and DNS"


def _find_sign_in(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the probe's last sign-in with the mounted credential worked."""
    for _, pod, report in reports_of(world, identity):
        error = report.sign_in_error
        if report.is_signed_in or not (error or report.expires):
            continue
        symptom = find(error or "", Family.ENTRA_ID)
        yield Fault(
            evidence=f"{pod.name}: {error or 'it has not signed in yet'}",
            fix=of_symptom(world, identity, symptom) if symptom else _UNREACHED,
        )


SIGN_IN = of_identity(Stage.SIGN_IN, "sign-in", (Part.REPORTS, Part.CONTROL_PLANES), _find_sign_in)

CHECKS: Final[tuple[Check, ...]] = (REGISTRATION, SIGN_IN)
