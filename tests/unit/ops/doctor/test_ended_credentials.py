"""Credentials that have ended are named before a hosted cluster is deleted with them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ops.doctor import examination
from ops.doctor.examination import ended_credentials
from ops.stack.engine import Engine
from ops.world.seen import Part, StackWorld, Unread
from tests.unit.ops.doctor import changes, worlds
from tests.unit.ops.doctor.changes import IMPORTED, ISSUED
from tests.unit.ops.doctor.worlds import CLUSTER

CONSEQUENCE = (
    "HyperShift deletes machines, volumes and load balancers with them. It gives up a machine that it cannot delete "
    "for ten minutes: the HostedCluster is deleted, and the machine stays in Azure. `.venv/bin/idstack sweep --stack "
    "dev` lists such machines."
)


def warned(monkeypatch: pytest.MonkeyPatch, world: StackWorld, *clusters: str) -> str | None:
    def read_world(engine: Engine, parts: set[Part]) -> StackWorld:
        assert parts == {Part.STATE, Part.SECRETS, Part.APPLICATIONS}
        return world

    monkeypatch.setattr(examination, "read_world", read_world)
    return ended_credentials(Engine("dev"), clusters)


def test_a_cluster_that_is_not_deleted_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    world = changes.secret_gone(worlds.healthy())

    assert warned(monkeypatch, world) is None
    assert warned(monkeypatch, world, "hc2") is None
    assert warned(monkeypatch, worlds.healthy(), CLUSTER) is None, "its credentials sign in"


def test_each_credential_that_has_ended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = worlds.healthy()
    client = worlds.identity(healthy, ISSUED).client_id
    world = replace(changes.secret_gone(healthy), applications={**healthy.applications, client: None})
    secret = worlds.identity(healthy, IMPORTED).secret

    assert warned(monkeypatch, world, CLUSTER) == (
        f"HyperShift cannot sign in with all credentials: {IMPORTED} of hc1 (there is no secret {secret} in "
        f"kv-idstack-local); {ISSUED} of hc1 (Entra ID has no application with the client id {client}). {CONSEQUENCE} "
        "`.venv/bin/idstack doctor --stack dev` has the fix for each: apply it first"
    )


def test_what_cannot_be_read_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = worlds.healthy()
    why = Unread("Azure: no sign-in")
    world = replace(
        healthy,
        secrets=dict.fromkeys(healthy.secrets, why),
        applications=dict.fromkeys(healthy.applications, why),
    )

    assert warned(monkeypatch, world, CLUSTER) == (
        f"the credentials of hc1 cannot be checked (Azure: no sign-in). {CONSEQUENCE}"
    )
