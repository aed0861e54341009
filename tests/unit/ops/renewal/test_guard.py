"""The guard of renewals: which steps of a plan are a renewal's, and whom every other one keeps from being renewed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.renewal.guard import Renewable, RenewedType, Verdict, changed_inputs, judge, other_slot, renewable
from tests.unit.ops.renewal_world import CLASS, SETTINGS, Identity, resource, step

_DISK, _KMS = Identity("hc1-disk"), Identity("hc1-kms")
_STATE = [*_DISK.resources(), *_KMS.resources()]


def _identities() -> list[Renewable]:
    return renewable(_STATE)


def _judged(*steps: Any, is_settled: bool = False, errors: Any = ()) -> Verdict:
    diagnostics = [{"severity": "error", **error} for error in errors]
    plan: Any = {"config": {}, "steps": steps, "diagnostics": diagnostics}
    return judge(_identities(), plan, _STATE, is_settled=is_settled)


def _names(verdict: Verdict) -> list[str]:
    return [identity.name for identity in verdict.renewed]


def test_an_identity_is_its_schedule_both_slots_and_the_secret_there_yet_or_not() -> None:
    [disk, kms] = _identities()

    assert (disk.name, kms.name) == ("hc1/disk", "hc1/kms")
    assert set(disk.targets) == {
        _DISK.schedule,
        *(_DISK.of_slot(kind, slot) for slot in "ab" for kind in ("certificate", "registration", "gate")),
        _DISK.secret,
    }
    assert disk.dependents == {_DISK.secret_provider_class}
    assert set(disk.targets.values()) == set(kms.targets.values()) == set(RenewedType)
    [bare] = renewable([recorded for recorded in _DISK.resources() if recorded["urn"] != _DISK.secret])
    assert bare.secret is None
    assert _judged(*_DISK.renewal()) == Verdict(renewed=(disk,), refused={}, blocked=())
    assert _judged(*(step("same", recorded["urn"]) for recorded in _STATE)) == Verdict((), {}, ())


def test_the_first_renewal_creates_the_other_slot() -> None:
    state = [recorded for recorded in _STATE if recorded["urn"] not in _DISK.slot("b")]
    steps = [step("create", urn, inputs=_new(urn)) for urn in _DISK.slot("b")]
    plan: Any = {"config": {}, "steps": steps}

    verdict = judge(renewable(state), plan, state, is_settled=False)

    assert (_names(verdict), verdict.refused) == (["hc1/disk"], {})


def _new(urn: str) -> dict[str, Any]:
    """What a renewal gives the other slot."""
    [sibling] = [recorded for recorded in _STATE if recorded["urn"] == other_slot(urn)]
    return {**sibling["inputs"], **{key: "renewed" for key in sibling["inputs"] if key not in SETTINGS}}


@pytest.mark.parametrize(
    ("part", "operation"),
    [
        *(("secret", operation) for operation in ("delete", "replace", "create", "import", "delete-replaced")),
        *(("schedule", operation) for operation in ("delete", "create", "replace")),
        *((part, operation) for part in ("certificate", "registration") for operation in ("delete", "update")),
        *(("gate", operation) for operation in ("delete", "replace")),
    ],
)
def test_other_operations_are_refused(part: str, operation: str) -> None:
    urn = _urn(part)
    own = [] if part == "secret" else _DISK.renewal()

    verdict = _judged(*own, *_KMS.renewal(), step(operation, urn))

    assert _names(verdict) == ["hc1/kms"]
    assert verdict.refused == {"hc1/disk": (f"{operation} {urn.rpartition('::')[2]}",)}


def _urn(part: str) -> str:
    return {"schedule": _DISK.schedule, "secret": _DISK.secret}.get(part) or _DISK.of_slot(part, "a")


@pytest.mark.parametrize(
    ("part", "setting"),
    [
        *(("schedule", setting) for setting in ("lifetimeDays", "renewBeforeDays")),
        *(
            (part, setting)
            for part in ("schedule", "secret")
            for setting in ("objectEncoding", "secretName", "vaultId")
        ),
        *(("certificate", setting) for setting in ("keySize", "lifetimeDays", "commonName")),
        *(("gate", setting) for setting in ("tenantId", "successes")),
        *(("registration", "applicationId"), ("secret", "tags")),
    ],
)
def test_a_changed_setting_is_refused(part: str, setting: str) -> None:
    urn = _urn(part)
    operation = "replace" if part in ("certificate", "registration") else "update"

    verdict = _judged(step(operation, urn, inputs={**_of(urn)["inputs"], setting: "other"}))

    assert verdict.refused == {"hc1/disk": (f"{setting} of {urn.rpartition('::')[2]}",)}


def test_a_first_certificate_with_other_settings_than_its_sibling_is_refused() -> None:
    urn = _DISK.of_slot("certificate", "b")
    state = [recorded for recorded in _STATE if recorded["urn"] != urn]
    plan: Any = {"config": {}, "steps": [step("create", urn, inputs={**_new(urn), "keySize": 4096})]}

    refused = judge(renewable(state), plan, state, is_settled=False).refused
    settled = judge(renewable(state), plan, state, is_settled=True).refused

    assert (refused, settled) == ({"hc1/disk": ("keySize of hc1-disk-entra-certificate-b",)}, {})


@pytest.mark.parametrize(
    ("part", "refused"),
    [("certificate", {"hc1/disk": ("create {}, the first of its kind",)}), ("registration", {}), ("gate", {})],
)
def test_what_a_certificate_has_at_entra_is_made_again_after_a_loss(part: str, refused: dict[str, Any]) -> None:
    lost = [_DISK.of_slot(part, slot) for slot in "ab"]
    state = [recorded for recorded in _STATE if recorded["urn"] not in lost]
    plan: Any = {"config": {}, "steps": [step("create", lost[0], inputs=_of(lost[0])["inputs"])]}

    verdict = judge(renewable(state), plan, state, is_settled=False)

    name = lost[0].rpartition("::")[2]
    assert verdict.refused == {key: tuple(text.format(name) for text in texts) for key, texts in refused.items()}


@pytest.mark.parametrize("setting", ["keySize", "lifetimeDays", "commonName"])
def test_what_was_brought_up_since_the_issue_comes_with_the_renewal(setting: str) -> None:
    urn = _DISK.of_slot("certificate", "a")

    verdict = _judged(step("replace", urn, inputs={**_of(urn)["inputs"], setting: "other"}), is_settled=True)

    assert (_names(verdict), verdict.refused) == (["hc1/disk"], {})


def test_a_slot_that_the_schedule_withdraws_is_deleted() -> None:
    [schedule] = [recorded for recorded in _DISK.resources() if recorded["urn"] == _DISK.schedule]
    withdrawn = {key: value for key, value in schedule["inputs"].items() if key != "b"}
    deleted = [step("delete", urn) for urn in _DISK.slot("b")]

    verdict = _judged(step("update", _DISK.schedule, inputs=withdrawn), *deleted)

    assert (_names(verdict), verdict.refused) == (["hc1/disk"], {})
    assert len(_judged(*deleted).refused["hc1/disk"]) == 3, "no schedule withdraws it"
    assert _judged(step("delete", _DISK.schedule), *deleted).renewed == ()
    other = [step("delete", urn) for urn in _DISK.slot("a")]
    assert len(_judged(step("update", _DISK.schedule, inputs=withdrawn), *other).refused["hc1/disk"]) == 3
    without_current = {**withdrawn, "current": "b"}
    assert len(_judged(step("update", _DISK.schedule, inputs=without_current), *deleted).refused["hc1/disk"]) == 3


def test_what_a_killed_run_left_of_a_slot_is_finished_by_the_next() -> None:
    state = [dict(recorded) for recorded in _STATE]
    for recorded in state:
        if recorded["urn"] == _DISK.schedule:
            recorded["inputs"] = {key: value for key, value in recorded["inputs"].items() if key != "b"}
    steps: Any = {"config": {}, "steps": [step("delete", urn) for urn in _DISK.slot("b")]}

    assert _names(judge(renewable(state), steps, state, is_settled=False)) == ["hc1/disk"]  # type: ignore[arg-type]
    for operation in ("delete-replaced", "remove-pending-replace"):
        assert _names(_judged(step(operation, _DISK.of_slot("registration", "a")))) == ["hc1/disk"]


def test_an_object_that_would_go_keeps_its_identity_from_being_renewed() -> None:
    verdict = _judged(*_DISK.renewal(), *_KMS.renewal(), step("delete", _DISK.secret_provider_class))

    assert _names(verdict) == ["hc1/kms"]
    assert verdict.refused == {"hc1/disk": ("delete hc1-disk-class",)}


@pytest.mark.parametrize(("operation", "blocked"), [("update", ()), ("create", ()), ("replace", ("replace azure",))])
def test_a_provider_is_brought_up_in_every_run_but_not_replaced(operation: str, blocked: tuple[str, ...]) -> None:
    provider = "urn:pulumi:dev::idstack::pulumi:providers:azure-native::azure"

    assert _judged(step(operation, provider)).blocked == blocked


def test_the_error_of_an_identity_leaves_it_out_and_another_one_blocks() -> None:
    verdict = _judged(*_KMS.renewal(), errors=[{"urn": _DISK.schedule, "message": "not\n  now"}])
    foreign = resource("urn:pulumi:dev::idstack::azure-native:keyvault:Vault::vault-vault")["urn"]

    assert (_names(verdict), verdict.refused, verdict.blocked) == (["hc1/kms"], {"hc1/disk": ("not now",)}, ())
    assert _judged(errors=[{"message": "no such vault"}]).blocked == ("no such vault",)
    assert _judged(step("update", foreign)).blocked == ("update vault-vault",)


def _of(urn: str) -> Any:
    [found] = [recorded for recorded in _STATE if recorded["urn"] == urn]
    return found


_OPERATIONS = ["same", "create", "update", "delete", "replace", "create-replacement", "delete-replaced", "import"]
_VALUES = st.dictionaries(st.sampled_from([*SETTINGS, "generation", "tags", "current"]), st.integers(), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(_OPERATIONS), st.sampled_from(_STATE), _VALUES)))
def test_whatever_is_planned_no_identity_is_renewed_with_a_delete_or_a_setting(steps: list[Any]) -> None:
    planned = [
        step(operation, recorded["urn"], inputs={**recorded["inputs"], **new}) for operation, recorded, new in steps
    ]
    verdict = _judged(*planned)

    for identity in verdict.renewed:
        assert identity.name not in verdict.refused
        for operation, recorded, new in steps:
            if recorded["urn"] in identity.targets and operation != "same":
                assert operation in ("create", "update", "replace", "create-replacement", "delete-replaced")
                if operation != "delete-replaced":
                    assert not {key for key in new if key in SETTINGS and recorded["inputs"].get(key) != new[key]}
            assert operation == "same" or recorded["urn"] not in identity.dependents
    assert not {CLASS} & {kind for renewed in verdict.renewed for kind in renewed.targets.values()}


@given(st.dictionaries(st.text(), st.integers() | st.dictionaries(st.text(), st.integers())))
def test_equal_inputs_have_no_changed_path(inputs: dict[str, Any]) -> None:
    assert changed_inputs(inputs, {**inputs, "__defaults": ["tags"]}) == set()


def test_the_paths_of_changed_inputs_are_those_of_the_leaves() -> None:
    before = {"tags": {"team": "a", "kept": 1}, "gone": 1, "kind": {"a": 1}, "same": [1]}
    now = {"tags": {"team": "b", "kept": 1, "cost.center": 1}, "kind": 2, "same": [1]}

    assert changed_inputs(before, now) == {"tags.team", 'tags["cost.center"]', "gone", "kind"}
