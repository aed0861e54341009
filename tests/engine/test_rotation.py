"""Renewals before their time on the real engine, with clients that sign in all the while."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.engine.clients import signing_in
from tests.harness import LocalStack

_PAUSE: Final = 0.3  # seconds between two sign-ins of a client, of which there are four


@pytest.fixture(autouse=True)
def trusted(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients trust the local cloud's certificate authority."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)


def test_renewals_in_a_row_fail_no_sign_in_and_one_too_soon_changes_nothing(stack: LocalStack) -> None:
    file = Path(stack.environment.mounts_dir, "clusters-hc1/probe-ingress/mnt/certs/ingress-hc1-json")
    with signing_in(stack, file, pause=_PAUSE) as clients:
        for client in clients.values():
            client.await_certificates(1)

        first = stack.idstack("rotate", "--identity", "ingress").stdout
        for client in clients.values():
            client.await_certificates(2)
        before = stack.inventory()
        refused = stack.idstack("rotate", "--identity", "ingress", check=False)
        after = stack.inventory()
        second = stack.idstack("rotate", "--identity", "ingress", "--force").stdout
        for client in clients.values():
            client.await_certificates(3)

    assert "+ 3 created" in first, "the second slot's certificate, registration and gate"
    assert "~ 2 updated" in first, "schedule and secret"
    assert refused.returncode == 1
    assert "it is too soon" in refused.stderr
    assert "hc1/ingress: ingress-operator in ingress-operator, until " in refused.stderr
    assert after == before
    assert "~ 3 updated" in second, "schedule, gate and secret"
    assert "+-2 replaced" in second, "certificate and registration"
    for client in clients.values():
        assert client.failures == []
        assert len(client.sign_ins) == 3
    assert stack.preview() == {}, "a run that asks for nothing changes nothing"
