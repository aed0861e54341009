"""Which clusters change their stack in a way that takes a move of the state."""

from __future__ import annotations

from typing import Any

import pytest

from ops.rehearsal.configuration import Names, StackCopy, copy_configuration
from ops.rehearsal.report import ClusterMove, moves
from tests.unit.ops.rehearsal.world import DOCUMENTS, cluster, stack_file

_NAMES = Names(("dev", "hc1-dev", "other"))
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
