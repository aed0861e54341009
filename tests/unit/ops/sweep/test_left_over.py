"""What is left over in Azure of stacks and hosted clusters that are gone, and what others added."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from identity.azure.client import AzureClient
from identity.credentials import rfc3339
from identity.credentials.schedule import OVERLAP
from identity.naming import DEPLOYER_COMPONENT, STACK_TAG, role_assignment_name
from identity.roles import STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE
from identity.settings import Settings
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld
from localcloud.testing.azure import ServicePrincipal
from ops.sweep.left_over import LeftOver, Swept, delete
from ops.world.stacks import Contents
from tests.unit.ops.sweep.left_over_world import (
    FOREIGN,
    KEY_VAULT_ADMINISTRATOR,
    NONE,
    NOW,
    OWNER_ID,
    ROW,
    application,
    assign,
    deliver,
    found,
    gone,
    identity,
    naming,
    register,
    scope_of,
    secret,
    settings,
    storage_account,
)

__all__ = ["settings"]

A_MINUTE = timedelta(minutes=1)
DEFINITIONS = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions"


def test_an_assignment_whose_principal_is_gone_is_left_over(
    azure: AzureClient, world: ArmWorld, settings: Settings
) -> None:
    assert found(azure, settings) == [], "nothing is left over at first"
    principal = world.principal().object_id
    full_id = assign(world, settings, principal)
    assert found(azure, settings) == [], "its principal is there"
    world.cloud.directory.delete_service_principal(principal)

    [leftover] = found(azure, settings)

    assert (leftover.kind, leftover.id, leftover.not_ours) == (Swept.ROLE_ASSIGNMENT, full_id, None)
    assert leftover.reason == f"its principal {principal} does not exist"


def test_what_a_stack_names_is_never_left_over(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    ours, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    things = [
        assign(world, settings, gone(world)),
        ours.app_id,
        identity(world, "hc9-disk", **{STACK_TAG: "idstack:dev"})["id"],
        secret(world, "ingress-hc9-json", thumbprint="A", generation="a1"),
    ]
    assert len(found(azure, settings)) == len(things)
    assert found(azure, settings, naming(*map(str.upper, things))) == []


@pytest.mark.parametrize(
    ("name", "role", "why"),
    [
        ("11111111-1111-4111-8111-111111111111", "", "its name is not one of a known cluster"),
        ("", KEY_VAULT_ADMINISTRATOR, "no stack assigns its role"),
    ],
    ids=["another name", "another role"],
)
def test_somebody_elses_assignment_is_listed_and_not_ours(
    azure: AzureClient, world: ArmWorld, settings: Settings, name: str, role: str, why: str
) -> None:
    assign(world, settings, gone(world), name, role)

    [leftover] = found(azure, settings)

    assert leftover.not_ours is not None
    assert leftover.not_ours.startswith(why)


def test_a_cluster_that_is_gone_is_known_by_its_infra_id(
    azure: AzureClient, world: ArmWorld, settings: Settings
) -> None:
    name = role_assignment_name("hc9-infra", ROW.component, scope_of(settings))
    assign(world, settings, gone(world), name)

    assert [leftover.not_ours is None for leftover in found(azure, settings)] == [False]
    assert [leftover.not_ours is None for leftover in found(azure, settings, infra_ids=("hc9-infra",))] == [True]
    of_a_stack = replace(NONE, contents={"prod": Contents(infra_ids=frozenset({"hc9-infra"}))})
    assert [leftover.not_ours is None for leftover in found(azure, settings, of_a_stack)] == [True]


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        (OWNER_ID, None),
        (FOREIGN, f"no stack of this backend has its owner id {FOREIGN}, but one of another backend may"),
        (None, "it has no owner id, so that a stack of another backend may have created it"),
    ],
    ids=["of the backend", "of another", "without"],
)
@pytest.mark.parametrize("stack", ["dev", "prod", "elsewhere"])
def test_an_application_is_ours_if_a_stack_of_this_backend_has_its_owner_id(
    azure: AzureClient,
    world: ArmWorld,
    settings: Settings,
    deployer: ServicePrincipal,
    stack: str,
    owner: str | None,
    why: str | None,
) -> None:
    made, _ = application(world, deployer, f"idstack:{stack}:hc9-ingress-entra", owner)
    for tag in ("idstack2:dev:thing", "dev"):  # of another project: they are not even listed
        application(world, deployer, tag)

    [leftover] = found(azure, settings)

    id = f"/applications/{made.object_id}"
    assert (leftover.kind, leftover.id, leftover.not_ours) == (Swept.APPLICATION, id, why)
    assert f"idstack:{stack}:hc9-ingress-entra" in leftover.reason


def test_only_what_has_our_tags_is_listed(azure: AzureClient, world: ArmWorld, settings: Settings) -> None:
    identity(world, "by-hand", environment="dev")
    elsewhere = identity(world, "of-another-backend", FOREIGN, **{STACK_TAG: "idstack:dev"})["id"].lower()
    kept = identity(world, "hc9-disk", **{STACK_TAG: "idstack:dev"})
    secret(world, "by-hand", thumbprint="A")
    ours = [
        secret(world, "ingress-hc9-json", thumbprint="A", generation="a1"),
        secret(world, "key", signing_key_id="k"),
    ]
    theirs = [
        secret(world, "ingress-hc8-json", FOREIGN, thumbprint="A", generation="a1"),
        secret(world, "older", None, signing_key_id="k"),
    ]

    things = [(leftover.id.lower(), leftover.not_ours is None) for leftover in found(azure, settings)]

    assert sorted(things) == sorted(
        [
            (kept["id"].lower(), True),
            *((our.lower(), True) for our in ours),
            *((their.lower(), False) for their in [elsewhere, *theirs]),
        ]
    )


def test_assignments_go_before_the_identity_that_they_are_of(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    _, principal = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    assign(world, settings, principal.object_id, "11111111-1111-4111-8111-111111111111")

    things = found(azure, settings)

    assert [(thing.kind, thing.not_ours) for thing in things] == [
        (Swept.ROLE_ASSIGNMENT, None),
        (Swept.APPLICATION, None),
    ]
    assert things[0].reason == "it is of the leftover application ingress-hc9"


def test_a_certificate_of_no_stack_is_left_over_once_its_successor_is_in_use(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    unknown, lost = register(azure, made)
    known, current = register(azure, made)
    stacks = naming(made.app_id, known, f"{VAULT}/secrets/ingress-hc9-json")

    deliver(world, current, ago=timedelta(0))
    [leftover] = found(azure, settings, stacks, later=OVERLAP + A_MINUTE)
    assert (leftover.kind, leftover.id) == (Swept.REGISTRATION, f"/applications/{made.object_id}/certificate/{unknown}")
    assert leftover.name == f"{lost} of ingress-hc9"
    assert leftover.is_deleted

    deliver(world, current, ago=-A_MINUTE)
    [leftover] = found(azure, settings, stacks, later=OVERLAP)
    assert leftover.too_soon == f"pods may sign in with it until {rfc3339.render(NOW + OVERLAP + A_MINUTE)}"
    assert not leftover.is_deleted

    deliver(world, current, ago=OVERLAP + A_MINUTE)
    [leftover] = found(azure, settings, stacks)
    assert not leftover.is_deleted, "the version is younger than its tag"

    deliver(world, lost, ago=timedelta(0))
    assert found(azure, settings, stacks, later=OVERLAP + A_MINUTE) == [], "it is what pods use"

    secret(world, "ingress-hc9-json", thumbprint=current, generation="a1", delivered_at="yesterday")
    assert found(azure, settings, stacks) == [], "who knows since when"


def test_a_certificate_that_a_run_may_be_about_to_deliver_stays(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    register(azure, made, age=-timedelta(hours=2))
    known, current = register(azure, made)
    deliver(world, current, ago=timedelta(0))
    stacks = naming(made.app_id, known, f"{VAULT}/secrets/ingress-hc9-json")

    [leftover] = found(azure, settings, stacks, later=OVERLAP + A_MINUTE)
    assert not leftover.is_deleted


def test_a_secret_that_a_state_lost_stays_while_its_certificate_is_registered(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    deliver(world, register(azure, made)[1], ago=2 * OVERLAP)

    [leftover] = found(azure, settings, naming(made.app_id))

    assert (leftover.kind, leftover.is_deleted) == (Swept.SECRET, False)
    assert leftover.too_soon == "pods sign in with it; `.venv/bin/idstack recover` adopts it"


def test_deleting_a_certificate_leaves_the_others(
    azure: AzureClient,
    world: ArmWorld,
    settings: Settings,
    deployer: ServicePrincipal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("identity.azure.registered_certificates._BETWEEN_READS", 0)
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    register(azure, made)
    kept, current = register(azure, made)
    deliver(world, current, ago=OVERLAP)

    [leftover] = found(azure, settings, naming(made.app_id, kept, f"{VAULT}/secrets/ingress-hc9-json"))
    delete(azure, leftover)

    left = azure.directory_object(f"/applications/{made.object_id}")
    assert left is not None
    assert [key_credential["keyId"] for key_credential in left["keyCredentials"]] == [kept]


def test_each_kind_is_deleted(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    assign(world, settings, gone(world))
    identity(world, "hc9-disk", **{STACK_TAG: "idstack:dev"})
    secret(world, "ingress-hc9-json", thumbprint="A", generation="a1")
    things = found(azure, settings)

    for thing in things:
        delete(azure, thing)

    kinds = {Swept.ROLE_ASSIGNMENT, Swept.APPLICATION, Swept.SECRET, Swept.MANAGED_IDENTITY}
    assert ({thing.kind for thing in things}, found(azure, settings)) == (kinds, [])
    for kind in (Swept.CLIENT_SECRET, Swept.FEDERATED_CREDENTIAL, Swept.MACHINE, Swept.DISK):
        with pytest.raises(ValueError, match=f"a {kind} is never this program's"):
            delete(azure, LeftOver(kind, "/applications/a/b/c", "c", "no stack has it"))
    assert world.cloud.directory.application_by_app(made.app_id) is None


def test_the_storage_account_of_an_issuer_that_no_stack_has_is_listed(
    azure: AzureClient, world: ArmWorld, settings: Settings
) -> None:
    made, foreign = (storage_account(world, name) for name in ("hc9oidc", "backups"))
    name = role_assignment_name("hc9oidc", DEPLOYER_COMPONENT, made)
    for account, assignment in ((made, name), (foreign, role_assignment_name("backups", "another", foreign))):
        properties = {
            "principalId": world.principal().object_id,
            "principalType": "ServicePrincipal",
            "roleDefinitionId": f"{DEFINITIONS}/{STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE.guid}",
        }
        full_id = f"{account}/providers/Microsoft.Authorization/roleAssignments/{assignment}"
        assert world.call("PUT", full_id, {"properties": properties}).status_code == 201

    [leftover] = found(azure, settings)

    assert (leftover.kind, leftover.id, leftover.name) == (Swept.STORAGE_ACCOUNT, made, "hc9oidc")
    assert leftover.reason == "a stack created it for an OIDC issuer, and no stack has it"
    assert not leftover.is_deleted
    assert found(azure, settings, naming(made)) == []


_OWNED: Final = "sigs.k8s.io_cluster-api-provider-azure_cluster_{}"
_COMPUTE: Final = f"{GROUP}/providers/Microsoft.Compute"
_NETWORK: Final = f"{GROUP}/providers/Microsoft.Network"
_LIVING: Final = replace(NONE, contents={"dev": Contents(infra_ids=frozenset({"hc9-infra"}))})


def put(world: ArmWorld, type_name: str, name: str, **members: Any) -> str:
    """Something of HyperShift's, put there behind ARM's back; returns its id."""
    full_id = f"{GROUP}/providers/{type_name}/{name}"
    world.resources.put(
        {"id": full_id, "name": name, "type": type_name, "location": "eastus", "properties": {}, **members}
    )
    return full_id


def machine(world: ArmWorld, name: str, infra_id: str = "hc9-infra", lifecycle: str = "owned") -> str:
    return put(world, "Microsoft.Compute/virtualMachines", name, tags={_OWNED.format(infra_id): lifecycle})


@pytest.fixture
def left(world: ArmWorld) -> list[str]:
    """A machine of hc9-infra with all that belongs to it, beside what is of somebody else; the ids of the first."""
    vm = machine(world, "pool-a1")
    managed = "Microsoft.Network/loadBalancers"
    put(world, managed, "kubernetes")
    put(world, "Microsoft.Compute/virtualMachines", "jump-host")
    put(world, "Microsoft.Compute/disks", "jump-host_OSDisk")
    put(world, "Microsoft.Network/publicIPAddresses", "aks", tags={"k8s-azure-cluster-name": "kubernetes"})
    return [
        vm,
        put(world, "Microsoft.Compute/disks", "pool-a1_OSDisk"),
        put(world, "Microsoft.Compute/disks", "pvc-1", managedBy=vm),
        put(world, "Microsoft.Network/networkInterfaces", "pool-a1-nic"),
        put(world, managed, "hc9-infra"),
        put(world, managed, "hc9-infra-internal"),
        put(world, "Microsoft.Network/publicIPAddresses", "a", tags={"k8s-azure-cluster-name": "hc9-infra"}),
    ]


def test_a_machine_is_left_over_with_what_belongs_to_it(
    azure: AzureClient, settings: Settings, left: list[str]
) -> None:
    listed = found(azure, settings)

    assert [item.id for item in listed] == left
    kinds = [Swept.MACHINE, *[Swept.DISK] * 2, Swept.INTERFACE, *[Swept.LOAD_BALANCER] * 2, Swept.PUBLIC_ADDRESS]
    assert [item.kind for item in listed] == kinds
    assert {(item.reason, item.not_ours) for item in listed} == {
        (
            "it is of the cluster with the infrastructure id hc9-infra, which no stack has",
            "HyperShift created it, and its cluster may be unknown to the stacks of this backend",
        )
    }


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize("infra_ids", [(), ("hc9-infra",)], ids=["alone", "whatever the user says"])
def test_what_a_living_stacks_cluster_has_stays(
    azure: AzureClient, settings: Settings, infra_ids: tuple[str, ...]
) -> None:
    assert found(azure, settings, _LIVING, infra_ids) == []


def test_a_cluster_without_machines_is_known_by_its_id_alone(
    azure: AzureClient, world: ArmWorld, settings: Settings
) -> None:
    balancer = put(world, "Microsoft.Network/loadBalancers", "hc8-infra")
    machine(world, "shared-1", lifecycle="shared")  # of no cluster

    assert found(azure, settings) == []
    assert [leftover.id for leftover in found(azure, settings, infra_ids=("hc8-infra",))] == [balancer]
