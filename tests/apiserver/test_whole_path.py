"""The whole path of docs/guides/hypershift.md : one hosted cluster by HyperShift's CLI, one by the stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from identity.catalogue import CONTROL_PLANE
from identity.naming import InfrastructureNames, parse_arm_id
from localcloud.testing.hosted_clusters import changed
from tests.engine.changing import another_imported, with_applications
from tests.engine.clients import bare_sign_in
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack, running_stack

_CORE: Final = "/api/v1/namespaces"
_HOSTED_CLUSTERS: Final = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters"
_STRICT: Final = {"fieldValidation": "Strict"}
# What the CLI renders from the exported infra.json (tests/unit/hypershift_cli compares it with the stack's).
_RENDERED: Final = Path("tests/unit/hypershift_cli/hosted-cluster.yaml")
_RELEASE: Final = {"releaseImage": "registry.example.com/release:1", "pullSecret": "pull-secret"}


@dataclass(frozen=True, kw_only=True)
class WholePath:
    """What was there after each command; HostedClusters by name, steps of the engine in their order."""

    first: dict[str, Any]
    second: dict[str, Any]
    signing_key: dict[str, Any]
    made: set[str]
    removal: list[str]
    left: set[str]
    first_after_removal: dict[str, Any]
    signed_in: dict[str, str]
    after_down: dict[str, Any]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholePath]:
    with running_stack(tmp_path_factory.mktemp("path")) as stack, stack.kubernetes("administrator") as http:
        http.post(_CORE, json=_object("Namespace", "clusters")).raise_for_status()
        http.post(f"{_CORE}/clusters/secrets", json=_object("Secret", "pull-secret")).raise_for_status()
        by_cli, by_stack = _clusters(stack)
        facts: dict[str, Any] = {}
        with stack.configured(clusterSide="hypershift", hostedClusters=[by_cli, by_stack]):
            stack.up()
            _create_as_the_cli(stack, http)
            stack.up("--expect-no-changes")
            facts |= {"first": _hosted(http, "hc1"), "second": _hosted(http, "hc2"), "made": _of_second(stack)}
            facts["signing_key"] = http.get(f"{_CORE}/clusters/secrets/hc2-sa-signing-key").json()
        with stack.configured(clusterSide="hypershift", hostedClusters=[by_cli], allowCredentialLoss=["hc2"]):
            facts["removal"] = list(stack.up_with_steps())
            facts |= {"left": _of_second(stack), "first_after_removal": _hosted(http, "hc1")}
            facts["signed_in"] = _sign_ins(stack)
            stack.up("--expect-no-changes")
            stack.pulumi("destroy", "--yes", "--skip-preview")
            facts["after_down"] = _hosted(http, "hc1")
        yield WholePath(**facts)


def _clusters(stack: LocalStack) -> tuple[dict[str, Any], dict[str, Any]]:
    """The one for the CLI on infrastructure that exists, and the one of which the stack makes everything."""
    [first] = stack.configuration("hostedClusters")
    another = another_imported(stack, first["identities"]["imageRegistry"])
    second = with_applications(first, "nodePoolManagement", imported=another)
    existing = ("resourceGroup", "vnetID", "subnetID", "securityGroupID", "dnsZoneResourceGroup", "issuerURL")
    second = {name: value for name, value in second.items() if name not in existing}
    dns = {name: value for name, value in first["dns"].items() if name != "privateZoneID"}
    second |= {"name": "hc2", "infraID": "hc2-infra", "infrastructure": "create", "dns": dns}
    second |= {"issuer": "create", "issuerName": "hc2issuer", "hostedCluster": _RELEASE}
    return with_applications(first, "nodePoolManagement"), second


def _create_as_the_cli(stack: LocalStack, http: httpx.Client) -> None:
    """The HostedCluster that HyperShift's CLI makes of the exported infra.json."""
    stack.idstack("export", "hypershift", "--cluster", "hc1")
    infra = json.loads((stack.root / "hypershift/hc1/infra.json").read_text(encoding="utf-8"))
    document = yaml.safe_load((stack.root / _RENDERED).read_text(encoding="utf-8"))
    spec, subscription = "spec.", parse_arm_id(infra["vnetID"]).subscription
    azure, control_plane = f"{spec}platform.azure.", infra["controlPlaneMIs"]["controlPlane"]
    values = {
        f"{spec}dns": {name: infra[name] for name in ("baseDomain", "publicZoneID", "privateZoneID")},
        f"{spec}infraID": infra["infraID"],
        f"{azure}location": infra["region"],
        f"{azure}resourceGroup": infra["resourceGroupName"],
        f"{azure}vnetID": infra["vnetID"],
        f"{azure}subnetID": infra["subnetID"],
        f"{azure}securityGroupID": infra["securityGroupID"],
        f"{azure}subscriptionID": subscription,
        f"{azure}tenantID": control_plane["managedIdentitiesKeyVault"]["tenantID"],
        f"{azure}azureAuthenticationConfig.managedIdentities.controlPlane": control_plane,
        f"{azure}azureAuthenticationConfig.managedIdentities.dataPlane": infra["dataPlaneIdentities"],
        f"{spec}pullSecret.name": "pull-secret",
    }
    for place, value in values.items():
        document = changed(document, place, value)
    http.post(_HOSTED_CLUSTERS, params=_STRICT, json=document).raise_for_status()


