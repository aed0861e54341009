"""`/openapi/v2` as client-go reads it: gnostic's protobuf, decoded here by the field numbers of its `.proto`."""

from __future__ import annotations

import json
from typing import Any, Final

import httpx
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from localcloud.kubernetes import discovery
from localcloud.kubernetes.kinds import KINDS
from localcloud.testing.kubernetes import RunningApi, client_of

# openapiv2/OpenAPIv2.proto (google/gnostic-models 0.7): field numbers, and types of message fields; `*` is repeated.
_MESSAGES: Final[dict[str, dict[str, tuple[int, str]]]] = {
    "Document": {
        "swagger": (1, ""),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "Definitions"),
    },
    "Info": {"title": (1, ""), "version": (2, "")},
    "Paths": {},
    "Definitions": {"additional_properties": (1, "*NamedSchema")},
    "NamedSchema": {"name": (1, ""), "value": (2, "Schema")},
    "Schema": {
        "_ref": (1, ""),
        "format": (2, ""),
        "required": (19, "*"),
        "additional_properties": (21, "AdditionalPropertiesItem"),
        "type": (22, "TypeItem"),
        "items": (23, "ItemsItem"),
        "properties": (25, "Properties"),
        "vendor_extension": (31, "*NamedAny"),
    },
    "AdditionalPropertiesItem": {"schema": (1, "Schema")},
    "TypeItem": {"value": (1, "*")},
    "ItemsItem": {"schema": (1, "*Schema")},
    "Properties": {"additional_properties": (1, "*NamedSchema")},
    "NamedAny": {"name": (1, ""), "value": (2, "Any")},
    "Any": {"yaml": (2, "")},
}
_CLIENT_GO: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def asked(api: RunningApi, accept: str) -> httpx.Response:
    """The answer to a client with this Accept header."""
    with client_of(api.kubeconfig) as http:
        return http.get("/openapi/v2", headers={"Accept": accept}).raise_for_status()


def decoded(encoded: bytes) -> dict[str, Any]:
    """The document in a `Document` message; a field that the message type does not have is an error."""
    file = descriptor_pb2.FileDescriptorProto(name="openapi.proto", package="openapi.v2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            made = message.field.add(name=field, number=number)
            made.label = made.LABEL_REPEATED if kind.startswith("*") else made.LABEL_OPTIONAL
            if inner := kind.removeprefix("*"):
                made.type, made.type_name = made.TYPE_MESSAGE, f".openapi.v2.{inner}"
            else:
                made.type = made.TYPE_STRING
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    document: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("openapi.v2.Document"))()
    document.ParseFromString(encoded)
    assert encoded == _known(document).SerializeToString(deterministic=True), "fields beyond those of the messages"
    definitions = {
        additional_property.name: _schema(additional_property.value)
        for additional_property in document.definitions.additional_properties
    }
    info = {"title": document.info.title, "version": document.info.version}
    return {"swagger": document.swagger, "info": info, "paths": {}, "definitions": definitions}


def _known(document: Message) -> Message:
    document.DiscardUnknownFields()
    return document


def _schema(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if message._ref:
        found["$ref"] = message._ref
    if message.format:
        found["format"] = message.format
    if message.required:
        found["required"] = list(message.required)
    if message.HasField("type"):
        (found["type"],) = message.type.value
    if message.HasField("items"):
        (inner,) = message.items.schema
        found["items"] = _schema(inner)
    if message.HasField("additional_properties"):
        found["additionalProperties"] = _schema(message.additional_properties.schema)
    if message.HasField("properties"):
        found["properties"] = {
            additional_property.name: _schema(additional_property.value)
            for additional_property in message.properties.additional_properties
        }
    for extension in message.vendor_extension:
        found[extension.name] = json.loads(extension.value.yaml)
    return found


@pytest.mark.parametrize("accept", [_CLIENT_GO, discovery.PROTOBUF])
def test_the_protobuf_form_says_what_the_json_form_says(api: RunningApi, accept: str) -> None:
    as_json, as_protobuf = asked(api, "application/json"), asked(api, accept)

    assert as_json.headers["content-type"] == "application/json"
    assert as_protobuf.headers["content-type"] == discovery.PROTOBUF
    assert decoded(as_protobuf.content) == as_json.json()


def test_every_kind_is_found_by_group_version_and_kind() -> None:
    found = [
        (kind["group"], kind["version"], kind["kind"])
        for schema in discovery.openapi_document()["definitions"].values()
        for kind in schema.get("x-kubernetes-group-version-kind", [])
    ]

    assert sorted(found) == sorted((kind.group, kind.version, kind.kind) for kind in KINDS)


def test_every_reference_leads_to_a_definition() -> None:
    definitions = discovery.openapi_document()["definitions"]
    text = json.dumps(definitions)
    references = {part.split('"')[0] for part in text.split('"$ref": "#/definitions/')[1:]}

    assert references
    assert references <= set(definitions)
    assert "#/components/" not in text


def test_what_may_be_anything_has_no_type() -> None:
    """A client takes an object without properties for a map of them, and refuses what its values are not."""
    cluster = discovery.openapi_document()["definitions"]["HostedCluster"]["properties"]["spec"]["properties"]

    assert cluster["updateService"] == {"type": "string"}
    assert cluster["platform"]["properties"]["aws"] == {}
