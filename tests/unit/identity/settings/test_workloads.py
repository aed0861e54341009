"""Workloads of the user's own, and the user's part of a HostedCluster."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.identity.settings.world import ABSENT, OTHER, block, configuration, hosted_cluster, load, refusals

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


def test_everything_of_a_workload_can_be_said() -> None:
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
    ({"name": "Backup"}, "name", '"Backup"'),
    ({"image": ABSENT}, "image", "nothing"),
    ({"identities": ABSENT}, "identities", "nothing"),
    ({"identities": ["netwrk"]}, "identities[0]", '"netwrk"'),
    ({"identities": []}, "identities", "a list: it is empty"),
    ({"identities": ["network", "network"]}, "identities[1]", '"network"'),
    ({"command": "backup --all"}, "command", '"backup --all"'),
    ({"command": [1]}, "command[0]", "the number 1"),
    ({"replicas": 0}, "replicas", "the number 0"),
    ({"resources": {"limits": {"gpu": "1"}}}, "resources.limits.gpu", '"gpu"'),
    ({"resources": {"limits": {"cpu": "-1"}}}, "resources.limits.cpu", '"-1"'),
    ({"serviceAccount": "a_b"}, "serviceAccount", '"a_b"'),
    ({"nodeSelector": {"pool": "a b"}}, "nodeSelector.pool", '"a b"'),
    ({"tolerations": [{"effect": "NoExecute"}]}, "tolerations[0].key", "nothing"),
    ({"tolerations": [{"operator": "Exists", "value": "x"}]}, "tolerations[0].value", '"x"'),
    ({"tolerations": [{"key": "x", "tolerationSeconds": 1}]}, "tolerations[0].tolerationSeconds", "the number 1"),
]


@pytest.mark.parametrize(("change", "place", "found"), BAD, ids=[place for _, place, _ in BAD])
def test_what_no_workload_can_be_is_refused_at_its_place(change: dict[str, Any], place: str, found: str) -> None:
    workload = {key: value for key, value in {**WORKLOAD, **change}.items() if value is not ABSENT}

    [refusal] = refusals(with_workloads(workload))

    assert refusal.startswith(f"idstack:hostedClusters[0].workloads[0].{place}\n  found:    {found}\n")


def test_an_identity_is_guessed() -> None:
    [refusal] = refusals(with_workloads({**WORKLOAD, "identities": ["cloudProvder"]}))

    assert refusal.endswith("`pulumi config set --path 'hostedClusters[0].workloads[0].identities[0]' cloudProvider`")


def test_identities_that_need_one_path_do_not_fit_into_one_workload() -> None:
    fields = ["kms", "disk", "ingress"]

    assert refusals(with_workloads({**WORKLOAD, "identities": fields})) == [
        block(
            "hostedClusters[0].workloads[0].identities",
            "a list: disk and ingress both need the path /mnt/certs",
            "identities that fit into one container: each is mounted as in its own consumer's pod",
            "give disk and ingress a workload each",
        )
    ]


@pytest.mark.parametrize("fields", [["kms", "controlPlaneOperator"], ["network", "file", "kms"]])
def test_a_second_mount_is_taken_where_the_first_does_not_fit(fields: list[str]) -> None:
    assert refusals(with_workloads({**WORKLOAD, "identities": fields})) == []


def test_an_identity_that_is_off_can_not_be_mounted() -> None:
    [refusal] = refusals(
        with_workloads({**WORKLOAD, "identities": ["imageRegistry"]}, identities={"imageRegistry": {"enabled": False}})
    )

    assert "accepted: an identity that is on; this one is switched off" in refusal


def test_workloads_are_told_apart_from_each_other_and_from_the_probes() -> None:
    same, probe = {**WORKLOAD, "identities": ["disk"]}, {**WORKLOAD, "name": "probe-kms-2"}

    assert [each.splitlines()[0::2] for each in refusals(with_workloads(WORKLOAD, same, probe))] == [
        [
            "idstack:hostedClusters[0].workloads[1].name",
            "  accepted: another name than hostedClusters[0].workloads[0].name has: both would be the same Deployment",
        ],
        [
            "idstack:hostedClusters[0].workloads[2].name",
            "  accepted: another name than a credential probe has: both would be the same Deployment",
        ],
    ]


def test_two_clusters_may_have_workloads_of_one_name() -> None:
    clusters = [hosted_cluster(name, workloads=[WORKLOAD]) for name in ("hc1", "hc2")]

    assert refusals(configuration(hostedClusters=clusters)) == []


def test_hypershifts_operators_make_all_workloads_themselves() -> None:
    assert refusals(with_workloads(WORKLOAD) | {"clusterSide": "hypershift"}) == [
        block(
            "hostedClusters[0].workloads",
            "a list",
            "nothing with clusterSide: hypershift, where HyperShift's operators make all objects",
            "`pulumi config rm --path 'hostedClusters[0].workloads'`, or `pulumi config set clusterSide stack`",
        )
    ]


def with_hosted_cluster(given: Any, **changes: Any) -> dict[str, Any]:
    clusters = [hosted_cluster(hostedCluster=given)]
    return configuration(clusterSide="hypershift", hostedClusters=clusters, **changes)


@pytest.mark.parametrize("given", [{"manifest": {"spec": {"release": {"image": "x"}}}}, {"file": "hc1.yaml"}])
def test_a_hosted_cluster_is_given_here_or_in_a_file(given: dict[str, Any]) -> None:
    assert refusals(with_hosted_cluster(given)) == []


@pytest.mark.parametrize(
    ("given", "found"), [({}, "it is empty"), ({"manifest": {}, "file": "hc1.yaml"}, "it holds both")]
)
def test_a_hosted_cluster_is_given_exactly_once(given: dict[str, Any], found: str) -> None:
    [refusal] = refusals(with_hosted_cluster(given))

    assert refusal.startswith(f"idstack:hostedClusters[0].hostedCluster\n  found:    a mapping: {found}\n")


def test_where_the_stack_writes_the_cluster_side_no_hosted_cluster_is_applied() -> None:
    [refusal] = refusals(configuration(hostedClusters=[hosted_cluster(hostedCluster={"file": "hc1.yaml"})]))

    assert refusal.startswith("idstack:hostedClusters[0].hostedCluster\n")
    assert refusal.endswith("or `pulumi config set clusterSide hypershift`")


def test_a_hosted_cluster_is_applied_with_a_kubeconfig_of_the_stacks_own() -> None:
    assert refusals(with_hosted_cluster({"file": "hc1.yaml"}, managementCluster__kubeconfig=ABSENT)) == []


def test_a_hosted_cluster_is_applied_to_a_management_cluster() -> None:
    user = {"source": "existing", "clientId": OTHER, "objectId": OTHER}
    [refusal] = refusals(with_hosted_cluster({"file": "hc1.yaml"}, managementCluster=ABSENT, keyVaultUser=user))

    assert refusal.startswith("idstack:managementCluster\n  found:    nothing\n")
    assert "AKS cluster: hostedClusters[0].hostedCluster creates objects in it" in refusal
