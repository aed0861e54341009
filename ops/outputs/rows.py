"""The rows of `status` and `up`: a stack's outputs joined with the reports of its probes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.credentials import rfc3339
from identity.naming import control_plane_namespace
from identity.outputs import HostedClusterOutput, StackOutputs, cluster_side
from ops.stack.errors import CommandError
from ops.world.cluster_state import ProbeResult, ProbeResults

# A daily run renews within a day of the date (`docs/guides/pull-requests.md`); this allows for two runs.
OVERDUE_AFTER: Final = timedelta(days=2)


class RenewalOverdueError(CommandError):
    """Every identity signs in, but a renewal is overdue: by this machine's clock, which shows `now`."""

    exit_code = 3

    def __init__(self, message: str, now: datetime) -> None:
        super().__init__(f"{message}. This machine's clock decides, which shows {rfc3339.render(now)}")


@dataclass(frozen=True)
class Row:
    """One identity of one hosted cluster.

    Dates and thumbprint are None for an unknown credential; `probes` has a result for each mount, and is empty if the
    probes are not reachable.
    """

    cluster: str
    identity: str
    client_id: str
    secret: str
    secret_provider_class: str
    not_after: datetime | None
    renew_after: datetime | None
    thumbprint: str | None
    probes: tuple[ProbeResult, ...]

    @property
    def is_green(self) -> bool:
        """Whether the probe of every mount signs in and makes its proof call."""
        return bool(self.probes) and all(probe.is_ready for probe in self.probes)

    def is_overdue(self, now: datetime) -> bool:
        """Whether its renewal has been due for more than two daily runs."""
        return self.renew_after is not None and now - self.renew_after > OVERDUE_AFTER

    def has_expired(self, now: datetime) -> bool:
        return self.not_after is not None and self.not_after <= now

    def days_left(self, now: datetime) -> int | None:
        """Days until the certificate expires, rounded down; negative afterwards, None without a date."""
        return (self.not_after - now).days if self.not_after else None

    def to_json(self, now: datetime) -> dict[str, Any]:
        """The row for scripts; dates are RFC 3339 in UTC."""
        return {
            "cluster": self.cluster,
            "identity": self.identity,
            "clientID": self.client_id,
            "secret": self.secret,
            "secretProviderClass": self.secret_provider_class,
            "notAfter": rendered(self.not_after),
            "renewAfter": rendered(self.renew_after),
            "daysLeft": self.days_left(now),
            "thumbprint": self.thumbprint,
            "mounts": [probe.to_json() for probe in self.probes],
        }


def has_probes(outputs: StackOutputs[str]) -> bool:
    """Whether the stack creates probes, or would for a hosted cluster: not where HyperShift creates all pods."""
    clusters = outputs.get("hostedClusters", {}).values()
    sides = {cluster_side(outputs, cluster) for cluster in clusters} or {outputs.get("clusterSide", "stack")}
    return "stack" in sides


def rows(outputs: StackOutputs[str], probes: ProbeResults | None) -> list[Row]:
    """One row for each identity in the outputs, in the catalogue's order; `probes` is None for unreachable ones.

    Where HyperShift creates the pods there are no probes.
    """
    return [
        _row(name, cluster, row, probes if cluster_side(outputs, cluster) == "stack" else None)
        for name, cluster in outputs.get("hostedClusters", {}).items()
        for row in CONTROL_PLANE
        if row.field in cluster["controlPlane"]
    ]


def _row(name: str, cluster: HostedClusterOutput[str], row: ControlPlaneIdentity, probes: ProbeResults | None) -> Row:
    identity = cluster["controlPlane"][row.field]
    return Row(
        cluster=name,
        identity=row.field,
        client_id=identity["clientID"],
        secret=identity["credentialsSecretName"],
        secret_provider_class=identity["secretProviderClass"],
        not_after=_date(identity.get("notAfter")),
        renew_after=_date(identity.get("renewAfter")),
        thumbprint=identity.get("thumbprint"),
        probes=tuple(
            probes.of(control_plane_namespace(cluster["namespace"], name), row.probe_name(mount))
            for mount in row.mounts
        )
        if probes
        else (),
    )


def _date(rendered: str | None) -> datetime | None:
    return rfc3339.parse(rendered) if rendered else None


def rendered(date: datetime | None) -> str | None:
    """A date as RFC 3339 in UTC; None for none."""
    return rfc3339.render(date) if date else None


@dataclass(frozen=True)
class TokenProbe:
    """The probe of one service account: its Deployment, its token's path, and the identity that it signs in as."""

    cluster: str
    namespace: str
    row: ControlPlaneIdentity
    client_id: str
    subject: str
    token: str
    deployment: str


@dataclass(frozen=True)
class TokenRow:
    of: TokenProbe
    probe: ProbeResult

    def to_json(self) -> dict[str, Any]:
        return {
            "cluster": self.of.cluster,
            "identity": self.of.row.field,
            "clientID": self.of.client_id,
            "subject": self.of.subject,
            **self.probe.to_json(),
        }


def token_probes(outputs: StackOutputs[str]) -> list[TokenProbe]:
    """The probes of all service accounts of clusters with workload identities, in the catalogue's order."""
    # The identities of a managed cluster have other fields in `dataPlane` (`imageRegistryMSIClientID`).
    return [
        TokenProbe(
            cluster=name,
            namespace=control_plane_namespace(cluster["namespace"], name),
            row=row,
            client_id=cluster["dataPlane"][row.field],
            subject=subject.subject,
            token=row.workload.token,
            deployment=row.workload.probe_name(subject),
        )
        for name, cluster in outputs.get("hostedClusters", {}).items()
        for row in CONTROL_PLANE
        if row.workload is not None and row.field in cluster["dataPlane"]
        for subject in row.workload.subjects
    ]


def token_rows(probes: Iterable[TokenProbe], results: ProbeResults) -> list[TokenRow]:
    return [TokenRow(probe, results.of(probe.namespace, probe.deployment)) for probe in probes]


def has_any_probes(outputs: StackOutputs[str]) -> bool:
    """Whether a local stack has probes of certificates, or of service accounts."""
    return has_probes(outputs) or bool(token_probes(outputs))


def running_token_rows(outputs: StackOutputs[str], results: ProbeResults | None) -> list[TokenRow]:
    """The rows of the clusters with probes; `results` is None if none can be read."""
    if results is None:
        return []
    running = {namespace for namespace, _ in results.probes}
    return token_rows([probe for probe in token_probes(outputs) if probe.namespace in running], results)
