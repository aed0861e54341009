"""What previews of a stack that is up show, and that a stack that is up stays as it is.

What a change registers otherwise is proven without an engine: `tests/unit/components/test_changes.py`.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from identity.catalogue import DATA_PLANE
from identity.credentials.certificate import issue
from localcloud.testing.azure import Resources
from localcloud.testing.kubernetes import Endpoint
from localcloud.testing.running import StateDirectory
from tests.engine.changing import refusal
from tests.harness import LocalStack


def test_a_second_up_changes_nothing(small: LocalStack) -> None:
    before = small.inventory()

    small.up("--expect-no-changes")

    assert small.inventory() == before


def test_a_refresh_finds_what_up_has_made(small: LocalStack) -> None:
    small.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes")


def test_a_preview_of_other_tags_replaces_nothing(small: LocalStack) -> None:
    """azure-native knows no id of an identity that it updates, and a role of another principal is another role."""
    with small.configured(tags={**small.configuration("tags"), "environment": "other"}):
        steps = small.preview()

    tagged = {name for name in steps if name.endswith("-identity")}
    assert set(steps.values()) == {"update"}
    assert (len(tagged), "vault-vault" in steps) == (len(DATA_PLANE), True)
    assert all(name in tagged or name.endswith(("-vault", "-credential-secret")) for name in steps)


def test_another_region_is_refused_with_all_that_it_would_replace(small: LocalStack) -> None:
    [cluster] = small.configuration("hostedClusters")
    moved = {"location": "westus", "hostedClusters": [{**cluster, "location": "eastus"}]}

    refused = refusal(small, "preview", **moved)
    another = {**small.configuration("vault"), "name": "kv-idstack-west"}  # no vault moves
    with small.configured(**moved, vault=another, allowCredentialLoss=["hc1"]):
        steps = small.preview()

    replaced = [name for name, operation in steps.items() if operation == "replace" and name.endswith("-identity")]
    lines = re.findall(r"- \w+: (\S+) in eastus -> in westus", refused)
    assert len(lines) == len(DATA_PLANE)
    assert sorted(small.resource(name)["inputs"]["resourceName"] for name in replaced) == sorted(lines)
    assert {steps[name.replace("-identity", "-roles-managed")] for name in replaced} == {"replace"}
    assert "`.venv/bin/idstack pulumi --stack local -- config set location eastus`" in refused


def test_another_authority_of_the_cluster_updates_the_provider_only(small: LocalStack) -> None:
    """As after the rotation of the cluster's certificates: AKS then gives out a bundle of the old and the new."""
    store = StateDirectory(small.state).open_store()
    existing = Endpoint.load(store)
    next_authority = issue("next", not_before=datetime.now(UTC), lifetime=timedelta(days=1)).certificate_pem
    bundle = base64.b64decode(existing.ca) + next_authority.encode()
    replace(existing, ca=base64.b64encode(bundle).decode()).save(store)
    try:
        steps = small.preview()
    finally:
        existing.save(store)
        store.close()

    # The guards keep the kubeconfig, and change nothing on the cluster.
    assert steps == dict.fromkeys(("kubernetes", "hc1-cluster-side-guard", "hc1-namespace-guard"), "update")


def test_a_private_cluster_is_reached_by_its_public_name_on_request(small: LocalStack, tmp_path: Path) -> None:
    cluster = small.configuration("managementCluster")
    store = StateDirectory(small.state).open_store()
    clusters = Resources(store)
    existing = clusters.get(small.outputs["managementClusterId"])
    assert existing is not None
    private = "mgmt.privatelink.eastus.azmk8s.io"
    names = {"fqdn": "mgmt.hcp.eastus.azmk8s.io", "privateFQDN": private}
    written = tmp_path / "kubeconfig"

    def server(*options: str) -> str:
        small.idstack("kubeconfig", "--file", str(written), *options)
        [found] = yaml.safe_load(written.read_text())["clusters"]
        return str(found["cluster"]["server"])

    clusters.put({**existing, "properties": {**existing["properties"], **names}})
    try:
        with small.configured(managementCluster={**cluster, "access": {"publicFqdn": True}}):
            assert small.preview() == {}
            assert server() == small.environment.kubernetes_endpoint
        assert server() == f"https://{private}:443"
        assert server("--public-fqdn") == small.environment.kubernetes_endpoint
    finally:
        clusters.put(existing)
        store.close()


def test_stacks_show_no_secret_output(small: LocalStack) -> None:
    assert "[secret]" not in small.pulumi("stack", "output", "--json").stdout
