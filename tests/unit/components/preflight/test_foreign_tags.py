"""Tags that others write stay, in a drift run and in a write of the stack's own; the stack's own are repaired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from identity.credentials import renewal_request
from tests.unit.components.program import Program
from tests.unit.components.recorder import RecordingMonitor
from tests.unit.components.simulation import a_uuid
from tests.unit.components.world import REGISTRY, lookups

VAULT = ("azure-native:keyvault:Vault", "vault-vault")
DISK = ("azure-native:managedidentity:UserAssignedIdentity", "hc1-data-plane-disk-identity")
OWN = {"team": "identity"}
MARKED = {**OWN, "idstack-stack": "idstack:test", "idstack-owner": a_uuid("owner")}
FOREIGN = {"CreatedOn": "2026", 'cost "centre"': "7"}
IGNORED = ['tags["CreatedOn"]', r'tags["cost \"centre\""]']


def run(program: Program, vault: Any, disk: Any, recorded: Any = ("team",), **changes: Any) -> RecordingMonitor:
    """A run with these tags on vault and disk identity; `recorded` are the names that the last run exported."""
    last: Mapping[str, Any] = {} if recorded is None else {"tagNames": list(recorded)}

    def identity(asked: Mapping[str, Any]) -> Any:
        return {**REGISTRY, "tags": disk if asked["resourceName"] == "hc1-disk-hc1-infra" else MARKED}

    answers = lookups(
        readStackOutputs={"outputs": last, "secretOutputNames": []},
        getVault=lambda asked: {"tags": vault} if asked["vaultName"] == "kv-idstack-dev" else {},
        getUserAssignedIdentity=identity,
    )
    return program(invokes=answers, **changes)


def registered(recorder: RecordingMonitor, resource: tuple[str, str]) -> tuple[Any, list[str]]:
    """Tags of a resource, and what the engine ignores of it."""
    found = recorder.one(*resource)
    return found.inputs["tags"], list(found.request.ignoreChanges)


def test_tags_of_others_are_ignored_and_recorded_as_nobodys(program: Program) -> None:
    recorder = run(program, OWN, {**MARKED, **FOREIGN})

    assert registered(recorder, VAULT) == (OWN, IGNORED), "on every resource: a policy writes them on all"
    assert registered(recorder, DISK) == (MARKED, IGNORED)
    assert recorder.stack_outputs.values["tagNames"] == ["team"]


@pytest.mark.parametrize(
    "own",
    [{**MARKED, "team": "other"}, {**MARKED, "left": "over"}, {"team": "identity"}],
    ids=["another value", "a name taken out", "a mark removed"],
)
def test_a_write_of_own_tags_sends_those_of_others_along(program: Program, own: dict[str, str]) -> None:
    """ARM replaces all tags of a resource."""
    recorder = run(program, OWN, {**own, **FOREIGN}, recorded=("team", "left"))

    assert registered(recorder, DISK) == ({**MARKED, **FOREIGN}, [])
    assert registered(recorder, VAULT) == (OWN, IGNORED)


def test_letter_case_makes_no_foreign_name(program: Program) -> None:
    assert registered(run(program, {"Team": "identity"}, MARKED), VAULT) == (OWN, [])


def test_without_a_record_every_name_is_the_stacks(program: Program) -> None:
    """A name that the configuration no longer has would stay for ever."""
    assert registered(run(program, {**OWN, **FOREIGN}, MARKED, recorded=None), VAULT) == (OWN, [])


def test_a_renewal_reads_no_tags(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(renewal_request.VARIABLE, "{}")

    recorder = run(program, {**OWN, **FOREIGN}, MARKED, lookups_only=True)

    assert not [call for call in recorder.invoked if call.function.endswith("getUserAssignedIdentity")]
