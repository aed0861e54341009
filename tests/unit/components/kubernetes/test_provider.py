"""The explicit Kubernetes provider and its kubeconfig."""

from __future__ import annotations

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import GROUPS, KUBECONFIG

KUBERNETES = "pulumi:providers:kubernetes"


def test_the_kubernetes_provider_gets_the_kubeconfigs_contents_as_a_secret(stack: RecordingMonitor) -> None:
    provider = stack.one(KUBERNETES, "kubernetes")

    assert provider.inputs["kubeconfig"] == KUBECONFIG
    assert provider.secrets == {"kubeconfig"}


def test_objects_on_the_cluster_survive_a_new_address_of_it(stack: RecordingMonitor) -> None:
    assert stack.one(KUBERNETES).inputs["clusterIdentifier"] == (
        f"{GROUPS}/aks-dev/providers/Microsoft.ContainerService/managedClusters/aks-mgmt-dev"
    )


def test_a_change_by_hand_is_repaired_in_fields_of_any_owner(stack: RecordingMonitor) -> None:
    assert stack.one(KUBERNETES).inputs["enablePatchForce"] in (True, "true")


def test_the_kubeconfigs_context_can_be_chosen(program: Program) -> None:
    cluster = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "kubeconfig": "kubeconfig", "context": "admin"}

    assert program(managementCluster=cluster, lookups_only=True).one(KUBERNETES).inputs["context"] == "admin"


def test_an_unreadable_kubeconfig_is_an_error_with_a_fix(program: Program) -> None:
    cluster = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "kubeconfig": "absent"}

    recorder = program(managementCluster=cluster, options={"refused": True})

    assert str(recorder.failure) == (
        'idstack:managementCluster.kubeconfig: found "absent", which cannot be read '
        "([Errno 2] No such file or directory: 'absent'). Accepted is the path of a kubeconfig file, or nothing: then "
        "the stack makes its own for aks-dev/aks-mgmt-dev."
    )
    assert [name for name in recorder.names() if not name.startswith("pulumi:providers:")] == []
