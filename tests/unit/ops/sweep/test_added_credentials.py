"""What somebody else added to what a stack has: a sweep lists it, and deletes none of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from cryptography import x509

from identity.azure.client import AzureClient
from identity.credentials.certificate import key_id
from identity.naming import STACK_TAG
from identity.settings import Settings
from localcloud.testing.arm import ArmWorld
from localcloud.testing.azure import KeyCredential, PasswordCredential, ServicePrincipal
from ops.sweep.left_over import LeftOver, Swept
from tests.unit.identity.credentials.world import certificate
from tests.unit.ops.sweep.left_over_world import (
    NOW,
    application,
    found,
    identity,
    naming,
    register,
    settings,
)

__all__ = ["settings"]


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

    assert [(item.kind, item.id, item.name, item.reason) for item in listed] == [
        (Swept.REGISTRATION, f"{path}/certificate/{added}", f"{thumbprint} of ingress-hc9", "no stack has it"),
        (Swept.CLIENT_SECRET, f"{path}/password/{password.key_id}", "by hand of ingress-hc9", "no stack has it"),
        (
            Swept.FEDERATED_CREDENTIAL,
            f"{path}/federatedIdentityCredentials/federated-1",
            "runner of ingress-hc9",
            "no stack has it, for repo:x of https://issuer.example",
        ),
    ]
    assert {item.not_ours for item in listed} == {"this program did not add it"}
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

    assert [(item.kind, item.id, item.name) for item in listed] == [
        (Swept.REGISTRATION, f"{path}/certificate/{key.key_id}", f"{issued.thumbprint} of {owner}"),
        (Swept.CLIENT_SECRET, f"{path}/password/{password.key_id}", f"{password.key_id} of {owner}"),
    ]
    assert {item.not_ours for item in listed} == {"this program did not add it"}
    assert found(azure, settings, naming(made.app_id, key.key_id, password.key_id)) == []
    world.cloud.directory.delete_service_principal(principal.object_id)
    assert found(azure, settings, naming(made.app_id)) == [], "without a service principal there is none"


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
