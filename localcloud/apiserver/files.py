"""The files that the control plane's commands read: keys, tokens, configuration; on tmpfs, 0600."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any, Final

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from identity.access.login import AKS_SERVER_APP_ID
from localcloud.cluster import USERS, ClusterKind, token
from localcloud.state import Store
from localcloud.statedir import StateDirectory
from localcloud.tls import write_if_changed

_KIND: Final = "apiserver"
_AES_KEY_BYTES: Final = 32


@dataclass(frozen=True)
class TrustedIssuer:
    """The tenant as kube-apiserver trusts it: its issuer, where its metadata is, and the authority's PEM for that."""

    issuer: str
    metadata_url: str
    ca: str


def write(state: StateDirectory, store: Store, entra: TrustedIssuer) -> None:
    """Write every file that is missing or differs; keys and tokens are made once and kept sealed in the store."""
    for file, text in (
        (state.control_plane / "tokens.csv", _tokens(store)),
        (state.control_plane / "service-account.pem", _kept(store, "service-account-key", _service_account_key)),
        (state.control_plane / "encryption.yaml", _encryption(_kept(store, "encryption-key", _encryption_key))),
        (state.control_plane / "authentication.yaml", yaml.safe_dump(authentication(entra))),
    ):
        write_if_changed(file, text)


def authentication(entra: TrustedIssuer) -> dict[str, Any]:
    """kube-apiserver's structured authentication: tokens of Entra ID, and without any its health and version.

    AKS asks a webhook instead, which trusts the same issuer and audience and names users and groups by object id, too.
    """
    paths = ("/livez", "/readyz", "/healthz", "/version")
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {
                    "url": entra.issuer,
                    "discoveryURL": entra.metadata_url,
                    "certificateAuthority": entra.ca,
                    "audiences": [AKS_SERVER_APP_ID],
                },
                "claimMappings": {
                    "username": {"claim": "oid", "prefix": ""},
                    "groups": {"claim": "groups", "prefix": ""},
                },
            }
        ],
        "anonymous": {"enabled": True, "conditions": [{"path": path} for path in paths]},
    }


def _tokens(store: Store) -> str:
    """A static token file: token, user, uid, and the groups in quotation marks."""
    return "".join(
        f'{token(store, ClusterKind.API_SERVER, user)},{user.name},{user.name},"{",".join(user.groups)}"\n'
        for user in USERS
    )


def _encryption(key: str) -> str:
    """Secrets are encrypted in etcd, which lies on the disk; what was there before stays readable (`identity`)."""
    providers = [{"aesgcm": {"keys": [{"name": "local", "secret": key}]}}, {"identity": {}}]
    return yaml.safe_dump(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [{"resources": ["secrets"], "providers": providers}],
        }
    )


def _encryption_key() -> str:
    return base64.b64encode(os.urandom(_AES_KEY_BYTES)).decode()


def _service_account_key() -> str:
    return (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        .decode()
    )


def _kept(store: Store, name: str, make: Any) -> str:
    with store.transaction():
        known = store.get(_KIND, name)
        if known is None:
            known = {"sealed": store.seal(make())}
            store.put(_KIND, name, known)
    return store.unseal(known["sealed"])
