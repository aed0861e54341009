"""The files that the control plane's commands read: keys, tokens, configuration; on tmpfs, 0600."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any, Final

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localcloud.core.clouds import AKS_SERVER_APP_ID
from localcloud.core.cluster import USERS, ClusterKind, token
from localcloud.core.files import write_if_changed
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import Store

_KIND: Final = "apiserver"
_AES_KEY_BYTES: Final = 32
# Without a token: only health and version.
_FOR_EVERYBODY: Final = ("/livez", "/readyz", "/healthz", "/version")


@dataclass(frozen=True)
class Authorities:
    """The services that kube-apiserver trusts to authenticate and to authorize callers."""

    issuer: str
    """`iss` of the tenant's access tokens."""
    metadata_url: str
    """URL of the metadata document that names the tenant's signing keys."""
    token_reviews_url: str
    """URL of the webhook that reviews tokens without their groups (TokenReview)."""
    access_reviews_url: str
    """URL of the webhook that evaluates Azure's role assignments (SubjectAccessReview)."""


def write(state: StateDirectory, store: Store, authorities: Authorities) -> None:
    """Write every file that is missing or differs; keys and tokens are created once and kept sealed in the store."""
    for file, text in (
        (state.control_plane / "tokens.csv", _tokens(store)),
        (state.control_plane / "service-account.pem", store.kept(_KIND, "service-account-key", _service_account_key)),
        (state.control_plane / "encryption.yaml", _encryption(store.kept(_KIND, "encryption-key", _encryption_key))),
        (state.control_plane / "authentication.yaml", yaml.safe_dump(_authentication(authorities, state))),
        (state.control_plane / "token-reviews.yaml", yaml.safe_dump(_webhook(authorities.token_reviews_url, state))),
        (state.control_plane / "access-reviews.yaml", yaml.safe_dump(_webhook(authorities.access_reviews_url, state))),
    ):
        write_if_changed(file, text)


def _authentication(authorities: Authorities, state: StateDirectory) -> dict[str, Any]:
    """Structured authentication: access tokens for the AKS server application, named as AKS names them.

    People are known by `upn`, service principals by object id (kubeguard/guard, `auth/providers/azure`). The groups are
    an expression, for of a plain claim kube-apiserver would look for the source in `_claim_names`, out of this machine.
    """
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": True, "conditions": [{"path": path} for path in _FOR_EVERYBODY]},
        "jwt": [
            {
                "issuer": {
                    "url": authorities.issuer,
                    "discoveryURL": authorities.metadata_url,
                    "certificateAuthority": state.ca_file.read_text(),
                    "audiences": [AKS_SERVER_APP_ID],
                },
                "claimValidationRules": [
                    {"expression": "!has(claims._claim_names)", "message": "the token leaves out the groups"}
                ],
                "claimMappings": {
                    "username": {"expression": "has(claims.upn) ? claims.upn : claims.oid"},
                    "groups": {"expression": "has(claims.groups) ? claims.groups : []"},
                },
            }
        ],
    }


def _webhook(url: str, state: StateDirectory) -> dict[str, Any]:
    """The kubeconfig with which kube-apiserver finds a webhook."""
    cluster = {"server": url, "certificate-authority": str(state.ca_file)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "aks-webhooks", "cluster": cluster}],
        "users": [{"name": "kube-apiserver"}],
        "contexts": [{"name": "aks-webhooks", "context": {"cluster": "aks-webhooks", "user": "kube-apiserver"}}],
        "current-context": "aks-webhooks",
    }


def _tokens(store: Store) -> str:
    """A static token file: token, user, uid, and the groups in quotation marks."""
    return "".join(
        f'{token(store, ClusterKind.API_SERVER, user)},{user.name},{user.name},"{",".join(user.groups)}"\n'
        for user in USERS
    )


def _encryption(key: str) -> str:
    """Secrets are encrypted in etcd, which is on the disk; what was there before stays readable (`identity`)."""
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
