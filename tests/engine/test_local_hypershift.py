"""The local stack for HyperShift's users: everything created, the HostedCluster written, the CLI's files exported."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from identity.catalogue import CONTROL_PLANE
from tests.harness import LocalStack, running_stack

pytestmark = pytest.mark.nightly

STACK = "local-hypershift"
FIELDS = [row.field for row in CONTROL_PLANE if row.workload]


def test_a_laptop_has_what_hypershifts_cli_takes(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    with running_stack(tmp_path_factory.mktemp("project")) as local:
        stack = LocalStack(local.root, name=STACK)
        proven = stack.idstack("up", "--stack", STACK, "--json").stdout
        output = ("--directory", str(tmp_path), "--script", str(tmp_path / "hs1.sh"))
        stack.idstack("export", "hypershift", "--stack", STACK, "--cluster", "hs1", *output)
        signed_in = stack.idstack("local", "exec", "--as", "hs1/disk", "--", "printenv", "AZURE_CLIENT_ID").stdout
        with stack.kubernetes() as http:
            applied = http.get("/apis/hypershift.openshift.io/v1beta1/namespaces/default/hostedclusters/hs1").json()
        identities = json.loads((tmp_path / "hs1/managed-identities.json").read_text())
        down = stack.idstack("down", "--stack", STACK).stdout

    assert applied["spec"]["infraID"] == json.loads((tmp_path / "hs1/infra.json").read_text())["infraID"] == "hs1-infra"
    assert signed_in.strip() == identities["disk"]["clientID"]
    assert {each["identity"] for each in json.loads(proven)["serviceAccounts"]} == set(FIELDS)
    subprocess.run(["bash", "-n", tmp_path / "hs1.sh"], check=True)
    assert "the local cloud stays, because it still has other stacks: local" in down
