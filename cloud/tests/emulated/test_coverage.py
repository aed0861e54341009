"""PLUGINS.md's resource types and functions: the plugins do what their rows describe."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
import pytest

from emulated.azure_native.provider import AzureNative
from emulated.azure_native.table import FUNCTIONS, RESOURCES
from emulated.azuread.provider import AzureAd
from emulated.kubernetes.provider import EVERY_KIND, Kubernetes
from emulated.sdk_types import PropertyType, properties
from localcloud.kubernetes.kinds import KINDS
from localcloud.testing.certificates import issue
from localcloud.testing.hosted_clusters import hosted_cluster
from localcloud.testing.plugins import changes, checked, create, read, refresh, urn
from plugin import PluginError, Props, Provider, Secret, contains_secret, unwrap
from tests.coverage.tables import PLUGINS, Row, code, codes, lookup, matches, table, values
from tests.emulated.inputs import IDENTITY, Unique, identity_inputs, least
from tests.emulated.test_azuread import APPLICATION, CERTIFICATE, PRINCIPAL

_AZURE_NATIVE: Final = table("## azure-native: resource types", PLUGINS)
_AZUREAD: Final = table("## azuread: resource types", PLUGINS)
_KINDS: Final = table("## kubernetes: kinds", PLUGINS)
_SERVED: Final = {row["kind"]: row["filled in by the server"] for row in table("### Kubernetes API")}


def _by(column: str) -> Callable[[Row], str]:
    return lambda row: codes(row[column])[-1].rpartition(":")[2]


def _some(kind: str, text: str) -> Any:
    """A value of a property of this kind."""
    return {"list": [text], "scalar": text, "any": text}.get(kind, {"a": text})


def _replacing(provider: Provider, token: str, shapes: dict[str, PropertyType]) -> set[str]:
    """The arguments whose change replaces."""
    found = set()
    for name, shape in shapes.items():
        old, new = ({name: _some(shape.kind, text)} for text in ("1", "2"))
        changes = provider.resource(token).diff(urn(token), "id", old, old, new).changes
        assert changes, f"a change of {name} is no difference"
        found |= {name for change in changes.values() if change.replace}
    return found


def test_the_types_of_azure_native_are_those_of_the_table() -> None:
    assert {code(row["type"]): row["API version"] for row in _AZURE_NATIVE} == {
        token: row.api_version for token, row in RESOURCES.items()
    }


@pytest.mark.parametrize("row", _AZURE_NATIVE, ids=_by("type"))
def test_an_azure_native_type_is_replaced_by_what_its_row_names(row: Row) -> None:
    token = code(row["type"])
    shapes = dict(properties(RESOURCES[token].arguments))
    named = codes(row["a change replaces"])
    inside = [path for path in named if "." in path]
    assert sorted(_replacing(AzureNative(), token, shapes)) == sorted(set(named) - set(inside))
    assert [path for path in inside if _replaces_inside(AzureNative(), token, path)] == inside


def _replaces_inside(provider: Provider, token: str, path: str) -> bool:
    """Whether a change of an argument's own property replaces."""
    name, _, inner = path.partition(".")
    old: Props = {name: {inner: "1"}}
    new: Props = {name: {inner: "2"}}
    [change] = provider.resource(token).diff(urn(token), "id", old, old, new).changes.values()
    return change.replace


@pytest.mark.parametrize("row", _AZURE_NATIVE, ids=_by("type"))
def test_an_azure_native_type_has_its_rows_defaults_is_refreshed_without_a_change_and_is_not_adopted(
    row: Row, azure_native: AzureNative, unique: Unique
) -> None:
    token = code(row["type"])
    inputs, created = create(azure_native, token, least(azure_native, token, unique))
    _assert_filled_in(unwrap(created.state), values(row["filled in by the service"]))
    for path in codes(row["never comes back"]):
        assert lookup(unwrap(inputs), path) is not None
        assert lookup(unwrap(created.state), path) is None
    refreshed = refresh(azure_native, token, inputs, created)
    assert (refreshed.inputs, refreshed.state) == (inputs, created.state)
    assert not changes(azure_native, token, inputs, created, inputs)
    with pytest.raises(PluginError) as refused:
        azure_native.resource(token).create(urn(token), inputs, preview=False)
    azure_native.resource(token).delete(urn(token), created.id, inputs, created.state)
    assert matches("cannot create already existing resource '<id>'", str(refused.value))


