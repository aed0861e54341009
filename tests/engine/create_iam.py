"""What `hypershift create iam azure` makes, by the same requests, and `create infra azure --assign-identity-roles`.

Sources in openshift/hypershift at 3ee9615: `cmd/infra/azure/identities.go`, `cmd/infra/azure/rbac.go:86-133`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE
from tests.engine.hypershift_scripts import HyperShiftScripts

_VERSION: Final = "2023-01-31"


def create_iam(scripts: HyperShiftScripts, cluster: str, infra_id: str, issuer_url: str, file: Path) -> dict[str, Any]:
    """Make the identities of a cluster with KMS, and write the file; returns its content."""
    found: dict[str, Any] = {}
    for row in CONTROL_PLANE:
        if row.workload is None:
            continue
        name = f"{cluster}-{row.workload.name}-{infra_id}"
        identity = f"{scripts.group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
        made = scripts.arm("PUT", identity, _VERSION, {"location": "eastus"})["properties"]
        for subject in row.workload.subjects:
            last = f"-{subject.suffix}" if subject.suffix else ""
            credential = f"{cluster}-{row.workload.stem or row.workload.name}-fed-id{last}"
            federated = {"issuer": issuer_url, "subject": subject.subject, "audiences": ["openshift"]}
            path = f"{identity}/federatedIdentityCredentials/{credential}"
            scripts.arm("PUT", path, _VERSION, {"properties": federated})
        if row.workload.path is None:
            scripts.assign_as_the_cli(infra_id, row.component, row.hypershift, made["principalId"])
            found[row.field] = {"clientID": made["clientId"]}
        else:
            found[f"{row.field}ClientID"] = made["clientId"]
    file.write_text(json.dumps(found, indent=2), encoding="utf-8")
    return found
