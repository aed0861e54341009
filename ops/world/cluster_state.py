"""Reads the management cluster: conditions, classes, mounts, pods, events, and the credential probes' reports.

The driver writes one SecretProviderClassPodStatus for each pod and class (kubernetes-sigs/secrets-store-csi-driver
0aad886, `pkg/secrets-store/nodeserver.go`). Conditions are as in openshift/hypershift at 3ee9615.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import httpx

from identity.aks.api_server import ApiServer, ApiServerUnavailableError, api_server_of
from identity.aks.kubeconfig import MalformedKubeconfigError
from identity.aks.probe_pod import CONTAINER
from identity.azure.errors import AccessError
from identity.azure.records import SecretMetadata
from identity.clouds import LocalEnvironment
from identity.credentials import rfc3339
from identity.hypershift import HOSTED_CLUSTER_PATH
from ops.stack.errors import CommandError
from ops.world.expected import Cluster
from ops.world.seen import (
    NOT_READ,
    HostedClusterCondition,
    Part,
    SeenContainer,
    SeenControlPlane,
    SeenHostedCluster,
    SeenMount,
    SeenPod,
    SeenReport,
    SeenWarning,
    StackWorld,
    Unread,
    attempt,
    known,
)

# In the form of the Kubernetes API.
Pod: TypeAlias = Mapping[str, Any]

_POD_STATUSES: Final = "/apis/secrets-store.csi.x-k8s.io/v1/namespaces/{}/secretproviderclasspodstatuses"


@dataclass(frozen=True)
class ProbeResult:
    """One probe and its last report; `problem` is set if there is none."""

    pod: str
    report: SeenReport | None
    problem: str | None = None

    @property
    def is_ready(self) -> bool:
        """Whether its sign-in and its proof call worked."""
        return self.report is not None and self.report.is_ready

    def to_json(self) -> dict[str, Any]:
        return {"pod": self.pod, "report": self.report and self.report.document, "problem": self.problem}


@dataclass(frozen=True)
class ProbeResults:
    """All probes of a cluster at one moment, by namespace and Deployment."""

    probes: Mapping[tuple[str, str], ProbeResult]

    def of(self, namespace: str, deployment: str) -> ProbeResult:
        """The probe of one Deployment; one with a problem if the cluster has none."""
        return self.probes.get((namespace, deployment)) or ProbeResult(deployment, None, f"no pod in {namespace}")


@dataclass(frozen=True)
class MountedVersion:
    """The version of an identity's secret in one pod; `current` is the vault's, None if that could not be read."""

    cluster: str
    identity: str
    pod: str
    version: str
    is_mounted: bool
    current: str | None

    @property
    def state(self) -> Literal["current", "old", "not mounted", "not known"]:
        if not self.is_mounted:
            return "not mounted"
        if self.current is None:
            return "not known"
        return "current" if self.version == self.current else "old"

    def to_json(self) -> dict[str, Any]:
        return {"pod": self.pod, "version": self.version, "vaultVersion": self.current, "state": self.state}


@dataclass(frozen=True)
class ClusterState:
    """The conditions and mounts that were read; `unread` has the reason for each one that was not."""

    conditions: tuple[HostedClusterCondition, ...] = ()
    mounts: tuple[MountedVersion, ...] = ()
    unread: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Conditions by cluster, mounts by cluster and identity."""
        conditions: dict[str, list[dict[str, Any]]] = {}
        for condition in self.conditions:
            conditions.setdefault(condition.cluster, []).append(condition.to_json())
        mounts: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for (cluster, identity), versions in by_identity(self.mounts).items():
            mounts.setdefault(cluster, {})[identity] = [version.to_json() for version in versions]
        return {"conditions": conditions, "mounts": mounts, "unread": list(self.unread)}


def by_identity(mounted: Iterable[MountedVersion]) -> Mapping[tuple[str, str], list[MountedVersion]]:
    by_owner: dict[tuple[str, str], list[MountedVersion]] = {}
    for version in mounted:
        by_owner.setdefault((version.cluster, version.identity), []).append(version)
    return by_owner


