"""The plugin's function `findObstacles`: what refuses a stack's resources, as far as the caller may read it."""

from __future__ import annotations

from typing import Any, Final

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
}
_LOCKS: Final = {
    SUBSCRIPTION: Lock.CAN_NOT_DELETE,
    GROUP: Lock.READ_ONLY,
    f"{GROUP}/providers/Microsoft.Storage/storageAccounts/somebodys": Lock.READ_ONLY,
    f"{GROUP}2": Lock.READ_ONLY,
}


def test_locks_count_where_the_stack_writes_and_above(in_azure: ArmWorld) -> None:
    in_azure.hold(unregistered_providers=("Microsoft.KeyVault",), locks=_LOCKS)

    found = IdstackProvider().invoke("idstack:index:findObstacles", _QUESTION)

    assert found["unregistered"] == ["Microsoft.KeyVault"]
    levels = {arm_id.partition("/providers/")[0]: level for arm_id, level in found["locks"].items()}
    assert levels == {SUBSCRIPTION.lower(): "CanNotDelete", GROUP.lower(): "ReadOnly"}


def test_what_the_caller_may_not_read_is_left_out(in_azure: ArmWorld, sign_in: SignIn) -> None:
    in_azure.hold(unregistered_providers=("Microsoft.KeyVault",), locks=_LOCKS)
    sign_in(in_azure.principal(("Key Vault Secrets User", VAULT)))

    found = IdstackProvider().invoke("idstack:index:findObstacles", _QUESTION)

    assert found == {"unregistered": ["Microsoft.KeyVault"], "locks": {}}
