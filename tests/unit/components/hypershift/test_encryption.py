"""Encryption of etcd: without KMS, with one key or two, in a vault or a managed HSM; and private access."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.simulation import a_uuid
from tests.unit.components.world import GROUPS, KMS_VAULT, SUBNET, grants, hosted_cluster, lookups

CRYPTO_USER = "12338af0-0e69-4776-bea7-57ae8d297424"
VERSION = "0123456789abcdef0123456789abcdef"
ACTIVE = {"keyVaultName": "kv-etcd-dev", "keyName": "hc1-etcd", "keyVersion": VERSION}
NEXT_VAULT = f"{GROUPS}/etcd-next/providers/Microsoft.KeyVault/vaults/kv-etcd-next"
HSM = f"https://hsm-etcd.managedhsm.azure.net/keys/hc1-etcd/{VERSION}"
ROLE_ASSIGNMENT = "azure-native:authorization:RoleAssignment"


def url(key: Mapping[str, str]) -> str:
    return f"https://{key['keyVaultName']}.vault.azure.net/keys/{key['keyName']}/{key['keyVersion']}"


def with_kms(program: Program, options: Any = None, invokes: Any = None, **kms: Any) -> RecordingMonitor:
    configured = {**hosted_cluster()["kms"], **kms}
    return program(
        clusterSide="hypershift", hostedClusters=[hosted_cluster(kms=configured)], options=options, invokes=invokes
    )


def encryption(recorder: RecordingMonitor) -> dict[str, Any]:
    """`spec.secretEncryption.kms.azure` without the identity."""
    azure = recorder.outputs_of("hc1")["spec"]["secretEncryption"]["kms"]["azure"]
    return {key: value for key, value in azure.items() if key != "kms"}


def described(recorder: RecordingMonitor) -> Mapping[str, Any]:
    found: Mapping[str, Any] = recorder.stack_outputs.values["hostedClusters"]["hc1"]
    return found


def test_without_kms_the_outputs_have_nothing_of_its_identity(program: Program) -> None:
    outputs = described(program(hostedClusters=[hosted_cluster(kms=None)], clusterSide="hypershift"))

    assert "secretEncryption" not in outputs["hostedClusterSpec"]
    assert outputs.keys() & {"encryptionKeys"} == set()
    assert {"kms"}.isdisjoint(outputs["controlPlane"].keys() | outputs["credentialsInUse"].keys())


def test_without_kms_the_users_own_encryption_is_kept(program: Program) -> None:
    own = {"type": "aescbc", "aescbc": {"activeKey": {"name": "hc1-etcd-encryption-key"}}}
    given = {"manifest": {"spec": {"secretEncryption": own}}, "serviceAccountSigningKey": "key"}

    recorder = program(clusterSide="hypershift", hostedClusters=[hosted_cluster(kms=None, hostedCluster=given)])

    applied = recorder.one("kubernetes:hypershift.openshift.io/v1beta1:HostedCluster").inputs
    assert applied["spec"]["secretEncryption"] == own


def test_a_backup_key_in_the_same_vault_is_in_the_specification(program: Program) -> None:
    before = {**ACTIVE, "keyVersion": "f" * 32}

    recorder = with_kms(program, backupKey=url(before), keyVaultAccess="Private")

    assert encryption(recorder) == {"activeKey": ACTIVE, "backupKey": before, "keyVaultAccess": "Private"}
    assert grants(recorder, "hc1-kms") == {(CRYPTO_USER, KMS_VAULT)}
    assert described(recorder)["encryptionKeys"] == {"activeKey": ACTIVE, "backupKey": before}


def test_both_vaults_have_the_role_while_the_key_moves(program: Program) -> None:
    """The API takes no backup key in another vault: HyperShift remembers the key before in its status."""
    active = {**ACTIVE, "keyVaultName": "kv-etcd-next"}

    recorder = with_kms(
        program,
        activeKey=url(active),
        keyVaultResourceGroup="etcd-next",
        backupKey=url(ACTIVE),
        backupKeyVaultResourceGroup="etcd-dev",
    )

    assert encryption(recorder) == {"activeKey": active}
    assert grants(recorder, "hc1-kms") == {(CRYPTO_USER, KMS_VAULT), (CRYPTO_USER, NEXT_VAULT)}
    assert described(recorder)["encryptionKeys"] == {"activeKey": active, "backupKey": ACTIVE}


def hsm_roles(recorder: RecordingMonitor) -> list[Mapping[str, Any]]:
    return [resource.inputs for resource in recorder.all("idstack:index:HsmRoleAssignment")]


def test_in_a_managed_hsm_the_identity_gets_the_hsms_own_role(stack: RecordingMonitor, program: Program) -> None:
    answers = {**lookups(), "azure-native:keyvault:getManagedHsm": {}}

    recorder = with_kms(program, invokes=answers, activeKey=HSM)

    asked = [call.arguments for call in recorder.invoked if call.function == "azure-native:keyvault:getManagedHsm"]
    assert asked == [{"resourceGroupName": "etcd-dev", "name": "hsm-etcd"}]
    active = {**ACTIVE, "keyVaultName": "hsm-etcd"}
    assert encryption(recorder) == {"activeKey": active, "keyVaultType": "ManagedHSM"}
    assert grants(recorder, "hc1-kms") == set()
    principal = stack.one(ROLE_ASSIGNMENT, "hc1-kms-roles-kms-vault-kv-etcd-dev").inputs["principalId"]
    [role] = hsm_roles(recorder)
    assert (role["hsm"], role["scope"], role["principalId"]) == ("hsm-etcd", "/keys/hc1-etcd", principal)
    assert role["roleDefinition"] == "21dbd100-6940-42c2-9190-5d6cb909625b"
    assert uuid.UUID(role["name"]).version == 5
    assert described(recorder)["encryptionKeys"] == {"activeKey": active}
    assert hsm_roles(stack) == []


@pytest.mark.parametrize(
    ("hsm", "key", "scopes"),
    [
        ("hsm-etcd", "HC1-ETCD", [("hsm-etcd", "hc1-etcd")]),
        ("hsm-etcd", "hc1-before", [("hsm-etcd", "hc1-etcd"), ("hsm-etcd", "hc1-before")]),
        ("hsm-next", "hc1-etcd", [("hsm-etcd", "hc1-etcd"), ("hsm-next", "hc1-etcd")]),
    ],
    ids=["another version", "another key", "another HSM"],
)
def test_each_key_of_an_hsm_has_a_role_of_its_own(
    program: Program, hsm: str, key: str, scopes: list[tuple[str, str]]
) -> None:
    answers = {**lookups(), "azure-native:keyvault:getManagedHsm": {}}
    before = HSM.replace("hsm-etcd", hsm).replace("hc1-etcd", key).replace(VERSION, "f" * 32)
    elsewhere = {"backupKeyVaultResourceGroup": "etcd-dev"} if hsm == "hsm-next" else {}

    recorder = with_kms(program, invokes=answers, activeKey=HSM, backupKey=before, **elsewhere)

    roles = hsm_roles(recorder)
    assert [(role["hsm"], role["scope"]) for role in roles] == [(name, f"/keys/{scope}") for name, scope in scopes]
    assert len({role["name"] for role in roles}) == len(roles)
    assert ("backupKey" in encryption(recorder)) == (hsm == "hsm-etcd")


@pytest.mark.parametrize(
    "private",
    [
        {"type": "Swift", "swift": {"podNetworkInstance": "pni"}},
        {
            "type": "PrivateLink",
            "privateLink": {"natSubnetID": SUBNET, "additionalAllowedSubscriptions": [a_uuid("other", "subscription")]},
        },
    ],
)
def test_private_access_is_passed_on_as_it_is(program: Program, private: dict[str, Any]) -> None:
    cluster = hosted_cluster(topology="PublicAndPrivate", private=private)

    recorder = program(hostedClusters=[cluster], clusterSide="hypershift")
    azure = recorder.outputs_of("hc1")["spec"]["platform"]["azure"]

    assert (azure["topology"], azure["private"]) == ("PublicAndPrivate", private)
