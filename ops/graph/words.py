"""What the forms of the graph call things."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ops.graph.model import GraphNode, Health, Kind

KINDS: Final = {
    Kind.HOSTED_CLUSTER: "HostedCluster",
    Kind.IDENTITY: "identity",
    Kind.SECRET: "Key Vault secret",
    Kind.SECRET_PROVIDER_CLASS: "SecretProviderClass",
    Kind.POD: "pod",
    Kind.SERVICE_ACCOUNT: "service account",
    Kind.ROLE: "role",
    Kind.SCOPE: "scope",
    Kind.VAULT: "key vault",
    Kind.KEY_VAULT_USER: "key-vault-user",
}
HEALTHS: Final = {
    Health.OK: "ok",
    Health.WARNING: "needs attention",
    Health.ERROR: "broken",
    Health.UNKNOWN: "not known",
}


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
