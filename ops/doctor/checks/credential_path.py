"""Whether the consumer's variable or document leads to a file that is there."""

from __future__ import annotations

from collections.abc import Iterator

from ops.doctor.model.check import Fault, Part, Stage, of_identity
from ops.doctor.model.expected import Identity
from ops.doctor.model.reports import reports_of
from ops.doctor.model.world import StackWorld

# Of `identity.credentials.document.InvalidCredential`: the file is there, and its content is refused.
REFUSED_DOCUMENT = "credential document:"


def _find(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    for mount, pod, report in reports_of(world, identity):
        error, wanted = report.sign_in_error, mount.path(identity.secret)
        found = report.file
        if found is not None and found != wanted:
            evidence = f"{pod.name} looks for its credential at {found}; it is mounted at {wanted}"
        elif error and not report.expires and not error.startswith(REFUSED_DOCUMENT):
            evidence = f"{pod.name}: {' '.join(error.split())}"
        else:
            continue
        where = f"the Secret {mount.document_secret}" if mount.document_secret else f"the Deployment {mount.deployment}"
        yield Fault(evidence=evidence, fix=f"{world.repair} writes {where} in {identity.namespace} anew")


CHECK = of_identity(Stage.VOLUME, "path", (Part.REPORTS, Part.CONTROL_PLANES), _find)
