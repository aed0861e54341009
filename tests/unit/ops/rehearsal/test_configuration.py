"""The copy of a stack's configuration: what is replaced, what stays, and which stacks come along."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from ops.rehearsal.configuration import copy_configuration, families, family, local_names, with_own_names
from ops.stack.environment import is_local
from ops.stack.errors import CommandError
from tests.unit.ops.rehearsal.world import DOCUMENTS, OWN, SUBSCRIPTION, cluster, copy_of, stack_file

_STACK_NAMES = st.text(alphabet="abcDEF019-_.", min_size=1, max_size=12)
_KEY = "https://kv-etcd.vault.usgovcloudapi.net/keys/hc1-etcd/{}"


def config_of(document: dict[str, Any], **names: Any) -> dict[str, Any]:
    """The copy's keys without their namespace."""
    config = copy_of(document, **names).document["config"]
    return {key.removeprefix("idstack:"): value for key, value in config.items()}


@pytest.mark.parametrize(
    ("stack", "timeout"),
    [("dev", 600), ("stage", 600), ("prod", 900), ("local", 60), ("local-both", 60), ("local-hypershift", 60)],
)
def test_every_stack_of_this_project_can_be_copied(stack: str, timeout: int) -> None:
    copy = copy_configuration(stack, stack_file(stack), local_names((stack,)), DOCUMENTS, 1)

    propagation = copy.settings.credentials.propagation
    assert copy.settings.tenant_id == LOCAL_TENANT_ID
    assert OWN not in json.dumps(copy.document)
    assert set(copy.document) == {"config"}, "neither a backend nor a secrets provider"
    assert (propagation.settle_seconds, propagation.successes, propagation.timeout_seconds) == (2, 5, timeout)
    assert copy.left_out == ()


def test_tenant_subscription_and_every_resource_id_are_the_local_clouds() -> None:
    vnet = f"{SUBSCRIPTION}/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/net"
    changed = cluster(vnetID=vnet, subnetID=f"{vnet}/subnets/nodes")
    config = config_of(stack_file(tenantId=OWN, subscriptionId=OWN, hostedClusters=[changed]))

    assert (
        config.items()
        >= {"cloud": "local", "tenantId": LOCAL_TENANT_ID, "subscriptionId": LOCAL_SUBSCRIPTION_ID}.items()
    )
    assert config["hostedClusters"][0]["vnetID"] == vnet.replace(OWN, LOCAL_SUBSCRIPTION_ID)


def test_whatever_is_not_anothers_stays_as_it_is() -> None:
    config = config_of(stack_file("stage"))
    own = stack_file("stage")["config"]

    for key in ("roles", "location", "resourceGroup", "vault", "probe"):
        assert json.dumps(config[key]).replace(LOCAL_SUBSCRIPTION_ID, "x") == json.dumps(own[f"idstack:{key}"]).replace(
            "00000000-0000-0000-0000-000000000000", "x"
        ), key


def test_a_placeholder_has_the_same_stand_in_at_base_and_head() -> None:
    another = cluster(name="hc0", infraID="hc0", issuerURL="https://a.example.com/hc0")
    base, head = (
        config_of(stack_file(hostedClusters=clusters))["hostedClusters"]
        for clusters in ([cluster()], [another, cluster()])
    )

    key = base[0]["kms"]["activeKey"]
    assert key == head[1]["kms"]["activeKey"]
    assert not key.endswith("/" + "0" * 32)
    assert key != config_of(stack_file(hostedClusters=[cluster()]), seed=2)["hostedClusters"][0]["kms"]["activeKey"]


def test_a_key_of_another_cloud_gets_the_local_suffix() -> None:
    version = "0123456789abcdef0123456789abcdef"
    changed = cluster(kms={"activeKey": _KEY.format(version)})
    config = config_of(stack_file(cloud="AzureUSGovernmentCloud", hostedClusters=[changed]))

    assert config["hostedClusters"][0]["kms"]["activeKey"] == f"https://kv-etcd.vault.azure.net/keys/hc1-etcd/{version}"


