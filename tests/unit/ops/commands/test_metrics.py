"""The file for node_exporter: valid, whole whenever it is read, and only where it is read at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ops.commands import status
from ops.doctor.checks.check import CheckResult, CheckStatus, Stage
from ops.doctor.examination import Status
from ops.outputs.rows import Row
from ops.stack.errors import CommandError
from ops.world.azure import ManagedIdentities, ManagedIdentityRow
from ops.world.cluster_state import ClusterState, MountedVersion, ProbeResult

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
ROW = Row("hc1", "ingress", "c", "s", "p", NOW + timedelta(days=30), NOW - timedelta(days=15), None, ())
LABELS = {"stack": "dev", "cluster": "hc1", "identity": "ingress"}


def shown(
    *rows: Row,
    managed: tuple[ManagedIdentityRow, ...] = (),
    mounts: tuple[MountedVersion, ...] = (),
    results: tuple[CheckResult, ...] = (),
) -> Status:
    """What `status` shows of a stack with these rows."""
    read = (results, ClusterState(mounts=mounts), ManagedIdentities(managed))
    return Status(*read, stack="dev", at=NOW, outputs={}, rows=rows, accounts=(), resources=())


def samples(*rows: Row, **more: Any) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(status.render_metrics(shown(*rows, **more)).decode()):
        for sample in family.samples:
            found.setdefault(sample.name.removeprefix("idstack_status_"), []).append((sample.labels, sample.value))
    return found


def result(cluster: str | None, identity: str | None, status: CheckStatus = CheckStatus.BROKEN) -> CheckResult:
    return CheckResult(cluster=cluster, identity=identity, stage=Stage.VAULT, check="secret", status=status)


def test_dates_and_states_are_series_of_their_identity() -> None:
    assert samples(ROW) == {
        "run_seconds": [({"stack": "dev"}, NOW.timestamp())],
        "not_after_seconds": [(LABELS, (NOW + timedelta(days=30)).timestamp())],
        "renew_after_seconds": [(LABELS, (NOW - timedelta(days=15)).timestamp())],
        "renewal_overdue": [(LABELS, 1.0)],
        "broken": [(LABELS, 0.0)],
        "stack_broken": [({"stack": "dev"}, 0.0)],
    }


def test_what_is_not_known_is_left_out() -> None:
    unknown = replace(ROW, not_after=None, renew_after=None)
    assert samples(unknown).keys() == {"run_seconds", "renewal_overdue", "broken", "stack_broken"}
    unmade = (result("hc1", "ingress", CheckStatus.NOT_CHECKED), result(None, None, CheckStatus.NOT_CHECKED))
    assert samples(ROW, results=unmade).keys().isdisjoint({"broken", "stack_broken"})


def test_what_is_broken_is_a_series_where_it_is_found() -> None:
    silent = samples(replace(ROW, probes=(ProbeResult("pod", None, "no answer"),)))
    assert silent["signs_in"] == [(LABELS, 0.0)], "a mount does not answer"
    assert samples(ROW, results=(result("hc1", "ingress"),))["broken"] == [(LABELS, 1.0)]
    assert samples(ROW, results=(result("hc1", "disk"),))["broken"] == [(LABELS, 0.0)]
    assert samples(ROW, results=(result(None, None),))["stack_broken"] == [({"stack": "dev"}, 1.0)]
    there = ManagedIdentityRow("hc1", "a", "c", "id", "AcrPull", "exists", ())
    found = samples(managed=(there, replace(there, identity="b", state="missing")))
    values = [(labels["identity"], value) for labels, value in found["managed_identity_wrong"]]
    assert values == [("a", 0.0), ("b", 1.0)]


@pytest.mark.parametrize(("days", "overdue"), [(-1, 0.0), (2, 0.0), (2.01, 1.0)])
def test_a_renewal_is_overdue_after_two_daily_runs(days: float, overdue: float) -> None:
    found = samples(replace(ROW, renew_after=NOW - timedelta(days=days)))
    assert found["renewal_overdue"] == [(LABELS, overdue)]


def test_an_identity_is_old_if_one_of_its_pods_is() -> None:
    current = MountedVersion("hc1", "disk", "disk-a", "v2", True, "v2")
    old = replace(current, pod="disk-b", version="v1")
    unknown = replace(current, identity="file", current=None)
    absent = replace(old, identity="ingress", is_mounted=False)

    found = samples(mounts=(current, old, replace(current, identity="kms"), unknown, absent))

    values = [(labels["identity"], value) for labels, value in found["mount_is_old"]]
    assert values == [("disk", 1.0), ("kms", 0.0)], "of what is not known there is nothing"


def test_the_file_appears_whole_and_for_everybody(tmp_path: Path) -> None:
    file = tmp_path / "idstack.prom"
    file.write_text("before")
    read = file.open()

    status.write_metrics(file, b"after")

    assert (read.read(), file.read_text()) == ("before", "after"), "who had opened it reads what it was"
    assert file.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("idstack.txt", "only files with the suffix .prom"), ("no/idstack.prom", "No such file or directory")],
)
def test_a_file_that_nobody_would_read_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        status.write_metrics(tmp_path / name, b"")
