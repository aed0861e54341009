"""The graph of a stack: nodes with their health, edges, their marks and words, and the JSON form.

Vault, key-vault-user and scopes belong to no single hosted cluster: several clusters may share them. The graph contains
no value of a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from string import Formatter
from typing import Any, Final, Self, TypeAlias
from urllib.parse import quote
from xml.sax.saxutils import escape

from identity import yaml_text
from identity.credentials import rfc3339
from ops.world.ownership import ResourceOwner


class NodeKind(StrEnum):
    HOSTED_CLUSTER = "hostedCluster"
    IDENTITY = "identity"
    SECRET = "secret"
    SECRET_PROVIDER_CLASS = "secretProviderClass"
    POD = "pod"
    SERVICE_ACCOUNT = "serviceAccount"
    ROLE = "role"
    SCOPE = "scope"
    VAULT = "vault"
    KEY_VAULT_USER = "keyVaultUser"


class Relation(StrEnum):
    USES = "uses"  # HostedCluster -> identity
    STORED_IN = "storedIn"  # identity -> secret, secret -> vault
    FETCHED_BY = "fetchedBy"  # secret -> SecretProviderClass
    MOUNTED_IN = "mountedIn"  # SecretProviderClass -> pod
    FETCHES_AS = "fetchesAs"  # SecretProviderClass -> key-vault-user
    TRUSTS = "trusts"  # identity -> service account
    HOLDS = "holds"  # identity -> role
    ACTS_WITH = "actsWith"  # pod or service account -> role
    AT = "at"  # role -> scope or vault


class Health(StrEnum):
    """The health of a node; UNKNOWN if it was not read."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


def worst(parts: Iterable[Health | None]) -> Health:
    """The worst health of the parts; UNKNOWN is worse than OK, and None does not count."""
    present = set(parts)
    worst_first = (Health.ERROR, Health.WARNING, Health.UNKNOWN, Health.OK)
    return next((health for health in worst_first if health in present), Health.UNKNOWN)


def joined(reasons: Iterable[str]) -> str:
    """Several reasons as one, each once."""
    return "; ".join(dict.fromkeys(filter(None, reasons)))


# Names and values, in the order to show them.
Facts: TypeAlias = tuple[tuple[str, str], ...]


def facts(**values: str | None) -> Facts:
    """The known values; underscores in names become blanks."""
    return tuple((name.replace("_", " "), value) for name, value in values.items() if value)


