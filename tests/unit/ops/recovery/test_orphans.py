"""Which creates of a plan may have begun already, and how the state looks once that is entered."""

from __future__ import annotations

from typing import Any

from ops.recovery.orphans import Orphan, candidates, components_above, settled, unmarked
from ops.stack.state import without

_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
STACK = "urn:pulumi:local::idstack::pulumi:pulumi:Stack::idstack-local"
PROVIDER = "urn:pulumi:local::idstack::pulumi:providers:azuread::entra"
PARENT = "urn:pulumi:local::idstack::idstack:azure:EntraApplication::hc1-kms-entra"
APPLICATION = f"{PARENT}$azuread:index/application:Application::hc1-kms-entra-application"


def resource(urn: str, **more: Any) -> Any:
    return {"urn": urn, "custom": True, "type": urn.split("::")[2].rpartition("$")[2], "parent": STACK, **more}


# A stack, a provider and a component: the application was about to be made.
STATE: Any = [
    {"urn": STACK, "custom": False, "type": "pulumi:pulumi:Stack"},
    resource(PROVIDER, id="5b2c7e0e"),
    {**resource(PARENT), "custom": False},
]
PLANNED = resource(
    APPLICATION,
    parent=PARENT,
    provider=f"{PROVIDER}::5b2c7e0e",
    dependencies=[PARENT],
    inputs={"displayName": "kms-hc1", "tags": ["idstack:local:hc1-kms-entra"]},
)


def plan(*resources: dict[str, Any], op: str = "create") -> Any:
    return {"steps": [{"op": op, "urn": planned["urn"], "newState": planned} for planned in resources]}


def test_a_create_whose_needs_are_all_in_the_state_may_have_begun() -> None:
    assert list(candidates(plan(PLANNED), STATE)) == [PLANNED]
    assert len(list(candidates(plan({**PLANNED, "dependencies": None}), STATE))) == 1
    waiting = resource(f"{PARENT}$type::principal", parent=PARENT, dependencies=[APPLICATION])
    assert list(candidates(plan(PLANNED), STATE[:2])) == [], "no parent"
    assert list(candidates(plan(PLANNED), [STATE[0], STATE[2]])) == [], "no provider"
    assert list(candidates(plan(PLANNED, waiting), STATE)) == [PLANNED], "no dependency"


def test_in_a_lost_state_a_provider_is_enough_but_not_for_a_registration() -> None:
    principal = resource(f"{PARENT}$type::principal", parent=PARENT, dependencies=["guard"], inputs={})
    token = "azuread:index/applicationCertificate:ApplicationCertificate"
    registration = {**principal, "urn": f"{PARENT}${token}::registration", "type": token}
    assert list(candidates(plan(principal, registration), STATE, is_lost=True)) == [principal]
    assert list(candidates(plan(PLANNED), [STATE[0], STATE[2]], is_lost=True)) == [], "no provider"


def test_only_creates_of_real_resources_count() -> None:
    component: Any = {**PLANNED, "custom": False}
    assert list(candidates(plan(component), STATE)) == []
    for op in ("same", "update", "replace", "create-replacement", "delete", "refresh"):
        assert list(candidates(plan(PLANNED, op=op), STATE)) == []


def test_what_a_plan_masks_or_does_not_know_is_no_input() -> None:
    inputs = {
        "value": "[secret]",
        "keyId": _UNKNOWN,
        "type": "AsymmetricX509Cert",
        "properties": {"value": "[secret]", "contentType": "application/json"},
        "containers": [{"env": ["a", _UNKNOWN]}],
    }
    [found] = candidates(plan({**PLANNED, "inputs": inputs}), STATE)
    assert found["inputs"] == {
        "type": "AsymmetricX509Cert",
        "properties": {"contentType": "application/json"},
        "containers": [{"env": ["a"]}],
    }


def test_an_orphan_is_entered_behind_its_needs_and_read_before_use() -> None:
    state: Any = {"version": 3, "deployment": {"manifest": {}, "resources": STATE}}
    assert Orphan(PLANNED, "/applications/1").name == "hc1-kms-entra-application"

    entered: Any = settled(state, [Orphan(PLANNED, "/applications/1")])

    assert entered["version"] == 3
    assert entered["deployment"]["resources"][:-1] == STATE
    assert entered["deployment"]["resources"][-1] == {
        **PLANNED,
        "id": "/applications/1",
        "outputs": PLANNED["inputs"],
        "refreshBeforeUpdate": True,
    }
    assert settled({"version": 3, "deployment": {"resources": None}}, [])["deployment"].get("resources") == []


