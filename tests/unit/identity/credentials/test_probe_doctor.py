"""The doctor of the probe's image: what kubectl lists, and what the probes report."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from identity.credentials.probe import doctor
from identity.credentials.probe.doctor import Examined, Namespace, ask_probe, examine, print_report
from localcloud.testing.hosts import Serve

CLASS: Final = "managed-azure-ingress"
PARAMETERS: Final = {
    "keyvaultName": "kv-dev",
    "tenantId": "t",
    "userAssignedIdentityID": "u",
    "useVMManagedIdentity": "true",
    "objects": "array:\n  - |\n    objectName: ingress-hc1-json\n    objectType: secret\n",
}
SOUND: Final = {
    "notAfter": "2027-01-01T00:00:00Z",
    "signIn": {"ok": True, "error": None},
    "proof": {"ok": True, "error": None, "action": "Microsoft.Network/dnszones/read"},
}


def provider_class(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "SecretProviderClass",
        "metadata": {"name": CLASS},
        "spec": {"provider": "azure", "parameters": PARAMETERS, **changes},
    }


def pod(name: str = "probe-ingress-1-a", waiting: str = "", *, is_probe: bool = True) -> dict[str, Any]:
    state = {"waiting": {"reason": waiting, "message": "back-off"}} if waiting else {"running": {}}
    labels = {"app.kubernetes.io/name": "credential-probe" if is_probe else "ingress-operator"}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "volumes": [{"name": "c", "csi": {"volumeAttributes": {"secretProviderClass": CLASS}}}, {"name": "t"}]
        },
        "status": {"containerStatuses": [{"name": "c", "state": state}]},
    }


def status(name: str = "probe-ingress-1-a", *, mounted: bool = True) -> dict[str, Any]:
    return {
        "kind": "SecretProviderClassPodStatus",
        "metadata": {"name": "x"},
        "status": {"podName": name, "secretProviderClassName": CLASS, "mounted": mounted},
    }


def event(reason: str, message: str, at: str = "2026-11-25T10:00:00Z") -> dict[str, Any]:
    return {
        "kind": "Event",
        "metadata": {"name": "e", "creationTimestamp": at},
        "involvedObject": {"name": "probe-ingress-1-a"},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def examined(*items: Mapping[str, Any], report: Mapping[str, Any] = SOUND) -> list[Examined]:
    seen = Namespace.parse(json.dumps({"kind": "List", "items": items}))
    return list(examine(seen, lambda _: report))


def test_a_sound_namespace_has_nothing_broken() -> None:
    [found] = examined(provider_class(), pod(), status())

    assert (found.stage, found.said, found.fix) == ("", "", "")


REFUSED = 'RESPONSE 403: 403 Forbidden {"innererror": {"code": "SecretDisabled"}}'
REFUSED_SIGN_IN = {**SOUND, "signIn": {"ok": False, "error": "AADSTS7000222: expired"}}


@pytest.mark.parametrize(
    ("items", "report", "stage", "words"),
    [
        ((pod(), status()), SOUND, "class", ("no SecretProviderClass", "idstack up")),
        (
            (provider_class(parameters={**PARAMETERS, "tenantId": ""}), pod(), status()),
            SOUND,
            "class",
            ("tenantId is empty", "idstack up"),
        ),
        (
            (provider_class(), pod(waiting="ContainerCreating"), event("FailedMount", REFUSED)),
            SOUND,
            "mount",
            ("SecretDisabled", "az keyvault secret set-attributes"),
        ),
        (
            (provider_class(), pod(), status(mounted=False)),
            SOUND,
            "mount",
            ("no event says why", "kubectl describe pod"),
        ),
        (
            (provider_class(), pod(waiting="CrashLoopBackOff"), status()),
            SOUND,
            "pod",
            ("CrashLoopBackOff", "idstack explain"),
        ),
        (
            (provider_class(), pod(), status()),
            {**REFUSED_SIGN_IN, "notAfter": None},
            "document",
            ("AADSTS7000222", "idstack rotate"),
        ),
        ((provider_class(), pod(), status()), REFUSED_SIGN_IN, "sign-in", ("AADSTS7000222", "idstack rotate")),
        (
            (provider_class(), pod(), status()),
            {**SOUND, "proof": {"ok": False, "error": "403 Forbidden", "action": "read"}},
            "proof-call",
            ("read: 403 Forbidden", "idstack up"),
        ),
    ],
    ids=["no-class", "class", "unmounted", "no-event", "crash", "document", "sign-in", "proof-call"],
)
def test_the_first_broken_stage_is_named_with_evidence_and_fix(
    items: tuple[Mapping[str, Any], ...], report: Mapping[str, Any], stage: str, words: tuple[str, str]
) -> None:
    [found] = examined(*items, report=report)

    assert found.stage == stage
    assert words[0] in found.said
    assert words[1] in found.fix


def test_a_rotation_that_failed_proves_no_old_version() -> None:
    """The driver says nothing while the secret stays as it is, so the event of an hour ago may be over."""
    [found] = examined(provider_class(), pod(), status(), event("MountRotationFailed", REFUSED))

    assert (found.stage, found.fix) == ("mount", "")
    assert "only the vault shows" in found.said
    assert REFUSED in found.said


def test_a_rotation_that_has_worked_since_is_over() -> None:
    failed = event("MountRotationFailed", REFUSED)
    worked = event("MountRotationComplete", "done", at="2026-11-25T10:02:00Z")

    [found] = examined(provider_class(), pod(), status(), failed, worked)

    assert (found.stage, found.said) == ("", "")


def test_a_pod_that_is_no_probe_reports_no_sign_in() -> None:
    [found] = examined(provider_class(), pod(is_probe=False), status())

    assert (found.stage, found.fix, "only a probe reports" in found.said) == ("sign-in", "", True)


@pytest.mark.parametrize("code", [200, 503])
def test_a_report_is_read_at_the_pods_address_whether_it_is_ready_or_not(serve_plain: Serve, code: int) -> None:
    async def readyz(_: Request) -> Response:
        return JSONResponse(SOUND, code)

    address = urlsplit(serve_plain(Starlette(routes=[Route("/readyz", readyz)])))
    asked = {
        "spec": {"containers": [{"ports": [{"containerPort": address.port}]}]},
        "status": {"podIP": address.hostname},
    }

    assert ask_probe(asked) == SOUND


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({}, 0),
        ({"stage": "mount", "said": "x", "fix": "y"}, 1),
        ({"stage": "sign-in", "said": "its report was not read: timed out"}, 3),
    ],
    ids=["sound", "broken", "not-checked"],
)
def test_the_exit_code_is_that_of_the_report(result: dict[str, str], code: int) -> None:
    output = io.StringIO()

    assert print_report([Examined(pod="p", secret_provider_class="c", **result)], output) == code
    assert output.getvalue().endswith(" of 1 mounted credentials\n")


@pytest.mark.parametrize("text", ["", "{}", "[]", "null"], ids=["empty", "object", "list", "null"])
def test_something_else_than_a_list_is_wrong_usage(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))

    assert doctor.main() == 2
    assert "kubectl get pods,events," in capsys.readouterr().err
