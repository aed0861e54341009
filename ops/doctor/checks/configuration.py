"""Whether the configuration is accepted, brought up, and what the HostedCluster names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ops.doctor.model.check import Check, Fault, Stage, WholeStack, of_identity, of_stack
from ops.world.expected import Identity
from ops.world.parts import Part
from ops.world.seen import NotReadError, entry, known
from ops.world.stack_world import StackWorld


def _find_settings(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether the settings accept the stack's configuration."""
    for each in known(world.configuration).refused:
        evidence = f"{each.path}: found {each.found}; accepted: {each.accepted}"
        yield Fault(evidence=evidence, fix=each.fix, cluster=each.cluster)


SETTINGS = of_stack(Stage.CONFIGURATION, "settings", (Part.CONFIGURATION,), _find_settings)


def _find_brought_up(world: StackWorld, _: WholeStack) -> Iterator[Fault]:
    """Whether what the configuration names was brought up."""
    state, configuration = known(world.state), known(world.configuration)
    if not state.is_up:
        yield Fault(evidence="the state has no outputs: no `up` of the stack has ended yet", fix=world.make("up"))
        return
    made = {each.cluster: {one.identity for one in (*each.identities, *each.guests)} for each in state.clusters}
    for cluster, fields in configuration.identities.items():
        if missing := [each for each in fields if each not in made.get(cluster, ())]:
            what = ", ".join(missing) if cluster in made else "none of its identities is there"
            yield Fault(evidence=f"configured and not brought up yet: {what}", fix=world.make("up"), cluster=cluster)


BROUGHT_UP = of_stack(Stage.CONFIGURATION, "brought-up", (Part.CONFIGURATION, Part.STATE), _find_brought_up)


def _find_hosted_cluster(world: StackWorld, identity: Identity) -> Iterator[Fault]:
    """Whether the HostedCluster names each identity as the stack made it; of stacks with `clusterSide: hypershift`."""
    if known(world.state).cluster_side == "stack" or not identity.hosted_cluster_path:
        return
    found = known(entry(world.control_planes, identity.cluster).hosted_cluster)
    if found is None:
        raise NotReadError(
            f"there is no HostedCluster {identity.cluster} yet (`idstack export hypershift` has its files)"
        )
    named: Any = found.spec
    for step in identity.hosted_cluster_path:
        named = named.get(step) if isinstance(named, Mapping) else None
    wanted = {
        "clientID": identity.client_id,
        "credentialsSecretName": identity.secret,
        "objectEncoding": identity.object_encoding,
    }
    place = f"spec.{'.'.join(identity.hosted_cluster_path)}"
    fix = (
        f"write what {world.command('export', 'hypershift')} has into the HostedCluster, or bring it up with the stack"
    )
    if not isinstance(named, Mapping):
        yield Fault(evidence=f"the HostedCluster has no {place}", fix=fix)
        return
    for key, value in wanted.items():
        if named.get(key) != value:
            yield Fault(evidence=f"{place}.{key} is {named.get(key)!r}; the stack has {value!r}", fix=fix)


HOSTED_CLUSTER = of_identity(Stage.CONFIGURATION, "hosted-cluster", (Part.CONTROL_PLANES,), _find_hosted_cluster)

CHECKS: Final[tuple[Check, ...]] = (
    SETTINGS,
    BROUGHT_UP,
    HOSTED_CLUSTER,
)
