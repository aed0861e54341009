"""Conditions of role assignments: Microsoft's own examples, the grammar around them, and what ARM does with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from localcloud.azure.authorization import built_in_roles
from localcloud.azure.conditions import (
    ActionMatches,
    Comparison,
    Expression,
    Facts,
    InvalidConditionError,
    Junction,
    Not,
    parse,
)
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.runtime.seed_file import load as load_seed
from localcloud.testing.arm import GROUP, ONE, SUBSCRIPTION, TWO, ArmWorld, error
from tests.source import PACKAGES

ASSIGNMENTS: Final = "Microsoft.Authorization/roleAssignments"
WRITE, DELETE = f"{ASSIGNMENTS}/write", f"{ASSIGNMENTS}/delete"
BACKUP_READER: Final = "a795c7a0-d4a2-40c1-ae25-d81f01202912"
_GUIDS_BY_NAME: Final = {role.role_name: role.guid for role in built_in_roles().values()}
OWNER, CONTRIBUTOR = _GUIDS_BY_NAME["Owner"], _GUIDS_BY_NAME["Contributor"]
_TEXTS: Final[Any] = yaml.safe_load(Path(__file__).with_name("conditions.yaml").read_text(encoding="utf-8"))
DOCUMENTED: Final[str] = _TEXTS["documented"]


def holds(action: str, **attributes: str) -> bool:
    """Whether the documented condition allows a request about an assignment with these attributes."""
    found = attributes if action == DELETE else {}
    return parse(DOCUMENTED).holds(Facts(action, attributes if action == WRITE else {}, found))


@pytest.mark.parametrize("action", [WRITE, DELETE])
@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({"RoleDefinitionId": BACKUP_READER, "PrincipalType": "user"}, True),
        ({"RoleDefinitionId": BACKUP_READER.upper(), "PrincipalType": "Group"}, True),
        ({"RoleDefinitionId": OWNER, "PrincipalType": "User"}, False),
        ({"RoleDefinitionId": BACKUP_READER, "PrincipalType": "ServicePrincipal"}, False),
        ({"RoleDefinitionId": BACKUP_READER}, False),
        ({}, False),
    ],
)
def test_the_documented_condition_constrains_roles_and_types(
    action: str, attributes: dict[str, str], allowed: bool
) -> None:
    assert holds(action, **attributes) is allowed


def test_other_actions_are_not_constrained() -> None:
    assert holds(f"{ASSIGNMENTS}/read")
    assert holds("Microsoft.KeyVault/vaults/write")


@pytest.mark.parametrize(
    ("operator", "value", "others"),
    [("GuidEquals", True, False), ("GuidNotEquals", False, True)],
)
def test_an_operator_compares_with_one_value(operator: str, value: bool, others: bool) -> None:
    compared = parse(f"@Request[{ASSIGNMENTS}:PrincipalId] {operator} {ONE}")
    got = [compared.holds(Facts(WRITE, {"PrincipalId": principal_id}, {})) for principal_id in (ONE, TWO)]
    assert got == [value, others]
    assert not compared.holds(Facts(WRITE, {}, {"PrincipalId": TWO})), "an attribute of the other source"


def test_not_any_of_the_values_may_be_asked_for() -> None:
    excluded = parse(f"@Request[{ASSIGNMENTS}:RoleDefinitionId] ForAnyOfAllValues:GuidNotEquals {{{OWNER}, {ONE}}}")
    assert [excluded.holds(Facts(WRITE, {"RoleDefinitionId": role}, {})) for role in (OWNER, ONE, TWO)] == [
        False,
        False,
        True,
    ]


_EQUALS: Final = f"@Request[{ASSIGNMENTS}:PrincipalId] GuidEquals {ONE}"


@pytest.mark.parametrize(
    "text",
    [
        *_TEXTS["unknown"],
        f"{_EQUALS} AND",
        f"{_EQUALS} {_EQUALS}",
        f"{_EQUALS} AND {_EQUALS} OR {_EQUALS}",
        f"({_EQUALS}",
        f"{_EQUALS})",
        "(" * 60 + _EQUALS + ")" * 60,
        "!" * 60 + _EQUALS,
        f"{_EQUALS} AND " * 100 + _EQUALS,
    ],
)
def test_what_is_not_known_is_no_condition(text: str) -> None:
    with pytest.raises(InvalidConditionError):
        parse(text)


_GUIDS = st.uuids().map(str)
_COMPARISONS: st.SearchStrategy[Expression] = st.one_of(
    st.builds(
        Comparison,
        source=st.sampled_from(["Request", "Resource"]),
        attribute=st.sampled_from(["RoleDefinitionId", "PrincipalId"]),
        operator=st.sampled_from(["ForAnyOfAnyValues:GuidEquals", "ForAnyOfAllValues:GuidNotEquals"]),
        values=st.lists(_GUIDS, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        Comparison,
        source=st.sampled_from(["Request", "Resource"]),
        attribute=st.just("PrincipalType"),
        operator=st.sampled_from(["StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase"]),
        values=st.tuples(st.sampled_from(["User", "Group", "ServicePrincipal"])),
    ),
    st.builds(ActionMatches, st.text("abc*./", min_size=1, max_size=10)),
)
_EXPRESSIONS = st.recursive(
    _COMPARISONS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(Junction, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


def _text(expression: Expression) -> str:
    """The condition as Azure has it written."""
    match expression:
        case ActionMatches(pattern):
            return f"ActionMatches{{'{pattern}'}}"
        case Not(operand):
            return f"!({_text(operand)})"
        case Junction(word, operands):
            return f" {word} ".join(f"({_text(operand)})" for operand in operands)
        case Comparison(source, attribute, operator, values):
            words = ", ".join(values if "Guid" in operator else (f"'{value}'" for value in values))
            listed = f"{{{words}}}" if operator.startswith("For") else words
            return f"@{source}[{ASSIGNMENTS}:{attribute}] {operator} {listed}"


@given(_EXPRESSIONS)
def test_a_condition_is_read_as_it_is_written(expression: Expression) -> None:
    assert parse(_text(expression)) == expression


_WORDS = [
    *("(", ")", "{", "}", ",", "!", "&&", "||", "AND", "OR", "NOT", "ActionMatches", f"'{WRITE}'", ONE),
    *(f"@Request[{ASSIGNMENTS}:PrincipalType]", f"@Resource[{ASSIGNMENTS}:RoleDefinitionId]", "GuidEquals"),
    *("ForAnyOfAnyValues:StringEqualsIgnoreCase", "ForAnyOfAnyValues:GuidEquals", "'User'"),
]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_WORDS), max_size=25).map(" ".join)))
def test_no_text_does_more_than_being_refused(text: str) -> None:
    try:
        expression = parse(text)
    except InvalidConditionError:
        return
    assert expression.holds(Facts(WRITE, {}, {})) in (True, False)
    assert parse(_text(expression)) == expression


@pytest.fixture
def limited(world: ArmWorld) -> ServicePrincipal:
    """The deployer of the plugins' seed, who may assign certain roles to service principals."""
    [role] = [role for role in load_seed(PACKAGES / "emulated/seed.yaml").deployer_roles if not isinstance(role, str)]
    deployer = world.principal(("Contributor", SUBSCRIPTION))
    identifier = world.grant(deployer, role.role, SUBSCRIPTION)
    assignment = world.resources.get(identifier)
    assert assignment is not None
    properties = {**assignment["properties"], "condition": role.condition, "conditionVersion": "2.0"}
    world.resources.put({**assignment, "properties": properties})
    return deployer


