"""What the doctor asks the management cluster for, and who reads its answer."""

from __future__ import annotations

from collections.abc import Set
from unittest.mock import Mock

from identity.aks.api_server import AccessRequirements
from identity.aks.permissions import Permission, permissions
from identity.azure.errors import AccessError, AzureRefusedError
from ops.world.reader import read_access
from ops.world.seen import SeenAccess, Unread


def read(
    *needed: Permission, refused: Set[Permission] = frozenset(), error: AccessError | None = None
) -> SeenAccess | Unread:
    """What a server shows that refuses these permissions, or lets nobody sign in."""
    lacking = [permission for permission in needed if permission in refused]
    server = Mock(server="https://aks.example.com", who="reader", lacking=tuple(lacking))
    server.hint = f"give {len(lacking)} permissions"
    server.check_sign_in.side_effect = error
    server.missing.side_effect = lambda required: [str(one) for one in required.permissions if one in refused]
    return read_access(server, AccessRequirements(needed))


def test_the_stacks_own_rights_are_asked_for() -> None:
    refused = frozenset({Permission("", "secrets", "get", "clusters-hc1", "azure-cloud-config")})

    found = read(*permissions(), *refused, refused=refused)

    assert isinstance(found, SeenAccess)
    assert (found.missing, found.hint) == (("get secrets azure-cloud-config in clusters-hc1",), "give 1 permissions")


def test_a_sign_in_that_may_not_be_tried_is_unread_and_one_that_fails_a_fault() -> None:
    assert isinstance(read(error=AzureRefusedError("no listClusterUserCredential", 403)), Unread), "it is forbidden"
    for error in (AzureRefusedError("there is no cluster", 404), AccessError("the API server answers 401: no")):
        found = read(error=error)
        assert isinstance(found, SeenAccess)
        assert found.missing == (f"a sign-in: {error}",)
        assert "docs/guides/aks-access.md" in found.hint


def test_a_reader_differs_from_a_deployer_who_lacks_a_right() -> None:
    looks = {"get", "list", "watch"}
    writes = frozenset(permission for permission in permissions() if permission.verb not in looks)

    for refused, is_read_only in (
        (writes, True),
        (frozenset(permissions()), False),
        (frozenset({next(iter(writes))}), False),
    ):
        found = read(*permissions(), refused=refused)
        assert isinstance(found, SeenAccess)
        assert found.is_read_only is is_read_only
