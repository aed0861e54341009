"""List Blobs: what a container has by prefix, a page at a time, as XML. Source: REST reference, "List Blobs"."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import format_datetime
from typing import Final
from xml.etree import ElementTree

from localcloud.azure.blob import errors
from localcloud.azure.blob.contents import Blob

_LARGEST_PAGE: Final = 5000


@dataclass(frozen=True)
class Asked:
    """The query's options; `marker` is the first name of the page."""

    prefix: str
    delimiter: str
    marker: str
    most: int

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        """Read the query; raises ServiceError, 400, for an invalid number or marker."""
        return cls(query.get("prefix", ""), query.get("delimiter", ""), _marker(query), _most(query))


def page(container: str, endpoint: str, asked: Asked, blobs: Iterable[tuple[str, Blob]]) -> bytes:
    """The XML of one page.

    Args:
        endpoint: URL of the account.
        blobs: every blob of the container with the asked prefix, in the order of their names.
    """
    root = ElementTree.Element("EnumerationResults", ServiceEndpoint=f"{endpoint}/", ContainerName=container)
    for name, value in (("Prefix", asked.prefix), ("Marker", _written(asked.marker)), ("Delimiter", asked.delimiter)):
        if value:
            ElementTree.SubElement(root, name).text = value
    ElementTree.SubElement(root, "MaxResults").text = str(asked.most)
    listed = ElementTree.SubElement(root, "Blobs")
    following = ""
    rest = (entry for entry in _entries(asked, blobs) if entry[0] >= asked.marker)
    for count, (name, blob) in enumerate(rest):
        if count == asked.most:
            following = name
            break
        _add(listed, name, blob)
    ElementTree.SubElement(root, "NextMarker").text = _written(following)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _entries(asked: Asked, blobs: Iterable[tuple[str, Blob]]) -> Iterator[tuple[str, Blob | None]]:
    """Blobs; those behind a delimiter appear as their common prefix, once and without a blob."""
    last = None
    for name, blob in blobs:
        head, delimiter, _ = name[len(asked.prefix) :].partition(asked.delimiter) if asked.delimiter else (name, "", "")
        if not delimiter:
            yield name, blob
        elif (beginning := f"{asked.prefix}{head}{delimiter}") != last:
            last = beginning
            yield beginning, None


def _add(listed: ElementTree.Element, name: str, blob: Blob | None) -> None:
    entry = ElementTree.SubElement(listed, "BlobPrefix" if blob is None else "Blob")
    ElementTree.SubElement(entry, "Name").text = name
    if blob is None:
        return
    properties = ElementTree.SubElement(entry, "Properties")
    changed = format_datetime(blob.changed, usegmt=True)
    values = {
        "Creation-Time": changed,
        "Last-Modified": changed,
        "Etag": blob.etag.strip('"'),
        "Content-Length": str(len(blob.content)),
        "Content-Type": blob.content_type,
        "BlobType": "BlockBlob",
    }
    for key, value in values.items():
        ElementTree.SubElement(properties, key).text = value


def _most(query: Mapping[str, str]) -> int:
    text = query.get("maxresults", str(_LARGEST_PAGE))
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise errors.parameter_out_of_range()
    return min(int(text), _LARGEST_PAGE)


def _marker(query: Mapping[str, str]) -> str:
    try:
        return base64.b64decode(query.get("marker", ""), validate=True).decode()
    except ValueError:
        raise errors.parameter_out_of_range() from None


def _written(marker: str) -> str:
    """Opaque to clients."""
    return base64.b64encode(marker.encode()).decode()
