"""What is left over: each kind is found with its reason, and what any stack names, or may be somebody else's, stays."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from identity.access.azure_client import AzureClient
from identity.catalogue import CONTROL_PLANE
from identity.credentials import rfc3339
from identity.credentials.certificate import key_id
from identity.credentials.schedule import OVERLAP
from identity.credentials.secret_tags import OWNER
from identity.naming import STACK_TAG, owner_mark, role_assignment_name
from identity.settings import Settings, load_settings
from identity.settings.scopes import scope_ids
from localcloud.azure.tenant.objects import Application, KeyCredential, PasswordCredential, ServicePrincipal
from ops.siblings.stacks import Contents, Stacks
from ops.sweep.left_over import delete, find
from ops.sweep.model import LeftOver, Swept
from tests.unit.components.world import configuration, hosted_cluster
from tests.unit.identity.credentials.world import certificate
from tests.unit.localcloud.arm_world import GROUP, SUBSCRIPTION, VAULT, ArmWorld

ROW: Final = next(row for row in CONTROL_PLANE if row.setting is None and row.enabled_by_default)
INFRA: Final = "hc1-infra"
READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
IDENTITIES: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
NOW: Final = datetime.now(UTC)
OWNER_ID: Final = "0c5f1f7e-0000-4000-8000-00000000000a"
FOREIGN: Final = "0c5f1f7e-0000-4000-8000-00000000000f"
NONE: Final = Stacks(("dev", "prod"), {"dev": Contents(), "prod": Contents(owner=OWNER_ID)})


@pytest.fixture
def settings(world: ArmWorld) -> Settings:
    """A stack whose identities have their roles on one group of the world."""
    for name in ("hc1-managed", "hc1-network", "hc1-nsg", "dns-dev", "etcd-dev"):
        world.group(name)
    world.create_vault()
    cluster = {key: value for key, value in hosted_cluster().items() if key != "kms"}
    raw = configuration(resourceGroup="identity-local", hostedClusters=[cluster])
    loaded = load_settings(raw, secret_keys=(), local=None)
    return loaded.model_copy(update={"subscription_id": world.cloud.subscription_id})


def scope_of(settings: Settings) -> str:
    return next(iter(scope_ids(settings, settings.hosted_clusters[0], ROW.grant(settings.roles)).values()))


def assign(world: ArmWorld, settings: Settings, principal: str, name: str = "", role: str = "") -> str:
    """An assignment of one of the stack's identities, under its own name unless another is given; returns its id."""
    scope = scope_of(settings)
    own = name or role_assignment_name(INFRA, ROW.component, scope)
    definition = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/"
    guid = role or ROW.grant(settings.roles).role.guid
    properties = {"principalId": principal, "principalType": "ServicePrincipal", "roleDefinitionId": definition + guid}
    full_id = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{own}"
    assert world.call("PUT", full_id, {"properties": properties}).status_code == 201
    return full_id


def gone(world: ArmWorld) -> str:
    """Object id of a principal that is no more."""
    principal = world.principal()
    world.cloud.directory.delete_service_principal(principal.object_id)
    return principal.object_id


def application(
    world: ArmWorld, deployer: ServicePrincipal, tag: str, owner: str | None = OWNER_ID
) -> tuple[Application, ServicePrincipal]:
    tags = [tag, *([] if owner is None else [owner_mark(owner)])]
    made = world.cloud.directory.create_application("ingress-hc9")
    principal = world.cloud.directory.create_service_principal(made.app_id)
    tagged = replace(made, owners=(deployer.object_id,), properties={**made.properties, "tags": tags})
    world.cloud.directory.update(tagged)
    return tagged, principal


def owned(tags: dict[str, str], owner: str | None) -> dict[str, str]:
    return tags | ({} if owner is None else {OWNER: owner})


def identity(world: ArmWorld, name: str, owner: str | None = OWNER_ID, **tags: str) -> dict[str, Any]:
    answer = world.call("PUT", f"{IDENTITIES}/{name}", {"location": "eastus", "tags": owned(tags, owner)})
    return dict(answer.json())


