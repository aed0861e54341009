"""What is secret of the resources of the project's own plugin."""

from __future__ import annotations

from components.plugin.resources import Certificate, ClusterGate, NamespaceGuard, SigningKeySecret
from identity.plugin_schema import CertificateOutputs
from tests.unit.components.recorder import run
from tests.unit.components.world import TENANT, VAULT


def test_no_certificate_offers_its_private_key() -> None:
    def build() -> None:
        Certificate(
            "certificate-a",
            commonName="x",
            keySize=2048,
            lifetimeDays=90,
            generation=1,
            notBefore="2026-11-21T08:55:00Z",
            cloud="AzurePublicCloud",
            tenantId=TENANT,
            applicationId="/applications/cpo",
        )

    [certificate] = run(build).registered

    assert not [name for name in CertificateOutputs.__annotations__ if "private" in name.lower()]
    assert list(certificate.request.additionalSecretOutputs) == []


def test_a_kubeconfig_is_secret_as_an_output_too() -> None:
    def build() -> None:
        ClusterGate(
            "gate",
            clusterId="id",
            clusterUid="uid",
            hasAzureRbac=False,
            kubeconfig="token: x",
            kinds=["v1/namespaces"],
            timeoutSeconds=1,
        )
        NamespaceGuard("guard", clusterId="id", kubeconfig="token: x", context=None, namespace="n", handedOver=False)
        SigningKeySecret(
            "key",
            kubeconfig="token: x",
            context=None,
            clusterId="id",
            namespace="n",
            name="key",
            cloud="AzurePublicCloud",
            tenantId=TENANT,
            vaultId=VAULT,
            secretName="key",
            keyId="kid",
            oldPublicKeys=[],
        )

    secrets = {resource.name: list(resource.request.additionalSecretOutputs) for resource in run(build).registered}

    assert [secrets[name] for name in ("gate", "guard", "key")] == [["kubeconfig"]] * 3
