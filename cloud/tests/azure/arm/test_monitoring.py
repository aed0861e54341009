"""Diagnostic settings and the system topic of a vault at the local ARM: what Azure does with each."""

from __future__ import annotations

import pytest

from localcloud.testing.arm import VAULT, ArmWorld, error
from localcloud.testing.monitoring import (
    ACTION_GROUP,
    ALERTS,
    LOG_ACCOUNT,
    SETTING,
    TOPIC,
    WORKSPACE,
    alerts_body,
    make,
    make_destinations,
    setting_body,
    topic_body,
)

pytestmark = pytest.mark.usefixtures("vault")
KEY_OPERATOR = "Storage Account Key Operator Service Role"


def test_a_second_put_of_each_is_an_update(world: ArmWorld) -> None:
    make(world)
    changed = {
        SETTING: setting_body(workspaceId=None, storageAccountId=LOG_ACCOUNT),
        TOPIC: topic_body(tags={"team": "identity"}),
        ALERTS: alerts_body(filter={"includedEventTypes": ["Microsoft.KeyVault.SecretExpired"]}),
    }

    assert [world.call("PUT", path, body).status_code for path, body in changed.items()] == [200] * 3
    found = {path: world.call("GET", path).json() for path in changed}
    assert found[SETTING]["id"] == SETTING
    assert found[SETTING]["properties"].keys() == {"storageAccountId", "logs"}
    assert found[TOPIC]["tags"] == {"team": "identity"}
    assert found[ALERTS]["properties"]["topic"] == TOPIC
    assert found[ALERTS]["properties"]["filter"] == {
        "subjectBeginsWith": "",
        "subjectEndsWith": "",
        "isSubjectCaseSensitive": False,
        "includedEventTypes": ["Microsoft.KeyVault.SecretExpired"],
    }


def test_each_is_listed_where_it_hangs(world: ArmWorld) -> None:
    make(world)
    listed = [world.call("GET", path.rpartition("/")[0]).json()["value"] for path in (SETTING, TOPIC, ALERTS)]
    assert [[resource["id"] for resource in found] for found in listed] == [[SETTING], [TOPIC], [ALERTS]]


def test_a_deleted_topic_takes_its_subscriptions_along(world: ArmWorld) -> None:
    make(world)
    assert [world.call("DELETE", path).status_code for path in (TOPIC, SETTING, SETTING)] == [200, 200, 204]
    assert error(world.call("GET", ALERTS))[1] == "ParentResourceNotFound"
    assert error(world.call("PUT", ALERTS, alerts_body()))[1] == "ParentResourceNotFound"
    assert world.call("PUT", TOPIC, topic_body()).status_code == 201


def test_another_category_may_go_to_the_same_destination(world: ArmWorld) -> None:
    make(world)
    policies = setting_body(logs=[{"category": "AzurePolicyEvaluationDetails", "enabled": True}])
    assert world.call("PUT", f"{SETTING}-2", policies).status_code == 200


def test_who_has_the_roles_of_the_deployer_may_write_all_of_it(world: ArmWorld) -> None:
    make_destinations(world)
    group = VAULT.partition("/providers/")[0]
    rights = [
        ("Monitoring Contributor", WORKSPACE),
        (KEY_OPERATOR, LOG_ACCOUNT),
        ("Monitoring Contributor", ACTION_GROUP),
    ]
    outside = world.group("outside")
    moved = {path: path.replace(group, outside) for path, _ in ((WORKSPACE, 0), (LOG_ACCOUNT, 0), (ACTION_GROUP, 0))}
    for old, new in moved.items():
        world.resources.put({**(world.resources.get(old) or {}), "id": new})
    body = setting_body(workspaceId=moved[WORKSPACE], storageAccountId=moved[LOG_ACCOUNT])
    alert = {"severity": "Sev1", "actionGroups": [moved[ACTION_GROUP]]}
    alerts = alerts_body(destination={"endpointType": "MonitorAlert", "properties": alert})
    somebody = world.principal(("Contributor", group))
    assert error(world.call("PUT", SETTING, body, caller=somebody))[1] == "LinkedAuthorizationFailed"
    assert world.call("PUT", TOPIC, topic_body(), caller=somebody).status_code == 201
    assert error(world.call("PUT", ALERTS, alerts, caller=somebody))[1] == "LinkedAuthorizationFailed"

    for role, scope in rights:
        world.grant(somebody, role, moved[scope])

    assert world.call("PUT", SETTING, body, caller=somebody).status_code == 200
    assert world.call("PUT", ALERTS, alerts, caller=somebody).status_code == 201
