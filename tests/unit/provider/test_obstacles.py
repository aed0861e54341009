"""The plugin's function `findObstacles`: what refuses a stack's resources, as far as the caller may read it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from identity.azure.registered_certificates import certificate_days
from identity.clouds import LOCAL_TENANT_ID
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld
from localcloud.testing.faults import Lock
from provider.__main__ import IdstackProvider
from tests.unit.provider.conftest import SignIn

_OTHER: Final = f"{SUBSCRIPTION}/resourceGroups/other"
_QUESTION: Final[dict[str, Any]] = {
    "cloud": "local",
    "tenantId": LOCAL_TENANT_ID,
    "subscriptionId": SUBSCRIPTION.rpartition("/")[2],
    "namespaces": ["Microsoft.KeyVault", "Microsoft.Storage"],
    "scopes": [
        f"{GROUP}/providers/Microsoft.KeyVault/VAULTS/v",
        f"{_OTHER}/providers/Microsoft.Network/dnszones/example.com",
    ],
    "makesApplications": True,
}
_LOCKS: Final = {
    SUBSCRIPTION: Lock.CAN_NOT_DELETE,
    GROUP: Lock.READ_ONLY,
    f"{GROUP}/providers/Microsoft.Storage/storageAccounts/somebodys": Lock.READ_ONLY,
    f"{GROUP}2": Lock.READ_ONLY,
}


def test_locks_count_where_the_stack_writes_and_above(in_azure: ArmWorld) -> None:
    in_azure.hold(unregistered_providers=("Microsoft.KeyVault",), locks=_LOCKS, certificate_days=30)

    found = IdstackProvider().invoke("idstack:index:findObstacles", _QUESTION)

    assert (found["unregistered"], found["certificateDays"]) == (["Microsoft.KeyVault"], 30)
    levels = {arm_id.partition("/providers/")[0]: level for arm_id, level in found["locks"].items()}
    assert levels == {SUBSCRIPTION.lower(): "CanNotDelete", GROUP.lower(): "ReadOnly"}


def test_what_the_caller_may_not_read_is_left_out(in_azure: ArmWorld, sign_in: SignIn) -> None:
    in_azure.hold(unregistered_providers=("Microsoft.KeyVault",), locks=_LOCKS, certificate_days=30)
    sign_in(in_azure.principal(("Key Vault Secrets User", VAULT)))

    found = IdstackProvider().invoke("idstack:index:findObstacles", _QUESTION)

    assert found == {"unregistered": ["Microsoft.KeyVault"], "locks": {}, "certificateDays": None}


@pytest.mark.parametrize(
    ("changes", "days"),
    [
        ({"maxLifetime": "P30DT0H0M0S"}, 30),
        ({"restrictForAppsCreatedAfterDateTime": None}, 90),
        ({"restrictForAppsCreatedAfterDateTime": "2999-01-01T00:00:00Z"}, None),
        ({"state": "disabled"}, None),
        ({"excludeActors": {"customSecurityAttributes": [{}]}}, None),
        ({"maxLifetime": "PT12H"}, None),
        ({"restrictionType": "unknownFutureValue"}, None),
    ],
)
def test_a_restriction_counts_if_it_holds_for_what_is_made_now(changes: dict[str, Any], days: int | None) -> None:
    limit = {"restrictionType": "asymmetricKeyLifetime", "maxLifetime": "P90D", **changes}
    policy: Any = {"isEnabled": True, "applicationRestrictions": {"keyCredentials": [limit]}}
    azure: Any = SimpleNamespace(directory_object=lambda _: policy)

    assert certificate_days(azure) == days
    policy["isEnabled"] = False
    assert certificate_days(azure) is None
