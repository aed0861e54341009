"""A check that lacks what it needs says so, and blames nobody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ops.doctor import examination
from ops.doctor.checks.check import CheckStatus, ExitCode, diagnose, exit_code
from ops.doctor.examination import CHECKS, ended_credentials, examine
from ops.stack.engine import Engine
from ops.world.seen import Part, StackWorld, Unread, known
from tests.unit.ops.doctor import changes, worlds
from tests.unit.ops.doctor.changes import IMPORTED, ISSUED
from tests.unit.ops.doctor.worlds import CLUSTER

REFUSED = Unread("403: you may not", is_forbidden=True)
UNSEEN: dict[Part, Callable[[StackWorld], StackWorld]] = {
    Part.LOCKS: lambda world: replace(world, locks=REFUSED),
    Part.HISTORY: lambda world: replace(world, last_run=REFUSED),
    Part.DECRYPTION: lambda world: replace(world, decryption=REFUSED),
    Part.CONFIGURATION: lambda world: replace(world, configuration=REFUSED),
    Part.SIGN_IN: lambda world: replace(world, sign_in=REFUSED),
    Part.ACCESS: lambda world: replace(world, access=REFUSED),
    Part.VAULT: lambda world: replace(world, vault=REFUSED),
    Part.SECRETS: lambda world: replace(world, secrets=dict.fromkeys(world.secrets, REFUSED)),
    Part.ADD_ON: lambda world: replace(world, add_on=REFUSED),
    Part.ROLES: lambda world: replace(
        world, roles=dict.fromkeys(world.roles, REFUSED), assignments=dict.fromkeys(world.assignments, REFUSED)
    ),
    Part.APPLICATIONS: lambda world: replace(world, applications=dict.fromkeys(world.applications, REFUSED)),
    Part.ISSUERS: lambda world: replace(
        worlds.self_issued(world), issuers=dict.fromkeys(worlds.self_issued(world).issuers, REFUSED)
    ),
    Part.MANAGED_IDENTITIES: lambda world: replace(
        world, managed_identities=dict.fromkeys(world.managed_identities, REFUSED)
    ),
    Part.CONTROL_PLANES: lambda world: replace(world, control_planes=dict.fromkeys(world.control_planes, REFUSED)),
    Part.REPORTS: lambda world: worlds.with_plane(world, reports=dict.fromkeys(worlds.plane(world).reports, REFUSED)),
}
# `mount` looks at a secret's version, `document` at its date; both do so only for what is mounted or loaded already.
ALSO = {
    Part.SECRETS: {"mount", "document"},
    Part.CONTROL_PLANES: {"path", "document", "sign-in", "proof-call"},
}


@pytest.mark.parametrize("part", UNSEEN, ids=lambda part: part.name)
def test_what_was_not_read_leaves_its_checks_unmade(part: Part) -> None:
    world = UNSEEN[part](worlds.healthy())
    if part is Part.REPORTS:  # a probe that is ready needs no report
        for identity in worlds.state(world).identities:
            world = worlds.with_pods(world, identity.identity, lambda pod: replace(pod, is_ready=False))

    results = diagnose(world, CHECKS)

    unmade = {result.check for result in results if result.status is CheckStatus.NOT_CHECKED}
    expected = {check.name for check in CHECKS if check.needs[0] is part} | ALSO.get(part, set())
    if part is Part.CONTROL_PLANES:  # of a cluster side that the stack makes, these look at nothing
        expected -= {"hosted-cluster", "conditions"}
    if part is Part.REPORTS:  # only self-managed clusters have probes of tokens
        expected -= {"exchange"}
    if part is Part.CONFIGURATION:
        expected |= {"brought-up"}
    if part is Part.ROLES:  # the key-vault-user of this stack has its role on the whole vault
        expected -= {"secret-reader"}
    assert unmade == expected
    assert not [result for result in results if result.status is CheckStatus.BROKEN]
    assert exit_code(results) is ExitCode.NOT_CHECKED
    for result in results:
        if result.status is CheckStatus.NOT_CHECKED:
            assert result.evidence.startswith("403: you may not (requires ")


def test_a_probe_that_is_ready_needs_no_report() -> None:
    on_azure = replace(worlds.healthy(), stack="dev")
    results = diagnose(UNSEEN[Part.REPORTS](on_azure), CHECKS)

    assert exit_code(results) is ExitCode.SOUND


def test_every_part_but_the_state_can_be_refused() -> None:
    """Without its state a stack has no identities to check: that is a fault of the engine's stage."""
    assert UNSEEN.keys() == set(Part) - {Part.STATE}


