"""`idstack renew`: whom it renews, whom it leaves out, and what the engine is asked to do."""

from __future__ import annotations

import pytest

from tests.unit.ops.conftest import FakeEngine, Idstack
from tests.unit.ops.renewal_world import LATER, Identity, outputs_of, step

_DISK, _KMS = Identity("hc1-disk"), Identity("hc1-kms")
_PAST = "2020-01-01T00:00:00Z"


def _has(engine: FakeEngine, *, renew_after: str = LATER) -> None:
    engine.has(outputs_of(_DISK, _KMS, renewAfter=renew_after))
    engine.has_resources(*_DISK.resources(), *_KMS.resources())


@pytest.fixture
def stack(engine: FakeEngine) -> FakeEngine:
    """A stack with two identities that it issues certificates for; no renewal is due."""
    _has(engine)
    return engine


def _asked(engine: FakeEngine, command: str) -> list[list[str]]:
    """The schedules that are targets of each call of `command`."""
    return [
        [word.rpartition("::")[2] for word in call.split() if word.endswith("-schedule")]
        for call in engine.calls
        if call.startswith(command)
    ]


def test_what_the_plan_renews_goes_up_in_one_run_and_a_failure_stops_nobody(
    stack: FakeEngine, idstack: Idstack
) -> None:
    stack.plans(*_DISK.renewal(), *_KMS.renewal())

    printed = idstack("renew", "--stack", "dev", "--yes")

    assert printed.code == 0
    assert "renewed now: hc1/disk, hc1/kms\n" in printed.output
    assert _asked(stack, "up") == [["hc1-disk-entra-schedule", "hc1-kms-entra-schedule"]]
    [up] = [call for call in stack.calls if call.startswith("up ")]
    assert up.startswith("up --continue-on-error --target ")
    assert up.endswith("--yes --stack dev"), "the engine asks, unless its own option turns that off"
    assert stack.renewals == [{}], "the program is told, by a request for nobody"
    asked = [" ".join(call.split()[:2]) for call in stack.calls]
    assert asked == ["stack export", "preview --json", "up --continue-on-error", "stack export"]
    as_json = idstack("renew", "--stack", "dev", "--yes", "--json")
    assert "renewed now: hc1/disk, hc1/kms\n" in as_json.error
    assert as_json.output.startswith("{")
    stack.plans()
    assert "nothing is renewed\n" in idstack("renew", "--stack", "dev").output
    assert len(_asked(stack, "up")) == 2


@pytest.mark.parametrize(("renew_after", "code"), [(LATER, 0), (_PAST, 1)])
def test_who_would_bring_up_something_else_is_left_out_and_fails_if_due(
    engine: FakeEngine, idstack: Idstack, renew_after: str, code: int
) -> None:
    _has(engine, renew_after=renew_after)
    engine.plans(*_DISK.renewal(), *_KMS.renewal(), step("replace", _KMS.secret))

    printed = idstack("renew", "--stack", "dev")

    assert printed.code == code
    assert (
        "hc1/kms: left out, because a renewal would bring up other changes: replace hc1-kms-credential-secret. "
        "`.venv/bin/idstack up --stack dev` does so, and renews what is due\n"
    ) in printed.output
    assert _asked(engine, "up") == [["hc1-disk-entra-schedule"]]
    assert _asked(engine, "preview") == [
        ["hc1-disk-entra-schedule", "hc1-kms-entra-schedule"],
        ["hc1-disk-entra-schedule"],
    ], "what goes up was planned as it is"
    if code:
        assert printed.error == ("idstack: a renewal is due and was left out: hc1/kms; the reasons are printed above\n")


def test_a_renewal_that_cannot_be_planned_is_no_waiting_change(stack: FakeEngine, idstack: Idstack) -> None:
    clock = "no certificate was issued, as this machine's clock is wrong: it shows 08:00, Azure 13:00"
    stack.plans(
        *_DISK.renewal(),
        step("replace", _KMS.secret),
        errors=[{"severity": "error", "urn": _KMS.schedule, "message": f"error: {clock}"}],
    )

    printed = idstack("renew", "--stack", "dev")

    told = "idstack: a renewal of hc1/kms would fail, due or not; the reasons are printed above\n"
    assert (printed.code, printed.error) == (1, told)
    assert f"hc1/kms: left out, because its renewal fails: {clock}\n" in printed.output
    assert "would bring up other changes" not in printed.output
    assert _asked(stack, "preview")[1:] == [["hc1-disk-entra-schedule"]]


def test_what_belongs_to_no_identity_stops_the_run(stack: FakeEngine, idstack: Idstack) -> None:
    no_reason = "an unhandled error occurred: Program exited with non-zero exit code: 1"
    messages = ("error: the deployer cannot sign in", f"error: {no_reason}")
    stack.plans(*_DISK.renewal(), errors=[{"severity": "error", "message": message} for message in messages])

    printed = idstack("renew", "--stack", "dev")

    assert (printed.code, _asked(stack, "up")) == (1, [])
    assert printed.error == (
        "idstack: no certificate was renewed, because the plan has errors, or other changes than renewals:\n"
        "  error: the deployer cannot sign in\n"
    )


def test_a_stack_without_certificates_has_nothing_to_renew(engine: FakeEngine, idstack: Idstack) -> None:
    engine.has_resources()

    printed = idstack("renew", "--stack", "dev")

    assert (printed.code, engine.calls[-1]) == (1, "stack export --stack dev --non-interactive")
    assert printed.error == (
        "idstack: the stack dev has no certificate to renew: `.venv/bin/idstack up --stack dev` issues the first\n"
    )
    _has(engine)
    engine.has_resources(
        *_DISK.resources(), *(resource for resource in _KMS.resources() if resource["urn"] != _KMS.secret)
    )
    engine.plans(*_DISK.renewal(), *_KMS.renewal())
    assert "hc1/kms: left out" in idstack("renew", "--stack", "dev").output, "its first `up` did not end"
    assert _asked(engine, "preview") == [["hc1-disk-entra-schedule"]]
    engine.has({"hostedClusters": {"hc2": {"controlPlane": {}}}})
    engine.has_resources()
    of_workload_identities = idstack("renew", "--stack", "dev")
    assert of_workload_identities.code == 0
    assert "no identity of the stack dev has a certificate: nothing expires" in of_workload_identities.output
