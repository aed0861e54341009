"""The plugin's executable, as the engine starts it and talks to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from identity.clouds import LOCAL_TENANT_ID
from identity.credentials import rfc3339
from localcloud.testing.azure import KeyCredential, LocalAzure
from localcloud.testing.azure import entra_app as app
from localcloud.testing.hosts import Certificates, Serve
from plugin.values import Props, Secret, from_struct, to_struct
from tests.unit.provider.conftest import ADDRESS

Stub = provider_pb2_grpc.ResourceProviderStub

EXECUTABLE = Path(__file__).parents[3] / "provider/pulumi-resource-idstack"
CERTIFICATE = {
    "commonName": "hc1-ingress",
    "keySize": 2048,
    "lifetimeDays": 90,
    "generation": 1,
    "notBefore": "2026-01-31T09:25:15Z",
    "cloud": "local",
    "tenantId": LOCAL_TENANT_ID,
    "applicationId": "/applications/6f2c1e7a-0000-4000-8000-00000000cccc",
}


def urn(resource: str) -> str:
    return f"urn:pulumi:dev::idstack::idstack:azure:EntraApplication$idstack:index:{resource}::hc1-ingress"


@pytest.fixture(scope="module")
def stub(certificates: Certificates) -> Iterator[Stub]:
    """The plugin, 46 days after 2026-01-31; it trusts the local Entra."""
    variables = {"IDSTACK_CLOCK": "2026-03-18T09:30:15Z", "REQUESTS_CA_BUNDLE": str(certificates.ca_file)}
    with subprocess.Popen([EXECUTABLE], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
            yield Stub(channel)
        process.kill()


def check(stub: Stub, resource: str, new: Props, old: Props | None = None) -> Props:
    """The checked inputs, as the engine keeps them."""
    request = provider_pb2.CheckRequest(urn=urn(resource), olds=to_struct(old or {}), news=to_struct(new))
    answer = stub.Check(request)
    assert not answer.failures
    return from_struct(answer.inputs)


def test_a_renewal_is_a_detailed_diff_of_inputs(stub: Stub) -> None:
    old = {
        "current": "a",
        "a": {"generation": 1, "notBefore": "2026-01-31T09:25:15Z", "validDays": 90},
        "b": {"generation": 2, "notBefore": "2026-01-31T09:25:14Z", "validDays": 90},
        "renewal": "first certificate",
    }
    new = old | {
        "current": "b",
        "b": {"generation": 3, "notBefore": "2026-03-18T09:25:15Z", "validDays": 90},
        "renewal": "slot b, due since 2026-03-17T09:25:15Z",
    }
    diff = stub.Diff(
        provider_pb2.DiffRequest(
            urn=urn("RenewalSchedule"),
            id="hc1-ingress",
            olds=to_struct(old),
            old_inputs=to_struct(old),
            news=to_struct(new),
        )
    )

    assert list(diff.replaces) == []
    assert set(diff.detailedDiff) == {"b.generation", "b.notBefore", "current", "renewal"}
    assert {change.kind for change in diff.detailedDiff.values()} == {provider_pb2.PropertyDiff.UPDATE}
    assert all(change.inputDiff for change in diff.detailedDiff.values()), (
        "a diff of an output alone prints as a deletion"
    )


def issued(stub: Stub) -> Props:
    """The state of a certificate, valid now, whose key the plugin's process has."""
    properties = CERTIFICATE | {"notBefore": rfc3339.render(datetime.now(UTC) - timedelta(minutes=5))}
    request = provider_pb2.CreateRequest(urn=urn("Certificate"), properties=to_struct(properties))
    return from_struct(stub.Create(request).properties)


def test_no_key_crosses_the_wire(stub: Stub) -> None:
    request = provider_pb2.CreateRequest(urn=urn("Certificate"), properties=to_struct(CERTIFICATE))
    created = stub.Create(request)
    state = from_struct(created.properties)

    assert created.id == state["thumbprint"]
    assert not any(isinstance(value, Secret) for value in state.values())
    assert b"PRIVATE KEY" not in created.SerializeToString()


def test_the_next_generation_replaces_a_certificate(stub: Stub) -> None:
    new = {**CERTIFICATE, "generation": 2, "notBefore": "2026-03-18T09:25:15Z"}
    old = to_struct(CERTIFICATE)
    request = provider_pb2.DiffRequest(urn=urn("Certificate"), id="x", olds=old, old_inputs=old, news=to_struct(new))
    diff = stub.Diff(request)

    assert sorted(diff.replaces) == ["generation", "notBefore"]
    assert diff.deleteBeforeReplace


def test_a_gate_signs_in_to_entra(stub: Stub, azure: LocalAzure, serve: Serve) -> None:
    state = issued(stub)
    application = azure.directory.create_application("hc1-ingress")
    azure.directory.create_service_principal(application.app_id)
    registration = KeyCredential.of(x509.load_pem_x509_certificate(state["certificatePem"].encode()))
    azure.directory.set_key_credentials(application.object_id, [registration])
    inputs = check(
        stub,
        "SignInGate",
        {
            "authorityHost": f"{serve(app(azure))}/",
            **ADDRESS,
            "clientId": application.app_id,
            "thumbprint": state["thumbprint"],
            "registration": registration.key_id,
            "scope": "https://management.core.windows.net//.default",
            "successes": 2,
            "settleSeconds": 0,
            "timeoutSeconds": 30,
        },
    )
    created = stub.Create(provider_pb2.CreateRequest(urn=urn("SignInGate"), properties=to_struct(inputs)))

    assert from_struct(created.properties)["provenAt"]


def test_an_unknown_type_is_answered_with_the_ones_there_are(stub: Stub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(provider_pb2.CheckRequest(urn=urn("Rotation"), news=to_struct({})))
    assert caught.value.details() == (
        'the idstack plugin has no "idstack:index:Rotation": it has idstack:index:RenewalSchedule, '
        "idstack:index:Certificate, idstack:index:SignInGate, idstack:index:CredentialSecret, "
        "idstack:index:ClusterGate, idstack:index:NamespaceGuard, idstack:index:SigningKey, "
        "idstack:index:IssuerDocuments, idstack:index:SigningKeySecret, idstack:index:EncryptionKey, "
        "idstack:index:EncryptionKeySecret, idstack:index:HsmRoleAssignment, "
        "idstack:index:StackOwner"
    )
