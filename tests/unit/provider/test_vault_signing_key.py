"""`VaultSigningKeyResource` against the local Key Vault: the vault has the key, the state its public half."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identity.clouds import LOCAL_TENANT_ID
from identity.credentials import service_account_key
from identity.credentials.service_account_key import public_half
from localcloud.testing.arm import VAULT, ArmWorld
from plugin import UNKNOWN, PluginError, PropertyChange, Props
from provider.vault_key import SIGNING_KEY, VaultSigningKeyResource
from tests.unit.provider.conftest import SignIn

URN = "urn:pulumi:dev::idstack::idstack:index:SigningKey::hc1-issuer-key-1"
NAME = "hc1-sa-signing-key-1"
ID = f"{VAULT}/secrets/{NAME}"

resource = VaultSigningKeyResource()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are made quickly."""
    made = service_account_key.make
    monkeypatch.setattr(VaultSigningKeyResource, "form", replace(SIGNING_KEY, make=lambda: made(2048)))


def inputs(old: Props | None = None, **changes: Any) -> Props:
    program = {"cloud": "local", "tenantId": LOCAL_TENANT_ID, "vaultId": VAULT, "secretName": NAME, "tags": {"a": "b"}}
    checked = resource.check(URN, old, program | changes)
    assert not checked.failures
    return checked.inputs


def created(**changes: Any) -> Props:
    return resource.create(URN, inputs(**changes), preview=False).state


def stored(world: ArmWorld) -> str:
    return str(world.vault("GET", f"/secrets/{NAME}").json()["value"])


def store(world: ArmWorld, pem: str) -> None:
    world.vault("PUT", f"/secrets/{NAME}", {"value": pem})


def refreshed(state: Props) -> Props:
    found = resource.read(URN, ID, {name: state[name] for name in inputs()}, state)
    assert found is not None
    return found.inputs


def test_the_vault_gets_a_key_and_the_state_its_public_half(in_azure: ArmWorld) -> None:
    planned = resource.create(URN, inputs(), preview=True)
    assert (planned.id, planned.state["jwk"]) == ("", UNKNOWN)
    assert in_azure.vault("GET", f"/secrets/{NAME}").status_code == 404, "a preview writes nothing"

    state = created()

    public = public_half(stored(in_azure))
    assert (state["keyId"], state["jwk"], state["publicKeyPem"]) == (public.key_id, public.jwk, public.pem)
    assert stored(in_azure).startswith("-----BEGIN RSA PRIVATE KEY-----")
    found = in_azure.vault("GET", f"/secrets/{NAME}").json()
    assert (found["contentType"], found["tags"]) == (
        "application/x-pem-file",
        {"a": "b", "signing_key_id": public.key_id},
    )
    shown = json.dumps([inputs(), state])
    of_the_private_half = stored(in_azure).splitlines()[-3]
    assert not [text for text in ("PRIVATE", of_the_private_half) if text in shown]
    assert refreshed(state) == inputs()
    assert created() == state, "a run that was cut short after its write goes on with that key"


def test_somebody_elses_secret_is_not_taken_over(in_azure: ArmWorld) -> None:
    store(in_azure, "mine")

    with pytest.raises(PluginError, match="cannot create already existing resource"):
        created()
    assert stored(in_azure) == "mine"


def test_another_stacks_key_is_neither_taken_over_nor_replaced(in_azure: ArmWorld, tmp_path: Path) -> None:
    state = created(ownerId="theirs")
    pem = stored(in_azure)
    (tmp_path / "key.pem").write_text(service_account_key.make(2048))
    own = public_half((tmp_path / "key.pem").read_text()).key_id
    file: dict[str, Any] = {"source": "file", "file": str(tmp_path / "key.pem"), "fileKeyId": own}

    with pytest.raises(PluginError, match=r"carries the owner id theirs, which is another stack's; .*\(ours\)"):
        created(ownerId="ours")
    with pytest.raises(PluginError, match="carries the owner id theirs"):
        resource.update(URN, ID, inputs(ownerId="ours"), state, inputs(ownerId="ours", **file), preview=False)
    assert stored(in_azure) == pem
    assert created(ownerId="ours", source="vault")["keyId"] == state["keyId"], "which is only read"
    resource.update(URN, ID, inputs(ownerId="theirs"), state, inputs(ownerId="ours"), preview=False)
    assert in_azure.call("GET", ID).json()["tags"]["idstack-owner"] == "ours", "it moved here"


