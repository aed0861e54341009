"""A Secret with a signing key that HyperShift cannot read is refused before anything is made."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from identity.credentials import service_account_key
from tests.unit.components.existing_cluster import CLUSTER, ExistingClusterScenario
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import hosted_cluster

PATH = "/api/v1/namespaces/clusters/secrets/hc1-key"
PLACE = "hostedClusters[0].hostedCluster.serviceAccountSigningKey"
PKCS1 = service_account_key.make(2048)
Run = Callable[..., RecordingMonitor]


def pkcs8(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | None = None) -> str:
    loaded: Any = key or serialization.load_pem_private_key(PKCS1.encode(), None)
    return str(loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


@pytest.fixture
def run(existing_cluster: ExistingClusterScenario, program: Program) -> Run:
    """Runs the program with a HostedCluster that names the Secret, in which there is this."""

    def run(key: bytes | None) -> Any:
        data = {} if key is None else {"key": base64.b64encode(key).decode()}
        existing_cluster.api.documents[PATH] = {"data": data}
        given = {"manifest": {}, "serviceAccountSigningKey": "hc1-key"}
        return program(
            invokes=existing_cluster.answers,
            options={"refused": True},
            lookups_only=True,
            clusterSide="hypershift",
            managementCluster=CLUSTER,
            hostedClusters=[hosted_cluster(hostedCluster=given)],
        )

    return run


@pytest.mark.parametrize("pem", [PKCS1, f"a comment\n{PKCS1}", PKCS1.replace("\n", "\r\n")])
def test_a_key_in_pkcs1_is_taken(run: Run, pem: str) -> None:
    assert run(pem.encode()).failure is None


@pytest.mark.parametrize(
    "key",
    [
        pkcs8().encode(),
        pkcs8(ec.generate_private_key(ec.SECP256R1())).encode(),
        PKCS1.replace("BEGIN", "BEGAN").encode(),
        b"\xff",
        None,
    ],
    ids=["PKCS#8", "no RSA key", "no PEM", "no text", "nothing"],
)
def test_a_key_that_hypershift_cannot_read_is_refused(run: Run, key: bytes | None) -> None:
    assert run(key).problems == [(PLACE, "signing-key-secret-unusable")]


def test_a_secret_that_is_missing_or_may_not_be_read_is_left_to_hypershift(
    existing_cluster: ExistingClusterScenario, run: Run
) -> None:
    existing_cluster.api.unreadable.add(PATH)
    assert run(b"anything").failure is None
    existing_cluster.api.unreadable.clear()
    existing_cluster.api.codes[PATH] = 404
    assert run(b"anything").failure is None
