"""`idstack status`: the optional managed identities, compared with Azure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from identity.access.errors import AzureRefused
from ops.stack.errors import CommandError
from tests.unit.ops.conftest import FakeEngine, Idstack

GROUP = "/subscriptions/s/resourceGroups/identity-dev/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
PULL, VELERO = f"{GROUP}/hc1-acr-pull-hc1-infra", f"{GROUP}/hc1-velero-hc1-infra"
CREDENTIALS = f"{VELERO}/federatedIdentityCredentials/hc1-velero-hc1-infra"
CLIENT = "6f2c1e7a-0000-4000-8000-00000000aaaa"
JOB = "system:serviceaccount:hypershift:etcd-backup-job"
POD = "system:serviceaccount:openshift-adp:velero"


class FakeArm:
    """ARM as far as managed identities go; `refuses` is the answer to a request for this id."""

    def __init__(self) -> None:
        self.refuses: str | None = None
        self.resources: dict[str, Any] = {
            PULL: {"clientId": CLIENT},
            VELERO: {"clientId": CLIENT},
            f"{CREDENTIALS}-velero": {"subject": POD},
            f"{CREDENTIALS}-etcd-backup-job": {"subject": JOB},
        }

    def resource(self, resource_id: str, api_version: str) -> dict[str, Any] | None:
        if resource_id == self.refuses:
            raise AzureRefused("reading it: 403", 403)
        found = self.resources.get(resource_id)
        return None if found is None else {"properties": found}


@pytest.fixture
def arm(monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> FakeArm:
    """The cloud of a stack with two managed identities, one of them for service accounts."""
    arm = FakeArm()

    @contextmanager
    def deployer(*_: object) -> Iterator[FakeArm]:
        yield arm

    monkeypatch.setattr("ops.access.managed_identities.deployer", deployer)
    identities = {
        "velero": {"clientID": CLIENT, "resourceID": VELERO},
        "acrPull": {"clientID": CLIENT, "resourceID": PULL},
    }
    cluster = {"namespace": "clusters", "controlPlane": {}, "managedIdentities": identities}
    engine.has({"clusterSide": "stack", "hostedClusters": {"hc1": cluster}})
    return arm


def lines(printed: str) -> list[str]:
    """Without the blanks between columns."""
    return [" ".join(line.split()) for line in printed.splitlines()]


def test_each_has_a_line_with_its_role_and_its_state_in_azure(arm: FakeArm, idstack: Idstack) -> None:
    printed = idstack("status", "--stack", "dev")

    assert printed.code == 0
    assert lines(printed.output)[-4:] == [
        "cluster managed identity client id role in Azure federated credentials",
        lines(printed.output)[-3],
        f"hc1 acrPull {CLIENT} AcrPull exists",
        f"hc1 velero {CLIENT} Storage Blob Data Contributor exists velero exists, etcd-backup-job exists",
    ]


def test_scripts_get_a_row_for_each(arm: FakeArm, idstack: Idstack) -> None:
    document = json.loads(idstack("status", "--stack", "dev", "--json").output)

    assert document["managedIdentities"]["unread"] == []
    assert document["managedIdentities"]["rows"][1] == {
        "cluster": "hc1",
        "identity": "velero",
        "kind": "managed-identity",
        "clientID": CLIENT,
        "resourceID": VELERO,
        "role": "Storage Blob Data Contributor",
        "state": "exists",
        "federatedCredentials": [{"subject": POD, "state": "exists"}, {"subject": JOB, "state": "exists"}],
    }


@pytest.mark.parametrize(
    ("resource", "becomes", "line"),
    [
        (PULL, None, f"hc1 acrPull {CLIENT} AcrPull missing"),
        (PULL, {"clientId": "another"}, f"hc1 acrPull {CLIENT} AcrPull replaced"),
        (f"{CREDENTIALS}-velero", None, "velero missing, etcd-backup-job exists"),
        (f"{CREDENTIALS}-velero", {"subject": JOB}, "velero replaced, etcd-backup-job exists"),
    ],
)
def test_what_azure_does_not_have_is_shown_and_is_an_error(
    arm: FakeArm, idstack: Idstack, resource: str, becomes: dict[str, str] | None, line: str
) -> None:
    arm.resources[resource] = becomes
    identity = "acrPull" if resource == PULL else "velero"

    printed = idstack("status", "--stack", "dev")

    assert any(line in each for each in lines(printed.output))
    assert (printed.code, printed.error) == (
        1,
        f"idstack: Azure does not have these managed identities as the stack made them: {identity} of hc1; "
        "`make up STACK=dev ARGS=--refresh` makes them anew\n",
    )


def test_a_right_that_is_missing_is_a_line_and_no_error(arm: FakeArm, idstack: Idstack) -> None:
    arm.refuses = VELERO

    printed = idstack("status", "--stack", "dev")

    assert printed.code == 0
    assert "not read: velero of hc1: reading it: 403" in printed.output
    assert f"hc1 acrPull {CLIENT} AcrPull exists" in lines(printed.output)
    assert any("not known velero not known, etcd-backup-job not known" in each for each in lines(printed.output))


def test_azure_out_of_reach_is_a_line_and_no_error(
    arm: FakeArm, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise CommandError("signing in: AADSTS700016")

    monkeypatch.setattr("ops.access.managed_identities.deployer", refuse)

    printed = idstack("status", "--stack", "dev")

    assert printed.code == 0
    assert "not read: the managed identities: signing in: AADSTS700016" in printed.output
    assert f"hc1 acrPull {CLIENT} AcrPull not known" in lines(printed.output)


def test_a_stack_without_any_asks_nobody(
    arm: FakeArm, engine: FakeEngine, idstack: Idstack, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.has({"hostedClusters": {"hc1": {"namespace": "clusters", "controlPlane": {}}}})
    monkeypatch.setattr("ops.access.managed_identities.deployer", None)

    document = json.loads(idstack("status", "--stack", "dev", "--json").output)

    assert document["managedIdentities"] == {"rows": [], "unread": []}
