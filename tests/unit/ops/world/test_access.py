"""What the doctor asks the management cluster for, and who reads its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from identity.aks.api_server import AccessRequirements, ApiServer
from identity.aks.permissions import Permission, permissions
from identity.azure.errors import AccessError, AzureRefusedError
from ops.world.reader import read_access
from ops.world.seen import SeenAccess, Unread


@dataclass
class FakeApiServer:
    """Refuses these permissions and serves no custom kind, or lets nobody sign in."""

    refused: frozenset[Permission] = frozenset()
    error: AccessError | None = None
    asked: AccessRequirements = field(default_factory=AccessRequirements)
    server: str = "https://aks.example.com"
    who: str = "reader"
    lacking: tuple[Permission, ...] = ()

    def check_sign_in(self) -> None:
        if self.error is not None:
            raise self.error

    def missing(self, required: AccessRequirements) -> list[str]:
        self.asked = required
        self.lacking = tuple(permission for permission in required.permissions if permission in self.refused)
        return [str(permission) for permission in self.lacking]

    @property
    def hint(self) -> str:
        return f"give {len(self.lacking)} permissions"

    def read(self, *needed: Permission) -> SeenAccess | Unread:
        return read_access(cast(ApiServer, self), AccessRequirements(needed or permissions()))


def test_the_stacks_own_rights_are_asked_for() -> None:
    refused = frozenset({Permission("", "secrets", "get", "clusters-hc1", "azure-cloud-config")})
    server = FakeApiServer(refused=refused)

    found = server.read(*permissions(), *refused)

    assert isinstance(found, SeenAccess)
    assert server.asked.permissions == (*permissions(), *refused)
    assert (found.missing, found.hint) == (("get secrets azure-cloud-config in clusters-hc1",), "give 1 permissions")


def test_a_sign_in_that_may_not_be_tried_is_unread_and_one_that_fails_a_fault() -> None:
    assert isinstance(FakeApiServer(error=AzureRefusedError("no listClusterUserCredential", 403)).read(), Unread), (
        "it is forbidden"
    )
    for error in (AzureRefusedError("there is no cluster", 404), AccessError("the API server answers 401: no")):
        found = FakeApiServer(error=error).read()
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
        found = FakeApiServer(refused=refused).read()
        assert isinstance(found, SeenAccess)
        assert found.is_read_only is is_read_only
