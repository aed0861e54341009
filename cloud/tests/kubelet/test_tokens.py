"""Tokens of a pod's ServiceAccount: bound to the pod, kept until four fifths of their life, then requested again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest

from localcloud.core import clock
from localcloud.kubelet.client import ApiClient
from localcloud.kubelet.csi import MountError
from localcloud.kubelet.tokens import ServiceAccountTokens
from localcloud.kubernetes.calls import ApiError, Object

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
