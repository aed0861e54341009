"""The definition of a HostedCluster at work: each rule refuses what it is there to refuse, in the server's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from localcloud.testing.hosted_clusters import (
    ABSENT,
    IMMUTABLE_FIELDS,
    INVALID_CHANGES,
    UNKNOWN_FIELDS,
    VALID_CHANGES,
    InvalidChange,
    changed,
    hosted_cluster,
)

_PATH = "/apis/hypershift.openshift.io/v1beta1/namespaces/default/hostedclusters"
_DRY_RUN = {"dryRun": "All", "fieldValidation": "Strict"}


@pytest.fixture(scope="module")
def existing(deployer: httpx.Client) -> Iterator[dict[str, Any]]:
    """A HostedCluster that is there."""
    document = hosted_cluster("existing")
    deployer.post(_PATH, json=document).raise_for_status()
    yield document
    deployer.delete(f"{_PATH}/existing").raise_for_status()


def patched(deployer: httpx.Client, path: str, value: Any) -> httpx.Response:
    """A dry run of a change of the existing HostedCluster, as a merge patch: null takes a field away."""
    live = deployer.get(f"{_PATH}/existing").json()
    patch = changed(live, path, None if value is ABSENT else value)
    headers = {"Content-Type": "application/merge-patch+json"}
    return deployer.patch(f"{_PATH}/existing", params=_DRY_RUN, json=patch, headers=headers)


def test_a_complete_document_is_taken_with_the_defaults_filled_in(deployer: httpx.Client) -> None:
    taken = deployer.post(_PATH, params=_DRY_RUN, json=hosted_cluster())

    assert taken.status_code == 201, taken.text
    spec = taken.json()["spec"]
    assert spec["platform"]["azure"]["cloud"] == "AzurePublicCloud"
    assert spec["networking"]["networkType"] == "OVNKubernetes"
    assert spec["etcd"]["managementType"] == "Managed"


@pytest.mark.parametrize(("path", "value"), VALID_CHANGES, ids=[path for path, _ in VALID_CHANGES])
def test_a_variant_is_taken(deployer: httpx.Client, path: str, value: Any) -> None:
    taken = deployer.post(_PATH, params=_DRY_RUN, json=changed(hosted_cluster(), path, value))

    assert taken.status_code == 201, taken.text


@pytest.mark.parametrize("bad", INVALID_CHANGES, ids=lambda bad: bad.name)
def test_a_document_against_the_rules_is_refused(deployer: httpx.Client, bad: InvalidChange) -> None:
    refused = deployer.post(_PATH, params=_DRY_RUN, json=changed(hosted_cluster(), bad.path, bad.value))

    assert (refused.status_code, refused.json()["reason"]) == (422, "Invalid")
    assert bad.refusal in refused.json()["message"]


@pytest.mark.parametrize("bad", IMMUTABLE_FIELDS, ids=lambda bad: bad.name)
def test_what_is_immutable_can_not_be_changed(
    deployer: httpx.Client, existing: dict[str, Any], bad: InvalidChange
) -> None:
    refused = patched(deployer, bad.path, bad.value)

    assert refused.status_code == 422
    assert bad.refusal in refused.json()["message"]


def test_the_tenant_may_be_corrected(deployer: httpx.Client, existing: dict[str, Any]) -> None:
    taken = patched(deployer, "spec.platform.azure.tenantID", "another")

    assert taken.status_code == 200


@pytest.mark.parametrize("field", UNKNOWN_FIELDS)
def test_an_unknown_field_is_refused_under_strict_validation(deployer: httpx.Client, field: str) -> None:
    refused = deployer.post(_PATH, params=_DRY_RUN, json=changed(hosted_cluster(), field, "x"))

    assert refused.status_code == 400
    assert f'strict decoding error: unknown field "{field}"' in refused.json()["message"]


def test_without_strict_validation_a_misspelt_field_is_dropped(deployer: httpx.Client) -> None:
    azure = "spec.platform.azure"
    document = changed(hosted_cluster(), f"{azure}.resourceGroupName", "hc1-managed")
    document = changed(document, f"{azure}.resourceGroup", ABSENT)

    taken = deployer.post(_PATH, params={"dryRun": "All"}, json=document)

    assert taken.status_code == 201
    assert taken.json()["spec"]["platform"]["azure"]["resourceGroup"] == "default"
    assert f"{azure}.resourceGroupName" in taken.headers["Warning"]
