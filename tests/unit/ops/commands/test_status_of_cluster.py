"""`idstack status`: what management cluster and Azure report, behind the credentials."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from identity.catalogue import WORKLOAD
from ops.stack.errors import CommandError
from tests.unit.access_world import FakeApiServer
from tests.unit.ops import answers
from tests.unit.ops.answers import FakeArm
from tests.unit.ops.cluster_access import CLUSTER
from tests.unit.ops.conftest import FakeEngine, Idstack, examined
from tests.unit.ops.world.test_cluster_state import HOSTED_CLUSTER, OUTPUTS, POD_STATUSES, VERSIONS, pod_status

GROUP = "/subscriptions/s/resourceGroups/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
PULL, VELERO = f"{GROUP}/hc1-acr-pull-hc1-infra", f"{GROUP}/hc1-velero-hc1-infra"
VELERO_POD, VELERO_JOB = (
    f"{VELERO}/federatedIdentityCredentials/hc1-velero-hc1-infra-{suffix}" for suffix in ("velero", "etcd-backup-job")
)
CLIENT = "6f2c1e7a-0000-4000-8000-00000000aaaa"
JOB = "system:serviceaccount:hypershift:etcd-backup-job"
POD = "system:serviceaccount:openshift-adp:velero"


ISSUER = "https://hc1oidc.blob.core.windows.net/hc1oidc"
DISK = f"{GROUP}/hc1-disk-hc1-infra"
[ROW] = [row for row in WORKLOAD if DISK.endswith(f"/hc1-{row.name}-hc1-infra")]
SUBJECTS = [subject.subject for subject in ROW.subjects]
TRUSTED = {
    subject: {
        "id": f"{DISK}/federatedIdentityCredentials/{subject.rpartition(':')[2]}",
        "subject": subject,
        "issuer": ISSUER,
    }
    for subject in SUBJECTS
}


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> FakeArm:
    """The cloud of a stack with two managed identities, one of them for service accounts."""
    arm = FakeArm(
        *(answers.managed_identity(id, CLIENT) for id in (PULL, VELERO, DISK)),
        answers.federated_credential(VELERO_POD, POD),
        answers.federated_credential(VELERO_JOB, JOB),
        *(answers.federated_credential(**one) for one in TRUSTED.values()),
    )
    monkeypatch.setattr("ops.world.reader.deployer", lambda _: nullcontext(arm))
    examined(monkeypatch, {})
    identities = {
        "velero": {"clientID": CLIENT, "resourceID": VELERO},
        "acrPull": {"clientID": CLIENT, "resourceID": PULL},
    }
    cluster = {"namespace": "clusters", "controlPlane": {}, "managedIdentities": identities}
    engine.has({"clusterSide": "stack", "hostedClusters": {"hc1": cluster}})
    return arm


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"issuer": "https://elsewhere.example.com"}, "replaced"),
        ({"audiences": ["api://AzureADTokenExchange"]}, "replaced"),
        ({"subject": "system:serviceaccount:default:default"}, "missing"),
    ],
    ids=["issuer", "audience", "subject"],
)
def test_a_credential_that_trusts_otherwise_is_said(
    arm: FakeArm, engine: FakeEngine, idstack: Idstack, changes: dict[str, Any], state: str
) -> None:
    """In a cluster that signs in by workload identities, of which one is looked at."""
    cluster = {
        **{"namespace": "clusters", "controlPlane": {}, "dataPlane": {ROW.field: CLIENT}},
        "managedIdentities": {ROW.field: {"clientID": CLIENT, "resourceID": DISK}},
        "hostedClusterSpec": {"issuerURL": ISSUER},
    }
    engine.has({"clusterSide": "hypershift", "hostedClusters": {"hc1": cluster}})
    first = TRUSTED[SUBJECTS[0]]
    states = {}
    for made in ({}, changes):
        arm.by_id[first["id"]] = answers.federated_credential(**{**first, **made})
        printed = idstack("status", "--stack", "dev", "--json")
        [row] = json.loads(printed.output)["managedIdentities"]["rows"]
        states[printed.code] = {one["subject"]: one["state"] for one in row["federatedCredentials"]}

    sound = dict.fromkeys(SUBJECTS, "exists")
    assert states == {0: sound, 1: {**sound, SUBJECTS[0]: state}}


def lines(printed: str) -> list[str]:
    """Without the blanks between columns."""
    return [" ".join(line.split()) for line in printed.splitlines()]


@pytest.mark.parametrize(
    ("resource", "becomes", "line"),
    [
        (PULL, None, f"hc1 acrPull {CLIENT} AcrPull missing"),
        (PULL, answers.managed_identity(PULL, "another"), f"hc1 acrPull {CLIENT} AcrPull replaced"),
        (VELERO_POD, None, "velero missing, etcd-backup-job exists"),
        (VELERO_POD, answers.federated_credential(VELERO_POD, JOB), "velero replaced, etcd-backup-job exists"),
    ],
)
def test_what_azure_does_not_have_is_shown_and_is_an_error(
    arm: FakeArm, idstack: Idstack, resource: str, becomes: dict[str, Any] | None, line: str
) -> None:
    arm.by_id[resource] = becomes
    identity = "acrPull" if resource == PULL else "velero"

    printed = idstack("status", "--stack", "dev")

    assert any(line in printed_line for printed_line in lines(printed.output))
    assert (printed.code, printed.error) == (
        1,
        f"idstack: these managed identities are missing in Azure or replaced: {identity} of hc1; "
        "`.venv/bin/idstack up --stack dev --refresh` creates them again\n",
    )


def test_what_cannot_be_read_is_a_line_and_not_sound(
    arm: FakeArm, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm.refuses = VELERO

    printed = idstack("status", "--stack", "dev")

    assert printed.code == 3
    assert "not read: velero of hc1: reading it: 403" in printed.output
    assert f"hc1 acrPull {CLIENT} AcrPull exists" in lines(printed.output)
    assert any("not known velero not known, etcd-backup-job not known" in line for line in lines(printed.output))

    def refuse(*_: object) -> None:
        raise CommandError("signing in: AADSTS700016")

    monkeypatch.setattr("ops.world.reader.deployer", refuse)
    out_of_reach = idstack("status", "--stack", "dev")
    assert out_of_reach.code == 3
    assert "not read: acrPull of hc1: Azure: signing in: AADSTS700016" in out_of_reach.output


@pytest.fixture
def api(cluster_api: FakeApiServer, monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> FakeApiServer:
    """The cluster of a stack with one pod of an old version and a condition that is not as expected."""
    examined(monkeypatch, VERSIONS)
    engine.has({**OUTPUTS, "managementClusterId": CLUSTER})
    engine.configures(managementCluster={"resourceGroup": "aks-dev", "name": "mgmt"})
    broken = {"type": "ValidAzureKMSConfig", "status": "False", "reason": "AzureError", "message": "encrypt failed"}
    cluster_api.documents[HOSTED_CLUSTER] = {"status": {"conditions": [broken]}}
    pods = [pod_status("ingress-operator-0", "managed-azure-ingress", "ingress-hc1-json", "1111")]
    cluster_api.documents[POD_STATUSES] = {"items": pods}
    return cluster_api


def test_scripts_get_them_beside_the_rows(api: FakeApiServer, idstack: Idstack) -> None:
    document = json.loads(idstack("status", "--stack", "dev", "--json").output)

    assert (len(document["rows"]), document["managedIdentities"]) == (2, {"rows": [], "unread": []})
    condition = {"type": "ValidAzureKMSConfig", "status": "False", "reason": "AzureError", "message": "encrypt failed"}
    mount = {"pod": "ingress-operator-0", "version": "1111", "vaultVersion": "2222", "state": "old"}
    assert document["managementCluster"] == {
        "mounts": {"hc1": {"ingress": [mount]}},
        "conditions": {"hc1": [{**condition, "expected": False}]},
        "unread": [],
    }


@pytest.mark.parametrize(("side", "lines"), [("hypershift", 1), ("stack", 0)])
def test_a_stack_without_a_management_cluster_says_so_where_it_matters(
    api: FakeApiServer, engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch, side: str, lines: int
) -> None:
    def refuse(*_: object) -> None:
        raise CommandError("AKS does not answer")

    monkeypatch.setattr("ops.access.clients.stack_access", refuse)
    out_of_reach = idstack("status", "--stack", "dev")
    assert (out_of_reach.code, "management cluster: AKS does not answer" in out_of_reach.output) == (0, True)
    engine.has({**OUTPUTS, "clusterSide": side})

    printed = idstack("status", "--stack", "dev")

    assert printed.output.count("not read: the management cluster: the stack's configuration has no") == lines
