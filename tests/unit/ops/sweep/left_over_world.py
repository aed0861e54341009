"""A stack's configuration beside things in Azure that a sweep may find."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from identity.azure.client import AzureClient
from identity.catalogue import CONTROL_PLANE
from identity.credentials import rfc3339
from identity.credentials.certificate import key_id
from identity.credentials.secret_tags import OWNER
from identity.naming import owner_mark, role_assignment_name
from identity.settings import Settings, load_settings
from identity.settings.scopes import scope_ids
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld, storage_account_body
from localcloud.testing.azure import Application, ServicePrincipal
from ops.sweep.left_over import LeftOver, find
from ops.world.stacks import Contents, Stacks
from tests.unit.components.world import configuration, hosted_cluster
from tests.unit.identity.credentials.world import certificate

ROW: Final = next(row for row in CONTROL_PLANE if row.setting is None and row.enabled_by_default)
INFRA: Final = "hc1-infra"
KEY_VAULT_ADMINISTRATOR: Final = "00482a5a-887f-4fb3-b363-3b7fe8e74483"
IDENTITIES: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
# Later than all that the world is asked to make, however long the tests before took.
NOW: Final = datetime.now(UTC) + timedelta(hours=1)
OWNER_ID: Final = "0c5f1f7e-0000-4000-8000-00000000000a"
FOREIGN: Final = "0c5f1f7e-0000-4000-8000-00000000000f"
NONE: Final = Stacks({"dev": Contents(), "prod": Contents(owner=OWNER_ID)})


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


def storage_account(world: ArmWorld, name: str) -> str:
    full_id = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/{name}"
    assert world.call("PUT", full_id, storage_account_body()).status_code in (200, 202)
    return full_id


def found(
    azure: AzureClient,
    settings: Settings,
    stacks: Stacks = NONE,
    infra_ids: tuple[str, ...] = (),
    *,
    later: timedelta = timedelta(0),
) -> list[LeftOver]:
    return find(azure, settings, "idstack", VAULT, stacks, infra_ids, NOW + later)


def register(
    azure: AzureClient, made: Application, *, key: str | None = None, age: timedelta = timedelta(minutes=5)
) -> tuple[str, str]:
    """One more certificate at the application, by default under a stack's key id; its key id and thumbprint."""
    issued = certificate(age=age)
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
    contents = Contents(owner=OWNER_ID, texts=frozenset(identifier.lower() for identifier in identifiers))
    return replace(NONE, contents={"dev": contents})
