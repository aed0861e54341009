"""What must exist already: looked up before anything is registered, everything that is missing in one report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from components.azure.control_plane_identity import ImportedCredential
from components.azure.providers import register_providers
from components.preflight.prerequisites import Prerequisites, look_up
from identity.credentials import renewal_request, rfc3339
from tests.unit.components import world
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.refusals import GONE, PROVIDERS, refused
from tests.unit.components.world import REGISTRY, hosted_cluster, lookups, with_managed_identity


def without(*names: str) -> Callable[[Mapping[str, Any]], Any]:
    """An answer in which nothing of these names exists, and the rest is in `eastus`."""
    return lambda arguments: GONE if set(names) & set(arguments.values()) else {"location": "eastus"}


def test_everything_that_is_missing_is_in_one_report(program: Program) -> None:
    nothing = dict.fromkeys((token.rpartition(":")[2] for token in lookups()), GONE)
    del nothing["getClientConfig"], nothing["prefetchSecrets"], nothing["findObstacles"]
    del nothing["readStackOutputs"], nothing["readStackResourceOutputs"]

    assert refused(program, invokes=lookups(**nothing)) == [
        (place, "resource-missing")
        for place in (
            "resourceGroup",
            "managementCluster.name",
            "hostedClusters[0].resourceGroup",
            "hostedClusters[0].dnsZoneResourceGroup",
            "hostedClusters[0].vnetID",
            "hostedClusters[0].subnetID",
            "hostedClusters[0].securityGroupID",
            "hostedClusters[0].kms.activeKey.keyVaultName",
        )
    ]


IDENTITY = "hostedClusters[0].identities.imageRegistry"
BEFORE = "https://kv-etcd-before.vault.azure.net/keys/hc1-etcd/0123456789abcdef0123456789abcdef"
KMS = {**hosted_cluster()["kms"], "backupKey": BEFORE, "backupKeyVaultResourceGroup": "etcd-before"}
FORBIDDEN = Exception(
    'Status=403 Code="AuthorizationFailed" Message="The client \'40404404-0000-4000-8000-404404404404\' does not '
    "have authorization to perform action 'Microsoft.Network/virtualNetworks/read' over scope "
    "'/subscriptions/22222222-2222-4222-8222-222222222222/resourceGroups/NotFound'.\""
)


@pytest.mark.parametrize(
    ("clusters", "answers", "problems"),
    [
        (
            [hosted_cluster(kms=KMS)],
            {"getVault": without("kv-etcd-before", "etcd-before")},
            [("hostedClusters[0].kms.backupKey.keyVaultName", "resource-missing")],
        ),
        # It is not called missing.
        ([hosted_cluster()], {"getVirtualNetwork": FORBIDDEN}, [("hostedClusters[0].vnetID", "resource-unreadable")]),
        (
            with_managed_identity({"secretName": "ciro"}),
            {"getUserAssignedIdentity": GONE, "getSecret": GONE},
            [(f"{IDENTITY}.{key}", "resource-missing") for key in ("resourceId", "credential.secretName")],
        ),
        (
            with_managed_identity({"secretName": "ciro"}, clientId="cccccccc-0000-4000-8000-000000000001"),
            {},
            [(f"{IDENTITY}.clientId", "client-id-mismatch")],
        ),
    ],
    ids=["vault of a backup key", "forbidden", "managed identity and secret", "another client id"],
)
def test_what_a_cluster_needs_must_exist_be_readable_and_fit(
    program: Program, clusters: list[dict[str, Any]], answers: dict[str, Any], problems: list[tuple[str, str]]
) -> None:
    assert refused(program, hostedClusters=clusters, invokes=lookups(**answers)) == problems


def test_an_object_named_twice_is_looked_up_once_and_reported_twice(program: Program) -> None:
    cluster = hosted_cluster(dnsZoneResourceGroup="hc1-managed")
    asked: list[str] = []

    def answer(arguments: Mapping[str, Any]) -> Any:
        asked.append(arguments["resourceGroupName"])
        return without("hc1-managed")(arguments)

    assert refused(program, hostedClusters=[cluster], invokes=lookups(getResourceGroup=answer)) == [
        ("hostedClusters[0].resourceGroup", "resource-missing"),
        ("hostedClusters[0].dnsZoneResourceGroup", "resource-missing"),
    ]
    assert sorted(asked) == ["hc1-managed", "identity-dev"]


def test_a_document_of_another_identity_is_refused_without_showing_it(
    program: Program, msi_document: str, tmp_path: Path
) -> None:
    (tmp_path / "ciro.json").write_text(msi_document, encoding="utf-8")
    clusters = with_managed_identity({"file": str(tmp_path / "ciro.json")})
    another = {**REGISTRY, "clientId": "cccccccc-0000-4000-8000-000000000001"}

    recorder = program(
        options={"refused": True}, hostedClusters=clusters, invokes=lookups(getUserAssignedIdentity=another)
    )

    assert recorder.problems == [
        ("hostedClusters[0].identities.imageRegistry.credential", "credential-document-invalid")
    ]
    assert recorder.names() == PROVIDERS
    assert f'    - client_id: found "{REGISTRY["clientId"]}"' in str(recorder.failure)
    assert "client_secret" not in str(recorder.failure)


@pytest.mark.parametrize(("content", "reason"), [(None, "FileNotFoundError"), (b"\xff\xfe", "UnicodeDecodeError")])
def test_an_unreadable_file_is_named(program: Program, tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "ciro.json"
    if content is not None:
        path.write_bytes(content)

    recorder = program(hostedClusters=with_managed_identity({"file": str(path)}), options={"refused": True})

    assert recorder.problems == [
        ("hostedClusters[0].identities.imageRegistry.credential.file", "credential-file-unreadable")
    ]
    assert f'"{path}"' in str(recorder.failure)
    assert f"({reason})" in str(recorder.failure)


def imported(invokes: Mapping[str, Any], credential: Mapping[str, str]) -> ImportedCredential:
    """The image registry's credential as it is found when nothing is missing."""
    settings = world.settings(hostedClusters=with_managed_identity(credential), clusterSide="hypershift")
    looked_up: list[Prerequisites] = []

    async def build() -> None:
        looked_up.append(await look_up(settings, register_providers(settings), None, {}))

    run(build, invokes=invokes)
    assert looked_up[0].imported.keys() == {"hc1"}
    return looked_up[0].imported["hc1"]["imageRegistry"]


