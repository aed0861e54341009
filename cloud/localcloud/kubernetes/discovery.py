"""The discovery documents: versions, groups, resources and the OpenAPI documents."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from localcloud.core.documents import document
from localcloud.kubernetes import schemas
from localcloud.kubernetes.kinds import KINDS, ResourceKind
from localcloud.kubernetes.schemas import REFERENCE, Schema, components

# `/openapi/v2`: the schemas of every kind as an OpenAPI 2.0 document, in JSON and in gnostic's protobuf.
#
# client-go asks for protobuf and reads nothing else (`discovery.OpenAPISchema`), and takes kinds and fields out of it.
# The encoding is that of `openapiv2/OpenAPIv2.proto` (google/gnostic-models), of which only the messages in use are
# here. The document has no paths.


# The second is client-go's, which is not a media type of RFC 6838 (kube-openapi `pkg/handler/handler.go`).
PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_ASKED: Final = (PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")

_DEFINITIONS: Final = "#/definitions/"
_GROUP_VERSION_KIND: Final = "x-kubernetes-group-version-kind"
# The wire type of texts and messages (protobuf.dev, "Encoding").
_LENGTH: Final = 2


@cache
def openapi_document() -> dict[str, Any]:
    """The document; a kind is found by the extension `x-kubernetes-group-version-kind` of its definition."""
    definitions = {name: _converted(schema) for name, schema in components().items()}
    for kind in KINDS:
        definitions[kind.kind] = {**definitions[kind.kind], _GROUP_VERSION_KIND: [kind.gvk]}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {},
        "definitions": definitions,
    }


@cache
def as_protobuf() -> bytes:
    """The same document as an `openapi.v2.Document`."""
    written = openapi_document()
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


_VERBS: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS: Final = ["get", "patch", "update"]

VERSION: Final = document(__file__, "version")


def core_versions() -> dict[str, Any]:
    """`/api`."""
    return document(__file__, "core versions")


def groups() -> dict[str, Any]:
    """`/apis`."""
    names = sorted({kind.group for kind in KINDS if kind.group})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in names]}


def group(name: str) -> dict[str, Any] | None:
    """`/apis/<group>`, None for a group that is not served."""
    if any(kind.group == name for kind in KINDS):
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(name)}
    return None


def resources(group: str, version: str) -> dict[str, Any] | None:
    """`/api/v1` or `/apis/<group>/<version>`, None for a version that is not served."""
    served = [kind for kind in KINDS if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    listed: list[dict[str, Any]] = []
    for kind in served:
        extras = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
        listed.append({**_resource(kind, kind.plural, _VERBS), **extras})
        if kind.has_status:
            listed.append(_resource(kind, f"{kind.plural}/status", _STATUS_VERBS))
    return document(__file__, "resources", version=served[0].api_version, resources=listed)


def openapi_paths() -> dict[str, Any]:
    """`/openapi/v3`: where each group's document is."""
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in sorted({_root(kind) for kind in KINDS})
        }
    }


def openapi(path: str) -> dict[str, Any] | None:
    """The OpenAPI document of one group version; kubectl learns from it that the server validates fields."""
    served = [kind for kind in KINDS if _root(kind) == path]
    if not served:
        return None
    known, kinds = schemas.components(), {kind.kind for kind in KINDS}
    own = {kind.kind: {**known[kind.kind], _GROUP_VERSION_KIND: [kind.gvk]} for kind in served}
    used = {name: schema for name, schema in known.items() if name not in kinds}
    paths = {path: operations for kind in served for path, operations in _paths(kind).items()}
    return document(__file__, "openapi", paths=paths, schemas={**used, **own})


def _paths(kind: ResourceKind) -> dict[str, Any]:
    scope = "namespaces/{namespace}/" if kind.namespaced else ""
    patch = document(__file__, "patch", kind=kind.gvk)
    return {f"/{_root(kind)}/{scope}{kind.plural}/{{name}}": {"patch": patch}}


def _root(kind: ResourceKind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _group(name: str) -> dict[str, Any]:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in sorted({kind.version for kind in KINDS if kind.group == name})
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(kind: ResourceKind, name: str, verbs: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "singularName": kind.singular if "/" not in name else "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
    }
