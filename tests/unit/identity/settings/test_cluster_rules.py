"""What must fit together in a hosted cluster, its workloads, and its identities."""

from __future__ import annotations

from typing import Any

import pytest

from identity.catalogue import CONTROL_PLANE
from identity.settings.rules.hosted_cluster import _LONGEST_NAMESPACE
from tests.unit.identity.settings.world import (
    ABSENT,
    MANAGED_IDENTITY,
    NETWORK,
    OTHER,
    SUBSCRIPTION,
    VNET,
    configuration,
    hosted_cluster,
    load,
    refusals,
    report,
    with_change,
)

REGISTRY = "hostedClusters[0].identities.imageRegistry"
IMPORTED = {"source": "managed-identity", "resourceId": MANAGED_IDENTITY, "credential": {"file": "x"}}


def with_registry(**identity: Any) -> dict[str, Any]:
    return configuration(hostedClusters__0__identities={"imageRegistry": identity})


def test_a_namespace_is_a_dns_label_with_the_clusters_name() -> None:
    assert _LONGEST_NAMESPACE == 63
    longest = {"hostedClusters__0__name": "hc1", "hostedClusters__0__infraID": "i"}

    assert refusals(configuration(**longest, hostedClusters__0__namespace="n" * 59)) == []
    assert refusals(configuration(**longest, hostedClusters__0__namespace="n" * 60)) == [
        ("hostedClusters[0].name", "namespace-too-long")
    ]


def test_a_subnet_is_one_of_the_network() -> None:
    subnet = f"{NETWORK}/virtualNetworks/vnet-10/subnets/default"

    assert refusals(configuration(hostedClusters__0__subnetID=subnet)) == [
        ("hostedClusters[0].subnetID", "subnet-outside-vnet")
    ]
    assert refusals(configuration(hostedClusters__0__subnetID=f"{VNET}/subnets/default".upper())) == []


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("securityGroupID", "networkSecurityGroups/nsg-1"),
        ("routeTableID", "routeTables/routes"),
        ("natGatewayID", "natGateways/nat"),
    ],
)
def test_the_network_is_in_the_stacks_subscription(key: str, name: str) -> None:
    elsewhere = NETWORK.replace(SUBSCRIPTION, OTHER)

    assert refusals(configuration(**{f"hostedClusters__0__{key}": f"{elsewhere}/{name}"})) == [
        (f"hostedClusters[0].{key}", "network-in-other-subscription")
    ]
    assert refusals(configuration(**{f"hostedClusters__0__{key}": f"{NETWORK}/{name}"})) == []


OWNER, ADMINISTRATOR = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "f58310d9-a9f6-439a-9e8d-f62e7b41a168"


@pytest.mark.parametrize("role", [OWNER, ADMINISTRATOR.upper()])
def test_a_role_that_assigns_roles_is_not_kept(role: str) -> None:
    key = "hostedClusters__0__identities__ingress__customRole"

    assert refusals(configuration(**{key: role})) == [
        ("hostedClusters[0].identities.ingress.customRole", "custom-role-assigns-roles")
    ]
    assert refusals(configuration(**{key: "7d8bb4e4-6fa7-4545-96cf-20fce11b705d"})) == []


@pytest.mark.parametrize("field", [row.field for row in CONTROL_PLANE if not row.optional])
def test_an_identity_that_the_api_requires_is_not_switched_off(field: str) -> None:
    assert refusals(configuration(hostedClusters__0__identities={field: {"enabled": False}})) == [
        (f"hostedClusters[0].identities.{field}.enabled", "identity-required")
    ]


def test_a_managed_identity_is_named_and_has_a_credential() -> None:
    assert refusals(with_registry(source="managed-identity")) == [
        (f"{REGISTRY}.resourceId", "managed-identity-without-resource-id"),
        (f"{REGISTRY}.credential", "managed-identity-without-credential"),
    ]
    assert refusals(with_registry(source="managed-identity", enabled=False)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [("resourceId", MANAGED_IDENTITY), ("clientId", OTHER), ("credential", {"file": "x"})],
)
def test_an_application_has_nothing_of_a_managed_identity(key: str, value: Any) -> None:
    assert refusals(with_registry(**{key: value})) == [(f"{REGISTRY}.{key}", "application-with-managed-identity-key")]


@pytest.mark.parametrize(
    ("credential", "reason"), [({}, "it is empty"), ({"file": "x", "secretName": "y"}, "it holds file and secretName")]
)
def test_a_credential_comes_from_one_place(credential: dict[str, str], reason: str) -> None:
    config = with_registry(**{**IMPORTED, "credential": credential})

    assert refusals(config) == [(f"{REGISTRY}.credential", "one-imported-credential")]
    assert f"found:    a mapping: {reason}\n" in report(config)


@pytest.mark.parametrize("value", ["MARKER", 4711, {"secure": "MARKER"}, None])
@pytest.mark.parametrize("others", [{}, {"file": "x"}, {"file": "x", "secretName": "y"}])
@pytest.mark.parametrize("secret_keys", [(), ("hostedClusters",)])
def test_a_document_in_the_configuration_is_refused_and_not_shown(
    value: object, others: dict[str, str], secret_keys: tuple[str, ...]
) -> None:
    config = with_registry(**{**IMPORTED, "credential": {"value": value, **others}})

    assert (f"{REGISTRY}.credential.value", "unknown-key") in refusals(config, secret_keys=secret_keys)
    assert "MARKER" not in (written := report(config, secret_keys=secret_keys))
    assert "4711" not in written


@pytest.mark.parametrize("place", ["credential", "credential__file", "credential__secretName", "credential__other"])
def test_a_document_in_the_wrong_place_is_not_shown(place: str) -> None:
    key = "MARKER" * 100
    config = with_change(with_registry(**IMPORTED), f"hostedClusters__0__identities__imageRegistry__{place}", key)

    assert "MARKER" not in report(config)


def test_a_secret_that_exists_keeps_its_name() -> None:
    identity = {**IMPORTED, "credential": {"secretName": "uamsi"}, "secretName": "mine"}

    assert refusals(with_registry(**identity)) == [(f"{REGISTRY}.secretName", "existing-secret-renamed")]


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
