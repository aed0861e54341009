"""Keys of a storage account: who lists them, where they are, and what a request signed with one may do."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from localcloud.azure.blob.api import string_to_sign
from localcloud.core import clock
from tests.coverage.blob_refusals import ACCOUNT, issuer, request, signed
from tests.coverage.cloud import CoverageCloud

BLOCK = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"}
# What azblob makes of the name `.well-known/openid-configuration` below a client of the container.
DISCOVERY = "/hc1oidc/.well-known%2Fopenid-configuration"


def keys(cloud: CoverageCloud) -> list[str]:
    """The account's keys."""
    return [key["value"] for key in cloud.call("POST", f"{ACCOUNT}/listKeys").json()["keys"]]


def test_an_account_has_two_keys_that_stay(cloud: CoverageCloud) -> None:
    issuer(cloud)
    account, listed = cloud.call("GET", ACCOUNT), cloud.call("POST", f"{ACCOUNT}/listKeys").json()["keys"]

    made = account.json()["properties"]["keyCreationTime"]
    assert [(item["keyName"], item["permissions"]) for item in listed] == [("key1", "FULL"), ("key2", "FULL")]
    assert {item["keyName"]: item["creationTime"] for item in listed} == made
    assert {len(base64.b64decode(item["value"])) for item in listed} == {64}
    assert len(set(keys(cloud))) == 2
    assert keys(cloud) == [item["value"] for item in listed]


def test_the_keys_are_sealed_in_the_store_and_in_no_resource(cloud: CoverageCloud, tmp_path: Path) -> None:
    issuer(cloud)
    found = [key.encode() for key in keys(cloud)]

    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("state.sqlite*"))
    assert not any(key in stored for key in found)
    assert not any(key in cloud.call("GET", ACCOUNT).content for key in found)


def test_a_reader_lists_no_keys(cloud: CoverageCloud) -> None:
    issuer(cloud)
    refused = cloud.call("POST", f"{ACCOUNT}/listKeys", caller=cloud.principal(("Reader", ACCOUNT)))
    operator = cloud.principal(("Storage Account Key Operator Service Role", ACCOUNT))

    assert refused.status_code == 403
    assert "Microsoft.Storage/storageAccounts/listKeys/action" in refused.text
    assert cloud.call("POST", f"{ACCOUNT}/listKeys", caller=operator).status_code == 200
    assert cloud.call("POST", f"{ACCOUNT}/regenerateKey", {"keyName": "key1"}).status_code == 501
    assert cloud.call("POST", f"{ACCOUNT}2/listKeys").status_code == 404


def test_another_account_of_the_name_has_other_keys(cloud: CoverageCloud) -> None:
    issuer(cloud)
    before = keys(cloud)
    cloud.call("DELETE", ACCOUNT)
    issuer(cloud)

    assert set(before) & set(keys(cloud)) == set()


@pytest.mark.parametrize("number", [0, 1])
def test_either_key_writes_reads_and_deletes_without_a_role(cloud: CoverageCloud, number: int) -> None:
    issuer(cloud, "None", allowSharedKeyAccess=True)
    key = keys(cloud)[number]
    written = signed(cloud, "PUT", DISCOVERY, key=key, headers=BLOCK, content=b"{}")
    read = signed(cloud, "GET", "/hc1oidc/.well-known/openid-configuration", key=key)

    assert (written.status_code, read.status_code, read.content) == (201, 200, b"{}")
    assert signed(cloud, "DELETE", DISCOVERY, key=key).status_code == 202
    assert signed(cloud, "GET", DISCOVERY, key=key).status_code == 404


def test_an_empty_blob_is_signed_with_an_empty_length(cloud: CoverageCloud) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    assert signed(cloud, "PUT", headers=BLOCK, content=b"").status_code == 201


def test_a_signature_is_of_one_request(cloud: CoverageCloud) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    written = signed(cloud, "PUT", headers=BLOCK, content=b"{}")
    authorization = {name: written.request.headers[name] for name in ("authorization", "x-ms-date", "x-ms-version")}

    assert written.status_code == 201
    for method, path, content in (("PUT", "/hc1oidc/other", b"{}"), ("DELETE", "/hc1oidc/jwks", b"")):
        refused = request(cloud, method, path, content=content, headers=authorization | BLOCK)
        assert (refused.status_code, refused.headers["x-ms-error-code"]) == (403, "AuthenticationFailed")
    longer = request(cloud, "PUT", content=b"[{}]", headers=authorization | BLOCK)
    assert longer.status_code == 403
    assert request(cloud, "GET").content == b"{}"


@pytest.mark.parametrize("minutes", [-14, 14])
def test_a_clock_may_be_off_by_some_minutes(cloud: CoverageCloud, minutes: int) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    at = clock.now() + timedelta(minutes=minutes)
    assert signed(cloud, "PUT", headers=BLOCK, at=at).status_code == 201


def test_the_tags_of_a_blob_are_counted(cloud: CoverageCloud) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    tags = {"x-ms-tags": "openshift.io_cloud-credential-operator_hc1oidc=owned&team=a%20b"}

    assert signed(cloud, "PUT", headers=BLOCK | tags).status_code == 201
    assert signed(cloud, "GET").headers["x-ms-tag-count"] == "2"
    assert signed(cloud, "PUT", headers=BLOCK).status_code == 201
    assert "x-ms-tag-count" not in signed(cloud, "GET").headers


@pytest.mark.parametrize(
    "tags",
    ["a", "a=b&a=c", "=b", "a=%C3%A4", "&".join(f"{n}=" for n in range(11)), f"{'a' * 129}=", "a=" + "b" * 257],
)
def test_tags_outside_of_the_rules_are_refused(cloud: CoverageCloud, tags: str) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    refused = signed(cloud, "PUT", headers=BLOCK | {"x-ms-tags": tags})
    assert (refused.status_code, refused.headers["x-ms-error-code"]) == (400, "InvalidHeaderValue")


def test_the_string_to_sign_is_that_of_microsofts_example() -> None:
    headers = Headers(
        {"x-ms-version": "2015-02-21", "x-ms-date": "Fri, 26 Jun 2015 23:39:12 GMT", "Content-Length": "0"}
    )
    query = "restype=container&comp=metadata&timeout=20"

    assert string_to_sign("GET", b"/mycontainer", query, headers, "myaccount") == (
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
        "/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
    )


def test_headers_are_signed_in_an_order_that_passes_over_hyphens() -> None:
    headers = Headers({"x-ms-meta-ab": "1", "x-ms-meta-a-c": " 2 ", "date": "now"})
    signed_part = string_to_sign("PUT", b"/c/b", "", headers, "a").split("\n")

    assert signed_part[6] == "now"
    assert signed_part[12:] == ["x-ms-meta-ab:1", "x-ms-meta-a-c:2", "/a/c/b"]
