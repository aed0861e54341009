"""A hosted cluster moves to a stack of its own, while a client signs in with what its pod has mounted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from identity.credentials.document import decode
from tests.engine.clients import Client, bare_sign_in
from tests.engine.other_stacks import in_azure, move
from tests.engine.out_of_band import OutOfBand
from tests.engine.small_stack import small_stack
from tests.harness import LocalStack

pytestmark = pytest.mark.nightly

_PAGE = "docs/guides/stacks.md"


@pytest.fixture(params=["hypershift"])
def stack(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalStack]:
    with small_stack(tmp_path, request.param) as stack:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", stack.environment.ca_file)
        stack.up()
        yield stack


@contextmanager
def signing_in(stack: LocalStack) -> Iterator[Client]:
    """A client with what a pod of the stack has mounted."""
    own = {row["clientID"] for row in stack.control_plane.values() if row.get("thumbprint")}
    mounted = next(json.loads(text) for text in OutOfBand(stack).credentials() if decode(text).client_id in own)
    with Client(lambda: bare_sign_in(mounted)) as client:
        client.await_sign_ins(1)
        yield client


def to_get_the_cluster(stack: LocalStack, **configuration: Any) -> LocalStack:
    """The stack that is to have the cluster, with the configuration that fits."""
    return stack.beside(
        "local-hc1",
        *("tags", "protect", "managementCluster", "credentials", "hostedClusters"),
        sharedStack="organization/idstack/local",
        **configuration,
    )


def test_a_move_makes_and_deletes_nothing_and_refuses_nobody(stack: LocalStack) -> None:
    before = in_azure(stack)
    thumbprints = {name: row["thumbprint"] for name, row in stack.control_plane.items()}
    own = to_get_the_cluster(stack, clusterSide="hypershift")
    with signing_in(stack) as client, stack.configured(hostedClusters=[]):
        in_one_change = [stack.idstack(*words, check=False) for words in (("up",), ("up", "--stack", "local-hc1"))]
        assert [process.returncode for process in in_one_change] == [1, 1]
        assert all(_PAGE in process.stderr for process in in_one_change)
        assert in_azure(stack) == before
        move(stack, "hc1", "local-hc1")
        own.idstack("up", "--stack", "local-hc1")
        stack.up()
        assert own.preview() == stack.preview() == {}
        client.await_sign_ins(5)

    assert client.failures == []
    assert {name: row["thumbprint"] for name, row in own.control_plane.items()} == thumbprints
    after = in_azure(stack)
    assert after.keys() == before.keys()
    changed = {key for key in before if before[key] != after[key]}
    secrets = {key for key in changed if key[0] == "keyvault-secret"}
    tagged = {key for key in changed if key[0] == "entra-application" or "/userassignedidentities/" in key[1]}
    assert changed == tagged | secrets, "their tags name the stack, or its owner id"
    assert all(_versions(before[key]) == _versions(after[key]) for key in secrets), "no secret was written again"
    assert own.outputs["ownerId"] != stack.outputs["ownerId"]


def _versions(secret: str) -> list[str]:
    return [version["version"] for version in json.loads(secret)["versions"]]


@pytest.mark.parametrize("stack", ["stack"], indirect=True)
def test_a_move_that_was_killed_between_its_two_writes_is_finished(stack: LocalStack) -> None:
    before, whole = in_azure(stack), stack.checkpoint.read_bytes()
    own = to_get_the_cluster(stack, probe=stack.configuration("probe"))
    with signing_in(stack) as client, stack.configured(hostedClusters=[]):
        move(stack, "hc1", "local-hc1")
        moved = stack.checkpoint.read_bytes()
        stack.checkpoint.write_bytes(
            whole
        )  # as such a kill leaves it: the engine writes the second stack's state first
        meanwhile = [
            stack.idstack(command, "--stack", name, check=False)
            for command, name in (
                *(("up", "local"), ("recover", "local"), ("rotate", "local"), ("down", "local")),
                *(("up", "local-hc1"), ("recover", "local-hc1"), ("renew", "local-hc1"), ("down", "local-hc1")),
            )
        ]
        assert [process.returncode for process in meanwhile] == [1] * len(meanwhile)
        assert all(_PAGE in process.stderr for process in meanwhile)
        assert not any("leave it out of both files" in process.stderr for process in meanwhile)
        assert in_azure(stack) == before
        move(stack, "hc1", "local-hc1", finish=True)
        assert known(stack.resources()) == known(json.loads(moved)["checkpoint"]["latest"]["resources"])
        own.idstack("up", "--stack", "local-hc1")
        stack.idstack("up")
        assert own.preview() == stack.preview() == {}
        client.await_sign_ins(5)

    assert client.failures == []
    assert in_azure(stack).keys() == before.keys()


def known(resources: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, list[str]]]:
    """URN, id and dependencies of each resource in a state; a refresh encrypts what is secret again."""
    return [
        (resource["urn"], resource.get("id", ""), sorted(resource.get("dependencies") or ())) for resource in resources
    ]
