"""The user's part of a HostedCluster: read and validated before the first resource."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.preflight.hosted_cluster_manifest import read_manifests
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import GROUPS, hosted_cluster, settings


def refused(program: Program, given: dict[str, Any], **changes: Any) -> RecordingMonitor:
    clusters = [hosted_cluster(hostedCluster={"serviceAccountSigningKey": "key"} | given, **changes)]
    recorder = program(clusterSide="hypershift", hostedClusters=clusters, options={"refused": True})
    assert [
        resource.type for resource in recorder.registered if not resource.type.startswith("pulumi:providers:")
    ] == []
    return recorder


def test_every_conflict_is_named_with_its_path_and_both_values(program: Program) -> None:
    manifest = {
        "kind": "NodePool",
        "spec": {
            "platform": {"azure": {"location": "westus", "azureAuthenticationConfig": "none"}},
            "secretEncryption": {"kms": {"azure": {"kms": {"clientID": "3" * 36}}}},
        },
        "statuss": {},
    }

    problems = refused(program, {"manifest": manifest}).problems

    inside = "hostedClusters[0].hostedCluster.manifest"
    azure = f"{inside}.spec.platform.azure"
    assert problems == [
        (f"{inside}.statuss", "hosted-cluster-unknown-key"),
        (f"{inside}.kind", "hosted-cluster-conflict"),
        (f"{azure}.location", "hosted-cluster-conflict"),
        (f"{azure}.azureAuthenticationConfig", "hosted-cluster-conflict"),
        (f"{inside}.spec.secretEncryption.kms.azure.kms.clientID", "hosted-cluster-conflict"),
    ]


@pytest.mark.parametrize(
    ("capabilities", "accepted"),
    [
        (None, False),
        ({}, False),
        ({"disabled": ["Console"]}, False),
        ({"disabled": "ImageRegistry"}, False),
        ({"disabled": ["Console", "ImageRegistry"]}, True),
    ],
)
def test_the_capability_of_an_identity_that_is_off_is_disabled(
    program: Program, capabilities: dict[str, Any] | None, accepted: bool
) -> None:
    given = {"manifest": {"spec": {"capabilities": capabilities}}, "serviceAccountSigningKey": "key"}
    cluster = hosted_cluster(identities={"imageRegistry": {"enabled": False}}, hostedCluster=given)

    recorder = program(clusterSide="hypershift", hostedClusters=[cluster], lookups_only=True, options={"refused": True})

    place = "hostedClusters[0].hostedCluster.manifest.spec.capabilities.disabled"
    assert recorder.problems == ([] if accepted else [(place, "hosted-cluster-capability")])


def test_a_conflict_in_a_file_is_at_the_file(program: Program, tmp_path: Path) -> None:
    (tmp_path / "hc1.yaml").write_text("spec: {infraID: other}\n", encoding="utf-8")

    recorder = refused(program, {"file": str(tmp_path / "hc1.yaml")})

    assert recorder.problems == [("hostedClusters[0].hostedCluster.file", "hosted-cluster-conflict")]
    assert '"other" at spec.infraID' in str(recorder.failure), "the path inside of the file"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "FileNotFoundError"),
        ("a: 1\n---\nb: 2\n", "it has 2 YAML documents"),
        ("", "it has 0 YAML documents"),
        ("- a\n", "it is not a mapping"),
        ("a: 1\na: 2\n", "the key a occurs twice"),
        ("a: [", "while parsing a flow node expected the node content"),
    ],
)
def test_a_file_that_holds_no_hosted_cluster_is_refused(
    program: Program, tmp_path: Path, text: str | None, reason: str
) -> None:
    file = tmp_path / "hc1.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")

    recorder = refused(program, {"file": str(file)})

    assert recorder.problems == [("hostedClusters[0].hostedCluster.file", "hosted-cluster-file-unusable")]
    assert f'found:    "{file}", which cannot be used: {reason}' in str(recorder.failure)
    assert "Traceback" not in str(recorder.failure)


@pytest.mark.parametrize("spec", [{}, {"serviceAccountSigningKey": {}}, {"serviceAccountSigningKey": "key"}])
def test_a_hosted_cluster_without_a_signing_key_is_refused(program: Program, spec: dict[str, Any]) -> None:
    recorder = refused(program, {"manifest": {"spec": spec}, "serviceAccountSigningKey": None})

    assert recorder.problems == [("hostedClusters[0].hostedCluster.manifest", "hosted-cluster-without-signing-key")]


def test_a_signing_key_other_than_the_configurations_is_a_conflict(program: Program) -> None:
    recorder = refused(program, {"manifest": {"spec": {"serviceAccountSigningKey": {"name": "other"}}}})

    inside = "hostedClusters[0].hostedCluster.manifest.spec.serviceAccountSigningKey.name"
    assert recorder.problems == [(inside, "hosted-cluster-conflict")]


def test_a_manifest_that_is_no_mapping_inside_is_a_conflict(program: Program) -> None:
    domains = {
        "dns": {
            "baseDomain": "example.com",
            "publicZoneID": f"{GROUPS}/dns-dev/providers/Microsoft.Network/dnszones/example.com",
            "privateZoneID": f"{GROUPS}/dns-dev/providers/Microsoft.Network/privateDnsZones/example.com",
        },
        "externalDnsDomain": "control-planes.example.org",
    }
    given = {"releaseImage": "x", "pullSecret": "x", "manifest": {"metadata": "x", "spec": ["x"]}}

    recorder = refused(program, given, **domains)

    inside = "hostedClusters[0].hostedCluster.manifest"
    assert recorder.problems == [
        (f"{inside}.metadata", "hosted-cluster-conflict"),
        (f"{inside}.spec", "hosted-cluster-conflict"),
    ]


def test_a_file_is_read_as_kubernetes_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "hc1.yaml"
    file.write_text("metadata: {annotations: {at: 2026-01-31, window: 12:30:45}}\nspec: {mode: 0o17}\n", "utf-8")
    cluster = hosted_cluster(hostedCluster={"file": str(file), "serviceAccountSigningKey": "key"})

    manifests = read_manifests(settings(clusterSide="hypershift", hostedClusters=[cluster]), "kv-hcp-identity")

    assert manifests.documents["hc1"]["metadata"]["annotations"] == {"at": "2026-01-31", "window": "12:30:45"}
    assert manifests.documents["hc1"]["spec"]["mode"] == 15


def test_the_zones_of_a_manifest_get_azures_letter_case(tmp_path: Path) -> None:
    group = f"{GROUPS}/dns-dev/providers/Microsoft.Network"
    file = tmp_path / "hc1.yaml"
    file.write_text(f"spec: {{dns: {{baseDomain: a.b, publicZoneID: {group}/dnsZones/a.b}}}}\n", "utf-8")
    cluster = hosted_cluster(hostedCluster={"file": str(file), "serviceAccountSigningKey": "key"})

    manifests = read_manifests(settings(clusterSide="hypershift", hostedClusters=[cluster]), "kv-hcp-identity")

    assert manifests.documents["hc1"]["spec"]["dns"] == {"baseDomain": "a.b", "publicZoneID": f"{group}/dnszones/a.b"}
