"""Whether the HostedCluster names each identity as the stack made it; of stacks with `clusterSide: hypershift`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ops.doctor.model.check import Fault, Part, Stage, of_identity
from ops.doctor.model.expected import Identity
from ops.doctor.model.seen import NotRead, entry, known
from ops.doctor.model.world import World


def _find(world: World, identity: Identity) -> Iterator[Fault]:
    if known(world.state).cluster_side == "stack" or not identity.hosted_cluster_path:
        return
    found = known(entry(world.control_planes, identity.cluster).hosted_cluster)
    if found is None:
        raise NotRead(f"there is no HostedCluster {identity.cluster} yet (`idstack export hypershift` has its files)")
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


CHECK = of_identity(Stage.CONFIGURATION, "hosted-cluster", (Part.CONTROL_PLANES,), _find)
