"""Words that the output formats of the graph have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ops.graph.model import GraphNode, Health, NodeKind

KINDS: Final = {
    NodeKind.HOSTED_CLUSTER: "HostedCluster",
    NodeKind.IDENTITY: "identity",
    NodeKind.SECRET: "Key Vault secret",
    NodeKind.SECRET_PROVIDER_CLASS: "SecretProviderClass",
    NodeKind.POD: "pod",
    NodeKind.SERVICE_ACCOUNT: "service account",
    NodeKind.ROLE: "role",
    NodeKind.SCOPE: "scope",
    NodeKind.VAULT: "key vault",
    NodeKind.KEY_VAULT_USER: "key-vault-user",
}
HEALTHS: Final = {
    Health.OK: "ok",
    Health.WARNING: "needs attention",
    Health.ERROR: "broken",
    Health.UNKNOWN: "not known",
}


def no_cluster(stack: str) -> str:
    """The text in place of an empty drawing."""
    return (
        f"The stack {stack} has no hosted cluster. Add one to hostedClusters in Pulumi.{stack}.yaml, then run "
        f"idstack up --stack {stack}."
    )


def sentence(node: GraphNode) -> str:
    """A node for a screen reader."""
    health = HEALTHS[node.health] if node.health else ""
    return ", ".join(filter(None, [f"{KINDS[node.kind]} {node.name}", node.detail, health, node.reason]))


def first_expiry(date: datetime | None, now: datetime) -> str:
    """When the first certificate of a hosted cluster expires."""
    if date is None:
        return "expiry not known"
    if date <= now:
        return f"expired {date:%Y-%m-%d}"
    return f"first expiry {date:%Y-%m-%d}, {(date - now).days} days"
