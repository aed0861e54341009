"""The stacks for HyperShift's users on a laptop: the files of its CLI, and both ways to sign in."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from identity.catalogue import CONTROL_PLANE
from tests.harness import LocalStack, running_stack

pytestmark = pytest.mark.nightly

STACK = "local-hypershift"
BOTH = "local-both"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with running_stack(tmp_path_factory.mktemp("project")) as stack:
        yield stack


def test_a_laptop_has_what_hypershifts_cli_takes(local: LocalStack, tmp_path: Path) -> None:
    stack = LocalStack(local.root, name=STACK)
    stack.idstack("up", "--stack", STACK)
    output = ("--directory", str(tmp_path), "--script", str(tmp_path / "hs1.sh"))
    stack.idstack("export", "hypershift", "--stack", STACK, "--cluster", "hs1", *output)
    signed_in = stack.idstack("local", "exec", "--as", "hs1/disk", "--", "printenv", "AZURE_CLIENT_ID").stdout
    with stack.kubernetes() as http:
        applied = http.get("/apis/hypershift.openshift.io/v1beta1/namespaces/default/hostedclusters/hs1").json()
    identities = json.loads((tmp_path / "hs1/managed-identities.json").read_text())
    down = stack.idstack("down", "--stack", STACK).stdout

    assert applied["spec"]["infraID"] == json.loads((tmp_path / "hs1/infra.json").read_text())["infraID"] == "hs1-infra"
    assert signed_in.strip() == identities["disk"]["clientID"]
    subprocess.run(["bash", "-n", tmp_path / "hs1.sh"], check=True)
    assert "the local cloud stays, because it still has other stacks: local" in down


def test_one_stack_proves_both_ways_to_sign_in(local: LocalStack) -> None:
    stack = LocalStack(local.root, name=BOTH)
    proven = json.loads(stack.idstack("up", "--stack", BOTH, "--json").stdout)
    shown = json.loads(stack.idstack("status", "--stack", BOTH, "--json").stdout)
    examined = json.loads(stack.idstack("doctor", "--stack", BOTH, "--json", check=False).stdout)
    stack.idstack("up", "--stack", BOTH, "--expect-no-changes", "--json")
    stack.idstack("down", "--stack", BOTH)

    mounts = [mount for row in proven["rows"] for mount in row["mounts"]]
    certificates = [row for row in CONTROL_PLANE if row.enabled_by_default]
    assert {row["identity"] for row in proven["rows"]} == {row.field for row in certificates}
    assert len(mounts) == sum(len(row.mounts) for row in certificates)
    assert [account["subject"] for account in proven["serviceAccounts"]] == [
        account.subject for row in CONTROL_PLANE if row.workload for account in row.workload.subjects
    ]
    proofs = {probe["report"]["proof"]["status"] for probe in (*mounts, *proven["serviceAccounts"])}
    assert proofs == {200}
    assert (shown["findings"], shown["unread"]) == ([], [])
    # No HyperShift runs here, so there is no HostedCluster to look at.
    assert {check["check"] for check in examined["results"] if check["status"] != "ok"} == {"conditions"}
