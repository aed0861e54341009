"""The probe as a pod runs it: a process with endpoints, logs and an end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from identity.credentials.certificate import IssuedCertificate
from tests.unit.identity.credentials.world import CsiMount, Entra, document, proof

PROBE = (sys.executable, "-m", "identity.credentials.probe")
ROOT = Path(__file__).parents[4]
PATIENCE = 120  # seconds until a missing event is a failure; no test waits for it otherwise


class Process:
    """The probe as a pod runs it."""

    def __init__(self, *arguments: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [*PROBE, *arguments, "--listen", "127.0.0.1:0"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []
        self.url = f"http://{self.until('listening')['address']}"

    def until(self, message: str) -> dict[str, Any]:
        """The next log line whose message matches."""
        for line in self.stderr:
            self.lines.append(json.loads(line))
            if re.fullmatch(message, self.lines[-1]["message"], re.DOTALL):
                return self.lines[-1]
        raise AssertionError(f"ended without {message!r}: {self.lines}")

    @property
    def stderr(self) -> IO[str]:
        assert self.process.stderr is not None
        return self.process.stderr

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def samples(self) -> dict[str, float]:
        """What `/metrics` shows, by name with labels."""
        _, metrics = self.get("/metrics")
        pairs = (line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}


@pytest.fixture
def process(known: Entra, mount: CsiMount, tmp_path: Path) -> Iterator[Process]:
    """The probe in a process whose mount namespace is pretended, reading the path from its environment."""
    started = Process(
        *("--credential", "env:CREDENTIAL", "--proof", proof(known), "--interval", "3600"),
        environment={"CREDENTIAL": f"/mnt/certs/{mount.path.name}", "PROBE_MOUNT_ROOT": str(tmp_path)},
    )
    yield started
    started.process.kill()
    started.process.wait()
    started.stderr.close()


def test_it_serves_health_readiness_and_metrics_and_ends_on_sigterm(
    process: Process, known: Entra, mount: CsiMount, issued: IssuedCertificate
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
    process: Process, known: Entra, mount: CsiMount, issued: IssuedCertificate, following: IssuedCertificate
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


def test_an_address_that_is_taken_is_reported(process: Process, known: Entra) -> None:
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
