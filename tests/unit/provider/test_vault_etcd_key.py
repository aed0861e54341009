"""`VaultEtcdKeyResource` against the local Key Vault: the vault has the key of etcd, the state its id."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from identity.clouds import LOCAL_TENANT_ID
from identity.credentials.service_account_key import UnusableKeyError, etcd_key_id
from localcloud.testing.arm import VAULT, ArmWorld
from plugin import PluginError, Props
from provider.vault_key import VaultEtcdKeyResource

URN = "urn:pulumi:dev::idstack::idstack:index:EncryptionKey::hc1-encryption-key"
NAME = "hc1-etcd-encryption-key"

resource = VaultEtcdKeyResource()


def inputs(**changes: Any) -> Props:
    program = {"cloud": "local", "tenantId": LOCAL_TENANT_ID, "vaultId": VAULT, "secretName": NAME, "tags": {"a": "b"}}
    checked = resource.check(URN, None, program | changes)
    assert not checked.failures
    return checked.inputs


def created() -> Props:
    return resource.create(URN, inputs(), preview=False).state


def stored(world: ArmWorld) -> Any:
    return world.vault("GET", f"/secrets/{NAME}").json()


def test_the_vault_gets_32_bytes_and_the_state_their_hash(in_azure: ArmWorld) -> None:
    state = created()

    key = base64.b64decode(stored(in_azure)["value"])
    assert (len(key), state["keyId"]) == (32, hashlib.sha256(key).hexdigest())
    assert stored(in_azure)["tags"] == {"a": "b", "encryption_key_id": state["keyId"]}
    assert stored(in_azure)["value"] not in json.dumps(state)
    assert created() == state, "a run that was cut short after its write goes on with that key"


def test_a_secret_with_no_key_is_refused(in_azure: ArmWorld) -> None:
    state = created()
    in_azure.vault("PUT", f"/secrets/{NAME}", {"value": "c2hvcnQ="})

    with pytest.raises(PluginError, match="a key of 5 bytes; it has 32; accepted: 32 bytes in base64"):
        resource.update(URN, "", inputs(), state, inputs(tags={}), preview=False)


@pytest.mark.parametrize("key", ["", "no base64", "c2hvcnQ=", "é"])
def test_what_is_no_key_has_no_id(key: str) -> None:
    with pytest.raises(UnusableKeyError):
        etcd_key_id(key)


def test_only_the_plugin_makes_it() -> None:
    program = {"cloud": "local", "tenantId": LOCAL_TENANT_ID, "vaultId": VAULT, "secretName": NAME, "source": "file"}

    assert [failure.property for failure in resource.check(URN, None, program).failures][:1] == ["source"]
