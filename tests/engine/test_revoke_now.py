"""A leaked key that is taken out of use although no other certificate can be delivered."""

from __future__ import annotations

from pathlib import Path

import pytest
from azure.core.exceptions import ClientAuthenticationError

from tests.engine.clients import bare_sign_in, read
from tests.engine.held_faults import gate_refuses, held
from tests.harness import LocalStack


def test_a_leaked_key_is_out_although_the_new_gate_fails_and_stays_out(
    small: LocalStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", small.environment.ca_file)
    file = next(Path(small.environment.mounts_dir, "clusters-hc1").glob("*/mnt/certs/cloud-provider-hc1-json"))
    leaked = read(file)
    bare_sign_in(leaked)

    with held(small, gate_refuses(small, "hc1-cloud-provider")):
        failed = small.idstack("rotate", "--identity", "cloudProvider", "--revoke", "--now", check=False)

    assert failed.returncode == 1, failed.stdout
    assert "The leaked certificates of hc1/cloudProvider are out of use and stay so" in failed.stderr
    with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
        bare_sign_in(leaked)

    small.up("--refresh")

    with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
        bare_sign_in(leaked)
    assert small.idstack("up").returncode == 0, "every probe signs in"
    assert small.preview() == {}
