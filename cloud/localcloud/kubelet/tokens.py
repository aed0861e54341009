"""Tokens of a pod's ServiceAccount, bound to the pod, as its projected volumes have them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from localcloud.core import clock
from localcloud.kubelet.client import ApiClient
from localcloud.kubelet.csi import MountError
from localcloud.kubernetes.calls import ApiError, Object

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
