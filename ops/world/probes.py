"""Reads the reports of the credential probes: pods from the Kubernetes API, reports from the pods' addresses."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import httpx

from identity.aks.api_server import ApiServerUnavailableError, api_server_of
from identity.aks.kubeconfig import MalformedKubeconfigError
from identity.azure.errors import AccessError
from identity.clouds import LocalEnvironment
from identity.credentials import rfc3339
from ops.stack.errors import CommandError

# In the form of the Kubernetes API.
Pod: TypeAlias = Mapping[str, Any]

_INSTANCE: Final = "app.kubernetes.io/instance"
_TIMEOUT: Final = 3.0  # seconds


class ProbesUnreachableError(CommandError):
    """The Kubernetes API does not answer; the message has the reason, and the command that starts it again."""


@dataclass(frozen=True, kw_only=True)
class ProbeStep:
    """The last sign-in, or the last proof call with its HTTP status and the required permission, and its time.

    `error` is None also before the first one.
    """

    ok: bool
    error: str | None
    at: str | None = None
    status: int | None = None
    action: str | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        return cls(
            ok=answer["ok"],
            error=answer["error"],
            at=answer.get("at"),
            status=answer.get("status"),
            action=answer.get("action"),
        )


@dataclass(frozen=True, kw_only=True)
class SeenReport:
    """The last report of a credential probe (`identity/credentials/probe/report.py`, GET /readyz).

    `file` is the path in the pod. Client, thumbprint and end are those of the loaded document, None without one.
    `document` is the whole answer, for scripts.
    """

    is_ready: bool  # its sign-in and its proof call worked
    file: str | None
    client_id: str | None
    thumbprint: str | None
    expires: datetime | None
    sign_in: ProbeStep
    proof: ProbeStep
    document: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, answer: Any, mounts: Path | None = None) -> Self:
        """Parse an answer; `mounts` are the local kubelet's volumes. Raises ValueError for anything else."""
        if not isinstance(answer, Mapping) or "signIn" not in answer:
            raise ValueError("it is no report of a probe")
        # Every document of ours names the client so.
        document = {"clientID" if key == "clientId" else key: value for key, value in answer.items()}
        file, expires = document["credentialFile"], document["notAfter"]
        return cls(
            is_ready=document["ready"],
            file=file if file is None or mounts is None else _path_in_pod(Path(file), mounts),
            client_id=document.get("clientID"),
            thumbprint=document.get("thumbprint"),
            expires=rfc3339.parse(expires) if expires else None,
            sign_in=ProbeStep.of(document["signIn"]),
            proof=ProbeStep.of(document["proof"]),
            document=document,
        )


def _path_in_pod(file: Path, mounts: Path) -> str:
    """A file's path in its pod: below the local kubelet's volumes, it follows namespace and pod."""
    for root in (mounts, mounts.resolve()):
        if file.is_relative_to(root):
            return str(Path("/", *file.relative_to(root).parts[2:]))
    return str(file)


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


def read(environment: LocalEnvironment) -> ProbeResults:
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
        raise ProbesUnreachableError(
            f"the credential probes cannot be read: {_obstacle(error, kubeconfig)}. `.venv/bin/idstack local start` "
            "starts the local cloud again"
        ) from None
    pods: list[Pod] = [pod for pod in answer.json()["items"] if "deletionTimestamp" not in pod["metadata"]]
    # During a rollout a Deployment has two pods; the younger one stays.
    pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
    with httpx.Client(timeout=_TIMEOUT, trust_env=False) as http, ThreadPoolExecutor(len(pods) or 1) as pool:
        probes = list(pool.map(partial(_report_of, http, mounts), pods))
    deployments = [(pod["metadata"]["namespace"], pod["metadata"]["labels"][_INSTANCE]) for pod in pods]
    return ProbeResults(dict(zip(deployments, probes, strict=True)))


def _obstacle(error: AccessError, kubeconfig: Path) -> str:
    """Why the Kubernetes API gave no list; the advice for a cluster of AKS does not fit the local one."""
    if isinstance(error, MalformedKubeconfigError):
        return f"{kubeconfig} does not exist, or is not a kubeconfig"
    if isinstance(error, ApiServerUnavailableError):
        return f"the Kubernetes API of {kubeconfig} does not answer"
    return f"the Kubernetes API of {kubeconfig} refuses the list of them ({error})"


def _report_of(http: httpx.Client, mounts: Path, pod: Pod) -> ProbeResult:
    """The report of the probe in a pod, from the pod's address."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    if "podIP" not in status:
        return ProbeResult(name, None, f"the pod is {status.get('phase', 'Pending').lower()}: {_why(status)}")
    port = pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    address = httpx.URL(scheme="http", host=status["podIP"], port=port, path="/readyz")
    try:
        return ProbeResult(name, SeenReport.of(http.get(address).json(), mounts))
    except httpx.TransportError:
        return ProbeResult(name, None, f"the pod's probe does not answer: {_why(status)}")
    except ValueError:
        return ProbeResult(name, None, f"the pod's probe answers no report: {_why(status)}")


def _why(status: Mapping[str, Any]) -> str:
    """The kubelet's reasons why a pod does not run."""
    reasons = container_reasons(status)
    conditions = [
        condition["message"]
        for condition in status.get("conditions", ())
        # The containers' own reasons say more.
        if condition.get("message") and not (reasons and condition.get("reason") == "ContainersNotReady")
    ]
    return "; ".join([*reasons, *dict.fromkeys(conditions)]) or "the kubelet reports no reason"


def container_reasons(status: Mapping[str, Any]) -> list[str]:
    """The kubelet's reasons why containers of a pod do not run."""
    return [
        f"{state['reason']}: {state['message']}" if state.get("message") else state["reason"]
        for container in status.get("containerStatuses", ())
        for state in container.get("state", {}).values()
        if "reason" in state
    ]
