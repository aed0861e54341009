"""Tokens of a pod's ServiceAccount: bound to the pod, kept until four fifths of their life, then requested again."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from localcloud.azure.keyvault.secrets import SecretChange, Secrets, Vaults
from localcloud.azure.resource_store import Resources
from localcloud.core import clock
from localcloud.core.clouds import LocalEnvironment
from localcloud.core.state_directory import StateDirectory
from localcloud.kubelet.client import ApiClient
from localcloud.kubelet.csi import HOSTED_TOKENS_DRIVER, HostedClusterTokens, MountError, ServiceAccountTokens
from localcloud.kubernetes.calls import ApiError, Object
from localcloud.testing.arm import GROUP
from tests.kubelet_world import ClusterApi, Kubelet, pod

# Tokens of a hosted cluster's service accounts: signed with the cluster's own key, and again before they end.

VAULT = "kv-hosted"
SUBJECT = "system:serviceaccount:kube-system:capi-provider"
ATTRIBUTES = {
    "vaultName": VAULT,
    "secretName": "hc2-sa-signing-key-1",
    "issuer": "https://hc2oidc.blob.core.windows.net/hc2oidc",
    "subject": SUBJECT,
    "audience": "openshift",
    "path": "token",
}
KEY = generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def state(environment: LocalEnvironment) -> StateDirectory:
    """A local cloud whose vault has the signing key."""
    made = StateDirectory(Path(environment.state_dir))
    made.root.mkdir(exist_ok=True)
    pem = KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    with closing(made.open_store()) as store:
        resource_id = f"{GROUP}/providers/Microsoft.KeyVault/vaults/{VAULT}"
        vault = Vaults(Resources(store)).put({"id": resource_id, "name": VAULT, "properties": {}})
        Secrets(store).set(vault, "hc2-sa-signing-key-1", pem, SecretChange())
        Secrets(store).set(vault, "text", "text", SecretChange())
    return made


def test_a_token_is_what_the_hosted_api_server_would_issue(state: StateDirectory) -> None:
    path, token = HostedClusterTokens(state).current(ATTRIBUTES)
    public = KEY.public_key()
    # kubernetes pkg/serviceaccount/jwt.go, keyIDFromPublicKey
    digest = hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    claims = jwt.decode(token, public, algorithms=["RS256"], audience="openshift", issuer=ATTRIBUTES["issuer"])

    assert path == "token"
    assert jwt.get_unverified_header(token)["kid"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert (claims["sub"], claims["aud"], claims["exp"] - claims["nbf"]) == (SUBJECT, ["openshift"], 3600)


def test_a_pod_finds_the_token_where_the_sidecar_writes_it(
    cluster: ClusterApi, kubelet: Kubelet, state: StateDirectory
) -> None:
    volume = {
        "name": "token",
        "csi": {"driver": HOSTED_TOKENS_DRIVER, "readOnly": True, "volumeAttributes": ATTRIBUTES},
    }
    cluster.run(pod("capi", volume))

    token = (kubelet.tree("capi") / "mnt/token/token").read_text()

    assert jwt.decode(token, options={"verify_signature": False})["sub"] == SUBJECT


@pytest.mark.parametrize(("after", "is_renewed"), [(2870, False), (2890, True)])
def test_a_token_is_signed_again_at_four_fifths_of_its_life(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch, after: int, is_renewed: bool
) -> None:
    held, start = HostedClusterTokens(state), clock.now()
    monkeypatch.setattr(clock, "now", lambda: start)
    first = held.current(ATTRIBUTES)
    monkeypatch.setattr(clock, "now", lambda: start + timedelta(seconds=after))

    assert (held.current(ATTRIBUTES) != first) is is_renewed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"secretName": "none"}, f"the vault {VAULT} has no signing key none"),
        ({"vaultName": "none"}, "the vault none has no signing key"),
        ({"secretName": "text"}, f"the secret text in the vault {VAULT} is not a private key"),
        ({"subject": "", "path": ""}, "volumeAttributes without subject, path"),
    ],
)
def test_what_cannot_be_signed_holds_the_volume_up(
    state: StateDirectory, changed: dict[str, str], message: str
) -> None:
    with pytest.raises(MountError, match=message):
        HostedClusterTokens(state).current({**ATTRIBUTES, **changed})


POD: Object = {
    "metadata": {"namespace": "clusters-hc1", "name": "cpo-1", "uid": "u1"},
    "spec": {"serviceAccountName": "control-plane-operator"},
}


class Issuer:
    """Counts what it issues."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Object]] = []

    async def create_token(self, namespace: str, service_account: str, spec: Object) -> Object:
        self.requests.append((namespace, service_account, spec))
        return {"token": f"token-{len(self.requests)}"}


def tokens(issuer: Any, **spec: Any) -> ServiceAccountTokens:
    return ServiceAccountTokens(cast(ApiClient, issuer), {**POD, "spec": {**POD["spec"], **spec}})


def test_a_token_is_requested_for_the_pod_and_its_audience() -> None:
    issuer = Issuer()

    found = asyncio.run(tokens(issuer).current({"audience": "openshift", "expirationSeconds": 900, "path": "token"}))

    assert found == "token-1"
    assert issuer.requests == [
        (
            "clusters-hc1",
            "control-plane-operator",
            {
                "audiences": ["openshift"],
                "expirationSeconds": 900,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "cpo-1", "uid": "u1"},
            },
        )
    ]


@pytest.mark.parametrize(
    ("lifetime", "after", "token"),
    [(3607, 2880, "token-1"), (3607, 2890, "token-2"), (864000, 86399, "token-1"), (864000, 86401, "token-2")],
)
def test_a_token_is_renewed_in_time(monkeypatch: pytest.MonkeyPatch, lifetime: int, after: int, token: str) -> None:
    held, start = tokens(Issuer()), clock.now()
    source = {"path": "token", "expirationSeconds": lifetime}
    monkeypatch.setattr(clock, "now", lambda: start)
    assert asyncio.run(held.current(source)) == "token-1"

    monkeypatch.setattr(clock, "now", lambda: start + timedelta(seconds=after))

    assert asyncio.run(held.current(source)) == token


def test_each_audience_has_a_token_of_its_own() -> None:
    held = tokens(Issuer())

    async def both() -> tuple[str, str]:
        return await held.current({"audience": "a"}), await held.current({"audience": "b"})

    assert asyncio.run(both()) == ("token-1", "token-2")


def test_a_refusal_holds_the_volume_up() -> None:
    class Refusing:
        async def create_token(self, *_: Any) -> Object:
            raise ApiError(404, "NotFound", 'serviceaccounts "control-plane-operator" not found')

    with pytest.raises(MountError, match=r'failed to fetch token: .*"control-plane-operator" not found'):
        asyncio.run(tokens(Refusing()).current({"path": "token"}))
