"""The chain of a control-plane identity: its secret in the vault, the class that fetches it, the pods that mount it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials import rfc3339
from ops.graph.assembly import KEY_VAULT_USER, VAULT, Assembly
from ops.graph.findings import blamed
from ops.graph.model import Facts, GraphNode, Health, NodeKind, Relation, facts, together, worst
from ops.outputs.rows import Row
from ops.world import ownership
from ops.world.cluster_state import MountedVersion
from ops.world.probes import ProbeResult

_ROWS: Final = {row.field: row for row in CONTROL_PLANE}
_MOUNTED: Final = {
    "current": Health.OK,
    "old": Health.WARNING,
    "not mounted": Health.ERROR,
    "not known": Health.UNKNOWN,
}


def add_control_plane_identity(assembly: Assembly, row: Row, mounted: Sequence[MountedVersion], now: datetime) -> str:
    """Add it with all that is behind it; `mounted` are the identity's own. Returns the identity's id."""
    catalogued = _ROWS[row.identity]
    found = assembly.examination
    secret = blamed(_secret(row, now), found.of(row.cluster, row.identity, "secret", "secret-reader"))
    pods = [_pod(row, *each) for each in _consumers(row, catalogued, mounted)]
    role_health, role_reason = _proof(row.probes)
    if lost := [finding.evidence for finding in found.of(row.cluster, row.identity, "role")]:
        role_health, role_reason = Health.ERROR, together([*lost, role_reason])
    identity = GraphNode.part(
        NodeKind.IDENTITY,
        row.cluster,
        row.identity,
        row.identity,
        detail=catalogued.description,
        health=worst([secret.health, *(pod.health for pod in pods), role_health]),
        reason=together([secret.reason, *(pod.reason for pod in pods), role_reason]),
        facts=facts(kind="control-plane identity", client_ID=row.client_id),
    )
    identity = blamed(identity, found.of(row.cluster, row.identity, "registration", "role"))
    provider = GraphNode.part(NodeKind.SECRET_PROVIDER_CLASS, row.cluster, row.identity, row.secret_provider_class)
    for node in (identity, secret, provider, *pods):
        assembly.add(node)
    assembly.connect(identity.id, Relation.STORED_IN, secret.id)
    assembly.connect(secret.id, Relation.STORED_IN, VAULT)
    assembly.connect(secret.id, Relation.FETCHED_BY, provider.id)
    assembly.connect(provider.id, Relation.FETCHES_AS, KEY_VAULT_USER)
    for pod in pods:
        assembly.connect(provider.id, Relation.MOUNTED_IN, pod.id)
    for grant in assembly.grants.get(ownership.KEY_VAULT_USER, ()):
        if grant.scope.endswith(f"/secrets/{row.secret}"):
            assembly.connect(assembly.reader_role(grant), Relation.AT, secret.id)
    assembly.roles(identity, [pod.id for pod in pods], health=role_health, reason=role_reason)
    return identity.id


def _secret(row: Row, now: datetime) -> GraphNode:
    health, reason = _expiry(row, now)
    days = row.days_left(now)
    if row.not_after is None or days is None:
        detail = "expiry not known"
    elif row.not_after <= now:
        detail = f"expired {row.not_after:%Y-%m-%d}"
    else:
        detail = f"{days} days, until {row.not_after:%Y-%m-%d}"
    return GraphNode.part(
        NodeKind.SECRET,
        row.cluster,
        row.identity,
        row.secret,
        detail=detail,
        health=health,
        reason=reason,
        expires=row.not_after,
        renew_after=row.renew_after,
        facts=facts(
            expires=_rendered(row.not_after), renewal_after=_rendered(row.renew_after), thumbprint=row.thumbprint
        ),
    )


def _expiry(row: Row, now: datetime) -> tuple[Health, str]:
    """A certificate may be used until it expires; from `renewAfter` on `make renew` renews it."""
    if row.not_after is None:
        return Health.UNKNOWN, ""
    if row.not_after <= now:
        return Health.ERROR, f"the certificate expired on {row.not_after:%Y-%m-%d}"
    if row.renew_after is not None and row.renew_after <= now:
        return Health.WARNING, f"the renewal is due since {row.renew_after:%Y-%m-%d}"
    return Health.OK, ""


def _consumers(
    row: Row, catalogued: ControlPlaneIdentity, mounted: Sequence[MountedVersion]
) -> Iterator[tuple[str, str, ProbeResult | None, list[MountedVersion]]]:
    """Deployment and container of each mount, its probe, and the pods that have the secret mounted.

    A pod that belongs to no known Deployment is a consumer of its own.
    """
    prefixes = {
        prefix: mount for mount in catalogued.mounts for prefix in (mount.deployment, catalogued.probe_name(mount))
    }
    of_mount: dict[str, list[MountedVersion]] = {}
    for each in mounted:
        # `probe-kms-2-...` also begins with `probe-kms-`.
        known = max((prefix for prefix in prefixes if each.pod.startswith(f"{prefix}-")), key=len, default=None)
        of_mount.setdefault(prefixes[known].deployment if known else each.pod, []).append(each)
    for mount, probe in zip(catalogued.mounts, row.probes or [None] * len(catalogued.mounts), strict=True):
        yield mount.deployment, mount.container, probe, of_mount.pop(mount.deployment, [])
    for pod, versions in of_mount.items():
        yield pod, "", None, versions


def _pod(
    row: Row, name: str, container: str, probe: ProbeResult | None, versions: Sequence[MountedVersion]
) -> GraphNode:
    known = {each.pod: f"{each.version} ({each.state})" for each in versions}
    signs_in, problem = _sign_in(probe)
    wrong = [f"{each.pod}: the secret is {each.state}" for each in versions if each.state in ("old", "not mounted")]
    states = sorted({each.state for each in versions}, key=list(_MOUNTED).index)
    words = [f"{len(versions)} {'pod' if len(versions) == 1 else 'pods'}, {', '.join(states)}"] if versions else []
    if signs_in is not None:
        words.append("sign-in ok" if signs_in is Health.OK else "sign-in failed")
    return GraphNode.part(
        NodeKind.POD,
        row.cluster,
        row.identity,
        name,
        detail="; ".join(words) or container,
        health=worst([*(_MOUNTED[each.state] for each in versions), signs_in]),
        reason=together([*wrong, problem]),
        facts=(*facts(container=container), *_probe_facts(probe), *known.items()),
    )


def _sign_in(probe: ProbeResult | None) -> tuple[Health | None, str]:
    """Whether the probe of a mount has the credential and signs in with it; a refused proof call is the role's."""
    if probe is None:
        return None, ""
    if probe.report is None:
        return Health.ERROR, probe.problem or "no report"
    if not probe.report["signIn"]["ok"]:
        return Health.ERROR, probe.report["signIn"]["error"] or "no sign-in yet"
    return Health.OK, ""


