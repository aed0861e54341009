"""Names of stacks are safe for Pulumi and for Kubernetes, whatever the fleet file calls its parts."""

from __future__ import annotations

import re
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from ops.fleet.stacks import cluster_stack_name, shared_stack_name
from ops.stack.environment import is_local
from tests.unit.ops.fleet.world import LOCAL, document, refusals

_ENVIRONMENT: Final = st.from_regex(r"[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,4}){0,2}", fullmatch=True)
_CLUSTER: Final = st.from_regex(r"[a-z0-9]{1,6}([.-][a-z0-9]{1,5}){0,2}", fullmatch=True)
# pulumi/pulumi sdk/go/common/tokens/stack_name.go, and a DNS label of Kubernetes.
_PULUMI: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@given(environment=_ENVIRONMENT, cluster=_CLUSTER)
def test_a_stack_has_a_name_that_pulumi_and_kubernetes_take(environment: str, cluster: str) -> None:
    for name in (cluster_stack_name(environment, cluster), shared_stack_name(environment)):
        assert _PULUMI.fullmatch(name)
        assert _LABEL.fullmatch(name)
        assert is_local(name) or not is_local(environment), "the name decides who gets the emulated plugins"


def test_a_stack_on_azure_never_has_a_name_of_the_local_clouds() -> None:
    changed = document()
    changed["environments"][0]["clusters"].append({"name": "local"})
    assert refusals(changed) == [("environments[0].clusters[2].name", "local-stack-name")]


@given(names=st.lists(st.text(max_size=60), max_size=4))
@example(names=["a.b"])  # a name that is taken, of which the defaults make an infraID that is not
def test_whatever_clusters_are_called_the_file_is_taken_or_refused(names: list[str]) -> None:
    changed = document(LOCAL)
    changed["environments"][0]["clusters"] = [{"name": name} for name in names]
    changed["environments"][0].pop("waves")
    places = [place.split(".")[1].partition("[")[0] for place, _ in refusals(changed)]
    assert set(places) <= {"clusters", "clusterDefaults"}
