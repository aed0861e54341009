"""What `idstack status` prints, whole: a local stack, and a cluster of HyperShift's with something wrong in each table.

`make golden` writes the files again: read their diff as a user would.
"""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest

from identity.catalogue import CONTROL_PLANE, OPTIONAL
from identity.catalogue_rows import ControlPlaneIdentity
from identity.naming import credentials_secret_name
from localcloud.testing.hosts import Serve
from ops.commands import status
from ops.doctor import examination
from tests.records import write_record
from tests.unit.access_world import FakeApiServer
from tests.unit.golden_report import reviewed_file
from tests.unit.ops import answers
from tests.unit.ops.answers import FakeArm
from tests.unit.ops.cluster_access import CLUSTER
from tests.unit.ops.conftest import FakeEngine, Idstack, Printed, examined
from tests.unit.ops.stacks import (
    FakeCluster,
    local_environment,
    output,
    probe,
    report,
    running,
    write_kubeconfig,
)
from tests.unit.ops.world.test_cluster_state import HOSTED_CLUSTER, POD_STATUSES, pod_status

GOLDEN = Path(__file__).parent / "golden"
GROUP = "/subscriptions/s/resourceGroups/identity-dev/providers"
IDENTITIES = f"{GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities"
CLIENT = "6f2c1e7a-0000-4000-8000-00000000aaaa"
ROWS = [row for row in CONTROL_PLANE if row.enabled_by_default]


class FrozenDate(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls(2026, 11, 21, 17, 0, tzinfo=UTC)


def secret(row: ControlPlaneIdentity) -> str:
    return credentials_secret_name(row.secret_stem, "hc1")


def managed_identity(name: str) -> str:
    return f"{IDENTITIES}/hc1-{name}-hc1-infra"


def federated_credential(name: str, suffix: str) -> str:
    return f"{managed_identity(name)}/federatedIdentityCredentials/hc1-{name}-hc1-infra-{suffix}"


def outputs(cluster_side: str) -> dict[str, Any]:
    """A stack with every identity that is on by default, and every optional managed one."""
    managed = {row.field: {"clientID": CLIENT, "resourceID": managed_identity(row.name)} for row in OPTIONAL}
    cluster = {
        "namespace": "clusters",
        "controlPlane": {row.field: output(row.secret_provider_class, secret(row)) for row in ROWS},
        "dataPlane": {},
        "managedIdentities": managed,
    }
    stack = {"managementClusterId": CLUSTER, "clusterSide": cluster_side}
    return {**stack, "hostedClusters": {"hc1": cluster}}


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch) -> FakeArm:
    """ARM with the managed identities of the stack."""
    arm = FakeArm(
        *(answers.managed_identity(managed_identity(row.name), CLIENT) for row in OPTIONAL),
        *(
            answers.federated_credential(federated_credential(row.name, subject.suffix), subject.subject)
            for row in OPTIONAL
            for subject in row.subjects
        ),
    )
    versions = {secret(row): "2" * 32 for row in ROWS}
    examined(monkeypatch, versions)
    monkeypatch.setattr("ops.world.reader.deployer", lambda _: nullcontext(arm))
    for module in (status, examination):
        monkeypatch.setattr(module, "datetime", FrozenDate)
    return arm


@pytest.fixture
def api(cluster_api: FakeApiServer) -> FakeApiServer:
    """The management cluster: every identity is mounted in one pod, in the version of the vault."""
    pods = [
        pod_status(f"{row.mounts[0].deployment}-0", row.secret_provider_class, secret(row), "2" * 32) for row in ROWS
    ]
    cluster_api.documents[POD_STATUSES] = {"items": pods}
    return cluster_api


def reviewed(name: str, printed: Printed) -> None:
    """Assert that this is the reviewed text, blanks at line ends left out."""
    text = "".join(f"{line.rstrip()}\n" for line in f"{printed.output}{printed.error}".splitlines())
    reviewed_file(GOLDEN / f"{name}.txt", text)


def test_a_local_stack_shows_its_own_cluster_side(
    engine: FakeEngine, idstack: Idstack, arm: FakeArm, api: FakeApiServer, serve_plain: Serve, tmp_path: Path
) -> None:
    engine.has(outputs("stack"))
    engine.configures(managementCluster={"resourceGroup": "aks-dev", "name": "mgmt"})
    probes = FakeCluster()
    for row in ROWS:
        for mount in row.mounts:
            probes.add_pod(row.probe_name(mount), **running(serve_plain(probe(report(f"{mount.path}/{secret(row)}")))))
    state = tmp_path / "state"
    (state / "pulumi").mkdir(parents=True)
    (state / "pulumi/Pulumi.local.yaml").write_text("encryptionsalt: v1:of-this-machine")
    kubeconfig = write_kubeconfig(state / "kubeconfig", serve_plain(probes.app()))
    write_record(state / "environment.json", local_environment(state, kubeconfig))

    printed = idstack("status")

    reviewed("status-local", printed)
    assert printed.code == 0


def test_a_cluster_of_hypershifts_shows_what_is_not_as_expected(
    engine: FakeEngine, idstack: Idstack, arm: FakeArm, api: FakeApiServer
) -> None:
    engine.has(outputs("hypershift"))
    engine.configures(managementCluster={"resourceGroup": "aks-dev", "name": "mgmt"})
    old, away, *_ = api.documents[POD_STATUSES]["items"]
    old["status"]["objects"][0]["version"] = "1" * 32
    away["status"]["mounted"] = False
    message = "failed to encrypt data using KMS: 403 Forbidden"
    api.documents[HOSTED_CLUSTER] = {
        "status": {
            "conditions": [
                {"type": "Available", "status": "True", "reason": "AsExpected", "message": "ready"},
                {"type": "EtcdAvailable", "status": "True", "reason": "QuorumAvailable"},
                {"type": "ValidAzureKMSConfig", "status": "False", "reason": "AzureError", "message": message},
                {"type": "ValidOIDCConfiguration", "status": "True", "reason": "AsExpected"},
            ]
        }
    }
    [pulls, *_] = OPTIONAL
    for gone in (managed_identity(pulls.name), federated_credential("velero", "etcd-backup-job")):
        del arm.by_id[gone]

    printed = idstack("status", "--stack", "dev")

    reviewed("status-hypershift", printed)
    assert printed.code == 1
