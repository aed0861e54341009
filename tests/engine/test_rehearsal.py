"""A change of a stack's configuration, rehearsed by the real command on the real engine."""

from __future__ import annotations

import signal

import pytest

from identity.catalogue import CONTROL_PLANE
from tests.engine.rehearsals import Rehearsals, processes_in

_CLIENTS = sum(row.enabled_by_default for row in CONTROL_PLANE)


@pytest.mark.slow
def test_a_key_that_moves_to_another_vault_costs_no_sign_in(project: Rehearsals) -> None:
    before = project.start("prod")
    kms = project.cluster("prod")["kms"]
    moved = f"https://kv-etcd-next.vault.azure.net/keys/hc1-etcd/{'0' * 32}"
    cluster = project.cluster("prod", kms={**kms, "activeKey": moved, "backupKey": kms["activeKey"]})
    project.write("prod", {**before, "hostedClusters": [cluster]})

    found = project.rehearse("prod", "--forbid", "replace,delete,update")

    assert (found.code, found.findings, found.failed()) == (0, [], {})
    assert len(found.document["signIns"]) == _CLIENTS
    assert all(sign_in["succeeded"] > 1 for sign_in in found.document["signIns"])
    assert found.operations("role") == {"create": 1}
    assert [row["identity"] for row in found.document["plan"]] == ["kms"]
    assert (found.document["secondUp"], found.document["remainingAfterDown"]) == ([], [])
    assert "local-prod" not in str(found.document)
    assert list(project.temporary.iterdir()) == []


@pytest.mark.nightly
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_rehearsal_leaves_nothing_behind(project: Rehearsals, by: signal.Signals) -> None:
    project.start("prod")

    printed = project.interrupted("prod", at="base:", by=by)

    assert "Traceback" not in printed
    assert list(project.temporary.iterdir()) == []
    assert processes_in(project.temporary) == []
