"""`CredentialSecretResource` against the local Key Vault: what is written, when, and what stays readable."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identity.credentials import rfc3339
from identity.credentials.document import validate
from localcloud.testing.arm import VAULT, ArmWorld
from plugin import UNKNOWN, PluginError, PropertyChange
from provider import keys
from tests.unit.provider.conftest import ADDRESS, SECRET, SignIn, versions
from tests.unit.provider.secret_world import CLIENT, ID, URN, checked, created, inputs, issued, resource, value


def test_the_vault_gets_a_document_that_the_loader_takes(in_azure: ArmWorld) -> None:
    certificate = issued()
    state = created(inputs(certificate))

    found = in_azure.vault("GET", f"/secrets/{SECRET}").json()
    read = validate(found["value"], now=datetime.now(UTC), expected_client_id=CLIENT)
    assert read.thumbprint == certificate.thumbprint
    assert found["contentType"] == "application/json"
    assert found["tags"] == {
        "environment": "test",
        "thumbprint": certificate.thumbprint,
        "generation": "a1",
        "delivered_at": state["deliveredAt"],
        "renew_after": rfc3339.render(certificate.not_after - timedelta(days=45)),
        "cannot_renew_after": rfc3339.render(certificate.not_after),
    }
    assert (found["attributes"]["nbf"], found["attributes"]["exp"]) == (
        int(certificate.not_before.timestamp()),
        int(certificate.not_after.timestamp()),
    )
    assert found["id"].endswith(state["version"])


def test_neither_input_nor_output_shows_the_key_and_memory_forgets_it(in_azure: ArmWorld) -> None:
    certificate = issued()
    wanted = inputs(certificate)
    state = created(wanted)

    shown = json.dumps([wanted, state])
    assert "PRIVATE KEY" not in shown
    assert base64.b64encode(certificate.private_key_pem.encode()).decode()[:40] not in shown
    assert keys.find(certificate.thumbprint) is None


def test_the_document_is_stored_in_the_object_encoding(in_azure: ArmWorld) -> None:
    created(inputs(issued(), objectEncoding="hex"))
    text = in_azure.vault("GET", f"/secrets/{SECRET}").json()["value"]
    assert validate(text, now=datetime.now(UTC), object_encoding="hex").client_id == CLIENT


def test_a_preview_writes_nothing_and_knows_no_version(in_azure: ArmWorld) -> None:
    planned = resource.create(URN, inputs(issued()), preview=True)
    assert (planned.id, planned.state["version"]) == ("", UNKNOWN)
    assert in_azure.vault("GET", f"/secrets/{SECRET}").status_code == 404


def test_a_renewal_is_a_new_version_and_only_the_one_before_stays_enabled(in_azure: ArmWorld) -> None:
    old = inputs(issued())
    state = created(old)
    for number in range(2, 6):
        new = inputs(issued(), f"b{number}")
        state = resource.update(URN, ID, old, state, new, preview=False)
        old = new
    assert value(in_azure)["client_id"] == CLIENT
    by_id = {version["id"].rpartition("/")[2]: version["attributes"]["enabled"] for version in versions(in_azure)}
    assert len(by_id) == 5
    assert by_id[state["version"]]
    assert sum(by_id.values()) == 2


def test_versions_that_cannot_be_disabled_are_reported_and_tried_again(in_azure: ArmWorld, sign_in: SignIn) -> None:
    old, new = inputs(issued()), inputs(issued(), "b2")
    created(old)
    resource.update(URN, ID, old, {}, new, preview=False)
    newest = inputs(issued(), "a3")
    sign_in(in_azure.principal(("Contributor", VAULT)))
    with pytest.raises(PluginError, match=r"the secret was written, but earlier versions of it are still enabled.*403"):
        resource.update(URN, ID, new, {}, newest, preview=False)
    assert value(in_azure)["client_id"] == CLIENT

    sign_in(in_azure.deployer)
    resource.update(URN, ID, new, {}, newest, preview=False)
    assert sum(version["attributes"]["enabled"] for version in versions(in_azure)) == 2


def test_a_renewal_of_a_secret_that_somebody_disabled_can_be_read(in_azure: ArmWorld) -> None:
    old, new = inputs(issued()), inputs(issued(), "b2")
    created(old)
    in_azure.call("PATCH", ID, {"properties": {"attributes": {"enabled": False}}})
    assert in_azure.vault("GET", f"/secrets/{SECRET}").status_code == 403

    resource.update(URN, ID, old, {}, new, preview=False)

    assert value(in_azure)["client_id"] == CLIENT


def test_other_tags_keep_the_version(in_azure: ArmWorld) -> None:
    certificate = issued()
    old = inputs(certificate)
    state = created(old)
    new = checked({**old, "tags": {"environment": "prod"}}, old)

    assert resource.diff(URN, ID, old, state, new).changes == {"tags.environment": PropertyChange("update")}
    assert resource.update(URN, ID, old, state, new, preview=True)["version"] == state["version"]
    updated = resource.update(URN, ID, old, state, new, preview=False)

    assert updated["version"] == state["version"]
    assert in_azure.vault("GET", f"/secrets/{SECRET}").json()["tags"] == {
        **in_azure.call("GET", ID).json()["tags"],
        "environment": "prod",
        "thumbprint": certificate.thumbprint,
        "delivered_at": state["deliveredAt"],
    }


@pytest.mark.parametrize("theirs", [{}, {"tags": {"thumbprint": "A" * 40, "generation": "b7"}}])
def test_a_version_that_somebody_else_wrote_gets_no_tags_of_ours(in_azure: ArmWorld, theirs: dict[str, Any]) -> None:
    old = inputs(issued())
    state = created(old)
    foreign = in_azure.vault("PUT", f"/secrets/{SECRET}", {"value": "theirs", **theirs}).json()["id"].rpartition("/")[2]
    before = in_azure.call("GET", ID).json()
    new = checked({**old, "tags": {"environment": "prod"}}, old)

    with pytest.raises(PluginError) as refused:
        resource.update(URN, ID, old, state, new, preview=False)

    assert in_azure.call("GET", ID).json() == before
    assert str(refused.value) == (
        f"{ID} has the version {foreign}, which somebody else wrote, and not {state['version']}, which this stack "
        f"wrote with the certificate {old['thumbprint']}. Nothing was changed. Make the stack's version current again, "
        "value and tags, or run `.venv/bin/idstack rotate --force --stack dev --identity hc1/ingress`: it writes "
        "another certificate, and names the pods that may not sign in until they load it"
    )


def test_a_later_version_with_this_very_credential_is_ours(in_azure: ArmWorld) -> None:
    old = inputs(issued())
    state = created(old)
    tags = in_azure.call("GET", ID).json()["tags"]
    in_azure.vault("PUT", f"/secrets/{SECRET}", {"value": json.dumps(value(in_azure)), "tags": tags})

    updated = resource.update(
        URN, ID, old, state, checked({**old, "tags": {"environment": "prod"}}, old), preview=False
    )

    assert updated["version"] != state["version"]
    assert in_azure.call("GET", ID).json()["tags"]["environment"] == "prod"


def test_what_was_written_with_a_credential_stays_until_the_next(in_azure: ArmWorld) -> None:
    old = inputs(issued())
    later = {"renewAfter": "2030-01-01T00:00:00Z", "objectId": "another", "provenAt": "2030-01-01T00:00:00Z"}
    new = checked({**old, **later}, old)
    assert resource.diff(URN, ID, old, old, new).changes == {}

    next_one = inputs(issued(), "b2", **later)
    assert checked(next_one, old)["renewAfter"] == "2030-01-01T00:00:00Z"


def test_a_run_that_was_cut_short_after_its_write_is_finished_without_a_key(in_azure: ArmWorld) -> None:
    wanted = inputs(issued())
    version = created(wanted)["version"]
    assert created(wanted)["version"] == version, "the state did not hear of the first write"

    new = inputs(issued(), "b2")
    written = resource.update(URN, ID, wanted, {}, new, preview=False)
    again = resource.update(URN, ID, wanted, {}, new, preview=False)
    assert again["version"] == written["version"]


def test_a_version_of_another_number_is_not_taken_for_what_was_written(in_azure: ArmWorld) -> None:
    wanted = inputs(issued())
    created(wanted)
    in_azure.call("PATCH", ID, {"tags": {**in_azure.call("GET", ID).json()["tags"], "generation": "a7"}})

    with pytest.raises(PluginError, match="cannot create already existing resource"):
        created(wanted)


def test_a_refresh_after_an_interrupted_write_leaves_the_versions_to_do(in_azure: ArmWorld, sign_in: SignIn) -> None:
    old, new, newest = inputs(issued()), inputs(issued(), "b2"), inputs(issued(), "a3")
    created(old)
    state = resource.update(URN, ID, old, {}, new, preview=False)
    sign_in(in_azure.principal(("Contributor", VAULT)))
    with pytest.raises(PluginError):
        resource.update(URN, ID, new, state, newest, preview=False)
    sign_in(in_azure.deployer)

    once = resource.read(URN, ID, new, state)
    assert once is not None
    twice = resource.read(URN, ID, once.inputs, once.state)
    assert twice is not None
    assert set(resource.diff(URN, ID, twice.inputs, twice.state, newest).changes) == {"interrupted"}
    settled = resource.update(URN, ID, twice.inputs, twice.state, checked(newest, twice.inputs), preview=False)

    assert sum(version["attributes"]["enabled"] for version in versions(in_azure)) == 2
    again = resource.read(URN, ID, newest, settled)
    assert again is not None
    assert again.inputs == newest


def test_a_key_that_is_gone_is_an_error_that_says_what_to_do(in_azure: ArmWorld) -> None:
    certificate = issued()
    keys.forget(certificate.thumbprint)
    with pytest.raises(PluginError, match=rf"certificate {certificate.thumbprint} is gone.* Run the command again"):
        created(inputs(certificate))
    assert in_azure.vault("GET", f"/secrets/{SECRET}").status_code == 404


def test_somebody_elses_secret_is_not_overwritten(in_azure: ArmWorld) -> None:
    in_azure.vault("PUT", f"/secrets/{SECRET}", {"value": "theirs"})
    with pytest.raises(PluginError, match=f"cannot create already existing resource '{ID}'"):
        created(inputs(issued()))


def owner(world: ArmWorld) -> str:
    """The stack whose owner id the secret carries."""
    return str(world.call("GET", ID).json()["tags"]["idstack-owner"])


def test_another_stacks_secret_is_neither_written_nor_taken_over(in_azure: ArmWorld) -> None:
    certificate = issued()
    theirs = created(inputs(certificate, ownerId="theirs"))
    ours = {"ownerId": "ours"}
    refusal = (
        rf"{ID} was not written: it carries the owner id theirs, which is another stack's; accepted: a secret of this "
        r"stack \(ours\)\. .*`\.venv/bin/idstack recover --stack dev --owner theirs` makes it"
    )

    for wanted in (inputs(issued(), **ours), inputs(certificate, **ours)):
        with pytest.raises(PluginError, match=refusal):
            created(wanted)
    imported = resource.read(URN, f"local/{ADDRESS['tenantId']}{ID}", {}, {})
    assert imported is not None
    for before in (imported.inputs, inputs(certificate, **ours)):
        with pytest.raises(PluginError, match=refusal):
            resource.update(URN, ID, before, imported.state, inputs(issued(), "b2", **ours), preview=False)
    assert [version["id"].rpartition("/")[2] for version in versions(in_azure)] == [theirs["version"]]
    assert owner(in_azure) == "theirs"


def test_a_secret_that_moved_here_gets_this_stacks_owner_id(in_azure: ArmWorld) -> None:
    certificate = issued()
    old, new = inputs(certificate, ownerId="first"), inputs(certificate, ownerId="second")
    state = created(old)

    assert "ownerId" in resource.diff(URN, ID, old, state, new).changes
    moved = resource.update(URN, ID, old, state, new, preview=False)
    assert (moved["version"], owner(in_azure)) == (state["version"], "second")
    resource.update(URN, ID, new, moved, checked(inputs(issued(), "b2"), new), preview=False)
    assert owner(in_azure) == "second", "a renewal leaves it as it is"


def test_a_secret_without_an_owner_gets_one(in_azure: ArmWorld) -> None:
    old = inputs(issued())
    state = created(old)
    new = checked({**old, "ownerId": "ours"}, old)
    resource.update(URN, ID, old, state, new, preview=False)
    assert owner(in_azure) == "ours"

    in_azure.call("PATCH", ID, {"tags": {}})
    live = resource.read(URN, ID, new, state)
    assert live is not None
    assert "ownerId" in resource.diff(URN, ID, live.inputs, live.state, new).changes


def test_a_deleted_secret_keeps_its_name_and_the_error_says_so(in_azure: ArmWorld) -> None:
    wanted = inputs(issued())
    state = created(wanted)
    resource.delete(URN, ID, wanted, state)
    resource.delete(URN, ID, wanted, state)

    assert resource.read(URN, ID, wanted, state) is None
    with pytest.raises(PluginError, match="is currently in a deleted but recoverable state"):
        created(inputs(issued()))


def test_a_refresh_shows_what_somebody_changed_and_an_update_restores_it(in_azure: ArmWorld) -> None:
    wanted = inputs(issued())
    state = created(wanted)
    untouched = resource.read(URN, ID, wanted, state)
    assert untouched is not None
    assert (untouched.inputs, untouched.state) == (wanted, state)
    tags = {**in_azure.call("GET", ID).json()["tags"], "environment": "changed"}
    in_azure.call("PATCH", ID, {"tags": tags, "properties": {"attributes": {"enabled": False, "exp": 2_000_000_000}}})

    live = resource.read(URN, ID, wanted, state)

    assert live is not None
    changes = resource.diff(URN, ID, live.inputs, live.state, checked(wanted, live.inputs)).changes
    assert set(changes) == {"enabled", "notAfter", "tags.environment"}
    restored = resource.update(URN, ID, live.inputs, live.state, wanted, preview=False)
    assert restored["version"] == state["version"]
    again = resource.read(URN, ID, wanted, restored)
    assert again is not None
    assert resource.diff(URN, ID, again.inputs, again.state, wanted).changes == {}


def test_a_version_without_its_tags_has_the_certificate_it_was_written_with(in_azure: ArmWorld) -> None:
    wanted = inputs(issued())
    state = created(wanted)
    in_azure.call("PATCH", ID, {"tags": {}})

    live = resource.read(URN, ID, wanted, state)

    assert live is not None
    names = ("thumbprint", "generation")
    assert [live.inputs[name] for name in names] == [wanted[name] for name in names]
    restored = resource.update(URN, ID, live.inputs, live.state, checked(wanted, live.inputs), preview=False)
    assert restored["version"] == state["version"], "the key is forgotten, and nothing has to be written again"
    assert in_azure.call("GET", ID).json()["tags"]["generation"] == wanted["generation"]


def test_a_reader_may_refresh_and_not_write(in_azure: ArmWorld, sign_in: SignIn) -> None:
    wanted = inputs(issued())
    state = created(wanted)
    sign_in(in_azure.principal(("Reader", VAULT)))

    assert resource.read(URN, ID, wanted, state) is not None
    with pytest.raises(PluginError, match=r"the secret was not written: .*403"):
        resource.update(URN, ID, wanted, state, inputs(issued(), "b2"), preview=False)
    with pytest.raises(PluginError, match=r"the secret was not deleted: .*403"):
        resource.delete(URN, ID, wanted, state)


def test_an_import_reads_cloud_and_tenant_from_its_id(in_azure: ArmWorld) -> None:
    wanted = inputs(issued())
    created(wanted)
    imported = resource.read(URN, f"local/{ADDRESS['tenantId']}{ID}", {}, {})
    assert imported is not None
    assert imported.id == ID
    unread = {"authorityHost", "clientId", "objectId", "objectEncoding", "provenAt"}
    assert imported.inputs == {name: entry for name, entry in wanted.items() if name not in unread}
    assert not resource.check(URN, imported.inputs, imported.inputs).failures, "the engine calls that a defect"


@pytest.mark.parametrize("id", [ID, "local", f"local/tenant{VAULT}", ""])
def test_an_import_of_anything_else_is_refused_with_the_form(in_azure: ArmWorld, id: str) -> None:
    with pytest.raises(PluginError, match="accepted: <cloud>/<tenant id>/subscriptions/"):
        resource.read(URN, id, {}, {})


@pytest.mark.parametrize("generation", ["a1.0", "", "c1", "a0"])
def test_a_generation_that_the_schedule_could_not_read_is_refused(generation: str) -> None:
    refused = resource.check(URN, None, {**inputs(issued()), "generation": generation}).failures
    assert [(failure.property, failure.reason) for failure in refused] == [
        ("generation", "found a string; accepted: slot and number, such as a2")
    ]


@pytest.mark.parametrize("name", ["cloud", "tenantId", "vaultId", "secretName", "thumbprint", "notAfter", "clientId"])
def test_a_missing_input_is_refused_by_name(name: str) -> None:
    wanted = {key: input_ for key, input_ in inputs(issued()).items() if key != name}
    assert [failure.property for failure in resource.check(URN, None, wanted).failures] == [name]
    assert checked({**wanted, name: UNKNOWN})[name] is UNKNOWN, "nobody's mistake"


@pytest.mark.parametrize("vault", [VAULT.swapcase(), VAULT.replace("/resourceGroups/", "/resourceGroups/moved-")])
def test_what_azure_takes_for_the_same_secret_is_no_change(in_azure: ArmWorld, vault: str) -> None:
    wanted = inputs(issued())
    state = created(wanted)
    same = {**wanted, "vaultId": vault, "secretName": SECRET.upper(), "clientId": CLIENT.upper()}
    assert resource.diff(URN, ID, wanted, state, same).changes == {}
    other = resource.diff(URN, ID, wanted, state, {**wanted, "vaultId": f"{VAULT}-2", "clientId": UNKNOWN}).changes
    assert {name: change.replace for name, change in other.items()} == {"vaultId": True, "clientId": False}
    renamed = resource.diff(URN, ID, wanted, state, {**wanted, "secretName": "other"}).changes
    assert renamed == {"secretName": PropertyChange("update", replace=True)}


def test_a_replacement_that_is_the_same_secret_is_not_deleted_with_the_original(in_azure: ArmWorld) -> None:
    wanted = inputs(issued())
    original = created(wanted)
    replacement = created(wanted)
    assert replacement["version"] == original["version"]
    resource.delete(URN, ID, wanted, original)
    assert value(in_azure)["client_id"] == CLIENT
