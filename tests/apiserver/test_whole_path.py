"""The whole path of docs/guides/hypershift.md : one hosted cluster by HyperShift's CLI, one by the stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from identity.catalogue import CONTROL_PLANE
from identity.naming import InfrastructureNames, parse_arm_id
from localcloud.testing.hosted_clusters import changed
from tests.engine.changing import another_imported, require_goes_first, with_applications
from tests.engine.clients import bare_sign_in
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack, running_stack

_CORE: Final = "/api/v1/namespaces"
_HOSTED_CLUSTERS: Final = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters"
_STRICT: Final = {"fieldValidation": "Strict"}
# What the CLI renders from the exported infra.json (tests/unit/hypershift_cli compares it with the stack's).
_RENDERED: Final = Path("tests/unit/hypershift_cli/hosted-cluster.yaml")
_RELEASE: Final = {"releaseImage": "registry.example.com/release:1", "pullSecret": "pull-secret"}


def test_one_cluster_is_the_clis_and_one_the_stacks(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack, stack.kubernetes("administrator") as http:
        http.post(_CORE, json=_object("Namespace", "clusters")).raise_for_status()
        http.post(f"{_CORE}/clusters/secrets", json=_object("Secret", "pull-secret")).raise_for_status()
        by_cli, by_stack = _clusters(stack)
        with stack.configured(clusterSide="hypershift", hostedClusters=[by_cli, by_stack]):
            stack.up()
            _create_as_the_cli(stack, http)
            stack.up("--expect-no-changes")
            first = _hosted(http, "hc1")
            _require_identities(first, _hosted(http, "hc2"))
            _require_infrastructure(stack)
            signing_key = http.get(f"{_CORE}/clusters/secrets/hc2-sa-signing-key").raise_for_status().json()
            assert signing_key["data"].keys() >= {"key"}
        with stack.configured(clusterSide="hypershift", hostedClusters=[by_cli], allowCredentialLoss=["hc2"]):
            removal = list(stack.up_with_steps())
            parts = ("infrastructure", "-secret", "-signing-key-secret", "-issuer", "-role")
            require_goes_first("hc2-hosted-cluster-object", removal, *parts)
            assert _of_second(stack) == set()
            assert _hosted(http, "hc1") == first
            _require_sign_ins(stack)
            stack.up("--expect-no-changes")
            stack.pulumi("destroy", "--yes", "--skip-preview")
            assert _hosted(http, "hc1") == first, "the user made it, so the user deletes it"


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


def _require_sign_ins(stack: LocalStack) -> None:
    """Sign in with each certificate that the stack says the vault has."""
    names = {identity["credentialsSecretName"]: identity["thumbprint"] for identity in stack.control_plane.values()}
    with OutOfBand(stack).secrets() as vault, pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
        assert {name: bare_sign_in(json.loads(vault.get_secret(name).value or "")) for name in names} == names
    assert len(names) > 1


def _require_identities(*hosted_clusters: dict[str, Any]) -> None:
    required = {row.field for row in CONTROL_PLANE if row.hosted_cluster_path and not row.optional}
    for hosted_cluster in hosted_clusters:
        azure = hosted_cluster["spec"]["platform"]["azure"]
        assert azure["azureAuthenticationConfig"]["managedIdentities"]["controlPlane"].keys() >= required - {"kms"}
        assert hosted_cluster["spec"]["serviceAccountSigningKey"]["name"]


def _require_infrastructure(stack: LocalStack) -> None:
    """What the stack makes stands under HyperShift's names."""
    network = ("virtualnetworks", "networksecuritygroups", "privatednszones", "loadbalancers", "publicipaddresses")
    kinds = {
        "/".join(resource_id.rpartition("/providers/")[2].split("/")[:2])
        for resource_id in _of_second(stack)
        if "/providers/" in resource_id
    }
    assert kinds >= {f"microsoft.network/{kind}" for kind in network}
