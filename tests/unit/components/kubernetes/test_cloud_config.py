"""Rules of the configuration documents; test_consumer_config.py has them to the byte."""

from __future__ import annotations

import pytest

from components.kubernetes.cloud_config import DOCUMENTS, cloud_controller_manager, render
from identity.catalogue_rows import CloudConfigKind
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
