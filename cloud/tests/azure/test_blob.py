"""Blob Storage's data plane: who writes, reads and lists blobs, what goes with a container, and an account's keys."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from localcloud.azure.blob.api import Asked, list_page, string_to_sign
from localcloud.azure.blob.contents import Blob, Blobs
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core import clock
from localcloud.testing.arm import GROUP, storage_account_body
from tests.coverage.blob_refusals import ACCOUNT, issuer, request, signed
from tests.coverage.cloud import CoverageCloud

VERSION = {"x-ms-version": "2024-11-04"}
BLOCK = VERSION | {"x-ms-blob-type": "BlockBlob"}
PUT = BLOCK | {"x-ms-blob-content-type": "application/json"}
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


def test_a_deletion_in_another_group_takes_nothing_of_a_namesake(cloud: CoverageCloud) -> None:
    request(cloud, "PUT", caller=issuer(cloud), headers=PUT)
    other = ACCOUNT.replace(GROUP, cloud.group("other"))

    assert cloud.call("DELETE", other).status_code == 204
    assert request(cloud, "GET").status_code == 200


def test_a_deleted_group_takes_the_blobs_and_keys_of_its_accounts_along(cloud: CoverageCloud) -> None:
    group = cloud.group("oidc")
    account = ACCOUNT.replace(GROUP, group)
    made = [cloud.call("PUT", account, storage_account_body()), cloud.call("POST", f"{account}/listKeys")]
    Blobs(cloud.store).put("hc1oidc/hc1oidc/jwks", BLOB)

    assert cloud.call("DELETE", group).status_code == 202
    assert cloud.call("GET", group).status_code == 404
    assert Blobs(cloud.store).get("hc1oidc/hc1oidc/jwks") is None
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

    assert request(cloud, "PUT", caller=writer, headers=BLOCK | {"x-ms-blob-content-md5": stated}).status_code == 201
    assert request(cloud, "GET").headers["content-md5"] == stated


BLOB = Blob(b"xyz", "text/plain", None, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


@pytest.fixture
def writer(cloud: CoverageCloud) -> ServicePrincipal:
    """Who has written three blobs."""
    caller = issuer(cloud)
    for name in ("a/1", "a/2", "b"):
        request(cloud, "PUT", f"/hc1oidc/{name}", caller=caller, headers=BLOCK, content=name.encode())
    return caller


def parsed(body: bytes) -> ElementTree.Element:
    """The local cloud's own answer."""
    return ElementTree.fromstring(body)  # noqa: S314 - nobody else wrote it


def names(body: bytes) -> list[str]:
    """Blobs and common beginnings of a page, in its order."""
    return [element.text or "" for element in parsed(body).findall("Blobs/*/Name")]


def listed(cloud: CoverageCloud, caller: ServicePrincipal, query: str = "") -> httpx.Response:
    return request(cloud, "GET", f"/hc1oidc?restype=container&comp=list{query}", caller=caller, headers=VERSION)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["a/1", "a/2", "b"]),
        ("&prefix=a", ["a/1", "a/2"]),
        ("&delimiter=/", ["a/", "b"]),
        ("&prefix=a/&delimiter=/", ["a/1", "a/2"]),
        ("&prefix=c", []),
    ],
)
def test_a_list_has_what_is_below_a_prefix(
    cloud: CoverageCloud, writer: ServicePrincipal, query: str, expected: list[str]
) -> None:
    answer = listed(cloud, writer, query)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/xml")
    assert names(answer.content) == expected


def test_an_entry_has_what_get_blob_says_of_it(cloud: CoverageCloud, writer: ServicePrincipal) -> None:
    [entry] = parsed(listed(cloud, writer, "&prefix=b").content).findall("Blobs/Blob/Properties")
    blob = request(cloud, "HEAD", "/hc1oidc/b", caller=writer, headers=VERSION)

    found = {element.tag: element.text for element in entry}
    assert found == {
        "Creation-Time": blob.headers["x-ms-creation-time"],
        "Last-Modified": blob.headers["last-modified"],
        "Etag": blob.headers["etag"].strip('"'),
        "Content-Length": blob.headers["content-length"],
        "Content-Type": "application/octet-stream",
        "BlobType": "BlockBlob",
    }


@pytest.mark.usefixtures("writer")
def test_anybody_lists_a_container_whose_access_says_so(cloud: CoverageCloud) -> None:
    answer = request(cloud, "GET", "/hc1oidc?restype=container&comp=list")
    assert names(answer.content) == ["a/1", "a/2", "b"]


@given(
    blobs=st.sets(st.text("ab/", min_size=1, max_size=6), max_size=12),
    prefix=st.text("ab/", max_size=2),
    delimiter=st.sampled_from(["", "/"]),
    most=st.integers(1, 4),
)
def test_pages_have_each_entry_once_and_in_order(blobs: set[str], prefix: str, delimiter: str, most: int) -> None:
    below = [(name, BLOB) for name in sorted(blobs) if name.startswith(prefix)]
    query: Mapping[str, str] = {"prefix": prefix, "delimiter": delimiter}
    whole = names(list_page("c", "https://x", Asked.of(query), below))

    found, marker = [], ""
    while True:
        body = list_page("c", "https://x", Asked.of({**query, "maxresults": str(most), "marker": marker}), below)
        found += names(body)
        assert len(names(body)) <= most
        marker = parsed(body).findtext("NextMarker") or ""
        if not marker:
            break

    assert found == whole
    assert len(set(found)) == len(found)
    beginnings = {entry for entry in found if delimiter and entry.endswith(delimiter)}
    assert all(name in found or any(map(name.startswith, beginnings)) for name, _ in below)


