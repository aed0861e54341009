"""A hosted cluster, an identity or a pod is looked at alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ops.doctor.checks.check import Stage
from ops.doctor.examination import CHECKS, checks_of
from ops.stack.errors import CommandError
from ops.world.reader import EVERYTHING, Selection
from ops.world.seen import known
from tests.unit.ops.doctor import worlds
from tests.unit.ops.doctor.worlds import CLUSTER

WORLD = worlds.healthy()
NAMESPACE = f"clusters-{CLUSTER}"


def fields(selection: Selection) -> list[tuple[str, str]]:
    return [(principal.cluster, principal.identity) for principal in selection.of_state(worlds.state(WORLD)).principals]


def pod_of(field: str) -> str:
    return worlds.pods_of(WORLD, field)[0].name


def test_without_a_name_everything_is_looked_at() -> None:
    assert Selection.of(None, None, None) == EVERYTHING
    assert EVERYTHING.of_state(worlds.state(WORLD)) is worlds.state(WORLD)
    assert checks_of(EVERYTHING) == list(CHECKS)


@pytest.mark.parametrize("name", ["ingress", f"{CLUSTER}/ingress"])
def test_an_identity_is_named_with_or_without_its_cluster(name: str) -> None:
    assert fields(Selection.of(None, name, None)) == [(CLUSTER, "ingress")]
    guest = worlds.state(WORLD).clusters[0].guests[0].identity
    assert fields(Selection.of(CLUSTER, guest, None)) == [(CLUSTER, guest)]


def test_a_pod_is_looked_at_without_the_others_of_its_identity() -> None:
    state, name = worlds.state(WORLD), pod_of("ingress")
    found = Selection.of(None, None, f"{NAMESPACE}/{name}")
    cluster, plane = found.of_plane(state.clusters[0], worlds.plane(WORLD))

    assert fields(found) == [(CLUSTER, "ingress")], "it stands for the identities of its deployment"
    with pytest.raises(CommandError, match=f"no pod {name}x in {NAMESPACE}; did you mean .*{name}"):
        Selection.of(None, None, f"{NAMESPACE}/{name}x").of_plane(state.clusters[0], worlds.plane(WORLD))
    assert [pod.name for pod in known(plane.pods)] == [name]
    assert [identity.identity for identity in cluster.identities] == ["ingress"]


def test_a_workload_of_ones_own_stands_for_what_it_mounts() -> None:
    pod = replace(worlds.pods_of(WORLD, "ingress")[0], name="mine-7d9f-abcde")
    plane = worlds.plane(worlds.with_plane(WORLD, pods=(pod,)))
    selection = Selection.of(None, None, f"{NAMESPACE}/{pod.name}")

    cluster, _ = selection.of_plane(selection.of_state(worlds.state(WORLD)).clusters[0], plane)

    assert [(identity.identity, identity.mounts) for identity in cluster.identities] == [("ingress", ())]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("hc2", None, None), f'no hosted cluster hc2; there are {CLUSTER}; did you mean "{CLUSTER}"?'),
        ((None, "ingres", None), 'did you mean "ingress"?'),
        ((None, None, "clusters-hc/x"), f"no control plane in clusters-hc; there are {NAMESPACE}; did you mean"),
    ],
    ids=["cluster", "identity", "namespace"],
)
def test_an_unknown_name_is_answered_with_the_nearest(names: tuple[str | None, ...], words: str) -> None:
    with pytest.raises(CommandError) as refused:
        Selection.of(*names).of_state(worlds.state(WORLD))

    assert words in str(refused.value)


@pytest.mark.parametrize(
    "names",
    [("hc1", None, "a/b"), (None, None, "pod"), (None, None, "a/"), ("hc1", "hc2/ingress", None)],
    ids=["both", "no-namespace", "no-name", "two-clusters"],
)
def test_names_that_contradict_each_other_are_wrong_usage(names: tuple[str | None, ...]) -> None:
    with pytest.raises(ValueError, match="--"):
        Selection.of(*names)


def test_an_identity_is_checked_without_backend_access_and_configuration() -> None:
    checks = checks_of(Selection.of(None, "ingress", None))

    assert not {Stage.BACKEND, Stage.ACCESS} & {check.stage for check in checks}
    assert {"state", "hosted-cluster", "secret", "mount", "proof-call"} <= {check.name for check in checks}
    assert not {"settings", "brought-up"} & {check.name for check in checks}
