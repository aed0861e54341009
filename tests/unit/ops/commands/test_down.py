"""`idstack down` of a stack in whose namespace HyperShift has a control plane, or which serves one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from identity.azure.client import AzureClient
from localcloud.testing.arm import GROUP, VAULT, ArmWorld
from localcloud.testing.faults import Lock
from tests.unit.access_world import FakeApiServer
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.stacks import output

NAMESPACE: dict[str, Any] = {
    "urn": "urn:pulumi:dev::idstack::idstack:kubernetes:ClusterSide$kubernetes:core/v1:Namespace::hc1-namespace",
    "type": "kubernetes:core/v1:Namespace",
    "custom": True,
    "inputs": {"metadata": {"name": "clusters-hc1"}},
}
DESTROY = "destroy --stack dev"


@pytest.fixture(autouse=True)
def api(cluster_api: FakeApiServer) -> FakeApiServer:
    return cluster_api


@pytest.mark.parametrize(
    ("resource", "told"),
    [
        ("namespace", "whether clusters-hc1 holds a control plane of HyperShift cannot be seen (the API server"),
        ("stack", "`.venv/bin/idstack pulumi --stack dev -- destroy` runs without the check of identities"),
    ],
)
def test_a_control_plane_that_cannot_be_seen_counts_as_one(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer, resource: str, told: str
) -> None:
    engine.has_resources({"namespace": NAMESPACE, "stack": STACK}[resource])
    api.token = "another"

    printed = idstack("down", "--stack", "dev")

    assert (printed.code, told in printed.error) == (1, True)
    assert DESTROY not in engine.calls


def test_a_stack_in_which_a_lock_forbids_a_deletion_stays(
    engine: FakeEngine, idstack: Idstack, azure: AzureClient, world: ArmWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.commands.down.deployer", lambda _: nullcontext(azure))
    world.hold(locks={GROUP: Lock.CAN_NOT_DELETE})
    engine.has_resources({**NAMESPACE, "type": "azure-native:keyvault:Vault", "id": VAULT})

    printed = idstack("down", "--stack", "dev")

    assert (printed.code, DESTROY in engine.calls) == (1, False)
    assert f"az lock delete --ids {GROUP.lower()}/providers/Microsoft.Authorization/locks/held`" in printed.error
    world.hold()
    printed = idstack("down", "--stack", "dev")
    assert (printed.code, DESTROY in engine.calls) == (0, True)
    assert "`.venv/bin/idstack pulumi --stack dev -- stack rm --preserve-config` removes that, too" in printed.output


HOSTED_CLUSTER: dict[str, Any] = {
    "urn": "urn:pulumi:dev::idstack::kubernetes:hypershift.openshift.io/v1beta1:HostedCluster::hc1-hosted-cluster",
    "type": "kubernetes:hypershift.openshift.io/v1beta1:HostedCluster",
    "custom": True,
    "inputs": {"metadata": {"name": "hc1", "namespace": "clusters"}},
}
CLUSTERS = {
    "hc1": {"namespace": "clusters", "controlPlane": {"disk": output("managed-azure-disk-csi", "disk-hc1-json")}}
}
STACK: dict[str, Any] = {
    "urn": "urn:pulumi:dev::idstack::pulumi:pulumi:Stack::idstack-dev",
    "type": "pulumi:pulumi:Stack",
    "custom": False,
    "inputs": {},
    "outputs": {"clusterSide": "hypershift", "hostedClusters": CLUSTERS, "managementClusterId": "/subscriptions/s"},
}


@pytest.fixture
def served(engine: FakeEngine, api: FakeApiServer) -> FakeEngine:
    """HyperShift runs the control plane of `hc1`, whose identities are the stack's."""
    engine.has_resources(STACK)
    api.has_control_plane("clusters-hc1", "hc1")
    return engine