def compare(world: StackWorld) -> ClusterState | None:
    """The conditions of the HostedClusters, and the mounted versions beside those of the vault.

    None for a stack without hosted clusters, or without a management cluster.
    """
    state = known(world.state)
    if not state.clusters:
        return None
    if state.management_cluster is None:
        if all(cluster.side == "stack" for cluster in state.clusters):
            return None
        return ClusterState(unread=("the management cluster: the stack's configuration has no managementCluster",))
    conditions: list[HostedClusterCondition] = []
    mounts: list[MountedVersion] = []
    unread: list[str] = []
    for cluster in state.clusters:
        name, plane = cluster.cluster, world.control_planes.get(cluster.cluster, NOT_READ)
        if isinstance(plane, Unread):
            unread.append(plane.why)
            continue
        if isinstance(plane.hosted_cluster, SeenHostedCluster):
            conditions += plane.hosted_cluster.conditions
        elif isinstance(plane.hosted_cluster, Unread):
            unread.append(f"the conditions of {name}: {plane.hosted_cluster.why}")
        elif cluster.side == "hypershift":
            unread.append(f"the conditions of {name}: there is no HostedCluster {cluster.home}/{name}")
        if isinstance(plane.mounts, Unread):
            unread.append(f"the mounts in the pods of {name}: {plane.mounts.why}")
        else:
            mounts += _mounts(plane.mounts, cluster, world.secrets)
    return ClusterState(tuple(conditions), tuple(mounts), tuple(dict.fromkeys(unread)))


def _driver_mounts(listed: Iterable[Mapping[str, Any]]) -> tuple[SeenMount, ...]:
    """The driver's mounts in the pods of a namespace, from their SecretProviderClassPodStatuses."""
    return tuple(
        SeenMount(
            pod=status.get("podName") or "",
            secret_provider_class=status.get("secretProviderClassName") or "",
            is_mounted=bool(status.get("mounted")),
            versions={mounted["id"]: mounted["version"] for mounted in status.get("objects") or ()},
        )
        for status in (item["status"] for item in listed if item.get("status"))
    )


def _conditions(name: str, document: Mapping[str, Any]) -> Iterator[HostedClusterCondition]:
    unverifiable = set(_unverifiable(document.get("spec") or {}))
    for condition in (document.get("status") or {}).get("conditions") or ():
        yield HostedClusterCondition(
            name,
            condition["type"],
            condition["status"],
            condition.get("reason", ""),
            condition.get("message", ""),
            condition["type"] in unverifiable,
        )


def _unverifiable(spec: Mapping[str, Any]) -> Iterator[str]:
    """The conditions that stay Unknown on a cluster with this `spec`, as in `support/conditions/conditions.go:57-116`.

    HyperShift does not check the key vault without KMS, or behind a private endpoint, and no host name of an API server
    without one, or with one for its own network alone (`support/netutil/expose.go:94-113`).
    """
    kms = ((spec.get("secretEncryption") or {}).get("kms") or {}).get("azure")
    if not kms or kms.get("keyVaultAccess") == "Private":
        yield "ValidAzureKMSConfig"
    published = [
        service["servicePublishingStrategy"]
        for service in spec.get("services") or ()
        if service["service"] == "APIServer"
    ]
    names = [(strategy.get(key) or {}).get("hostname") for strategy in published for key in ("route", "loadBalancer")]
    topology = ((spec.get("platform") or {}).get("azure") or {}).get("topology")
    if topology == "Private" or not any(names):
        yield "ExternalDNSReachable"


def _mounts(
    seen: Iterable[SeenMount], cluster: Cluster, secrets: Mapping[str, SecretMetadata | Unread | None]
) -> Iterator[MountedVersion]:
    mounts = sorted(seen, key=lambda mount: mount.pod)
    for identity in cluster.identities:
        secret = secrets.get(identity.secret)
        current = secret.version if isinstance(secret, SecretMetadata) else None
        for mount in mounts:
            version = mount.versions.get(f"secret/{identity.secret}")
            if mount.secret_provider_class == identity.secret_provider_class and version is not None:
                place = (cluster.cluster, identity.identity, mount.pod)
                yield MountedVersion(*place, version, mount.is_mounted, current)


_CORE: Final = "/api/v1/namespaces/{}"
_CLASSES: Final = "/apis/secrets-store.csi.x-k8s.io/v1/namespaces/{}/secretproviderclasses"
_PROBE_LABEL: Final = "app.kubernetes.io/name"
_AT_ONCE: Final = 8