def _assert_filled_in(state: Props, expected: Props) -> None:
    for path, value in expected.items():
        found = lookup(state, path)
        assert found is not None, path
        assert value in (..., found), path


def test_the_types_of_azuread_are_those_of_the_table() -> None:
    assert {code(row["type"]) for row in _AZUREAD} == set(AzureAd()._resources)


@pytest.mark.parametrize("row", _AZUREAD, ids=_by("type"))
def test_an_azuread_type_is_planned_as_its_row_says(row: Row) -> None:
    token = code(row["type"])
    schema = AzureAd()._resources[token].schema  # type: ignore[attr-defined]
    shapes = dict.fromkeys(schema.arguments, PropertyType("scalar"))

    assert sorted(_replacing(AzureAd(), token, shapes)) == sorted(codes(row["a change replaces"]))
    assert values(row["default"]) == {
        name: argument.default for name, argument in schema.arguments.items() if argument.default is not None
    }
    left_alone = {name for name in schema.arguments if name not in schema.changes({name: "1"}, {})}
    assert sorted(codes(row["left to the service when not given"])) == sorted(left_alone)
    assert codes(row["secret in the state"]) == [
        name for name, value in schema.sealed(dict.fromkeys(schema.arguments, "x")).items() if contains_secret(value)
    ]


@pytest.mark.parametrize("row", _AZUREAD, ids=_by("type"))
def test_creating_over_an_existing_azuread_object_does_what_its_row_says(
    row: Row, azuread: AzureAd, unique: Unique
) -> None:
    token, cell = code(row["type"]), row["created over an existing one"]
    inputs = _azuread_inputs(azuread, token, unique)
    _, created = create(azuread, token, inputs)
    if not codes(cell):
        assert create(azuread, token, inputs)[1].id != created.id
        return
    with pytest.raises(PluginError) as refused:
        azuread.resource(token).create(urn(token), checked(azuread, token, inputs), preview=False)
    assert matches(codes(cell)[0], str(refused.value))


def _azuread_inputs(plugin: AzureAd, token: str, unique: Unique) -> Props:
    me = plugin.invoke("azuread:index/getClientConfig:getClientConfig", {})["objectId"]
    application: Props = {"displayName": unique("app"), "owners": [me]}
    if token.endswith(":Application"):
        return application
    _, made = create(plugin, "azuread:index/application:Application", application)
    if token.endswith(":ServicePrincipal"):
        return {"clientId": made.state["clientId"], "owners": [me]}
    registration = {"applicationId": made.id, "type": "AsymmetricX509Cert", "keyId": str(uuid.uuid4())}
    return {**registration, "value": Secret(issue().certificate_pem)}


def test_the_kinds_of_the_built_in_api_are_those_of_the_table() -> None:
    assert sorted(codes(row["kind"]) for row in _KINDS) == sorted([kind.api_version, kind.kind] for kind in KINDS)
    assert [row["kind"] for row in _KINDS] == list(_SERVED)


@pytest.mark.parametrize("row", _KINDS, ids=_by("kind"))
def test_a_kind_is_replaced_by_the_fields_of_its_row(row: Row, kubernetes: Kubernetes) -> None:
    def replaces(path: str) -> bool:
        old, new = (_document(kubernetes, _token(row), path, value) for value in ("1", "2"))
        diff = kubernetes.resource(_token(row)).diff(urn(_token(row)), "id", old, old, new)
        [change] = diff.changes.values()
        return change.replace

    named = codes(row["a change replaces"])
    is_namespaced = next(kind.namespaced for kind in KINDS if [kind.api_version, kind.kind] == codes(row["kind"]))
    replacing = (*named, *EVERY_KIND) if is_namespaced else (*named, "metadata.name")
    assert [path for path in replacing if replaces(path)] == list(replacing)
    others = {"metadata.labels.a", "data.a", "type", "roleRef.a", "spec.selector.a", "spec.volumes[*].a"}
    others |= {f"spec.containers[*].{field}" for field in ("name", "image", "env[*].name")} | {"spec.other"}
    others = {path for path in others if not any(path.startswith(prefix) for prefix in named)}
    assert [path for path in others if replaces(path)] == []