def test_events_that_were_not_read_leave_the_mount_broken_without_a_cause() -> None:
    world = worlds.unmounted(worlds.healthy(), "ingress", "403")
    results = diagnose(worlds.with_plane(world, warnings=REFUSED), CHECKS)

    [found] = [result for result in results if result.status is CheckStatus.BROKEN]
    assert (found.check, found.identity) == ("mount", "ingress")
    assert "its events were not read (403: you may not)" in found.evidence


def test_a_shared_vaults_reader_is_the_shared_stacks_to_check() -> None:
    results = diagnose(worlds.with_state(worlds.healthy(), reader_roles=(), own_vault=None), CHECKS)

    [found] = [result for result in results if result.status is CheckStatus.NOT_CHECKED]
    assert found.check == "reader-role"
    assert "run the doctor on that stack" in found.evidence


@pytest.mark.parametrize("made", [0, 1], ids=["nothing", "the class of another identity"])
def test_what_hypershift_has_not_made_yet_is_no_fault(made: int) -> None:
    world = worlds.in_hypershift(worlds.healthy())
    classes = dict([*known(worlds.plane(world).classes).items()][:made])
    empty = worlds.with_plane(world, classes=classes, mounts=(), pods=(), hosted_cluster=None)

    results = diagnose(empty, CHECKS)

    assert exit_code(results) is ExitCode.NOT_CHECKED
    assert not [result for result in results if result.status in (CheckStatus.BROKEN, CheckStatus.SKIPPED)]


def test_a_mounted_version_is_beside_the_vaults_if_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = worlds.healthy()
    refused, gone, *others = healthy.secrets
    world = replace(healthy, secrets={**healthy.secrets, refused: REFUSED, gone: None})
    monkeypatch.setattr(examination, "read_world", lambda *_: world)
    names = {identity.identity: identity.secret for identity in known(world.state).identities}

    found = examine(Engine("dev"), {}).cluster

    assert found is not None
    read = {name: known(healthy.secrets[name]) for name in others}
    versions = {name: secret.version for name, secret in read.items() if secret is not None}
    assert {names[mount.identity]: mount.current for mount in found.mounts} == {**versions, refused: None, gone: None}


def test_a_cluster_that_cannot_be_read_leaves_its_identities_unread_and_azures_checks_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    healthy = worlds.healthy()
    planes = dict.fromkeys(healthy.control_planes, REFUSED)
    monkeypatch.setattr(examination, "read_world", lambda *_: replace(healthy, control_planes=planes))

    found = examine(Engine("dev"), {})

    assert found.unchecked(lambda result: result.identity) == found.unchecked() != ()
    assert {found.is_broken("hc1", identity.identity) for identity in known(healthy.state).identities} == {False}


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


def test_each_credential_that_has_ended_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = worlds.healthy()
    client = worlds.identity(healthy, ISSUED).client_id
    world = replace(changes.secret_gone(healthy), applications={**healthy.applications, client: None})
    secret = worlds.identity(healthy, IMPORTED).secret
    assert warned(monkeypatch, healthy, CLUSTER) is None
    assert [warned(monkeypatch, world, *deleted) for deleted in ((), ("hc2",))] == [None, None], "they stay"

    assert warned(monkeypatch, world, CLUSTER) == (
        f"HyperShift cannot sign in with all credentials: {IMPORTED} of hc1 (there is no secret {secret} in "
        f"kv-idstack-local); {ISSUED} of hc1 (Entra ID has no application with the client id {client}). {CONSEQUENCE} "
        "`.venv/bin/idstack doctor --stack dev` has the fix for each: apply it first"
    )


def test_what_cannot_be_read_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy, why = worlds.healthy(), Unread("Azure: no sign-in")
    unread: dict[str, Any] = {part: dict.fromkeys(getattr(healthy, part), why) for part in ("secrets", "applications")}

    told = f"the credentials of hc1 cannot be checked (Azure: no sign-in). {CONSEQUENCE}"
    assert warned(monkeypatch, replace(healthy, **unread), CLUSTER) == told
