"""The user's part of a HostedCluster: read and validated before the first resource."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.world import hosted_cluster


def refused(program: Program, given: dict[str, Any]) -> RecordingMonitor:
    clusters = [hosted_cluster(hostedCluster=given)]
    recorder = program(clusterSide="hypershift", hostedClusters=clusters, options={"refused": True})
    assert [each.type for each in recorder.registered if not each.type.startswith("pulumi:providers:")] == []
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


def test_a_conflict_in_a_file_is_at_the_file(program: Program, tmp_path: Path) -> None:
    (tmp_path / "hc1.yaml").write_text("spec: {infraID: other}\n", encoding="utf-8")

    recorder = refused(program, {"file": str(tmp_path / "hc1.yaml")})

    assert recorder.problems == [("hostedClusters[0].hostedCluster.file", "hosted-cluster-conflict")]
    assert '"other" at spec.infraID' in str(recorder.failure), "the path inside of the file"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "FileNotFoundError"),
        ("a: 1\n---\nb: 2\n", "it holds 2 YAML documents"),
        ("", "it holds 0 YAML documents"),
        ("- a\n", "it holds no mapping"),
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
