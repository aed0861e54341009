"""The resources of the project's own plugin as a program sees them."""

from __future__ import annotations

import pulumi

from components.azure.plugin_resources import Certificate, RenewalSchedule
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.simulation import issued


def built() -> RecordingMonitor:
    def build() -> None:
        schedule = RenewalSchedule("schedule", lifetime_days=90, renew_before_days=45, mode="auto")
        certificate = Certificate(
            "certificate-a",
            common_name="x",
            key_size=2048,
            lifetime_days=90,
            generation=schedule.a.apply(lambda slot: slot["generation"]),
            not_before=schedule.a.apply(lambda slot: slot["notBefore"]),
        )
        pulumi.export("slot", schedule.a)
        pulumi.export("current", schedule.current)
        pulumi.export("not_after", certificate.not_after)
        pulumi.export("private_key", certificate.private_key_pem)

    return run(build)


def test_inputs_are_camel_case_on_the_wire() -> None:
    assert built().one("idstack:index:RenewalSchedule").inputs == {
        "lifetimeDays": 90,
        "renewBeforeDays": 45,
        "mode": "auto",
    }


def test_outputs_are_snake_case_and_keys_inside_stay_as_they_are() -> None:
    outputs = built().stack_outputs.values

    assert outputs["slot"] == {"generation": 1, "notBefore": "2026-11-21T08:55:00Z", "validDays": 90}
    assert (outputs["current"], outputs["not_after"]) == ("a", "2027-02-19T08:55:00Z")


def test_a_private_key_arrives_as_a_secret() -> None:
    outputs = built().stack_outputs

    assert outputs.values["private_key"] == issued("a").private_key_pem
    assert outputs.secrets == {"private_key"}
