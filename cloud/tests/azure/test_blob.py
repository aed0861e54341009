"""Blob Storage's data plane: who writes and reads a blob, and what goes with a container or an account."""

from __future__ import annotations

import base64
import hashlib

import pytest

from localcloud.azure.blob.contents import Blobs
from localcloud.testing.arm import GROUP, storage_account_body
from tests.coverage.blob_refusals import ACCOUNT, issuer, request
from tests.coverage.cloud import CoverageCloud

PUT = {"x-ms-version": "2017-11-09", "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-type": "application/json"}
CONTAINER = f"{ACCOUNT}/blobServices/default/containers/hc1oidc"


def test_anybody_reads_a_blob_of_a_public_container(cloud: CoverageCloud) -> None:
    written = request(cloud, "PUT", caller=issuer(cloud), content=b'{"a": 1}', headers=PUT)
    read = request(cloud, "GET")

    assert (written.status_code, read.status_code) == (201, 200)
    assert (read.content, read.headers["content-type"]) == (b'{"a": 1}', "application/json")
    assert read.headers["etag"] == written.headers["etag"]


@pytest.mark.parametrize(
    ("headers", "content", "placed"),
    [
        ({"x-ms-range": "bytes=0-7"}, b'{"a": 1}', "bytes 0-7/8"),
        ({"Range": "bytes=1-3"}, b'"a"', "bytes 1-3/8"),
        ({"Range": "bytes=6-"}, b"1}", "bytes 6-7/8"),
        ({"Range": "bytes=0-0", "x-ms-range": "bytes=6-99"}, b"1}", "bytes 6-7/8"),
    ],
    ids=["whole", "middle", "end", "both"],
)
def test_a_part_of_a_blob_is_read(cloud: CoverageCloud, headers: dict[str, str], content: bytes, placed: str) -> None:
    request(cloud, "PUT", caller=issuer(cloud), content=b'{"a": 1}', headers=PUT)

    part = request(cloud, "GET", headers=headers)

    assert (part.status_code, part.content, part.headers["content-range"]) == (206, content, placed)
    assert "content-md5" not in part.headers


@pytest.mark.parametrize(("access", "status"), [("None", 404), ("Blob", 200), ("Container", 200)])
def test_a_containers_access_decides_about_anybody(cloud: CoverageCloud, access: str, status: int) -> None:
    writer = issuer(cloud, access)
    request(cloud, "PUT", caller=writer, headers=PUT)

    assert request(cloud, "GET").status_code == status
    assert request(cloud, "GET", caller=writer, headers={"x-ms-version": "2017-11-09"}).status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_token_needs_the_data_action(cloud: CoverageCloud, method: str) -> None:
    issuer(cloud)
    # The owner of the account may not touch its blobs.
    assert request(cloud, method, caller=cloud.deployer, headers=PUT).status_code == 403


def test_a_deleted_container_or_account_takes_its_blobs_along(cloud: CoverageCloud) -> None:
    request(cloud, "PUT", caller=issuer(cloud), headers=PUT)
    assert cloud.call("DELETE", CONTAINER.replace("hc1oidc", "HC1oidc")).status_code == 200
    issuer(cloud)
    assert request(cloud, "GET").status_code == 404

    request(cloud, "PUT", caller=issuer(cloud), headers=PUT)
    assert cloud.call("DELETE", ACCOUNT).status_code == 200
    assert cloud.call("DELETE", ACCOUNT).status_code == 204
    issuer(cloud)
    assert request(cloud, "GET").status_code == 404


def test_a_deletion_in_another_group_takes_nothing_of_a_namesake(
    cloud: CoverageCloud,
) -> None:
    request(cloud, "PUT", caller=issuer(cloud), headers=PUT)
    other = ACCOUNT.replace(GROUP, cloud.group("other"))

    assert cloud.call("DELETE", other).status_code == 204
    assert request(cloud, "GET").status_code == 200


def test_a_deleted_group_takes_the_blobs_and_keys_of_its_accounts_along(cloud: CoverageCloud) -> None:
    group = cloud.group("oidc")
    account = ACCOUNT.replace(GROUP, group)
    made = [cloud.call("PUT", account, storage_account_body()), cloud.call("POST", f"{account}/listKeys")]
    Blobs(cloud.store).put("hc1oidc", "hc1oidc", "jwks", b"{}", "application/json", None, {})

    assert cloud.call("DELETE", group).status_code == 202
    assert cloud.call("GET", group).status_code == 404
    assert Blobs(cloud.store).get("hc1oidc", "hc1oidc", "jwks") is None
    cloud.call("PUT", ACCOUNT, storage_account_body())
    assert cloud.call("POST", f"{ACCOUNT}/listKeys").json() != made[1].json()


def test_what_a_put_of_an_account_leaves_out_stays(cloud: CoverageCloud) -> None:
    issuer(cloud, minimumTlsVersion="TLS1_2")
    body = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "tags": {"a": "b"}}
    changed = cloud.call("PUT", ACCOUNT, body).json()

    assert (changed["properties"]["minimumTlsVersion"], changed["tags"]) == ("TLS1_2", {"a": "b"})


def test_a_patch_changes_what_it_names_and_nothing_else(cloud: CoverageCloud) -> None:
    issuer(cloud, minimumTlsVersion="TLS1_2")
    before = cloud.call("GET", ACCOUNT).json()
    changed = cloud.call("PATCH", ACCOUNT, {"tags": {"a": "b"}}).json()
    keyless = cloud.call("PATCH", ACCOUNT, {"properties": {"allowSharedKeyAccess": True}}).json()

    assert changed == {**before, "tags": {"a": "b"}}
    assert keyless == {**changed, "properties": {**changed["properties"], "allowSharedKeyAccess": True}}
    assert cloud.call("PATCH", ACCOUNT, {"kind": "StorageV2"}).status_code == 501
    assert cloud.call("PATCH", f"{ACCOUNT}2", {}).status_code == 404


def test_a_blob_has_the_hash_of_its_content(cloud: CoverageCloud) -> None:
    """gocloud.dev sends it with each write."""
    writer = issuer(cloud)
    stated = base64.b64encode(hashlib.md5(b"{}", usedforsecurity=False).digest()).decode()
    headers = {"x-ms-version": "2017-11-09", "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-md5": stated}

    assert request(cloud, "PUT", caller=writer, headers=headers).status_code == 201
    assert request(cloud, "GET").headers["content-md5"] == stated
