"""A cluster that is new in its stack is compared with every stack of the backend, and no other costs a look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from identity.catalogue import CONTROL_PLANE
from identity.naming import role_assignment_name
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.world.stacks import refuse_duplicates
from tests.unit.ops.conftest import FakeEngine

SCOPE = "/subscriptions/s/resourceGroups/hc1-managed"


def of_hc1() -> dict[str, Any]:
    """A role assignment of a cluster whose infraID is hc1-infra."""
    name = role_assignment_name("hc1-infra", CONTROL_PLANE[0].component, SCOPE)
    inputs = {"scope": SCOPE, "roleAssignmentName": name}
    return {"type": "azure-native:authorization:RoleAssignment", "urn": "u", "id": "/a", "inputs": inputs}


def refuse(folder: Path, *clusters: dict[str, str], last: dict[str, str] | None = None) -> list[str]:
    """What is reported of a stack with these clusters, and those of its last run with their infraIDs."""
    config = {"config": {"idstack:hostedClusters": list(clusters)}}
    (folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    known = {name: {"hostedClusterSpec": {"infraID": infra_id}} for name, infra_id in (last or {}).items()}
    outputs = {"hostedClusters": known}
    reported: list[str] = []
    state: Any = [{"urn": "s", "type": "pulumi:pulumi:Stack", "custom": False, "outputs": outputs}]
    refuse_duplicates(Engine("dev", folder), state, reported.append)
    return reported


def test_an_infra_id_of_another_stack_is_refused_with_its_name(engine: FakeEngine, tmp_path: Path) -> None:
    engine.has_stacks("dev", "prod")
    engine.has_resources(of_hc1())

    for cluster in ({"name": "hc2", "infraID": "hc1-infra"}, {"name": "hc1.infra"}):
        with pytest.raises(CommandError) as refused:
            refuse(tmp_path, cluster)
        assert str(refused.value) == (
            f'nothing was changed in dev:\n  {cluster["name"]}: infraID is "hc1-infra", which a hosted cluster of the '
            f"stack prod has; accepted: an id of its own. Set another infraID in Pulumi.dev.yaml, or take "
            f"{cluster['name']} out of it"
        )
    assert refuse(tmp_path, {"name": "hc2", "infraID": "hc2-infra"}) == []


def test_a_cluster_of_the_last_run_costs_no_look_at_another_stack(engine: FakeEngine, tmp_path: Path) -> None:
    engine.has_stacks("dev", "prod")
    engine.has_resources(of_hc1())

    assert refuse(tmp_path, {"name": "hc2", "infraID": "hc1-infra"}, last={"hc2": "hc1-infra"}) == []
    assert engine.calls == []
    with pytest.raises(CommandError):
        refuse(tmp_path, {"name": "hc2", "infraID": "hc1-infra"}, last={"hc2": "hc2-infra"})
    engine.has_stacks("prod")
    (engine.folder / "state.json").unlink()
    told = "not compared with the infraIDs of prod, whose states cannot be read"
    assert refuse(tmp_path, {"name": "hc2"}) == [told]


@pytest.mark.parametrize("clusters", [None, "hc1", [1], [{"name": 1}]])
def test_a_configuration_that_is_wrong_is_left_to_the_program(
    engine: FakeEngine, tmp_path: Path, clusters: object
) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(json.dumps({"config": {"idstack:hostedClusters": clusters}}))
    refuse_duplicates(Engine("dev", tmp_path), [], pytest.fail)
    assert engine.calls == []
