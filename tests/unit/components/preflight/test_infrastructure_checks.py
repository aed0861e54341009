"""Existing infrastructure is compared with the configuration and with itself, before anything is registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit import cases
from tests.unit.components import world
from tests.unit.components.configurations import CONFIGURATIONS
from tests.unit.components.program import Program
from tests.unit.components.refusals import GONE, refused
from tests.unit.components.world import GROUPS, SECURITY_GROUP, egress, hosted_cluster, lookups

WEST = {"location": "westus"}
MANIFEST = {"manifest": {"spec": {"serviceAccountSigningKey": {"name": "signing-key"}}}}
ZONES = {
    "baseDomain": "example.com",
    "publicZoneID": f"{GROUPS}/dns-dev/providers/Microsoft.Network/dnszones/example.com",
    "privateZoneID": f"{GROUPS}/hc1-managed/providers/Microsoft.Network/privateDnsZones/hc1.example.com",
}
APPLIED: dict[str, Any] = {
    "clusterSide": "hypershift",
    "hostedClusters": [hosted_cluster(hostedCluster=MANIFEST, dns=ZONES)],
}


def managed_group(location: str) -> Callable[[Mapping[str, Any]], Any]:
    """Resource groups, of which only the managed one is in `location`."""
    return lambda arguments: {
        "location": location if arguments["resourceGroupName"] == "hc1-managed" else "northeurope"
    }


UNFIT = cases.read(Path(__file__).with_name("unfit-infrastructure.yaml"), vars(world))


@pytest.mark.parametrize("what", UNFIT)
def test_what_is_missing_or_does_not_fit_together_is_refused(program: Program, what: str) -> None:
    case = UNFIT[what]
    given: dict[str, Any] = case.get("answers", {})
    answers: dict[str, Any] = {name: GONE if answer == "gone" else answer for name, answer in given.items()}
    if "egress" in case:
        answers["getLoadBalancer"] = egress(**case["egress"])
    if "getResourceGroup" in answers:
        answers["getResourceGroup"] = managed_group(given["getResourceGroup"]["hc1-managed"]["location"])

    found = refused(program, invokes=lookups(**answers), **(APPLIED if case.get("applied") else {}))

    assert found == [(f"hostedClusters[0].{key}", rule) for key, rule in case["problems"].items()]


@pytest.mark.parametrize(
    ("answers", "changes"),
    [
        ({"getVirtualNetwork": {"location": "East US"}, "getResourceGroup": managed_group("eastus")}, {}),
        (
            dict.fromkeys(("getVirtualNetwork", "getNetworkSecurityGroup"), WEST)
            | {"getResourceGroup": managed_group("westus")},
            {"hostedClusters": [hosted_cluster(location="westus")]},
        ),
        ({"getSubnet": {"networkSecurityGroup": {"id": SECURITY_GROUP.upper()}}}, {}),
        ({}, APPLIED),
        ({"getLoadBalancer": GONE}, {"clusterSide": "hypershift"}),
        ({"getVirtualNetworkLink": GONE}, APPLIED),
    ],
    ids=[
        "a location as Azure compares it",
        "elsewhere than the stack",
        "an id in another letter case",
        "an applied hosted cluster",
        "a load balancer that HyperShift's CLI makes",
        "a link with another name",
    ],
)
def test_what_fits_together_is_accepted(program: Program, answers: dict[str, Any], changes: dict[str, Any]) -> None:
    assert program(invokes=lookups(**answers), lookups_only=True, **changes).failure is None


ATTACHED = {
    "networkSecurityGroup": {"id": SECURITY_GROUP},
    "routeTable": {"id": f"{GROUPS}/hub/providers/Microsoft.Network/routeTables/routes"},
    "natGateway": {"id": f"{GROUPS}/hub/providers/Microsoft.Network/natGateways/nat"},
}
NAMED = {"routeTableID": ATTACHED["routeTable"]["id"], "natGatewayID": ATTACHED["natGateway"]["id"].upper()}
BOTH = [(f"hostedClusters[0].{key}", "subnet-attachment-differs") for key in NAMED]


@pytest.mark.parametrize(
    ("subnet", "named", "roles", "expected"),
    [
        (ATTACHED, NAMED, "builtin", []),
        (ATTACHED, {}, "builtin", BOTH),
        (ATTACHED, {}, "hypershift", []),
        (ATTACHED, {key: f"{resource_id}2" for key, resource_id in NAMED.items()}, "hypershift", BOTH),
        ({"networkSecurityGroup": {"id": SECURITY_GROUP}}, NAMED, "builtin", BOTH),
    ],
    ids=["as it is", "not named", "not needed", "another one", "nothing attached"],
)
def test_what_the_subnet_refers_to_is_named_where_a_role_is_at_it(
    program: Program, subnet: dict[str, Any], named: dict[str, str], roles: str, expected: list[tuple[str, str]]
) -> None:
    recorder = program(
        invokes=lookups(getSubnet=subnet),
        roles=roles,
        hostedClusters=[hosted_cluster(**named)],
        lookups_only=True,
        options={"refused": True},
    )

    assert recorder.problems == expected


@pytest.mark.parametrize(
    ("ranges", "networking", "refusals"),
    [
        ({"addressPrefix": "10.0.0.0/24"}, {}, 0),
        ({"addressPrefix": "10.134.8.0/24"}, {}, 1),
        ({"addressPrefix": "10.134.8.0/24"}, {"clusterNetwork": [{"cidr": "10.64.0.0/14"}]}, 0),
        ({"addressPrefixes": ["172.31.0.0/20", "fd00::/64"]}, {}, 1),
    ],
    ids=["apart", "of pods", "of pods elsewhere", "of services"],
)
def test_the_nodes_of_an_applied_cluster_are_apart_from_its_pods_and_services(
    program: Program, ranges: dict[str, Any], networking: dict[str, Any], refusals: int
) -> None:
    manifest = {"manifest": {"spec": {**MANIFEST["manifest"]["spec"], "networking": networking}}}
    clusters = [hosted_cluster(hostedCluster=manifest, dns=ZONES)]
    answers = lookups(getSubnet={"networkSecurityGroup": {"id": SECURITY_GROUP}, **ranges})

    recorder = program(
        invokes=answers, clusterSide="hypershift", hostedClusters=clusters, lookups_only=True, options={"refused": True}
    )

    expected = [("hostedClusters[0].subnetID", "network-of-pods-or-services")] * refusals
    assert recorder.problems == expected


def test_of_infrastructure_that_the_stack_makes_only_the_public_zone_exists(program: Program) -> None:
    exists = {"dns-dev", "identity-dev"}
    made = dict.fromkeys(("getVirtualNetwork", "getNetworkSecurityGroup", "getPrivateZone"), GONE)
    group = lookups(getResourceGroup=lambda asked: {} if asked["resourceGroupName"] in exists else GONE, **made)
    recorder = program(**CONFIGURATIONS["infrastructure"], lookups_only=True, invokes=group)

    assert recorder.failure is None
    groups = [
        call.arguments["resourceGroupName"]
        for call in recorder.invoked
        if call.function == "azure-native:resources:getResourceGroup"
    ]
    assert set(groups) == {*exists, "hc1-hc1-infra", "hc1-vnet-hc1-infra", "hc1-nsg-hc1-infra"}
    asked = {call.function.rpartition(":")[2] for call in recorder.invoked}
    assert asked.isdisjoint({"getSubnet", "getLoadBalancer"})
    assert "getZone" in asked