def read_control_plane(
    server: ApiServer, cluster: Cluster, parts: Collection[Part], results: ProbeResults | Unread | None
) -> SeenControlPlane:
    """Read the control plane of a hosted cluster; each part that cannot be read is unread.

    `results` are those of a local cloud's probes; without them the reports are read through the API server.
    """
    core = _CORE.format(cluster.namespace)

    def hosted() -> SeenHostedCluster | None:
        document = server.read(HOSTED_CLUSTER_PATH.format(cluster.home, cluster.cluster))
        if document is None:
            return None
        conditions = tuple(_conditions(cluster.cluster, document))
        return SeenHostedCluster(spec=document.get("spec") or {}, conditions=conditions)

    def classes() -> dict[str, Mapping[str, Any]]:
        return {_name(item): item.get("spec") or {} for item in _items(server, _CLASSES.format(cluster.namespace))}

    pods = attempt(
        lambda: [pod for pod in _items(server, f"{core}/pods") if "deletionTimestamp" not in pod["metadata"]]
    )
    probes = [] if isinstance(pods, Unread) or Part.REPORTS not in parts else _probes(cluster, pods)
    return SeenControlPlane(
        classes=attempt(classes),
        mounts=attempt(lambda: _driver_mounts(_items(server, _POD_STATUSES.format(cluster.namespace)))),
        pods=pods if isinstance(pods, Unread) else tuple(map(_pod, pods)),
        warnings=attempt(lambda: tuple(_warnings(_items(server, f"{core}/events?fieldSelector=type%3DWarning")))),
        reports=_reports(server, probes, results),
        hosted_cluster=attempt(hosted) if cluster.side == "hypershift" else None,
    )


def _items(server: ApiServer, path: str) -> list[Mapping[str, Any]]:
    return list((server.read(path) or {}).get("items") or ())


def _name(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


def _pod(pod: Pod) -> SeenPod:
    spec, status = pod["spec"], pod.get("status") or {}
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions") or ()}
    attributes = {
        volume["name"]: volume.get("csi", {}).get("volumeAttributes") or {} for volume in spec.get("volumes") or ()
    }
    return SeenPod(
        name=_name(pod),
        created=rfc3339.parse(pod["metadata"]["creationTimestamp"]),
        phase=status.get("phase") or "Pending",
        is_ready=conditions.get("Ready") == "True",
        waiting="; ".join(container_reasons(status)),
        classes={
            volume: values["secretProviderClass"]
            for volume, values in attributes.items()
            if "secretProviderClass" in values
        },
        containers={
            container["name"]: SeenContainer(
                mounts={mount["mountPath"].rstrip("/"): mount["name"] for mount in container.get("volumeMounts") or ()},
                variables={entry["name"]: entry["value"] for entry in container.get("env") or () if "value" in entry},
            )
            for container in spec["containers"]
        },
    )


def _warnings(events: list[Mapping[str, Any]]) -> Iterator[SeenWarning]:
    for event in events:
        last = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
        if event.get("type") == "Warning" and event["involvedObject"].get("kind") == "Pod":
            yield SeenWarning(
                pod=event["involvedObject"]["name"],
                reason=event.get("reason") or "",
                message=event.get("message") or "",
                last=rfc3339.parse(last),
            )


def _probes(cluster: Cluster, pods: list[Pod]) -> list[Pod]:
    of_mounts = (mount.deployment for identity in cluster.identities for mount in identity.mounts)
    of_tokens = (probe for guest in cluster.guests for probe in guest.probes)
    own = tuple(f"{deployment}-" for deployment in (of_mounts if cluster.side == "stack" else of_tokens))
    return [
        pod
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get(_PROBE_LABEL) == CONTAINER and _name(pod).startswith(own)
    ]


def _reports(
    server: ApiServer, probes: list[Pod], results: ProbeResults | Unread | None
) -> dict[str, SeenReport | Unread]:
    names = list(map(_name, probes))
    if isinstance(results, Unread):
        return dict.fromkeys(names, results)
    if results is not None:
        known_results = {result.pod: result for result in results.probes.values() if result.pod in names}
        return {pod: found.report or Unread(found.problem or "no report") for pod, found in known_results.items()}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(names, pool.map(partial(_proxied, server), probes), strict=True))