def test_the_deployer_assigns_and_removes_a_role_of_the_catalogue(world: ArmWorld, limited: ServicePrincipal) -> None:
    made = world.assign(role=_GUIDS_BY_NAME["AcrPull"], caller=limited)
    removed = world.call("DELETE", f"{GROUP}/providers/{ASSIGNMENTS}/{ONE}", caller=limited)
    assert (made.status_code, removed.status_code) == (201, 200)


@pytest.mark.parametrize(
    ("role", "properties"),
    [
        (OWNER, {}),
        (_GUIDS_BY_NAME["User Access Administrator"], {}),
        (_GUIDS_BY_NAME["Role Based Access Control Administrator"], {}),
        (_GUIDS_BY_NAME["Monitoring Contributor"], {}),
        (CONTRIBUTOR, {"principalType": "User", "principalId": TWO}),
        (CONTRIBUTOR, {"principalType": "Group", "principalId": TWO}),
        (CONTRIBUTOR, {"principalType": None}),
    ],
    ids=[
        "Owner",
        "User Access Administrator",
        "its own role",
        "Monitoring Contributor",
        "a user",
        "a group",
        "no principal type",
    ],
)
def test_the_deployer_assigns_nothing_else(
    world: ArmWorld, limited: ServicePrincipal, role: str, properties: dict[str, Any]
) -> None:
    assert error(world.assign(role=role, caller=limited, **properties)) == (
        403,
        "AuthorizationFailed",
        f"The client '{limited.object_id}' with object id '{limited.object_id}' does not have authorization or an "
        f"ABAC condition not fulfilled to perform action '{WRITE}' over scope "
        f"'{GROUP}/providers/{ASSIGNMENTS}/{ONE}' or the scope is invalid. If access was recently granted, please "
        "refresh your credentials.",
    )
    assert world.assign(role=role).status_code == 201, "a caller without a condition may"


