"""The configuration documents, key by key in the order of the operators' structs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.kubernetes.cloud_config import DOCUMENTS, cloud_controller_manager, csi_driver, kms_plugin, node, render
from identity.catalogue_rows import CloudConfigKind
from tests.unit.components.world import PLATFORM, SUBSCRIPTION, TENANT

PATH = "/mnt/certs/x-json"

CLOUD_CONTROLLER_MANAGER: list[tuple[str, Any]] = [
    ("cloud", "AzurePublicCloud"),
    ("tenantId", TENANT),
    ("useManagedIdentityExtension", False),
    ("useFederatedWorkloadIdentityExtension", False),
    ("subscriptionId", SUBSCRIPTION),
    ("aadClientId", ""),
    ("aadClientSecret", ""),
    ("aadClientCertPath", ""),
    ("aadFederatedTokenFile", ""),
    ("aadMSIDataPlaneIdentityPath", PATH),
    ("resourceGroup", "hc1-managed"),
    ("location", "eastus"),
    ("vnetName", "hc1-vnet"),
    ("vnetResourceGroup", "hc1-network"),
    ("subnetName", "default"),
    ("securityGroupName", "hc1-nsg"),
    ("securityGroupResourceGroup", "hc1-nsg"),
    ("routeTableName", ""),
    ("cloudProviderBackoff", True),
    ("cloudProviderBackoffDuration", 6),
    ("useInstanceMetadata", False),
    ("loadBalancerSku", "standard"),
    ("disableOutboundSNAT", True),
    ("loadBalancerName", "hc1-infra"),
    ("clusterServiceLoadBalancerHealthProbeMode", "shared"),
]

NODE = {
    "useManagedIdentityExtension": True,
    "aadMSIDataPlaneIdentityPath": "",
    "useInstanceMetadata": True,
}

CSI_DRIVER = {
    "subnetName": "",
    "securityGroupName": "",
    "securityGroupResourceGroup": "",
    "cloudProviderBackoff": False,
    "cloudProviderBackoffDuration": 0,
    "loadBalancerSku": "",
    "disableOutboundSNAT": False,
    "loadBalancerName": "",
    "clusterServiceLoadBalancerHealthProbeMode": "",
}

KMS_PLUGIN: list[tuple[str, Any]] = [
    ("cloud", "AzurePublicCloud"),
    ("tenantId", TENANT),
    ("useManagedIdentityExtension", False),
    ("useWorkloadIdentityExtension", False),
    ("subscriptionId", SUBSCRIPTION),
    ("aadClientId", ""),
    ("aadClientCertPath", ""),
    ("aadMSIDataPlaneIdentityPath", PATH),
    ("resourceGroup", "hc1-managed"),
    ("location", "eastus"),
    ("vnetName", ""),
    ("vnetResourceGroup", ""),
    ("subnetName", ""),
    ("securityGroupName", ""),
    ("securityGroupResourceGroup", ""),
    ("routeTableName", ""),
    ("cloudProviderBackoff", True),
    ("cloudProviderBackoffDuration", 6),
    ("useInstanceMetadata", False),
    ("loadBalancerSku", "standard"),
    ("disableOutboundSNAT", True),
    ("loadBalancerName", "hc1-infra"),
]


def changed(changes: dict[str, Any]) -> list[tuple[str, Any]]:
    """The cloud controller manager's document with other values: the same struct."""
    assert changes.keys() <= {key for key, _ in CLOUD_CONTROLLER_MANAGER}
    return [(key, changes.get(key, value)) for key, value in CLOUD_CONTROLLER_MANAGER]


def test_the_cloud_controller_manager_signs_in_with_the_file() -> None:
    assert list(cloud_controller_manager(PLATFORM, PATH).items()) == CLOUD_CONTROLLER_MANAGER


def test_nodes_sign_in_as_their_virtual_machine() -> None:
    assert list(node(PLATFORM).items()) == changed(NODE)


def test_the_csi_drivers_know_the_network_and_nothing_of_load_balancers() -> None:
    assert list(csi_driver(PLATFORM, PATH).items()) == changed(CSI_DRIVER)


def test_the_kms_plugin_has_a_struct_of_its_own() -> None:
    assert list(kms_plugin(PLATFORM, PATH).items()) == KMS_PLUGIN


@pytest.mark.parametrize("kind", CloudConfigKind)
def test_beside_a_credential_file_no_other_way_to_sign_in_is_switched_on(kind: CloudConfigKind) -> None:
    """Consumers try each of these before the file."""
    document = DOCUMENTS[kind](PLATFORM, PATH)
    earlier = (
        "useManagedIdentityExtension",
        "useFederatedWorkloadIdentityExtension",
        "useWorkloadIdentityExtension",
        "aadClientSecret",
        "aadClientCertPath",
    )

    assert document["aadMSIDataPlaneIdentityPath"] == PATH
    assert not any(document.get(key) for key in earlier)


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (CloudConfigKind.CLOUD_CONTROLLER_MANAGER, cloud_controller_manager),
        (CloudConfigKind.CSI_DRIVER, csi_driver),
        (CloudConfigKind.KMS_PLUGIN, kms_plugin),
    ],
)
def test_every_kind_has_its_document(kind: CloudConfigKind, document: object) -> None:
    assert DOCUMENTS[kind] is document


def test_names_are_taken_from_ids_whatever_their_case() -> None:
    platform = replace(PLATFORM, vnet_id=PLATFORM.vnet_id.replace("resourceGroups", "resourcegroups"))

    assert cloud_controller_manager(platform, PATH)["vnetResourceGroup"] == "hc1-network"


def test_a_document_is_rendered_as_go_marshals_it_with_two_spaces() -> None:
    assert render({"cloud": "ü", "flag": False, "number": 6}) == (
        '{\n  "cloud": "ü",\n  "flag": false,\n  "number": 6\n}'
    )
