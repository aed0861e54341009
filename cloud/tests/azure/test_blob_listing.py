"""List Blobs and Copy Blob, as the clients that keep files in a container use them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from xml.etree import ElementTree

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.azure.blob.api import Asked, list_page
from localcloud.azure.blob.contents import Blob
from localcloud.azure.tenant.objects import ServicePrincipal
from tests.coverage.blob_refusals import issuer, request
from tests.coverage.cloud import CoverageCloud

VERSION = {"x-ms-version": "2024-11-04"}
BLOCK = VERSION | {"x-ms-blob-type": "BlockBlob"}
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


def test_a_copy_is_the_source_and_stays_when_that_goes(cloud: CoverageCloud, writer: ServicePrincipal) -> None:
    source = {"x-ms-copy-source": "https://hc1oidc.blob.core.windows.net/hc1oidc/a%2F1"}
    copied = request(cloud, "PUT", "/hc1oidc/c", caller=writer, headers=VERSION | source)
    request(cloud, "DELETE", "/hc1oidc/a/1", caller=writer, headers=VERSION)

    assert (copied.status_code, copied.headers["x-ms-copy-status"]) == (202, "success")
    assert request(cloud, "GET", "/hc1oidc/c", caller=writer, headers=VERSION).content == b"a/1"
