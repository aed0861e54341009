"""The probe finds the credential as the consumer does, proves it, and reports what it found."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.probe.__main__ import main
from identity.credentials.probe.metrics import Metrics
from identity.credentials.probe.prober import Prober
from tests.unit import cases
from tests.unit.identity.credentials.watching import PATIENCE, Scene, WaitableProber
from tests.unit.identity.credentials.world import CLIENT, CsiMount, Entra, document, proof

WRONG_ARGUMENTS = cases.read(Path(__file__).with_name("wrong-arguments.yaml"), {})


def once(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report of `--once`."""
    code = main([*arguments, "--once"])
    return code, json.loads(capsys.readouterr().out)


class TestOnce:
    def test_a_good_credential_is_ready(self, known: Entra, capsys: pytest.CaptureFixture[str], scene: Scene) -> None:
        action = "Microsoft.Compute/disks/read"
        code, report = once(capsys, "--credential", f"file:{scene.mount.path}", "--proof", proof(known, action=action))
        assert code == 0
        assert datetime.fromisoformat(report["signIn"].pop("at")).tzinfo is not None
        assert datetime.fromisoformat(report["proof"].pop("at")).tzinfo is not None
        assert report == {
            "ready": True,
            "credentialFile": str(scene.mount.path),
            "notBefore": rfc3339.render(scene.issued.not_before),
            "notAfter": rfc3339.render(scene.issued.not_after),
            "thumbprint": scene.issued.thumbprint,
            "clientId": CLIENT,
            "signIn": {"ok": True, "error": None},
            "proof": {"ok": True, "status": 200, "action": action, "error": None},
            "reloads": 0,
        }
        assert [(call.method, call.path) for call in known.calls] == [("GET", "/subscriptions/s/disks?api-version=1")]

    def test_headers_and_body_are_sent_so_that_host_can_name_a_vault(
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

    def test_a_call_the_role_does_not_grant_is_reported_with_status_and_code(
        self, known: Entra, mount: CsiMount, capsys: pytest.CaptureFixture[str]
    ) -> None:
        known.forbidden.add("/subscriptions/s/disks?api-version=1")
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", proof(known))
        assert (code, report["ready"], report["signIn"]["ok"]) == (1, False, True)
        assert report["proof"]["status"] == 403
        assert report["proof"]["error"] == "403 AuthorizationFailed: no permission over scope"

    def test_a_service_that_does_not_answer_is_reported(
        self, known: Entra, mount: CsiMount, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call = proof(known, url="https://127.0.0.1:1/x")
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", call)
        assert (code, report["proof"]["status"]) == (1, None)
        assert report["proof"]["error"].startswith("no answer from https://127.0.0.1:1/x: ")

    def test_a_refused_sign_in_is_reported_with_entras_code(
        self, entra: Entra, mount: CsiMount, issued: IssuedCertificate, capsys: pytest.CaptureFixture[str]
    ) -> None:
        mount.write(document(issued, entra.url))
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", proof(entra))
        assert (code, report["ready"], report["thumbprint"]) == (1, False, issued.thumbprint)
        assert report["signIn"]["error"] == "AADSTS700027: The certificate is not registered on application."
        assert report["proof"] == {"ok": False, "status": None, "action": None, "error": None, "at": None}

    def test_an_absent_file_or_unset_variable_is_reported(
        self, entra: Entra, mount: CsiMount, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, report = once(capsys, "--credential", f"file:{mount.path}", "--proof", proof(entra))
        assert (code, report["thumbprint"]) == (1, None)
        assert report["signIn"]["error"].startswith(f"credential file {mount.path}: found no readable file")
        code, report = once(capsys, "--credential", "env:IDSTACK_TEST_UNSET", "--proof", proof(entra))
        assert (code, report["credentialFile"]) == (1, None)
        assert report["signIn"]["error"].startswith("variable IDSTACK_TEST_UNSET: found none")

    @pytest.mark.parametrize(
        ("message", "arguments"), [(message, line) for message, lines in WRONG_ARGUMENTS.items() for line in lines]
    )
    def test_wrong_arguments_exit_with_2(
        self, message: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert message in capsys.readouterr().err


class TestLoop:
    def test_each_round_signs_in_over_a_connection_of_its_own(self, known: Entra, prober: Prober) -> None:
        assert [prober.prove().is_ready for _ in range(4)] == [True] * 4
        assert known.attempts == 4
        assert set(known.connections) == {"close"}

        known.refusals.append("AADSTS50196: The server terminated an operation.")
        assert [prober.prove().is_ready for _ in range(2)] == [False, True], "no failure is remembered"

    def test_a_file_that_cannot_be_loaded_at_first_is_counted(self, prober: Prober, metrics: Metrics) -> None:
        assert not prober.prove().is_ready
        assert 'idstack_credential_loads_total{result="refused"} 1.0' in metrics.render().decode()

    def test_it_retries_until_ready_and_proves_again_at_once_after_a_reload(
        self, prober: WaitableProber, scene: Scene
    ) -> None:
        loop = threading.Thread(target=prober.run, args=(timedelta(hours=1),))
        loop.start()
        try:
            assert "found no readable file" in prober.next()["signIn"]["error"]
            scene.deliver(scene.issued)
            prober.until(lambda report: str(report["signIn"]["error"]).startswith("AADSTS700027"))
            scene.entra.registered.append(scene.issued.certificate_pem)
            assert prober.until(lambda report: report["ready"])["reloads"] == 0
            scene.renew()
            report = prober.next()
            assert (report["ready"], report["thumbprint"], report["reloads"]) == (True, scene.following.thumbprint, 1)
        finally:
            prober.stop()
            loop.join(PATIENCE)
        assert not loop.is_alive()

    def test_every_round_signs_in_anew_so_a_revoked_certificate_is_seen(
        self, known: Entra, prober: Prober, metrics: Metrics
    ) -> None:
        assert prober.prove().is_ready
        known.registered.clear()
        assert not prober.prove().is_ready
        assert 'idstack_sign_ins_total{result="ok"} 1.0' in metrics.render().decode()
        assert 'idstack_sign_ins_total{result="failed"} 1.0' in metrics.render().decode()
