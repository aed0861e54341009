"""A stack that makes its hosted cluster's infrastructure: from a preview without any to the end of it, in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from identity.resource_types import NETWORK_API, RESOURCES_API
from tests.engine.changing import RELEASE
from tests.engine.out_of_band import OutOfBand
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

NAMED = ("resourceGroup", "vnetID", "subnetID", "securityGroupID", "dnsZoneResourceGroup")
PARTS = "hc1-infrastructure"
BALANCER = f"{PARTS}-egress"
OBJECT = "hc1-hosted-cluster-object"
INFRASTRUCTURE = ("azure-native:network:", "azure-native:privatedns:", "azure-native:resources:")


@dataclass(frozen=True)
class Made:
    """The stack, its hosted cluster's configuration, and what the first preview showed."""

    stack: LocalStack
    cluster: dict[str, Any]
    foreseen: dict[str, str]

    def parts(self) -> dict[str, dict[str, Any]]:
        """The infrastructure in the state, by name."""
        return {
            resource["urn"].rpartition("::")[2]: resource
            for resource in self.stack.resources()
            if resource["type"].startswith(INFRASTRUCTURE)
        }


def _configuration(stack: LocalStack) -> dict[str, Any]:
    """The hosted cluster of the stack, its infrastructure to be made."""
    [given] = stack.configuration("hostedClusters")
    dns = {key: value for key, value in given["dns"].items() if key != "privateZoneID"}
    kept = {key: value for key, value in given.items() if key not in NAMED}
    return {**kept, "dns": dns, "infrastructure": "create", "hostedCluster": RELEASE}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A stack that was previewed, stopped by a group that is there, and brought up; it applies the HostedCluster."""
    with small_stack(tmp_path_factory.mktemp("infrastructure"), "hypershift") as stack:
        cluster = _configuration(stack)
        with stack.kubernetes() as http:  # the user's own, who puts the pull secret there
            http.post("/api/v1/namespaces", json={"metadata": {"name": "clusters"}}).raise_for_status()
        with stack.configured(hostedClusters=[cluster]):
            foreseen = stack.preview()
            group = f"/subscriptions/{stack.environment.subscription_id}/resourceGroups/hc1-hc1-infra"
            OutOfBand(stack).arm("PUT", group, RESOURCES_API, {"location": stack.configuration("location")})
            stopped = stack.idstack("up", check=False)
            assert stopped.returncode == 1
            words = "If the infrastructure of hc1 belongs to another owner, configure `infrastructure: existing`"
            assert words in " ".join(stopped.stderr.split())
            [_] = stack.follow(stopped.stderr)
            rest = stack.preview()
            assert rest.get(f"{PARTS}-managed-resource-group") != "create"
            assert rest[f"{PARTS}-private-zone"] == "create"
            stack.up()
            yield Made(stack, cluster, foreseen)


def test_every_part_is_foreseen_and_there(made: Made) -> None:
    assert len(made.parts()) == 10
    assert {made.foreseen[name] for name in made.parts()} == {"create"}
    assert made.stack.resource(f"{PARTS}-egress-address")["outputs"]["ipAddress"].startswith("203.0.113.")
    dns = made.stack.resource(OBJECT)["inputs"]["spec"]["dns"]
    assert dns["privateZoneID"] == made.stack.resource(f"{PARTS}-private-zone")["id"]


def test_a_second_run_and_a_refresh_find_nothing_to_do(made: Made) -> None:
    made.stack.up("--expect-no-changes")
    made.stack.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")


def test_parts_that_exist_are_adopted_as_they_are_by_the_printed_commands(made: Made) -> None:
    """Groups, networks, subnets, security groups, addresses, load balancers, zones and links."""
    parts = {made.stack.resource(part)["urn"] for part in made.parts()}
    made.stack.forget(parts)

    made.stack.adopt()

    assert parts <= {resource["urn"] for resource in made.stack.resources()}
    made.stack.up("--expect-no-changes")


def test_another_range_is_an_update_of_network_and_subnet(made: Made) -> None:
    wider = {"addressPrefix": "10.0.0.0/15", "subnetAddressPrefix": "10.0.0.0/23"}
    updates = {f"{PARTS}-network": "update", f"{PARTS}-subnet": "update"}
    with made.stack.configured(hostedClusters=[{**made.cluster, "network": wider}]):
        assert made.stack.up_with_steps() == updates

    assert made.stack.up_with_steps() == updates


def test_what_the_cloud_provider_adds_to_the_load_balancer_stays(made: Made) -> None:
    """A service of type LoadBalancer adds frontend and rule; a later update would send the load balancer without."""
    stack, somebody = made.stack, OutOfBand(made.stack)
    balancer = stack.resource(BALANCER)
    wire = json.loads(stack.contents()["arm", balancer["id"].lower()])
    frontend = wire["properties"]["frontendIPConfigurations"][0]["id"]
    ports = {"protocol": "Tcp", "frontendPort": 443, "backendPort": 443}
    rule = {"name": "service", "properties": {"frontendIPConfiguration": {"id": frontend}, **ports}}
    body = {
        **{key: wire[key] for key in ("location", "sku", "tags")},
        "properties": {**wire["properties"], "loadBalancingRules": [rule]},
    }
    somebody.arm("PUT", balancer["id"], NETWORK_API, body)

    stack.pulumi("refresh", "--yes", "--skip-preview")
    with stack.configured(tags={"changed": "everywhere"}):
        steps = stack.up_with_steps()

    assert BALANCER not in steps
    assert steps[f"{PARTS}-network"] == "update"
    left = json.loads(stack.contents()["arm", balancer["id"].lower()])
    assert [kept["name"] for kept in left["properties"]["loadBalancingRules"]] == ["service"]
    stack.up()


def test_infrastructure_goes_after_the_hosted_cluster_and_the_roles(made: Made) -> None:
    stack = made.stack
    parts = set(made.parts())
    roles = {
        resource["urn"].rpartition("::")[2]
        for resource in stack.resources()
        if resource["type"] == "azure-native:authorization:RoleAssignment" and "hc1" in resource["urn"]
    }
    begun, ended = _deletions(stack.logged("destroy", "--yes", "--skip-preview"))
    first = min(begun[part] for part in parts)
    assert ended[OBJECT] < first
    assert max(ended[role] for role in roles if "kms" not in role) < first
    assert ended[BALANCER] < begun[f"{PARTS}-egress-address"]
    assert ended[f"{PARTS}-subnet"] < begun[f"{PARTS}-security-group"]
    left = [key for kind, key in stack.inventory() if kind == "arm" and "/resourcegroups/hc1-" in key]
    assert [key for key in left if "hc1-infra" in key.split("/")[4]] == []


def _deletions(log: list[dict[str, Any]]) -> tuple[dict[str, int], dict[str, int]]:
    """Positions in the event log at which each deletion has begun and ended, by the resource's name."""
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    for position, event in enumerate(log):
        for key, positions in (("resourcePreEvent", begun), ("resOutputsEvent", ended)):
            if key in event and event[key]["metadata"]["op"] == "delete":
                positions[event[key]["metadata"]["urn"].rpartition("::")[2]] = position
    return begun, ended
