"""`KubernetesEtcdKeyResource`: the Kubernetes Secret with the key with which kube-apiserver encrypts etcd.

HyperShift reads `key`, which has the bytes themselves (openshift/hypershift at 3ee9615,
api/hypershift/v1beta1/hostedcluster_types.go, AESCBCKeySecretKey).
"""

from __future__ import annotations

import base64
from typing import ClassVar

from identity.credentials import etcd_key
from provider.kubernetes_key import KubernetesKeyResource


class KubernetesEtcdKeyResource(KubernetesKeyResource):
    """A Secret with the key of etcd."""

    noun: ClassVar[str] = "encryption key"
    other_key: ClassVar[str] = "the one that encrypts etcd"

    def usable(self, stored: str) -> tuple[bytes, str]:
        """The bytes of the text in base64 that the vault has."""
        return base64.b64decode(stored), etcd_key.key_id(stored)

    def stored(self, held: bytes) -> str:
        """The bytes in base64."""
        return base64.b64encode(held).decode()