def test_of_a_secret_that_is_in_the_vault_the_dates_beside_it_are_known() -> None:
    stored = {"properties": {"attributes": {"expires": 1803027300}}, "tags": {"renew_after": "2027-01-05T08:55:00Z"}}

    assert imported(lookups(getSecret=stored), {"secretName": "ciro"}) == ImportedCredential(
        client_id=REGISTRY["clientId"],
        principal_id=REGISTRY["principalId"],
        document=None,
        summary={
            "notAfter": "2027-02-19T08:55:00Z",
            "renewAfter": "2027-01-05T08:55:00Z",
            "thumbprint": None,
            "generation": None,
        },
    )


def test_a_secret_without_dates_can_be_used() -> None:
    found = imported(lookups(getSecret={"properties": {}}), {"secretName": "ciro"})

    assert found.document is None
    assert set(found.summary.values()) == {None}


@pytest.mark.parametrize(
    ("age", "tags", "is_refused"),
    [
        (timedelta(minutes=-1), {"thumbprint": "A" * 40}, True),
        (timedelta(minutes=-1), None, True),
        (timedelta(0), {"thumbprint": "A" * 40}, True),
        (timedelta(0), None, False),
        (timedelta(minutes=1), {"thumbprint": "A" * 40}, False),
        (None, {"thumbprint": "A" * 40}, False),
    ],
)
def test_a_document_older_than_the_vaults_is_refused_before_any_resource(
    program: Program, msi_document: str, tmp_path: Path, age: timedelta | None, tags: Any, is_refused: bool
) -> None:
    path = tmp_path / "credential.json"
    path.write_text(msi_document)
    begins = rfc3339.parse(json.loads(msi_document)["not_before"])
    attributes = {} if age is None else {"notBefore": int((begins - age).timestamp())}
    invokes = lookups(getSecret={"properties": {"attributes": attributes}, "tags": tags})
    clusters = with_managed_identity({"file": str(path)})

    recorder = program(
        lookups_only=not is_refused, options={"refused": is_refused}, hostedClusters=clusters, invokes=invokes
    )

    place = "hostedClusters[0].identities.imageRegistry.credential.file"
    assert recorder.problems == ([(place, "credential-document-older")] if is_refused else [])
    assert (recorder.failure is not None) is is_refused


