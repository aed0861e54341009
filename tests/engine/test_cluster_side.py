"""Two hosted clusters on one management cluster, whose objects there the stack or HyperShift makes."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from identity.resource_types import NETWORK_API
from localcloud.testing import networks
from localcloud.testing.arm import SUBSCRIPTION
from tests.engine.changing import CLASSES, GIVEN, MOUNTS, RELEASE, another_imported, with_applications
from tests.engine.out_of_band import OutOfBand
from tests.harness import running_stack

pytestmark = pytest.mark.slow

DEPLOYMENTS = ("apps", "v1", "deployments")
CLASS_RESOURCE = ("secrets-store.csi.x-k8s.io", "v1", "secretproviderclasses")
HOSTED_CLUSTERS = ("hypershift.openshift.io", "v1beta1", "hostedclusters")

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
        for service, word in (
            ("APIServer", "api"),
            ("Ignition", "ignition"),
            ("Konnectivity", "konnectivity"),
            ("OAuthServer", "oauth"),
        )
    ],
    "serviceAccountSigningKey": GIVEN["serviceAccountSigningKey"],
    "olmCatalogPlacement": "management",
}


class ClusterContents:
    """What is in the cluster: names, and versions that change with every write of the specification."""

    def __init__(self, api: client.ApiClient) -> None:
        self._objects = client.CustomObjectsApi(api)
        # The user's own, who puts the pull secret there.
        client.CoreV1Api(api).create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="clusters")))

    def hosted_clusters(self) -> dict[str, Any]:
        """Specification by name."""
        return {
            hosted_cluster["metadata"]["name"]: hosted_cluster["spec"]
            for hosted_cluster in self._list("clusters", HOSTED_CLUSTERS)
        }

    def side(self, namespace: str) -> dict[str, Any]:
        """SecretProviderClasses and Deployments of one control plane."""
        classes, deployments = self._list(namespace, CLASS_RESOURCE), self._list(namespace, DEPLOYMENTS)
        return {
            **{class_["metadata"]["name"]: class_["metadata"]["resourceVersion"] for class_ in classes},
            **{deployment["metadata"]["name"]: deployment["metadata"]["generation"] for deployment in deployments},
        }

    def _list(self, namespace: str, resource: tuple[str, str, str]) -> list[dict[str, Any]]:
        group, version, plural = resource
        found: Any = self._objects.list_namespaced_custom_object(group, version, namespace, plural)
        return list(found["items"])


def test_hypershift_makes_the_objects_of_two_clusters_and_then_the_stack_does(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack, config.new_client_from_config(stack.environment.kubeconfig) as api:
        cluster = ClusterContents(api)
        [first] = stack.configuration("hostedClusters")
        another = another_imported(stack, first["identities"]["imageRegistry"])
        second = with_applications(first, "nodePoolManagement", imported=another)
        second |= {"name": "hc2", "infraID": "hc2-infra"}
        first = with_applications(first, "nodePoolManagement", "disk")

        def sides() -> list[dict[str, Any]]:
            return [cluster.side("clusters-hc1"), cluster.side("clusters-hc2")]

        _make_egress(OutOfBand(stack), second["resourceGroup"], second["infraID"])
        given = [{**first, "hostedCluster": RELEASE}, {**second, "hostedCluster": {"manifest": {"spec": GIVEN}}}]
        with stack.configured(clusterSide="hypershift", hostedClusters=given):
            stack.up()
            described = stack.outputs["hostedClusters"]
            _require_applied(cluster.hosted_clusters(), described)
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
                assert cluster.hosted_clusters() == {}


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
