"""What stands in for `az keyvault recover` and `az keyvault secret recover` on the local cloud."""

from __future__ import annotations

import pytest

from localcloud.azure.keyvault.api import NotDeletedError, recover
from localcloud.testing.arm import VAULT, ArmWorld

SECRET = f"{VAULT}/secrets/one"


@pytest.fixture
def vault(world: ArmWorld) -> ArmWorld:
    """A world with the stack's vault and one secret in it."""
    world.create_vault()
    world.vault("PUT", "/secrets/one", {"value": "v"})
    return world


def test_a_deleted_secret_comes_back_with_its_value(vault: ArmWorld) -> None:
    vault.vault("DELETE", "/secrets/one")

    recover(vault.cloud, SECRET.upper())

    assert vault.vault("GET", "/secrets/one").json()["value"] == "v"


def test_a_deleted_vault_comes_back_with_its_secrets(vault: ArmWorld) -> None:
    vault.call("DELETE", VAULT)
    assert vault.call("GET", VAULT).status_code == 404

    recover(vault.cloud, VAULT.lower())

    assert vault.vault("GET", "/secrets/one").json()["value"] == "v"


@pytest.mark.parametrize("resource_id", [SECRET, VAULT, f"{VAULT}-2", f"{VAULT}-2/secrets/one"])
def test_what_is_not_deleted_cannot_be_recovered(vault: ArmWorld, resource_id: str) -> None:
    with pytest.raises(NotDeletedError, match=resource_id.partition("/secrets/")[0].rpartition("/")[2]):
        recover(vault.cloud, resource_id)


@pytest.mark.parametrize("resource_id", ["kv-idstack-local", VAULT.replace("vaults", "keys")])
def test_other_ids_are_refused(vault: ArmWorld, resource_id: str) -> None:
    with pytest.raises(ValueError, match=r"is neither|is not a resource id"):
        recover(vault.cloud, resource_id)