def test_a_deleted_key_is_not_replaced_by_another(in_azure: ArmWorld) -> None:
    state = created()
    resource.delete(URN, ID, inputs(), state)

    assert resource.read(URN, ID, inputs(), state) is None
    with pytest.raises(PluginError, match=r"the signing key was not written: .*deleted but recoverable state"):
        created()
    resource.delete(URN, ID, inputs(), state)


def test_a_key_that_somebody_else_wrote_is_taken_over(in_azure: ArmWorld) -> None:
    state, other = created(), service_account_key.make(2048)
    store(in_azure, other)
    drifted = refreshed(state)

    assert resource.diff(URN, ID, drifted, state, inputs()).changes["rewritten"] == PropertyChange("delete")
    assert resource.update(URN, ID, drifted, state, inputs(), preview=True)["keyId"] is UNKNOWN
    taken = resource.update(URN, ID, drifted, state, inputs(), preview=False)
    assert taken["keyId"] == public_half(other).key_id
    assert refreshed(taken) == inputs()


def test_a_disabled_key_and_its_tags_are_put_back(in_azure: ArmWorld) -> None:
    state = created()
    change = {"attributes": {"enabled": False}, "tags": {"signing_key_id": state["keyId"]}}
    in_azure.vault("PATCH", f"/secrets/{NAME}", change)
    drifted = refreshed(state)

    assert set(resource.diff(URN, ID, drifted, state, inputs()).changes) == {"enabled", "tags.a"}
    assert resource.update(URN, ID, drifted, state, inputs(), preview=False) == state
    assert refreshed(state) == inputs()


def test_a_key_in_a_file_is_stored_as_hypershift_reads_it(in_azure: ArmWorld, tmp_path: Path) -> None:
    file = tmp_path / "sa.pem"
    file.write_text(service_account_key.make(2048))
    key_id = public_half(file.read_text()).key_id
    state = created(source="file", file=str(file), fileKeyId=key_id)

    assert (state["keyId"], stored(in_azure)) == (key_id, file.read_text())
    with pytest.raises(PluginError, match=r"sa\.pem changed while the stack was deployed"):
        resource.update(
            URN, ID, inputs(), state, inputs(source="file", file=str(file), fileKeyId="another"), preview=False
        )


def test_a_key_that_is_in_the_vault_already_is_only_read(in_azure: ArmWorld) -> None:
    pem = service_account_key.make(2048)
    store(in_azure, pem)
    before = in_azure.vault("GET", f"/secrets/{NAME}").json()
    state = created(source="vault")
    resource.delete(URN, ID, inputs(source="vault"), state)

    assert state["keyId"] == public_half(pem).key_id
    assert in_azure.vault("GET", f"/secrets/{NAME}").json() == before


@pytest.mark.parametrize("value", ["text", "-----BEGIN CERTIFICATE-----"])
def test_a_secret_without_a_key_is_refused_without_showing_it(in_azure: ArmWorld, value: str) -> None:
    store(in_azure, value)

    with pytest.raises(PluginError) as refused:
        created(source="vault")
    assert value not in str(refused.value)
    assert "accepted: an RSA private key in PEM" in str(refused.value)


def test_a_reader_refreshes_and_reads_no_key(in_azure: ArmWorld, sign_in: SignIn) -> None:
    state = created()
    sign_in(in_azure.principal(("Reader", VAULT)))

    assert refreshed(state) == inputs()
    with pytest.raises(PluginError, match="403"):
        resource.create(URN, inputs(source="vault"), preview=False)


def test_an_import_reads_the_public_half(in_azure: ArmWorld) -> None:
    state = created()
    found = resource.read(URN, f"local/{LOCAL_TENANT_ID}{ID}", {}, {})

    assert found is not None
    assert (found.id, found.inputs, found.state) == (ID, inputs(), state)


def test_another_vault_is_another_key(in_azure: ArmWorld) -> None:
    old = inputs()
    moved = resource.diff(URN, ID, old, {}, {**old, "vaultId": f"{VAULT}-2", "tags": {}}).changes

    assert {path: change.replace for path, change in moved.items()} == {"vaultId": True, "tags.a": False}


@pytest.mark.parametrize(("name", "value"), [("source", "x"), ("vaultId", ""), ("secretName", None)])
def test_a_wrong_input_is_refused(name: str, value: Any) -> None:
    program = {"cloud": "local", "tenantId": LOCAL_TENANT_ID, "vaultId": VAULT, "secretName": NAME}

    assert [failure.property for failure in resource.check(URN, None, {**program, name: value}).failures] == [name]
