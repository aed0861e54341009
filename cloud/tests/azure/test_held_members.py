"""Each member of the held faults, as a real client over TLS sees it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, IncompleteReadError
from azure.keyvault.secrets import SecretClient
from cryptography import x509

from localcloud.azure.entra.api import app as entra_app
from localcloud.azure.graph.permissions import WRITE_OWNED
from localcloud.azure.shared.held import Disk, HeldAnswer, HeldDelivery, HeldLag, HeldReplication, Lock
from localcloud.azure.tenant.objects import ServicePrincipal
from localcloud.core import clock
from localcloud.core.tls import ensure_certificate, expired_file
from localcloud.testing.arm import GROUP, SUBSCRIPTION, VAULT, ArmWorld, vault_body
from localcloud.testing.azure import ask, graph_app
from localcloud.testing.hosts import Certificates, Serve, running
from tests.azure.graph.world import GRAPH, signed_in
from tests.azure.keyvault.conftest import PrincipalCredential
from tests.token_client import TokenClient, certificate, registration

_ARM = "https://management.azure.com"
_GROUP = f"{GROUP}?api-version=2024-11-01"


class Client:
    """httpx at the world's ARM."""

    def __init__(self, world: ArmWorld, url: str, ca_file: Path) -> None:
        self.world = world
        self.http = httpx.Client(base_url=url, verify=ssl.create_default_context(cafile=ca_file))

    def bearer(self, caller: ServicePrincipal | None = None) -> dict[str, str]:
        """The header of the deployer, unless another caller is named."""
        return {"Authorization": f"Bearer {self.world.cloud.tokens.issue(caller or self.world.deployer, _ARM)}"}

    def get(self, caller: ServicePrincipal | None = None) -> httpx.Response:
        """The resource group."""
        return self.http.get(_GROUP, headers=self.bearer(caller))

    def statuses(self, number: int) -> list[int]:
        return [self.get().status_code for _ in range(number)]


@pytest.fixture
def client(world: ArmWorld, serve: Serve, certificates: Certificates) -> Iterator[Client]:
    made = Client(world, serve(world.arm), certificates.ca_file)
    yield made
    made.http.close()


@pytest.fixture
def secrets(world: ArmWorld, serve: Serve, certificates: Certificates) -> Iterator[SecretClient]:
    """Azure's own client with its retries; the world's vault has the secret `known`."""
    world.create_vault()
    url = serve(world.keyvault).replace("127.0.0.1", "localhost")
    credential = PrincipalCredential(world, world.deployer)
    options: dict[str, Any] = {
        "verify_challenge_resource": False,
        "connection_verify": str(certificates.ca_file),
        "retry_backoff_factor": 0,
    }
    with SecretClient(url, credential, **options) as made:
        made.set_secret("known", "before")
        yield made


@pytest.mark.parametrize("retry_after", [None, 7])
def test_a_429_has_retry_after_or_has_not(client: Client, retry_after: int | None) -> None:
    client.world.hold(answers=(HeldAnswer("arm", status=429, code="TooManyRequests", retry_after=retry_after),))

    answer = client.get()
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "TooManyRequests")
    assert answer.headers.get("Retry-After") == (None if retry_after is None else str(retry_after))


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_azures_client_gets_through_what_passes(secrets: SecretClient, world: ArmWorld, status: int) -> None:
    world.hold(answers=(HeldAnswer("keyvault", operation="PUT secret", status=status, count=2, retry_after=0),))

    assert secrets.set_secret("known", "after").value == "after"
    assert secrets.get_secret("known").value == "after"


@pytest.mark.parametrize(
    ("fault", "applied"),
    [
        ({"count": 2}, [503, 503, 200, 200]),
        ({"skip": 1, "count": 1}, [200, 503, 200, 200]),
        ({"operation": "GET resource group"}, [503] * 4),
        ({"operation": "resource group"}, [503] * 4),
        ({"operation": "PUT resource group"}, [200] * 4),
        ({"operation": "secret"}, [200] * 4),
        ({"probability": 0.0}, [200] * 4),
    ],
)
def test_a_fault_applies_as_often_as_it_says(client: Client, fault: dict[str, Any], applied: list[int]) -> None:
    client.world.hold(answers=(HeldAnswer("arm", **fault),))

    assert client.statuses(4) == applied