def test_the_same_document_and_a_renewal_are_not_refused(
    program: Program, msi_document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "credential.json"
    path.write_text(msi_document)
    end = {"notBefore": int(rfc3339.parse(json.loads(msi_document)["not_after"]).timestamp())}
    clusters = with_managed_identity({"file": str(path)})
    same = imported(lookups(), {"file": str(path)}).document
    assert same is not None

    for tags, environment in (({"thumbprint": same["thumbprint"]}, ""), (None, "{}")):
        monkeypatch.setenv(renewal_request.VARIABLE, environment)
        answer = {"properties": {"attributes": end}, "tags": tags}
        assert program(lookups_only=True, hostedClusters=clusters, invokes=lookups(getSecret=answer)).failure is None


def test_objects_are_looked_up_by_the_names_in_their_ids(stack: RecordingMonitor) -> None:
    invoked = {call.function.partition(":")[2]: call.arguments for call in reversed(stack.invoked)}

    assert invoked["network:getSubnet"] == {
        "resourceGroupName": "hc1-network",
        "virtualNetworkName": "hc1-vnet",
        "subnetName": "default",
    }
    assert invoked["keyvault:getVault"] == {"resourceGroupName": "etcd-dev", "vaultName": "kv-etcd-dev"}
    assert invoked["containerservice:getManagedCluster"] == {
        "resourceGroupName": "aks-dev",
        "resourceName": "aks-mgmt-dev",
    }


def test_every_lookup_goes_through_the_explicit_provider(stack: RecordingMonitor) -> None:
    found = [call for call in stack.invoked if call.function.startswith("azure-native:")]

    assert len(found) == 13
    assert {call.provider for call in found} == {"azure"}
    others = [call.function for call in stack.invoked if call not in found]
    assert others == [
        "pulumi:pulumi:readStackOutputs",
        "idstack:index:findObstacles",
        "idstack:index:prefetchSecrets",
        "pulumi:pulumi:readStackResourceOutputs",
    ]


@pytest.mark.parametrize("function", ["findObstacles", "prefetchSecrets"])
def test_a_plugin_that_is_killed_while_it_is_asked_ends_the_run_in_words(program: Program, function: str) -> None:
    killed = Exception(
        f"invoke of idstack:index:{function} failed: invocation of idstack:index:{function} returned an error: error "
        "reading from server: EOF"
    )

    recorder = program(options={"refused": True}, invokes=lookups(**{function: killed}))

    assert str(recorder.failure) == "error reading from server: EOF"


def test_the_secrets_of_all_schedules_are_prefetched(program: Program) -> None:
    clusters = [*with_managed_identity({"secretName": "delivered-elsewhere"}), world.SECOND_CLUSTER]

    answers = lookups(getSecret={"properties": {}})
    stack = program(hostedClusters=clusters, invokes=answers, clusterSide="hypershift")

    addresses = ("cloud", "tenantId", "vaultId", "secretName")
    decided = [
        {name: resource.inputs[name] for name in addresses}
        for resource in stack.registered
        if resource.type == "idstack:index:RenewalSchedule"
    ]
    [prefetched] = [call.arguments for call in stack.invoked if call.function == "idstack:index:prefetchSecrets"]
    names = prefetched["secretNames"]
    common = {name: value for name, value in prefetched.items() if name != "secretNames"}
    assert sorted(names) == sorted(secret["secretName"] for secret in decided)
    assert [{**common, "secretName": secret["secretName"]} for secret in decided] == decided
