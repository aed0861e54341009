"""What the reader of one cluster's secrets can read: its own, and neither those beside them nor another vault's."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Sequence
from typing import Final

import httpx
import pytest

from tests.engine.changing import bring_up
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

_SOON: Final = 60.0  # seconds until a fresh role is in effect
_OWN, _BESIDE, _ELSEWHERE = "cpo-hc1-json", "cpo-hc2-json", "cpo-hc3-json"


@pytest.fixture(scope="module")
def other_vault(small: LocalStack) -> Iterator[str]:
    """The vault of another group of clusters, in a stack of its own with a reader of its own."""
    vault = {**small.configuration("vault"), "name": "kv-idstack-other"}
    reader = {"source": "created", "name": "reader-of-others"}
    others = small.beside("local-others", "managementCluster", protect=False, vault=vault, keyVaultUser=reader)
    bring_up(others)
    yield "kv-idstack-other"
    OutOfBand(small).vault("DELETE", small.outputs["keyVaultName"], f"/secrets/{_BESIDE}")
    others.pulumi("destroy", "--yes", "--skip-preview", "--stack", others.name)
    others.pulumi("stack", "rm", others.name, "--yes")


def test_a_reader_reads_no_secret_of_another_cluster(small: LocalStack, other_vault: str) -> None:
    somebody = OutOfBand(small)
    vault = small.outputs["keyVaultName"]
    somebody.vault("PUT", vault, f"/secrets/{_BESIDE}", {"value": "another cluster's"})
    somebody.vault("PUT", other_vault, f"/secrets/{_ELSEWHERE}", {"value": "another group's"})
    everything = [(vault, _OWN), (vault, _BESIDE), (other_vault, _ELSEWHERE)]

    _await(small, everything, [200, 200, 403], "the role on the vault ends at the vault")
    change = bring_up(small, keyVaultUserScope="secrets")
    _await(small, everything, [200, 403, 403], "the role on a secret ends at the secret")
    assert change.names("delete") == {"key-vault-user-roles", "key-vault-user-roles-vault"}
    assert "hc1-control-plane-operator-reader-secret" in change.names("create")
    small.idstack("up")
    bring_up(small, keyVaultUserScope="vault")
    _await(small, everything, [200, 200, 403], "and the way back")


def _await(stack: LocalStack, secrets: Sequence[tuple[str, str]], wanted: list[int], why: str) -> None:
    """Return once the reader is answered with these; a fresh role is in effect after a moment."""
    ends_at = time.monotonic() + _SOON
    while (found := [_read(stack, *secret) for secret in secrets]) != wanted:
        assert time.monotonic() < ends_at, f"{why}: {found}"


def _read(stack: LocalStack, vault: str, secret: str) -> int:
    """Status of the vault's answer to a pod that reaches the node's IMDS as the CSI driver does."""
    local = stack.environment
    token = httpx.get(
        f"{local.imds_endpoint}/metadata/identity/oauth2/token",
        params={
            "api-version": "2018-02-01",
            "resource": "https://vault.azure.net",
            "client_id": stack.outputs["keyVaultUserClientId"],
        },
        headers={"Metadata": "true"},
    ).json()["access_token"]
    answer = httpx.get(
        f"{local.key_vault_endpoint}/secrets/{secret}",
        params={"api-version": "7.4"},
        headers={"Host": f"{vault}.vault.azure.net", "Authorization": f"Bearer {token}"},
        verify=ssl.create_default_context(cafile=local.ca_file),
    )
    return answer.status_code