def test_a_blob_is_written_of_the_blocks_of_a_list(cloud: CoverageCloud, writer: ServicePrincipal) -> None:
    """Velero writes so."""

    def put(query: str, content: bytes) -> httpx.Response:
        return request(cloud, "PUT", f"/hc1oidc/a?comp={query}", caller=writer, headers=VERSION, content=content)

    blocks = (put("block&blockid=MQ==", b"x"), put("block&blockid=Mg==", b"y"))
    listed = b"<BlockList><Latest>Mg==</Latest><Uncommitted>MQ==</Uncommitted></BlockList>"
    absent = request(cloud, "HEAD", "/hc1oidc/a", caller=writer, headers=VERSION)
    answers = (*blocks, put("blocklist", listed), put("blocklist", listed))
    read = request(cloud, "GET", "/hc1oidc/a", caller=writer, headers=VERSION)

    assert [answer.status_code for answer in answers] == [201, 201, 201, 400]
    assert (absent.status_code, absent.headers["x-ms-error-code"]) == (404, "BlobNotFound")
    assert (read.content, read.headers["content-type"]) == (b"yx", "application/octet-stream")


def test_a_copy_is_the_source_and_stays_when_that_goes(cloud: CoverageCloud, writer: ServicePrincipal) -> None:
    source = {"x-ms-copy-source": "https://hc1oidc.blob.core.windows.net/hc1oidc/a%2F1"}
    copied = request(cloud, "PUT", "/hc1oidc/c", caller=writer, headers=VERSION | source)
    request(cloud, "DELETE", "/hc1oidc/a/1", caller=writer, headers=VERSION)

    assert (copied.status_code, copied.headers["x-ms-copy-status"]) == (202, "success")
    assert request(cloud, "GET", "/hc1oidc/c", caller=writer, headers=VERSION).content == b"a/1"


PUT_BLOCK = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"}
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
    written = signed(cloud, "PUT", DISCOVERY, key=key, headers=PUT_BLOCK, content=b"{}")
    read = signed(cloud, "GET", "/hc1oidc/.well-known/openid-configuration", key=key)

    assert (written.status_code, read.status_code, read.content) == (201, 200, b"{}")
    assert signed(cloud, "DELETE", DISCOVERY, key=key).status_code == 202
    assert signed(cloud, "GET", DISCOVERY, key=key).status_code == 404


def test_a_container_is_made_and_deleted_with_its_blobs(cloud: CoverageCloud) -> None:
    writer, path = issuer(cloud), "/made?restype=container"

    def ask(method: str, where: str, headers: Mapping[str, str] = VERSION) -> int:
        return request(cloud, method, where, caller=writer, content=b"", headers=headers).status_code

    assert (ask("PUT", path), ask("PUT", "/made/one", PUT), ask("DELETE", path)) == (201, 201, 202)
    assert cloud.call("GET", f"{ACCOUNT}/blobServices/default/containers/made").status_code == 404
    assert (ask("PUT", path), ask("GET", "/made/one")) == (201, 404)
    public = cloud.call("GET", f"{ACCOUNT}/blobServices/default/containers/made").json()["properties"]["publicAccess"]
    assert public == "None"


def test_who_writes_blobs_of_one_container_makes_no_other(cloud: CoverageCloud) -> None:
    issuer(cloud)
    writer = cloud.principal(("Storage Blob Data Contributor", CONTAINER))
    refused = request(cloud, "PUT", "/made?restype=container", caller=writer, content=b"", headers=VERSION)

    assert refused.status_code == 403


def test_a_signature_is_of_one_request(cloud: CoverageCloud) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    written = signed(cloud, "PUT", headers=PUT_BLOCK, content=b"{}")
    authorization = {name: written.request.headers[name] for name in ("authorization", "x-ms-date", "x-ms-version")}

    assert written.status_code == 201
    for method, path, content in (("PUT", "/hc1oidc/other", b"{}"), ("DELETE", "/hc1oidc/jwks", b"")):
        refused = request(cloud, method, path, content=content, headers=authorization | PUT_BLOCK)
        assert (refused.status_code, refused.headers["x-ms-error-code"]) == (403, "AuthenticationFailed")
    longer = request(cloud, "PUT", content=b"[{}]", headers=authorization | PUT_BLOCK)
    assert longer.status_code == 403
    assert request(cloud, "GET").content == b"{}"


@pytest.mark.parametrize(("minutes", "content"), [(-14, b"{}"), (14, b"{}"), (0, b"")])
def test_a_signature_may_be_some_minutes_off_and_of_an_empty_blob(
    cloud: CoverageCloud, minutes: int, content: bytes
) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    at = clock.now() + timedelta(minutes=minutes)
    assert signed(cloud, "PUT", headers=PUT_BLOCK, at=at, content=content).status_code == 201


def test_the_tags_of_a_blob_are_counted(cloud: CoverageCloud) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    tags = {"x-ms-tags": "openshift.io_cloud-credential-operator_hc1oidc=owned&team=a%20b"}

    assert signed(cloud, "PUT", headers=PUT_BLOCK | tags).status_code == 201
    assert signed(cloud, "GET").headers["x-ms-tag-count"] == "2"
    assert signed(cloud, "PUT", headers=PUT_BLOCK).status_code == 201
    assert "x-ms-tag-count" not in signed(cloud, "GET").headers


@pytest.mark.parametrize(
    "tags",
    ["a", "a=b&a=c", "=b", "a=%C3%A4", "&".join(f"{n}=" for n in range(11)), f"{'a' * 129}=", "a=" + "b" * 257],
)
def test_tags_outside_of_the_rules_are_refused(cloud: CoverageCloud, tags: str) -> None:
    issuer(cloud, allowSharedKeyAccess=True)
    refused = signed(cloud, "PUT", headers=PUT_BLOCK | {"x-ms-tags": tags})
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
