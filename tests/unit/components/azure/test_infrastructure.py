"""Infrastructure that the stack makes: HyperShift's names and values, what depends on what, what is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit import cases
from tests.unit.components.configurations import CONFIGURATIONS
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import GROUPS

MANAGED, NETWORK, SECURITY = "hc1-hc1-infra", "hc1-vnet-hc1-infra", "hc1-nsg-hc1-infra"
NSG = f"{GROUPS}/{SECURITY}/providers/Microsoft.Network/networkSecurityGroups/hc1-hc1-infra-nsg"
VNET = f"{GROUPS}/{NETWORK}/providers/Microsoft.Network/virtualNetworks/hc1-hc1-infra"
EGRESS = f"{GROUPS}/{MANAGED}/providers/Microsoft.Network/loadBalancers/hc1-infra"
ADDRESS = f"{GROUPS}/{MANAGED}/providers/Microsoft.Network/publicIPAddresses/hc1-infra"
PARTS = "hc1-infrastructure"
EXPECTED = cases.read(Path(__file__).with_name("infrastructure.yaml"), globals())


def created(**changes: Any) -> dict[str, Any]:
    """The configuration of `hc1` with infrastructure of its own."""
    [cluster] = CONFIGURATIONS["infrastructure"]["hostedClusters"]
    return {**cluster, **changes}


@pytest.fixture(scope="module")
def made(program: Program) -> RecordingMonitor:
    """The stack with `hc1`, its infrastructure and its HostedCluster."""
    return program(hostedClusters=[created()], clusterSide="hypershift", protect="true")


def inputs(recorder: RecordingMonitor, name: str) -> dict[str, Any]:
    """What a part is registered with, beside the name of azure-native's defaults."""
    [found] = [resource for resource in recorder.registered if resource.name == f"{PARTS}-{name}"]
    return dict(found.inputs)


def needed(recorder: RecordingMonitor, name: str) -> set[str]:
    """Names of what a resource depends on explicitly."""
    [found] = [resource for resource in recorder.registered if resource.name == name]
    return {urn.rpartition("::")[2] for urn in found.request.dependencies}


def test_every_part_has_hypershifts_name_and_values(made: RecordingMonitor) -> None:
    assert {name: inputs(made, name) for name in EXPECTED} == EXPECTED


def test_the_cloud_provider_may_add_to_the_load_balancer(made: RecordingMonitor) -> None:
    [balancer] = made.all("azure-native:network:LoadBalancer")
    assert set(balancer.request.ignoreChanges) == {
        *("frontendIPConfigurations", "backendAddressPools", "probes", "loadBalancingRules", "outboundRules"),
        *("inboundNatRules", "inboundNatPools", "tags"),
    }


def test_each_part_comes_after_what_it_lies_in_or_refers_to(made: RecordingMonitor) -> None:
    after = {
        "security-group": {"security-resource-group"},
        "network": {"network-resource-group"},
        "subnet": {"network", "security-group"},
        "private-zone": {"managed-resource-group"},
        "private-zone-link": {"private-zone", "network"},
        "egress-address": {"managed-resource-group"},
        "egress": {"egress-address"},
    }
    found = {name: needed(made, f"{PARTS}-{name}") for name in after}
    assert found == {name: {f"{PARTS}-{other}" for other in others} for name, others in after.items()}


def test_roles_and_hosted_cluster_name_all_of_it_and_come_after_it(
    made: RecordingMonitor, stack: RecordingMonitor
) -> None:
    parts = {resource.name: resource for resource in made.registered if resource.parent == PARTS}
    assert len(parts) == 10
    assert {resource.request.protect for resource in parts.values()} == {True}, "as the vault is"
    scopes = {resource.inputs["scope"] for resource in made.all("azure-native:authorization:RoleAssignment")}
    assert {scope.rpartition("/")[2] for scope in scopes if "hc1" in scope} == {MANAGED, NETWORK, SECURITY}
    azure = made.outputs_of("hc1")["spec"]["platform"]["azure"]
    assert (azure["resourceGroup"], azure["vnetID"]) == (MANAGED, VNET)
    assert (azure["subnetID"], azure["securityGroupID"]) == (f"{VNET}/subnets/default", NSG)
    assert [resource.name for resource in stack.registered if "infrastructure" in resource.name] == [], "it exists"
    grants = [
        resource.name
        for resource in made.registered
        if resource.type == "idstack:azure:RoleGrants" and "hc1" in resource.name
    ]
    assert len(grants) == 12
    for component in (*grants, "hc1-hosted-cluster"):
        assert parts.keys() <= needed(made, component), component


def test_the_ranges_are_those_of_the_configuration(program: Program) -> None:
    ranges = {"addressPrefix": "10.64.0.0/15", "subnetAddressPrefix": "10.65.0.0/22"}
    recorder = program(hostedClusters=[created(network=ranges)], clusterSide="hypershift")

    assert inputs(recorder, "network")["addressSpace"] == {"addressPrefixes": ["10.64.0.0/15"]}
    assert inputs(recorder, "subnet")["addressPrefix"] == "10.65.0.0/22"
