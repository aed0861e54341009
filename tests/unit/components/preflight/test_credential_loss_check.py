"""A credential in use is dropped only if the configuration allows it, cluster by cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest

from identity.catalogue import DATA_PLANE
from tests.unit.components import world
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import (
    GROUPS,
    REGISTRY_IDENTITY,
    SECOND_CLUSTER,
    VAULT,
    VNET,
    hosted_cluster,
    lookups,
    with_managed_identity,
)

Run = Callable[..., RecordingMonitor]
IDENTITIES = f"{GROUPS}/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities"


@pytest.fixture
def last_outputs(two_clusters: RecordingMonitor) -> Mapping[str, Any]:
    """The outputs of a run with the clusters hc1 and hc2."""
    return two_clusters.stack_outputs.values


@pytest.fixture
def next_run(program: Program, last_outputs: Mapping[str, Any]) -> Run:
    """Runs the program with changes of the configuration, after that run or one with the outputs `last`."""

    def run(*, last: Mapping[str, Any] = last_outputs, **changes: Any) -> RecordingMonitor:
        answers = lookups(readStackOutputs={"outputs": last, "secretOutputNames": []})
        config = {"hostedClusters": [hosted_cluster(), SECOND_CLUSTER], "clusterSide": "hypershift", **changes}
        return program(invokes=answers, options={"refused": True}, lookups_only=True, **config)

    return run


def with_identity(field: str, **changes: Any) -> list[dict[str, Any]]:
    return [hosted_cluster(identities={field: changes}), SECOND_CLUSTER]


def lost(recorder: RecordingMonitor, cluster: str = "hc1") -> list[str]:
    """The credentials that the cluster would lose according to the report; nothing was registered."""
    assert recorder.failure is not None, "nothing was refused"
    assert recorder.registered == []
    _, _, rest = str(recorder.failure).partition(f"found:    {cluster} would lose credentials in use:\n")
    return [line.removeprefix("    - ") for line in rest.partition("\n  accepted:")[0].splitlines()]


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        (with_identity("imageRegistry", enabled=False), ["imageRegistry: ciro-hc1-json -> nothing"]),
        (with_identity("ingress", secretName="mine"), ["ingress: ingress-hc1-json -> mine"]),
        (
            [*with_managed_identity({"secretName": "ciro-hc1-json"}), SECOND_CLUSTER],
            ["imageRegistry: entra-application -> hc1-image-registry"],
        ),
        (
            [hosted_cluster(infraID="another"), SECOND_CLUSTER],
            [
                f"{field}MSIClientID: hc1-{name}-hc1-infra -> hc1-{name}-another"
                for field, name in {"imageRegistry": "image-registry", "disk": "disk", "file": "file"}.items()
            ],
        ),
        ([hosted_cluster(name="new", infraID="another"), SECOND_CLUSTER], ["all of it: new has its issuerURL"]),
    ],
    ids=["off", "secret name", "source", "infraID", "name and infraID"],
)
def test_every_change_that_drops_a_credential_is_refused(
    next_run: Run, clusters: list[dict[str, Any]], expected: list[str]
) -> None:
    recorder = next_run(hostedClusters=clusters)

    assert recorder.problems == [("allowCredentialLoss", "credential-loss")]
    assert lost(recorder) == expected


@pytest.mark.parametrize(
    ("changes", "place", "rule"),
    [
        (
            {"hostedClusters": [SECOND_CLUSTER, hosted_cluster(name="new")]},
            "hostedClusters[1].name",
            "cluster-replaced-in-one-run",
        ),
        ({"tenantId": "33333333-3333-4333-8333-333333333333"}, "tenantId", "tenant-of-last-run"),
    ],
    ids=["another name", "another tenant"],
)
def test_what_no_stack_survives_is_refused_whatever_is_allowed(
    next_run: Run, changes: dict[str, Any], place: str, rule: str
) -> None:
    recorder = next_run(**changes, allowCredentialLoss=["hc1", "hc2"])

    assert recorder.registered == []
    assert recorder.problems == [(place, rule)]


def test_another_vault_drops_the_credentials_of_every_cluster(next_run: Run) -> None:
    recorder = next_run(vault={"name": "kv-other", "defaultAction": "Allow"})

    for cluster in ("hc1", "hc2"):
        lines = lost(recorder, cluster)
        assert len(lines) == len(world.IDENTITIES)
        assert lines[0] == (
            f"cloudProvider: {VAULT}/secrets/cloud-provider-{cluster}-json -> "
            f"{VAULT.replace('kv-idstack-dev', 'kv-other')}/secrets/cloud-provider-{cluster}-json"
        )


def test_another_resource_group_also_drops_the_data_plane_identities(next_run: Run) -> None:
    lines = lost(next_run(resourceGroup="identity-new"))

    assert len(lines) == len(world.IDENTITIES) + len(DATA_PLANE)
    assert lines[-1] == (
        f"fileMSIClientID: {IDENTITIES}/hc1-file-hc1-infra -> "
        f"{IDENTITIES.replace('identity-dev', 'identity-new')}/hc1-file-hc1-infra"
    )


def test_another_managed_identity_is_another_credential(program: Program, next_run: Run) -> None:
    first = program(hostedClusters=with_managed_identity({"secretName": "uamsi"}), clusterSide="hypershift")
    changed = with_managed_identity({"secretName": "uamsi"}, resourceId=REGISTRY_IDENTITY + "-2")

    recorder = next_run(last=first.stack_outputs.values, hostedClusters=changed)

    assert lost(recorder) == ["imageRegistry: hc1-image-registry -> hc1-image-registry-2"]


_HERE = [{**cluster, "location": "eastus"} for cluster in (hosted_cluster(), SECOND_CLUSTER)]


def test_another_region_replaces_what_the_stack_makes_there(next_run: Run) -> None:
    recorder = next_run(location="westus", hostedClusters=_HERE)

    for cluster in ("hc1", "hc2"):
        assert lost(recorder, cluster) == [
            f"{row.field}: {cluster}-{row.name}-{cluster}-infra in eastus -> in westus" for row in DATA_PLANE
        ]
    assert (
        "fix:      put back what changed (`.venv/bin/idstack pulumi --stack test -- config set location eastus`: Azure "
        "moves " in str(recorder.failure)
    )


def test_the_region_of_one_identity_is_named_by_its_own_key(next_run: Run) -> None:
    moved = hosted_cluster(dataPlaneIdentities={"diskMSIClientID": {"location": "westus"}})
    recorder = next_run(hostedClusters=[moved, SECOND_CLUSTER])

    assert lost(recorder) == ["diskMSIClientID: hc1-disk-hc1-infra in eastus -> in westus"]
    place = "'hostedClusters[0].dataPlaneIdentities.diskMSIClientID.location' eastus`"
    assert f"put back what changed (`.venv/bin/idstack pulumi --stack test -- config set --path {place}" in str(
        recorder.failure
    )


def test_the_identities_may_stay_in_their_region_while_the_stack_moves(next_run: Run) -> None:
    pinned = {"dataPlaneIdentities": {row.field: {"location": "eastus"} for row in DATA_PLANE}}
    clusters = [cluster | pinned for cluster in _HERE]

    assert next_run(location="westus", hostedClusters=clusters).failure is None


def with_created_issuer(**changes: Any) -> list[dict[str, Any]]:
    given = {**hosted_cluster(**_CREATED), "location": "eastus", "issuerURL": None, **changes}
    return [{name: value for name, value in given.items() if value is not None}]


@pytest.fixture(scope="module")
def with_issuer(program: Program) -> RecordingMonitor:
    return program(hostedClusters=with_created_issuer(), clusterSide="hypershift", location="eastus")


_READER = f"{IDENTITIES}/reader"
_MADE = {"source": "created", "name": "reader"}
_CREATED = {
    "issuer": "create",
    "issuerName": "hc1created",
    "hostedCluster": {"manifest": {"spec": {"release": {"image": "registry.example.com/release:1"}}}},
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"location": "westus"}, "key-vault-user: reader in eastus -> in westus"),
        ({"keyVaultUser": {"source": "created", "name": "other"}}, "key-vault-user: reader -> other"),
        ({"keyVaultUser": {"source": "aks-addon"}}, "key-vault-user: reader -> nothing"),
    ],
    ids=["region", "name", "source"],
)
def test_the_key_vault_user_of_all_clusters_is_not_replaced_unasked(
    program: Program, next_run: Run, changes: dict[str, Any], expected: str
) -> None:
    """Also in a stack without a cluster, whose vault others share."""
    last = program(hostedClusters=[], keyVaultUser=_MADE).stack_outputs.values
    assert last["keyVaultUserInUse"] == {"principal": _READER, "location": "eastus"}

    then = {"last": last, "hostedClusters": [], "keyVaultUser": _MADE, **changes}
    assert lost(next_run(**then), "key-vault-user") == [expected]
    assert next_run(**then, allowCredentialLoss=["key-vault-user"]).failure is None


@pytest.mark.parametrize(
    ("region", "changes", "expected"),
    [
        ("westus", {}, "issuer: hc1created in eastus -> in westus"),
        ("eastus", {"issuerName": "another"}, "issuer: hc1created -> another"),
        (
            "eastus",
            {
                "issuer": "existing",
                "issuerName": None,
                "issuerURL": "https://hc1created.blob.core.windows.net/hc1created",
            },
            "issuer: hc1created -> nothing",
        ),
    ],
    ids=["region", "name", "made by somebody else"],
)
def test_the_issuer_that_the_stack_makes_is_not_replaced_unasked(
    with_issuer: RecordingMonitor, next_run: Run, region: str, changes: dict[str, Any], expected: str
) -> None:
    last = with_issuer.stack_outputs.values

    assert expected in lost(next_run(last=last, hostedClusters=with_created_issuer(**changes), location=region))


def test_a_cluster_that_is_named_may_lose_and_no_other(next_run: Run) -> None:
    clusters = [
        hosted_cluster(identities={"imageRegistry": {"enabled": False}}),
        {**SECOND_CLUSTER, "identities": {"imageRegistry": {"enabled": False}}},
    ]

    assert next_run(hostedClusters=clusters, allowCredentialLoss=["hc1", "hc2"]).failure is None
    recorder = next_run(hostedClusters=clusters, allowCredentialLoss=["hc1"])
    assert "hc1 would lose" not in str(recorder.failure)
    assert "'allowCredentialLoss[1]' hc2`" in str(recorder.failure)
    assert lost(recorder, "hc2") == ["imageRegistry: ciro-hc2-json -> nothing"]


_KEEPS: Mapping[str, dict[str, Any]] = {
    "nothing": {},
    "removed": {"hostedClusters": [SECOND_CLUSTER]},
    "all removed": {"hostedClusters": []},
    "order": {"hostedClusters": [SECOND_CLUSTER, hosted_cluster()]},
    "added": {"hostedClusters": [hosted_cluster(), SECOND_CLUSTER, SECOND_CLUSTER | {"name": "hc3", "infraID": "hc3"}]},
    "encoding": {"hostedClusters": [hosted_cluster(objectEncoding="base64"), SECOND_CLUSTER]},
    "roles": {"roles": "builtin"},
    "cluster side": {"clusterSide": "stack"},
    "tags and lifetime": {"tags": {"team": "another"}, "credentials": {"lifetimeDays": 30, "renewBeforeDays": 15}},
}


@pytest.mark.parametrize("changes", _KEEPS.values(), ids=_KEEPS)
def test_a_change_that_keeps_credentials_or_removes_a_cluster_passes(next_run: Run, changes: dict[str, Any]) -> None:
    assert next_run(**changes).failure is None


def test_a_cluster_removed_beside_one_with_its_issuer_is_not_renamed(
    next_run: Run, last_outputs: Mapping[str, Any]
) -> None:
    """Clusters of one developer may share an issuer."""
    issuer = hosted_cluster()["issuerURL"]
    outputs = deepcopy(dict(last_outputs))
    outputs["hostedClusters"]["hc2"]["hostedClusterSpec"]["issuerURL"] = issuer

    assert next_run(last=outputs, hostedClusters=[{**SECOND_CLUSTER, "issuerURL": issuer}]).failure is None


def test_an_unneeded_permission_gets_a_warning(next_run: Run, caplog: pytest.LogCaptureFixture) -> None:
    assert next_run(allowCredentialLoss=["hc1"]).failure is None

    assert "allowCredentialLoss names hc1, which loses nothing" in caplog.text


def test_unreadable_outputs_are_reported_before_the_first_resource(program: Program) -> None:
    unreadable = {**lookups(), "pulumi:pulumi:readStackOutputs": Exception("blob: connection refused")}

    recorder = program(invokes=unreadable, options={"refused": True})

    assert recorder.registered == []
    assert "which name the credentials in use, cannot be read: blob: connection refused. Nothing was" in str(
        recorder.failure
    )


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"resourceGroup": "Identity-Dev"}, {"resourceGroup": "identity-dev"}),
        ({"vault": {"name": "KV-idstack-dev", "defaultAction": "Allow"}}, {"vault.name": "kv-idstack-dev"}),
        (
            {"hostedClusters": [hosted_cluster(vnetID=VNET.replace("/hc1-vnet", "/HC1-vnet")), SECOND_CLUSTER]},
            {"hostedClusters[0].vnetID": VNET},
        ),
        (
            {"hostedClusters": [hosted_cluster(resourceGroup="HC1-managed"), SECOND_CLUSTER]},
            {"hostedClusters[0].resourceGroup": "hc1-managed"},
        ),
        (
            {"hostedClusters": with_identity("ingress", secretName="INGRESS-hc1-json")},
            {"hostedClusters[0].identities.ingress.secretName": "ingress-hc1-json"},
        ),
    ],
    ids=["resource group", "vault", "id", "resource group of a cluster", "secret"],
)
def test_the_same_name_in_another_letter_case_is_refused_with_the_present_one(
    next_run: Run, changes: dict[str, Any], refused: dict[str, str]
) -> None:
    recorder = next_run(**changes)

    assert recorder.problems == [(place, "other-letter-case") for place in refused]
    for present in refused.values():
        assert f'accepted: "{present}", as the stack has it' in str(recorder.failure)
    assert recorder.registered == []


def test_a_stack_whose_ids_were_handed_on_as_they_were_typed_goes_on(
    next_run: Run, last_outputs: Mapping[str, Any]
) -> None:
    typed = json.dumps(last_outputs).replace("Microsoft.Network/virtualNetworks", "microsoft.network/virtualnetworks")

    recorder = next_run(last=json.loads(typed))

    assert (recorder.problems, recorder.failure) == ([], None)
