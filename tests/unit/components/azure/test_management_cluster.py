"""The management cluster that the stack makes: what it is, what waits for it, and what a preview knows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from localcloud.testing.hosts import Serve
from tests.unit import access_world, cases
from tests.unit.access_world import FakeApiServer, skeleton
from tests.unit.components import world as constants
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.simulation import UNKNOWN
from tests.unit.components.world import ADD_ON, DEPLOYER, MANAGEMENT_CLUSTER, ROLES, ROTATION, TENANT, lookups

AKS = "azure-native:containerservice:ManagedCluster"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
CLASS = "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass"
GATE = "idstack:index:ClusterGate"
KUBERNETES = "pulumi:providers:kubernetes"
USER = "azure-native:containerservice:listManagedClusterUserCredentials"
GET = "azure-native:containerservice:getManagedCluster"
CREATE: dict[str, Any] = {"nodePool": {"vmSize": "Standard_D4s_v5"}, "azureRBAC": True}
GROUP = "44444444-4444-4444-8444-444444444444"
GONE = Exception('Status=404 Code="ResourceNotFound" Message="The Resource was not found."')
# Without hosted clusters nothing is put into the management cluster, and a run is short.
ALONE: dict[str, Any] = {"hostedClusters": []}
READY: dict[str, Any] = {
    "name": "aks-mgmt-dev",
    "provisioningState": "Succeeded",
    "resourceUID": "f00d",
    "nodeResourceGroup": "MC_aks-dev_aks-mgmt-dev_eastus",
    "addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": True, "identity": ADD_ON, "config": ROTATION}},
}


def made_on_the_way() -> Callable[[Mapping[str, Any]], Any]:
    """Answers that the cluster is not there, and from the second time on that it is."""
    answers = iter([GONE])
    return lambda _: next(answers, READY)


class NewClusterScenario:
    """The stack with a cluster that it makes; `answers` are the lookups'."""

    def __init__(self, run: Program, api: FakeApiServer, server: str) -> None:
        self._run = run
        self.api = api
        self.answers: dict[str, Any] = {
            **lookups(getManagedCluster=made_on_the_way()),
            USER: {"kubeconfigs": [{"name": "clusterUser", "value": skeleton(server)}]},
        }

    def run(
        self, options: Any = None, outputs: Any = None, access: Any = None, stack: Any = None, **create: Any
    ) -> RecordingMonitor:
        cluster: dict[str, Any] = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "create": {**CREATE, **create}}
        if access is not None:
            cluster["access"] = access
        options = {**(options or {}), **({"outputs": outputs} if outputs else {})}
        return self._run(managementCluster=cluster, invokes=self.answers, options=options, **(stack or {}))

    def run_lookups(self, options: Any = None, stack: Any = None) -> RecordingMonitor:
        """Run the program up to the cluster and its provider; nothing is made on the cluster."""
        return self.run(options, stack={**(stack or {}), "lookups_only": True})


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve_plain: Serve, program: Program) -> NewClusterScenario:
    monkeypatch.setenv("PATH", f"{access_world.program(tmp_path / 'bin')}:/usr/bin:/bin")
    api = FakeApiServer()
    return NewClusterScenario(program, api, serve_plain(api.app()))


def test_only_entra_id_signs_in_to_the_cluster(world: NewClusterScenario) -> None:
    expected = cases.read(Path(__file__).with_name("inputs.yaml"), vars(constants))["management cluster"]
    assert world.run(stack=ALONE, kubernetesVersion="1.34").one(AKS).inputs == expected


def test_everything_waits_for_the_gate_and_the_gate_for_the_deployers_role(world: NewClusterScenario) -> None:
    recorder = world.run_lookups()

    role = recorder.one(ASSIGNMENT, "management-cluster-deployer-cluster")
    gate, cluster = recorder.one(GATE), recorder.one(AKS)
    assert role.inputs == {
        "roleAssignmentName": role.inputs["roleAssignmentName"],
        "scope": MANAGEMENT_CLUSTER,
        "roleDefinitionId": f"{ROLES}/b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b",
        "principalId": DEPLOYER,
        "principalType": "ServicePrincipal",
    }
    assert list(role.request.ignoreChanges) == ["principalId", "principalType"]
    assert recorder.waits_for(role, cluster)
    assert recorder.waits_for(gate, role)
    assert recorder.waits_for(gate, cluster)
    assert recorder.waits_for(recorder.one(KUBERNETES), gate)
    assert (gate.inputs["clusterId"], gate.inputs["clusterUid"]) == (MANAGEMENT_CLUSTER, "f00d")
    assert gate.inputs["hasAzureRbac"]
    assert gate.inputs["kinds"] == [
        "secrets-store.csi.x-k8s.io/v1/secretproviderclasses",
        "infrastructure.cluster.x-k8s.io/v1beta1/azureclusteridentities",
    ]
    assert gate.inputs["kubeconfig"] == recorder.one(KUBERNETES).inputs["kubeconfig"]
    assert gate.secrets == {"kubeconfig"}
    # From the first version on, so that objects survive a new address.
    assert recorder.one(KUBERNETES).inputs["clusterIdentifier"] == MANAGEMENT_CLUSTER