def test_a_seed_repeats_what_a_probability_applies_to(client: Client) -> None:
    def statuses(seed: int) -> list[int]:
        client.world.hold(answers=(HeldAnswer("arm", probability=0.5, seed=seed),))
        return client.statuses(24)

    first = statuses(1)
    assert 4 < first.count(503) < 20
    client.world.hold()
    assert client.get().status_code == 200
    assert statuses(1) == first != statuses(2)


def test_a_fault_ends_after_its_time(client: Client) -> None:
    client.world.hold(answers=(HeldAnswer("arm", seconds=60),))

    before = client.get().status_code
    with clock.moved_ahead(timedelta(seconds=61)):
        assert (before, client.get().status_code) == (503, 200)


@pytest.mark.parametrize("member", ["app_id", "object_id"])
def test_a_fault_is_about_one_caller_alone(client: Client, member: str) -> None:
    other = client.world.principal(("Reader", SUBSCRIPTION))
    client.world.hold(answers=(HeldAnswer("arm", identity=getattr(other, member).upper()),))

    assert client.get().status_code == 200
    assert client.get(other).status_code == 503


def test_an_answer_is_late_and_has_taken_effect(client: Client) -> None:
    client.world.hold(deliveries=(HeldDelivery("arm", latency=1.5),))
    late, body = f"{SUBSCRIPTION}/resourceGroups/late", {"location": "eastus"}

    with pytest.raises(httpx.ReadTimeout):
        client.http.put(f"{late}?api-version=2024-11-01", json=body, headers=client.bearer(), timeout=0.2)
    assert client.world.resources.get(late) is not None


def test_a_slow_body_comes_in_pieces_and_whole(client: Client) -> None:
    whole = client.get().json()
    client.world.hold(deliveries=(HeldDelivery("arm", bytes_per_second=4000),))

    with client.http.stream("GET", _GROUP, headers=client.bearer()) as answer:
        pieces = list(answer.iter_raw())
    assert httpx.Response(200, content=b"".join(pieces)).json() == whole
    assert len(pieces) > 1


def test_a_body_that_stands_still_times_out(client: Client) -> None:
    client.world.hold(deliveries=(HeldDelivery("arm", bytes_per_second=2000),))
    client.http.timeout = httpx.Timeout(60, read=0.01)  # a busy machine takes longer to connect

    with pytest.raises(httpx.ReadTimeout):
        client.get()


@pytest.mark.parametrize("cut", [0.0, 0.5])
def test_a_half_sent_answer_is_an_error_and_the_next_is_not(client: Client, cut: float) -> None:
    client.world.hold(deliveries=(HeldDelivery("arm", cut=cut, count=1),))

    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        client.get()
    assert client.get().status_code == 200


def test_azures_client_takes_no_half_sent_answer_for_one(secrets: SecretClient, world: ArmWorld) -> None:
    world.hold(deliveries=(HeldDelivery("keyvault", operation="GET secret", cut=0.5),))

    with pytest.raises(IncompleteReadError):
        secrets.get_secret("known")
    world.hold()
    assert secrets.get_secret("known").value == "before"


def test_a_held_answer_can_be_cut_as_well(client: Client) -> None:
    client.world.hold(answers=(HeldAnswer("arm"),), deliveries=(HeldDelivery("arm", cut=0.5),))

    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        client.get()


def test_a_read_only_vault_is_read_and_changed_by_nobody(secrets: SecretClient, world: ArmWorld) -> None:
    world.hold(read_only_vaults=("KV-idstack-local",))

    with pytest.raises(HttpResponseError, match=r"\(Forbidden\) The vault kv-idstack-local is in read-only mode"):
        secrets.set_secret("known", "after")
    assert secrets.get_secret("known").value == "before"
    body = {"properties": {"value": "after"}}
    refused = [world.call("PUT", f"{VAULT}/secrets/known", body), world.call("PUT", VAULT, vault_body())]
    assert [answer.json()["error"]["code"] for answer in refused] == ["Forbidden", "Forbidden"]
    assert world.call("GET", f"{VAULT}/secrets/known").status_code == 200
    world.hold(read_only_vaults=("another",))
    assert secrets.set_secret("known", "after").value == "after"


