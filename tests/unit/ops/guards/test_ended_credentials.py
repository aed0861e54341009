"""Credentials that have ended are named before a hosted cluster is deleted with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from cryptography import x509

from identity.access.azure_client import AzureClient
from identity.access.errors import AzureRefusedError
from identity.catalogue import CONTROL_PLANE
from identity.outputs import StackOutputs
from localcloud.azure.tenant.objects import KeyCredential
from localcloud.tests.arm_world import VAULT, ArmWorld
from ops.guards import ended_credentials as module
from ops.guards.ended_credentials import ended_credentials
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from tests.unit.identity.credentials.world import certificate
from tests.unit.ops.conftest import FakeEngine

ROW: Final = next(row for row in CONTROL_PLANE if row.enabled_by_default)
NAME: Final = "one-hc1-json"


@pytest.fixture(autouse=True)
def _signed_in(engine: FakeEngine, azure: AzureClient, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def opened(*_: Any) -> Iterator[AzureClient]:
        try:
            yield azure
        except AzureRefusedError as error:
            raise CommandError(str(error)) from None

    monkeypatch.setattr(module, "deployer", opened)


@pytest.fixture
def issued() -> KeyCredential:
    """The certificate of the one identity."""
    pem = certificate().certificate_pem.encode()
    return KeyCredential.of(x509.load_pem_x509_certificate(pem))


@pytest.fixture
def outputs(world: ArmWorld, issued: KeyCredential) -> StackOutputs[str]:
    """`hc1` with one identity, whose certificate is registered and in the vault."""
    application = world.cloud.directory.create_application("one-hc1")
    world.cloud.directory.set_key_credentials(application.object_id, [issued])
    world.create_vault()
    secret(world, issued)
    described: Any = {
        "controlPlane": {ROW.field: {"clientID": application.app_id, "credentialsSecretName": NAME}},
        "credentialsInUse": {ROW.field: {"principal": "entra-application"}},
    }
    return {"keyVaultId": VAULT, "hostedClusters": {"hc1": described}}


def secret(world: ArmWorld, issued: KeyCredential, **attributes: Any) -> None:
    body = {"properties": {"value": "v", "attributes": attributes}, "tags": {"thumbprint": issued.thumbprint}}
    assert world.call("PUT", f"{VAULT}/secrets/{NAME}", body).status_code in (200, 201)


def warned(outputs: StackOutputs[str], cluster: str = "hc1") -> str | None:
    return ended_credentials(Engine("dev"), outputs, [cluster])


def test_credentials_that_sign_in_are_no_warning(outputs: StackOutputs[str]) -> None:
    assert warned(outputs) is None


def test_a_cluster_that_is_not_deleted_is_not_looked_at(outputs: StackOutputs[str]) -> None:
    assert ended_credentials(Engine("dev"), {**outputs, "keyVaultId": "/none"}, []) is None


def test_a_certificate_that_has_expired_is_named(
    outputs: StackOutputs[str], world: ArmWorld, issued: KeyCredential
) -> None:
    secret(world, issued, nbf=1, exp=1700000000)

    assert warned(outputs) == (
        f"HyperShift cannot sign in with all credentials: {ROW.field} of hc1 (it expired at 2023-11-14T22:13:20Z). "
        "HyperShift deletes machines, volumes and load balancers with them. It gives up a machine that it cannot "
        "delete for ten minutes: the HostedCluster is deleted, and the machine stays in Azure. `idstack sweep "
        "--stack dev` lists such machines. `idstack doctor --stack dev` has the fix for each: apply it first"
    )


def test_a_certificate_that_was_withdrawn_is_named(
    outputs: StackOutputs[str], world: ArmWorld, issued: KeyCredential
) -> None:
    [application] = [each for each in world.cloud.directory.applications() if each.display_name == "one-hc1"]
    world.cloud.directory.set_key_credentials(application.object_id, [])

    expected = f"{ROW.field} of hc1 (its certificate {issued.thumbprint} is not registered at the application)"
    assert expected in (warned(outputs) or "")


def test_an_application_that_is_gone_is_named(outputs: StackOutputs[str], world: ArmWorld) -> None:
    [application] = [each for each in world.cloud.directory.applications() if each.display_name == "one-hc1"]
    world.cloud.directory.delete_application(application.object_id)

    assert f"(there is no application {application.app_id})" in (warned(outputs) or "")


def test_a_secret_that_is_disabled_or_gone_is_named(
    outputs: StackOutputs[str], world: ArmWorld, issued: KeyCredential
) -> None:
    secret(world, issued, enabled=False)
    assert f"(the secret {NAME} is disabled)" in (warned(outputs) or "")

    world.vault("DELETE", f"/secrets/{NAME}")
    assert f"(the vault has no secret {NAME})" in (warned(outputs) or "")


def test_what_cannot_be_read_is_a_warning(outputs: StackOutputs[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise CommandError("no sign-in")

    monkeypatch.setattr(module, "deployer", refuse)

    assert (warned(outputs) or "").startswith(
        "the credentials of hc1 cannot be checked (no sign-in). HyperShift deletes machines"
    )