@pytest.mark.parametrize("credential", [{"file": "/secure/ingress.json"}, {"secretName": "ingress-mine"}])
def test_a_document_from_elsewhere_is_issued_by_the_local_data_plane(credential: dict[str, str]) -> None:
    identity = f"{SUBSCRIPTION}/resourceGroups/m/providers/Microsoft.ManagedIdentity/userAssignedIdentities/ingress"
    managed = {"source": "managed-identity", "resourceId": identity, "credential": credential}
    copy = copy_of(stack_file(hostedClusters=[cluster(identities={"ingress": managed})]))

    [(path, issued)] = copy.documents.items()
    found = copy.settings.hosted_clusters[0].identities["ingress"]
    assert issued == identity.replace(OWN, LOCAL_SUBSCRIPTION_ID)
    assert found.credential is not None
    assert found.credential.file == path
    assert found.secret_name == credential.get("secretName", "ingress-hc1-json")
    assert bool(copy.left_out) == ("secretName" in credential)


def test_nothing_of_this_machine_is_run_or_signs_in() -> None:
    access = {"resourceGroup": "aks", "name": "aks", "kubeconfig": "prod.kubeconfig", "context": "prod"}
    workload = {"name": "mine", "image": "mine:1", "command": ["rm"], "args": ["-r"], "identities": ["disk"]}
    copy = copy_of(stack_file(managementCluster=access, hostedClusters=[cluster(workloads=[workload])]))

    config = copy.document["config"]
    assert set(config["idstack:managementCluster"]) == {"resourceGroup", "name"}
    assert len(copy.left_out) == 1
    [found] = config["idstack:hostedClusters"][0]["workloads"]
    assert (found["command"], found["args"]) == (["sleep", "infinity"], [])


def test_encrypted_values_are_refused_with_their_places() -> None:
    document = stack_file(tags={"team": {"secure": "v1:cipher"}})

    with pytest.raises(CommandError) as refused:
        copy_of(document)

    assert "idstack:tags" in str(refused.value)
    assert "cipher" not in str(refused.value)
    with pytest.raises(CommandError, match="idstack:location"):
        copy_of(stack_file(location="East US"))


def test_encrypted_values_of_others_stay_behind_and_that_is_told() -> None:
    document = stack_file()
    document["config"] |= {"other:token": {"secure": "v1:cipher"}, "other:plain": {"nested": ["x"]}}
    document["config"]["azuread:nested"] = {"in": [{"secure": "v1:cipher"}]}
    copy = copy_of(document)

    assert copy.left_out == tuple(
        f"{key}: encrypted, and not a key of this project" for key in ("azuread:nested", "other:token")
    )
    assert "cipher" not in json.dumps(copy.document)
    assert copy.document["config"]["other:plain"] == {"nested": ["x"]}


@pytest.mark.parametrize(("source", "told"), [("created", 1), ("aks-addon", 0)])
def test_nodes_that_carry_the_stacks_own_identity_are_told(source: str, told: int) -> None:
    user = {"source": source, **({"name": "reader"} if source == "created" else {})}
    found = copy_of(stack_file(keyVaultUser=user)).left_out

    assert len([remark for remark in found if remark.startswith("keyVaultUser: it is attached to the nodes")]) == told


