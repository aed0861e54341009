"""The owner of a resource in Azure: each source refuses an adoption, and says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from identity import resource_types
from identity.azure.client import AzureClient
from identity.azure.errors import AzureRefusedError
from identity.credentials.secret_tags import OWNER
from identity.naming import owner_mark, parse_arm_id
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld
from localcloud.testing.azure import PasswordCredential, ServicePrincipal
from ops.stack.errors import CommandError
from ops.stack.state import StateResource
from ops.world.adoption_guard import AdoptionGuard
from ops.world.stacks import Contents, Stacks

SECRET: Final = "idstack:index:CredentialSecret"
IDENTITY: Final = "azure-native:managedidentity:UserAssignedIdentity"
DISK: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-disk"
ROLE: Final = f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/9883867c-f74a-573e-94cc-d5d1434935bb"
READER: Final = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
LOST: Final = (
    "it has the owner id lost, which no stack of this backend has. If you are sure that dev had it before "
    "it lost its state or was destroyed, and no stack of another backend has it: "
    "`.venv/bin/idstack recover --stack dev --owner lost`"
)


def whose(azure: AzureClient, own: Contents | None = None, other: Contents | None = None) -> AdoptionGuard:
    stacks = Stacks({"dev": own or Contents(owner="mine"), "prod": other or Contents(owner="theirs")})
    return AdoptionGuard(azure, stacks, "dev")


@pytest.mark.parametrize(
    ("owner", "objection"),
    [(None, None), ("mine", None), ("theirs", "it has the owner id of the stack prod"), ("lost", LOST)],
)
def test_what_carries_an_owner_id_is_its_stacks(
    azure: AzureClient, world: ArmWorld, deployer: ServicePrincipal, owner: str | None, objection: str | None
) -> None:
    world.create_vault()
    world.group("identity-local")
    tags = {} if owner is None else {OWNER: owner}
    world.call("PUT", f"{VAULT}/secrets/x-json", {"properties": {"value": "v"}, "tags": tags})
    world.call("PUT", DISK, {"location": "eastus", "tags": tags})
    made = world.cloud.directory.create_application("ingress-hc1")
    marks = [] if owner is None else [owner_mark(owner)]
    world.cloud.directory.update(
        replace(made, owners=(deployer.object_id,), properties={**made.properties, "tags": marks})
    )
    looked = whose(azure)

    assert looked.objection(SECRET, f"AzurePublicCloud/tenant{VAULT}/secrets/x-json") == objection
    assert looked.objection(IDENTITY, DISK) == objection
    assert looked.objection(resource_types.APPLICATION, f"/applications/{made.object_id}") == objection
    planned: list[StateResource] = [
        {"urn": name, "type": SECRET, "custom": True, "inputs": {"secretName": name, **vault}}
        for name, vault in (("x-json", {"vaultId": VAULT}), ("y-json", {"vaultId": VAULT}), ("z-json", {}))
    ]
    assert list(looked.deleted_secrets(planned)) == []
    azure.vault(parse_arm_id(VAULT).name, "DELETE", "/secrets/x-json")
    assert list(looked.deleted_secrets(planned)) == [(planned[0], f"{VAULT}/secrets/x-json", objection)]


def test_what_another_stack_has_in_its_state_is_that_stacks(azure: AzureClient) -> None:
    looked = whose(azure, other=Contents(ids=frozenset({DISK.lower()})))

    assert looked.objection(IDENTITY, DISK) == "the stack prod has it"
    assert looked.objection("kubernetes:core/v1:Namespace", "clusters-hc1") is None


def assigned(world: ArmWorld, principal: str, kind: str) -> None:
    properties = {"roleDefinitionId": READER, "principalId": principal, "principalType": kind}
    assert world.call("PUT", ROLE, {"properties": properties}).status_code == 201


@pytest.mark.parametrize("kind", ["ServicePrincipal", "User", "Group"])
def test_a_role_of_somebody_who_lives_is_his_and_a_persons_is_never_adopted(
    azure: AzureClient, world: ArmWorld, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def objection(of: AdoptionGuard | None = None, wanted: str = "another") -> str | None:
        return (of or whose(azure)).objection(resource_types.ROLE_ASSIGNMENT, ROLE, wanted)

    def refused(self: AzureClient, path: str) -> None:
        raise AzureRefusedError("403")

    world.group("identity-local")
    person = "0c5f1f7e-0000-4000-8000-00000000000c"
    principal = world.principal().object_id if kind == "ServicePrincipal" else person
    assigned(world, principal, kind)
    if principal == person:
        assert objection() == f"it is a role of {principal}, a {kind}"
        return

    assert objection() == f"it is a role of someone ({principal}), which exists"
    siblings = whose(azure, other=Contents(principals=frozenset({principal.lower()})))
    assert objection(siblings) == f"it is a role of the stack prod, whose identity {principal.lower()} exists"
    assert objection(wanted=principal.upper()) is None, "the program wants it for him"
    assert objection(whose(azure, own=Contents(texts=frozenset({principal.lower()})))) is None
    with monkeypatch.context() as patch:
        patch.setattr(AzureClient, "directory_object", refused)
        assert objection() == f"it is a role of {principal.lower()}, which may exist: 403"
    world.cloud.directory.delete_service_principal(principal)
    assert objection() is None, "who is gone has none"


def test_an_application_that_somebody_else_can_use_is_refused_by_name(azure: AzureClient, world: ArmWorld) -> None:
    directory = world.cloud.directory
    stranger = world.principal().object_id
    made = directory.create_application("ingress-hc1", owners=(stranger,))
    password, _ = PasswordCredential.issue("attacker", datetime.now(UTC) + timedelta(days=1))
    trust = {"id": "trust-1", "name": "runner", "issuer": "https://issuer.example", "subject": "repo:x"}
    directory.update(replace(made, passwords=(password,), federated=(trust,)))

    with pytest.raises(CommandError) as refused:
        whose(azure).require_untouched(f"/applications/{made.object_id}", ["deployer"], "the-lost-one")

    for found in (
        f"the application ingress-hc1 (/applications/{made.object_id}, created ",
        f"client secret attacker of ingress-hc1 ({password.key_id})",
        "federated credential runner of ingress-hc1 (trust-1), for repo:x of https://issuer.example",
        f"owner someone ({stranger})",
        f"client id {made.app_id}; the last complete run had the-lost-one",
        f"`az ad app delete --id {made.app_id}`",
    ):
        assert found in str(refused.value)


@pytest.mark.parametrize("recorded", [None, "the same"])
def test_an_application_as_a_killed_run_leaves_it_is_the_stacks(
    azure: AzureClient, world: ArmWorld, recorded: str | None
) -> None:
    owners = [world.principal().object_id, world.principal().object_id]
    made = world.cloud.directory.create_application("ingress-hc1", owners=owners)
    own = Contents(owner="mine", texts=frozenset({owners[0].lower()}))

    recorded = recorded and made.app_id
    whose(azure, own).require_untouched(f"/applications/{made.object_id}", owners[1:], recorded)
