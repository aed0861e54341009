"""Renewals before their time on the real engine, with clients that sign in all the while."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.clients import await_refusal, bare_sign_in, read, signing_in
from tests.harness import LocalStack


@pytest.fixture(autouse=True)
def trusted(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients trust the local cloud's certificate authority."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)


def _file(stack: LocalStack, workload: str, secret: str) -> Path:
    return Path(stack.environment.mounts_dir, "clusters-hc1", workload, "mnt/certs", secret)


def test_three_renewals_in_a_row_without_one_failed_sign_in(stack: LocalStack) -> None:
    with signing_in(stack, _file(stack, "probe-ingress", "ingress-hc1-json")) as clients:
        for client in clients.values():
            client.await_certificates(1)
        for number, arguments in ((2, ()), (3, ("--force",)), (4, ("--force",))):
            printed = stack.idstack("rotate", "--identity", "ingress", *arguments).stdout
            if number == 2:
                assert "+ 3 created" in printed, "the second slot's certificate, registration and gate"
                assert "~ 2 updated" in printed, "schedule and secret"
            else:
                assert "~ 3 updated" in printed, "schedule, gate and secret"
                assert "+-2 replaced" in printed, "certificate and registration"
            for client in clients.values():
                client.await_certificates(number)

    for client in clients.values():
        assert client.failures == []
        assert len(client.sign_ins) == 4
    assert stack.preview() == {}, "a run that asks for nothing changes nothing"


def test_a_renewal_too_soon_after_another_is_refused_and_changes_nothing(stack: LocalStack) -> None:
    stack.idstack("rotate", "--identity", "file")
    before = stack.inventory()

    refused = stack.idstack("rotate", "--identity", "file", check=False)

    assert refused.returncode == 1
    assert "it is too soon" in refused.stderr
    assert "hc1/file: csi-driver in azure-file-csi-driver-controller, until " in refused.stderr
    assert stack.inventory() == before


def test_a_revoked_key_no_longer_signs_in_and_the_clients_use_the_new_one(stack: LocalStack) -> None:
    file = _file(stack, "probe-disk-csi", "azure-disk-hc1-json")
    leaked = read(file)
    bare_sign_in(leaked)

    with signing_in(stack, file) as clients:
        for client in clients.values():
            client.await_certificates(1)
        stack.idstack("rotate", "--identity", "disk", "--revoke")
        for client in clients.values():
            client.await_certificates(2)

    await_refusal(leaked)
    bare_sign_in(read(file))
    assert stack.preview() == {}
    slots = {each["urn"].rpartition("-")[2] for each in stack.resources() if "-disk-entra-certificate-" in each["urn"]}
    assert slots == {"b"}, "the leaked certificate has left the state"