def secret(world: ArmWorld, name: str, owner: str | None = OWNER_ID, **tags: str) -> str:
    full_id = f"{VAULT}/secrets/{name}"
    body = {"properties": {"value": "v"}, "tags": owned(tags, owner)}
    assert world.call("PUT", full_id, body).status_code in (200, 201)
    return full_id


def found(
    azure: AzureClient, settings: Settings, stacks: Stacks = NONE, infra_ids: tuple[str, ...] = ()
) -> list[LeftOver]:
    return find(azure, settings, "idstack", VAULT, stacks, infra_ids, NOW)


def register(azure: AzureClient, made: Application, *, key: str | None = None) -> tuple[str, str]:
    """One more certificate at the application, by default under a stack's key id; its key id and thumbprint."""
    issued = certificate()
    parsed = x509.load_pem_x509_certificate(issued.certificate_pem.encode())
    name, path = key or key_id(issued.thumbprint), f"/applications/{made.object_id}"
    credential = {
        "type": "AsymmetricX509Cert",
        "usage": "Verify",
        "keyId": name,
        "key": base64.b64encode(parsed.public_bytes(Encoding.DER)).decode(),
    }
    before = (azure.directory_object(path) or {})["keyCredentials"]
    azure.change_directory_object(path, {"keyCredentials": [*before, credential]})
    return name, issued.thumbprint


def deliver(world: ArmWorld, thumbprint: str, *, ago: timedelta) -> str:
    """The vault has this certificate since then; returns the secret's id."""
    tags = {"thumbprint": thumbprint, "generation": "a1", "delivered_at": rfc3339.render(NOW - ago)}
    return secret(world, "ingress-hc9-json", **tags)


def naming(*identifiers: str) -> Stacks:
    """Stacks that name these."""
    contents = Contents(owner=OWNER_ID, texts=frozenset(each.lower() for each in identifiers))
    return replace(NONE, contents={"dev": contents})


def test_nothing_is_left_over_at_first(azure: AzureClient, settings: Settings) -> None:
    assert found(azure, settings) == []


def test_an_assignment_whose_principal_is_gone_is_left_over(
    azure: AzureClient, world: ArmWorld, settings: Settings
) -> None:
    principal = gone(world)
    full_id = assign(world, settings, principal)

    [each] = found(azure, settings)

    assert (each.kind, each.id, each.not_ours) == (Swept.ROLE_ASSIGNMENT, full_id, None)
    assert each.reason == f"its principal {principal} is gone"


def test_an_assignment_of_somebody_who_is_there_stays(azure: AzureClient, world: ArmWorld, settings: Settings) -> None:
    assign(world, settings, world.principal().object_id)
    assert found(azure, settings) == []


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
        ("11111111-1111-4111-8111-111111111111", "", "its name is none that a known cluster's has"),
        ("", READER, "its role is none that a stack assigns"),
    ],
    ids=["another name", "another role"],
)
def test_somebody_elses_assignment_is_listed_and_not_ours(
    azure: AzureClient, world: ArmWorld, settings: Settings, name: str, role: str, why: str
) -> None:
    assign(world, settings, gone(world), name, role)

    [each] = found(azure, settings)

    assert each.not_ours is not None
    assert each.not_ours.startswith(why)


def test_a_cluster_that_is_gone_is_known_by_its_infra_id(
    azure: AzureClient, world: ArmWorld, settings: Settings
) -> None:
    name = role_assignment_name("hc9-infra", ROW.component, scope_of(settings))
    assign(world, settings, gone(world), name)

    assert [each.not_ours is None for each in found(azure, settings)] == [False]
    assert [each.not_ours is None for each in found(azure, settings, infra_ids=("hc9-infra",))] == [True]
    of_a_stack = replace(NONE, contents={"prod": Contents(infra_ids=frozenset({"hc9-infra"}))})
    assert [each.not_ours is None for each in found(azure, settings, of_a_stack)] == [True]


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        (OWNER_ID, None),
        (FOREIGN, f"no stack of this backend has its owner id {FOREIGN}, and one of another may"),
        (None, "it carries no owner id, so nothing says that a stack of this backend made it"),
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

    [each] = found(azure, settings)

    assert (each.kind, each.id, each.not_ours) == (Swept.APPLICATION, f"/applications/{made.object_id}", why)
    assert f"idstack:{stack}:hc9-ingress-entra" in each.reason


