"""The outputs of a run that only renews: those before it, with the dates of what was renewed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.stack import renewed_outputs
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor, run
from tests.unit.components.world import SECOND_CLUSTER, hosted_cluster, lookups

_BEFORE = {"notAfter": "2026-05-01T00:00:00Z", "renewAfter": "2026-03-15T00:00:00Z", "thumbprint": "AA"}
_BEFORE["generation"] = "a1"
_NOW = {"notAfter": "2026-08-01T00:00:00Z", "renewAfter": "2026-06-15T00:00:00Z", "thumbprint": "BB"}
_NOW["generation"] = "b2"
_ADDRESS = {"secret": "/a/vault/secrets/disk", "principal": "entra-application"}
_ELSEWHERE = {**_ADDRESS, "principal": "/an/identity"}


def _outputs(row: Mapping[str, Any], address: Mapping[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    disk = {"clientID": "an-id", "objectEncoding": "utf-8", **row}
    cluster = {"controlPlane": {"disk": disk}, "credentialsInUse": {"disk": address or _ADDRESS}}
    return {"clusterSide": "stack", "commit": "before", "hostedClusters": {"hc1": cluster}, **others}


def _merged(now: Mapping[str, Any], before: Mapping[str, Any] | None = None, *, preview: bool = False) -> Any:
    """What a program exports that makes `now` after `before`."""
    recorder = run(lambda: _exports(before or _outputs(_BEFORE), now), preview=preview)
    return recorder.stack_outputs.values


async def _exports(before: Any, now: Any) -> None:
    for name, renewed_output in renewed_outputs(before, now).items():
        pulumi.export(name, renewed_output)


def test_a_renewed_credential_has_its_new_dates_and_all_else_is_as_before() -> None:
    changed = {**_NOW, "clientID": "another", "objectEncoding": "base64"}

    merged = _merged(_outputs(changed, clusterSide="hypershift", commit="now", tenantId="a-tenant"))

    assert merged == _outputs(_NOW)


@pytest.mark.parametrize("preview", [False, True])
def test_a_credential_of_which_nothing_is_known_is_as_before(preview: bool) -> None:
    async def program() -> None:
        failed: pulumi.Output[Any] = pulumi.Output(set(), _future(None), _future(False))
        await _exports(_outputs(_BEFORE), _outputs(dict.fromkeys(_NOW, failed)))

    assert run(program, preview=preview).stack_outputs.values == _outputs(_BEFORE)


async def _future(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def _of_another_cluster() -> dict[str, Any]:
    outputs = _outputs(_NOW)
    return {**outputs, "hostedClusters": {"hc2": outputs["hostedClusters"]["hc1"]}}


def _of_another_identity() -> dict[str, Any]:
    cluster = {"controlPlane": {"kms": _NOW}, "credentialsInUse": {"kms": _ADDRESS}}
    return {**_outputs(_NOW), "hostedClusters": {"hc1": cluster}}


@pytest.mark.parametrize(
    "now",
    [
        _outputs({**_NOW, "thumbprint": "AA"}),
        _outputs(_NOW, {**_ADDRESS, "secret": "/a/vault/secrets/mine"}),
        _outputs(_NOW, _ELSEWHERE),
        _of_another_cluster(),
        _of_another_identity(),
    ],
    ids=["same certificate", "secret name", "source", "cluster", "identity"],
)
def test_what_is_no_renewal_of_the_credential_comes_with_up_alone(now: dict[str, Any]) -> None:
    assert _merged(now) == _outputs(_BEFORE)


def test_a_credential_that_is_issued_elsewhere_is_as_before() -> None:
    assert _merged(_outputs(_NOW, _ELSEWHERE), _outputs(_BEFORE, _ELSEWHERE)) == _outputs(_BEFORE, _ELSEWHERE)


def test_a_stack_that_was_never_brought_up_whole_has_no_outputs_afterwards() -> None:
    recorder = run(lambda: _exports({}, _outputs(_NOW)))

    assert recorder.stack_outputs.values == {}


def test_the_program_keeps_its_outputs_in_a_run_that_only_renews(
    program: Program, two_clusters: RecordingMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the configuration would lose credentials, which nobody brings up with a renewal."""
    last = dict(two_clusters.stack_outputs.values)
    answers = {**lookups(), "pulumi:pulumi:readStackOutputs": {"name": "", "outputs": last, "secretOutputNames": []}}
    monkeypatch.setenv("IDSTACK_RENEWALS", "{}")

    recorder = program(
        invokes=answers,
        hostedClusters=[
            hosted_cluster(identities={"ingress": {"secretName": "mine"}}),
            {**SECOND_CLUSTER, "name": "new"},
        ],
        clusterSide="hypershift",
    )

    assert recorder.stack_outputs.values == last
