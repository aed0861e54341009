"""One identity more is one row of the catalogue, and one case here."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.unit.components.program import PROJECT
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import GROUPS, KUBECONFIG, ROLES


@pytest.fixture(scope="module")
def tenth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tenth")
    (folder / "kubeconfig").write_text(KUBECONFIG, encoding="utf-8")
    command = [sys.executable, "-m", "tests.unit.components.tenth_identity", str(folder)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_has_everything_that_the_nine_have(stack: RecordingMonitor, tenth: dict[str, Any]) -> None:
    """The control-plane operator has no document of its own either, and it is granted its role in more places."""
    own = {name.replace("velero", "cpo") for name in tenth["registered"] if "velero" in name}
    operators = {
        resource.name.replace("control-plane-operator", "cpo")
        for resource in stack.registered
        if not resource.is_component and ("control-plane-operator" in resource.name or "cpo" in resource.name)
    }

    assert own == {name for name in operators if not name.endswith(("roles-nsg", "roles-vnet"))}
    assert len(own) == 10


def test_nothing_else_changes(stack: RecordingMonitor, tenth: dict[str, Any]) -> None:
    others = {name for name in tenth["registered"] if "velero" not in name}

    assert others == {resource.name for resource in stack.registered if not resource.is_component}


def test_its_row_describes_it(tenth: dict[str, Any]) -> None:
    registered = tenth["registered"]
    secret = registered["hc1-velero-credential-secret"]
    role = registered["hc1-velero-roles-managed"]
    objects = registered["hc1-cluster-side-velero-class-object"]["spec"]["parameters"]["objects"]
    pod = registered["hc1-cluster-side-probe-velero-deployment"]["spec"]["template"]["spec"]

    assert (secret["secretName"], registered["hc1-velero-entra-application"]["displayName"]) == (
        "velero-hc1-json",
        "velero-hc1",
    )
    assert (role["roleDefinitionId"], role["scope"]) == (
        f"{ROLES}/b24988ac-6180-42a0-ab88-20f7382dd24c",
        f"{GROUPS}/hc1-managed",
    )
    assert "objectName: velero-hc1-json\n" in objects
    assert pod["volumes"][0]["csi"]["volumeAttributes"] == {"secretProviderClass": "managed-azure-velero"}
    assert "file:/mnt/certs/velero-hc1-json" in pod["containers"][0]["args"]


def test_it_is_in_the_outputs_and_in_the_hosted_cluster(tenth: dict[str, Any]) -> None:
    outputs = tenth["outputs"]
    identities = outputs["spec"]["platform"]["azure"]["azureAuthenticationConfig"]["managedIdentities"]

    assert outputs["control_plane"]["velero"]["secretProviderClass"] == "managed-azure-velero"
    assert identities["controlPlane"]["velero"]["credentialsSecretName"] == "velero-hc1-json"