def _proxied(server: ApiServer, pod: Pod) -> SeenReport | Unread:
    """The report through the API server's proxy; a probe that is not ready answers 503 with its report."""
    namespace, port = pod["metadata"]["namespace"], pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    path = f"{_CORE.format(namespace)}/pods/{_name(pod)}:{port}/proxy/readyz"
    try:
        answer = server.request("GET", path)
        if answer.status_code in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE):
            return SeenReport.of(answer.json())
    except AccessError as error:
        return Unread.because(error)
    except ValueError:
        pass
    return Unread(f"{path} at {server.server} answers {answer.status_code}")


_TIMEOUT: Final = 3.0  # seconds, for a probe on this machine


class ProbesUnreachableError(CommandError):
    """The Kubernetes API does not answer; the message has the reason, and the command that starts it again."""


def local_probes(environment: LocalEnvironment) -> ProbeResults:
    """Read the probes from the API and the report of each probe.

    Raises ProbesUnreachableError if the API does not answer.
    """
    kubeconfig, mounts = Path(environment.kubeconfig), Path(environment.mounts_dir)
    try:
        with api_server_of(kubeconfig) as server:
            answer = server.request("GET", "/api/v1/pods?labelSelector=app.kubernetes.io%2Fname%3Dcredential-probe")
        if answer.is_error:
            raise AccessError(f"{answer.status_code} {answer.reason_phrase}")
    except AccessError as error:
        # The advice for a cluster of AKS does not fit the local one.
        why = f"the Kubernetes API of {kubeconfig} refuses the list of them ({error})"
        if isinstance(error, MalformedKubeconfigError):
            why = f"{kubeconfig} does not exist, or is not a kubeconfig"
        elif isinstance(error, ApiServerUnavailableError):
            why = f"the Kubernetes API of {kubeconfig} does not answer"
        raise ProbesUnreachableError(
            f"the credential probes cannot be read: {why}. `.venv/bin/idstack local start` starts the local cloud again"
        ) from None
    pods: list[Pod] = [pod for pod in answer.json()["items"] if "deletionTimestamp" not in pod["metadata"]]
    # During a rollout a Deployment has two pods; the younger one stays.
    pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
    with httpx.Client(timeout=_TIMEOUT, trust_env=False) as http, ThreadPoolExecutor(len(pods) or 1) as pool:
        probes = list(pool.map(partial(_report_of, http, mounts), pods))
    deployments = [
        (pod["metadata"]["namespace"], pod["metadata"]["labels"]["app.kubernetes.io/instance"]) for pod in pods
    ]
    return ProbeResults(dict(zip(deployments, probes, strict=True)))


def _report_of(http: httpx.Client, mounts: Path, pod: Pod) -> ProbeResult:
    """The report of the probe in a pod, from the pod's address, or the kubelet's reasons why the pod does not run."""
    name, status = _name(pod), pod.get("status", {})
    problem = f"the pod is {status.get('phase', 'Pending').lower()}"
    if "podIP" in status:
        port = pod["spec"]["containers"][0]["ports"][0]["containerPort"]
        address = httpx.URL(scheme="http", host=status["podIP"], port=port, path="/readyz")
        try:
            return ProbeResult(name, SeenReport.of(http.get(address).json(), mounts))
        except httpx.TransportError:
            problem = "the pod's probe does not answer"
        except ValueError:
            problem = "the pod's probe answers no report"
    reasons = container_reasons(status)
    conditions = [
        condition["message"]
        for condition in status.get("conditions", ())
        # The containers' own reasons say more.
        if condition.get("message") and not (reasons and condition.get("reason") == "ContainersNotReady")
    ]
    why = "; ".join([*reasons, *dict.fromkeys(conditions)]) or "the kubelet reports no reason"
    return ProbeResult(name, None, f"{problem}: {why}")


def container_reasons(status: Mapping[str, Any]) -> list[str]:
    """The kubelet's reasons why containers of a pod do not run."""
    return [
        f"{state['reason']}: {state['message']}" if state.get("message") else state["reason"]
        for container in status.get("containerStatuses", ())
        for state in container.get("state", {}).values()
        if "reason" in state
    ]
