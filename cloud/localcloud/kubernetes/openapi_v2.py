"""`/openapi/v2`: the schemas of every kind as an OpenAPI 2.0 document, in JSON and in gnostic's protobuf.

client-go asks for protobuf and reads nothing else (`discovery.OpenAPISchema`), and takes kinds and fields out of it.
The encoding is that of `openapiv2/OpenAPIv2.proto` (google/gnostic-models), of which only the messages in use are here.
The document has no paths.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from localcloud.kubernetes.discovery import VERSION
from localcloud.kubernetes.kinds import KINDS
from localcloud.kubernetes.schemas import REFERENCE, Schema, components

# The second is client-go's, which is not a media type of RFC 6838 (kube-openapi `pkg/handler/handler.go`).
PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_ASKED: Final = (PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")

_DEFINITIONS: Final = "#/definitions/"
_GROUP_VERSION_KIND: Final = "x-kubernetes-group-version-kind"
# The wire type of texts and messages (protobuf.dev, "Encoding").
_LENGTH: Final = 2


@cache
def document() -> dict[str, Any]:
    """The document; a kind is found by the extension `x-kubernetes-group-version-kind` of its definition."""
    definitions = {name: _converted(schema) for name, schema in components().items()}
    for kind in KINDS:
        gvk = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        definitions[kind.kind] = {**definitions[kind.kind], _GROUP_VERSION_KIND: [gvk]}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {},
        "definitions": definitions,
    }


@cache
def as_protobuf() -> bytes:
    """The same document as an `openapi.v2.Document`."""
    written = document()
    info = _text(1, written["info"]["title"]) + _text(2, written["info"]["version"])
    definitions = b"".join(_message(1, _named(name, schema)) for name, schema in written["definitions"].items())
    return _text(1, written["swagger"]) + _message(2, info) + _message(8, b"") + _message(9, definitions)


def _converted(schema: Schema) -> Schema:
    """A schema of version 3 in version 2, where a value of any type has no type.

    So does kube-apiserver for custom kinds (apiextensions-apiserver `pkg/controller/openapi/v2/conversion.go`).
    """
    if reference := schema.get("$ref"):
        return {"$ref": f"{_DEFINITIONS}{reference.removeprefix(REFERENCE)}"}
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string"):
        return {}
    converted: Schema = {key: schema[key] for key in ("type", "format", "required") if key in schema}
    if "properties" in schema:
        converted["properties"] = {name: _converted(member) for name, member in schema["properties"].items()}
    if "items" in schema:
        converted["items"] = _converted(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        converted["additionalProperties"] = _converted(schema["additionalProperties"])
    return converted


def _schema(schema: Schema) -> bytes:
    """A `Schema` message."""
    parts = [_text(1, schema.get("$ref", "")), _text(2, schema.get("format", ""))]
    parts += [_text(19, name) for name in schema.get("required", ())]
    if "additionalProperties" in schema:
        parts.append(_message(21, _message(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_message(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_message(23, _message(1, _schema(schema["items"]))))
    if "properties" in schema:
        members = (_message(1, _named(name, member)) for name, member in schema["properties"].items())
        parts.append(_message(25, b"".join(members)))
    if _GROUP_VERSION_KIND in schema:
        value = _text(2, json.dumps(schema[_GROUP_VERSION_KIND]))  # `Any.yaml`, of which JSON is a part
        parts.append(_message(31, _text(1, _GROUP_VERSION_KIND) + _message(2, value)))
    return b"".join(parts)


def _named(name: str, schema: Schema) -> bytes:
    """A `NamedSchema` message."""
    return _text(1, name) + _message(2, _schema(schema))


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode()) if text else b""


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
