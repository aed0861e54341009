"""Stacks that could lay hands on another's things: with its cluster's infraID, or with its name in another backend."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from identity import resource_types
from ops.stack.state import provider_urn
from tests.harness import LocalStack

_KINDS: Final = ("arm", "entra-application", "entra-principal", "keyvault-secret")


def in_azure(stack: LocalStack) -> dict[tuple[str, str], str]:
    """All that the stacks have made in Azure, as JSON by kind and key."""
    return {key: text for key, text in stack.contents().items() if key[0] in _KINDS}


def a_copy(stack: LocalStack) -> LocalStack:
    """A stack beside with the cluster hc2, whose infraID is still hc1's."""
    [cluster] = stack.configuration("hostedClusters")
    return stack.beside(
        "local-hc2",
        *("tags", "protect", "credentials", "managementCluster"),
        clusterSide="hypershift",
        sharedStack=f"organization/idstack/{stack.name}",
        hostedClusters=[{**cluster, "name": "hc2"}],
    )


@contextmanager
def another_backend(stack: LocalStack, outputs: dict[str, Any], owner_id: str | None = None) -> Iterator[None]:
    """A backend in which a stack of the same name has these outputs and this owner id, and nothing else."""
    root = {"urn": _urn_of(stack), "type": "pulumi:pulumi:Stack", "custom": False, "outputs": outputs}
    resources = [root, *(() if owner_id is None else _owner(stack, owner_id))]
    backend = stack.state / "pulumi/backend"
    own, aside = backend / ".pulumi", backend / "first"
    own.rename(aside)
    try:
        stack.prepare()
        state = json.loads(stack.pulumi("stack", "export").stdout)
        state["deployment"]["resources"] = resources
        stack.replace_state(state)
        yield
    finally:
        shutil.rmtree(own)
        aside.rename(own)


def _urn_of(stack: LocalStack) -> str:
    return f"urn:pulumi:{stack.name}::idstack::pulumi:pulumi:Stack::idstack-{stack.name}"


def _owner(stack: LocalStack, owner_id: str) -> Iterator[dict[str, Any]]:
    """The owner as the stack's state has it, but for its id, after its provider."""
    resources = stack.resources()
    [owner] = [resource for resource in resources if resource["type"] == resource_types.STACK_OWNER]
    yield from (resource for resource in resources if resource["urn"] == provider_urn(owner["provider"]))
    yield {**owner, "id": owner_id, "outputs": {**owner["outputs"], "ownerId": owner_id}}


def move(stack: LocalStack, cluster: str, to: str, *, finish: bool = False) -> None:
    """What `docs/guides/stacks.md` says for a cluster that moves to a stack; `finish`: after a killed move."""

    def engine(of: str, *words: str) -> str:
        return stack.idstack("pulumi", "--stack", of, "--", *words).stdout

    urn = f"urn:pulumi:{stack.name}::idstack::{resource_types.HOSTED_CLUSTER}::{cluster}"
    assert urn in engine(stack.name, "stack", "--show-urns")
    if finish:
        engine(stack.name, "state", "delete", "--target-dependents", "--force", "--yes", urn)
        return
    engine(stack.name, "state", "move", "--source", stack.name, "--dest", to, "--yes", urn)
