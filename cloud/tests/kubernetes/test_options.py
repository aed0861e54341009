"""What clients ask beside objects: options, honoured or refused in kube-apiserver's words, and `/openapi/v2`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from localcloud.kubernetes import discovery
from localcloud.kubernetes.kinds import KINDS
from localcloud.testing.kubernetes import RunningApi, client_of, config_map

MAPS: Final = "/api/v1/namespaces/default/configmaps"
MERGE: Final = {"Content-Type": "application/merge-patch+json"}
TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


@pytest.fixture
def http(api: RunningApi) -> Iterator[httpx.Client]:
    """As an administrator, with three ConfigMaps in the cluster."""
    with client_of(api.kubeconfig) as client:
        for name in "abc":
            client.post(MAPS, json=config_map(name)).raise_for_status()
        yield client


def names(listed: dict[str, Any]) -> list[str]:
    return [obj["metadata"]["name"] for obj in listed["items"]]


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    status = answer.json()
    assert (status["kind"], status["code"]) == ("Status", answer.status_code)
    return status["code"], status["reason"], status["message"]


def test_a_list_comes_in_pages(http: httpx.Client) -> None:
    first = http.get(MAPS, params={"limit": 2}).json()
    rest = http.get(MAPS, params={"limit": 2, "continue": first["metadata"]["continue"]}).json()

    assert (names(first), names(rest)) == (["a", "b"], ["c"])
    assert first["metadata"]["remainingItemCount"] == 1
    assert rest["metadata"].keys() == {"resourceVersion"}


def test_a_page_of_a_selection_does_not_count_the_rest(http: httpx.Client) -> None:
    page = http.get(MAPS, params={"limit": 1, "fieldSelector": "metadata.name!=a"}).json()

    assert names(page) == ["b"]
    assert page["metadata"].keys() == {"resourceVersion", "continue"}


def test_a_page_of_a_past_list_is_refused_with_a_token_that_goes_on(http: httpx.Client) -> None:
    token = http.get(MAPS, params={"limit": 1}).json()["metadata"]["continue"]
    http.post(MAPS, json=config_map("aa"))

    expired = http.get(MAPS, params={"continue": token})

    assert refusal(expired)[:2] == (410, "Expired")
    inconsistent = http.get(MAPS, params={"continue": expired.json()["metadata"]["continue"]}).json()
    assert names(inconsistent) == ["aa", "b", "c"]


@pytest.mark.parametrize("value", ["1", "True", "yes", ""])
def test_every_value_but_false_asks_for_a_watch(http: httpx.Client, value: str) -> None:
    answer = http.get(MAPS, params={"watch": value, "timeoutSeconds": 1, "limit": 1})

    assert answer.text.count('"type":"ADDED"') == 3


@pytest.mark.parametrize("value", ["false", "False", "0"])
def test_a_watch_that_is_false_is_a_list(http: httpx.Client, value: str) -> None:
    assert len(names(http.get(MAPS, params={"watch": value}).json())) == 3


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("resourceVersionMatch=Exact", (422, "resourceVersionMatch is forbidden unless resourceVersion is provided")),
        ("resourceVersionMatch=Newest&resourceVersion=1", (422, '"Newest": supported values: "Exact", "NotOlderThan"')),
        ("resourceVersionMatch=Exact&resourceVersion=0", (422, 'is forbidden for resourceVersion "0"')),
        ("resourceVersionMatch=Exact&resourceVersion=1", (410, "The resourceVersion for the provided list is too old")),
        ("resourceVersion=99999", (504, "Too large resource version: 99999, current:")),
        ("resourceVersion=new", (400, 'strconv.ParseUint: parsing "new": invalid syntax')),
        ("limit=many", (400, 'strconv.ParseInt: parsing "many": invalid syntax')),
        ("timeoutSeconds=1.5", (400, 'strconv.ParseInt: parsing "1.5": invalid syntax')),
        ("continue=colour", (400, "continue key is not valid")),
        ("sendInitialEvents=true", (422, "sendInitialEvents is forbidden for list")),
        ("watch=1&sendInitialEvents=true", (422, "sendInitialEvents is forbidden for watch unless the WatchList")),
        ("watch=1&resourceVersionMatch=NotOlderThan", (422, "for watch unless sendInitialEvents is provided")),
        ("watch=1&resourceVersion=new", (400, 'strconv.ParseUint: parsing "new": invalid syntax')),
        ("labelSelector=a%3Db%3Dc", (400, "unable to parse requirement")),
        ("fieldSelector=data.a%3Db", (400, "not supported")),
    ],
)
def test_a_list_that_kube_apiserver_refuses_is_refused(
    http: httpx.Client, query: str, expected: tuple[int, str]
) -> None:
    code, _, message = refusal(http.get(f"{MAPS}?{query}"))

    assert code == expected[0]
    assert expected[1] in message


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("dryRun=Server", 'dryRun: Unsupported value: "Server": supported values: "All"'),
        ("dryRun=", 'dryRun: Unsupported value: "": supported values: "All"'),
        ("fieldValidation=Loud", 'fieldValidation: Unsupported value: "Loud": supported values: "", "Ignore"'),
        (f"fieldManager={'m' * 129}", "fieldManager: Too long"),
        ("force=true", "force: Forbidden: may not be specified for non-apply patch"),
    ],
)
def test_a_patch_that_kube_apiserver_refuses_is_refused(http: httpx.Client, query: str, expected: str) -> None:
    code, reason, message = refusal(http.patch(f"{MAPS}/a?{query}", json={"data": {"b": "1"}}, headers=MERGE))

    assert (code, reason) == (422, "Invalid")
    assert message.startswith(f'PatchOptions.meta.k8s.io "" is invalid: {expected}')
    assert "data" not in http.get(f"{MAPS}/a").json()


def test_nobody_is_warned_of_unknown_fields_who_ignores_them(http: httpx.Client) -> None:
    body = {**config_map("d"), "colour": "red"}

    warned = http.post(f"{MAPS}?dryRun=All", json=body)
    ignored = http.post(f"{MAPS}?dryRun=All&fieldValidation=Ignore", json=body)

    assert "colour" in warned.headers["warning"]
    assert "warning" not in ignored.headers


def test_the_body_of_a_deletion_counts_and_not_its_query(http: httpx.Client) -> None:
    http.request("DELETE", f"{MAPS}/a?dryRun=All", json={"propagationPolicy": "Background"}).raise_for_status()
    http.delete(f"{MAPS}/b?dryRun=All").raise_for_status()

    assert names(http.get(MAPS).json()) == ["b", "c"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"propagationPolicy": "Later"}, 'propagationPolicy: Unsupported value: "Later"'),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, "cannot be both set"),
        ({"dryRun": ["Server"]}, 'dryRun: Unsupported value: "Server"'),
    ],
)
def test_a_deletion_that_kube_apiserver_refuses_is_refused(
    http: httpx.Client, body: dict[str, Any], expected: str
) -> None:
    code, _, message = refusal(http.request("DELETE", f"{MAPS}/a", json=body))

    assert code == 422
    assert expected in message


@pytest.mark.parametrize(
    ("included", "members"), [("", {"metadata", "kind", "apiVersion"}), ("Object", config_map("a", {"a": "1"}).keys())]
)
def test_a_table_has_as_much_of_an_object_as_was_asked_for(
    http: httpx.Client, included: str, members: set[str]
) -> None:
    http.patch(f"{MAPS}/a", json={"data": {"a": "1"}}, headers=MERGE).raise_for_status()

    table = http.get(f"{MAPS}/a", params={"includeObject": included}, headers=TABLE).json()

    assert table["rows"][0]["object"].keys() == members


def test_a_name_that_kube_apiserver_does_not_know_is_ignored(http: httpx.Client) -> None:
    assert len(names(http.get(MAPS, params={"colour": "red"}).json())) == 3


def test_nobody_acts_as_somebody_else(http: httpx.Client) -> None:
    answer = http.get(MAPS, headers={"Impersonate-User": "jane"})

    assert refusal(answer)[:2] == (501, "NotEmulated")


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
