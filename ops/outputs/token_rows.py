"""The service accounts of hosted clusters with workload identities, with the reports of their probes.

Only a local stack has such probes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.clouds import LocalEnvironment
from identity.naming import control_plane_namespace
from identity.outputs import HostedClusterOutput, StackOutputs
from ops.outputs.rows import has_probes
from ops.world.probes import ProbeResult, ProbeResults, read


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
    """The probes of all service accounts of clusters with workload identities, in the catalogue's order."""
    return [
        probe for name, cluster in outputs.get("hostedClusters", {}).items() for probe in _of_cluster(name, cluster)
    ]


def _of_cluster(name: str, cluster: HostedClusterOutput[str]) -> Iterator[TokenProbe]:
    # The identities of a managed cluster have other fields here (`imageRegistryMSIClientID`).
    for row in CONTROL_PLANE:
        if row.workload is None or row.field not in cluster["dataPlane"]:
            continue
        for subject in row.workload.subjects:
            yield TokenProbe(
                cluster=name,
                namespace=control_plane_namespace(cluster["namespace"], name),
                row=row,
                client_id=cluster["dataPlane"][row.field],
                subject=subject.subject,
                token=row.workload.token,
                deployment=row.workload.probe_name(subject),
            )


def token_rows(probes: Iterable[TokenProbe], results: ProbeResults) -> list[TokenRow]:
    """The rows of these probes."""
    return [TokenRow(probe, results.of(probe.namespace, probe.deployment)) for probe in probes]


def read_probes(environment: LocalEnvironment | None, *outputs: StackOutputs[str]) -> ProbeResults | None:
    """The probes of stacks with these outputs; None on Azure, and if the stacks have none.

    Raises ProbesUnreachableError if the local cloud's API does not answer.
    """
    if environment is None or not any(has_probes(stack) or token_probes(stack) for stack in outputs):
        return None
    return read(Path(environment.kubeconfig))


def running_token_rows(outputs: StackOutputs[str], results: ProbeResults | None) -> list[TokenRow]:
    """The rows of the clusters with probes; `results` is None if none can be read."""
    if results is None:
        return []
    running = {namespace for namespace, _ in results.probes}
    return token_rows([probe for probe in token_probes(outputs) if probe.namespace in running], results)
