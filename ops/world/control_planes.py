"""The namespaces of the control planes: classes, mounts, pods, events, and the reports of the credential probes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, cast

import httpx

from identity.access.api_server import ApiServer
from identity.access.errors import AccessError
from identity.credentials import rfc3339
from ops.world import cluster_state
from ops.world.expected import Cluster, StackState
from ops.world.parts import Part
from ops.world.probes import TIMEOUT, ProbeDocument, container_reasons, report_of
from ops.world.seen import Unread, attempt
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
_PROBE: Final = "credential-probe"
_AT_ONCE: Final = 8


def read_control_planes(
    server: ApiServer, state: StackState, parts: Collection[Part], mounts: Path | None
) -> dict[str, SeenControlPlane]:
    """Every hosted cluster's, as the server's user sees it; what may not be read is unread, each for itself.

    `mounts` is where the local kubelet mounts volumes. Then the probes' reports are read at the pods' addresses,
    otherwise through the API server.
    """
    return {each.cluster: _control_plane(server, each, parts, mounts) for each in state.clusters}


def _control_plane(
    server: ApiServer, cluster: Cluster, parts: Collection[Part], mounts: Path | None
) -> SeenControlPlane:
    core, classes = (each.format(cluster.namespace) for each in (_CORE, _CLASSES))

    def hosted() -> SeenHostedCluster | None:
        found = cluster_state.hosted_cluster(server, cluster.cluster, cluster.home)
        if found is None:
            return None
        conditions = tuple(cluster_state.conditions_of(cluster.cluster, found))
        return SeenHostedCluster(spec=found.get("spec") or {}, conditions=conditions)

    listed = attempt(lambda: _items(server, f"{core}/pods"))
    pods = listed if isinstance(listed, Unread) else _living(listed)
    probes = [] if isinstance(pods, Unread) or Part.REPORTS not in parts else _probes(cluster, pods)
    return SeenControlPlane(
        classes=attempt(lambda: {_name(each): _class(each) for each in _items(server, classes)}),
        mounts=attempt(lambda: cluster_state.mounts_in(server, cluster.namespace)),
        pods=pods if isinstance(pods, Unread) else tuple(map(_pod, pods)),
        warnings=attempt(lambda: tuple(_warnings(_items(server, f"{core}/events?fieldSelector=type%3DWarning")))),
        reports=_reports(server, probes, mounts),
        hosted_cluster=attempt(hosted) if cluster.side == "hypershift" else None,
    )


def _items(server: ApiServer, path: str) -> list[Mapping[str, Any]]:
    return list((server.read(path) or {}).get("items") or ())


def _living(pods: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in pods if "deletionTimestamp" not in each["metadata"]]


def _name(found: Mapping[str, Any]) -> str:
    return str(found["metadata"]["name"])


def _class(found: Mapping[str, Any]) -> SeenClass:
    spec = found.get("spec") or {}
    return SeenClass(provider=spec.get("provider") or "", parameters=spec.get("parameters") or {})


def _pod(found: Mapping[str, Any]) -> SeenPod:
    spec, status = found["spec"], found.get("status") or {}
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    volumes = {each["name"]: each.get("csi", {}).get("volumeAttributes") or {} for each in spec.get("volumes") or ()}
    return SeenPod(
        name=_name(found),
        created=rfc3339.parse(found["metadata"]["creationTimestamp"]),
        phase=status.get("phase") or "Pending",
        is_ready=is_ready,
        waiting="; ".join(container_reasons(status)),
        classes={name: each["secretProviderClass"] for name, each in volumes.items() if "secretProviderClass" in each},
        containers={each["name"]: _container(each) for each in spec["containers"]},
    )


def _container(found: Mapping[str, Any]) -> SeenContainer:
    return SeenContainer(
        mounts={each["mountPath"].rstrip("/"): each["name"] for each in found.get("volumeMounts") or ()},
        variables={each["name"]: each["value"] for each in found.get("env") or () if "value" in each},
    )


def _warnings(events: list[Mapping[str, Any]]) -> Iterator[SeenWarning]:
    for each in events:
        last = each.get("lastTimestamp") or each.get("eventTime") or each["metadata"]["creationTimestamp"]
        if each.get("type") == "Warning" and each["involvedObject"].get("kind") == "Pod":
            yield SeenWarning(
                pod=each["involvedObject"]["name"],
                reason=each.get("reason") or "",
                message=each.get("message") or "",
                last=rfc3339.parse(last),
            )


def _probes(cluster: Cluster, pods: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The probes of the identities that are looked at."""
    of_mounts = (mount.deployment for identity in cluster.identities for mount in identity.mounts)
    of_tokens = (probe for guest in cluster.guests for probe in guest.probes)
    own = tuple(f"{deployment}-" for deployment in (of_mounts if cluster.side == "stack" else of_tokens))
    return [
        pod
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get(_PROBE_LABEL) == _PROBE and _name(pod).startswith(own)
    ]


def _reports(server: ApiServer, probes: list[Mapping[str, Any]], mounts: Path | None) -> dict[str, SeenReport | Unread]:
    with httpx.Client(timeout=TIMEOUT, trust_env=False) as http, ThreadPoolExecutor(_AT_ONCE) as pool:

        def read(pod: Mapping[str, Any]) -> SeenReport | Unread:
            if mounts is None:
                return _seen_through(server, pod)
            result = report_of(http, pod)
            if result.report is None:
                return Unread(result.problem or "it has no report")
            return _report(result.report, mounts)

        return {_name(pod): found for pod, found in zip(probes, pool.map(read, probes), strict=True)}


def _seen_through(server: ApiServer, pod: Mapping[str, Any]) -> SeenReport | Unread:
    """The report as the API server passes it on; a probe that is not ready answers 503 with its report."""
    namespace, port = pod["metadata"]["namespace"], pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    path = f"{_CORE.format(namespace)}/pods/{_name(pod)}:{port}/proxy/readyz"
    try:
        answer = server.request("GET", path)
        found = answer.json() if answer.status_code in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE) else None
    except AccessError as error:
        return Unread.because(error)
    except ValueError:
        found = None
    if not isinstance(found, dict) or "signIn" not in found:
        return Unread(f"{path} at {server.server} answers {answer.status_code}")
    return _report(cast("ProbeDocument", found), None)


def _report(found: ProbeDocument, mounts: Path | None) -> SeenReport:
    expires, file = found["notAfter"], found["credentialFile"]
    return SeenReport(
        file=file if file is None or mounts is None else _in_pod(Path(file), mounts),
        client_id=found.get("clientId"),
        thumbprint=found.get("thumbprint"),
        expires=rfc3339.parse(expires) if expires else None,
        is_signed_in=found["signIn"]["ok"],
        sign_in_error=found["signIn"]["error"],
        is_proven=found["proof"]["ok"],
        proof_status=found["proof"]["status"],
        proof_error=found["proof"]["error"],
        action=found["proof"]["action"],
    )


def _in_pod(path: Path, mounts: Path) -> str:
    """The file's path as the pod has it: below `mounts` it follows namespace and pod."""
    for root in (mounts, mounts.resolve()):
        if path.is_relative_to(root):
            return str(Path("/", *path.relative_to(root).parts[2:]))
    return str(path)
