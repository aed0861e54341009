"""The configuration documents by which consumers learn where their credential file is, and the objects with them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from components.kubernetes.cloud_config import DOCUMENTS, cloud_controller_manager, render
from identity.catalogue_rows import CloudConfigKind
from tests.unit import cases
from tests.unit.components import world
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import VNET, hosted_cluster, settings

PATH = "/mnt/certs/x-json"


@pytest.mark.parametrize("kind", CloudConfigKind)
def test_beside_a_credential_file_no_other_way_to_sign_in_is_switched_on(kind: CloudConfigKind) -> None:
    """Consumers try each of these before the file."""
    configured = settings()
    document = DOCUMENTS[kind](configured, configured.hosted_clusters[0], PATH)
    earlier = (
        "useManagedIdentityExtension",
        "useFederatedWorkloadIdentityExtension",
        "useWorkloadIdentityExtension",
        "aadClientSecret",
        "aadClientCertPath",
    )

    assert document["aadMSIDataPlaneIdentityPath"] == PATH
    assert not any(document.get(key) for key in earlier)


def test_names_are_taken_from_ids_whatever_their_case() -> None:
    configured = settings(hostedClusters=[hosted_cluster(vnetID=VNET.replace("resourceGroups", "resourcegroups"))])

    document = cloud_controller_manager(configured, configured.hosted_clusters[0], PATH)

    assert document["vnetResourceGroup"] == "hc1-network"


def test_a_document_is_rendered_as_go_marshals_it_with_two_spaces() -> None:
    assert render({"cloud": "ü", "flag": False, "number": 6}) == (
        '{\n  "cloud": "ü",\n  "flag": false,\n  "number": 6\n}'
    )


SECRET = "kubernetes:core/v1:Secret"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
CLUSTER_IDENTITY = "kubernetes:infrastructure.cluster.x-k8s.io/v1beta1:AzureClusterIdentity"
OBJECTS = cases.read(Path(__file__).with_name("objects.yaml"), vars(world))

# Of the hypershift-operator, which annotates all that it writes.
ANNOTATED = {"annotations": {"hypershift.openshift.io/cluster": "clusters/hc1"}}


def golden(name: str) -> str:
    """A document without the newline that ends the file."""
    return (Path(__file__).parent / "golden" / name).read_text(encoding="utf-8").removesuffix("\n")


@pytest.mark.parametrize(
    ("identity", "secret"),
    [
        ("cloud-provider", "azure-cloud-config"),
        ("disk", "azure-disk-csi-config"),
        ("file", "azure-file-csi-config"),
        ("kms", "azure-kms-config"),
    ],
)
def test_each_consumer_gets_its_document_to_the_byte(stack: RecordingMonitor, identity: str, secret: str) -> None:
    """Keys, order and spelling of HyperShift's own fixtures (`TestControlPlaneComponents`, variant AROSwift)."""
    got = dict(stack.one(SECRET, f"hc1-cluster-side-{identity}-config-secret").inputs)

    assert base64.b64decode(got.pop("data")["cloud.conf"], validate=True).decode() == golden(
        f"cloud-config-{identity}.json"
    )
    assert got == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret, "namespace": "clusters-hc1", **(ANNOTATED if identity == "kms" else {})},
        "type": "Opaque",
    }


def test_no_other_identity_has_a_configuration_document(stack: RecordingMonitor) -> None:
    assert len([resource for resource in stack.all(SECRET) if "cloud.conf" in resource.inputs["data"]]) == 4


def test_the_nodes_configuration_is_a_config_map_in_clear(stack: RecordingMonitor) -> None:
    got = dict(stack.one(CONFIG_MAP, "hc1-cluster-side-nodes-config-map").inputs)

    assert got == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "azure-cloud-config", "namespace": "clusters-hc1"},
        "data": {"cloud.conf": golden("cloud-config-nodes.json")},
    }


def test_capz_finds_its_file_in_an_azure_cluster_identity(stack: RecordingMonitor) -> None:
    assert stack.one(CLUSTER_IDENTITY).inputs == OBJECTS["CAPZ's identity"]


def test_the_network_controller_finds_its_platform_beside_its_credential(stack: RecordingMonitor) -> None:
    """The Secret is the hypershift-operator's, the ConfigMap the network operator's, which has no data on Azure."""
    name = "hc1-cluster-side-network-platform"
    secret = dict(stack.one(SECRET, f"{name}-secret").inputs)
    config_map = dict(stack.one(CONFIG_MAP, f"{name}-config-map").inputs)

    data = {key: base64.b64decode(text).decode() for key, text in secret.pop("data").items()}
    assert data == OBJECTS["network's Secret"]
    named = {"name": "cloud-network-config-controller-creds", "namespace": "clusters-hc1"}
    assert secret == {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {**named, **ANNOTATED}}
    assert config_map == OBJECTS["network's ConfigMap"]
