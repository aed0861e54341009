"""The cluster side: registered only where the stack owns it, and after everything that its pods need to start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit import cases
from tests.unit.components import world
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor, Registered
from tests.unit.components.world import IDENTITIES, MOUNTS

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
CLASS = "kubernetes:secrets-store.csi.x-k8s.io/v1:SecretProviderClass"
SECRET = "idstack:index:CredentialSecret"
GUARD = "idstack:index:NamespaceGuard"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"
PROBES, OBJECTS = (cases.read(Path(__file__).with_name(name), vars(world)) for name in ("probes.yaml", "objects.yaml"))

every_probe = pytest.mark.parametrize("probe", PROBES)


def deployment(stack: RecordingMonitor, probe: str) -> Registered:
    return stack.one(DEPLOYMENT, f"hc1-cluster-side-probe-{probe}-deployment")


@every_probe
def test_a_probe_comes_after_secret_roles_and_configuration(stack: RecordingMonitor, probe: str) -> None:
    """What is not there blocks the mount, so the pod never starts."""
    identity, configuration = PROBES[probe]["identity"], PROBES[probe].get("configuration")
    mounting = deployment(stack, probe)
    secret_class = stack.one(CLASS, f"hc1-cluster-side-{identity}-class-object")
    assert stack.waits_for(secret_class, stack.one(SECRET, f"hc1-{identity}-credential-secret"))
    assert stack.waits_for(mounting, secret_class)

    needed = [
        resource
        for resource in stack.all(ASSIGNMENT)
        if resource.name.startswith(("key-vault-user-roles", f"hc1-{identity}-roles"))
    ]
    assert len(needed) >= 2
    assert all(stack.waits_for(mounting, resource) for resource in needed)

    kinds = ("kubernetes:core/v1:Secret", "kubernetes:infrastructure.cluster.x-k8s.io/v1beta1:AzureClusterIdentity")
    found = [
        resource.type
        for kind in kinds
        for resource in stack.all(kind)
        if resource.name.startswith(f"hc1-cluster-side-{identity}-") and stack.waits_for(mounting, resource)
    ]
    assert found == ([] if configuration is None else [configuration])


def test_every_object_comes_after_its_namespace(stack: RecordingMonitor) -> None:
    namespace = stack.one("kubernetes:core/v1:Namespace")
    objects = [
        resource for resource in stack.registered if resource.type.startswith("kubernetes:") and resource != namespace
    ]

    assert namespace.inputs["metadata"] == {"name": "clusters-hc1"}
    documents = sum(mount.config is not None or mount.cluster_identity for _, mount in MOUNTS)
    documents += 2 * sum(mount.platform is not None for _, mount in MOUNTS)
    assert len(objects) == len(IDENTITIES) + len(MOUNTS) + documents + len(("nodes' document",))
    assert [obj.name for obj in objects if not stack.waits_for(obj, namespace)] == []


@pytest.fixture(scope="module")
def for_hypershift(program: Program) -> RecordingMonitor:
    """All that the stack's own cluster side needs is there, but it is not wanted."""
    return program(clusterSide="hypershift")


def test_pods_are_kept_from_the_nodes_metadata_where_the_settings_say_so(
    program: Program, stack: RecordingMonitor
) -> None:
    kind = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
    blocking = program(blockInstanceMetadata=True)
    policy = blocking.one(kind)

    assert stack.all(kind) == []
    assert policy.inputs["metadata"] == {"name": "block-instance-metadata", "namespace": "clusters-hc1"}
    assert policy.inputs["spec"] == OBJECTS["network policy"]
    assert blocking.waits_for(policy, blocking.one("kubernetes:core/v1:Namespace"))


def test_all_else_is_the_same_for_hypershift(stack: RecordingMonitor, for_hypershift: RecordingMonitor) -> None:
    kept = {
        resource.urn for resource in stack.registered if "kubernetes" not in resource.type and resource.type != GUARD
    }

    assert {resource.urn for resource in for_hypershift.registered} == kept
    assert for_hypershift.stack_outputs.values == {**stack.stack_outputs.values, "clusterSide": "hypershift"}
