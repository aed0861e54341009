"""`python -m identity.credentials.probe.doctor`: diagnoses the credentials of a namespace by kubectl's output alone.

It reads what `kubectl get pods,events,secretproviderclasses,secretproviderclasspodstatuses -o json` prints, on standard
input, and gets the reports of the probes among the pods. For each pod that mounts a credential it names the first
broken stage: class, mount, pod, document, sign-in or proof call. It needs no right of its own in the cluster.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TextIO
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from identity.credentials.symptom import ON_PAPER, Family
from identity.credentials.symptoms import find

# As the Kubernetes API answers it.
Document = Mapping[str, Any]
AskProbe = Callable[[Document], Document]

_KINDS: Final = "pods,events,secretproviderclasses,secretproviderclasspodstatuses"
_USAGE: Final = f"usage: kubectl get {_KINDS} --namespace <namespace> --output json | python -m {__spec__.name}"
_PROBE_LABEL: Final = ("app.kubernetes.io/name", "credential-probe")
_PARAMETERS: Final = ("keyvaultName", "tenantId", "userAssignedIdentityID")
_OBJECT_NAME: Final = re.compile(r"\bobjectName: *[\"']?([0-9A-Za-z-]+)")
_PASSING: Final = ("ContainerCreating", "PodInitializing")
_TIMEOUT: Final = 5  # seconds
_DESCRIBE: Final = "look at `kubectl describe pod`, and at the driver's log"
_UNREACHED: Final = "let the pod reach the authority: look at its network policies, proxy and DNS"
_WITHOUT_A_REPORT: Final = "only a probe reports: read the log of this pod, or mount its class in a pod of the probe"


@dataclass(frozen=True)
class Examined:
    """A pod and one of its SecretProviderClasses: the first broken stage, one that was not checked, or neither.

    `said` is the evidence, or why `stage` was not checked; empty if all is sound. Only a broken stage has a `fix`.
    """

    pod: str
    secret_provider_class: str
    stage: str = ""
    said: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Namespace:
    """What kubectl listed, by kind."""

    classes: Mapping[str, Document]
    statuses: Mapping[tuple[str, str], Document]
    events: list[Document]
    pods: list[Document]

    @classmethod
    def parse(cls, text: str) -> Namespace:
        """Read a List; raises ValueError for anything else."""
        listing = json.loads(text)
        if not isinstance(listing, dict) or listing.get("kind") != "List":
            raise ValueError("found no List of Kubernetes objects")

        def of(kind: str) -> list[Document]:
            return [item for item in listing.get("items") or () if item.get("kind") == kind]

        return cls(
            {_name(item): item for item in of("SecretProviderClass")},
            {
                (item["status"]["podName"], item["status"]["secretProviderClassName"]): item["status"]
                for item in of("SecretProviderClassPodStatus")
            },
            of("Event"),
            [item for item in of("Pod") if "deletionTimestamp" not in item["metadata"]],
        )

    def last_event(self, pod: str, reason: str, *, unless: str = "") -> str:
        """The last message of that reason about the pod, in one line; empty without one, or if `unless` came later."""
        own = [event for event in self.events if event["involvedObject"].get("name") == pod]
        last = max((event for event in own if event.get("reason") in (reason, unless)), key=_time, default=None)
        return " ".join((last.get("message") or "").split()) if last and last["reason"] == reason else ""


def examine(seen: Namespace, ask: AskProbe) -> Iterator[Examined]:
    """One result for each class that a pod mounts. `ask` returns a probe's report, and raises OSError or ValueError."""
    for pod in seen.pods:
        reported: Examined | None = None
        for name in _classes_of(pod):
            result = partial(Examined, _name(pod), name)
            broken = _mounting(seen, pod, name, result)
            if broken is None:
                reported = reported or _reported(pod, ask, result)
                broken = reported if reported.fix else _rotation(seen, pod, result) or reported
            yield broken


def _mounting(seen: Namespace, pod: Document, name: str, result: Callable[..., Examined]) -> Examined | None:
    """What is broken until the pod has the file."""
    if name not in seen.classes:
        return result("class", f"there is no SecretProviderClass {name}", f"create it: {ON_PAPER['objects']}")
    if wrong := _wrong(seen.classes[name]["spec"]):
        return result("class", f"of {name}, {wrong}", f"have it written again: {ON_PAPER['objects']}")
    status = seen.statuses.get((_name(pod), name))
    if status is None or not status.get("mounted"):
        said = seen.last_event(_name(pod), "FailedMount") or "no event says why; events are kept for an hour"
        return result("mount", f"the driver has mounted nothing: {said}", _fix(said, Family.VAULT, Family.MOUNT))
    waiting = [reason for reason in _waiting(pod) if not reason.startswith(_PASSING)]
    if waiting:
        return result("pod", waiting[0], _fix(waiting[0], Family.POD))
    return None