def test_with_administrator_groups_nobody_gets_a_role(world: NewClusterScenario) -> None:
    own_user = {**ALONE, "keyVaultUser": {"source": "created", "name": "kv-user"}}
    recorder = world.run(stack=own_user, azureRBAC=False, adminGroupObjectIDs=[GROUP])

    cluster = recorder.one(AKS).inputs
    profile = {"managed": True, "enableAzureRBAC": False, "adminGroupObjectIDs": [GROUP], "tenantID": TENANT}
    assert cluster["aadProfile"] == profile
    assert "kubernetesVersion" not in cluster, "AKS chooses one"
    assert [resource for resource in recorder.all(ASSIGNMENT) if resource.inputs["scope"] == MANAGEMENT_CLUSTER] == []
    assert cluster["nodeResourceGroup"] in recorder.stack_outputs.values["keyVaultUserAttachCommand"]


def test_it_is_protected_as_the_vault_is(world: NewClusterScenario) -> None:
    assert world.run(stack=ALONE).one(AKS).request.protect
    world.answers[GET] = made_on_the_way()
    assert not world.run(stack={**ALONE, "protect": "false"}).one(AKS).request.protect


def test_its_add_on_reads_the_vault(world: NewClusterScenario) -> None:
    recorder = world.run()

    assert recorder.one(ASSIGNMENT, "key-vault-user-roles-vault").inputs["principalId"] == ADD_ON["objectId"]
    assert recorder.stack_outputs.values["keyVaultUserClientId"] == ADD_ON["clientId"]
    parameters = recorder.one(CLASS, "hc1-cluster-side-disk-class-object").inputs["spec"]["parameters"]
    assert parameters["userAssignedIdentityID"] == ADD_ON["clientId"]


def test_without_objects_on_it_there_is_no_gate(world: NewClusterScenario) -> None:
    recorder = world.run_lookups(stack={"clusterSide": "hypershift"})

    assert recorder.one(AKS).name == "management-cluster-aks"
    assert recorder.all(GATE) == recorder.all(KUBERNETES) == []


def test_a_preview_of_a_new_cluster_knows_only_its_names(world: NewClusterScenario) -> None:
    recorder = world.run(options={"preview": True})

    assert recorder.one(KUBERNETES).inputs["kubeconfig"] == UNKNOWN
    assert recorder.one(KUBERNETES).inputs["clusterIdentifier"] == MANAGEMENT_CLUSTER
    assert recorder.one(ASSIGNMENT, "key-vault-user-roles-vault").inputs["principalId"] == UNKNOWN
    assert recorder.stack_outputs.values["keyVaultUserClientId"] == UNKNOWN
    assert recorder.stack_outputs.values["managementClusterId"] == MANAGEMENT_CLUSTER
    assert USER not in {call.function for call in recorder.invoked}


@pytest.mark.parametrize(
    ("answer", "sign_ins"),
    [(None, 1), *(({**READY, "provisioningState": state}, 2) for state in ("Succeeded", "Updating", "Upgrading"))],
    ids=["new", "there", "updating", "upgrading"],
)
def test_an_existing_cluster_is_signed_in_to_without_a_check_of_rights(
    world: NewClusterScenario, answer: dict[str, Any] | None, sign_ins: int
) -> None:
    """Before the first resource if it is there, and for its kubeconfig."""
    if answer is not None:
        world.answers[GET] = answer
    recorder = world.run_lookups()

    assert [call.function for call in recorder.invoked].count(USER) == sign_ins
    assert world.api.reviews == [], "the role that grants them may be what was missing"


