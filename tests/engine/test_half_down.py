"""A `down` that ended half-way, of a stack that still keeps the certificates of a rotation a moment ago."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.small_stack import small_stack


@pytest.mark.nightly
def test_recover_settles_a_stack_whose_schedule_lost_its_secret(tmp_path: Path) -> None:
    with small_stack(tmp_path, "hypershift") as stack:
        stack.up()
        stack.idstack("rotate", "--identity", "cloudProvider")
        secret = stack.resource("hc1-cloud-provider-credential-secret")["urn"]
        stack.pulumi("destroy", "--yes", "--skip-preview", "--target", secret, "--target-dependents")
        forgotten = stack.resource("hc1-data-plane-disk-roles-managed")["urn"]
        stack.pulumi("state", "delete", forgotten, "--yes")
        kept = stack.inventory()

        recovered = stack.idstack("recover", "--no-up")

        assert "no certificate can be planned, so that none is searched" in recovered.stdout
        assert "a certificate is needed (as the vault no longer has" in recovered.stdout
        assert "1 entered into the state" in recovered.stdout
        assert stack.resource("hc1-data-plane-disk-roles-managed")["urn"] == forgotten
        assert stack.inventory() == kept
        stack.idstack("down")
        assert not stack.state.exists()