def _proof(probes: Sequence[ProbeResult]) -> tuple[Health | None, str]:
    """Whether the role grants the proof call, by the probes that signed in."""
    signed_in = [each.report for each in probes if each.report is not None and each.report["signIn"]["ok"]]
    if not signed_in:
        return (Health.UNKNOWN if probes else None), ""
    refused = [each["proof"]["error"] or "no proof call yet" for each in signed_in if not each["proof"]["ok"]]
    return (Health.ERROR if refused else Health.OK), together(refused)


def _probe_facts(probe: ProbeResult | None) -> Facts:
    if probe is None:
        return ()
    found = facts(probe=probe.pod)
    if probe.report is not None:
        proof = probe.report["proof"]
        call = f"{proof['status']} {proof['action']}" if proof["status"] else None
        found += facts(credential_file=probe.report["credentialFile"], proof_call=call)
    return found


def _rendered(date: datetime | None) -> str | None:
    return rfc3339.render(date) if date else None


def by_identity(mounted: Iterable[MountedVersion]) -> Mapping[tuple[str, str], list[MountedVersion]]:
    """What pods have mounted, by hosted cluster and identity."""
    found: dict[tuple[str, str], list[MountedVersion]] = {}
    for each in mounted:
        found.setdefault((each.cluster, each.identity), []).append(each)
    return found
