"""Reads the namespaces of the control planes: classes, mounts, pods, events, and the credential probes' reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpx

from identity.aks.api_server import ApiServer
from identity.aks.probe_pod import CONTAINER
from identity.azure.errors import AccessError
from identity.credentials import rfc3339
from ops.world import cluster_state
from ops.world.expected import Cluster, StackState
from ops.world.probes import TIMEOUT, ProbeDocument, container_reasons, document_of, path_in_pod, report_of
from ops.world.seen import Part, Unread, attempt
from ops.world.stack_world import (
    SeenClass,
    SeenContainer,
    SeenControlPlane,
    SeenHostedCluster,
    SeenPod,
    SeenReport,
    SeenWarning,
)

_CORE: Final = "/api/v1/namespaces/{}"
_CLASSES: Final = "/apis/secrets-store.csi.x-k8s.io/v1/namespaces/{}/secretproviderclasses"
_PROBE_LABEL: Final = "app.kubernetes.io/name"
_AT_ONCE: Final = 8


def read_control_planes(
    server: ApiServer, state: StackState, parts: Collection[Part], mounts: Path | None
) -> dict[str, SeenControlPlane]:
    """Read the control plane of every hosted cluster; each part that cannot be read is unread.

    `mounts` is the directory of the local kubelet's volumes. With it the probes' reports are read at the pods'
    addresses, otherwise through the API server.
    """
    return {cluster.cluster: _control_plane(server, cluster, parts, mounts) for cluster in state.clusters}


def _control_plane(
    server: ApiServer, cluster: Cluster, parts: Collection[Part], mounts: Path | None
) -> SeenControlPlane:
    core = _CORE.format(cluster.namespace)

    def hosted() -> SeenHostedCluster | None:
        document = cluster_state.hosted_cluster(server, cluster.cluster, cluster.home)
        if document is None:
            return None
        conditions = tuple(cluster_state.conditions_of(cluster.cluster, document))
        return SeenHostedCluster(spec=document.get("spec") or {}, conditions=conditions)

    def classes() -> dict[str, SeenClass]:
        specs = {_name(item): item.get("spec") or {} for item in _items(server, _CLASSES.format(cluster.namespace))}
        return {
            name: SeenClass(provider=spec.get("provider") or "", parameters=spec.get("parameters") or {})
            for name, spec in specs.items()
        }

    pods = attempt(
        lambda: [pod for pod in _items(server, f"{core}/pods") if "deletionTimestamp" not in pod["metadata"]]
    )
    probes = [] if isinstance(pods, Unread) or Part.REPORTS not in parts else _probes(cluster, pods)
    return SeenControlPlane(
        classes=attempt(classes),
        mounts=attempt(lambda: cluster_state.mounts_in(server, cluster.namespace)),
        pods=pods if isinstance(pods, Unread) else tuple(map(_pod, pods)),
        warnings=attempt(lambda: tuple(_warnings(_items(server, f"{core}/events?fieldSelector=type%3DWarning")))),
        reports=_reports(server, probes, mounts),
        hosted_cluster=attempt(hosted) if cluster.side == "hypershift" else None,
    )


def _items(server: ApiServer, path: str) -> list[Mapping[str, Any]]:
    return list((server.read(path) or {}).get("items") or ())


def _name(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


def _pod(pod: Mapping[str, Any]) -> SeenPod:
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


def _probes(cluster: Cluster, pods: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The probes of the selected identities."""
    of_mounts = (mount.deployment for identity in cluster.identities for mount in identity.mounts)
    of_tokens = (probe for guest in cluster.guests for probe in guest.probes)
    own = tuple(f"{deployment}-" for deployment in (of_mounts if cluster.side == "stack" else of_tokens))
    return [
        pod
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get(_PROBE_LABEL) == CONTAINER and _name(pod).startswith(own)
    ]


def _reports(server: ApiServer, probes: list[Mapping[str, Any]], mounts: Path | None) -> dict[str, SeenReport | Unread]:
    with httpx.Client(timeout=TIMEOUT, trust_env=False) as http, ThreadPoolExecutor(_AT_ONCE) as pool:

        def read(pod: Mapping[str, Any]) -> SeenReport | Unread:
            if mounts is None:
                return _proxied(server, pod)
            result = report_of(http, pod)
            if result.report is None:
                return Unread(result.problem or "it has no report")
            return _report(result.report, mounts)

        return {_name(pod): report for pod, report in zip(probes, pool.map(read, probes), strict=True)}


def _proxied(server: ApiServer, pod: Mapping[str, Any]) -> SeenReport | Unread:
    """The report through the API server's proxy; a probe that is not ready answers 503 with its report."""
    namespace, port = pod["metadata"]["namespace"], pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    path = f"{_CORE.format(namespace)}/pods/{_name(pod)}:{port}/proxy/readyz"
    try:
        answer = server.request("GET", path)
        document = answer.json() if answer.status_code in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE) else None
    except AccessError as error:
        return Unread.because(error)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "signIn" not in document:
        return Unread(f"{path} at {server.server} answers {answer.status_code}")
    return _report(document_of(document), None)


def _report(document: ProbeDocument, mounts: Path | None) -> SeenReport:
    expires, file, proof = document["notAfter"], document["credentialFile"], document["proof"]
    return SeenReport(
        file=file if file is None or mounts is None else path_in_pod(Path(file), mounts),
        client_id=document.get("clientID"),
        thumbprint=document.get("thumbprint"),
        expires=rfc3339.parse(expires) if expires else None,
        is_signed_in=document["signIn"]["ok"],
        sign_in_error=document["signIn"]["error"],
        is_proven=proof["ok"],
        proof_status=proof["status"],
        proof_error=proof["error"],
        action=proof["action"],
    )