def _object(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def _hosted(http: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"{_HOSTED_CLUSTERS}/{name}").raise_for_status().json()
    return found


def _of_second(stack: LocalStack) -> set[str]:
    """What is in the resource groups that were made for the second cluster, and the groups themselves."""
    names = InfrastructureNames(stack.configuration("subscriptionId"), "hc2", "hc2-infra")
    groups = {f"/resourcegroups/{group}" for group in names.groups}
    keys = {key.lower() for kind, key in stack.inventory() if kind == "arm"}
    return {key for key in keys if any(key.endswith(group) or f"{group}/" in key for group in groups)}


def _sign_ins(stack: LocalStack) -> dict[str, str]:
    """Thumbprint by secret, after a sign-in with each certificate that the stack says the vault has."""
    names = {identity["credentialsSecretName"]: identity["thumbprint"] for identity in stack.control_plane.values()}
    with OutOfBand(stack).secrets() as vault, pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
        used = {name: bare_sign_in(json.loads(vault.get_secret(name).value or "")) for name in names}
    assert used == names
    return used


def test_the_api_takes_both_with_the_same_identities(path: WholePath) -> None:
    required = {row.field for row in CONTROL_PLANE if row.hosted_cluster_path and not row.optional}
    for hosted_cluster in (path.first, path.second):
        azure = hosted_cluster["spec"]["platform"]["azure"]
        assert azure["azureAuthenticationConfig"]["managedIdentities"]["controlPlane"].keys() >= required - {"kms"}
        assert hosted_cluster["spec"]["serviceAccountSigningKey"]["name"]


def test_what_the_stack_makes_stands_under_hypershifts_names(path: WholePath) -> None:
    kinds = {
        "/".join(resource_id.rpartition("/providers/")[2].split("/")[:2])
        for resource_id in path.made
        if "/providers/" in resource_id
    }
    assert kinds >= {
        "microsoft.network/virtualnetworks",
        "microsoft.network/networksecuritygroups",
        "microsoft.network/privatednszones",
        "microsoft.network/loadbalancers",
        "microsoft.network/publicipaddresses",
    }
    assert path.signing_key["data"].keys() >= {"key"}


def test_the_hosted_cluster_goes_before_everything_it_needs(path: WholePath) -> None:
    order = {name: at for at, name in enumerate(path.removal)}
    hosted = order["hc2-hosted-cluster-object"]
    for part in ("infrastructure", "-secret", "-signing-key-secret", "-issuer", "-role"):
        needed = {name for name in order if part in name}
        assert needed, part
        assert all(order[name] > hosted for name in needed), path.removal
    assert path.left == set()


def test_the_end_of_the_second_leaves_the_first_alone(path: WholePath) -> None:
    assert path.first_after_removal == path.first
    assert len(path.signed_in) > 1
    assert path.after_down == path.first, "the user made it, so the user deletes it"
