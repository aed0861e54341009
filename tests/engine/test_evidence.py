"""State, vault, tags, dates and Entra ID are moved apart: what is in use goes on, and what was taken out stays out."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.keyvault.secrets import KeyVaultSecret

from tests.engine.clients import bare_sign_in, read
from tests.engine.out_of_band import OutOfBand
from tests.engine.rotations import Rotating, await_certificate, pod_signing_in

pytestmark = pytest.mark.nightly

_SECRET: Final = "cloud-provider-hc1-json"


def assert_refused(document: Any) -> None:
    """Entra ID refuses the document's certificate each time, by all of its replicas."""
    for _ in range(6):
        with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
            bare_sign_in(document)


def current(rotating: Rotating) -> KeyVaultSecret:
    """The secret as the vault has it."""
    with OutOfBand(rotating.stack).secrets() as secrets:
        return secrets.get_secret(_SECRET)


def test_a_certificate_that_was_taken_out_by_hand_stays_out(rotating: Rotating) -> None:
    stack, someone = rotating.stack, OutOfBand(rotating.stack)
    leaked, before = read(rotating.file), rotating.thumbprint
    with pod_signing_in(rotating) as client:
        rotating.renew()
        client.await_certificate(rotating.thumbprint)
        application = f"/applications(appId='{rotating.client_id}')"
        found = someone.graph("GET", f"{application}?$select=keyCredentials")["keyCredentials"]
        [last] = [key for key in found if key["startDateTime"] == max(key["startDateTime"] for key in found)]
        someone.graph("PATCH", application, {"keyCredentials": [last]})

        noted = stack.idstack("recover", "--no-up")
        stack.idstack("renew")

        assert_refused(leaked)
    assert f"hc1-cloud-provider-entra-certificate-a: {before}" in noted.stdout
    assert stack.preview() == {}


def test_a_delivered_certificate_comes_back_by_a_persons_word_alone(rotating: Rotating) -> None:
    stack, used, before = rotating.stack, read(rotating.file), rotating.thumbprint
    ask = ("--identity", "cloudProvider")

    def taken_out() -> str:
        application = f"/applications(appId='{rotating.client_id}')"
        OutOfBand(stack).graph("PATCH", application, {"keyCredentials": []})
        assert f": {before}\n" in stack.idstack("recover", "--no-up").stdout
        refused = stack.idstack("up", check=False)
        assert refused.returncode == 1
        assert_refused(used)
        return f"{refused.stdout}{refused.stderr}"

    reason = " ".join(taken_out().split())
    assert "out of Entra ID. If its key has leaked, run `.venv/bin/idstack rotate --revoke --now" in reason
    stack.idstack("rotate", "--register", *ask)
    bare_sign_in(used)
    assert rotating.thumbprint == before

    taken_out()
    stack.idstack("rotate", "--revoke", "--now", *ask)
    assert_refused(used)
    assert rotating.thumbprint != before
    bare_sign_in(json.loads(current(rotating).value or ""))
    assert stack.preview() == {}


def test_a_state_without_schedule_gate_and_secret_goes_on_with_what_pods_use(rotating: Rotating) -> None:
    rotating.renew()
    await_certificate(rotating)
    rotating.pass_a_day()
    stack, before = rotating.stack, rotating.thumbprint
    with pod_signing_in(rotating):
        for part in ("schedule", "gate-a", "gate-b"):
            for urn in (resource["urn"] for resource in stack.resources()):
                if urn.endswith(f"::hc1-cloud-provider-entra-{part}"):
                    stack.pulumi("state", "delete", urn, "--yes", "--target-dependents")
        assert not any(resource["urn"].endswith("-cloud-provider-credential-secret") for resource in stack.resources())

        stack.up()

        assert rotating.thumbprint == before
    stack.up()
    assert rotating.thumbprint != before, "the next one comes when it is due"
    assert stack.preview() == {}


def test_one_recover_adopts_what_a_lost_registration_and_principal_had(rotating: Rotating) -> None:
    stack, before, registered = rotating.stack, rotating.thumbprint, rotating.registered()
    known = {resource["urn"] for resource in stack.resources()}
    with pod_signing_in(rotating):
        for part in ("registration-a", "registration-b", "principal"):
            for urn in [urn for urn in known if urn.endswith(f"::hc1-cloud-provider-entra-{part}")]:
                stack.pulumi("state", "delete", urn, "--yes", "--target-dependents")

        stack.idstack("recover", "--no-up")
        assert '"plaintext"' not in stack.checkpoint.read_text(encoding="utf-8")
        planned = stack.preview()
        stack.up()

    assert {*planned.values()} == {"refresh"}
    assert {resource["urn"] for resource in stack.resources()} == known
    assert (rotating.thumbprint, rotating.registered()) == (before, registered)
    assert stack.preview() == {}


def test_a_leaked_key_goes_although_the_state_lost_what_delivered_it(rotating: Rotating) -> None:
    stack, leaked = rotating.stack, read(rotating.file)
    for urn in (resource["urn"] for resource in stack.resources()):
        if "::hc1-cloud-provider-entra-registration-" in urn:
            stack.pulumi("state", "delete", urn, "--yes", "--target-dependents")

    said = stack.idstack("rotate", "--revoke", "--now", "--identity", "cloudProvider", check=False)

    assert "the state has no secret of hc1/cloudProvider: run `.venv/bin/idstack recover" in " ".join(
        said.stderr.split()
    )
    assert_refused(leaked)
    stack.idstack("recover")
    bare_sign_in(json.loads(current(rotating).value or ""))
    assert_refused(leaked)
    assert stack.preview() == {}
