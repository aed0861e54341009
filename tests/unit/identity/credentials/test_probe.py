"""The probe finds the credential as the consumer does, proves it, and tells what it found."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pytest

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.probe.__main__ import main
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.prober import Prober
from identity.credentials.probe.proof import ProofCall
from identity.credentials.probe.source import Source
from tests.unit.identity.credentials.world import ARM_SCOPE, CLIENT, CsiMount, Entra, certificate, document

PROBE = (sys.executable, "-m", "identity.credentials.probe")
ROOT = Path(__file__).parents[4]
PATIENCE = 30  # seconds until a missing event is a failure; no test waits for it otherwise


def proof(entra: Entra, **changes: object) -> str:
    call = {"method": "GET", "url": f"{entra.url}/subscriptions/s/disks?api-version=1", "scope": ARM_SCOPE, **changes}
    return json.dumps(call)


@pytest.fixture
def known(entra: Entra, issued: IssuedCertificate, mount: CsiMount) -> Entra:
    """An Entra that knows the mounted credential."""
    entra.registered.append(issued.certificate_pem)
    mount.write(document(issued, entra.url))
    return entra


def once(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report of `--once`."""
    code = main([*arguments, "--once"])
    return code, json.loads(capsys.readouterr().out)


class TestOnce:
    def test_a_good_credential_is_ready(
        self, known: Entra, mount: CsiMount, issued: IssuedCertificate, capsys: pytest.CaptureFixture[str]
    ) -> None:
        action = "Microsoft.Compute/disks/read"
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", proof(known, action=action))
        assert code == 0
        assert datetime.fromisoformat(report["signIn"].pop("at")).tzinfo is not None
        assert datetime.fromisoformat(report["proof"].pop("at")).tzinfo is not None
        assert report == {
            "ready": True,
            "credentialFile": str(mount.path),
            "notBefore": rfc3339.render(issued.not_before),
            "notAfter": rfc3339.render(issued.not_after),
            "thumbprint": issued.thumbprint,
            "clientId": CLIENT,
            "signIn": {"ok": True, "error": None},
            "proof": {"ok": True, "status": 200, "action": action, "error": None},
            "reloads": 0,
        }
        assert [(call.method, call.path) for call in known.calls] == [("GET", "/subscriptions/s/disks?api-version=1")]

    def test_headers_and_body_are_sent_so_a_vault_behind_a_loopback_address_is_named_by_host(
        self, known: Entra, mount: CsiMount, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call = proof(
            known,
            method="POST",
            url=f"{known.url}/keys/hc1-etcd/0123/encrypt?api-version=2025-07-01",
            headers={"Host": "kv-etcd-local.vault.azure.net"},
            body={"alg": "RSA-OAEP-256", "value": "dGV4dA"},
        )
        code, _ = once(capsys, "--credential", f"file:{mount.path}", "--proof", call)
        assert code == 0
        (seen,) = known.calls
        assert (seen.method, seen.host) == ("POST", "kv-etcd-local.vault.azure.net")
        assert json.loads(seen.body) == {"alg": "RSA-OAEP-256", "value": "dGV4dA"}

    def test_a_call_the_role_does_not_grant_is_told_with_status_and_code(
        self, known: Entra, mount: CsiMount, capsys: pytest.CaptureFixture[str]
    ) -> None:
        known.forbidden.add("/subscriptions/s/disks?api-version=1")
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", proof(known))
        assert (code, report["ready"], report["signIn"]["ok"]) == (1, False, True)
        assert report["proof"]["status"] == 403
        assert report["proof"]["error"] == "403 AuthorizationFailed: no permission over scope"

    def test_a_service_that_does_not_answer_is_told(
        self, known: Entra, mount: CsiMount, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call = proof(known, url="https://127.0.0.1:1/x")
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", call)
        assert (code, report["proof"]["status"]) == (1, None)
        assert report["proof"]["error"].startswith("no answer from https://127.0.0.1:1/x: ")

    def test_a_refused_sign_in_is_told_with_entras_code(
        self, entra: Entra, mount: CsiMount, issued: IssuedCertificate, capsys: pytest.CaptureFixture[str]
    ) -> None:
        mount.write(document(issued, entra.url))
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", proof(entra))
        assert (code, report["ready"], report["thumbprint"]) == (1, False, issued.thumbprint)
        assert report["signIn"]["error"] == "AADSTS700027: The certificate is not registered on application."
        assert report["proof"] == {"ok": False, "status": None, "action": None, "error": None, "at": None}

    def test_an_absent_file_is_told(self, entra: Entra, mount: CsiMount, capsys: pytest.CaptureFixture[str]) -> None:
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", proof(entra))
        assert (code, report["thumbprint"]) == (1, None)
        assert report["signIn"]["error"].startswith(f"credential file {mount.path}: found no readable file")

    def test_an_unset_variable_is_told(self, entra: Entra, capsys: pytest.CaptureFixture[str]) -> None:
        code, report = once(capsys, "--credential", "env:IDSTACK_TEST_UNSET", "--proof", proof(entra))
        assert (code, report["credentialFile"]) == (1, None)
        assert report["signIn"]["error"].startswith("variable IDSTACK_TEST_UNSET: found none")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--credential", "x", "--proof", "{}"], "--credential: found 'x'; accepted: file:PATH"),
            (["--credential", "file:x", "--proof", "{"], "--proof: "),
            (["--credential", "file:x", "--proof", "[]"], '--proof: accepted: {"method", "url", "scope"}'),
            (
                ["--credential", "file:x", "--proof", '{"method": "GET"}'],
                '--proof: accepted: {"method", "url", "scope"}',
            ),
            (
                ["--credential", "file:x", "--proof", '{"method": "GET", "url": "http://x/", "scope": "s"}'],
                "--proof: url: found 'http://x/'; accepted: https only, for the request carries a token",
            ),
        ],
    )
    def test_wrong_arguments_exit_with_2(
        self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert message in capsys.readouterr().err


class TestLoop:
    def test_it_retries_until_ready_and_proves_again_at_once_after_a_reload(
        self, entra: Entra, mount: CsiMount, issued: IssuedCertificate
    ) -> None:
        prober = Recorder(Source.parse(f"file:{mount.path}", None), ProofCall.parse(proof(entra)), Metrics())
        loop = threading.Thread(target=prober.run, args=(timedelta(hours=1),))
        loop.start()
        try:
            assert "found no readable file" in prober.next()["signIn"]["error"]
            mount.write(document(issued, entra.url))
            prober.until(lambda report: str(report["signIn"]["error"]).startswith("AADSTS700027"))
            entra.registered.append(issued.certificate_pem)
            assert prober.until(lambda report: report["ready"])["reloads"] == 0
            following = certificate(age=timedelta(0))
            entra.registered.append(following.certificate_pem)
            mount.write(document(following, entra.url))
            report = prober.next()
            assert (report["ready"], report["thumbprint"], report["reloads"]) == (True, following.thumbprint, 1)
        finally:
            prober.stop()
            loop.join(PATIENCE)
            prober.close()
        assert not loop.is_alive()

    def test_every_round_signs_in_anew_so_a_revoked_certificate_is_seen(self, known: Entra, mount: CsiMount) -> None:
        prober = Prober(Source.parse(f"file:{mount.path}", None), ProofCall.parse(proof(known)), Metrics())
        try:
            assert prober.prove().is_ready
            known.registered.clear()
            assert not prober.prove().is_ready
        finally:
            prober.close()


class Recorder(Prober):
    """A prober whose reports can be waited for."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._reports: queue.Queue[dict[str, Any]] = queue.Queue()

    def prove(self) -> Any:
        report = super().prove()
        self._reports.put(self.to_json())
        return report

    def next(self) -> dict[str, Any]:
        return self._reports.get(timeout=PATIENCE)

    def until(self, wanted: Any) -> dict[str, Any]:
        while not wanted(report := self.next()):
            pass
        return report


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
        """The next log line with that message."""
        for line in self.stderr:
            self.lines.append(json.loads(line))
            if self.lines[-1]["message"] == message:
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


class TestProcess:
    def test_it_serves_health_readiness_and_metrics_logs_json_and_ends_on_sigterm(
        self, process: Process, known: Entra, mount: CsiMount, issued: IssuedCertificate
    ) -> None:
        assert process.until("ready")["thumbprint"] == issued.thumbprint
        status, text = process.get("/readyz")
        assert (status, json.loads(text)["credentialFile"]) == (200, str(mount.path))
        assert process.get("/healthz") == (200, '{"alive":true}')

        following = certificate(age=timedelta(0))
        mount.write(document(following, known.url))
        refused = process.until("not ready")
        assert refused["error"].startswith("AADSTS700027")
        status, report = process.get("/readyz")
        assert (status, json.loads(report)["thumbprint"], json.loads(report)["reloads"]) == (
            503,
            following.thumbprint,
            1,
        )

        _, metrics = process.get("/metrics")
        samples = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
        assert samples["idstack_ready"] == "0.0"
        assert samples["idstack_credential_reloads_total"] == "1.0"
        assert samples['idstack_credential_loads_total{result="loaded"}'] == "2.0"
        assert float(samples["idstack_credential_not_after_seconds"]) == following.not_after.timestamp()
        assert samples['idstack_sign_ins_total{result="ok"}'] == "1.0"
        assert float(samples['idstack_sign_ins_total{result="failed"}']) >= 1
        assert samples['idstack_proof_calls_total{status="200"}'] == "1.0"
        assert float(samples["idstack_last_sign_in_seconds"]) > issued.not_before.timestamp()

        process.process.send_signal(signal.SIGTERM)
        process.until("ended")
        assert process.process.wait(PATIENCE) == 0
        logged = json.dumps(process.lines)
        assert "token-" not in logged
        for own in (issued, following):
            assert not any(line in logged for line in own.private_key_pem.splitlines()[1:-1])

    def test_an_address_that_is_taken_is_told(self, process: Process, known: Entra) -> None:
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
        assert f"can not listen on {taken} (Address already in use" in json.loads(second.stderr)["message"]
