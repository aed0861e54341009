"""The chain of a control-plane identity: secret in the vault, SecretProviderClass, pods that mount it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from ops.graph.assembly import KEY_VAULT_USER, VAULT, Assembly, with_findings
from ops.graph.model import Facts, GraphNode, Health, NodeKind, Relation, facts, joined, worst
from ops.outputs.rows import Row, rendered
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
    """Add an identity with its chain; `mounted` are its own versions. Returns the identity's id."""
    catalogued = _ROWS[row.identity]
    examination = assembly.examination
    secret = with_findings(_secret(row, now), examination.of(row.cluster, row.identity, "secret", "secret-reader"))
    pods = [_pod(row, *consumer) for consumer in _consumers(row, catalogued, mounted)]
    role_health, role_reason = _proof(row.probes)
    if lost := [finding.evidence for finding in examination.of(row.cluster, row.identity, "role")]:
        role_health, role_reason = Health.ERROR, joined([*lost, role_reason])
    identity = GraphNode.part(
        NodeKind.IDENTITY,
        row.cluster,
        row.identity,
        row.identity,
        detail=catalogued.description,
        health=worst([secret.health, *(pod.health for pod in pods), role_health]),
        reason=joined([secret.reason, *(pod.reason for pod in pods), role_reason]),
        facts=facts(kind="control-plane identity", client_ID=row.client_id),
    )
    identity = with_findings(identity, examination.of(row.cluster, row.identity, "registration", "role"))
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
            expires=rendered(row.not_after), renewal_after=rendered(row.renew_after), thumbprint=row.thumbprint
        ),
    )


def _expiry(row: Row, now: datetime) -> tuple[Health, str]:
    """The health of a certificate by its dates: from `renewAfter` on `make renew` renews it."""
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
    for version in mounted:
        # `probe-kms-2-...` also begins with `probe-kms-`.
        prefix = max((prefix for prefix in prefixes if version.pod.startswith(f"{prefix}-")), key=len, default=None)
        of_mount.setdefault(prefixes[prefix].deployment if prefix else version.pod, []).append(version)
    for mount, probe in zip(catalogued.mounts, row.probes or [None] * len(catalogued.mounts), strict=True):
        yield mount.deployment, mount.container, probe, of_mount.pop(mount.deployment, [])
    for pod, versions in of_mount.items():
        yield pod, "", None, versions


def _pod(
    row: Row, name: str, container: str, probe: ProbeResult | None, versions: Sequence[MountedVersion]
) -> GraphNode:
    known = {version.pod: f"{version.version} ({version.state})" for version in versions}
    signs_in, problem = _sign_in(probe)
    wrong = [
        f"{version.pod}: the secret is {version.state}"
        for version in versions
        if version.state in ("old", "not mounted")
    ]
    states = sorted({version.state for version in versions}, key=list(_MOUNTED).index)
    words = [f"{len(versions)} {'pod' if len(versions) == 1 else 'pods'}, {', '.join(states)}"] if versions else []
    if signs_in is not None:
        words.append("sign-in ok" if signs_in is Health.OK else "sign-in failed")
    return GraphNode.part(
        NodeKind.POD,
        row.cluster,
        row.identity,
        name,
        detail="; ".join(words) or container,
        health=worst([*(_MOUNTED[version.state] for version in versions), signs_in]),
        reason=joined([*wrong, problem]),
        facts=(*facts(container=container), *_probe_facts(probe), *known.items()),
    )


def _sign_in(probe: ProbeResult | None) -> tuple[Health | None, str]:
    """Whether the probe of a mount has the credential and signs in with it; a refused proof call concerns the role."""
    if probe is None:
        return None, ""
    if probe.report is None:
        return Health.ERROR, probe.problem or "no report"
    if not probe.report["signIn"]["ok"]:
        return Health.ERROR, probe.report["signIn"]["error"] or "no sign-in yet"
    return Health.OK, ""


def _proof(probes: Sequence[ProbeResult]) -> tuple[Health | None, str]:
    """Whether the role grants the proof call, by the probes that signed in."""
    signed_in = [probe.report for probe in probes if probe.report is not None and probe.report["signIn"]["ok"]]
    if not signed_in:
        return (Health.UNKNOWN if probes else None), ""
    refused = [report["proof"]["error"] or "no proof call yet" for report in signed_in if not report["proof"]["ok"]]
    return (Health.ERROR if refused else Health.OK), joined(refused)


def _probe_facts(probe: ProbeResult | None) -> Facts:
    if probe is None:
        return ()
    known = facts(probe=probe.pod)
    if probe.report is not None:
        proof = probe.report["proof"]
        call = f"{proof['status']} {proof['action']}" if proof["status"] else None
        known += facts(credential_file=probe.report["credentialFile"], proof_call=call)
    return known
