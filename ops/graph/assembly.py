"""The graph under construction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ops.doctor.diagnosis import CheckResult
from ops.doctor.examination import Examination
from ops.graph.grants import RoleAtScope, scope_name
from ops.graph.model import GraphEdge, GraphNode, Health, NodeKind, Relation, facts, joined, node_id
from ops.world import ownership
from ops.world.ownership import ResourceOwner

# Ids of what belongs to the whole stack.
VAULT: Final = node_id(NodeKind.VAULT)
KEY_VAULT_USER: Final = node_id(NodeKind.KEY_VAULT_USER)


@dataclass
class Assembly:
    """Nodes by id, and edges, each once and in order of insertion; `grants` are by holder."""

    grants: Mapping[ResourceOwner, Sequence[RoleAtScope]]
    examination: Examination
    nodes: dict[str, GraphNode] = field(default_factory=dict)
    edges: dict[GraphEdge, None] = field(default_factory=dict)

    def add(self, node: GraphNode) -> str:
        """Add a node that is not there yet; returns its id."""
        return self.nodes.setdefault(node.id, node).id

    def connect(self, source: str, relation: Relation, target: str) -> None:
        """Add an edge between two nodes by their ids."""
        self.edges[GraphEdge(source, relation, target)] = None

    def reader_role(self, grant: RoleAtScope) -> str:
        """Add a role of the key-vault-user, which may hold it at many scopes; returns its id."""
        node = GraphNode(
            id=node_id(NodeKind.ROLE, ownership.KEY_VAULT_USER.identity, grant.guid),
            kind=NodeKind.ROLE,
            name=grant.role,
            facts=facts(role_definition=grant.guid),
        )
        self.connect(KEY_VAULT_USER, Relation.HOLDS, self.add(node))
        return node.id

    def roles(
        self, identity: GraphNode, actors: Sequence[str], *, health: Health | None = None, reason: str = ""
    ) -> None:
        """Add the roles of an identity with their scopes; `actors` are the ids of the pods that use them."""
        assert identity.cluster is not None
        assert identity.identity is not None
        for grant in self.grants.get(ResourceOwner(identity.cluster, identity.identity), ()):
            role = self.add(
                GraphNode.part(
                    NodeKind.ROLE,
                    identity.cluster,
                    identity.identity,
                    grant.role,
                    health=health,
                    reason=reason,
                    facts=facts(role_definition=grant.guid),
                )
            )
            self.connect(identity.id, Relation.HOLDS, role)
            for actor in actors:
                self.connect(actor, Relation.ACTS_WITH, role)
            name, kind = scope_name(grant.scope)
            scope = GraphNode(
                id=node_id(NodeKind.SCOPE, grant.scope.lower()),
                kind=NodeKind.SCOPE,
                name=name,
                detail=kind,
                facts=facts(resource_ID=grant.scope),
            )
            self.connect(role, Relation.AT, self.add(scope))


def with_findings(node: GraphNode, findings: Iterable[CheckResult]) -> GraphNode:
    """The node with the doctor's evidence as its reason and the fixes among its facts; the same without findings."""
    findings = tuple(findings)
    if not findings:
        return node
    return replace(
        node,
        health=Health.ERROR,
        reason=joined([*(finding.evidence for finding in findings), node.reason]),
        facts=(*facts(fix=joined(finding.fix for finding in findings)), *node.facts),
    )
