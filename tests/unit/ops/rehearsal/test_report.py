"""What speaks against a change, and how it is told: on a screen, as JSON, in a pull request."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ops.outputs.plan import Operation, ResourceStep
from ops.rehearsal import report
from ops.rehearsal.configuration import StackCopy, copy_configuration, local_names
from ops.rehearsal.report import ClusterMove, CredentialLoss, Rehearsal, Restart, moves
from ops.rehearsal.sign_ins import SignIns
from ops.rehearsal.world import left
from ops.world.ownership import ResourceOwner
from tests.unit.ops.rehearsal.world import DOCUMENTS, cluster, stack_file

KMS = ResourceOwner("hc1", "kms")
ROLE = ResourceStep(
    "prod",
    Operation.REPLACE,
    "azure-native:authorization:RoleAssignment",
    "hc1-kms-roles-managed",
    KMS,
    ("roleDefinitionId",),
)
SECRET = ResourceStep("prod", Operation.UPDATE, "idstack:index:CredentialSecret", "hc1-kms-credential-secret", KMS)
VAULT = ResourceStep(
    "prod", Operation.DELETE, "azure-native:keyvault:Vault", "vault-vault", ResourceOwner(), is_protected=True
)
REFUSED = SignIns(KMS, 3, Counter({"AADSTS700016: the tenant has no such application": 2}))


def rehearsal(*steps: ResourceStep, **changes: Any) -> Rehearsal:
    """A rehearsal that found nothing, changed."""
    quiet = Rehearsal(
        stack="prod",
        base="0123456789ab",
        head="checkout",
        seed=1,
        stacks=("prod",),
        steps=list(steps),
        sign_ins=(SignIns(KMS, 5),),
        second=(),
        left=(),
        seconds={"base": 30.4},
    )
    return replace(quiet, **changes)


def screen(found: Rehearsal, width: int = 200) -> str:
    """What a person reads."""
    console = Console(width=width, highlight=False, soft_wrap=True)
    with console.capture() as captured:
        console.print(report.screen(found))
    return captured.get()


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (rehearsal(new_pods=(REFUSED,)), "2 sign-ins failed"),
        (rehearsal(sign_ins=(REFUSED,)), "2 sign-ins failed"),
        (rehearsal(losses=(CredentialLoss("hc1", ("kms: a -> b",), False),)), "hc1 would lose credentials in use"),
        (rehearsal(VAULT), "a protected resource would be deleted: vault-vault"),
        (rehearsal(errors=("no",), second=None, left=None), "the run at the head commit failed"),
        (rehearsal(second=(SECRET,)), "a second run would change again: hc1-kms-credential-secret"),
        (rehearsal(left=("arm /x",)), "the destroyed stack leaves behind: arm /x"),
    ],
)
def test_each_harm_is_a_finding(found: Rehearsal, words: str) -> None:
    [finding] = found.findings
    assert words in finding
    assert words in screen(found)
    assert found.to_json()["findings"] == [finding]


def test_what_is_no_harm_is_told_and_no_finding() -> None:
    restart = Restart(KMS, ("kube-apiserver",), "clientID of the HostedCluster changes")
    of_clients: dict[str, Any] = {"sign_ins": (REFUSED,), "unused": ("hc1",)}
    moved = (ClusterMove("hc1", "prod", "hc1-prod"),)
    found = rehearsal(ROLE, moves=moved, restarts=(restart,), left_out=("a key",), **of_clients)

    assert found.findings == []
    for told in (
        *("AADSTS700016: the tenant has no such application", "not used any more", "roleDefinitionId"),
        *("kube-apiserver", "--seed 1 repeats it", "not rehearsed: a key", "second run changes nothing"),
    ):
        assert told in screen(found)
    assert rehearsal(new_pods=(REFUSED,), unused=("hc1",)).findings == ["2 sign-ins failed"]
    assert "hc1 moves from prod to hc1-prod: move its state first" in screen(found)
    assert "hc1 moves from prod to hc1-prod" in report.markdown(found)
    assert found.to_json()["moves"] == [{"cluster": "hc1", "from": "prod", "to": "hc1-prod"}]


@pytest.mark.parametrize(
    ("forbidden", "count"), [({Operation.REPLACE}, 1), ({Operation.DELETE}, 0), ({Operation.UPDATE}, 1), (set(), 0)]
)
def test_a_forbidden_operation_is_a_finding(forbidden: set[Operation], count: int) -> None:
    approved = CredentialLoss("hc1", ("kms: a -> b",), True)
    found = rehearsal(ROLE, SECRET, losses=(approved,), forbidden=forbidden)

    assert len(found.findings) == count
    assert "kms: a -> b" in screen(found), "it is approved, so it is told"


def test_json_has_everything_and_can_be_read_by_scripts() -> None:
    name = "hc1-kms-entra-application"
    application = ResourceStep("prod", Operation.CREATE, "azuread:index/application:Application", name, KMS)
    found = rehearsal(application)
    assert found.to_json()["plan"] == [{"cluster": "hc1", "identity": "kms", "principal": {"create": 1}}]
    [row] = [line for line in screen(found).splitlines() if line.startswith("hc1")]
    assert row.split() == ["hc1", "kms", "+1"]
    document = json.loads(json.dumps(rehearsal(ROLE, VAULT).to_json()))

    assert document["plan"][1] == {"cluster": "hc1", "identity": "kms", "role": {"replace": 1}}
    assert [step["reason"] for step in document["replacedOrDeleted"]] == [
        "roleDefinitionId",
        "no longer in the configuration or the program",
    ]
    assert (document["secondUp"], document["remainingAfterDown"]) == ([], [])


@given(st.text(min_size=1, max_size=60))
def test_nothing_of_a_configuration_is_markdown(text: str) -> None:
    found = report.markdown(rehearsal(replace(ROLE, properties=(text,)), left_out=(text,)))
    [row] = [line for line in found.splitlines() if line.startswith("| hc1-kms-roles")]

    assert row.count("|") == 5
    fact = next(line for line in found.split("\n") if line.startswith("- not rehearsed"))
    assert not set("`*<>@[]") & set(fact)
    steps = [replace(ROLE, name=f"hc1-kms-roles-{number}") for number in range(60)]
    assert "... and 20 more" in report.markdown(rehearsal(*steps))
    assert rehearsal(second=tuple(steps)).findings[0].endswith(" and 55 more")


def test_what_azure_keeps_is_not_left_behind() -> None:
    before = frozenset({("arm", "/seeded")})
    kept = {("entra-deleted", "x"), ("keyvault-deleted", "kv-1"), ("arm-role-assignment-name", "y")}
    # A deletion of a resource group: a client may still ask how it ended.
    kept.add(("arm-deletion", "z"))

    assert left(before, before | kept) == ([], ["vault kv-1, deleted softly"])
    assert left(before, frozenset({("arm", "/new")})) == (["arm /new", "arm /seeded, which does not exist"], [])


_NAMES = local_names(("dev", "hc1-dev", "other"))
_FIRST = cluster()
_SECOND = cluster(name="hc2", infraID="hc2-dev", issuerURL="https://hc2oidc.blob.core.windows.net/hc2oidc")


def first(*clusters: dict[str, Any], stack: str = "dev") -> StackCopy:
    """A stack with a vault of its own."""
    return copy_configuration(stack, stack_file(hostedClusters=list(clusters) or None), _NAMES, DOCUMENTS, 1)


def second(*clusters: dict[str, Any], shared: str = "dev") -> StackCopy:
    """A stack that shares the vault of `shared`."""
    own: dict[str, Any] = {"vault": None, "keyVaultUser": None, "sharedStack": f"organization/idstack/{shared}"}
    return copy_configuration("hc1-dev", stack_file(hostedClusters=list(clusters), **own), _NAMES, DOCUMENTS, 1)


@pytest.mark.parametrize("left", [(), (_SECOND,)], ids=["none left", "another left"])
def test_a_cluster_that_goes_to_a_stack_that_shares_its_vault_is_split_off(left: tuple[dict[str, Any], ...]) -> None:
    [move] = moves([first(_FIRST, *left)], [first(*left), second(_FIRST)])

    assert move == ClusterMove("hc1", "dev", "hc1-dev")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([first(_FIRST)], [first(_FIRST), second(_SECOND)]),
        ([first(_FIRST), second(_SECOND)], [first(), second(_SECOND)]),
        ([first(_FIRST), second(_FIRST)], [first(), second(_FIRST)]),
        ([first(_FIRST)], [first(_FIRST), second(_FIRST)]),
        ([first(_FIRST), first(stack="other")], [first(), first(stack="other"), second(_FIRST, shared="other")]),
        ([], [first(), second(_FIRST)]),
        ([second(_FIRST)], [first(_FIRST), second(_SECOND)]),
    ],
    ids=["a new one", "one removed", "in both before", "in both after", "another vault", "nothing before", "back"],
)
def test_nothing_else_is_a_split(before: list[StackCopy], after: list[StackCopy]) -> None:
    assert list(moves(before, after)) == []
