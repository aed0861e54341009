"""`idstack rotate`: what is chosen, when it is refused, and what the engine is asked to do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from identity.credentials import rfc3339
from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.renewal_world import SLOT, Identity, outputs_of

_INGRESS, _DISK, _KMS = (Identity(f"hc1-{name}") for name in ("ingress", "disk", "kms"))


def _renewed(identity: Identity, at: datetime) -> list[Any]:
    """An identity whose slot b became current at that time."""
    since = rfc3339.render(at)
    changes = {
        identity.schedule: {"inputs": {"current": "b", "a": SLOT, "b": {**SLOT, "generation": 2, "notBefore": since}}},
        identity.secret: {"outputs": {"generation": "b2", "deliveredAt": since}},
    }
    return [resource | changes.get(resource["urn"], {}) for resource in identity.resources()]


@pytest.fixture
def stack(engine: FakeEngine) -> FakeEngine:
    """A stack with two identities that it issues certificates for, and one issued elsewhere."""
    engine.has(outputs_of(_INGRESS, _DISK, Identity("hc1-imageRegistry")))
    engine.has_resources(*_INGRESS.resources(), *_DISK.resources())
    return engine


def _targets(engine: FakeEngine) -> list[str]:
    """Names of the identities that each `pulumi up` was limited to; of each, every resource that a renewal touches."""
    return [
        " ".join(_identities({word.rpartition("::")[2]: 0 for word in call.split() if word.startswith("urn:")}))
        for call in engine.calls
        if call.startswith("up ")
    ]


def _identities(names: Iterable[str]) -> list[str]:
    [*found] = [name.removesuffix("-entra-schedule") for name in names if name.endswith("-entra-schedule")]
    assert sorted(names) == sorted(
        name
        for identity in found
        for name in (
            f"{identity}-entra-schedule",
            *(f"{identity}-entra-{part}-{slot}*" for part in ("certificate", "registration", "gate") for slot in "ab"),
            f"{identity}-credential-secret",
        )
    )
    return found


def test_every_certificate_of_the_stack_is_renewed_in_one_run(stack: FakeEngine, idstack: Idstack) -> None:
    printed = idstack("rotate", "--stack", "dev", "--yes")

    assert printed.code == 0
    assert _targets(stack) == ["hc1-ingress hc1-disk"]
    [up] = [call for call in stack.calls if call.startswith("up ")]
    assert up.endswith("--yes --stack dev"), "the engine asks, unless its own option turns that off"
    forced = idstack("rotate", "--stack", "dev", "--force").output
    assert forced.startswith("renewed now: hc1/ingress, hc1/disk\n"), "no pod is at risk"


def test_several_can_be_named_and_a_field_means_that_of_every_cluster(engine: FakeEngine, idstack: Idstack) -> None:
    identities = [Identity(name) for name in ("hc1-ingress", "hc1-disk", "hc2-ingress", "hc2-disk")]
    engine.has(outputs_of(*identities))
    engine.has_resources(*(resource for identity in identities for resource in identity.resources()))

    assert idstack("rotate", "--stack", "dev", "--identity", "ingress", "-i", "hc2/disk").code == 0
    named = ("hc1-ingress", "hc2-ingress", "hc2-disk")
    assert engine.renewals == [{f"{name}-entra-schedule": "renew" for name in named}]
    engine.has_resources()
    nothing = "idstack: the stack dev issues no certificate: there is nothing to rotate\n"
    assert idstack("rotate", "--stack", "dev").error == nothing


@pytest.mark.parametrize(
    ("name", "meant"),
    [("imageRegistry", ""), ("hc2/disk", " (did you mean hc1/disk?)"), ("dsik", " (did you mean disk?)")],
    ids=["another", "another cluster", "typing error"],
)
def test_an_identity_without_a_certificate_of_ours_is_refused(
    stack: FakeEngine, idstack: Idstack, name: str, meant: str
) -> None:
    printed = idstack("rotate", "--stack", "dev", "--identity", name, "--identity", "disk")

    assert (printed.code, _targets(stack)) == (1, [])
    assert printed.error == (
        f"idstack: the stack dev issues no certificate for {name}{meant}; it issues those of hc1/ingress, hc1/disk. A "
        "credential that is issued elsewhere is renewed there: put the new document where it is named, "
        "then `.venv/bin/idstack up --stack dev`\n"
    )


def _renewed_two_hours_ago(stack: FakeEngine) -> str:
    """Both identities; returns until when pods may need the previous certificate."""
    renewed = datetime.now(UTC) - timedelta(hours=2)
    stack.has_resources(*_renewed(_KMS, renewed), *_DISK.resources())
    stack.has(outputs_of(_DISK, _KMS))
    return rfc3339.render(renewed + timedelta(hours=8, minutes=30))


_KMS_PODS = "azure-kms-provider-active in kube-apiserver, control-plane-operator in control-plane-operator"


def test_too_soon_is_refused_and_names_the_pods_and_what_to_do(stack: FakeEngine, idstack: Idstack) -> None:
    until = _renewed_two_hours_ago(stack)

    printed = idstack("rotate", "--stack", "dev")

    assert (printed.code, _targets(stack)) == (1, [])
    assert printed.error == (
        "idstack: it is too soon: a renewal replaces the certificate before the current one, and these pods may still "
        "use it:\n"
        f"  hc1/kms: {_KMS_PODS}, until {until} at the latest\n"
        "They load the current one at the latest 6 hours after the CSI driver has polled. Wait until then, or restart "
        "those pods and use --force\n"
    )
    another = idstack("rotate", "--stack", "dev", "--identity", "disk")
    assert (another.code, "fail" in another.output) == (0, False)
    assert stack.renewals == [{"hc1-disk-entra-schedule": "renew"}]


_LATE = "at the latest 6 hours after the CSI driver has polled; restart them"
_VALID = "Tokens issued before stay valid for up to 90 minutes.\n"


@pytest.mark.parametrize(
    ("options", "requests", "warning"),
    [
        (
            ("--force",),
            {"hc1-disk-entra-schedule": "force", "hc1-kms-entra-schedule": "force"},
            "These pods cannot sign in if they have not loaded the current certificate yet:\n"
            f"  hc1/kms: {_KMS_PODS}, until {{until}} at the latest\n",
        ),
        (
            ("--identity", "kms", "--identity", "disk", "--revoke", "--now"),
            {"hc1-disk-entra-schedule": "replace", "hc1-kms-entra-schedule": "replace"},
            "Every certificate is withdrawn now; then new ones are issued, proven and delivered.\n"
            f"No old key can sign in any more. {_VALID}"
            f"These pods cannot sign in until the new credential is delivered and they load it, {_LATE} after this "
            f"command to speed that up:\n",
        ),
    ],
    ids=["force", "now"],
)
def test_who_is_at_risk_is_named_before_it_goes_on(
    stack: FakeEngine, idstack: Idstack, options: tuple[str, ...], requests: dict[str, str], warning: str
) -> None:
    until = _renewed_two_hours_ago(stack)

    printed, as_json = (idstack("rotate", "--stack", "dev", *options, *more) for more in ((), ("--json",)))

    assert (printed.code, stack.renewals) == (0, [requests] * 2)
    assert printed.output.startswith(warning.format(until=until))
    goes_on = ["--continue-on-error" in call for call in stack.calls if call.startswith("up ")]
    assert goes_on == ["--now" not in options] * 2
    assert f"  hc1/kms: {_KMS_PODS}" in as_json.error
    assert [row["identity"] for row in json.loads(as_json.output)["rows"]] == ["disk", "kms"]


def test_a_revocation_replaces_the_spare_then_the_leaked_one_however_soon(stack: FakeEngine, idstack: Idstack) -> None:
    _renewed_two_hours_ago(stack)

    printed = idstack("rotate", "--stack", "dev", "--identity", "kms", "--revoke")

    assert (printed.code, _targets(stack)) == (0, ["hc1-kms"] * 2)
    assert "\nwithdrawn now: hc1/kms\n" in printed.output
    assert stack.renewals == [{"hc1-kms-entra-schedule": "force"}, {"hc1-kms-entra-schedule": "withdraw"}]
    assert printed.output.partition("renewed now: ")[0] == (
        "A new certificate is delivered first; then the leaked one is withdrawn.\n"
        f"From then on the old key cannot sign in. {_VALID}"
        f"These pods cannot sign in until they load the new credential, {_LATE} to speed that up:\n"
        f"  hc1/kms: {_KMS_PODS}\n"
    )


def test_a_revocation_ends_where_it_fails_and_says_what_to_do(stack: FakeEngine, idstack: Idstack) -> None:
    """The leaked certificate is the current one still, and to replace it would leave the pods with none."""
    stack.ends_with(1)
    rotate = ("rotate", "--stack", "dev", "--identity", "disk", "--revoke")

    assert idstack(*rotate).code == 1
    assert stack.renewals == [{"hc1-disk-entra-schedule": "force"}]
    printed = idstack(*rotate, "--now")
    assert printed.code == 1
    again = "The state has nothing new of hc1/disk, whose certificates may be withdrawn: run the command again"
    assert printed.error.endswith(f"\n{again}\n")


def test_revoking_now_needs_the_schedule_alone(stack: FakeEngine, idstack: Idstack) -> None:
    stack.has_resources(*(known for known in _DISK.resources() if known["urn"] != _DISK.secret))
    printed = idstack("rotate", "--stack", "dev", "--identity", "disk", "--revoke", "--now")
    assert (printed.code, stack.renewals) == (1, [{"hc1-disk-entra-schedule": "replace"}])
    assert "the state has no secret of hc1/disk: run `.venv/bin/idstack recover --stack dev`" in printed.error


def test_what_was_taken_out_is_registered_again_for_the_named_identity_alone(
    stack: FakeEngine, idstack: Idstack
) -> None:
    assert idstack("rotate", "--stack", "dev", "--register").code == 2
    now = idstack("rotate", "--stack", "dev", "--now")
    assert (now.code, "--now requires --revoke" in now.error, stack.calls) == (2, True, [])
    assert idstack("rotate", "--stack", "dev", "--identity", "disk", "--register").code == 0
    assert stack.renewals == [{"hc1-disk-entra-schedule": "register"}]
    stack.plans()
    again = idstack("rotate", "--stack", "dev", "--identity", "disk", "--register")
    assert again.output == "nothing is registered\n"
    assert again.error == "idstack: unchanged: hc1/disk; the delivered certificate is at Entra ID\n"
