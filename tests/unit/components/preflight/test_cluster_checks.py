"""What is asked of the management cluster before the first resource: the sign-in, its namespaces, and its Secrets."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from components.preflight import cluster_checks
from identity.azure.errors import AccessError
from identity.credentials import service_account_key
from tests.unit import access_world
from tests.unit.components.existing_cluster import ADMIN, CLUSTER, USER, ExistingClusterScenario
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import MANAGEMENT_CLUSTER, SECOND_CLUSTER, hosted_cluster, lookups

GUARD = "idstack:index:NamespaceGuard"
HC1 = {"clusters-hc1": "hc1"}
# What a run has made that ended when it had made the namespace.
NAMESPACE = ("hc1-cluster-side-namespace",)
UNREADABLE = Exception("blob: connection refused")

Run = Callable[..., RecordingMonitor]


@pytest.fixture
def next_run(program: Program, stack: RecordingMonitor) -> Run:
    """Runs the program after a complete run with `clusterSide: stack` and the cluster hc1."""

    def run(*, lookups_only: bool = True, options: Any = None, **changes: Any) -> RecordingMonitor:
        given = {"refused": True, **(options or {})}
        return program(invokes=after(stack), options=given, lookups_only=lookups_only, **changes)

    return run


@pytest.fixture
def cut_off(program: Program, stack: RecordingMonitor) -> Run:
    """Runs the program after a stack's first run, which ended when it had made the namespace."""

    def run(**changes: Any) -> RecordingMonitor:
        answers = {**lookups(), "pulumi:pulumi:readStackResourceOutputs": {"outputs": state(stack, *NAMESPACE)}}
        return program(invokes=answers, control_planes=HC1, options={"refused": True}, **changes)

    return run


def after(run: RecordingMonitor) -> dict[str, Any]:
    """What the look-ups find after a complete run."""
    last = {"name": "", "outputs": run.stack_outputs.values, "secretOutputNames": []}
    return {
        **lookups(),
        "pulumi:pulumi:readStackOutputs": last,
        "pulumi:pulumi:readStackResourceOutputs": {"outputs": state(run)},
    }


def state(run: RecordingMonitor, *names: str) -> dict[str, Any]:
    """The resources that a run has registered, or those of these names alone, as the engine reads them."""
    return {
        resource.urn: {"type": resource.type, "outputs": dict(resource.inputs)}
        for resource in run.registered
        if not names or resource.name in names
    }


def _raising(error: Exception) -> Callable[..., Mapping[str, str]]:
    def read(*_: object) -> Mapping[str, str]:
        raise error

    return read


def test_a_namespace_that_hypershift_uses_already_is_not_adopted(program: Program) -> None:
    recorder = program(control_planes=HC1, options={"refused": True}, lookups_only=True)

    assert recorder.problems == [("hostedClusters[0].name", "namespace-in-use")]
    assert [name for name in recorder.names() if not name.startswith("pulumi:providers:azure")] == []


def test_a_stack_whose_namespace_hypershift_has_taken_does_not_go_on(next_run: Run) -> None:
    both = [hosted_cluster(), SECOND_CLUSTER]

    recorder = next_run(hostedClusters=both, control_planes={**HC1, "clusters-hc2": "hc2"})

    assert recorder.problems == [
        ("hostedClusters[0].name", "namespace-in-use"),
        ("hostedClusters[1].name", "namespace-in-use"),
    ]


@pytest.mark.parametrize("side", ["stack", "hypershift"])
def test_a_hosted_cluster_that_runs_is_not_taken_out(next_run: Run, side: str) -> None:
    changes = {"hostedClusters": [SECOND_CLUSTER], "allowCredentialLoss": ["hc1"], "clusterSide": side}

    assert next_run(**changes, control_planes=HC1).problems == [("hostedClusters", "namespace-left-behind")]
    assert next_run(**changes).failure is None, "without a control plane it goes"


def test_the_switch_needs_the_cluster_whose_namespaces_it_leaves(next_run: Run) -> None:
    user = {
        "source": "existing",
        "clientId": "aaaaaaaa-0000-4000-8000-000000000001",
        "objectId": "aaaaaaaa-0000-4000-8000-000000000002",
    }
    recorder = next_run(managementCluster=None, clusterSide="hypershift", keyVaultUser=user)

    assert recorder.problems == [("managementCluster", "namespace-out-of-sight")]