def test_an_unregistered_provider_has_no_types_and_says_so(world: ArmWorld) -> None:
    world.hold(unregistered_providers=("microsoft.keyvault",))
    provider = f"{SUBSCRIPTION}/providers/Microsoft.KeyVault"

    refused = [world.call("PUT", VAULT, vault_body()), world.call("GET", VAULT)]

    assert [answer.json()["error"]["code"] for answer in refused] == ["MissingSubscriptionRegistration"] * 2
    assert world.call("GET", provider).json()["registrationState"] == "NotRegistered"
    world.hold()
    assert world.call("GET", provider).json()["registrationState"] == "Registered"


@pytest.mark.parametrize(("lock", "is_changed"), [(Lock.CAN_NOT_DELETE, True), (Lock.READ_ONLY, False)])
@pytest.mark.parametrize("locked", [SUBSCRIPTION, GROUP.upper(), VAULT])
def test_a_lock_holds_at_its_scope_and_below(world: ArmWorld, locked: str, lock: Lock, is_changed: bool) -> None:
    world.create_vault()
    world.hold(locks={locked: lock, f"{GROUP}-other": Lock.READ_ONLY})

    for scope in (GROUP, VAULT):
        [listed] = world.call("GET", f"{scope}/providers/Microsoft.Authorization/locks").json()["value"]
        at = f"{locked.lower()}/providers/Microsoft.Authorization/locks/held"
        assert (listed["id"], listed["properties"]["level"]) == (at, lock)

    assert world.call("GET", VAULT).status_code == 200
    assert (world.call("PUT", VAULT, vault_body()).status_code == 200) == is_changed
    refused = world.call("DELETE", VAULT)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "ScopeLocked")
    world.hold()
    assert world.call("DELETE", VAULT).status_code == 200


@pytest.mark.parametrize("disk", [Disk.FULL, Disk.READ_ONLY])
def test_a_disk_that_takes_nothing_is_named_and_loses_nothing(
    secrets: SecretClient, world: ArmWorld, disk: Disk
) -> None:
    before = world.store.listed()
    world.hold(disk=disk)

    why = {Disk.FULL: "No space left on device", Disk.READ_ONLY: "Read-only file system"}[disk]
    with pytest.raises(HttpResponseError, match=rf"state.sqlite cannot be written \({why}\)") as refused:
        secrets.set_secret("known", "after")
    assert refused.value.status_code == 507
    assert "(InsufficientStorage)" in str(refused.value)
    assert secrets.get_secret("known").value == "before"
    assert world.store.listed() == before
    world.hold()
    assert secrets.set_secret("known", "after").value == "after"


@pytest.fixture
def signing_in(world: ArmWorld, serve: Serve, certificates: Certificates) -> TokenClient:
    """An application with a certificate that was registered just now."""
    return TokenClient.create(world.cloud, serve(entra_app(world.cloud)), certificates.ca_file)


def sign_in(client: TokenClient, **changed: Any) -> float:
    """Sign in again; returns how many seconds the token is good for. `changed` as for a credential."""
    credential = client.credential(retry_total=0, **changed)
    return credential.get_token(f"{_ARM}/.default").expires_on - clock.now().timestamp()


def test_a_fault_is_about_the_client_that_signs_in(world: ArmWorld, signing_in: TokenClient) -> None:
    world.hold(answers=(HeldAnswer("entra", operation="POST token", identity="another"),))
    sign_in(signing_in)
    refusal = HeldAnswer("entra", operation="POST token", identity=signing_in.app_id, status=400, code="1")
    world.hold(answers=(refusal,))

    with pytest.raises(ClientAuthenticationError):
        sign_in(signing_in)


def test_a_fresh_certificate_is_refused_and_the_one_before_is_accepted(
    world: ArmWorld, signing_in: TokenClient
) -> None:
    directory, since, fresh = world.cloud.directory, clock.now(), certificate()
    application = directory.application(signing_in.object_id)
    assert application is not None
    directory.set_key_credentials(application.object_id, [*application.key_credentials, registration(fresh)])
    world.hold(replication=(HeldReplication(since, signing_in.app_id),))

    assert sign_in(signing_in)
    with pytest.raises(ClientAuthenticationError, match=r"AADSTS700027: .* is not registered"):
        sign_in(signing_in, issued=fresh)
    world.hold()
    assert sign_in(signing_in, issued=fresh)


