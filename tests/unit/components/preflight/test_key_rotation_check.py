"""The role on a vault goes only if HyperShift, as far as it can be asked, no longer needs the key there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.components.existing_cluster import CLUSTER, ExistingClusterScenario
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import hosted_cluster

VERSION = "0123456789abcdef0123456789abcdef"
PATH = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/hc1"
BACKUP = "hostedClusters[0].kms.backupKey"
Run = Callable[..., RecordingMonitor]


def url(vault: str) -> str:
    service = "managedhsm" if vault.startswith("hsm-") else "vault"
    return f"https://{vault}.{service}.azure.net/keys/hc1-etcd/{VERSION}"


def key(vault: str) -> dict[str, str]:
    return {"keyVaultName": vault, "keyName": "hc1-etcd", "keyVersion": VERSION}


@pytest.fixture
def run(existing_cluster: ExistingClusterScenario, program: Program) -> Run:
    """Runs the program with these keys after a run with those of `last`; the stack applies the HostedCluster."""

    def run(active: str, backup: str | None = None, last: tuple[str, ...] = ("kv-b", "kv-a"), **stack: Any) -> Any:
        keys = dict(zip(("activeKey", "backupKey"), map(key, last), strict=False))
        described = {"controlPlane": {}, "credentialsInUse": {}, "encryptionKeys": keys}
        outputs = {"outputs": {"hostedClusters": {"hc1": described}}, "secretOutputNames": []}
        kms = {"activeKey": url(active), **({"backupKey": url(backup)} if backup else {})}
        cluster = hosted_cluster(kms=kms, hostedCluster={"manifest": {}, "serviceAccountSigningKey": "key"})
        return program(
            invokes={**existing_cluster.answers, "pulumi:pulumi:readStackOutputs": outputs},
            options={"refused": True},
            lookups_only=True,
            **{"clusterSide": "hypershift", "managementCluster": CLUSTER, "hostedClusters": [cluster], **stack},
        )

    return run


def hypershift_says(
    existing_cluster: ExistingClusterScenario, active: str, target: str | None = None, wanted: str = "kv-b"
) -> None:
    status = {name: {"azure": key(vault)} for name, vault in (("activeKey", active), ("targetKey", target)) if vault}
    kms = {"azure": {"activeKey": key(wanted)}}
    existing_cluster.api.documents[PATH] = {
        "spec": {"secretEncryption": {"kms": kms}},
        "status": {"secretEncryption": status},
    }


def test_a_move_without_backup_key_is_refused_before_anybody_is_asked(
    existing_cluster: ExistingClusterScenario, run: Run
) -> None:
    recorder = run("kv-b", last=("kv-a",))

    assert recorder.problems == [(BACKUP, "kms-key-moved")]


def test_the_backup_key_stays_while_hypershift_encrypts_again(
    existing_cluster: ExistingClusterScenario, run: Run
) -> None:
    hypershift_says(existing_cluster, active="kv-a", target="kv-b")

    assert run("kv-b").problems == [(BACKUP, "kms-rotation-unfinished")]
    assert run("kv-b", "kv-a").failure is None


def test_a_cluster_that_is_being_updated_is_asked_as_well(existing_cluster: ExistingClusterScenario, run: Run) -> None:
    """The stack makes the cluster: only one that is not there has no HostedCluster."""
    hypershift_says(existing_cluster, active="kv-a", target="kv-b")
    asked = "azure-native:containerservice:getManagedCluster"
    existing_cluster.answers[asked] = {**existing_cluster.answers[asked], "provisioningState": "Updating"}
    created = {**CLUSTER, "create": {"nodePool": {"vmSize": "Standard_D4s_v5"}, "azureRBAC": True}}

    assert run("kv-b", managementCluster=created).problems == [(BACKUP, "kms-rotation-unfinished")]


def test_a_managed_hsm_keeps_its_role_in_the_same_way(existing_cluster: ExistingClusterScenario, run: Run) -> None:
    existing_cluster.answers["azure-native:keyvault:getManagedHsm"] = {}
    hypershift_says(existing_cluster, active="hsm-a", target="hsm-b", wanted="hsm-b")

    assert run("hsm-b", last=("hsm-b", "hsm-a")).problems == [(BACKUP, "kms-rotation-unfinished")]
    assert run("hsm-b", "hsm-a", last=("hsm-b", "hsm-a")).failure is None


def test_the_backup_key_may_go_once_hypershift_has_finished(
    existing_cluster: ExistingClusterScenario, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("pulumi.log.info", told.append)
    hypershift_says(existing_cluster, active="kv-b")

    assert run("kv-b").failure is None
    assert [message for message in told if "backupKey" in message] == []
    assert run("kv-b", "kv-a").failure is None
    assert len([message for message in told if "backupKey" in message]) == 1, "it says that the backup key may go"


def test_a_hosted_cluster_that_is_not_there_needs_no_key(run: Run) -> None:
    assert run("kv-b").failure is None


def test_a_run_that_failed_halfway_is_not_undone_under_hypershifts_feet(
    existing_cluster: ExistingClusterScenario, run: Run
) -> None:
    """The specification has the new key already, the outputs are still those of the run before."""
    hypershift_says(existing_cluster, active="kv-a")

    assert run("kv-a", last=("kv-a",)).problems == [(BACKUP, "kms-rotation-unfinished")]


def test_a_status_that_cannot_be_read_is_a_warning(
    existing_cluster: ExistingClusterScenario, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", warnings.append)
    existing_cluster.api.unreadable.add(PATH)

    assert run("kv-b").failure is None
    assert run("kv-b", managementCluster=None, keyVaultUser=_OWN, hostedClusters=[_cli_made("kv-b")]).failure is None
    assert run("kv-b", last=("kv-b",)).failure is None
    assert len(warnings) == 2, "a warning for each role that goes, none without"
    assert all("the KMS identity of hc1 loses its role on kv-a" in warning for warning in warnings)
    assert f"may not read {PATH}" in warnings[0]
    assert "the stack has no managementCluster" in warnings[1]


_OWN = {"source": "created", "name": "key-vault-user"}


def _cli_made(active: str) -> dict[str, Any]:
    """A hosted cluster whose HostedCluster the stack does not apply."""
    return hosted_cluster(kms={"activeKey": url(active)})


def test_a_cluster_of_the_cli_is_asked_about_if_a_role_goes(
    existing_cluster: ExistingClusterScenario, run: Run
) -> None:
    hypershift_says(existing_cluster, active="kv-a", target="kv-b")

    assert run("kv-b", hostedClusters=[_cli_made("kv-b")]).problems == [(BACKUP, "kms-rotation-unfinished")]
    assert run("kv-b", last=("kv-b",), hostedClusters=[_cli_made("kv-b")]).failure is None
