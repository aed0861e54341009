"""The mounted credential signs in with what the CSI driver mounted, and with what it swaps in later."""

from __future__ import annotations

import base64
import logging
import os
import queue
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.core.credentials import SupportsTokenInfo, TokenCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CredentialUnavailableError

from identity.credentials import token_credential
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.document import InvalidCredential
from identity.credentials.token_credential import BACKSTOP, Load, MountedCredential
from tests.unit.identity.credentials.world import ARM_SCOPE, CLIENT, TENANT, CsiMount, Entra, certificate, document

PATIENCE = 20  # seconds until a missing event is a failure; no test waits for it otherwise


class Loads:
    """The readings a credential reported, to be waited for."""

    def __init__(self) -> None:
        self._loads: queue.Queue[Load] = queue.Queue()

    def __call__(self, load: Load) -> None:
        self._loads.put(load)

    def next(self) -> Load:
        return self._loads.get(timeout=PATIENCE)


@pytest.fixture
def loads() -> Loads:
    return Loads()


@pytest.fixture
def served(mount: CsiMount, entra: Entra, issued: IssuedCertificate, loads: Loads) -> Iterator[MountedCredential]:
    """A mounted credential that Entra knows, first load done."""
    mount.write(document(issued, entra.url))
    entra.registered.append(issued.certificate_pem)
    with MountedCredential(mount.path, on_load=loads, retry_total=0) as credential:
        assert loads.next().replaced
        yield credential


def x5t(issued: IssuedCertificate) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(issued.thumbprint)).decode()