@pytest.mark.parametrize("named", [{}, {"keyVaultType": "ManagedHSM"}])
@pytest.mark.parametrize(
    ("cloud", "suffix"), [("AzurePublicCloud", "azure.net"), ("AzureUSGovernmentCloud", "usgovcloudapi.net")]
)
def test_a_managed_hsm_is_rehearsed_as_a_vault_and_said_so(cloud: str, suffix: str, named: dict[str, str]) -> None:
    active, backup = "1" * 32, "2" * 32
    keys = {
        "activeKey": f"https://hsm-etcd.managedhsm.{suffix}/keys/etcd/{active}",
        "backupKey": {"keyVaultName": "hsm-etcd", "keyName": "etcd", "keyVersion": backup},
    }
    copy = copy_of(stack_file(cloud=cloud, hostedClusters=[cluster(kms={**keys, **named})]))

    [hosted] = copy.settings.hosted_clusters
    assert hosted.kms is not None
    assert not hosted.kms.is_managed_hsm
    found = [(key.key_vault_name, key.key_version) for key in (hosted.kms.active_key, hosted.kms.backup_key) if key]
    assert found == [("hsm-etcd", active), ("hsm-etcd", backup)]
    assert copy.left_out == ("hostedClusters[0].kms: its managed HSM is a vault, on which the role is assigned by ARM",)
    with pytest.raises(CommandError, match=f"the vaults of this cloud are at vault.{suffix}"):
        copy_of(stack_file(cloud=cloud, hostedClusters=[cluster(kms={**keys, "keyVaultType": "KeyVault"})]))


@pytest.mark.parametrize(
    ("cloud", "named", "told"),
    [
        ("AzureUSGovernmentCloud", {}, r"vaults of this cloud are at vault\.usgovcloudapi\.net"),
        ("AzurePublicCloud", {"keyVaultType": "ManagedHSM"}, r"HSMs of this cloud are at managedhsm\.azure\.net"),
    ],
    ids=["another cloud", "another service"],
)
def test_a_key_that_the_program_refuses_does_not_pass_as_one_of_the_local_vaults(
    cloud: str, named: dict[str, str], told: str
) -> None:
    kms = {"activeKey": f"https://kv-etcd.vault.azure.net/keys/etcd/{'1' * 32}", **named}

    with pytest.raises(CommandError, match=rf"^hostedClusters\[0\]\.kms\.activeKey: found .*{told}"):
        copy_of(stack_file(cloud=cloud, hostedClusters=[cluster(kms=kms)]))


def test_a_shared_stack_comes_with_its_clusters_and_the_other_way_round() -> None:
    shared = {"idstack:sharedStack": "organization/idstack/shared"}
    files: dict[str, dict[str, Any]] = {
        "hc1": {"config": shared},
        "hc2": {"config": shared},
        "lonely": {"config": {}},
        "shared": {"config": {}},
    }

    assert family("shared", files) == ("shared", "hc1", "hc2")
    assert family("hc2", files) == ("shared", "hc2")
    assert family("lonely", files) == ("lonely",)
    assert family("none", files) == ()
    of_dev = {"config": {"idstack:sharedStack": "organization/idstack/dev"}}
    before: dict[str, Any] = {"dev": {}, "hc2": of_dev, "prod": {}}
    after = {**before, "hc1": of_dev}
    assert families("hc1", before, after) == (("dev",), ("dev", "hc1")), "a new stack begins with what it shares"
    assert families("dev", before, after) == (("dev", "hc2"), ("dev", "hc2", "hc1"))
    assert families("hc1", after, before) == (("dev", "hc1"), ())
    assert families("new", before, {**before, "new": {}}) == ((), ("new",))


def test_the_shared_stack_is_named_as_in_the_rehearsal() -> None:
    document = stack_file(sharedStack="contoso/idstack/shared-dev", vault=None, keyVaultUser=None)

    assert copy_of(document, "dev", "shared-dev").shared_stack == "local-shared-dev"
    with pytest.raises(CommandError, match=r"has no Pulumi\.shared-dev\.yaml"):
        copy_of(document)


@given(st.lists(_STACK_NAMES, unique=True, min_size=1, max_size=6))
def test_every_stack_has_a_local_name_of_its_own(stacks: list[str]) -> None:
    names = local_names(stacks)
    found = [names[stack] for stack in stacks]

    assert len(set(found)) == len(stacks)
    assert all(is_local(name) for name in found)
    own = with_own_names("urn:pulumi:local-prod-hc1::x and local-prod", local_names(("prod", "prod-hc1")))
    assert own == "urn:pulumi:prod-hc1::x and prod", "the report speaks of the stacks' own names"
