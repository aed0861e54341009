"""The service accounts of hosted clusters with workload identities, each with the report of the probe that has its
token. Only a local stack has such probes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.naming import control_plane_namespace
from identity.outputs import HostedClusterOutput, StackOutputs
from ops.world.probes import ProbeResult, ProbeResults


@dataclass(frozen=True)
class TokenProbe:
    """Where the probe of one service account runs, where it has its token, and the identity that it signs in as."""

    cluster: str
    namespace: str
    row: ControlPlaneIdentity
    client_id: str
    subject: str
    token: str
    deployment: str


@dataclass(frozen=True)
class TokenRow:
    """One service account and its probe's last report."""

    of: TokenProbe
    probe: ProbeResult

    def to_json(self) -> dict[str, Any]:
        """The row for scripts."""
        return {
            "cluster": self.of.cluster,
            "identity": self.of.row.field,
            "clientID": self.of.client_id,
            "subject": self.of.subject,
            "pod": self.probe.pod,
            "report": self.probe.report,
            "problem": self.probe.problem,
        }


def token_probes(outputs: StackOutputs[str]) -> list[TokenProbe]:
    """One for each service account of the stack's clusters with workload identities, in the catalogue's order."""
    return [each for name, cluster in outputs.get("hostedClusters", {}).items() for each in _of_cluster(name, cluster)]


def _of_cluster(name: str, cluster: HostedClusterOutput[str]) -> Iterator[TokenProbe]:
    # The identities of a managed cluster have other fields there (`imageRegistryMSIClientID`).
    for row in CONTROL_PLANE:
        if row.workload is None or row.field not in cluster["dataPlane"]:
            continue
        for each in row.workload.subjects:
            yield TokenProbe(
                cluster=name,
                namespace=control_plane_namespace(cluster["namespace"], name),
                row=row,
                client_id=cluster["dataPlane"][row.field],
                subject=each.subject,
                token=row.workload.token,
                deployment=row.workload.probe_name(each),
            )


def token_rows(wanted: Iterable[TokenProbe], probes: ProbeResults) -> list[TokenRow]:
    """The rows of these probes."""
    return [TokenRow(each, probes.probes.get((each.namespace, each.deployment), _missing(each))) for each in wanted]


def _missing(probe: TokenProbe) -> ProbeResult:
    return ProbeResult(probe.deployment, None, f"no pod in {probe.namespace}")
