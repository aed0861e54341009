"""A hosted cluster moves to a stack of its own, while a client signs in with what its pod has mounted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from identity.credentials.document import decode
from tests.engine.clients import Client, bare_sign_in
from tests.engine.killing import small_stack
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

_SHARED = ("cloud", "tenantId", "subscriptionId", "location", "resourceGroup", "tags", "protect", "managementCluster")
_TO = ("--cluster", "hc1", "--to", "local-hc1")
_KINDS = ("arm", "entra-application", "entra-principal", "keyvault-secret")


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalStack]:
    with small_stack(tmp_path, "hypershift") as stack:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
        stack.up()
        yield stack


def in_azure(stack: LocalStack) -> dict[tuple[str, str], str]:
    """All that the stacks have made, as JSON by kind and key."""
    return {key: text for key, text in stack.contents().items() if key[0] in _KINDS}


def test_a_split_makes_and_deletes_nothing_and_refuses_nobody(stack: LocalStack) -> None:
    mounted = next(
        json.loads(text) for text in OutOfBand(stack).credentials() if decode(text).client_id in _applications(stack)
    )
    clusters = stack.configuration("hostedClusters")
    before = in_azure(stack)
    thumbprints = {name: row["thumbprint"] for name, row in stack.control_plane.items()}
    own = stack.beside(
        "local-hc1",
        **{key: stack.configuration(key) for key in (*_SHARED, "credentials")},
        clusterSide="hypershift",
        sharedStack="organization/idstack/local",
        hostedClusters=clusters,
    )
    refused = stack.idstack("split", *_TO, check=False)
    assert (refused.returncode, own.resources()) == (1, [])
    assert "Pulumi.local.yaml still has hc1; take it out of idstack:hostedClusters" in refused.stderr
    client = Client(lambda: bare_sign_in(mounted))
    try:
        client.await_sign_ins(1)
        with stack.configured(hostedClusters=[]):
            in_one_change = [stack.idstack(*words, check=False) for words in (("up",), ("up", "--stack", "local-hc1"))]
            assert [each.returncode for each in in_one_change] == [1, 1]
            assert all(
                "idstack split --stack local --cluster hc1 --to local-hc1" in each.stderr for each in in_one_change
            )
            assert in_azure(stack) == before
            report = json.loads(stack.idstack("split", *_TO, "--json").stdout)
            own.idstack("up", "--stack", "local-hc1")
            stack.up()
            assert own.preview() == stack.preview() == {}
            client.await_sign_ins(5)
    finally:
        client.stop()

    assert client.failures == []
    assert set(report["changes"].values()) <= {"update"}
    assert {name: row["thumbprint"] for name, row in own.control_plane.items()} == thumbprints
    after = in_azure(stack)
    assert after.keys() == before.keys()
    changed = {key for key in before if before[key] != after[key]}
    secrets = {key for key in changed if key[0] == "keyvault-secret"}
    tagged = {key for key in changed if key[0] == "entra-application" or "/userassignedidentities/" in key[1]}
    assert changed == tagged | secrets, "their tags name the stack, or its owner id"
    assert all(_versions(before[key]) == _versions(after[key]) for key in secrets), "no secret was written anew"
    assert own.outputs["ownerId"] != stack.outputs["ownerId"]


def _versions(secret: str) -> list[str]:
    return [each["version"] for each in json.loads(secret)["versions"]]


def _applications(stack: LocalStack) -> set[str]:
    return {row["clientID"] for row in stack.control_plane.values() if row.get("thumbprint")}
