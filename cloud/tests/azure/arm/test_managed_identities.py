"""User-assigned identities and their federated credentials."""

from __future__ import annotations

import httpx
import pytest

from localcloud.testing.arm import GROUP, ArmWorld, error

IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/hc1-disk"
ISSUER = "https://hc1oidc.blob.core.windows.net/hc1oidc"


def create(world: ArmWorld, **body: object) -> httpx.Response:
    return world.call("PUT", IDENTITY, {"location": "eastus", **body})


def trust(subject: str, issuer: str = ISSUER) -> dict[str, object]:
    return {"properties": {"issuer": issuer, "subject": subject, "audiences": ["openshift"]}}


def credential(name: str) -> str:
    return f"{IDENTITY}/federatedIdentityCredentials/{name}"


def test_an_identity_has_a_principal_of_its_own(world: ArmWorld) -> None:
    created = create(world, tags={"a": "b"})
    properties = created.json()["properties"]
    principal = world.cloud.directory.service_principal(properties["principalId"])
    assert principal is not None
    assert created.status_code == 201
    assert (principal.kind, principal.app_id) == ("ManagedIdentity", properties["clientId"])
    assert properties["tenantId"] == world.cloud.tenant_id
    assert created.json()["tags"] == {"a": "b"}


def test_an_identitys_id_is_printed_with_lower_case_resourcegroups(world: ArmWorld) -> None:
    assert create(world).json()["id"] == IDENTITY.replace("resourceGroups", "resourcegroups")


def test_writing_an_identity_again_keeps_its_principal(world: ArmWorld) -> None:
    first = create(world).json()
    second = create(world, tags={"a": "b"})
    assert (second.status_code, second.json()["properties"]) == (200, first["properties"])
    assert world.call("GET", IDENTITY).json()["tags"] == {"a": "b"}


def test_an_identity_cannot_move(world: ArmWorld) -> None:
    create(world)
    assert error(world.call("PUT", IDENTITY, {"location": "westus"}))[:2] == (409, "InvalidResourceLocation")
    assert world.call("PUT", IDENTITY, {"location": "East US"}).status_code == 200
    assert error(world.call("PUT", IDENTITY, {}))[:2] == (400, "LocationRequired")


def test_deleting_an_identity_leaves_only_its_role_assignments(world: ArmWorld) -> None:
    principal_id = create(world).json()["properties"]["principalId"]
    principal = world.cloud.directory.service_principal(principal_id)
    assert principal is not None
    assignment = world.grant(principal, "Reader", GROUP)
    world.call("PUT", credential("one"), trust("system:serviceaccount:a:b"))
    deleted, again = world.call("DELETE", IDENTITY), world.call("DELETE", IDENTITY)
    assert (deleted.status_code, again.status_code) == (200, 204)
    assert world.cloud.directory.service_principal(principal_id) is None
    assert world.call("GET", assignment).status_code == 200
    create(world)
    assert error(world.call("GET", credential("one")))[:2] == (404, "NotFound")


@pytest.mark.parametrize("name", ["ab", "-abc", "a.b.c", "a" * 129])
def test_an_invalid_identity_name_is_refused(world: ArmWorld, name: str) -> None:
    path = IDENTITY.replace("hc1-disk", name)
    assert error(world.call("PUT", path, {"location": "eastus"}))[:2] == (400, "BadRequest")


def test_credentials_are_written_one_after_another(world: ArmWorld) -> None:
    create(world)
    same = "system:serviceaccount:a:0"  # of another issuer
    trusts = (trust(same), trust("system:serviceaccount:a:1"), trust(same, f"{ISSUER}2"))
    written = [world.call("PUT", credential(f"fed-{n}"), body) for n, body in enumerate(trusts)]
    rewritten = world.call("PUT", credential("fed-0"), trust("system:serviceaccount:a:other"))
    listed = world.call("GET", f"{IDENTITY}/federatedIdentityCredentials").json()["value"]
    assert [answer.status_code for answer in (*written, rewritten)] == [201, 201, 201, 200]
    assert [item["name"] for item in listed] == ["fed-0", "fed-1", "fed-2"]
    assert listed[0]["properties"] == trust("system:serviceaccount:a:other")["properties"]


def test_the_twentieth_of_twenty_credentials_can_be_written_again(world: ArmWorld) -> None:
    create(world)
    for number in range(20):
        kind = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
        world.put(credential(f"fed-{number}"), kind, {"issuer": ISSUER, "subject": f"s{number}", "audiences": ["x"]})
    assert world.call("PUT", credential("fed-19"), trust("s20")).status_code == 200


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"subject": ""}, "subject"),
        ({"audiences": []}, "audiences"),
        ({"audience": "openshift"}, "audience"),
    ],
)
def test_a_malformed_credential_is_refused(world: ArmWorld, properties: dict[str, object], named: str) -> None:
    create(world)
    body = {"properties": {"issuer": ISSUER, "subject": "s", "audiences": ["a"], **properties}}
    answer = world.call("PUT", credential("one"), body)
    assert error(answer)[:2] == (400, "BadRequest")
    assert f"'{named}'" in answer.text
