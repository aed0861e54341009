"""`idstack renew`, as scheduled runs call it: what is due is renewed, and a change that waits goes on waiting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from identity.credentials import rfc3339
from tests.engine.changing import FAST, with_applications
from tests.harness import LocalStack, running_stack


def _thumbprints(stack: LocalStack) -> dict[str, str]:
    return {name: row["thumbprint"] for name, row in stack.control_plane.items()}


def test_a_scheduled_renewal_renews_what_is_due_and_brings_up_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_stack(tmp_path) as stack:
        [cluster] = stack.configuration("hostedClusters")
        two = with_applications(cluster, "nodePoolManagement", "disk")
        without_registry = {**two, "identities": {**two["identities"], "imageRegistry": {"enabled": False}}}
        stack.configure(hostedClusters=[two], credentials=FAST)
        with stack.configured(hostedClusters=[without_registry], tags={"environment": "local", "team": "old"}):
            monkeypatch.setenv("IDSTACK_CLOCK", rfc3339.render(datetime.now(UTC) - timedelta(days=46)))
            stack.up()
            monkeypatch.delenv("IDSTACK_CLOCK")
        before = _thumbprints(stack)

        # The command takes the configuration that waits, with one more identity and other tags. It ends with the state
        # of all of them, of which one cannot sign in, as it is not there yet.
        done = stack.idstack("renew", check=False)

        after = _thumbprints(stack)
        waiting = stack.preview()
    assert "these identities cannot sign in: imageRegistry\n" in done.stderr, done.stdout
    assert {name for name in before if before[name] != after[name]} == {"nodePoolManagement", "disk"}, "what is due"
    assert waiting["hc1-image-registry-credential-secret"] == "create"
    assert waiting["vault-vault"] == "update"
    assert not [name for name in waiting if "schedule" in name], "nothing is due any more"
