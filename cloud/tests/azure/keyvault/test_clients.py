"""Microsoft's own clients of Key Vault against the local data plane, over TLS and through the challenge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.keyvault.keys.crypto import EncryptionAlgorithm, KeyWrapAlgorithm

from localcloud.azure.keyvault.keys import Keys
from localcloud.azure.keyvault.secrets import Vaults
from localcloud.testing.arm import VAULT
from tests.azure.keyvault.conftest import VaultClients

OFFICER = ("Key Vault Secrets Officer", VAULT)


def test_a_secret_is_set_read_updated_and_listed(clients: VaultClients) -> None:
    client = clients.secrets(clients.world.principal(OFFICER))
    expires = datetime(2030, 1, 1, tzinfo=UTC)
    first = client.set_secret("one", "v1", content_type="text/plain", tags={"a": "b"}, expires_on=expires)
    client.set_secret("one", "v2")
    old = client.get_secret("one", first.properties.version)
    updated = client.update_secret_properties("one", first.properties.version or "", enabled=False)
    assert (old.value, old.properties.content_type, old.properties.tags) == ("v1", "text/plain", {"a": "b"})
    assert old.properties.expires_on == expires
    assert client.get_secret("one").value == "v2"
    assert (updated.enabled, updated.expires_on) == (False, expires)
    assert [properties_of_secret.name for properties_of_secret in client.list_properties_of_secrets()] == ["one"]
    assert len(list(client.list_properties_of_secret_versions("one"))) == 2


def test_a_client_goes_through_all_pages_of_versions(clients: VaultClients) -> None:
    client = clients.secrets(clients.world.principal(OFFICER))
    made = {client.set_secret("one", "v").properties.version for _ in range(27)}

    assert {
        properties_of_secret_version.version
        for properties_of_secret_version in client.list_properties_of_secret_versions("one")
    } == made


def test_a_secret_is_deleted_blocked_recovered_and_purged(clients: VaultClients) -> None:
    client = clients.secrets(clients.world.principal(OFFICER))
    client.set_secret("one", "v")
    deleted = client.begin_delete_secret("one").result()
    assert deleted.recovery_id == "https://kv-idstack-local.vault.azure.net/deletedsecrets/one"
    with pytest.raises(ResourceNotFoundError):
        client.get_secret("one")
    with pytest.raises(ResourceExistsError, match="currently in a deleted but recoverable state") as refused:
        client.set_secret("one", "v")
    assert "ObjectIsDeletedButRecoverable" in str(refused.value.error)
    assert [deleted_secret.name for deleted_secret in client.list_deleted_secrets()] == ["one"]
    assert client.begin_recover_deleted_secret("one").result().name == "one"
    assert client.get_secret("one").value == "v"
    client.begin_delete_secret("one").wait()
    client.purge_deleted_secret("one")
    assert client.set_secret("one", "again").value == "again"


def test_expired_and_not_yet_valid_secrets_are_served(clients: VaultClients) -> None:
    client = clients.secrets(clients.world.principal(OFFICER))
    now = datetime.now(UTC)
    client.set_secret("expired", "v", expires_on=now - timedelta(days=1))
    client.set_secret("future", "v", not_before=now + timedelta(days=1))
    assert [client.get_secret(name).value for name in ("expired", "future")] == ["v", "v"]


@pytest.mark.parametrize("algorithm", [EncryptionAlgorithm.rsa_oaep_256, EncryptionAlgorithm.rsa_oaep])
def test_a_key_encrypts_and_decrypts_in_the_vault_and_by_its_public_half(
    clients: VaultClients, algorithm: EncryptionAlgorithm
) -> None:
    vault = Vaults(clients.world.resources).named("kv-idstack-local")
    assert vault is not None
    version = Keys(clients.world.store).add(vault, "etcd").version
    client = clients.keys(clients.world.principal(("Key Vault Crypto User", VAULT)))
    key = client.get_key("etcd")
    # The client encrypts by itself with the public half it was given, and asks the vault to decrypt.
    crypto = clients.opened.enter_context(client.get_cryptography_client("etcd", key_version=version))
    secret = crypto.encrypt(algorithm, b"marker")
    wrapped = crypto.wrap_key(KeyWrapAlgorithm.rsa_oaep_256, b"k" * 32)
    assert key.id == f"https://kv-idstack-local.vault.azure.net/keys/etcd/{version}"
    assert crypto.decrypt(algorithm, secret.ciphertext).plaintext == b"marker"
    assert crypto.unwrap_key(KeyWrapAlgorithm.rsa_oaep_256, wrapped.encrypted_key).key == b"k" * 32
    assert [properties_of_key.name for properties_of_key in client.list_properties_of_keys()] == ["etcd"]
