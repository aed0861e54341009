"""Where a role assignment reaches, and from when on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcloud.azure.authorization import built_in_roles
from localcloud.azure.shared.faults import NO_DELAYS
from localcloud.core import clock
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld

ROLES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("roles.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "expected"), ROLES.items())
def test_the_role_table_is_azures_and_evaluated_as_azure_evaluates_it(name: str, expected: dict[str, Any]) -> None:
    [role] = [built_in_role for built_in_role in built_in_roles().values() if built_in_role.role_name == name]
    counts = [len(role.actions), len(role.data_actions)]
    assert (role.guid, counts) == (expected.get("guid", role.guid), expected.get("counts", counts))
    for data, actions in ((False, expected), (True, expected.get("data", {}))):
        for word in ("grants", "refuses"):
            for action in actions.get(word, ()):
                assert role.grants(action, data=data) is (word == "grants"), action


def test_every_role_grants_something() -> None:
    roles = built_in_roles().values()
    assert (len(roles), [role for role in roles if not role.actions + role.data_actions]) == (37, [])


READ_GROUP = "Microsoft.Resources/subscriptions/resourceGroups/read"
GET_SECRET = "Microsoft.KeyVault/vaults/secrets/getSecret/action"


def test_an_assignment_applies_at_and_below_its_scope_only(world: ArmWorld) -> None:
    reader = world.principal(("Reader", GROUP))
    scopes = [GROUP, VAULT, GROUP.upper(), SUBSCRIPTION, f"{GROUP}-2", f"{SUBSCRIPTION}/resourceGroups/other"]
    got = [world.cloud.authorization.allowed(reader.object_id, READ_GROUP, scope) for scope in scopes]
    assert got == [True, True, True, False, False, False]


def test_an_assignment_at_the_root_applies_to_the_subscription(world: ArmWorld) -> None:
    reader = world.principal(("Reader", ""))
    assert world.cloud.authorization.allowed(reader.object_id, READ_GROUP, SUBSCRIPTION)


def test_an_assignment_on_one_secret_applies_to_that_secret_alone(world: ArmWorld) -> None:
    user = world.principal(("Key Vault Secrets User", f"{VAULT}/secrets/one"))
    allowed = world.cloud.authorization.allowed
    got = [allowed(user.object_id, GET_SECRET, f"{VAULT}/secrets/{name}", data=True) for name in ("one", "two")]
    assert got == [True, False]


def test_a_role_that_grants_wins_over_another_roles_not_actions(world: ArmWorld) -> None:
    action = "Microsoft.Authorization/roleAssignments/write"
    contributor = world.principal(("Contributor", GROUP))
    before = world.cloud.authorization.allowed(contributor.object_id, action, GROUP)
    world.grant(contributor, "User Access Administrator", GROUP)
    after = world.cloud.authorization.allowed(contributor.object_id, action, GROUP)
    assert (before, after) == (False, True)


def test_another_principals_assignment_grants_nothing(world: ArmWorld) -> None:
    world.principal(("Contributor", GROUP))
    assert not world.cloud.authorization.allowed(world.principal().object_id, READ_GROUP, GROUP)


def test_a_new_assignment_takes_effect_after_the_configured_delay(tmp_path: Path) -> None:
    world = ArmWorld(tmp_path, replace(NO_DELAYS, role_delay=60))
    reader = world.principal()
    world.grant(reader, "Reader", GROUP, since=clock.now().isoformat())
    before = world.cloud.authorization.allowed(reader.object_id, READ_GROUP, GROUP)
    with clock.moved_ahead(timedelta(seconds=61)):
        after = world.cloud.authorization.allowed(reader.object_id, READ_GROUP, GROUP)
    assert (before, after) == (False, True)
