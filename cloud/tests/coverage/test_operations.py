"""COVERAGE.md's operations and faults: what is served is in a table, and what is in a table is served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Final

import pytest
from starlette.routing import Route

from localcloud.azure.arm import api as arm
from localcloud.azure.arm.resource_type import ResourceType
from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.held import HeldFaults
from tests.coverage.cloud import CoverageCloud
from tests.coverage.tables import OPERATIONS, Row, code, codes, table

_METHODS: Final = {
    "GET": "get",
    "list": "list",
    "PUT": "put",
    "PATCH": "patch",
    "DELETE": "delete",
    "POST": "action",
}
# Other keys of the same objects in Graph.
_KEYS: Final = {
    "(appId='{app_id}')": "/{id}",
    "(uniqueName='{unique_name}')": "/{id}",
    "(name='{credential}')": "/{credential}",
}
_KEY_VAULT: Final = table(OPERATIONS["keyvault"])


def test_arm_answers_the_methods_of_each_row_and_no_other() -> None:
    served = {type_name.name: _answered(type_name) for namespace in arm._NAMESPACES for type_name in namespace.types()}
    # DELETE of a secret has a method of its own, which refuses it as Azure does.
    tabled = {code(row["type"]): row["answers"].split(", ") for row in table("### Azure Resource Manager")}
    assert served == tabled


def _answered(resource_type: ResourceType) -> list[str]:
    own = type(resource_type)
    return [name for name, method in _METHODS.items() if getattr(own, method) is not getattr(ResourceType, method)]


@pytest.mark.parametrize("service", OPERATIONS)
def test_a_service_has_the_routes_of_its_table_and_no_other(service: str, cloud: CoverageCloud) -> None:
    routes = [route for route in cloud.services()[service].routes if isinstance(route, Route)]
    served = {(method, _by_object_id(route.path)) for route in routes for method in (route.methods or set()) - {"HEAD"}}
    assert served == set(_operations(table(OPERATIONS[service])))


def _by_object_id(path: str) -> str:
    for key, by_id in _KEYS.items():
        path = path.replace(key, by_id)
    return path


def _operations(rows: tuple[Row, ...]) -> Iterator[tuple[str, str]]:
    for row in rows:
        for method in row["methods"].split(", "):
            for collection in ("applications", "servicePrincipals"):
                yield method, code(row["path"]).replace("<collection>", collection)


def test_every_member_of_graph_is_found_by_its_application_id_too(cloud: CoverageCloud) -> None:
    paths = {(str(route.methods), route.path) for route in cloud.graph_service.routes if isinstance(route, Route)}
    for methods, path in paths:
        if path.startswith("/v1.0/") and "{id}" in path and "deletedItems" not in path:
            assert (methods, path.replace("/{id}", "(appId='{app_id}')")) in paths


@pytest.mark.parametrize("row", _KEY_VAULT, ids=[f"{row['methods']} {code(row['path'])}" for row in _KEY_VAULT])
def test_a_call_of_the_vault_needs_the_data_action_of_its_row(row: Row, cloud: CoverageCloud) -> None:
    cloud.vault("PUT", "/secrets/one", {"value": "v"})
    parts = {"{name}": "one", "{version:path}": "0" * 32, "{operation}": "encrypt"}
    path = code(row["path"])
    for part, value in parts.items():
        path = path.replace(part, value)
    refused = cloud.vault(row["methods"], path, {}, caller=cloud.nobody())

    [column] = [name for name in row if name.startswith("data action")]
    assert refused.status_code == 403
    assert f"Action: 'Microsoft.KeyVault/vaults/{code(row[column])}'" in refused.json()["error"]["message"]


def test_the_faults_are_those_of_the_table_with_its_defaults() -> None:
    tabled = {
        code(row["setting"]): json.loads(code(row["default"]))
        for row in table("## Azure's quirks, and the settings that change them")
    }
    assert tabled == json.loads(json.dumps(asdict(Faults())))


def test_the_held_members_are_those_of_the_table() -> None:
    tabled = [name for row in table("## Faults while it runs") for name in codes(row["member"])]
    assert sorted(tabled) == sorted(field.name for field in fields(HeldFaults))
