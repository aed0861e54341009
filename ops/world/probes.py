"""Reads the reports of the credential probes: pods from the Kubernetes API, reports from the pods' addresses."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NotRequired, TypeAlias, TypedDict, cast

import httpx

from identity.aks.api_server import ApiServerUnavailableError, api_server_of
from identity.aks.kubeconfig import MalformedKubeconfigError
from identity.azure.errors import AccessError
from ops.stack.errors import CommandError

# In the form of the Kubernetes API.
Pod: TypeAlias = Mapping[str, Any]

_PROBES: Final = "/api/v1/pods?labelSelector=app.kubernetes.io%2Fname%3Dcredential-probe"
_INSTANCE: Final = "app.kubernetes.io/instance"
TIMEOUT: Final = 3.0  # seconds


class ProbesUnreachableError(CommandError):
    """The Kubernetes API does not answer; the message has the reason, and the command that starts it again."""


class SignInOutcome(TypedDict):
    """The result of the last sign-in, and its time; `error` is None also before the first one."""

    ok: bool
    error: str | None
    at: NotRequired[str | None]


class ProofOutcome(TypedDict):
    """The result of the last proof call, and its time: the HTTP status, the required permission, the error."""

    ok: bool
    status: int | None
    action: str | None
    error: str | None
    at: NotRequired[str | None]


class ProbeDocument(TypedDict):
    """The used part of a probe's report (`identity/credentials/probe/report.py`); dates are RFC 3339 in UTC."""

    ready: bool
    credentialFile: str | None
    notAfter: str | None
    signIn: SignInOutcome
    proof: ProofOutcome
    thumbprint: NotRequired[str | None]
    clientID: NotRequired[str | None]


@dataclass(frozen=True)
class ProbeResult:
    """One probe and its last report (GET /readyz); `problem` is set if there is none."""

    pod: str
    report: ProbeDocument | None
    problem: str | None = None

    @property
    def is_ready(self) -> bool:
        """Whether its sign-in and its proof call worked."""
        return self.report is not None and self.report["ready"]


@dataclass(frozen=True)
class ProbeResults:
    """All probes of a cluster at one moment, by namespace and Deployment."""

    probes: Mapping[tuple[str, str], ProbeResult]

    def of(self, namespace: str, deployment: str) -> ProbeResult:
        """The probe of one Deployment; one with a problem if the cluster has none."""
        return self.probes.get((namespace, deployment)) or ProbeResult(deployment, None, f"no pod in {namespace}")


def read(kubeconfig: Path) -> ProbeResults:
    """Read the probes from the API and the report of each probe.

    Raises ProbesUnreachableError if the API does not answer.
    """
    try:
        with api_server_of(kubeconfig) as server:
            answer = server.request("GET", _PROBES)
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
    with httpx.Client(timeout=TIMEOUT, trust_env=False) as http, ThreadPoolExecutor(len(pods) or 1) as pool:
        probes = list(pool.map(partial(report_of, http), pods))
    deployments = [(pod["metadata"]["namespace"], pod["metadata"]["labels"][_INSTANCE]) for pod in pods]
    return ProbeResults(dict(zip(deployments, probes, strict=True)))


def _obstacle(error: AccessError, kubeconfig: Path) -> str:
    """Why the Kubernetes API gave no list; the advice for a cluster of AKS does not fit the local one."""
    if isinstance(error, MalformedKubeconfigError):
        return f"{kubeconfig} does not exist, or is not a kubeconfig"
    if isinstance(error, ApiServerUnavailableError):
        return f"the Kubernetes API of {kubeconfig} does not answer"
    return f"the Kubernetes API of {kubeconfig} refuses the list of them ({error})"


def document_of(answer: Mapping[str, Any]) -> ProbeDocument:
    """A probe's answer, with its client id under the name that it has in every document of ours."""
    return cast("ProbeDocument", {"clientID" if key == "clientId" else key: value for key, value in answer.items()})


def report_of(http: httpx.Client, pod: Pod) -> ProbeResult:
    """The report of the probe in a pod, from the pod's address."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    if "podIP" not in status:
        return ProbeResult(name, None, f"the pod is {status.get('phase', 'Pending').lower()}: {_why(status)}")
    port = pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    address = httpx.URL(scheme="http", host=status["podIP"], port=port, path="/readyz")
    try:
        return ProbeResult(name, document_of(http.get(address).json()))
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


def path_in_pod(file: Path, mounts: Path) -> str:
    """A file's path in its pod: below `mounts`, the local kubelet's volumes, it follows namespace and pod."""
    for root in (mounts, mounts.resolve()):
        if file.is_relative_to(root):
            return str(Path("/", *file.relative_to(root).parts[2:]))
    return str(file)
