"""`KubernetesSigningKeyResource`: the Kubernetes Secret with the key that signs service-account tokens.

HyperShift reads `key`, and `old-key.pub` with the public keys whose tokens kube-apiserver still has to accept
(openshift/hypershift at 3ee9615, api/hypershift/v1beta1/hostedcluster_types.go:171-177 and
hypershift-operator/controllers/hostedcluster/hostedcluster_controller.go:5311).
"""

from __future__ import annotations

from typing import ClassVar

from identity.credentials import service_account_key
from identity.plugin_schema import KeySecretState, SigningKeySecretInputs
from provider.kubernetes_key import KubernetesKeyResource


class KubernetesSigningKeyResource(KubernetesKeyResource):
    """A Secret with a key, and the public keys of others whose tokens are in use."""

    inputs = SigningKeySecretInputs
    noun: ClassVar[str] = "signing key"
    other_key: ClassVar[str] = "the issuer publishes"

    def usable(self, stored: str) -> tuple[bytes, str]:
        """PKCS#1 in PEM."""
        pem = service_account_key.normalize(stored)
        return pem.encode(), service_account_key.public_half(pem).key_id

    def stored(self, held: bytes) -> str:
        """The same text."""
        return held.decode()

    def beside(self, known: KeySecretState) -> dict[str, str | None]:
        """The old public keys."""
        return {"old-key.pub": "".join(known["oldPublicKeys"]) or None}
