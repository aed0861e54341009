"""A stack that makes its own management cluster: from a preview without one to the end of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from identity import resource_types
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

CREATE = {
    "kubernetesVersion": "1.35",
    "nodePool": {"vmSize": "Standard_D4s_v5", "count": 3},
    "azureRBAC": True,
    "rotationPollInterval": "2m",
}
CLUSTER = {"resourceGroup": "aks-local", "name": "aks-made", "create": CREATE}
AKS = "management-cluster-aks"
_ADOPTED = {
    *(resource_types.MANAGED_CLUSTER, resource_types.VAULT, resource_types.MANAGED_IDENTITY),
    resource_types.FEDERATED_CREDENTIAL,
    *(resource_types.SERVICE_PRINCIPAL, resource_types.REGISTERED_CERTIFICATE),
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack that was previewed and brought up once, with a management cluster of its own."""
    with (
        small_stack(tmp_path_factory.mktemp("creation"), "stack") as stack,
        stack.configured(managementCluster=CLUSTER),
    ):
        foreseen = stack.preview()
        assert foreseen[AKS] == foreseen["cluster-access-gate"] == foreseen["kubernetes"] == "create"
        assert foreseen["hc1-cluster-side-namespace"] == "create"
        stack.up()  # ends well only when every probe has signed in
        yield stack


def outputs(stack: LocalStack) -> dict[str, Any]:
    found: dict[str, Any] = stack.resource(AKS)["outputs"]
    return found


def test_a_second_run_finds_nothing_to_do(stack: LocalStack) -> None:
    stack.up("--expect-no-changes")


def test_a_change_of_the_cluster_is_one_update(stack: LocalStack) -> None:
    changed = {**CLUSTER, "create": {**CREATE, "rotationPollInterval": "5m"}}
    with stack.configured(managementCluster=changed):
        assert stack.up_with_steps() == {AKS: "update"}

        config = outputs(stack)["addonProfiles"]["azureKeyvaultSecretsProvider"]["config"]
        assert config["rotationPollInterval"] == "5m"


def test_what_exists_is_adopted_as_it_is_by_the_printed_commands(stack: LocalStack) -> None:
    """Unless the next run would replace it."""
    lost = {resource["type"]: resource for resource in stack.resources() if resource["type"] in _ADOPTED}
    assert lost.keys() == _ADOPTED
    urns = {resource["urn"] for resource in lost.values()}
    before, uid = _ids(stack, urns), outputs(stack)["resourceUID"]
    stack.forget(urns)
    stopped = stack.idstack("up", "--continue-on-error", check=False).stderr
    [adoption] = [line for line in stopped.splitlines() if f" {AKS} " in line]
    with stack.configured(managementCluster={**CLUSTER, "create": {**CREATE, "network": {"policy": "calico"}}}):
        refused = stack.idstack(*shlex.split(adoption)[1:], check=False)
    assert "nothing was adopted" in refused.stderr
    assert "config set --path managementCluster.create.network.policy azure`" in refused.stderr
    assert not [resource for resource in stack.resources() if resource["urn"].endswith(AKS)]

    stack.follow(stopped)
    stack.adopt()

    assert (_ids(stack, urns), outputs(stack)["resourceUID"]) == (before, uid)
    assert not any(resource.get("protect") for resource in stack.resources()), "as the configuration says"
    stack.up("--expect-no-changes")


def _ids(stack: LocalStack, urns: set[str]) -> dict[str, str]:
    """The ids of these resources, in one letter case."""
    return {resource["urn"]: resource["id"].lower() for resource in stack.resources() if resource["urn"] in urns}


def test_destroy_leaves_nothing_of_the_cluster_behind(stack: LocalStack) -> None:
    principals = {outputs(stack)["identity"]["principalId"]}
    principals |= {profile["objectId"] for profile in outputs(stack)["identityProfile"].values()}

    stack.pulumi("destroy", "--yes", "--skip-preview")

    left = stack.inventory()
    assert [key for kind, key in left if kind == "arm" and "aks-made" in key] == []
    assert [key for kind, key in left if key in principals] == []