def test_the_deployer_takes_nothing_else_away(world: ArmWorld, limited: ServicePrincipal) -> None:
    somebody = world.principal()
    owner = world.grant(somebody, "Owner", GROUP)
    person = world.grant(somebody, "Contributor", GROUP)
    assignment = world.resources.get(person)
    assert assignment is not None
    world.resources.put({**assignment, "properties": {**assignment["properties"], "principalType": "User"}})

    refused = [world.call("DELETE", path, caller=limited) for path in (owner, person)]

    assert [error(answer)[:2] for answer in refused] == [(403, "AuthorizationFailed")] * 2
    assert world.resources.get(owner) is not None


def test_the_deployer_cannot_free_itself_of_its_condition(world: ArmWorld, limited: ServicePrincipal) -> None:
    [own] = [
        assignment
        for assignment in world.resources.below(SUBSCRIPTION, ASSIGNMENTS)
        if assignment["properties"].get("condition") and assignment["properties"]["principalId"] == limited.object_id
    ]
    body = {"properties": {key: own["properties"][key] for key in ("principalId", "roleDefinitionId", "principalType")}}

    assert error(world.call("PUT", own["id"], body, caller=limited))[0] == 403
    assert error(world.call("DELETE", own["id"], caller=limited))[0] == 403


def test_another_role_without_a_condition_lifts_the_limit(world: ArmWorld, limited: ServicePrincipal) -> None:
    world.grant(limited, "User Access Administrator", GROUP)
    assert world.assign(role=OWNER, caller=limited).status_code == 201


def test_a_condition_is_kept_and_can_be_changed(world: ArmWorld) -> None:
    principal = world.principal().object_id
    first = world.assign(ONE, principal, OWNER, condition=DOCUMENTED)
    second = world.assign(ONE, principal, OWNER, condition=_EQUALS, conditionVersion="2.0")
    third = world.assign(ONE, principal, OWNER)

    properties = [answer.json()["properties"] for answer in (first, second, third)]
    kept = [(property_["condition"], property_["conditionVersion"]) for property_ in properties]
    assert kept == [(DOCUMENTED, "2.0"), (_EQUALS, "2.0"), (None, None)]


def test_a_condition_of_the_first_version_is_refused(world: ArmWorld) -> None:
    refused = world.assign(role=OWNER, condition=_EQUALS, conditionVersion="1.0")
    assert error(refused)[:2] == (400, "InvalidRoleAssignmentCondition")
