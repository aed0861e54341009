"""A catalogue with one row more, and the stack built from it, in a process of its own (`python -m`).

The row is in the table before any other module of the program reads it, as if it stood in the file. Prints as JSON what
the engine receives: inputs by name, and the hosted cluster's outputs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from identity import catalogue, roles
from identity.catalogue_rows import ControlPlaneIdentity, Mount, ProofCall, RoleGrant, Scope

# As HyperShift's scripts make it for backups (contrib/managed-azure/setup_MIv3_kv.sh:37); no API field is there yet.
BACKUP = ControlPlaneIdentity(
    field="velero",
    description="backup of the hosted control plane (Velero)",
    hosted_cluster_path=(
        "platform",
        "azure",
        "azureAuthenticationConfig",
        "managedIdentities",
        "controlPlane",
        "velero",
    ),
    component="velero",
    secret_provider_class="managed-azure-velero",
    secret_stem="velero",
    hypershift=RoleGrant(roles.CONTRIBUTOR_ROLE, (Scope.MANAGED,)),
    builtin=RoleGrant(roles.CONTRIBUTOR_ROLE, (Scope.MANAGED,)),
    mounts=(Mount(deployment="velero", container="velero", volume="velero-cert"),),
    proof=ProofCall(
        path="/subscriptions/{subscription}/resourcegroups/{managed}",
        api_version="2021-04-01",
        action="Microsoft.Resources/subscriptions/resourceGroups/read",
    ),
    optional=True,
)


def main(folder: Path) -> None:
    """Build the stack with the tenth row; `folder` is the project's, with a kubeconfig in it."""
    vars(catalogue)["CONTROL_PLANE"] = (*catalogue.CONTROL_PLANE, BACKUP)
    from tests.unit.components.program import run_program

    recorder = run_program(folder)
    registered = {resource.name: resource.inputs for resource in recorder.registered if not resource.is_component}
    print(json.dumps({"registered": registered, "outputs": recorder.outputs_of("hc1")}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