def test_an_application_of_another_project_is_not_even_listed(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    application(world, deployer, "idstack2:dev:thing")
    application(world, deployer, "dev")
    assert found(azure, settings) == []


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

    things = [(each.id.lower(), each.not_ours is None) for each in found(azure, settings)]

    assert sorted(things) == sorted(
        [
            (kept["id"].lower(), True),
            *((each.lower(), True) for each in ours),
            *((each.lower(), False) for each in [elsewhere, *theirs]),
        ]
    )


def test_assignments_go_before_the_identity_that_they_are_of(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    _, principal = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    assign(world, settings, principal.object_id, "11111111-1111-4111-8111-111111111111")

    things = found(azure, settings)

    assert [(each.kind, each.not_ours) for each in things] == [
        (Swept.ROLE_ASSIGNMENT, None),
        (Swept.APPLICATION, None),
    ]
    assert things[0].reason == "it is of the left-over application ingress-hc9"


def test_a_certificate_of_no_stack_is_left_over_once_its_successor_is_in_use(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    unknown, lost = register(azure, made)
    known, current = register(azure, made)
    stacks = naming(made.app_id, known, f"{VAULT}/secrets/ingress-hc9-json")

    deliver(world, current, ago=OVERLAP)
    [each] = found(azure, settings, stacks)
    assert (each.kind, each.id) == (Swept.REGISTRATION, f"/applications/{made.object_id}/certificate/{unknown}")
    assert each.name == f"{lost} of ingress-hc9"
    assert each.is_deleted

    deliver(world, current, ago=OVERLAP - timedelta(minutes=1))
    [each] = found(azure, settings, stacks)
    assert each.too_soon == f"pods may sign in with it until {rfc3339.render(NOW + timedelta(minutes=1))}"
    assert not each.is_deleted

    deliver(world, lost, ago=OVERLAP)
    assert found(azure, settings, stacks) == [], "it is what pods use"

    secret(world, "ingress-hc9-json", thumbprint=current, generation="a1", delivered_at="yesterday")
    assert found(azure, settings, stacks) == [], "who knows since when"


def test_deleting_a_certificate_leaves_the_others(
    azure: AzureClient,
    world: ArmWorld,
    settings: Settings,
    deployer: ServicePrincipal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("identity.access.registered_certificates._BETWEEN_READS", 0)
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    register(azure, made)
    kept, current = register(azure, made)
    deliver(world, current, ago=OVERLAP)

    [each] = found(azure, settings, naming(made.app_id, kept, f"{VAULT}/secrets/ingress-hc9-json"))
    delete(azure, each)

    left = azure.directory_object(f"/applications/{made.object_id}")
    assert left is not None
    assert [each["keyId"] for each in left["keyCredentials"]] == [kept]


def test_what_somebody_else_added_to_a_stacks_application_is_listed(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    password, _ = PasswordCredential.issue("by hand", NOW + timedelta(days=1))
    trust = {"id": "federated-1", "name": "runner", "issuer": "https://issuer.example", "subject": "repo:x"}
    world.cloud.directory.update(replace(made, passwords=(password,), federated=(trust,)))
    imported, _ = register(azure, made, key="11111111-1111-4111-8111-111111111111")
    added, thumbprint = register(azure, made, key="22222222-2222-4222-8222-222222222222")
    register(azure, made)
    path = f"/applications/{made.object_id}"

    listed = found(azure, settings, naming(made.app_id, imported))

    assert [(each.kind, each.id, each.name, each.reason) for each in listed] == [
        (Swept.REGISTRATION, f"{path}/certificate/{added}", f"{thumbprint} of ingress-hc9", "no stack has it"),
        (Swept.CLIENT_SECRET, f"{path}/password/{password.key_id}", "by hand of ingress-hc9", "no stack has it"),
        (
            Swept.FEDERATED_CREDENTIAL,
            f"{path}/federatedIdentityCredentials/federated-1",
            "runner of ingress-hc9",
            "no stack has it, for repo:x of https://issuer.example",
        ),
    ]
    assert {each.not_ours for each in listed} == {"this program did not add it"}
    everything = naming(made.app_id, imported, added, password.key_id, "federated-1")
    assert found(azure, settings, everything) == []


def test_what_somebody_else_added_to_its_service_principal_is_listed(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, principal = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    issued = certificate()
    # Under the key id that this program would give it: it registers nothing at a service principal.
    key = KeyCredential.of(
        x509.load_pem_x509_certificate(issued.certificate_pem.encode()), key_id=key_id(issued.thumbprint)
    )
    password, _ = PasswordCredential.issue(None, NOW + timedelta(days=1))
    world.cloud.directory.update(replace(principal, keys=(key,), passwords=(password,)))
    path, owner = f"/servicePrincipals/{principal.object_id}", "the service principal of ingress-hc9"

    listed = found(azure, settings, naming(made.app_id))

    assert [(each.kind, each.id, each.name) for each in listed] == [
        (Swept.REGISTRATION, f"{path}/certificate/{key.key_id}", f"{issued.thumbprint} of {owner}"),
        (Swept.CLIENT_SECRET, f"{path}/password/{password.key_id}", f"{password.key_id} of {owner}"),
    ]
    assert {each.not_ours for each in listed} == {"this program did not add it"}
    assert found(azure, settings, naming(made.app_id, key.key_id, password.key_id)) == []


def test_an_application_without_a_service_principal_has_none_there(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, principal = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    world.cloud.directory.delete_service_principal(principal.object_id)

    assert found(azure, settings, naming(made.app_id)) == []


def test_a_managed_identitys_added_federated_credential_is_listed(
    azure: AzureClient, world: ArmWorld, settings: Settings
) -> None:
    ours = identity(world, "hc1-disk", **{STACK_TAG: "idstack:dev"})["id"]
    foreign = identity(world, "somebody-elses")["id"]
    trust = {"issuer": "https://issuer.example", "subject": "repo:x", "audiences": ["api://AzureADTokenExchange"]}
    for owner, name in ((ours, "disk-node"), (ours, "runner"), (foreign, "theirs")):
        path = f"{owner}/federatedIdentityCredentials/{name}"
        assert world.call("PUT", path, {"properties": trust | {"subject": name}}).status_code == 201

    [listed] = found(azure, settings, naming(ours, f"{ours}/federatedIdentityCredentials/disk-node"))

    assert listed == LeftOver(
        Swept.FEDERATED_CREDENTIAL,
        f"{ours}/federatedIdentityCredentials/runner",
        "runner of hc1-disk",
        "no stack has it, for runner of https://issuer.example",
        "this program did not add it",
    )


@pytest.mark.parametrize("kind", [Swept.CLIENT_SECRET, Swept.FEDERATED_CREDENTIAL])
def test_what_is_never_ours_is_never_deleted(azure: AzureClient, kind: Swept) -> None:
    with pytest.raises(ValueError, match=f"a {kind} is never this program's"):
        delete(azure, LeftOver(kind, "/applications/a/b/c", "c", "no stack has it"))


def test_each_kind_is_deleted(
    azure: AzureClient, world: ArmWorld, settings: Settings, deployer: ServicePrincipal
) -> None:
    made, _ = application(world, deployer, "idstack:dev:hc9-ingress-entra")
    assign(world, settings, gone(world))
    identity(world, "hc9-disk", **{STACK_TAG: "idstack:dev"})
    secret(world, "ingress-hc9-json", thumbprint="A", generation="a1")
    things = found(azure, settings)

    for each in things:
        delete(azure, each)

    at_applications = {Swept.REGISTRATION, Swept.CLIENT_SECRET, Swept.FEDERATED_CREDENTIAL}
    assert {each.kind for each in things} == set(Swept) - at_applications
    assert found(azure, settings) == []
    assert world.cloud.directory.application_by_app(made.app_id) is None
