"""The resources of the project's own plugin as a program sees them."""

from __future__ import annotations

import pulumi

from components.azure.key_secret_resources import KeySecretArgs, SigningKeySecret
from components.azure.plugin_resources import (
    Certificate,
    ClusterGate,
    CredentialSecret,
    NamespaceGuard,
    RenewalSchedule,
)
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.simulation import UNKNOWN, a_uuid, issued
from tests.unit.components.world import TENANT, VAULT


def built(*, preview: bool = False) -> RecordingMonitor:
    def build() -> None:
        schedule = RenewalSchedule(
            "schedule",
            lifetime_days=90,
            renew_before_days=45,
            mode="auto",
            cloud="AzurePublicCloud",
            tenant_id=TENANT,
            vault_id=VAULT,
            secret_name="cpo",
            object_encoding="utf-8",
            authority_host="https://login.microsoftonline.com/",
            client_id="client",
            delivered=None,
        )
        certificate = Certificate(
            "certificate-a",
            common_name="x",
            key_size=2048,
            lifetime_days=90,
            generation=1,
            not_before="2026-11-21T08:55:00Z",
            cloud="AzurePublicCloud",
            tenant_id=TENANT,
            application_id="/applications/cpo",
        )
        secret = CredentialSecret(
            "secret",
            cloud="AzurePublicCloud",
            tenant_id=TENANT,
            vault_id=VAULT,
            secret_name="cpo",
            object_encoding="utf-8",
            tags={"cost_center": "1", "tenant_id": "2"},
            stack_owner="an-owner-id",
            credential={"thumbprint": certificate.thumbprint},
        )
        pulumi.export("slot", schedule.a)
        pulumi.export("empty_slot", schedule.b)
        pulumi.export("current", schedule.current)
        pulumi.export("not_after", certificate.not_after)
        pulumi.export("key_id", certificate.key_id)
        pulumi.export("delivered_at", secret.delivered_at)

    return run(build, preview=preview)


def test_inputs_are_camel_case_on_the_wire() -> None:
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


def test_outputs_are_snake_case_and_keys_inside_stay_as_they_are() -> None:
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

    assert not hasattr(Certificate, "private_key_pem")
    assert [each.name for each in recorder.registered if each.request.additionalSecretOutputs] == []


def test_a_kubeconfig_is_secret_as_an_output_too() -> None:
    def build() -> None:
        ClusterGate(
            "gate",
            cluster_id="id",
            cluster_uid="uid",
            has_azure_rbac=False,
            kubeconfig="token: x",
            kinds=["v1/namespaces"],
            timeout_seconds=1,
        )
        NamespaceGuard("guard", cluster_id="id", kubeconfig="token: x", context=None, namespace="n", handed_over=False)
        of_key = KeySecretArgs(
            kubeconfig="token: x",
            context=None,
            cluster_id="id",
            namespace="n",
            name="key",
            cloud="AzurePublicCloud",
            tenant_id=TENANT,
            vault_id=VAULT,
            secret_name="key",
            key_id="kid",
        )
        SigningKeySecret("key", of_key, [])

    secrets = {each.name: list(each.request.additionalSecretOutputs) for each in run(build).registered}

    assert [secrets[name] for name in ("gate", "guard", "key")] == [["kubeconfig"]] * 3
