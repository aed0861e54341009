"""The plugin's executable, as the engine starts it and talks to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

EXECUTABLE = Path(__file__).parents[3] / "provider/pulumi-resource-idstack"


def test_an_unknown_type_is_answered_with_the_ones_there_are() -> None:
    urn = "urn:pulumi:dev::idstack::idstack:azure:EntraApplication$idstack:index:Rotation::hc1-ingress"
    with subprocess.Popen([EXECUTABLE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            with pytest.raises(grpc.RpcError) as caught:
                stub.Check(provider_pb2.CheckRequest(urn=urn))
        process.kill()
    assert caught.value.details() == (
        'the idstack plugin has no "idstack:index:Rotation": it has idstack:index:RenewalSchedule, '
        "idstack:index:Certificate, idstack:index:SignInGate, idstack:index:CredentialSecret, "
        "idstack:index:ClusterGate, idstack:index:NamespaceGuard, idstack:index:SigningKey, "
        "idstack:index:IssuerDocuments, idstack:index:SigningKeySecret, idstack:index:EncryptionKey, "
        "idstack:index:EncryptionKeySecret, idstack:index:HsmRoleAssignment, "
        "idstack:index:StackOwner"
    )
