"""A stack with few resources of each type, and what the local cloud and its state have of certificates."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from identity import resource_types
from identity.credentials import rfc3339
from identity.credentials.secret_tags import DELIVERED_AT
from localcloud.testing.azure import SECRET_KIND, Store
from tests.harness import LocalStack, running_stack


@contextmanager
def small_stack(
    root: Path, cluster_side: str, *, warm: bool = True, providers: str | None = None, **faults: Any
) -> Iterator[LocalStack]:
    """A stack with every type of resource, but few of each: two Entra applications, one credential for the others."""
    with (
        running_stack(root, warm=warm, providers=providers, **faults) as stack,
        stack.configured(**few_resources(stack), clusterSide=cluster_side),
    ):
        yield stack


def few_resources(stack: LocalStack) -> dict[str, Any]:
    """The changes of the checkout's configuration of a local stack."""
    [cluster] = stack.configuration("hostedClusters")
    imported = cluster["identities"]["imageRegistry"]
    fields = ("controlPlaneOperator", "ingress", "network", "disk", "file", "kms")
    identities = {**dict.fromkeys(fields, imported), "imageRegistry": {"enabled": False}}
    credentials = {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 15}}
    return {"hostedClusters": [{**cluster, "identities": identities}], "credentials": credentials}


def registered(stack: LocalStack) -> dict[str, set[str]]:
    """Key ids of the certificates registered in Entra ID, by the object id of their application."""
    return {
        document["objectId"]: {key["keyId"] for key in document["keys"] if key["removedAt"] is None}
        for document in documents(stack, "entra-application")
    }


def registered_in_state(stack: LocalStack) -> dict[str, set[str]]:
    """The same as the state has it."""
    found: dict[str, set[str]] = defaultdict(set)
    for resource in stack.resources():
        if resource["type"] == resource_types.REGISTERED_CERTIFICATE:
            application, _, key_id = resource["id"].split("/")
            found[application].add(key_id)
    return dict(found)


def documents(stack: LocalStack, kind: str) -> list[dict[str, Any]]:
    """What the local cloud remembers of a kind."""
    return [json.loads(text) for (found, _), text in stack.contents().items() if found == kind]


def age_deliveries(store: Store) -> None:
    """Let each version in the vaults be as old as its tag says, which the clock of a test has written."""
    for key, secret in store.items(SECRET_KIND):
        for version in secret["versions"]:
            if at := (version["tags"] or {}).get(DELIVERED_AT):
                version["created"] = version["updated"] = int(rfc3339.parse(at).timestamp())
        store.put(SECRET_KIND, key, secret)
