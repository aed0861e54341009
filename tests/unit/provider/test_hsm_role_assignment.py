"""`HsmRoleAssignmentResource` against a managed HSM of the test's own: a role is given, found, and taken away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from plugin import PluginError, Props
from provider.hsm_role_assignment import HsmRoleAssignmentResource

URN = "urn:pulumi:dev::idstack::idstack:index:HsmRoleAssignment::hc1-kms-roles-kms-vault-hsm-etcd"
NAME = "5e8b0f2c-6f0a-5c51-9d0e-6f3d9b7c2a11"
PATH = f"/keys/hc1-etcd/providers/Microsoft.Authorization/roleAssignments/{NAME}"
ROLE = "21dbd100-6940-42c2-9190-5d6cb909625b"
PRINCIPAL = "0b1f6471-1bf0-4dda-aec3-111111111111"
resource = HsmRoleAssignmentResource()


@dataclass
class Hsm:
    """Role assignments by the HSM and path; `refused`: the caller may not write them."""

    assignments: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    refused: bool = False
    sent: list[str] = field(default_factory=list)

    def managed_hsm(
        self, hsm: str, verb: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """As `AzureClient.managed_hsm`."""
        self.sent.append(verb)
        if self.refused:
            raise AzureRefusedError("changing: 403 Forbidden", 403)
        if verb == "PUT":
            assert body is not None
            self.assignments[hsm, path] = dict(body)
        return self.assignments.pop((hsm, path), None) if verb == "DELETE" else self.assignments.get((hsm, path))


@pytest.fixture
def hsm(monkeypatch: pytest.MonkeyPatch) -> Hsm:
    made = Hsm()
    monkeypatch.setattr("provider.cloud.client", lambda *_: made)
    return made


def inputs(old: Props | None = None, **changes: Any) -> Props:
    program = {
        "cloud": "AzurePublicCloud",
        "tenantId": "t",
        "hsm": "hsm-etcd",
        "scope": "/keys/hc1-etcd",
        "name": NAME,
        "roleDefinition": ROLE,
        "principalId": PRINCIPAL,
        **changes,
    }
    checked = resource.check(URN, old, program)
    assert not checked.failures
    return checked.inputs


def created(**changes: Any) -> Props:
    return resource.create(URN, inputs(**changes), preview=False).state


def test_the_stand_in_has_the_clients_signature() -> None:
    assert AzureClient.managed_hsm.__annotations__ == Hsm.managed_hsm.__annotations__ | {
        "return": AzureClient.managed_hsm.__annotations__["return"]
    }


def test_a_role_is_given_once(hsm: Hsm) -> None:
    assert (resource.create(URN, inputs(), preview=True).id, hsm.sent) == ("", [])
    assert created() == created() == inputs()

    definition = f"Microsoft.KeyVault/providers/Microsoft.Authorization/roleDefinitions/{ROLE}"
    assert hsm.assignments == {
        ("hsm-etcd", PATH): {"properties": {"roleDefinitionId": definition, "principalId": PRINCIPAL}}
    }
    assert hsm.sent == ["GET", "PUT", "GET"], "a run that was cut short goes on with what it has made"


def test_somebody_elses_assignment_is_not_taken_over(hsm: Hsm) -> None:
    created(principalId="another")

    with pytest.raises(PluginError, match=r"is another assignment: role .* of another"):
        created()


def test_a_refresh_sees_what_the_hsm_has(hsm: Hsm) -> None:
    state = created()
    same = resource.read(URN, "id", inputs(), state)
    hsm.assignments["hsm-etcd", PATH]["properties"]["principalId"] = "another"
    other = resource.read(URN, "id", inputs(), state)
    hsm.assignments.clear()

    assert same is not None
    assert (same.inputs, same.state) == (inputs(), state)
    assert other is not None
    assert other.inputs["principalId"] == "another"
    assert resource.read(URN, "id", inputs(), state) is None


@pytest.mark.parametrize("name", ["hsm", "scope", "name", "roleDefinition", "principalId"])
def test_a_change_is_another_assignment_after_the_one_before(name: str) -> None:
    old = inputs()

    diff = resource.diff(URN, "id", old, old, inputs(old, **{name: "other"}))

    assert diff.delete_before_replace
    assert [path for path, change in diff.changes.items() if change.replace] == [name]


def test_a_role_is_taken_away_once_or_twice(hsm: Hsm) -> None:
    state = created()
    for _ in range(2):
        resource.delete(URN, "id", inputs(), state)

    assert hsm.assignments == {}


def test_a_refusal_names_the_role_that_the_deployer_lacks(hsm: Hsm) -> None:
    hsm.refused = True

    with pytest.raises(PluginError, match=r'could not be read: .*403.*--role "Managed HSM Policy Administrator"'):
        created()


def test_what_is_missing_is_refused_before_anything_is_sent(hsm: Hsm) -> None:
    checked = resource.check(URN, None, {"cloud": "AzurePublicCloud"})

    assert {failure.property for failure in checked.failures} >= {"hsm", "scope", "principalId"}
