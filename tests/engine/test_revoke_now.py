"""A leaked key that is taken out of use although no other certificate can be delivered, or Graph shows an old list."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from azure.core.exceptions import ClientAuthenticationError

from localcloud.testing.faults import HeldLag
from tests.engine.clients import await_refusal, bare_sign_in, read, secrets_of
from tests.engine.held_faults import gate_refuses, held
from tests.harness import LocalStack

pytestmark = pytest.mark.slow


@pytest.fixture
def file(small: LocalStack, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The credential in a pod; clients in this process trust the local cloud."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", small.environment.ca_file)
    return next(Path(small.environment.mounts_dir, "clusters-hc1").glob("*/mnt/certs/cloud-provider-hc1-json"))


def test_a_revocation_that_reads_an_old_list_keeps_the_new_certificate(small: LocalStack, file: Path) -> None:
    leaked = read(file)
    # The schedule asks for the application by its client id. The first answers are of before the new certificate.
    old = HeldLag("graph", ("GET",), "appId=", since=datetime.now(UTC), count=4)
    # azuread asks for it by its object id, until it has seen it five times in a row.
    some = HeldLag("graph", ("GET",), "/applications/", since=datetime.now(UTC), count=4)

    with held(small, old, some):
        small.idstack("rotate", "--identity", "cloudProvider", "--revoke")

    await_refusal(leaked)
    delivered = small.control_plane["cloudProvider"]["thumbprint"]
    with secrets_of(small) as vault:
        assert bare_sign_in(json.loads(vault.get_secret(file.name).value or "")) == delivered
    assert small.preview() == {}


def test_a_leaked_key_is_out_although_the_new_gate_fails_and_stays_out(small: LocalStack, file: Path) -> None:
    leaked = read(file)
    bare_sign_in(leaked)

    with held(small, gate_refuses(small, "hc1-cloud-provider")):
        failed = small.idstack("rotate", "--identity", "cloudProvider", "--revoke", "--now", check=False)

    assert failed.returncode == 1, failed.stdout
    assert "The leaked certificates of hc1/cloudProvider are withdrawn" in failed.stderr
    with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
        bare_sign_in(leaked)

    small.up("--refresh")

    with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
        bare_sign_in(leaked)
    assert small.idstack("up").returncode == 0, "every probe signs in"
    assert small.preview() == {}
