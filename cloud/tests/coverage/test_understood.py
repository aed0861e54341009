"""Nothing is ignored in silence: an operation refuses an option, a header and a member that it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest

from localcloud.testing.arm import GROUP, ONE, SUBSCRIPTION
from localcloud.testing.azure import ask
from tests.coverage.cloud import AUTHORITY, CoverageCloud
from tests.coverage.tables import OPERATIONS, code, table

_NAME: Final = "colour"
_BASES: Final = {
    "arm": "https://management.azure.com",
    "entra": AUTHORITY,
    "graph": "https://graph.microsoft.com",
    "keyvault": "https://kv-idstack-local.vault.azure.net",
    "blob": "https://staccount.blob.core.windows.net",
    "imds": "http://169.254.169.254",
    "aks-webhooks": "https://localhost",
}
# Roles that may do everything which ARM and the data planes emulate.
_ROLES: Final = ("Contributor", "User Access Administrator", "Key Vault Administrator", "Storage Blob Data Contributor")
_METHODS: Final = {"list": "GET", "POST": "POST"}
# The content of a blob is not JSON, and these forms are checked by a test of their own.
_NO_MEMBERS: Final = frozenset({"PUT /{container}/{name:path}", "POST /common/oauth2/deviceauth"})


@dataclass(frozen=True)
class Operation:
    """One operation of a table."""

    service: str
    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.service}: {self.method} {self.path}"


def _operations() -> Iterator[Operation]:
    for row in table("### Azure Resource Manager"):
        for method in row["answers"].split(", "):
            yield Operation("arm", method, code(row["type"]))
    for service, heading in OPERATIONS.items():
        for row in table(heading):
            for method in row["methods"].split(", "):
                yield Operation(service, method, code(row["path"]))


_ALL: Final = list(_operations())


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoverageCloud]:
    built = CoverageCloud(tmp_path_factory.mktemp("understood"))
    for role in _ROLES:
        built.grant(built.deployer, role, SUBSCRIPTION)
    account = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/staccount"
    built.put(account, "Microsoft.Storage/storageAccounts", {})
    container = f"{account}/blobServices/default/containers/one"
    built.put(container, "Microsoft.Storage/storageAccounts/blobServices/containers", {})
    yield built
    built.store.close()


@pytest.mark.parametrize("operation", _ALL, ids=[str(operation) for operation in _ALL])
def test_a_query_option_that_it_does_not_know_is_refused(operation: Operation, cloud: CoverageCloud) -> None:
    _assert_refused(_sent(cloud, operation, params={_NAME: "red"}))


@pytest.mark.parametrize("operation", _ALL, ids=[str(operation) for operation in _ALL])
def test_a_header_that_it_does_not_know_is_refused(operation: Operation, cloud: CoverageCloud) -> None:
    _assert_refused(_sent(cloud, operation, headers={_NAME: "red"}))


_WITH_MEMBERS: Final = [operation for operation in _ALL if f"{operation.method} {operation.path}" not in _NO_MEMBERS]


@pytest.mark.parametrize("operation", _WITH_MEMBERS, ids=[str(with_member) for with_member in _WITH_MEMBERS])
def test_a_member_of_a_body_that_it_does_not_know_is_refused(operation: Operation, cloud: CoverageCloud) -> None:
    is_form = operation.service == "entra" and operation.method == "POST"
    if not is_form:
        answer = _sent(cloud, operation, json={_NAME: "red"})
        _assert_refused(answer, "body" if operation.service == "blob" else _NAME)
        return
    form = {"grant_type": "client_credentials", "client_id": ONE, "scope": "x/.default", _NAME: "red"}
    if operation.path.endswith("/oauth2/token"):
        form["resource"] = form.pop("scope")
    if operation.path.endswith("/devicecode"):
        del form["grant_type"]
    _assert_refused(_sent(cloud, operation, data=form))


# These are at any scope, or name a scope themselves.
_ANYWHERE: Final = ("Microsoft.Authorization", "Microsoft.Insights", "Microsoft.Resources")
_IN_A_GROUP: Final = [
    operation.path
    for operation in _ALL
    if (operation.service, operation.method) == ("arm", "PUT") and not operation.path.startswith(_ANYWHERE)
]


@pytest.mark.parametrize("type_name", [name for name in _IN_A_GROUP if name != "Microsoft.KeyVault/vaults/secrets"])
def test_nothing_is_written_outside_of_a_resource_group(type_name: str, cloud: CoverageCloud) -> None:
    namespace, *types = type_name.split("/")
    path = f"{SUBSCRIPTION}/providers/{namespace}" + "".join(f"/{name}/one" for name in types)
    answer = cloud.call("PUT", path, {"location": "eastus"} if len(types) == 1 else {})
    assert (answer.status_code, f"{type_name} outside of a resource group" in answer.text) == (501, True), answer.text


def test_what_clients_send_for_diagnostics_is_taken(cloud: CoverageCloud) -> None:
    operation = Operation("keyvault", "GET", "/secrets")
    sent = {
        **{"User-Agent": "azsdk", "traceparent": "00-1-1-01", "x-ms-client-request-id": ONE, "Accept": "*/*"},
        **{"x-ms-return-client-request-id": "true", "x-client-SKU": "MSAL.Python", "CommandName": "keyvault list"},
        **{"x-ms-correlation-request-id": ONE, "SdkVersion": "graph-go", "If-Match": ""},
        **{"X-Azure-Proxy-Target": "https://kv-idstack-local.vault.azure.net"},
    }

    assert _sent(cloud, operation, headers=sent).status_code == 200


def _assert_refused(answer: httpx.Response, named: str = _NAME) -> None:
    """501 `NotEmulated`, or 400 as the service has it; the words name what was not understood."""
    assert answer.status_code in (400, 501), answer.text
    assert named in answer.text
    assert answer.status_code == 400 or "NotEmulated" in answer.text


def _sent(cloud: CoverageCloud, operation: Operation, **options: Any) -> httpx.Response:
    params = {**_options(operation), **options.pop("params", {})}
    headers = {**_headers(cloud, operation), **options.pop("headers", {})}
    path, method = _path(cloud, operation), _METHODS.get(operation.method, operation.method)
    app, base = cloud.services()[operation.service], _BASES[operation.service]
    return ask(app, base, method, path, params=params, headers=headers, **options)


def _options(operation: Operation) -> dict[str, str]:
    match operation.service:
        case "arm":
            return {"api-version": "2024-11-01"}
        case "keyvault":
            return {"api-version": "7.4"}
        case "blob" if operation.path == "/{container}":
            return {"restype": "container"} | ({"comp": "list"} if operation.method == "GET" else {})
        case "imds":
            return {"api-version": "2018-02-01", "resource": "https://vault.azure.net"}
        case "entra" if operation.path == "/common/discovery/instance":
            return {"api-version": "1.1", "authorization_endpoint": f"{AUTHORITY}/x/oauth2/v2.0/authorize"}
    return {}


def _headers(cloud: CoverageCloud, operation: Operation) -> dict[str, str]:
    audiences = {
        "arm": "https://management.azure.com",
        "graph": "https://graph.microsoft.com",
        "keyvault": "https://vault.azure.net",
        "blob": "https://storage.azure.com",
    }
    beside = {"imds": {"Metadata": "true"}, "blob": {"x-ms-version": "2024-11-04"}}.get(operation.service, {})
    if operation.service not in audiences:
        return beside
    deployer = cloud.cloud.directory.service_principal(cloud.deployer.object_id)
    assert deployer is not None
    token = cloud.cloud.tokens.issue(deployer, audiences[operation.service])
    return {**beside, "Authorization": f"Bearer {token}"}


def _path(cloud: CoverageCloud, operation: Operation) -> str:
    if operation.service == "arm":
        return _arm_path(operation)
    parts = {
        **{"{tenant}": cloud.cloud.tenant_id, "<collection>": "applications", "{id}": ONE, "{name}": "one"},
        **{"{version:path}": "0" * 32, "{operation}": "encrypt", "{container}": "one", "{name:path}": "one"},
        **{"{owner}": ONE, "{credential}": "ci", "{user}": ONE, "{type}": "application", "{issuer}": "one"},
    }
    path = operation.path
    for part, value in parts.items():
        path = path.replace(part, value)
    return f"/v1.0{path}" if operation.service == "graph" and not path.startswith("/v1.0") else path


def _arm_path(operation: Operation) -> str:
    namespace, *types = operation.path.split("/")
    is_list = operation.method == "list"
    verbs = {
        "Microsoft.KeyVault/locations/deletedVaults": "purge",
        "Microsoft.Storage": "checkNameAvailability",
        "Microsoft.Storage/storageAccounts": "listKeys",
        "Microsoft.ContainerService/managedClusters": "listClusterUserCredential",
    }
    verb = f"/{verbs[operation.path]}" if operation.method == "POST" else ""
    names = {"subscriptions": SUBSCRIPTION.split("/")[2], "locations": "eastus", "providers": "Microsoft.KeyVault"}
    pairs = "".join(f"/{type_name}/{names.get(type_name, ONE)}" for type_name in types)
    path = pairs.rpartition("/")[0] if is_list else pairs
    if namespace == "Microsoft.Resources":
        return path
    in_a_group = types and types[0] not in ("deletedVaults", "locations", "deletedManagedHSMs", "skus")
    return f"{GROUP if in_a_group else SUBSCRIPTION}/providers/{namespace}{path}{verb}"


def test_every_path_that_is_not_served_is_not_emulated(cloud: CoverageCloud) -> None:
    """Azure has these: nobody is told that something else is missing."""
    unserved = {
        "arm": ["/subscriptions/{s}/tagNames", "/providers", "/providers/Microsoft.Management/managementGroups/a"],
        "graph": ["/v1.0/users", "/v1.0/groups/a", "/v1.0/applications/delta", "/v1.0/servicePrincipals/{id}/x"],
        "keyvault": ["/keys/one/rotate", "/storage", f"/keys/one/{'0' * 32}/attestation", "/certificates/one/merge"],
        "blob": ["/", "/one?comp=acl&restype=container"],
        "entra": ["/common/v2.0/.well-known/openid-configuration", f"/{cloud.cloud.tenant_id}/oauth2/v2.0/authorize"],
        "imds": ["/metadata/instance", "/metadata/attested/document"],
    }
    for service, paths in unserved.items():
        app, operation = cloud.services()[service], Operation(service, "GET", "")
        headers, base = _headers(cloud, operation), _BASES[service]
        for path in (path.replace("{s}", SUBSCRIPTION.split("/")[2]).replace("{id}", ONE) for path in paths):
            found = ask(app, base, "GET", path, params=_options(operation) or None, headers=headers)
            assert (found.status_code, "NotEmulated" in found.text) == (501, True), f"{service} {path}: {found.text}"