def node_id(kind: NodeKind, *names: str) -> str:
    """The id of a node: its kind and the names that make it unique, of URL characters alone."""
    return "/".join([kind.value, *(quote(name, safe="", errors="replace") for name in names)])


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    """A node of the graph.

    Attributes:
        id: unique in the graph, and the same in each run.
        name: its name in Azure or Kubernetes.
        detail: a few words beside the name, may be empty.
        cluster: its hosted cluster; None if it may be shared.
        identity: the identity's field in the catalogue, for each node of its chain.
        health: None for a node without a health of its own.
        reason: why the health is not OK; empty otherwise.
        expires, renew_after: of a secret: end of the certificate, and when its renewal is due.
        facts: further details.
    """

    id: str
    kind: NodeKind
    name: str
    detail: str = ""
    cluster: str | None = None
    identity: str | None = None
    health: Health | None = None
    reason: str = ""
    expires: datetime | None = None
    renew_after: datetime | None = None
    facts: Facts = ()

    @property
    def sentence(self) -> str:
        """The node for a screen reader."""
        health = HEALTHS[self.health] if self.health else ""
        return ", ".join(filter(None, [f"{KINDS[self.kind]} {self.name}", self.detail, health, self.reason]))

    @property
    def shown_health(self) -> str:
        """Its health as a class of elements; `unreported` for a node without one."""
        return self.health or "unreported"

    @classmethod
    def part(cls, kind: NodeKind, owner: ResourceOwner, name: str) -> Self:
        """A part of an identity's chain, whose id follows from these; the rest is to be added."""
        cluster, identity = owner.cluster, owner.identity
        return cls(id=node_id(kind, cluster, identity, name), kind=kind, name=name, cluster=cluster, identity=identity)

    def to_json(self) -> dict[str, Any]:
        """The node for scripts and the page; dates are RFC 3339 in UTC."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "cluster": self.cluster,
            "identity": self.identity,
            "name": self.name,
            "detail": self.detail,
            "health": self.health.value if self.health else None,
            "reason": self.reason,
            "expires": rfc3339.render(self.expires) if self.expires else None,
            "renewAfter": rfc3339.render(self.renew_after) if self.renew_after else None,
            "facts": dict(self.facts),
        }


def with_remedy(node: GraphNode, stack: str) -> GraphNode:
    """A broken node, or a secret whose renewal is due, with a command as its `fix`, if it has none."""
    command = f".venv/bin/idstack doctor --stack {stack}"
    if node.cluster is not None:
        command += f" --identity {node.cluster}/{node.identity}" if node.identity else f" --cluster {node.cluster}"
    if node.kind is NodeKind.SECRET and node.health is Health.WARNING:
        command = f".venv/bin/idstack renew --stack {stack}"
    elif node.health is not Health.ERROR:
        return node
    return node if "fix" in dict(node.facts) else replace(node, facts=(("fix", f"`{command}`"), *node.facts))


@dataclass(frozen=True)
class GraphEdge:
    """A relation between two nodes, by their ids."""

    source: str
    relation: Relation
    target: str


@dataclass(frozen=True)
class IdentityGraph:
    """A stack at one moment; `unread` names what could not be read, each with its reason."""

    stack: str
    at: datetime
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    unread: tuple[str, ...] = ()

    @property
    def clusters(self) -> list[GraphNode]:
        return self.of_kind(NodeKind.HOSTED_CLUSTER)

    def of_kind(self, kind: NodeKind) -> list[GraphNode]:
        return [node for node in self.nodes if node.kind is kind]

    def identities(self, cluster: str) -> list[GraphNode]:
        """The identities of a hosted cluster, in the catalogue's order."""
        return [node for node in self.of_kind(NodeKind.IDENTITY) if node.cluster == cluster]

    def expiry(self, cluster: str) -> datetime | None:
        """When the first certificate of a hosted cluster expires; None if no date is known."""
        return min((node.expires for node in self.nodes if node.cluster == cluster and node.expires), default=None)

    def only(self, cluster: str) -> IdentityGraph:
        """One hosted cluster with the shared nodes that it is connected with."""
        kept = {node.id for node in self.nodes if node.cluster == cluster}
        while reached := {edge.target for edge in self.edges if edge.source in kept} - kept:
            kept |= reached
        return replace(
            self,
            nodes=tuple(node for node in self.nodes if node.id in kept),
            edges=tuple(edge for edge in self.edges if edge.source in kept and edge.target in kept),
        )

    def to_json(self) -> dict[str, Any]:
        """The graph for scripts (docs/reference/json.md)."""
        return {
            "stack": self.stack,
            "generatedAt": rfc3339.render(self.at),
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [dict(vars(edge)) for edge in self.edges],
            "unread": list(self.unread),
        }


# Everything but Char of XML 1.0, and the controls that HTML reports as errors.
_FORBIDDEN: Final = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")


class Markup(str):
    """Elements in HTML or SVG."""


class _MarkupFormatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        """Elements as they are, a length to a tenth of a pixel, and everything else escaped."""
        match value:
            case Markup():
                return value
            case float():
                return f"{value:.1f}".removesuffix(".0")
            case [*elements]:
                return "".join(elements)
        return escaped(format(value, format_spec))


def element(name: str, /, **words: object) -> Markup:
    """A row of `page/elements.yaml` with the words for its braces; a list of elements is one word."""
    return Markup(_MarkupFormatter().vformat(ELEMENTS[name], (), words))


def mark(health: Health, x: float = 0, y: float = 0) -> Markup:
    return element("mark", health=health, x=x, y=y, path=TABLES["marks"][health])


def icon(health: Health) -> Markup:
    return element("icon", mark=mark(health))


def escaped(text: str) -> str:
    """Text for an element or an attribute, in HTML and in XML, which has no control characters."""
    return escape(_FORBIDDEN.sub("\ufffd", text), {'"': "&quot;", "'": "&#39;"})


def _read(name: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = yaml_text.load((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return table


ELEMENTS: Final[Mapping[str, str]] = _read("page/elements.yaml")
# Words for the kinds and the healths, the marks, the columns of a drawing, and Mermaid's shapes, arrows and colours.
TABLES: Final = _read("tables.yaml")
KINDS: Final[Mapping[str, str]] = TABLES["kinds"]
HEALTHS: Final[Mapping[str, str]] = TABLES["healths"]


def scope_name(scope: str) -> tuple[str, str]:
    """Name and kind of a scope, such as `("hc1-managed", "resource group")`."""
    if not scope.startswith("/"):
        return scope, "managed HSM"
    kind, _, name = scope.rpartition("/")
    segment = kind.rpartition("/")[2].lower()
    return name, TABLES["scopes"].get(segment, segment)


def first_expiry(date: datetime | None, now: datetime) -> str:
    if date is None:
        return "expiry not known"
    if date <= now:
        return f"expired {date:%Y-%m-%d}"
    return f"first expiry {date:%Y-%m-%d}, {(date - now).days} days"
