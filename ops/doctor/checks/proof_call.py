"""Whether the probe's last call, which only the identity's own role grants, was granted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ops.doctor.model.check import Fault, Part, Stage, of_identity
from ops.doctor.model.expected import Identity
from ops.doctor.model.reports import reports_of
from ops.doctor.model.world import World

_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404


def _find(world: World, identity: Identity) -> Iterator[Fault]:
    for _, pod, report in reports_of(world, identity):
        if report.is_proven or not report.is_signed_in:
            continue
        error = " ".join((report.proof_error or "it has not called yet").split())
        if report.proof_status == _FORBIDDEN:
            fix = "the roles are there: wait ten minutes for Azure, then look for a deny assignment or a locked network"
        elif report.proof_status == _NOT_FOUND:
            fix = f"what the call asks for is gone: correct the hosted cluster's configuration, then {world.make('up')}"
        else:
            fix = "let the pod reach the service: look at its network policies, proxy and DNS"
        yield Fault(evidence=f"{pod.name}: {report.action or 'the proof call'}: {error}", fix=fix)


CHECK = of_identity(Stage.PROOF_CALL, "proof-call", (Part.REPORTS, Part.CONTROL_PLANES), _find)
