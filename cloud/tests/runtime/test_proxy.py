"""The proxy: Azure's public names lead to this machine, services answer as the cloud asked, nothing else is reached."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from localcloud.azure.blob.api import app as blob_app
from localcloud.azure.entra.api import app as entra_app
from localcloud.azure.graph.api import app as graph_app
from localcloud.azure.imds.api import app as imds_app
from localcloud.core.clouds import CLOUDS, DEFAULT_CLOUD, Cloud, authorities
from localcloud.runtime.daemon import IMDS
from localcloud.testing.arm import VAULT, ArmWorld
from tests.public_host import PublicHost, running_public_host

PUBLIC = CLOUDS[DEFAULT_CLOUD]
GOVERNMENT = CLOUDS["AzureUSGovernmentCloud"]
every_cloud = pytest.mark.parametrize("asked", CLOUDS.values(), ids=CLOUDS)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublicHost]:
    with running_public_host(tmp_path_factory.mktemp("public")) as host:
        yield host


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ArmWorld]:
    built = ArmWorld(tmp_path)
    built.create_vault()
    yield built
    built.store.close()


@pytest.fixture
def http(running: PublicHost, world: ArmWorld) -> Iterator[httpx.Client]:
    running.apps.update(
        arm=world.arm,
        keyvault=world.keyvault,
        entra=entra_app(world.cloud),
        graph=graph_app(world.cloud),
        blob=blob_app(world.cloud),
        imds=imds_app(world.cloud),
    )
    with running.client() as client:
        yield client


def bearer(world: ArmWorld, audience: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {world.cloud.tokens.issue(world.deployer, audience)}"}


@every_cloud
def test_challenges_name_the_authority_of_the_cloud_that_was_asked(http: httpx.Client, asked: Cloud) -> None:
    arm = http.get(f"{asked.arm_endpoint}/subscriptions?api-version=2022-12-01")
    vault = http.get(f"https://kv-idstack-local.{asked.vault_suffix}/secrets?api-version=7.4")

    assert f'authorization_uri="{asked.authority_host}' in arm.headers["www-authenticate"]
    assert f'authorization="{asked.authority_host}' in vault.headers["www-authenticate"]
    assert f'resource="https://{asked.vault_suffix}"' in vault.headers["www-authenticate"]


@every_cloud
def test_addresses_in_answers_are_those_of_the_cloud_that_was_asked(
    http: httpx.Client, world: ArmWorld, asked: Cloud
) -> None:
    arm, vault = asked.arm_endpoint, f"https://kv-idstack-local.{asked.vault_suffix}"
    to_arm = bearer(world, arm)
    to_vault = bearer(world, f"https://{asked.vault_suffix}")

    found = http.get(f"{arm}{VAULT}?api-version=2024-11-01", headers=to_arm).json()
    for name in ("one", "two"):
        written = http.put(f"{vault}/secrets/{name}?api-version=7.4", headers=to_vault, json={"value": "v"}).json()
        assert written["id"].startswith(f"{vault}/secrets/{name}/")
    page = http.get(f"{vault}/secrets?api-version=7.4&maxresults=1", headers=to_vault).json()
    next_page = http.get(page["nextLink"], headers=to_vault).json()

    assert found["properties"]["vaultUri"] == f"{vault}/"
    assert urlsplit(page["nextLink"]).hostname == urlsplit(vault).hostname
    listed = [secret["id"] for secret in (*page["value"], *next_page["value"])]
    assert listed == [f"{vault}/secrets/{name}" for name in ("one", "two")]


def test_a_token_for_another_cloud_is_refused(http: httpx.Client, world: ArmWorld) -> None:
    url = "/subscriptions?api-version=2022-12-01"
    of_the_public_one = bearer(world, PUBLIC.arm_endpoint)

    assert http.get(f"{PUBLIC.arm_endpoint}{url}", headers=of_the_public_one).status_code == httpx.codes.OK
    refused = http.get(f"{GOVERNMENT.arm_endpoint}{url}", headers=of_the_public_one)
    assert refused.json()["error"]["code"] == "InvalidAuthenticationToken"


@every_cloud
def test_the_endpoints_of_a_cloud_are_public(http: httpx.Client, asked: Cloud) -> None:
    found = http.get(f"{asked.arm_endpoint}/metadata/endpoints?api-version=2022-09-01").json()

    assert found["resourceManager"] == f"{asked.arm_endpoint}/"
    assert f"{found['authentication']['loginEndpoint']}/" == asked.authority_host
    assert f"{asked.arm_endpoint}/" in found["authentication"]["audiences"]
    assert found["suffixes"]["keyVaultDns"] == asked.vault_suffix
    every = http.get(f"{asked.arm_endpoint}/metadata/endpoints?api-version=2019-05-01").json()
    assert [environment["name"] for environment in every] == ["AzureCloud", "AzureUSGovernment", "AzureChinaCloud"]


@every_cloud
def test_each_name_of_an_authority_answers_as_itself(http: httpx.Client, world: ArmWorld, asked: Cloud) -> None:
    for host in authorities(asked):
        found = http.get(f"https://{host}/{world.cloud.tenant_id}/v2.0/.well-known/openid-configuration").json()
        assert urlsplit(found["token_endpoint"]).hostname == host
        discovered = http.get(
            f"https://{authorities(PUBLIC)[0]}/common/discovery/instance",
            params={"api-version": "1.1", "authorization_endpoint": f"https://{host}/common/oauth2/v2.0/authorize"},
        ).json()
        assert any(host in cloud["aliases"] for cloud in discovered["metadata"])


@every_cloud
def test_graph_and_blobs_answer_by_name(http: httpx.Client, world: ArmWorld, asked: Cloud) -> None:
    graph = http.get(f"{asked.graph_endpoint}/v1.0/applications", headers=bearer(world, asked.graph_endpoint))
    blob = http.get(f"https://nobody.blob.{asked.storage_suffix}/container/blob")

    assert graph.json()["error"]["code"] == "Authorization_RequestDenied"
    assert blob.headers["x-ms-error-code"] == "AccountNotFound"


def test_imds_is_asked_in_plain_text(http: httpx.Client) -> None:
    refused = http.get(f"http://{IMDS}/metadata/identity/oauth2/token")

    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("url", ["https://example.com/", "https://management.azure.com:8443/", "https://127.0.0.1/"])
def test_no_other_host_is_reached(http: httpx.Client, url: str) -> None:
    with pytest.raises(httpx.ProxyError, match="502 Bad Gateway"):
        http.get(url)


def test_what_cannot_be_reached_is_named_in_plain_text(http: httpx.Client) -> None:
    refused = http.get("http://example.com/")

    assert refused.status_code == httpx.codes.BAD_GATEWAY
    assert "http://example.com/ is none of those that it emulates" in refused.text


def test_what_is_no_request_ends_the_connection(running: PublicHost) -> None:
    to = urlsplit(running.proxy)
    for sent in (b"\r\n\r\n", b"CONNECT\r\n\r\n", b"GET nonsense HTTP/1.1\r\n\r\n"):
        with socket.create_connection((to.hostname, to.port), timeout=10) as connection:
            connection.sendall(sent)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 502 ")


def test_tunnels_end_with_the_proxy(tmp_path: Path, world: ArmWorld) -> None:
    url = f"{PUBLIC.arm_endpoint}/metadata/endpoints?api-version=2022-09-01"
    with ExitStack() as stack:
        host = stack.enter_context(running_public_host(tmp_path))
        host.apps["arm"] = world.arm
        with host.client() as client:
            client.get(url).raise_for_status()
            stack.close()
            with pytest.raises(httpx.TransportError):
                client.get(url)
