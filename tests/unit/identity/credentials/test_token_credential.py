"""The mounted credential signs in with what the CSI driver mounted, and with what it swaps in later."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from azure.core import PipelineClient
from azure.core.credentials import SupportsTokenInfo, TokenCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy
from azure.core.rest import HttpRequest, HttpResponse
from azure.identity import CredentialUnavailableError
from azure.keyvault.secrets import SecretClient

from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import InvalidCredentialError
from identity.credentials.events import EventKind
from identity.credentials.token_credential import MountedCredential
from tests.unit.identity.credentials.watching import PATIENCE, Clients, Scene
from tests.unit.identity.credentials.world import ARM_SCOPE, CLIENT, TENANT, CsiMount, Entra, certificate, document


def watchers() -> int:
    """How many threads watch a directory."""
    return sum(thread.name.startswith("watch ") for thread in threading.enumerate())


class TestSignIn:
    def test_the_assertion_is_signed_by_the_certificate_and_carries_the_chain(
        self, served: MountedCredential, entra: Entra, issued: IssuedCertificate
    ) -> None:
        token = served.get_token(ARM_SCOPE)
        (seen,) = entra.assertions
        body = "".join(issued.certificate_pem.splitlines()[1:-1])
        assert token.token.startswith("token-")
        assert seen["header"]["x5c"] == [body]
        assert seen["claims"]["iss"] == seen["claims"]["sub"] == seen["client"] == CLIENT
        assert seen["claims"]["aud"] == f"{entra.url}/{TENANT}/oauth2/v2.0/token"
        assert ARM_SCOPE in seen["scope"].split()

    def test_the_other_certificates_of_the_document_follow_in_the_chain(self, scene: Scene) -> None:
        stranger = certificate()
        scene.mount.write(
            document(
                scene.issued, scene.entra.url, certificate_pem=stranger.certificate_pem + scene.issued.certificate_pem
            )
        )
        scene.entra.registered.append(scene.issued.certificate_pem)
        with MountedCredential(scene.mount.path) as credential:
            credential.get_token(ARM_SCOPE)
        assert scene.entra.assertions[0]["header"]["x5c"] == [
            "".join(own.certificate_pem.splitlines()[1:-1]) for own in (scene.issued, stranger)
        ]

    def test_a_token_is_cached(self, served: MountedCredential, entra: Entra) -> None:
        first, second = served.get_token(ARM_SCOPE), served.get_token_info(ARM_SCOPE)
        assert first.token == second.token
        assert entra.attempts == 1

    def test_a_certificate_entra_does_not_know_is_refused_with_its_code(self, scene: Scene) -> None:
        scene.deliver(scene.issued)
        with (
            MountedCredential(scene.mount.path) as credential,
            pytest.raises(ClientAuthenticationError, match="AADSTS700027"),
        ):
            credential.get_token(ARM_SCOPE)

    def test_the_callers_authority_goes_before_the_documents_of_which_a_path_is_dropped(self, scene: Scene) -> None:
        scene.entra.registered.append(scene.issued.certificate_pem)
        for own, callers in (("https://127.0.0.1:1/", scene.entra.url), (f"{scene.entra.url}/some/path", None)):
            scene.mount.write(document(scene.issued, own))
            with MountedCredential(scene.mount.path, authority=callers) as credential:
                assert credential.authority_host == scene.entra.url
                assert credential.get_token(ARM_SCOPE).token.startswith("token-")

    def test_ssl_cert_file_names_the_trusted_certificates_too(
        self, mount: CsiMount, known: Entra, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("REQUESTS_CA_BUNDLE")
        monkeypatch.setenv("SSL_CERT_FILE", str(known.ca_file))
        with MountedCredential(mount.path) as credential:
            assert credential.get_token(ARM_SCOPE).token.startswith("token-")

    def test_options_reach_the_pipeline_so_a_silent_entra_times_out(self, scene: Scene) -> None:
        scene.deliver(scene.issued)
        scene.entra.answers.clear()
        with (
            MountedCredential(scene.mount.path, retry_total=0, read_timeout=0.1) as credential,
            pytest.raises(ClientAuthenticationError, match="Read timed out"),
        ):
            credential.get_token(ARM_SCOPE)


class TestDropIn:
    def test_the_pipeline_of_management_clients_takes_it(self, served: MountedCredential, entra: Entra) -> None:
        assert isinstance(served, TokenCredential)
        assert isinstance(served, SupportsTokenInfo)
        policy = BearerTokenCredentialPolicy(served, ARM_SCOPE, enable_cae=True)
        with PipelineClient[HttpRequest, HttpResponse](entra.url, policies=[policy]) as client:
            answer = client.send_request(HttpRequest("GET", f"{entra.url}/subscriptions/s"))
        assert answer.status_code == 200

    def test_a_key_vault_client_takes_it_in_a_thread_beside_an_event_loop(
        self, served: MountedCredential, entra: Entra
    ) -> None:
        """As `docs/reference/loader.md` shows it."""
        options: dict[str, Any] = {"connection_verify": str(entra.ca_file), "verify_challenge_resource": False}

        async def listed() -> list[Any]:
            with SecretClient(entra.url, served, **options) as vault:
                return await asyncio.to_thread(lambda: list(vault.list_properties_of_secrets()))

        assert asyncio.run(listed()) == []
        assert "https://vault.azure.net/.default" in entra.assertions[-1]["scope"].split()


class TestFirstLoad:
    def test_of_what_is_absent_garbage_or_expired_fails_and_leaves_no_thread_behind(self, mount: CsiMount) -> None:
        with pytest.raises(CredentialUnavailableError, match=r"found no readable file .*SecretProviderClass"):
            MountedCredential(mount.path)
        mount.write("{")
        with pytest.raises(InvalidCredentialError, match="found no JSON object"):
            MountedCredential(mount.path)
        old = certificate(age=timedelta(days=2), lifetime=timedelta(days=1))
        mount.write(document(old))
        with pytest.raises(InvalidCredentialError, match=f"expired at .* \\(certificate {old.thumbprint}\\)"):
            MountedCredential(mount.path)
        assert watchers() == 0


class TestClose:
    def test_ends_the_watch_and_every_client(self, mount: CsiMount, known: Entra, clients: Clients) -> None:
        credential = MountedCredential(mount.path)
        credential.get_token(ARM_SCOPE)
        assert (credential.is_watching, watchers()) == (True, 1)
        credential.close()
        credential.close()
        assert (credential.is_watching, watchers()) == (False, 0)
        assert clients.open == 0

    def test_gives_a_pending_candidate_up(self, served: MountedCredential, scene: Scene) -> None:
        scene.deliver(scene.following)
        scene.events.until(EventKind.UNPROVEN)
        served.close()
        assert watchers() == 0

    def test_waits_for_the_try_in_flight(self, served: MountedCredential, scene: Scene) -> None:
        scene.entra.answers.clear()
        scene.renew()
        assert scene.entra.asked.acquire(timeout=PATIENCE)
        closing = threading.Thread(target=served.close)
        closing.start()
        scene.entra.answers.set()
        closing.join(PATIENCE)
        assert not closing.is_alive()
        assert scene.clients.open == 0