def test_a_recovered_secret_depends_on_nothing_that_is_still_to_be_created() -> None:
    secret = resource(
        f"{PARENT}$type::secret", dependencies=[PROVIDER, "later"], inputs={}, propertyDependencies={"x": ["later"]}
    )

    entered: Any = settled({"version": 3, "deployment": {"resources": STATE}}, [Orphan(secret, "/secrets/1")])

    found = entered["deployment"]["resources"][-1]
    assert (found["dependencies"], found["propertyDependencies"]) == ([PROVIDER], {"x": []})
    key = Orphan(secret | {"type": "idstack:index:SigningKey"}, "/secrets/2", is_deleted=True)
    whole: Any = {"version": 3, "deployment": {"resources": STATE}}
    assert settled(whole, [key]) == whole, "an `up` takes it over"


def test_a_resource_is_entered_with_the_component_that_the_state_lost() -> None:
    roles: Any = {**resource(f"{PARENT}$idstack:azure:RoleGrants::roles", parent=PARENT), "custom": False}
    role = resource(f"{PARENT}$type::role", parent=roles["urn"], dependencies=[PARENT], inputs={})
    planned = plan(roles, role)

    assert list(candidates(planned, STATE)) == [role]
    orphan = Orphan(role, "/roles/1", components_above(role, planned))
    entered: Any = settled({"version": 3, "deployment": {"resources": STATE}}, [orphan])

    assert [one["urn"] for one in entered["deployment"]["resources"][len(STATE) :]] == [roles["urn"], role["urn"]]


def test_secrets_are_entered_encrypted_and_a_gate_as_proven() -> None:
    def of_type(token: str, **more: Any) -> Any:
        return resource(f"{PARENT}-{token}", **more) | {"type": token}

    certificates = [
        of_type("idstack:index:Certificate", outputs={"keyId": key_id, "certificatePem": f"PEM\n{key_id}"})
        for key_id in ("1", "2")
    ]
    registration = of_type("azuread:index/applicationCertificate:ApplicationCertificate", inputs={"keyId": "2"})
    gate = of_type("idstack:index:SignInGate", inputs={"registration": "2"})
    state: Any = {"version": 3, "deployment": {"resources": [*STATE, *certificates]}}
    config = Orphan(
        of_type("kubernetes:core/v1:Secret", inputs={"kind": "Secret"}), "a/b", masked={"data": {"k": "dg=="}}
    )

    entered: Any = settled(state, [Orphan(registration, "1/certificate/2"), Orphan(gate, "2"), config])

    def secret(plaintext: str) -> dict[str, str]:
        return {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": plaintext}

    [*_, registered, proven, configured] = entered["deployment"]["resources"]
    assert registered["inputs"] == registered["outputs"] == {"keyId": "2", "value": secret('"PEM\\n2"')}
    assert configured["inputs"] == configured["outputs"] == {"kind": "Secret", "data": secret('{"k": "dg=="}')}
    assert "dg==" not in repr(config)
    assert proven["inputs"].keys() ^ proven["outputs"].keys() == {"provenAt"}


def test_the_marks_of_what_a_replacement_deleted_first_are_taken_away() -> None:
    existing = resource(APPLICATION, id="/applications/1", inputs={})
    state: Any = {"deployment": {"resources": [*STATE, {**existing, "pendingReplacement": True}]}}

    assert unmarked(state)["deployment"].get("resources") == [*STATE, existing]
    assert unmarked({"version": 3, "deployment": {"resources": STATE}})["deployment"].get("resources") == STATE


def test_a_state_without_some_resources_depends_on_none_of_them() -> None:
    gate = resource(
        f"{PARENT}$type::gate",
        dependencies=[APPLICATION, PROVIDER],
        propertyDependencies={"clientId": [APPLICATION], "tenantId": None, "scope": [PROVIDER]},
    )
    state: Any = {"version": 3, "deployment": {"manifest": {}, "resources": [STATE[0], PLANNED, gate]}}

    root, kept = without(state, {APPLICATION})["deployment"].get("resources") or []

    assert root == {**STATE[0], "dependencies": [], "propertyDependencies": {}}
    properties = {"clientId": [], "tenantId": [], "scope": [PROVIDER]}
    assert kept == {**gate, "dependencies": [PROVIDER], "propertyDependencies": properties}
