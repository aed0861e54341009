"""`idstack rotate`: what is chosen, when it is refused, and what the engine is asked to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identity.credentials import rfc3339
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.world import output

_STACK = "urn:pulumi:dev::idstack"
_IDENTITY = "idstack:azure:ControlPlaneIdentity"
_ENTRA = f"{_IDENTITY}$idstack:azure:EntraApplication"


def _resources(name: str, *, renewed: datetime | None = None) -> list[dict[str, Any]]:
    """An identity as the state has it; `renewed`: when its slot b became current, if it did."""
    component = f"{_STACK}::{_IDENTITY}::{name}"
    entra = f"{_STACK}::{_ENTRA}::{name}-entra"
    issued = {"generation": 1, "notBefore": "2026-01-31T09:25:15Z", "validDays": 90}
    newer = {"generation": 2, "notBefore": rfc3339.render(renewed or datetime(2026, 1, 31, tzinfo=UTC))}
    slots = {"current": "b" if renewed else "a", "a": issued, "b": newer if renewed else issued}
    return [
        {"urn": component, "type": _IDENTITY, "parent": f"{_STACK}::idstack:hypershift:HostedCluster::hc1"},
        {"urn": entra, "type": "idstack:azure:EntraApplication", "parent": component},
        {
            "urn": f"{_STACK}::{_ENTRA}$idstack:index:RenewalSchedule::{name}-entra-schedule",
            "type": "idstack:index:RenewalSchedule",
            "parent": entra,
            "inputs": slots,
        },
    ]


@pytest.fixture
def stack(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """A stack with two identities that it issues certificates for, and one issued elsewhere."""
    later = {"notAfter": "2999-02-19T16:50:04Z"}
    rows = {
        "ingress": output("managed-azure-ingress", "ingress-hc1-json", **later),
        "disk": output("managed-azure-disk-csi", "azure-disk-hc1-json", **later),
        "imageRegistry": output("managed-azure-image-registry", "ciro-hc1-json", **later),
    }
    engine.has({"hostedClusters": {"hc1": {"controlPlane": rows}}})
    engine.has_resources(*_resources("hc1-ingress"), *_resources("hc1-disk"))
    return engine


def _targets(engine: FakeEngine) -> list[str]:
    """Names of the resources that each `pulumi up` was limited to."""
    return [
        " ".join(word.rpartition("::")[2] for word in call.split() if word.startswith("urn:"))
        for call in engine.calls
        if call.startswith("up ")
    ]


def test_every_certificate_of_the_stack_is_renewed_in_one_run(stack: FakeEngine, idstack: Idstack) -> None:
    printed = idstack("rotate", "--stack", "dev", "--yes")

    assert printed.code == 0
    assert _targets(stack) == ["hc1-ingress hc1-ingress-entra hc1-ingress-entra-schedule hc1-disk hc1-disk-entra "
                               "hc1-disk-entra-schedule"]  # fmt: skip
    [up] = [call for call in stack.calls if call.startswith("up ")]
    assert up.endswith("--yes --stack dev"), "a person is asked, unless the engine's own option says otherwise"


@pytest.mark.parametrize("name", ["disk", "hc1/disk"])
def test_one_identity_is_chosen_by_its_field(stack: FakeEngine, idstack: Idstack, name: str) -> None:
    assert idstack("rotate", "--stack", "dev", "--identity", name).code == 0
    assert _targets(stack) == ["hc1-disk hc1-disk-entra hc1-disk-entra-schedule"]


@pytest.mark.parametrize("name", ["imageRegistry", "hc2/disk", "dsik"])
def test_an_identity_without_a_certificate_of_ours_is_refused(stack: FakeEngine, idstack: Idstack, name: str) -> None:
    printed = idstack("rotate", "--stack", "dev", "--identity", name, "--identity", "disk")

    assert (printed.code, _targets(stack)) == (1, [])
    assert printed.error == (
        f"idstack: no certificate is issued by this stack for {name}; it issues those of hc1/ingress, hc1/disk. A "
        "credential issued elsewhere is renewed there: put the new document where the configuration says and run "
        "`make up`\n"
    )


def test_too_soon_is_refused_and_names_the_pods(stack: FakeEngine, idstack: Idstack) -> None:
    renewed = datetime.now(UTC) - timedelta(hours=2)
    stack.has_resources(*_resources("hc1-ingress", renewed=renewed), *_resources("hc1-disk"))

    printed = idstack("rotate", "--stack", "dev")

    assert (printed.code, _targets(stack)) == (1, [])
    until = rfc3339.render(renewed + timedelta(minutes=5) + timedelta(hours=8, minutes=30))
    assert f"  hc1/ingress: ingress-operator in ingress-operator, until {until} at the latest\n" in printed.error
    assert "hc1/disk" not in printed.error
    assert "--force" in printed.error


def test_force_names_the_pods_at_risk_and_goes_on(stack: FakeEngine, idstack: Idstack) -> None:
    stack.has_resources(*_resources("hc1-ingress", renewed=datetime.now(UTC) - timedelta(hours=2)))

    printed = idstack("rotate", "--stack", "dev", "--force")

    assert printed.code == 0
    assert "hc1/ingress: ingress-operator in ingress-operator" in printed.output
    assert len(_targets(stack)) == 1


def test_a_revocation_is_two_runs_and_says_who_fails_for_how_long(stack: FakeEngine, idstack: Idstack) -> None:
    printed = idstack("rotate", "--stack", "dev", "--identity", "disk", "--revoke")

    assert printed.code == 0
    assert _targets(stack) == ["hc1-disk hc1-disk-entra hc1-disk-entra-schedule"] * 2
    assert "hc1/disk: csi-driver in azure-disk-csi-driver-controller" in printed.output
    assert "90 minutes" in printed.output


def test_a_stack_without_certificates_has_nothing_to_rotate(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has_resources()

    printed = idstack("rotate", "--stack", "dev")

    assert printed.error == "idstack: the stack issues no certificate: there is nothing to rotate\n"
