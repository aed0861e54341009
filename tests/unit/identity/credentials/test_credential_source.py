"""The probe finds its credential: a file where the consumer looks, or a service account's token."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest

from identity.credentials import rfc3339
from identity.credentials.probe.credential_source import CredentialNotNamedError, CredentialSource
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.prober import Prober
from identity.credentials.probe.report import ProofRequest
from tests.unit.identity.credentials.world import CLIENT, TENANT, CsiMount, Entra, proof

START = datetime(2026, 11, 25, 12, tzinfo=UTC)
UNKNOWN_KEY = "AADSTS7000272: The issuer does not publish the key."


def token(begins: datetime = START) -> str:
    return jwt.encode({"nbf": begins, "exp": begins + timedelta(hours=1)}, "k" * 32, algorithm="HS256")


class Trusting(Entra):
    """Entra ID that trusts every assertion."""

    def grant(self, form: dict[str, str], token_endpoint: str) -> dict[str, Any]:
        if self.refusals:
            return super().grant(form, token_endpoint)
        self.assertions.append(form)
        return {"token_type": "Bearer", "expires_in": 3600, "access_token": "token-1"}


@pytest.fixture
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Entra ID, and the variables of a pod."""
    (tmp_path / "entra").mkdir()
    with Trusting(tmp_path / "entra") as world:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(world.ca_file))
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", world.url)
        monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
        monkeypatch.setenv("AZURE_CLIENT_ID", CLIENT)
        yield world


def prober(mount: CsiMount, entra: Entra, metrics: Metrics | None = None) -> Prober:
    source = CredentialSource.parse(f"token:{mount.path}", None)
    return Prober(source, ProofRequest.parse(proof(entra)), metrics or Metrics())


def test_a_token_is_exchanged_and_opens_the_proof_call(mount: CsiMount, trusting: Trusting) -> None:
    mount.write(token())
    proving = prober(mount, trusting)

    assert proving.prove().is_ready
    report = proving.to_json()
    dates = (report["notBefore"], report["notAfter"])
    assert dates == (rfc3339.render(START), rfc3339.render(START + timedelta(hours=1)))
    assert (report["clientId"], report["thumbprint"]) == (CLIENT, None)
    [form] = trusting.assertions
    assert (form["client_id"], form["client_assertion"]) == (CLIENT, token())
    assert [call.path for call in trusting.calls] == ["/subscriptions/s/disks?api-version=1"]


def test_a_refused_token_is_reported_with_entras_code_and_tried_again(mount: CsiMount, trusting: Trusting) -> None:
    mount.write(token())
    trusting.refusals.append(f"{UNKNOWN_KEY} Trace ID: 1")
    proving = prober(mount, trusting)

    assert [proving.prove().error for _ in range(2)] == [UNKNOWN_KEY, None]


def test_a_renewed_token_is_used_and_counted(mount: CsiMount, trusting: Trusting) -> None:
    mount.write(token())
    metrics = Metrics()
    proving = prober(mount, trusting, metrics)
    proving.prove()
    proving.prove()
    renewed = token(START + timedelta(minutes=48))
    mount.write(renewed)

    assert proving.prove().is_ready
    assert [form["client_assertion"] for form in trusting.assertions] == [token(), token(), renewed]
    assert proving.to_json()["reloads"] == 1
    assert "idstack_credential_reloads_total 1.0" in metrics.render().decode()


@pytest.mark.parametrize("content", [None, "x", "a.b.c", "a.e30.c", "a.W10.c"])
def test_a_file_without_a_token_is_reported(mount: CsiMount, trusting: Trusting, content: str | None) -> None:
    if content is not None:
        mount.write(content)

    error = prober(mount, trusting).prove().error or ""

    assert error.startswith(f"token file {mount.path}: found no ")


def test_an_unset_variable_of_the_exchange_is_reported(
    mount: CsiMount, trusting: Trusting, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount.write(token())
    monkeypatch.delenv("AZURE_CLIENT_ID")

    assert prober(mount, trusting).prove().error == "variable AZURE_CLIENT_ID: found none; set it on the container"


@pytest.mark.parametrize(
    ("named", "root", "located"),
    [
        ("file:/mnt/certs/x", None, "/mnt/certs/x"),
        ("file:/mnt/certs/x", Path("/pods/a"), "/pods/a/mnt/certs/x"),
        ("file:/mnt/certs/x", Path("/mnt"), "/mnt/certs/x"),
        ("file:x/y", Path("/pods/a"), "x/y"),
        ("env:ARO_HCP_CLIENT_CREDENTIALS_PATH", Path("/pods/a"), "/pods/a/mnt/certs/x"),
    ],
)
def test_the_mount_root_is_put_before_a_path_outside_of_it(
    monkeypatch: pytest.MonkeyPatch, named: str, root: Path | None, located: str
) -> None:
    monkeypatch.setenv("ARO_HCP_CLIENT_CREDENTIALS_PATH", "/mnt/certs/x")
    assert CredentialSource.parse(named, root).path() == Path(located)


def test_an_unset_variable_is_reported_by_name() -> None:
    with pytest.raises(CredentialNotNamedError, match="variable IDSTACK_TEST_UNSET: found none"):
        CredentialSource.parse("env:IDSTACK_TEST_UNSET", None).path()


def test_a_cloud_config_below_the_mount_root_names_a_file_below_it(tmp_path: Path) -> None:
    config = tmp_path / "etc" / "cloud" / "cloud.conf"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"aadMSIDataPlaneIdentityPath": "/mnt/certs/x"}))
    source = CredentialSource.parse("cloud-config:/etc/cloud/cloud.conf", tmp_path)
    assert source.path() == tmp_path / "mnt" / "certs" / "x"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, "found no readable document (No such file or directory)"),
        ("{", 'found no JSON object with "aadMSIDataPlaneIdentityPath"'),
        ("[]", 'found no JSON object with "aadMSIDataPlaneIdentityPath"'),
        ("{}", 'found no JSON object with "aadMSIDataPlaneIdentityPath"'),
        ('{"aadMSIDataPlaneIdentityPath": ""}', 'found an empty "aadMSIDataPlaneIdentityPath"'),
    ],
)
def test_a_cloud_config_that_names_none_is_reported(tmp_path: Path, content: str | None, found: str) -> None:
    config = tmp_path / "cloud.conf"
    if content is not None:
        config.write_text(content)
    with pytest.raises(CredentialNotNamedError, match=re.escape(f"cloud config {config}: {found}")):
        CredentialSource.parse(f"cloud-config:{config}", None).path()


@pytest.mark.parametrize("text", ["/mnt/certs/x", "file:", "vault:x", ""])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="accepted: file:PATH, env:NAME, cloud-config:PATH or token:PATH"):
        CredentialSource.parse(text, None)
