"""Two hosted clusters on one management cluster, whose objects there the stack or HyperShift makes."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from identity.resource_types import NETWORK_API
from localcloud.testing import networks
from localcloud.testing.arm import SUBSCRIPTION
from tests.engine.changing import CLASSES, GIVEN, MOUNTS, RELEASE, another_imported, with_applications
from tests.engine.out_of_band import OutOfBand
from tests.harness import running_stack

pytestmark = pytest.mark.slow

DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
CLASSES_OF = "/apis/secrets-store.csi.x-k8s.io/v1/namespaces/{}/secretproviderclasses"
HOSTED_CLUSTERS = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters"

# Reports to the test whose credentials it finds where their consumers look, then stays.
READER = """
import json, os, socket, sys, threading
port, *files = sys.argv[1:]
found = {"clients": [json.load(open(file))["client_id"] for file in files]}
found["config"] = json.load(open(os.environ["AZURE_CREDENTIAL_FILE"]))["aadMSIDataPlaneIdentityPath"]
with socket.create_connection(("127.0.0.1", int(port))) as connection:
    connection.sendall(json.dumps(found).encode())
threading.Event().wait()
"""


_HOSTS = {"APIServer": "api", "Ignition": "ignition", "Konnectivity": "konnectivity", "OAuthServer": "oauth"}
# A part of the HostedCluster that the stack makes of `RELEASE`.
WRITTEN = {
    "release": GIVEN["release"],
    "pullSecret": GIVEN["pullSecret"],
    "services": [
        {
            "service": service,
            "servicePublishingStrategy": {
                "type": "Route",
                "route": {"hostname": f"{word}-hc1.control-planes.local.example.com"},
            },
        }
        for service, word in _HOSTS.items()
    ],
    "serviceAccountSigningKey": GIVEN["serviceAccountSigningKey"],
    "olmCatalogPlacement": "management",
}


def by_name(http: httpx.Client, *paths: str) -> dict[str, Any]:
    """The specifications of all objects of these collections."""
    found = (http.get(path).raise_for_status().json()["items"] for path in paths)
    return {item["metadata"]["name"]: item["spec"] for items in found for item in items}


def test_hypershift_makes_the_objects_of_two_clusters_and_then_the_stack_does(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack, stack.kubernetes() as http:
        # The user's own, who puts the pull secret there.
        http.post("/api/v1/namespaces", json={"metadata": {"name": "clusters"}}).raise_for_status()
        [first] = stack.configuration("hostedClusters")
        another = another_imported(stack, first["identities"]["imageRegistry"])
        second = with_applications(first, "nodePoolManagement", imported=another)
        second |= {"name": "hc2", "infraID": "hc2-infra"}
        first = with_applications(first, "nodePoolManagement", "disk")

        def sides() -> list[dict[str, Any]]:
            kinds = (CLASSES_OF, DEPLOYMENTS)
            return [by_name(http, *(kind.format(f"clusters-{name}") for kind in kinds)) for name in ("hc1", "hc2")]

        _make_egress(OutOfBand(stack), second["resourceGroup"], second["infraID"])
        given = [{**first, "hostedCluster": RELEASE}, {**second, "hostedCluster": {"manifest": {"spec": GIVEN}}}]
        with stack.configured(clusterSide="hypershift", hostedClusters=given):
            stack.up()
            described = stack.outputs["hostedClusters"]
            _require_applied(by_name(http, HOSTED_CLUSTERS), described)
            assert sides() == [{}, {}], "it is left to HyperShift's operators"
            # There are no pods of HyperShift to look at.
            _require_status(stack.idstack("status", check=False).stdout)
        with socket.create_server(("127.0.0.1", 0)) as server:
            reader = _reader(server)
            with stack.configured(hostedClusters=[{**first, "workloads": [reader]}, second]):
                stack.up()
                clients = [described["hc1"]["controlPlane"][field]["clientID"] for field in ("disk", "kms")]
                mounted = {"clients": clients, "config": "/mnt/certs/azure-disk-hc1-json"}
                assert [_received(server), _received(server)] == [mounted] * 2
                assert [len(side) for side in sides()] == [CLASSES + MOUNTS + 1, CLASSES + MOUNTS]
                assert by_name(http, HOSTED_CLUSTERS) == {}


def _make_egress(somebody: OutOfBand, group: str, name: str) -> None:
    """Make the egress load balancer of another hosted cluster, with its public address."""
    here = f"{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Network"
    address, balancer = f"{here}/publicIPAddresses/{name}", f"{here}/loadBalancers/{name}"
    somebody.arm("PUT", address, NETWORK_API, networks.address_body())
    somebody.arm("PUT", balancer, NETWORK_API, networks.balancer_body(balancer, address, name))


def _reader(server: socket.socket) -> dict[str, Any]:
    """The workload, twice, which reports to this server."""
    server.settimeout(60)
    return {
        "name": "reader",
        "image": "registry.example.com/reader:1",
        "command": ["python", "-c", READER],
        "args": [str(server.getsockname()[1]), "/mnt/certs/azure-disk-hc1-json", "/mnt/kms/kms-hc1-json"],
        "identities": ["disk", "kms"],
        "replicas": 2,
    }


def _received(server: socket.socket) -> Any:
    connection, _ = server.accept()
    with connection, connection.makefile("rb") as stream:
        return json.load(stream)


def _require_applied(applied: dict[str, Any], described: dict[str, Any]) -> None:
    """HostedClusters have the user's part and the stack's."""
    expected = {"hc1": WRITTEN, "hc2": GIVEN}
    assert {name: _within(expected[name], spec) for name, spec in applied.items()} == expected
    for name, spec in applied.items():
        written = described[name]["hostedClusterSpec"]
        assert _within(written, spec) == written


def _within(shape: Any, found: Any) -> Any:
    """What stands in `found` where `shape` has something: a real API server adds defaults."""
    if isinstance(shape, dict) and isinstance(found, dict):
        return {key: _within(shape[key], found[key]) for key in shape if key in found}
    return found


def _require_status(status: str) -> None:
    """That there are no probes of credentials is no error."""
    table, *unread = status.split("\nnot read: ")
    assert table.count("managed-azure-") == 2 * CLASSES
    assert len(unread) == 2 * CLASSES + 2, "HyperShift has made neither a pod nor a class of two clusters yet"
    assert "sign-in" not in status