def overwrite_unseen(path: Path, content: str) -> None:
    """Write in place so that size, inode and time of change stay as they are, in a directory that is not watched."""
    status = path.stat()
    assert len(content.encode()) == status.st_size
    path.write_text(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def newer(than: IssuedCertificate) -> IssuedCertificate:
    issued = certificate(age=timedelta(0))
    assert issued.not_before > than.not_before
    return issued


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

    def test_the_other_certificates_of_the_document_follow_in_the_chain(
        self, mount: CsiMount, entra: Entra, issued: IssuedCertificate
    ) -> None:
        stranger = certificate()
        mount.write(document(issued, entra.url, certificate_pem=stranger.certificate_pem + issued.certificate_pem))
        entra.registered.append(issued.certificate_pem)
        with MountedCredential(mount.path) as credential:
            credential.get_token(ARM_SCOPE)
        assert entra.assertions[0]["header"]["x5c"] == [
            "".join(own.certificate_pem.splitlines()[1:-1]) for own in (issued, stranger)
        ]

    def test_a_token_is_cached(self, served: MountedCredential, entra: Entra) -> None:
        first, second = served.get_token(ARM_SCOPE), served.get_token_info(ARM_SCOPE)
        assert first.token == second.token
        assert entra.attempts == 1

    def test_many_threads_ask_entra_once(self, served: MountedCredential, entra: Entra) -> None:
        start = threading.Barrier(8)
        tokens = []

        def ask() -> None:
            start.wait(PATIENCE)
            tokens.append(served.get_token(ARM_SCOPE).token)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(tokens) == 8
        assert entra.attempts == 1

    def test_a_certificate_entra_does_not_know_is_refused_with_its_code(
        self, mount: CsiMount, entra: Entra, issued: IssuedCertificate
    ) -> None:
        mount.write(document(issued, entra.url))
        with (
            MountedCredential(mount.path) as credential,
            pytest.raises(ClientAuthenticationError, match="AADSTS700027"),
        ):
            credential.get_token(ARM_SCOPE)

    def test_the_callers_authority_overrides_the_documents(
        self, mount: CsiMount, entra: Entra, issued: IssuedCertificate
    ) -> None:
        mount.write(document(issued, "https://127.0.0.1:1/"))
        entra.registered.append(issued.certificate_pem)
        with MountedCredential(mount.path, authority=entra.url) as credential:
            assert credential.authority_host == entra.url
            assert credential.get_token(ARM_SCOPE).token.startswith("token-")

    def test_a_path_of_the_authority_is_dropped(self, mount: CsiMount, entra: Entra, issued: IssuedCertificate) -> None:
        mount.write(document(issued, f"{entra.url}/some/path"))
        entra.registered.append(issued.certificate_pem)
        with MountedCredential(mount.path) as credential:
            assert credential.get_token(ARM_SCOPE).token.startswith("token-")

    def test_ssl_cert_file_names_the_trusted_certificates_too(
        self, mount: CsiMount, entra: Entra, issued: IssuedCertificate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("REQUESTS_CA_BUNDLE")
        monkeypatch.setenv("SSL_CERT_FILE", str(entra.ca_file))
        mount.write(document(issued, entra.url))
        entra.registered.append(issued.certificate_pem)
        with MountedCredential(mount.path) as credential:
            assert credential.get_token(ARM_SCOPE).token.startswith("token-")

    def test_it_is_what_azure_clients_ask_for(self, served: MountedCredential) -> None:
        assert isinstance(served, TokenCredential)
        assert isinstance(served, SupportsTokenInfo)


class TestFirstLoad:
    def test_of_an_absent_file_is_unavailable(self, mount: CsiMount) -> None:
        with pytest.raises(CredentialUnavailableError, match=r"found no readable file .*SecretProviderClass"):
            MountedCredential(mount.path)

    def test_of_garbage_is_invalid(self, mount: CsiMount) -> None:
        mount.write("{")
        with pytest.raises(InvalidCredential, match="found no JSON object"):
            MountedCredential(mount.path)

    def test_of_an_expired_credential_is_invalid(self, mount: CsiMount) -> None:
        old = certificate(age=timedelta(days=2), lifetime=timedelta(days=1))
        mount.write(document(old))
        with pytest.raises(InvalidCredential, match=f"expired at .* \\(certificate {old.thumbprint}\\)"):
            MountedCredential(mount.path)

    def test_a_failed_one_leaves_no_thread_behind(self, mount: CsiMount) -> None:
        before = threading.active_count()
        with pytest.raises(CredentialUnavailableError):
            MountedCredential(mount.path)
        assert threading.active_count() == before


class TestReload:
    def test_a_link_swap_is_seen_and_the_new_certificate_signs_in(
        self, served: MountedCredential, mount: CsiMount, entra: Entra, issued: IssuedCertificate, loads: Loads
    ) -> None:
        served.get_token(ARM_SCOPE)
        following = newer(issued)
        entra.registered.append(following.certificate_pem)
        mount.write(document(following, entra.url))
        assert loads.next().replaced
        assert served.credential.thumbprint == following.thumbprint
        served.get_token(ARM_SCOPE)
        assert [seen["header"]["x5t"] for seen in entra.assertions] == [x5t(issued), x5t(following)]

    def test_ten_swaps_in_a_row_are_all_seen(
        self, served: MountedCredential, mount: CsiMount, entra: Entra, issued: IssuedCertificate, loads: Loads
    ) -> None:
        for later in range(1, 11):
            start = issued.not_before + timedelta(seconds=later)
            mount.write(document(issued, entra.url, not_before=start))
            assert loads.next().replaced
            assert served.credential.not_before == start

    @pytest.mark.parametrize("later", [0, -1])
    def test_a_document_that_is_not_later_is_ignored(
        self,
        served: MountedCredential,
        mount: CsiMount,
        entra: Entra,
        issued: IssuedCertificate,
        loads: Loads,
        later: int,
    ) -> None:
        start = issued.not_before + timedelta(seconds=later)
        mount.write(document(certificate(age=timedelta(minutes=9)), entra.url, not_before=start))
        load = loads.next()
        assert (load.replaced, load.problem) == (False, None)
        assert served.credential.thumbprint == issued.thumbprint

    @pytest.mark.parametrize("content", ["", "{", '{"client_id": "x"}', "garbage \0"])
    def test_a_bad_file_never_replaces_a_good_one_and_is_told_once(
        self,
        served: MountedCredential,
        mount: CsiMount,
        issued: IssuedCertificate,
        loads: Loads,
        caplog: pytest.LogCaptureFixture,
        content: str,
    ) -> None:
        caplog.set_level(logging.INFO, "identity.credentials")
        for _ in range(2):
            mount.write(content)
            load = loads.next()
            assert not load.replaced
            assert load.problem is not None
        assert served.credential.thumbprint == issued.thumbprint
        assert served.get_token(ARM_SCOPE).token.startswith("token-")
        assert [record.message.partition(":")[0] for record in caplog.records] == [
            f"credential file {mount.path} refused, the loaded one goes on"
        ]

    def test_after_a_bad_file_a_good_one_is_taken(
        self, served: MountedCredential, mount: CsiMount, entra: Entra, issued: IssuedCertificate, loads: Loads
    ) -> None:
        mount.write("{")
        assert loads.next().problem
        mount.write(document(issued, entra.url, not_before=issued.not_before + timedelta(seconds=1)))
        assert loads.next().replaced

    def test_a_file_that_is_gone_leaves_the_loaded_one(
        self, served: MountedCredential, mount: CsiMount, issued: IssuedCertificate, loads: Loads
    ) -> None:
        (mount.directory / "..data").unlink()
        problem = loads.next().problem
        assert problem is not None
        assert problem.startswith(f"credential file {mount.path}: found no readable file")
        assert served.credential.thumbprint == issued.thumbprint

    def test_a_plain_file_written_in_place_is_seen_too(
        self, tmp_path: Path, issued: IssuedCertificate, loads: Loads
    ) -> None:
        path = tmp_path / "plain.json"
        path.write_text(document(issued))
        with MountedCredential(path, on_load=loads):
            assert loads.next().replaced
            path.write_text(document(issued, not_before=issued.not_before + timedelta(seconds=1)))
            while not loads.next().replaced:  # a half-written file may be seen and refused first
                pass

    def test_a_swap_is_seen_where_the_directory_can_not_be_watched(
        self, mount: CsiMount, issued: IssuedCertificate, loads: Loads, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(28, "inotify watch limit reached")

        monkeypatch.setattr("watchfiles.watch", refuse)
        monkeypatch.setattr(token_credential, "_LOOK_EVERY", timedelta(milliseconds=10))
        mount.write(document(issued))
        with MountedCredential(mount.path, on_load=loads):
            assert loads.next().replaced
            mount.write(document(issued, not_before=issued.not_before + timedelta(seconds=1)))
            assert loads.next().replaced

    def test_what_is_logged_holds_no_key(
        self,
        served: MountedCredential,
        mount: CsiMount,
        entra: Entra,
        issued: IssuedCertificate,
        loads: Loads,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        following = newer(issued)
        mount.write(document(following, entra.url))
        loads.next()
        mount.write(document(following, entra.url, client_id=following.private_key_pem))
        loads.next()
        entra.registered.append(following.certificate_pem)
        served.get_token(ARM_SCOPE)
        key = following.private_key_pem.splitlines()[1:-1]
        assert following.thumbprint in caplog.text
        assert not any(line in caplog.text for line in key)
        assert "token-" not in caplog.text


class TestBackstop:
    def test_after_six_hours_the_file_is_read_though_nothing_was_seen_to_change(
        self, mount: CsiMount, issued: IssuedCertificate, loads: Loads, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(token_credential, "_LOOK_EVERY", timedelta(milliseconds=10))
        moment = datetime.now(UTC)
        mount.write(document(issued))
        with MountedCredential(mount.path, clock=lambda: moment, on_load=loads) as credential:
            assert loads.next().replaced
            overwrite_unseen(mount.path, document(issued, not_before=issued.not_before + timedelta(seconds=1)))
            moment += BACKSTOP
            assert loads.next().replaced
            assert credential.credential.not_before == issued.not_before + timedelta(seconds=1)


class TestClose:
    def test_ends_the_watch(self, mount: CsiMount, issued: IssuedCertificate) -> None:
        mount.write(document(issued))
        before = threading.active_count()
        MountedCredential(mount.path).close()
        assert threading.active_count() == before
