"""Workloads of the user's own, and the user's part of a HostedCluster."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import ABSENT, configuration, hosted_cluster, load, refusals, report

IMAGE = "registry.example.com/backup:1"
WORKLOAD = {"name": "backup", "image": IMAGE, "identities": ["network"]}


def with_workloads(*workloads: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return configuration(hostedClusters=[hosted_cluster(workloads=list(workloads), **changes)])


def test_a_workload_needs_a_name_an_image_and_identities() -> None:
    [workload] = load(with_workloads(WORKLOAD)).hosted_clusters[0].workloads

    assert workload.model_dump() == {
        "name": "backup",
        "image": IMAGE,
        "command": (),
        "args": (),
        "identities": ("network",),
        "replicas": 1,
        "resources": {"requests": {}, "limits": {}},
        "service_account": None,
        "node_selector": {},
        "tolerations": (),
    }


def test_everything_of_a_workload_can_be_configured() -> None:
    whole = {
        **WORKLOAD,
        "command": ["backup", ""],
        "args": ["--every", "1h"],
        "identities": ["controlPlaneOperator", "kms"],
        "replicas": 3,
        "resources": {"requests": {"cpu": "100m", "ephemeral-storage": "1Gi"}, "limits": {"memory": "1.5e3"}},
        "serviceAccount": "backup.operator",
        "nodeSelector": {"kubernetes.io/os": "linux", "pool": ""},
        "tolerations": [
            {"operator": "Exists"},
            {"key": "example.com/x", "value": "y", "effect": "NoExecute", "tolerationSeconds": 60},
        ],
    }

    assert refusals(with_workloads(whole)) == []


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "Backup"}, "name", "workload-name"),
    ({"image": ABSENT}, "image", "missing"),
    ({"identities": ABSENT}, "identities", "missing"),
    ({"identities": ["netwrk"]}, "identities[0]", "identity-field"),
    ({"identities": ["cloudProvder"]}, "identities[0]", "identity-field"),
    ({"identities": []}, "identities", "workload-without-identity"),
    ({"identities": ["network", "network"]}, "identities[1]", "duplicate-workload-identity"),
    ({"command": "backup --all"}, "command", "structure"),
    ({"command": [1]}, "command[0]", "word"),
    ({"replicas": 0}, "replicas", "integer"),
    ({"resources": {"limits": {"gpu": "1"}}}, "resources.limits.gpu", "resource-name"),
    ({"resources": {"limits": {"cpu": "-1"}}}, "resources.limits.cpu", "quantity"),
    ({"serviceAccount": "a_b"}, "serviceAccount", "service-account-name"),
    ({"nodeSelector": {"pool": "a b"}}, "nodeSelector.pool", "label-value"),
    ({"nodeSelector": {"a b": "pool"}}, 'nodeSelector["a b"]', "label-name"),
    ({"tolerations": [{"effect": "NoExecute"}]}, "tolerations[0].key", "toleration-without-key"),
    ({"tolerations": [{"operator": "Exists", "value": "x"}]}, "tolerations[0].value", "toleration-value-unused"),
    (
        {"tolerations": [{"key": "x", "tolerationSeconds": 1}]},
        "tolerations[0].tolerationSeconds",
        "toleration-seconds-unused",
    ),
]


@pytest.mark.parametrize(("change", "place", "rule"), BAD, ids=[place for _, place, _ in BAD])
def test_what_no_workload_can_be_is_refused_at_its_place(change: dict[str, Any], place: str, rule: str) -> None:
    workload = {key: value for key, value in {**WORKLOAD, **change}.items() if value is not ABSENT}

    assert refusals(with_workloads(workload)) == [(f"hostedClusters[0].workloads[0].{place}", rule)]
    if change == {"identities": ["cloudProvder"]}:
        assert report(with_workloads(workload)).endswith("hostedClusters[0].workloads[0].identities[0]' cloudProvider`")


@pytest.mark.parametrize(
    ("config", "place", "rule"),
    [
        (
            with_workloads({**WORKLOAD, "identities": ["kms", "disk", "ingress"]}),
            "workloads[0].identities",
            "workload-mounts-collide",
        ),
        (
            with_workloads(
                {**WORKLOAD, "identities": ["imageRegistry"]}, identities={"imageRegistry": {"enabled": False}}
            ),
            "workloads[0].identities[0]",
            "workload-identity-disabled",
        ),
        (with_workloads(WORKLOAD) | {"clusterSide": "hypershift"}, "workloads", "workloads-with-hypershift-side"),
    ],
)
def test_a_workload_mounts_what_is_on_and_fits_and_hypershift_makes_its_own(
    config: dict[str, Any], place: str, rule: str
) -> None:
    assert refusals(config) == [(f"hostedClusters[0].{place}", rule)]


@pytest.mark.parametrize("fields", [["kms", "controlPlaneOperator"], ["network", "file", "kms"]])
def test_a_second_mount_is_taken_where_the_first_does_not_fit(fields: list[str]) -> None:
    assert refusals(with_workloads({**WORKLOAD, "identities": fields})) == []


def test_workloads_have_other_names_than_each_other_and_the_probes() -> None:
    same, probe = {**WORKLOAD, "identities": ["disk"]}, {**WORKLOAD, "name": "probe-kms-2"}

    config = with_workloads(WORKLOAD, same, probe)

    assert refusals(config) == [
        ("hostedClusters[0].workloads[1].name", "duplicate-workload-name"),
        ("hostedClusters[0].workloads[2].name", "duplicate-workload-name"),
    ]
    assert "another name than hostedClusters[0].workloads[0].name has" in report(config)
    assert "another name than a credential probe has" in report(config)
    clusters = [hosted_cluster(name, workloads=[WORKLOAD]) for name in ("hc1", "hc2")]
    assert refusals(configuration(hostedClusters=clusters)) == []
