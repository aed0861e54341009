"""The resources of the project's own plugin as a program sees them."""

from __future__ import annotations

import pulumi

from components.plugin.resources import (
    Certificate,
    ClusterGate,
    CredentialSecret,
    NamespaceGuard,
    RenewalSchedule,
    SigningKeySecret,
)
from identity.plugin_schema import CertificateOutputs
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.simulation import UNKNOWN, a_uuid, issued
from tests.unit.components.world import TENANT, VAULT


def built(*, preview: bool = False) -> RecordingMonitor:
    def build() -> None:
        schedule = RenewalSchedule(
            "schedule",
            lifetimeDays=90,
            renewBeforeDays=45,
            mode="auto",
            cloud="AzurePublicCloud",
            tenantId=TENANT,
            vaultId=VAULT,
            secretName="cpo",
            objectEncoding="utf-8",
            authorityHost="https://login.microsoftonline.com/",
            clientId="client",
            delivered=None,
        )
        certificate = Certificate(
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
        secret = CredentialSecret(
            "secret",
            cloud="AzurePublicCloud",
            tenantId=TENANT,
            vaultId=VAULT,
            secretName="cpo",
            objectEncoding="utf-8",
            tags={"cost_center": "1", "tenant_id": "2"},
            ownerId="an-owner-id",
            clientId="client",
            thumbprint=certificate.outputs["thumbprint"],
            notBefore="2026-11-21T08:55:00Z",
            notAfter="2027-02-19T08:55:00Z",
            renewAfter="2027-01-05T08:55:00Z",
            cannotRenewAfter="2027-02-19T08:55:00Z",
        )
        pulumi.export("slot", schedule.outputs["a"])
        pulumi.export("empty_slot", schedule.outputs["b"])
        pulumi.export("current", schedule.outputs["current"])
        pulumi.export("not_after", certificate.outputs["notAfter"])
        pulumi.export("key_id", certificate.outputs["keyId"])
        pulumi.export("delivered_at", secret.outputs["deliveredAt"])

    return run(build, preview=preview)


def test_inputs_are_on_the_wire_as_they_are_but_what_is_none() -> None:
    assert built().one("idstack:index:RenewalSchedule").inputs == {
        "lifetimeDays": 90,
        "renewBeforeDays": 45,
        "mode": "auto",
        "cloud": "AzurePublicCloud",
        "tenantId": TENANT,
        "vaultId": VAULT,
        "secretName": "cpo",
        "objectEncoding": "utf-8",
        "authorityHost": "https://login.microsoftonline.com/",
        "clientId": "client",
    }


def test_keys_inside_of_inputs_stay_as_they_are() -> None:
    secret = built().one("idstack:index:CredentialSecret")

    assert (secret.inputs["tags"], secret.inputs["thumbprint"]) == (
        {"cost_center": "1", "tenant_id": "2"},
        issued("a").thumbprint,
    )


def test_outputs_are_those_of_the_plugin() -> None:
    outputs = built().stack_outputs.values

    assert outputs == {
        "slot": {"generation": 1, "notBefore": "2026-11-21T08:55:00Z", "validDays": 90},
        "empty_slot": {},
        "current": "a",
        "not_after": "2027-02-19T08:55:00Z",
        "key_id": a_uuid(issued("a").thumbprint),
        "delivered_at": "2026-11-21T09:00:31Z",
    }


def test_a_preview_knows_the_slots_and_the_dates() -> None:
    planned = built(preview=True).stack_outputs.values

    assert planned == {**built().stack_outputs.values, "key_id": UNKNOWN, "delivered_at": UNKNOWN}


def test_no_certificate_offers_its_private_key() -> None:
    recorder = built()

    assert not [name for name in CertificateOutputs.__annotations__ if "private" in name.lower()]
    assert [resource.name for resource in recorder.registered if resource.request.additionalSecretOutputs] == []


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
