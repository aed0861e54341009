"""Keeps a run away from the infrastructure ids of other stacks.

Names of role assignments, networks and managed identities derive from the infrastructure id: one cluster would take
over the other's. The other states are read only for a cluster that is new in the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from identity.naming import dashed
from ops.stack.configuration import named_clusters
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.state import StateResource, outputs_in
from ops.world.stacks import Stacks


def refuse_duplicates(engine: Engine, resources: Iterable[StateResource], report: Callable[[str], None]) -> None:
    """Raise CommandError if the next `up` would create a hosted cluster with the infraID of another stack's.

    Args:
        resources: those in the stack's state.
        report: prints a line for the user.
    """
    clusters = outputs_in(resources).get("hostedClusters", {})
    known = {name: cluster["hostedClusterSpec"]["infraID"] for name, cluster in clusters.items()}
    # Without those that the program will refuse.
    written = named_clusters(engine.written().get("hostedClusters"))
    configured = {cluster["name"]: str(cluster.get("infraID") or dashed(cluster["name"])) for cluster in written}
    new = {name: infra_id for name, infra_id in configured.items() if known.get(name) != infra_id}
    if not new:
        return
    stacks = Stacks.read(engine)
    taken = [
        f'  {cluster}: infraID is "{infra_id}", which a hosted cluster of the stack {other} has; accepted: an id of '
        f"its own. Set another infraID in Pulumi.{engine.stack}.yaml, or take {cluster} out of it"
        for cluster, infra_id in new.items()
        for other, contents in stacks.others(engine.stack).items()
        if contents.has_infra_id(infra_id)
    ]
    if taken:
        raise CommandError(f"nothing was changed in {engine.stack}:", *taken)
    if unread := sorted(stacks.unread.keys() - stacks.contents.keys() - {engine.stack}):
        report(f"not compared with the infraIDs of {', '.join(unread)}, whose states cannot be read")
