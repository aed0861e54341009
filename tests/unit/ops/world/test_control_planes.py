"""The control plane's namespace as the API server shows it, and the probes' reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from identity.aks.api_server import ApiServer
from ops.world.cluster_state import ProbeResult, ProbeResults, read_control_plane
from ops.world.expected import StackState
from ops.world.seen import Part, SeenContainer, SeenControlPlane, SeenReport, SeenWarning, Unread, known
from tests.unit.access_world import FakeApiServer
from tests.unit.ops.doctor import worlds
from tests.unit.ops.stacks import refused, report
from tests.unit.ops.world.test_cluster_state import HOSTED_CLUSTER, POD_STATUSES, pod_status, server

__all__ = ["server"]

STATE = worlds.state(worlds.healthy())
CORE = "/api/v1/namespaces/clusters-hc1"
CLASSES = "/apis/secrets-store.csi.x-k8s.io/v1/namespaces/clusters-hc1/secretproviderclasses"
PARTS = (Part.CONTROL_PLANES, Part.REPORTS)
POD = "probe-ingress-3df2dd6f48-cq9f8"
CREATED = "2026-11-23T04:30:33Z"


def pod(name: str = POD, *, address: str = "10.0.0.7", port: int = 8080, **metadata: Any) -> dict[str, Any]:
    """The pod of a probe, not ready yet."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    container = {
        "name": "credential-probe",
        "ports": [{"containerPort": port}],
        "env": [{"name": "POD_IP", "valueFrom": {}}, {"name": "FILE", "value": "/mnt/certs/x"}],
        "volumeMounts": [{"name": "cert", "mountPath": "/mnt/certs/"}],
    }
    attributes = {"volumeAttributes": {"secretProviderClass": "managed-azure-ingress"}}
    mounted = {"name": "cert", "csi": {"driver": "secrets-store.csi.k8s.io", **attributes}}
    labels = {"app.kubernetes.io/name": "credential-probe"}
    own = {"name": name, "namespace": "clusters-hc1", "labels": labels, "creationTimestamp": CREATED}
    return {
        "metadata": own | metadata,
        "spec": {"containers": [container], "volumes": [mounted, {"name": "tmp", "emptyDir": {}}]},
        "status": {
            "phase": "Running",
            "podIP": address,
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [{"name": "credential-probe", "state": waiting}],
        },
    }


@pytest.fixture
def api() -> FakeApiServer:
    api = FakeApiServer()
    parameters = {"keyvaultName": "kv"}
    named = {"metadata": {"name": "managed-azure-ingress"}, "spec": {"provider": "azure", "parameters": parameters}}
    api.documents[CLASSES] = {"items": [named]}
    api.documents[POD_STATUSES] = {"items": [pod_status(POD, "managed-azure-ingress", "ingress-hc1-json", "1111")]}
    api.documents[f"{CORE}/pods"] = {"items": [pod(), pod("probe-old-1-1", deletionTimestamp=CREATED)]}
    involved = {"kind": "Pod", "name": POD}
    failed = {"type": "Warning", "reason": "FailedMount", "message": "403", "involvedObject": involved}
    of_a_set = {**failed, "involvedObject": {"kind": "ReplicaSet", "name": "x"}, "lastTimestamp": CREATED}
    newer = {**failed, "lastTimestamp": None, "eventTime": "2026-11-23T04:31:33.000001Z"}
    normal = {**newer, "type": "Normal"}
    api.documents[f"{CORE}/events"] = {"items": [newer, of_a_set, normal]}
    return api


def seen(
    server: ApiServer, state: StackState = STATE, results: ProbeResults | Unread | None = None
) -> SeenControlPlane:
    return read_control_plane(server, state.clusters[0], PARTS, results)


def test_objects_are_taken_as_far_as_the_checks_need_them(server: ApiServer) -> None:
    found = seen(server)

    assert known(found.classes)["managed-azure-ingress"]["parameters"] == {"keyvaultName": "kv"}
    [mount] = known(found.mounts)
    assert (mount.pod, mount.is_mounted, mount.versions) == (POD, True, {"secret/ingress-hc1-json": "1111"})
    [only] = known(found.pods)
    assert (only.name, only.deployment, only.is_ready) == (POD, "probe-ingress", False)
    assert only.waiting == "CrashLoopBackOff: back-off"
    assert only.classes == {"cert": "managed-azure-ingress"}
    assert only.containers == {
        "credential-probe": SeenContainer(mounts={"/mnt/certs": "cert"}, variables={"FILE": "/mnt/certs/x"})
    }
    [warning] = known(found.warnings)
    assert isinstance(warning, SeenWarning)
    assert (warning.pod, warning.reason, warning.last.second) == (POD, "FailedMount", 33)
    assert found.hosted_cluster is None


def test_what_is_forbidden_is_unread_each_for_itself(api: FakeApiServer, server: ApiServer) -> None:
    report_path = f"{CORE}/pods/{POD}:8080/proxy/readyz"
    api.unreadable = {CLASSES, f"{CORE}/events", report_path}

    found = seen(server)

    assert isinstance(found.classes, Unread)
    assert "may not read" in found.classes.why
    assert isinstance(found.warnings, Unread)
    assert len(known(found.pods)) == len(known(found.mounts)) == 1
    assert found.reports == {POD: Unread(f"{report_path} at {server.server} answers 403")}
    api.unreadable = {f"{CORE}/pods"}
    assert seen(server).reports == {}, "without its pods no report is read"


def test_a_report_comes_through_the_api_server(api: FakeApiServer, server: ApiServer) -> None:
    path = f"{CORE}/pods/{POD}:8080/proxy/readyz"
    api.documents[path] = refused("AADSTS700027: not registered")
    api.codes[path] = 503

    found = known(seen(server).reports[POD])

    assert (found.sign_in.ok, found.sign_in.error) == (False, "AADSTS700027: not registered")
    assert (found.file, found.client_id) == ("/mnt/certs/ingress-hc1-json", "6f2c1e7a-0000-4000-8000-00000000bbbb")


def test_on_this_machine_a_report_is_that_of_the_probes_which_were_read(server: ApiServer) -> None:
    found, place = SeenReport.of(report("/mnt/certs/ingress-hc1-json")), ("clusters-hc1", "probe-ingress")
    foreign = {("clusters-hc2", "probe-kms"): ProbeResult("probe-kms-1-1", found)}
    for own, seen_report in ((found, found), (None, Unread("it is pending"))):
        results = ProbeResults({place: ProbeResult(POD, own, "it is pending"), **foreign})
        assert seen(server, results=results).reports == {POD: seen_report}
    assert seen(server, results=Unread("no answer")).reports == {POD: Unread("no answer")}


def test_of_hypershift_the_hosted_cluster_is_read_and_no_probe(api: FakeApiServer, server: ApiServer) -> None:
    of_hypershift = replace(STATE, clusters=(replace(STATE.clusters[0], side="hypershift"),))
    assert seen(server, of_hypershift).hosted_cluster is None, "nobody has applied it yet"
    conditions = [{"type": "Available", "status": "False", "reason": "x"}]
    api.documents[HOSTED_CLUSTER] = {"spec": {"infraID": "i"}, "status": {"conditions": conditions}}

    found = seen(server, of_hypershift)

    hosted = known(found.hosted_cluster)
    assert hosted is not None
    assert hosted.spec == {"infraID": "i"}
    assert [condition.is_expected for condition in hosted.conditions] == [False]
    assert found.reports == {}
