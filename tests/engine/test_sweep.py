"""A name that an assignment of an older principal has taken: `up` says so, `idstack sweep` frees it, `up` goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.naming import STACK_TAG, role_assignment_name
from tests.engine.killing import small_stack
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

_AUTHORIZATION: Final = "2022-04-01"
_MANAGED_IDENTITY: Final = "2023-01-31"
ROW: Final = next(row for row in CONTROL_PLANE if row.setting is None and row.enabled_by_default)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with small_stack(tmp_path_factory.mktemp("sweep"), "hypershift") as made:
        yield made


def left_over(stack: LocalStack) -> list[dict[str, Any]]:
    document = json.loads(stack.idstack("sweep", "--json").stdout)
    assert document["unread"] == {}
    return list(document["leftovers"])


def test_a_name_taken_by_an_older_principal_is_freed(stack: LocalStack) -> None:
    """openshift/hypershift pull request 8322: a cluster is made again with the same infrastructure id."""
    somebody = OutOfBand(stack)
    subscription = f"/subscriptions/{stack.environment.subscription_id}"
    scope = f"{subscription}/resourceGroups/hc1-managed"
    older = f"{subscription}/resourceGroups/identity-local/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    made = somebody.arm("PUT", f"{older}/older", _MANAGED_IDENTITY, {"location": "eastus"})
    assert ROW.hypershift is not None
    roles = f"{subscription}/providers/Microsoft.Authorization/roleDefinitions"
    properties = {
        "principalId": made["properties"]["principalId"],
        "principalType": "ServicePrincipal",
        "roleDefinitionId": f"{roles}/{ROW.hypershift.role.guid}",
    }
    name = role_assignment_name("hc1-infra", ROW.component, scope)
    taken = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
    somebody.arm("PUT", taken, _AUTHORIZATION, {"properties": properties})
    somebody.arm("DELETE", f"{older}/older", _MANAGED_IDENTITY)

    stopped = stack.idstack("up", check=False)
    listed = left_over(stack)
    stack.idstack("sweep", "--yes")
    stack.up()

    assert stopped.returncode == 1
    assert "`.venv/bin/idstack sweep --stack local` says so, and frees the name with `--yes`" in stopped.stderr
    assert [(each["kind"], each["id"], each["ours"]) for each in listed] == [("role assignment", taken, True)]
    assert left_over(stack) == []
    successor = somebody.arm("GET", taken, _AUTHORIZATION)["properties"]["principalId"]
    assert successor != properties["principalId"]
    [identity, *_] = [
        each for each in stack.resources() if each["type"] == "azure-native:managedidentity:UserAssignedIdentity"
    ]
    assert identity["outputs"]["tags"][STACK_TAG] == "idstack:local"
