"""Key Vault's limits, at the figures that Microsoft publishes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.keyvault.secrets import SecretClient

from localcloud.azure.keyvault.guard import VaultThrottle, kind_of
from localcloud.azure.keyvault.secrets import KeyVault
from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.azure.shared.refusals import ServiceError
from localcloud.testing.arm import ArmWorld
from localcloud.testing.hosts import Certificates, Serve
from tests.azure.keyvault.conftest import PrincipalCredential
from tests.standing_clock import StandingClock, standing

__all__ = ["standing"]
pytestmark = pytest.mark.usefixtures("standing")
_VAULT = KeyVault({"name": "kv-one"})


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[ArmWorld]:
    """A vault that takes two new secrets at once, three other requests, and one more of each in ten seconds."""
    built = ArmWorld(tmp_path, replace(NO_DELAYS, vault_requests={"create": (2, 0.1), "other": (3, 0.1)}))
    built.create_vault()
    yield built
    built.store.close()


@pytest.mark.parametrize(("kind", "most"), [("create", 300), ("create_key", 20), ("key", 4000), ("other", 4000)])
def test_the_limits_are_key_vaults_own_unless_configured(kind: str, most: int, standing: StandingClock) -> None:
    throttle = VaultThrottle(Faults().vault_requests)
    for seconds in (0, 10):
        standing.advance(seconds)
        for _ in range(most):
            throttle.take(_VAULT, kind)
        with pytest.raises(ServiceError, match="429 Throttled"):
            throttle.take(_VAULT, kind)


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("PUT", "/secrets/{name}", "create"),
        ("PATCH", "/secrets/{name}", "other"),
        ("GET", "/secrets/{name}", "other"),
        ("POST", "/certificates/{name}/import", "create"),
        ("POST", "/certificates/{name}/create", "other"),
        ("POST", "/keys/{name}/create", "create_key"),
        ("POST", "/keys/{name}/{version:path}/{operation}", "key"),
        ("GET", "/keys", "key"),
    ],
)
def test_a_request_counts_for_the_limit_of_its_operation(method: str, path: str, kind: str) -> None:
    assert kind_of(method, path) == kind


def test_too_many_requests_are_refused_without_a_retry_after(narrow: ArmWorld, standing: StandingClock) -> None:
    def put() -> Any:
        return narrow.vault("PUT", "/secrets/one", {"value": "v"})

    answers = [put() for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "Retry-After" not in answers[2].headers
    assert narrow.vault("GET", "/secrets/one").status_code == 200, "reads are counted apart"
    standing.advance(10)
    assert put().status_code == 200


def test_each_caller_counts_for_the_vault_and_without_a_role_as_well(narrow: ArmWorld) -> None:
    stranger = narrow.principal()
    asked = [narrow.vault("GET", "/secrets/one", caller=stranger).status_code for _ in range(3)]

    assert asked == [403, 403, 403]
    assert narrow.vault("GET", "/secrets/one").status_code == 429


def test_another_vault_is_counted_apart() -> None:
    throttle = VaultThrottle({"other": (1, 0.1)})
    throttle.take(_VAULT, "other")
    throttle.take(KeyVault({"name": "kv-two"}), "other")
    with pytest.raises(ServiceError, match="Throttled"):
        throttle.take(KeyVault({"name": "KV-One"}), "other")


@pytest.mark.parametrize(("retries", "passes"), [(3, True), (0, False)])
def test_azures_client_gets_through_by_its_own_pauses(
    narrow: ArmWorld,
    serve: Serve,
    certificates: Certificates,
    standing: StandingClock,
    monkeypatch: pytest.MonkeyPatch,
    retries: int,
    passes: bool,
) -> None:
    waits = standing.pauses(monkeypatch)
    options: dict[str, Any] = {
        "verify_challenge_resource": False,
        "connection_verify": str(certificates.ca_file),
        "retry_total": retries,
        "retry_backoff_factor": 5,
    }
    url = serve(narrow.keyvault).replace("127.0.0.1", "localhost")
    with SecretClient(url, PrincipalCredential(narrow, narrow.deployer), **options) as client:
        for value in ("first", "second"):
            client.set_secret("one", value)
        if passes:
            assert client.set_secret("one", "third").value == "third"
            assert sum(waits) >= 10
        else:
            with pytest.raises(HttpResponseError, match="Throttled"):
                client.set_secret("one", "third")
            assert waits == []