def test_a_replica_that_lags_for_an_hour_refuses_until_then(world: ArmWorld, signing_in: TokenClient) -> None:
    world.hold(replica_delays=(3600.0,))

    with pytest.raises(ClientAuthenticationError, match="AADSTS700016"):
        sign_in(signing_in)
    world.hold(replica_delays=(0.0,))
    assert sign_in(signing_in)


def test_writing_an_old_list_back_undoes_what_came_after_it(world: ArmWorld) -> None:
    directory, deployer = world.cloud.directory, signed_in(world.cloud, WRITE_OWNED)
    application = directory.create_application("client", owners=[deployer.object_id])
    old, new = registration(certificate()), registration(certificate())
    with clock.moved_ahead(timedelta(hours=-1)):
        directory.set_key_credentials(application.object_id, [old])
    directory.set_key_credentials(application.object_id, [new])

    def graph(method: str, path: str, **options: Any) -> httpx.Response:
        token = world.cloud.tokens.issue(deployer, GRAPH)
        answer = ask(graph_app(world.cloud), f"{GRAPH}/v1.0", method, path, token=token, **options)
        return answer.raise_for_status()

    def read() -> tuple[list[Any], set[str]]:
        found = graph("GET", f"/applications/{application.object_id}?$select=keyCredentials").json()["keyCredentials"]
        [listed] = graph("GET", "/applications", params={"$filter": "displayName eq 'client'"}).json()["value"]
        ids, listed_ids = ({item["keyId"] for item in items} for items in (found, listed["keyCredentials"]))
        assert listed_ids == ids
        return found, ids

    assert read()[1] == {new.key_id}
    world.hold(lags=(HeldLag("graph", operation="GET application", since=clock.now() - timedelta(minutes=1)),))
    listed, ids = read()
    assert ids == {old.key_id}
    graph("PATCH", f"/applications/{application.object_id}", json={"keyCredentials": listed})
    world.hold()

    assert read()[1] == {old.key_id}


def test_a_token_is_good_for_as_long_as_it_is_held(world: ArmWorld, signing_in: TokenClient, client: Client) -> None:
    world.hold(token_lifetime=(5, 5))

    assert 3 < sign_in(signing_in) <= 6
    headers = client.bearer()
    before = client.http.get(_GROUP, headers=headers).status_code
    with clock.moved_ahead(timedelta(seconds=6)):
        expired = client.http.get(_GROUP, headers=headers)
        assert (before, expired.status_code) == (200, 401)
        assert "expiry UTC time is earlier" in expired.json()["error"]["message"]
        assert client.get().status_code == 200


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_clock_that_is_off_is_refused_at_sign_in(world: ArmWorld, signing_in: TokenClient, seconds: float) -> None:
    world.hold(date_shift={"entra": seconds})

    with pytest.raises(ClientAuthenticationError, match="AADSTS700024"):
        sign_in(signing_in)
    world.hold(date_shift={"entra": seconds / 60})
    assert sign_in(signing_in)


def test_an_expired_certificate_is_shown_to_new_connections_alone(tmp_path: Path, world: ArmWorld) -> None:
    ca_file, server_file = tmp_path / "ca.pem", tmp_path / "server.pem"
    ensure_certificate(ca_file, server_file)
    has_expired: list[bool] = []

    with running(server_file, has_expired=lambda: bool(has_expired)) as host, host.serving(world.arm) as url:
        open_before = Client(world, url, ca_file)
        assert open_before.get().status_code == 200
        has_expired.append(True)
        assert open_before.get().status_code == 200
        for address in (url, url.replace("127.0.0.1", "localhost")):
            with pytest.raises(httpx.ConnectError, match="certificate has expired"):
                Client(world, address, ca_file).get()
        has_expired.clear()
        assert Client(world, url, ca_file).get().status_code == 200
    shown = x509.load_pem_x509_certificate(expired_file(server_file).read_bytes())
    assert shown.not_valid_after_utc < clock.now()
