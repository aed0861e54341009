"""The probe as a pod runs it: a process with endpoints, logs and an end."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from identity.credentials.certificate import IssuedCertificate
from tests.unit.identity.credentials.probe_process import PATIENCE, PROBE, ROOT, ProbeProcess, probing
from tests.unit.identity.credentials.world import CsiMount, Entra, document, proof


@pytest.fixture
def process(known: Entra, mount: CsiMount, tmp_path: Path) -> Iterator[ProbeProcess]:
    """The probe in a process whose mount namespace is pretended, reading the path from its environment."""
    environment = {"CREDENTIAL": f"/mnt/certs/{mount.path.name}", "PROBE_MOUNT_ROOT": str(tmp_path)}
    arguments = ("--credential", "env:CREDENTIAL", "--proof", proof(known), "--interval", "3600")
    with probing(*arguments, environment=environment) as started:
        yield started


def test_it_serves_health_readiness_and_metrics_and_ends_on_sigterm(
    process: ProbeProcess, known: Entra, mount: CsiMount, issued: IssuedCertificate
) -> None:
    assert process.until("ready")["thumbprint"] == issued.thumbprint
    status, report = process.get("/readyz")
    assert (status, json.loads(report)["credentialFile"]) == (200, str(mount.path))
    assert process.get("/healthz") == (200, '{"alive":true,"reason":null}')

    samples = process.samples()
    assert samples['idstack_credential_loads_total{result="accepted"}'] == 1
    assert samples['idstack_credential_loads_total{result="refused"}'] == 0
    assert samples["idstack_credential_reloads_total"] == 0
    assert samples["idstack_credential_pending"] == 0
    assert samples["idstack_credential_not_before_seconds"] == issued.not_before.timestamp()
    assert samples["idstack_credential_not_after_seconds"] == issued.not_after.timestamp()
    assert samples['idstack_sign_ins_total{result="ok"}'] == 1
    assert samples['idstack_sign_ins_total{result="failed"}'] == 0
    assert samples["idstack_last_sign_in_seconds"] > issued.not_before.timestamp()
    assert samples['idstack_proof_calls_total{status="200"}'] == 1
    assert samples["idstack_ready"] == 1

    process.process.send_signal(signal.SIGTERM)
    process.until("ended")
    assert process.process.wait(PATIENCE) == 0


def test_it_reports_a_refused_file_a_pending_credential_and_its_swap(
    process: ProbeProcess, known: Entra, mount: CsiMount, issued: IssuedCertificate, following: IssuedCertificate
) -> None:
    process.until("ready")
    mount.write("{")
    assert process.until("credential file .* refused, .*")["level"] == "warning"
    mount.write(document(following, known.url))
    waits = process.until("credential .* gets no token yet, .*: AADSTS700027: .*")
    assert (waits["level"], waits["event"], waits["thumbprint"]) == ("warning", "unproven", following.thumbprint)
    status, report = process.get("/readyz")
    assert (status, json.loads(report)["thumbprint"], json.loads(report)["reloads"]) == (200, issued.thumbprint, 0)
    samples = process.samples()
    assert samples['idstack_credential_loads_total{result="refused"}'] == 1
    assert samples["idstack_credential_pending"] == 1
    assert samples["idstack_credential_pending_sign_ins_failed_total"] >= 1
    assert samples["idstack_credential_not_after_seconds"] == issued.not_after.timestamp()

    known.forbidden.add("/subscriptions/s/disks?api-version=1")  # so that the round after the swap is logged
    known.registered.append(following.certificate_pem)
    assert process.until("credential .* is served")["thumbprint"] == following.thumbprint
    assert process.until("not ready")["error"].startswith("403 AuthorizationFailed")
    status, report = process.get("/readyz")
    assert (status, json.loads(report)["thumbprint"], json.loads(report)["reloads"]) == (503, following.thumbprint, 1)
    samples = process.samples()
    assert samples["idstack_credential_pending"] == 0
    assert samples["idstack_credential_reloads_total"] == 1
    assert samples['idstack_credential_loads_total{result="accepted"}'] == 2
    assert samples["idstack_credential_not_after_seconds"] == following.not_after.timestamp()
    assert samples['idstack_proof_calls_total{status="403"}'] >= 1
    assert samples["idstack_ready"] == 0

    logged = json.dumps(process.lines)
    assert "token-" not in logged
    for own in (issued, following):
        assert not any(line in logged for line in own.private_key_pem.splitlines()[1:-1])


def test_an_address_that_is_taken_is_reported(process: ProbeProcess, known: Entra) -> None:
    taken = process.url.removeprefix("http://")
    second = subprocess.run(
        [*PROBE, "--credential", "file:x", "--proof", proof(known), "--listen", taken],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert second.returncode == 1
    assert f"cannot listen on {taken} (Address already in use" in json.loads(second.stderr)["message"]