@pytest.mark.parametrize(
    ("resources", "has_control_plane"),
    [
        ([{**NAMESPACE, "retainOnDelete": True}], True),
        ([NAMESPACE], False),
        ([STACK, HOSTED_CLUSTER], True),
        ([STACK], False),
        ([{**STACK, "outputs": {"clusterSide": "hypershift", "hostedClusters": CLUSTERS}}], True),
    ],
    ids=["namespace handed over", "its namespace", "its hosted cluster", "its identities", "no management cluster"],
)
def test_what_takes_nothing_from_a_control_plane_goes(
    engine: FakeEngine, idstack: Idstack, api: FakeApiServer, resources: list[dict[str, Any]], has_control_plane: bool
) -> None:
    engine.has_resources(*resources)
    if has_control_plane:
        api.has_control_plane("clusters-hc1", "hc1")

    assert idstack("down", "--stack", "dev").code == 0
    assert DESTROY in engine.calls


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Of each cluster that is asked about, a credential has ended; what was asked."""
    asked: list[list[str]] = []

    def warning(engine: Any, clusters: Any) -> str | None:
        asked.append(list(clusters))
        return f"credentials of {asked[-1]} have ended" if asked[-1] else None

    monkeypatch.setattr("ops.doctor.examination.ended_credentials", warning)
    return asked


@pytest.mark.parametrize(
    ("resource", "told"),
    [
        ("namespace", 'idstack: clusters-hc1 holds HyperShift\'s control plane "hc1", and the stack would'),
        (
            "stack",
            "idstack: clusters-hc1 holds HyperShift's control plane \"hc1\", which signs in with the stack's "
            "identities. Nothing was deleted. Delete the hosted cluster first: `kubectl --namespace clusters delete "
            "hostedcluster hc1`, and wait until it is gone, as its deletion needs the identities, too\n",
        ),
    ],
)
def test_a_stack_that_a_control_plane_needs_stays(
    served: FakeEngine, idstack: Idstack, resource: str, told: str
) -> None:
    served.has_resources({"namespace": NAMESPACE, "stack": STACK}[resource])

    printed = idstack("down", "--stack", "dev")

    assert (printed.code, printed.error[: len(told)], DESTROY in served.calls) == (1, told, False)


def test_ended_credentials_are_named_before_a_hosted_cluster_goes_or_holds_back(
    served: FakeEngine, idstack: Idstack, ended: list[list[str]]
) -> None:
    held_back = idstack("down", "--stack", "dev")
    assert "warning: credentials of ['hc1'] have ended" in held_back.output
    assert (held_back.code, ended) == (1, [["hc1"]])

    served.has_resources(STACK, HOSTED_CLUSTER)
    printed = idstack("down", "--stack", "dev")
    assert printed.output.index("warning: credentials of ['hc1'] have ended") < printed.output.index("output of pulumi")
    assert ended == [["hc1"]] * 2


@pytest.mark.parametrize("typed", [None, "prod", "dev"])
def test_a_stack_on_azure_is_destroyed_by_its_name(
    engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch, typed: str | None
) -> None:
    monkeypatch.setenv("PULUMI_STACK", "dev")
    monkeypatch.setattr("sys.stdin.isatty", lambda: typed is not None, raising=False)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: typed)

    printed = idstack("down")

    assert (printed.code == 0, DESTROY in engine.calls) == (typed == "dev", typed == "dev")
    if typed is None:
        assert "nothing was destroyed: name the stack (`--stack dev`)" in printed.error


def test_a_stack_whose_vault_others_share_stays(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has_stacks("dev", "hc1-dev")
    reference = {"type": "pulumi:pulumi:StackReference", "urn": "r", "inputs": {"name": "organization/idstack/dev"}}
    engine.has_resources(reference)

    printed = idstack("down", "--stack", "dev")

    assert printed.error == "idstack: nothing was destroyed: its vault serves hc1-dev: destroy those first\n"
    assert DESTROY not in engine.calls
