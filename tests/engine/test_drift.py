"""Changes made behind the stack's back: the drift workflow's command names each, and `up --refresh` repairs it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.engine import broken
from tests.engine.out_of_band import OutOfBand
from tests.harness import PROJECT, LocalStack

pytestmark = pytest.mark.slow

_NAMESPACE = "clusters-hc1"
_VAULT_API, _AUTHORIZATION_API = "2024-11-01", "2022-04-01"


# Resource, what was done to it as a refresh shows it, and what `up` would do about it.
_CHANGES = [
    ("hc1-network-roles-vnet", '- name: "', "azure-native:authorization:RoleAssignment: (create)"),
    ("vault-vault", '~ defaultAction: "Allow" => "Deny"', '~ defaultAction: "Deny" => "Allow"'),
    ("hc1-control-plane-operator-credential-secret", "~ enabled: true => false", "~ enabled: false => true"),
    ("hc1-file-credential-secret", '- secretName: "azure-file-hc1-json"', 'secretName: "azure-file-hc1-json"'),
    (
        "hc1-cluster-side-disk-class-object",
        '~ keyvaultName: "kv-idstack-local" => "kv-elsewhere"',
        '~ keyvaultName: "kv-elsewhere" => "kv-idstack-local"',
    ),
    ("hc1-cluster-side-probe-ingress-deployment", "~ replicas: 1 => 0", "~ replicas: 0 => 1"),
]


def _change_everything(stack: LocalStack) -> None:
    out_of_band = OutOfBand(stack)
    out_of_band.arm("DELETE", stack.resource("hc1-network-roles-vnet")["id"], _AUTHORIZATION_API)
    acls = {"networkAcls": {"defaultAction": "Deny", "bypass": "None"}}
    out_of_band.arm("PATCH", stack.resource("vault-vault")["id"], _VAULT_API, {"properties": acls})
    with out_of_band.secrets() as secrets:
        secrets.update_secret_properties("cpo-hc1-json", enabled=False)
        secrets.begin_delete_secret("azure-file-hc1-json").result()
    with stack.kubernetes() as http:
        broken.patch_class(http, "managed-azure-disk-csi", {"keyvaultName": "kv-elsewhere"})
        broken.stop(http, "probe-ingress")


def _as_the_workflow(stack: LocalStack) -> subprocess.CompletedProcess[str]:
    """What the drift workflow runs."""
    workflow = yaml.safe_load((PROJECT / ".github/workflows/drift.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["drift"]["with"]
    assert job["command"] == "preview"
    return stack.idstack("preview", *job["arguments"].split(), check=False)


@pytest.fixture(scope="module")
def seen(small: LocalStack) -> subprocess.CompletedProcess[str]:
    """What the workflow prints about six changes at once."""
    _change_everything(small)
    return _as_the_workflow(small)


@pytest.mark.parametrize(("name", "changed", "repaired"), _CHANGES, ids=[name for name, *_ in _CHANGES])
def test_the_drift_workflow_names_what_was_changed(
    seen: subprocess.CompletedProcess[str], name: str, changed: str, repaired: str
) -> None:
    blocks = _blocks(seen.stdout + seen.stderr, name)

    assert changed in "".join(block for block in blocks if ": (refresh)\n" in block)
    assert repaired in "".join(block for block in blocks if ": (refresh)\n" not in block)


def test_the_drift_workflow_fails_and_shows_nothing_secret(
    small: LocalStack, seen: subprocess.CompletedProcess[str]
) -> None:
    printed = seen.stdout + seen.stderr
    assert seen.returncode == 1
    assert "no changes were expected for preview but changes were proposed" in printed
    mounted = Path(small.environment.mounts_dir).glob(f"{_NAMESPACE}/*/mnt/certs/*-json")
    keys = {json.loads(file.read_bytes())["client_secret"] for file in mounted}
    assert keys
    assert not [key for key in keys if key[200:260] in printed]
    assert "PRIVATE KEY" not in printed


@pytest.mark.usefixtures("seen")
def test_up_with_a_refresh_repairs_all_of_it(small: LocalStack) -> None:
    # A deleted secret keeps its name, so this takes a `recover`, which ends well only when every probe has signed in.
    stopped = small.idstack("up", "--refresh", check=False)
    assert len(small.follow(stopped.stderr)) == 1, stopped.stdout + stopped.stderr

    assert _as_the_workflow(small).returncode == 0


def test_recover_finds_an_object_that_the_state_has_lost(small: LocalStack) -> None:
    """The stack has no kubeconfig file: recover reaches the cluster as the stack does."""
    resources = small.resources()
    needed = {urn for resource in resources for urn in resource.get("dependencies") or ()}
    forgotten = next(
        resource
        for resource in resources
        if resource["type"].startswith("kubernetes:apps") and resource["urn"] not in needed
    )
    small.pulumi("state", "delete", "--yes", forgotten["urn"])

    done = small.idstack("recover", "--no-up", "--json")

    name = forgotten["urn"].rpartition("::")[2]
    assert json.loads(done.stdout)["entered"] == {name: forgotten["id"]}
    assert small.preview() == {name: "refresh"}, "known again, and read before its next use"
    small.up()


def test_after_an_application_was_deleted_recover_makes_another(small: LocalStack) -> None:
    before = small.resource("hc1-cloud-provider-entra-application")["id"]
    OutOfBand(small).graph("DELETE", before)

    refused = _as_the_workflow(small)
    small.idstack("recover")  # ends with `up`

    assert refused.returncode == 1
    said = refused.stdout + refused.stderr
    assert "Retrieving Application" in said
    assert before.rpartition("/")[2] in said
    assert small.resource("hc1-cloud-provider-entra-application")["id"] != before
    assert _as_the_workflow(small).returncode == 0


def _blocks(printed: str, name: str) -> list[str]:
    """The parts about one resource, spaces before colons removed."""
    parts = re.split(r"(?m)^ *[~+-]+ ?(?=[\w-]+:[^\n]*: \()", printed)
    return [re.sub(r" +: ", ": ", part) for part in parts if f"::{name}]" in part]
