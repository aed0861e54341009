"""Stage 2 and 4 with the real client library: a secret is read only by an identity that has the role."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from azure.core.credentials import TokenCredential
from azure.core.exceptions import HttpResponseError
from azure.identity import ManagedIdentityCredential
from azure.keyvault.secrets import SecretClient

from identity.credentials.token_credential import MountedCredential
from tests.engine.out_of_band import credential_of
from tests.harness import LocalStack


def _client(stack: LocalStack, credential: TokenCredential) -> SecretClient:
    # The challenge names the real resource, https://vault.azure.net, which a loopback address cannot match.
    return SecretClient(
        stack.environment.key_vault_endpoint, credential, verify_challenge_resource=False, retry_total=0
    )


@pytest.fixture
def key_vault_user(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> ManagedIdentityCredential:
    """The add-on's identity, as a process on the node gets it."""
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", stack.environment.imds_endpoint)
    return ManagedIdentityCredential(client_id=stack.outputs["keyVaultUserClientId"])


def test_the_key_vault_user_reads_a_credential(stack: LocalStack, key_vault_user: ManagedIdentityCredential) -> None:
    secret = _client(stack, key_vault_user).get_secret("cpo-hc1-json")

    assert secret.value is not None
    document = json.loads(secret.value)
    properties = secret.properties
    assert document["client_id"] == stack.control_plane["controlPlaneOperator"]["clientID"]
    assert properties.content_type == "application/json"
    assert properties.tags is not None
    assert set(properties.tags) >= {"renew_after", "cannot_renew_after"}
    assert properties.not_before is not None
    assert properties.expires_on is not None
    assert (properties.expires_on - properties.not_before).days == 90


def test_a_control_plane_identity_reads_no_secret(stack: LocalStack) -> None:
    mounted = Path(
        stack.environment.mounts_dir, "clusters-hc1/probe-nodepool-management/mnt/certs/nodepool-mgmt-hc1-json"
    )

    # Contributor on the resource group: control-plane actions grant no data action.
    with MountedCredential(mounted) as credential, pytest.raises(HttpResponseError) as refused:
        _client(stack, credential).get_secret("cpo-hc1-json")

    assert refused.value.status_code == 403
    assert refused.value.error is not None
    assert refused.value.error.code == "Forbidden"


def test_the_deployer_reads_the_metadata_it_wrote(stack: LocalStack) -> None:
    local = stack.environment
    deployer = credential_of(local, local.deployer_client_id, local.deployer_certificate)

    names = {found.name for found in _client(stack, deployer).list_properties_of_secrets()}

    assert names == {f"{stem}-hc1-json" for stem in (
        "cloud-provider", "nodepool-mgmt", "cpo", "ciro", "ingress", "cncc", "azure-disk", "azure-file", "kms"
    )}  # fmt: skip


def test_status_finds_the_vaults_version_of_each_secret_in_each_pod(stack: LocalStack) -> None:
    found = json.loads(stack.idstack("status", "--json").stdout)["managementCluster"]

    mounts = [mount for of_identity in found["mounts"]["hc1"].values() for mount in of_identity]
    assert found["mounts"]["hc1"].keys() == stack.control_plane.keys()
    assert {mount["state"] for mount in mounts} == {"current"}
    assert len(mounts) == len(stack.control_plane) + 1, "KMS is mounted in two pods"
    assert (found["conditions"], found["unread"]) == ({}, [])
