"""Tokens of a pod's ServiceAccount, bound to the pod, as its projected volumes have them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, Final, cast

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from localcloud.azure.keyvault.secrets import Secrets, Vaults
from localcloud.azure.resource_store import Resources
from localcloud.azure.tenant.tokens import key_id
from localcloud.core import clock
from localcloud.core.state_directory import StateDirectory
from localcloud.kubelet.client import ApiClient
from localcloud.kubelet.csi import MountError
from localcloud.kubernetes.calls import ApiError, Object

# Tokens of a hosted cluster's service accounts, instead of HyperShift's `token-minter`.
#
# That sidecar asks the API server of the hosted cluster for a token and writes it into a volume of its pod (hypershift
# `token-minter/tokenminter.go`). No such server runs here: a volume of the driver `DRIVER` names the cluster's signing
# key, which the local cloud takes out of its own vault, and the kubelet signs. No container sees the key.


DRIVER: Final = "hosted-cluster-tokens.localcloud"
_KEYS: Final = ("vaultName", "secretName", "issuer", "subject", "audience", "path")


class HostedClusterTokens:
    """Signs the tokens of one pod's volumes, and renews each before it expires."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._known: dict[tuple[str, ...], tuple[str, datetime]] = {}

    def current(self, attributes: Mapping[str, str]) -> tuple[str, str]:
        """The file's path in the volume, and the token.

        `attributes` name the signing key (`vaultName`, `secretName`), the claims (`issuer`, `subject`, `audience`) and
        the file (`path`). Raises `MountError`.
        """
        if missing := [key for key in _KEYS if not attributes.get(key)]:
            raise MountError(f"volumeAttributes without {', '.join(missing)}")
        asked = tuple(attributes[key] for key in _KEYS)
        token, until = self._known.get(asked, ("", clock.now()))
        if until <= clock.now():
            token = _signed(self._key(attributes["vaultName"], attributes["secretName"]), attributes)
            self._known[asked] = token, clock.now() + timedelta(seconds=LIFETIME) * RENEWED_AT
        return attributes["path"], token

    def _key(self, vault_name: str, secret_name: str) -> RSAPrivateKey:
        with closing(self._state.open_store()) as store:
            vault = Vaults(Resources(store)).named(vault_name)
            secret = Secrets(store).find(vault, secret_name) if vault else None
            if secret is None:
                raise MountError(f"the vault {vault_name} has no signing key {secret_name}")
            pem = Secrets(store).value(secret.current)
        try:
            return cast(RSAPrivateKey, load_pem_private_key(pem.encode(), password=None))
        except ValueError:
            raise MountError(f"the secret {secret_name} in the vault {vault_name} is not a private key") from None


def _signed(key: RSAPrivateKey, attributes: Mapping[str, str]) -> str:
    """A token with the claims and the key id of kube-apiserver (kubernetes `pkg/serviceaccount/jwt.go`)."""
    now = clock.now()
    claims = {
        "iss": attributes["issuer"],
        "sub": attributes["subject"],
        "aud": [attributes["audience"]],
        "iat": now,
        "nbf": now,
        "exp": now + timedelta(seconds=LIFETIME),
    }
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": key_id(key)})


# Seconds, and a share of them: the API server's own default, and the kubelet's rule for renewals (kubernetes
# `pkg/kubelet/token/token_manager.go`).
LIFETIME: Final = 3600
RENEWED_AT: Final = 0.8
_OLDEST: Final = timedelta(hours=24)


class ServiceAccountTokens:
    """Requests the pod's tokens, and renews each before it expires."""

    def __init__(self, client: ApiClient, pod: Object) -> None:
        self._client = client
        self._pod = pod
        self._known: dict[tuple[str, int], tuple[str, datetime]] = {}

    async def current(self, source: Mapping[str, Any]) -> str:
        """The token for a volume's `serviceAccountToken`; raises `MountError` if none can be requested."""
        audience, lifetime = source.get("audience", ""), source.get("expirationSeconds", LIFETIME)
        token, until = self._known.get((audience, lifetime), ("", clock.now()))
        if clock.now() < until:
            return token
        metadata = self._pod["metadata"]
        spec = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": lifetime,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]},
        }
        account = self._pod["spec"].get("serviceAccountName", "default")
        try:
            status = await self._client.create_token(metadata["namespace"], account, spec)
        except ApiError as error:
            raise MountError(f"failed to fetch token: {error}") from None
        kept = min(timedelta(seconds=lifetime) * RENEWED_AT, _OLDEST)
        token = str(status["token"])
        self._known[audience, lifetime] = token, clock.now() + kept
        return token
