"""Which of a plan's creates exist already, and the import file that is made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identity import resource_types
from identity.azure.client import AzureClient
from identity.naming import control_plane_identity_name
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld
from ops.adoption.entry import FoundResources
from ops.adoption.matching import Finding, Match, enter_providers, findings, import_file, kept_roles, match
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.ops.adoption.scripted import (
    APPLICATION_ID,
    EXISTING,
    MANAGED_ROW,
    PRINCIPAL_ID,
    ROW,
    SECRET,
    with_vault,
)

# What a plan has for a value that is not known before the update.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
STACK = "urn:pulumi:dev::idstack::pulumi:pulumi:Stack::idstack-dev"
ENTRA = "urn:pulumi:dev::idstack::pulumi:providers:azuread::entra"
IDENTITY_NAME = control_plane_identity_name("hc1", ROW.field)
READER = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
CONTRIBUTOR = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c"
NAME, OTHER_NAME = "9883867c-f74a-573e-94cc-d5d1434935bb", "11111111-f74a-573e-94cc-d5d1434935bb"


def urn(type_token: str, name: str) -> str:
    return f"urn:pulumi:dev::idstack::{type_token}::{name}"


def step(type_token: str, name: str, parent: str, op: str = "create", **inputs: Any) -> Any:
    provider = f"{ENTRA}::id" if type_token.startswith("azuread") else ""
    state = {
        "urn": urn(type_token, name),
        "type": type_token,
        "custom": not type_token.startswith("idstack:"),
        "parent": parent,
        "provider": provider,
        "inputs": inputs,
    }
    return {"op": op, "urn": state["urn"], "newState": state}


def plan(*steps: Any, cluster: str = "hc1", op: str = "create") -> Any:
    """A plan with the cluster, its one identity and these steps below it."""
    owner = control_plane_identity_name(cluster, ROW.field)
    parents = [
        {"op": op, "urn": STACK, "newState": {"urn": STACK, "type": "pulumi:pulumi:Stack", "custom": False}},
        {
            "op": op,
            "urn": ENTRA,
            "newState": {"urn": ENTRA, "type": "pulumi:providers:azuread", "custom": True, "parent": STACK},
        },
        step("idstack:hypershift:HostedCluster", cluster, STACK, op),
        step("idstack:azure:ControlPlaneIdentity", owner, urn("idstack:hypershift:HostedCluster", cluster), op),
    ]
    return {"config": {}, "steps": [*parents, *steps]}


def below(type_token: str, name: str, cluster: str = "hc1", **inputs: Any) -> Any:
    owner = control_plane_identity_name(cluster, ROW.field)
    return step(type_token, name, urn("idstack:azure:ControlPlaneIdentity", owner), **inputs)


APPLICATION = below("azuread:index/application:Application", "app", displayName="new", tags=["t"])
PRINCIPAL = below("azuread:index/servicePrincipal:ServicePrincipal", "sp", clientId=UNKNOWN)
OWN_SECRET = below(
    "idstack:index:CredentialSecret",
    "secret",
    cloud="local",
    tenantId="t",
    vaultId=VAULT,
    secretName=SECRET,
)


def role(role_definition: str = READER) -> Any:
    return below(
        resource_types.ROLE_ASSIGNMENT,
        "roles-managed",
        scope=GROUP,
        roleAssignmentName=NAME,
        roleDefinitionId=role_definition,
        principalId=UNKNOWN,
    )


def assign(
    world: ArmWorld, definition: str, principal: str = PRINCIPAL_ID, name: str = NAME, scope: str = GROUP
) -> str:
    """An assignment of this role; returns its id."""
    assignment = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
    properties = {"roleDefinitionId": definition, "principalId": principal, "principalType": "ServicePrincipal"}
    assert world.call("PUT", assignment, {"properties": properties}).status_code == 201
    return assignment


def matched(azure: AzureClient, planned: Any, existing: FoundResources = EXISTING) -> list[Match]:
    return match(planned, [], "hc1", existing, azure)


def test_an_application_is_that_of_the_client_id_whatever_its_name_and_tag(azure: AzureClient) -> None:
    found = matched(azure, plan(APPLICATION, PRINCIPAL))

    assert [(adopted.owner, adopted.id) for adopted in found] == [
        (ROW.field, f"/applications/{APPLICATION_ID}"),
        (ROW.field, f"/servicePrincipals/{PRINCIPAL_ID}"),
    ]
    bare = replace(EXISTING.applications[ROW.field], principal_id=None)
    [without_principal] = matched(azure, plan(PRINCIPAL), replace(EXISTING, applications={ROW.field: bare}))
    assert without_principal.id is None, "it gets one"
    without_application = matched(azure, plan(APPLICATION, PRINCIPAL), replace(EXISTING, applications={}))
    assert [missing.id for missing in without_application] == [None, None]
    other = below("azuread:index/application:Application", "app", cluster="hc2", tags=["t"])
    for left_alone in (plan(other, cluster="hc2"), plan({**APPLICATION, "op": "update"})):
        assert matched(azure, left_alone) == [], "another cluster's, or the stack's already"


def test_a_secret_is_named_with_its_cloud_and_tenant(azure: AzureClient, world: ArmWorld) -> None:
    assert matched(azure, plan(OWN_SECRET))[0].id is None
    world.create_vault()
    world.call("PUT", f"{VAULT}/secrets/{SECRET}", {"properties": {"value": "{}"}})

    assert matched(azure, plan(OWN_SECRET))[0].id == f"local/t{VAULT}/secrets/{SECRET}"


@pytest.mark.parametrize(
    ("name", "definition", "principal", "reason"),
    [
        (NAME, READER, PRINCIPAL_ID, ""),
        (NAME, CONTRIBUTOR, PRINCIPAL_ID, 'another role, "Contributor"'),
        (NAME, READER, APPLICATION_ID, "another principal"),
        (OTHER_NAME, READER, PRINCIPAL_ID, "another name"),
    ],
)
def test_an_assignment_that_is_not_the_stacks_is_replaced_and_says_why(
    azure: AzureClient, world: ArmWorld, name: str, definition: str, principal: str, reason: str
) -> None:
    assignment = assign(world, definition, principal, name)

    [found] = matched(azure, plan(role()))

    assert (found.id, found.replaced_for) == (assignment, reason)
    line = next(finding for finding in findings(EXISTING, [found]) if finding.identity == ROW.field)
    assert (f"1 role assignment has {reason}" in line.differs) == bool(reason)
    assert ("replaces that one" in line.next_up) == bool(reason)


CUSTOM = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/7d8bb4e4-6fa7-4545-96cf-20fce11b705d"


def test_a_custom_role_is_named_and_can_be_kept(azure: AzureClient, world: ArmWorld) -> None:
    permissions = [{"actions": ["*/read"], "notActions": [], "dataActions": [], "notDataActions": []}]
    made = {"roleName": "CPO Role", "type": "CustomRole", "permissions": permissions}
    properties = {**made, "assignableScopes": [SUBSCRIPTION]}
    assert world.call("PUT", CUSTOM, {"properties": properties}).status_code == 201
    assignment = assign(world, CUSTOM)

    [found] = matched(azure, plan(role()))

    line = next(finding for finding in findings(EXISTING, [found]) if finding.identity == ROW.field)
    assert 'another role, the custom role "CPO Role"' in line.differs
    assert line.next_up.endswith("replaces that one (--keep-roles prevents this)")
    [kept] = kept_roles([{"name": "hc0"}, {"name": "hc1"}], "hc1", [found]).items()
    assert kept == (f"hostedClusters[1].identities.{ROW.field}.customRole", CUSTOM.rpartition("/")[2])
    [same] = matched(azure, plan(role(CUSTOM)))
    assert (same.id, same.replaced_for) == (assignment, "")


def test_several_other_roles_of_an_identity_cannot_be_kept() -> None:
    resource = role()["newState"]
    several = [Match(resource, ROW.field, role_id, "another role", role_id) for role_id in ("one", "two")]

    with pytest.raises(CommandError, match=f"- {ROW.field}: one, two"):
        kept_roles([{"name": "hc1"}], "hc1", several)
    assert kept_roles([{"name": "hc1"}], "hc1", [Match(resource, "diskMSIClientID", "x", "another role", "one")]) == {}


@pytest.mark.parametrize(
    ("scope", "definition"), [(GROUP, CONTRIBUTOR), (SUBSCRIPTION, READER)], ids=["role", "scope above"]
)
def test_a_role_of_another_grant_is_in_nobodys_way_and_one_of_somebody_who_lives_ends_the_adoption(
    azure: AzureClient, world: ArmWorld, scope: str, definition: str
) -> None:
    assign(world, definition, name=OTHER_NAME, scope=scope)
    assert matched(azure, plan(role()))[0].id is None
    living = world.principal().object_id
    assignment = assign(world, definition, living)
    with pytest.raises(CommandError, match=f"{assignment} has the name .* is a role of {living}, which lives"):
        matched(azure, plan(role()))


def test_an_import_file_has_parents_first_and_the_provider_by_its_urn(azure: AzureClient) -> None:
    planned = plan(APPLICATION, OWN_SECRET)

    known = plan(APPLICATION, op="same")
    document, below_known = (import_file(made, matched(azure, made)) for made in (planned, known))

    [only] = below_known["resources"]
    parent = urn("idstack:azure:ControlPlaneIdentity", IDENTITY_NAME)
    assert (only["logicalName"], below_known["nameTable"][only["parent"]]) == ("app", parent), "the state has them"

    def entry(type_token: str, name: str, **more: Any) -> dict[str, Any]:
        return {"type": type_token, "name": f"{name} ({type_token})", "logicalName": name, **more}

    cluster = entry("idstack:hypershift:HostedCluster", "hc1", component=True)
    owner = entry("idstack:azure:ControlPlaneIdentity", IDENTITY_NAME, component=True, parent=cluster["name"])
    made = {"parent": owner["name"], "id": f"/applications/{APPLICATION_ID}", "provider": "entra"}
    application = entry("azuread:index/application:Application", "app", **made)
    assert document == {"nameTable": {"entra": ENTRA}, "resources": [cluster, owner, application]}


def test_findings_name_every_identity_and_what_is_left_alone(azure: AzureClient) -> None:
    lines = {finding.identity: finding for finding in findings(EXISTING, matched(azure, plan(APPLICATION, OWN_SECRET)))}

    assert list(lines) == ["key vault", ROW.field, MANAGED_ROW.field, "other", "certificates in the vault"]
    assert lines[ROW.field].differs == "PKCS#12"
    assert lines[ROW.field].next_up == ("adopts it; names it new; issues a certificate as a new version of the secret")
    assert lines[MANAGED_ROW.field].next_up == "nothing: the state has it"
    assert lines["other"].next_up == "leaves it alone"


def of(type_token: str, id: str | None, owner: str = "", **inputs: Any) -> Match:
    urn = f"urn:pulumi:dev::idstack::{type_token}::x"
    return Match({"urn": urn, "type": type_token, "custom": True, "inputs": inputs}, owner, id)


def line(identity: str, *matches: Match) -> Finding:
    [found] = [finding for finding in findings(EXISTING, matches) if finding.identity == identity]
    return found


def test_a_vault_that_trusts_services_is_shown_as_different() -> None:
    vault = of(resource_types.VAULT, "/vault")
    strict = with_vault(networkAcls={"bypass": "None"})

    assert line("key vault", vault).next_up == "adopts it and admits no trusted services"
    [found] = [finding for finding in findings(strict, [vault]) if finding.identity == "key vault"]
    assert (found.differs, found.next_up) == ("", "adopts it")
    for id, count, next_up in ((None, 0, "assigns it; a wider role stays"), ("/role", 1, "adopts it")):
        shown = line("key-vault-user", of(resource_types.ROLE_ASSIGNMENT, id))  # on the vault itself
        assert (shown.found, shown.next_up) == (f"{count} of 1 role", next_up)


@pytest.mark.parametrize(
    ("field", "matches", "found", "differs", "next_up"),
    [
        (
            ROW.field,
            [("SERVICE_PRINCIPAL", None), ("ROLE_ASSIGNMENT", "/role"), ("ROLE_ASSIGNMENT", None)],
            "1 of 2 roles",
            "PKCS#12; no service principal",
            "adopts it; creates one; assigns the missing roles",
        ),
        (
            MANAGED_ROW.field,
            [("MANAGED_IDENTITY", "/id"), ("FEDERATED_CREDENTIAL", "/fed"), ("FEDERATED_CREDENTIAL", None)],
            "registry-MI-p, 1 of 2 federated credentials",
            "service accounts without a federated credential",
            "adopts it; creates the missing ones",
        ),
    ],
)
def test_what_an_identity_lacks_is_made(
    field: str, matches: list[tuple[str, str | None]], found: str, differs: str, next_up: str
) -> None:
    shown = line(field, *(of(getattr(resource_types, name), id, field) for name, id in matches))

    assert shown.found.endswith(found)
    assert (shown.differs, shown.next_up) == (differs, next_up)


PROVIDER = "urn:pulumi:dev::idstack::pulumi:providers:azure-native::azure"


class _Recorded(Engine):
    """An engine with a state and a plan; what it is given is in `replaced`."""

    def __init__(self, *resources: Any, steps: Any = ()) -> None:
        super().__init__("dev", output=1)
        given = {"resources": list(resources), "steps": list(steps), "replaced": []}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def state(self) -> Any:
        return {"version": 3, "deployment": {"resources": self.resources}}

    def planned(self, arguments: Any = ()) -> Any:
        return {"config": {}, "steps": self.steps}  # type: ignore[attr-defined]

    def replace_state(self, state: Any) -> None:
        self.replaced.append(state["deployment"]["resources"])  # type: ignore[attr-defined]


FILE = Path("import.json")
STACK_STEP, *_ = plan()["steps"]
PROVIDER_STATE = {"urn": PROVIDER, "type": "pulumi:providers:azure-native", "custom": True, "parent": STACK}
WITH_INPUTS = {**PROVIDER_STATE, "inputs": {"tenantId": "t", "__internal": {}}}
STEPS = [STACK_STEP, {"op": "create", "urn": PROVIDER, "newState": WITH_INPUTS}]


def test_missing_providers_come_with_the_stack_before_everything_else() -> None:
    other = {"urn": "urn:other", "type": "x", "custom": True}
    engine = _Recorded(other, steps=STEPS)

    enter_providers(engine, FILE, {PROVIDER})

    [[root, provider, last]] = engine.replaced  # type: ignore[attr-defined]
    assert (root["urn"], last) == (STACK, other)
    assert provider["inputs"] == {"tenantId": "t", "__internal": {}}
    assert provider["outputs"] == {"tenantId": "t"}, "or the next preview shows an update"
    assert provider["id"]
    has_it = _Recorded({"urn": PROVIDER, "type": "pulumi:providers:azure-native"}, steps=STEPS)
    enter_providers(has_it, FILE, {PROVIDER})
    assert has_it.replaced == []  # type: ignore[attr-defined]


def test_a_file_of_another_stack_is_refused() -> None:
    other = PROVIDER.replace(":dev:", ":prod:")

    with pytest.raises(CommandError, match=f"names {other}, which the stack does not have; write it again"):
        enter_providers(_Recorded(steps=STEPS), FILE, {other})