def _rotation(seen: Namespace, pod: Document, result: Callable[..., Examined]) -> Examined | None:
    """A failed rotation without a later success: while the secret is unchanged there is none either."""
    if said := seen.last_event(_name(pod), "MountRotationFailed", unless="MountRotationComplete"):
        why = f"a rotation has failed; only the vault shows whether the pod's version is old: {said}"
        return result("mount", why)
    return None


def _reported(pod: Document, ask: AskProbe, result: Callable[..., Examined]) -> Examined:
    """What the pod reports of its credential once it has the file."""
    label, probe = _PROBE_LABEL
    if (pod["metadata"].get("labels") or {}).get(label) != probe:
        return result("sign-in", _WITHOUT_A_REPORT)
    try:
        report = ask(pod)
    except (OSError, ValueError, KeyError) as error:
        return result("sign-in", f"its report was not read: {error}")
    sign_in, proof = report["signIn"], report["proof"]
    if not sign_in["ok"]:
        said = " ".join((sign_in["error"] or "it has not signed in yet").split())
        if not report["notAfter"]:
            return result("document", said, f"deliver another document: {ON_PAPER['renewal']}")
        return result("sign-in", said, _fix(said, Family.ENTRA_ID, otherwise=_UNREACHED))
    if not proof["ok"]:
        said = " ".join((proof["error"] or "it has not called yet").split())
        return result("proof-call", f"{proof['action']}: {said}", f"if a role is gone: {ON_PAPER['repair']}")
    return result()


def _wrong(spec: Document) -> str:
    """What the driver cannot use, in words."""
    parameters = spec.get("parameters") or {}
    missing = [parameter for parameter in _PARAMETERS if not parameters.get(parameter)]
    if spec.get("provider") != "azure":
        return f"provider is {spec.get('provider')!r}, not 'azure'"
    if missing:
        return f"{', '.join(missing)} is empty"
    if parameters.get("useVMManagedIdentity") != "true":
        return f"useVMManagedIdentity is {parameters.get('useVMManagedIdentity')!r}, not 'true'"
    return "" if _OBJECT_NAME.search(parameters.get("objects") or "") else "`objects` names no secret"


def _fix(said: str, *families: Family, otherwise: str = _DESCRIBE) -> str:
    symptom = find(said, *families)
    return symptom.fix.format_map(ON_PAPER) if symptom else otherwise


def _waiting(pod: Document) -> Iterator[str]:
    status = pod.get("status") or {}
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if waiting := (container.get("state") or {}).get("waiting"):
            yield f"{waiting.get('reason')}: {waiting.get('message') or container['name']}"


def _classes_of(pod: Document) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if name := ((volume.get("csi") or {}).get("volumeAttributes") or {}).get("secretProviderClass"):
            yield name


def _name(resource: Document) -> str:
    return str(resource["metadata"]["name"])


def _time(event: Document) -> str:
    return event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"] or ""


def ask_probe(pod: Document) -> Document:
    """The report at the pod's own address; a probe that is not ready answers 503 with it.

    Raises OSError and ValueError for anything but a report, KeyError for a pod without an address.
    """
    port = pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    try:
        with build_opener(ProxyHandler({})).open(
            f"http://{pod['status']['podIP']}:{port}/readyz", timeout=_TIMEOUT
        ) as answer:
            text = answer.read()
    except HTTPError as error:
        text = error.read()
    report = json.loads(text)
    if not isinstance(report, dict) or "signIn" not in report:
        raise ValueError("the answer is not a report")
    return report


def print_report(results: Iterable[Examined], output: TextIO) -> int:
    """Write what is broken and what was not checked; returns the exit code: 0 sound, 1 broken, 3 not all checked."""
    examined = list(results)
    broken = [result for result in examined if result.fix]
    unseen = [result for result in examined if result.said and not result.fix]
    for result in broken:
        place = f"{result.pod}, class {result.secret_provider_class}"
        print(f"broken  {result.stage}: {place}\n    found  {result.said}\n    fix    {result.fix}\n", file=output)
    for stage, said in dict.fromkeys((result.stage, result.said) for result in unseen):
        pods = ", ".join(dict.fromkeys(result.pod for result in unseen if result.said == said))
        print(f"not checked  {stage}: {pods}\n    why    {said}\n", file=output)
    print(f"{len(broken)} broken, {len(unseen)} not checked, of {len(examined)} mounted credentials", file=output)
    return 1 if broken else 3 if unseen or not examined else 0


def main() -> int:
    """Read standard input; returns the exit code, 2 for anything but kubectl's list."""
    if sys.stdin.isatty():
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        seen = Namespace.parse(sys.stdin.read())
    except ValueError as error:
        print(f"standard input: {error}\n{_USAGE}", file=sys.stderr)
        return 2
    return print_report(examine(seen, ask_probe), sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