def test_a_failed_sign_in_to_an_existing_cluster_stops_the_program(world: NewClusterScenario, tmp_path: Path) -> None:
    world.answers[GET] = READY
    access_world.program(tmp_path / "bin", code=1, error="idstack: c.pem: the certificate 9F expired")

    recorder = world.run(options={"refused": True})

    assert "c.pem: the certificate 9F expired. Nothing was changed." in str(recorder.failure)
    assert recorder.all(AKS) == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            {"provisioningState": "Deleting"},
            '"aks-mgmt-dev" is being deleted: wait until that has ended '
            "(`az aks wait --resource-group aks-dev --name aks-mgmt-dev --deleted`)",
        ),
        (
            {"powerState": {"code": "Stopped"}},
            '"aks-mgmt-dev" is stopped: `az aks start --resource-group aks-dev --name aks-mgmt-dev` starts it',
        ),
    ],
)
def test_a_cluster_that_cannot_be_used_is_named_with_what_helps(
    world: NewClusterScenario, answer: dict[str, Any], reason: str
) -> None:
    world.answers[GET] = {**READY, **answer}

    recorder = world.run(options={"refused": True})

    assert str(recorder.failure) == f"idstack:managementCluster: {reason}. Nothing was changed."
    assert recorder.all(AKS) == []


def test_a_failed_operation_hides_nothing_of_a_cluster_that_was_in_use(
    world: NewClusterScenario, tmp_path: Path
) -> None:
    access_world.program(tmp_path / "bin", code=1, error="idstack: not yet")
    last = {"outputs": {"managementClusterId": MANAGEMENT_CLUSTER}, "secretOutputNames": []}

    for state in ("Creating", "Failed"):
        world.answers[GET] = {**READY, "provisioningState": state}
        assert world.run_lookups().one(GATE).name == "cluster-access-gate", "its creation is tried again"
    world.answers["pulumi:pulumi:readStackOutputs"] = last
    assert (
        'the last operation on "aks-mgmt-dev" is Failed: '
        "`az aks update --resource-group aks-dev --name aks-mgmt-dev` repeats it. Nothing was changed."
    ) in str(world.run(options={"refused": True}).failure)


def test_an_add_on_that_was_changed_by_hand_is_put_right_by_the_stack(
    world: NewClusterScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", warned.append)
    world.answers[GET] = {**READY, "addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": True, "config": None}}}

    assert world.run(stack=ALONE, outputs={AKS: {"addonProfiles": READY["addonProfiles"]}}).one(AKS)
    [warning] = warned
    assert "secret rotation is off" in warning
    assert "An `up` with --refresh puts it right" in warning


@pytest.mark.parametrize(
    ("function", "answer", "problem"),
    [
        (
            "azure-native:resources:getResourceGroup",
            lambda asked: {"aks-dev": GONE}.get(asked["resourceGroupName"], {}),
            ("managementCluster.resourceGroup", "resource-missing"),
        ),
        (
            GET,
            Exception('Status=403 Code="AuthorizationFailed" Message="no"'),
            ("managementCluster.name", "resource-unreadable"),
        ),
    ],
    ids=["no resource group", "forbidden"],
)
def test_what_must_exist_is_looked_up(
    world: NewClusterScenario, function: str, answer: Any, problem: tuple[str, str]
) -> None:
    world.answers[function] = answer

    assert world.run(options={"refused": True}, stack=ALONE).problems == [problem]


def test_an_add_on_that_stays_off_is_an_error_with_a_fix(world: NewClusterScenario) -> None:
    another = {"clientId": "aaaaaaaa-0000-4000-8000-000000000003", "objectId": "aaaaaaaa-0000-4000-8000-000000000004"}
    on = {"azureKeyvaultSecretsProvider": {"enabled": True, "identity": another}}

    def updated(profiles: Any, **options: Any) -> RecordingMonitor:
        world.answers[GET] = {**READY, "addonProfiles": {"azureKeyvaultSecretsProvider": {"enabled": False}}}
        outputs = {AKS: {"name": "aks-mgmt-dev", "addonProfiles": profiles}}
        return world.run(options=options, outputs=outputs, stack=ALONE)

    assert updated(on).stack_outputs.values["keyVaultUserClientId"] == another["clientId"]
    assert "`.venv/bin/idstack up --refresh` switches it on again" in str(updated({}, refused=True).failure)