def _token(row: Row) -> str:
    api_version, kind = codes(row["kind"])
    return f"kubernetes:{'core/v1' if api_version == 'v1' else api_version}:{kind}"


def _document(kubernetes: Kubernetes, token: str, path: str, value: str) -> Props:
    """Checked inputs with this value at the path, in the first item of a list."""
    leaf: Any = {"a": value} if path.rpartition(".")[2] in {"data", "stringData", "binaryData"} else value
    for name in reversed(path.split(".")):
        leaf = {name.removesuffix("[*]"): [leaf] if name.endswith("[*]") else leaf}
    metadata = {"name": "one", "namespace": "clusters-hc1", **leaf.pop("metadata", {})}
    return checked(kubernetes, token, {**leaf, "metadata": metadata})


@pytest.mark.parametrize("row", [row for row in _KINDS if "=" in _SERVED[row["kind"]]], ids=_by("kind"))
def test_a_kind_is_filled_in_and_marked_as_its_row_says(row: Row, kubernetes: Kubernetes, unique: Unique) -> None:
    token = _token(row)
    labels = {"app": "one"}
    pod = {"containers": [{"name": "one", "image": "one:1"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    pods: Props = {"spec": {"selector": {"matchLabels": labels}, "template": template}}
    parts: dict[str, Props] = {
        "Pod": {"spec": pod},
        "Secret": {"stringData": {"a": "marker"}},
        "HostedCluster": {"spec": hosted_cluster()["spec"]},
        "Deployment": pods,
        "ReplicaSet": pods,
        "PersistentVolumeClaim": {"spec": {"accessModes": ["ReadWriteOnce"]}},
    }
    metadata = {"name": unique("one"), "annotations": {"pulumi.com/skipAwait": "true"}}
    inputs, created = create(kubernetes, token, {"metadata": metadata, **parts.get(codes(row["kind"])[1], {})})

    _assert_filled_in(unwrap(created.state), values(_SERVED[row["kind"]]))
    assert codes(row["secret in the state"]) == [name for name in created.state if contains_secret(created.state[name])]
    assert read(kubernetes, token, inputs, created) is not None
    with pytest.raises(PluginError, match=f'"{metadata["name"]}" already exists'):
        kubernetes.resource(token).create(urn(token), inputs, preview=False)


def test_the_functions_are_those_of_the_table() -> None:
    about_the_client = {
        "azure-native:authorization:getClientConfig",
        "azure-native:authorization:getClientToken",
    }
    assert {code(row["function"]) for row in table("## Functions", PLUGINS)} == {
        *FUNCTIONS,
        *about_the_client,
        *AzureAd()._functions,
    }


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests of the plugins while this is open; a refusal, after which they try again, is none."""
    sent: list[str] = []
    send = httpx.Client.request

    def counting(self: httpx.Client, method: str, url: str, **options: Any) -> httpx.Response:
        answer = send(self, method, url, **options)
        # To look for what is not there yet is a part of azure-native's create.
        if answer.is_success or method == "GET":
            sent.append(f"{method} {url}")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(httpx.Client, "request", counting)
        yield sent


def test_graph_resources_take_so_many_requests(
    azuread: AzureAd, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = azuread.invoke("azuread:index/getClientConfig:getClientConfig", {})["objectId"]
    with counted(monkeypatch) as sent:
        _, application = create(azuread, APPLICATION, {"displayName": unique("app"), "owners": [me]})
    assert len(sent) == 5, sent
    with counted(monkeypatch) as sent:
        create(azuread, PRINCIPAL, {"clientId": application.state["clientId"], "owners": [me]})
    assert len(sent) == 5, sent
    registration = {"applicationId": application.id, "type": "AsymmetricX509Cert"}
    with counted(monkeypatch) as sent:
        create(azuread, CERTIFICATE, {**registration, "value": Secret(issue().certificate_pem)})
    assert len(sent) == 8, sent


def test_arm_resources_take_so_many_requests(
    azure_native: AzureNative, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(monkeypatch) as sent:
        create(azure_native, IDENTITY, identity_inputs(unique("identity")))
    assert len(sent) == 3, sent
