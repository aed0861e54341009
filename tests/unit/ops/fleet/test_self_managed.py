"""Fleets of clusters that sign in by workload identities: alone, and beside those that have certificates."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, Final

from ops.fleet.stacks import matrices
from ops.fleet.tree import tree
from tests.unit.ops.fleet.kustomize import build
from tests.unit.ops.fleet.world import document, fleet, refusals

_PROD: Final = "environments/prod"
_SELF_MANAGED: Final = {"authentication": "workload-identities", "topology": "Public"}
# So that HyperShift's HostedCluster is applied.
_ZONES: Final = (
    "/subscriptions/66666666-7777-4888-8999-aaaaaaaaaaaa/resourceGroups/dns-prod/providers/Microsoft.Network"
)
_APPLIED: Final = {
    "dns": {
        "baseDomain": "contoso.net",
        "publicZoneID": f"{_ZONES}/dnsZones/contoso.net",
        "privateZoneID": f"{_ZONES}/privateDnsZones/{{cluster}}.contoso.net",
    },
    "externalDnsDomain": "control-planes.contoso.net",
    "hostedCluster": {
        "releaseImage": "quay.io/ocp:4.20.0",
        "pullSecret": "pull-secret",
        "serviceAccountSigningKey": "signing-key",
    },
}


def _mixed(**second: Any) -> dict[str, Any]:
    """`hc1` as it was, `hc2` self-managed."""
    changed = document()
    changed["environments"][1]["clusters"][1]["hostedCluster"] = _SELF_MANAGED
    changed["environments"][1]["clusters"][1].update(second)
    return changed


def _without_vault() -> dict[str, Any]:
    """An environment of clusters that keep nothing in a vault."""
    changed = document()
    prod = changed["environments"][1]
    del prod["shared"], prod["clusters"][0]["hostedCluster"]
    prod["clusterDefaults"]["hostedCluster"] |= _SELF_MANAGED
    return changed


def _stacks(files: dict[PurePosixPath, str]) -> dict[str, dict[str, Any]]:
    return {
        manifest["metadata"]["name"]: manifest["spec"]
        for manifest in build(files, _PROD)
        if manifest["kind"] == "Stack"
    }


def test_a_self_managed_cluster_is_an_object_as_any_other() -> None:
    stacks = _stacks(tree(fleet(_mixed())))
    [first], [second] = (stacks[name]["config"]["idstack:hostedClusters"] for name in ("hc1-prod", "hc2-prod"))

    assert {key: second.get(key) for key in _SELF_MANAGED} == _SELF_MANAGED
    assert "authentication" not in first
    assert stacks["hc2-prod"]["config"]["idstack:sharedStack"] == "organization/idstack/shared-prod"


def test_clusters_that_keep_nothing_in_a_vault_need_no_shared_stack() -> None:
    changed = _without_vault()
    stacks = _stacks(tree(fleet(changed)))

    assert {
        name: [prerequisite["name"] for prerequisite in spec.get("prerequisites", [])] for name, spec in stacks.items()
    } == {
        "hc3-prod": [],
        "hc1-prod": ["hc3-prod"],
        "hc2-prod": ["hc3-prod"],
        "hc4-prod": ["hc1-prod", "hc2-prod"],
        "hc5-prod": ["hc1-prod", "hc2-prod"],
    }
    assert not [name for name, spec in stacks.items() if "idstack:sharedStack" in spec["config"]]
    assert matrices(fleet(changed)[1])["shared"] is None


def test_a_cluster_with_something_in_a_vault_needs_a_shared_stack() -> None:
    changed = _without_vault()
    changed["environments"][1]["clusters"][0]["hostedCluster"] = {"authentication": "managed-identities"}

    assert refusals(changed) == [("environments[1].shared.settings.vault", "vault-missing")]


def test_an_environment_without_any_stack_is_refused() -> None:
    changed = _without_vault()
    changed["environments"][1] |= {"clusters": [], "waves": {}}

    assert refusals(changed) == [("environments[1].clusters", "no-stack")]


def test_one_hypershift_has_clusters_of_one_way_in_a_fleet_too() -> None:
    changed = _mixed()
    changed["environments"][1]["clusterDefaults"]["hostedCluster"] |= _APPLIED
    elsewhere = _mixed(settings={"managementCluster": {"resourceGroup": "aks-own", "name": "aks-own"}})
    elsewhere["environments"][1]["clusterDefaults"]["hostedCluster"] |= _APPLIED

    place = "environments[1].clusterDefaults.hostedCluster.hostedCluster"
    assert refusals(changed) == [(place, "hosted-clusters-of-both-ways")]
    assert refusals(elsewhere) == []