def test_what_cannot_be_seen_stops_an_update_and_warns_a_preview(
    next_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr("pulumi.log.warn", warned.append)
    forbidden = _raising(AccessError("somebody may not read it"))

    update = next_run(control_planes=forbidden)
    preview = next_run(control_planes=forbidden, options={"preview": True})

    assert str(update.failure).startswith(
        "idstack:managementCluster: whether clusters-hc1 holds a control plane of HyperShift cannot be seen "
        "(somebody may not read it), so nothing is deleted."
    )
    assert preview.failure is None
    assert warned[0].endswith("This is a preview: `up` looks again")


def test_for_hypershift_nothing_is_asked_of_the_cluster(two_clusters: RecordingMonitor, program: Program) -> None:
    both = [hosted_cluster(), SECOND_CLUSTER]

    program(
        invokes=after(two_clusters),
        hostedClusters=both,
        clusterSide="hypershift",
        lookups_only=True,
        control_planes=_raising(AssertionError("the cluster was asked")),
    )


@pytest.fixture(scope="module")
def switch(program: Program, stack: RecordingMonitor) -> RecordingMonitor:
    """The run with `clusterSide: hypershift` after one with `stack`, while HyperShift uses the namespace."""
    return program(invokes=after(stack), clusterSide="hypershift", control_planes=HC1)


def test_the_switch_keeps_what_hypershift_uses_as_it_is(stack: RecordingMonitor, switch: RecordingMonitor) -> None:
    objects = {resource.urn: resource for resource in switch.registered if resource.type.startswith("kubernetes:")}
    shared = {
        resource.urn
        for resource in stack.registered
        if resource.type.startswith("kubernetes:") and "probe" not in resource.name
    }

    assert objects.keys() == shared
    assert all(obj.request.retainOnDelete for obj in objects.values())
    assert all(list(obj.request.ignoreChanges) == ["*"] for obj in objects.values())
    assert not any(resource.request.retainOnDelete for resource in stack.registered)


def test_the_switch_says_what_it_leaves(next_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("pulumi.log.info", told.append)

    next_run(clusterSide="hypershift", control_planes=HC1)

    assert [message.partition(":")[0] for message in told] == ["clusters-hc1 is left to HyperShift"]


def test_the_switch_opens_the_guard(stack: RecordingMonitor, switch: RecordingMonitor) -> None:
    assert [resource.inputs["handedOver"] for resource in stack.all(GUARD)] == [False, False]
    assert [resource.inputs["handedOver"] for resource in switch.all(GUARD)] == [True, True]
    assert not any(resource.request.retainOnDelete for resource in switch.all(GUARD))
    assert switch.stack_outputs.values["clusterSide"] == "hypershift"


@pytest.mark.parametrize(("last", "control_planes"), [("stack", {}), ("switch", HC1)], ids=["unused", "left"])
def test_what_hypershift_does_not_use_and_what_was_left_leaves_the_state(
    request: pytest.FixtureRequest, program: Program, last: str, control_planes: dict[str, str]
) -> None:
    answers = after(request.getfixturevalue(last))
    recorder = program(invokes=answers, clusterSide="hypershift", control_planes=control_planes)

    assert [
        resource
        for resource in recorder.registered
        if resource.type == GUARD or resource.type.startswith("kubernetes:")
    ] == []


def test_the_guard_goes_before_all_that_a_control_plane_needs(stack: RecordingMonitor) -> None:
    guard = stack.one(GUARD, "hc1-namespace-guard")
    needed = [
        resource
        for resource in stack.registered
        if resource.type.startswith(("kubernetes:", "azure-native:", "azuread:", "idstack:index:"))
        and "probe" not in resource.name
        and resource != guard
    ]

    assert len(needed) > 100
    assert [resource.name for resource in needed if not stack.waits_for(guard, resource)] == []
    assert guard.secrets == {"kubeconfig"}


def test_what_is_in_the_namespace_comes_after_a_guard_of_it(stack: RecordingMonitor) -> None:
    guard = stack.one(GUARD, "hc1-cluster-side-guard")
    [namespace] = stack.all("kubernetes:core/v1:Namespace")
    inside = [
        resource for resource in stack.registered if resource.type.startswith("kubernetes:") and resource != namespace
    ]

    assert [resource.name for resource in inside if not stack.waits_for(resource, guard)] == []
    assert [
        resource.name
        for resource in stack.registered
        if "-cluster-side-" in resource.name and stack.waits_for(guard, resource)
    ] == [namespace.name]


def test_a_run_that_was_cut_off_has_made_its_namespace_all_the_same(cut_off: Run) -> None:
    other = {"hostedClusters": [SECOND_CLUSTER], "clusterSide": "hypershift"}

    assert cut_off().problems == [("hostedClusters[0].name", "namespace-in-use")]
    assert cut_off(**other).problems == [("hostedClusters", "namespace-left-behind")]


def test_of_a_run_that_was_cut_off_what_is_in_the_state_is_left_alone(cut_off: Run) -> None:
    switch = cut_off(clusterSide="hypershift")
    [namespace] = [resource for resource in switch.registered if resource.type.startswith("kubernetes:")]

    assert namespace.name == "hc1-cluster-side-namespace"
    assert namespace.request.retainOnDelete
    assert [resource.inputs["handedOver"] for resource in switch.all(GUARD)] == [True, True]


def test_a_switch_that_was_cut_off_before_its_last_guard_goes_on(
    program: Program, stack: RecordingMonitor, switch: RecordingMonitor
) -> None:
    halfway = {**state(switch), **state(stack, "hc1-namespace-guard")}
    answers = {**after(stack), "pulumi:pulumi:readStackResourceOutputs": {"outputs": halfway}}

    recorder = program(invokes=answers, clusterSide="hypershift", control_planes=HC1)

    assert {resource.urn for resource in recorder.registered} == {resource.urn for resource in switch.registered}


def test_a_state_that_cannot_be_read_ends_the_run(program: Program) -> None:
    answers = {**lookups(), "pulumi:pulumi:readStackResourceOutputs": UNREADABLE}

    recorder = program(invokes=answers, options={"refused": True}, lookups_only=True)

    assert str(recorder.failure) == (
        "this stack's state, which has the namespaces that it made, cannot be read: blob: connection refused. "
        "Nothing was changed; try again once the backend answers."
    )


def test_a_failed_sign_in_is_reported_before_the_first_resource(
    existing_cluster: ExistingClusterScenario, tmp_path: Path
) -> None:
    access_world.program(tmp_path / "bin", code=1, error="idstack: c.pem: the certificate 9F expired")

    recorder = existing_cluster.run(options={"refused": True})

    assert str(recorder.failure) == (
        "idstack:managementCluster: idstack got no token for the API server: c.pem: the certificate 9F expired. "
        "Nothing was changed."
    )
    assert [name for name in recorder.names() if not name.startswith("pulumi:providers:azure")] == []


def test_with_azure_rbac_the_missing_role_assignment_is_printed(
    existing_cluster: ExistingClusterScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_checks, "_READY_SECONDS", 0)
    existing_cluster.api.denied = {"create namespaces"}
    current = existing_cluster.answers["azure-native:containerservice:getManagedCluster"]
    existing_cluster.answers["azure-native:containerservice:getManagedCluster"] = {
        **current,
        "aadProfile": {"managed": True, "enableAzureRBAC": True},
    }

    error = str(existing_cluster.run(options={"refused": True}).failure)

    assert f"--role b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b --scope {MANAGEMENT_CLUSTER} --assignee-object-id" in error


def test_without_the_clusters_user_role_the_error_names_the_role(existing_cluster: ExistingClusterScenario) -> None:
    existing_cluster.answers[USER] = RuntimeError('Status=403 Code="AuthorizationFailed" Message="no".')
    recorder = existing_cluster.run(options={"refused": True})
    assert "role Azure Kubernetes Service Cluster User Role there" in str(recorder.failure)


def test_with_local_accounts_off_the_admin_credential_is_an_error(existing_cluster: ExistingClusterScenario) -> None:
    existing_cluster.answers[ADMIN] = RuntimeError("Getting static credential is not allowed")
    recorder = existing_cluster.run(options={"refused": True}, admin=True)
    assert "Getting static credential is not allowed. Nothing was changed" in str(recorder.failure), "no role helps"


PATH = "/api/v1/namespaces/clusters/secrets/hc1-key"
PLACE = "hostedClusters[0].hostedCluster.serviceAccountSigningKey"
PKCS1 = service_account_key.make(2048)


def pkcs8(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | None = None) -> str:
    loaded: Any = key or serialization.load_pem_private_key(PKCS1.encode(), None)
    return str(loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


@pytest.fixture
def run(existing_cluster: ExistingClusterScenario, program: Program) -> Run:
    """Runs the program with a HostedCluster that names the Secret, in which there is this."""

    def run(key: bytes | None) -> Any:
        data = {} if key is None else {"key": base64.b64encode(key).decode()}
        existing_cluster.api.documents[PATH] = {"data": data}
        given = {"manifest": {}, "serviceAccountSigningKey": "hc1-key"}
        return program(
            invokes=existing_cluster.answers,
            options={"refused": True},
            lookups_only=True,
            clusterSide="hypershift",
            managementCluster=CLUSTER,
            hostedClusters=[hosted_cluster(hostedCluster=given)],
        )

    return run


@pytest.mark.parametrize("pem", [PKCS1, f"a comment\n{PKCS1}", PKCS1.replace("\n", "\r\n")])
def test_a_key_in_pkcs1_is_taken(run: Run, pem: str) -> None:
    assert run(pem.encode()).failure is None


@pytest.mark.parametrize(
    "key",
    [
        pkcs8().encode(),
        pkcs8(ec.generate_private_key(ec.SECP256R1())).encode(),
        PKCS1.replace("BEGIN", "BEGAN").encode(),
        b"\xff",
        None,
    ],
    ids=["PKCS#8", "no RSA key", "no PEM", "no text", "nothing"],
)
def test_a_key_that_hypershift_cannot_read_is_refused(run: Run, key: bytes | None) -> None:
    assert run(key).problems == [(PLACE, "signing-key-secret-unusable")]


def test_a_secret_that_is_missing_or_may_not_be_read_is_left_to_hypershift(
    existing_cluster: ExistingClusterScenario, run: Run
) -> None:
    existing_cluster.api.unreadable.add(PATH)
    assert run(b"anything").failure is None
    existing_cluster.api.unreadable.clear()
    existing_cluster.api.codes[PATH] = 404
    assert run(b"anything").failure is None
