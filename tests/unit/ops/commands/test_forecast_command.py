"""`idstack forecast`, and the paragraph at the end of `idstack preview`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.components import world
from tests.unit.ops.conftest import FakeEngine, Idstack


@pytest.fixture
def project(project: Path) -> Path:
    """A project with the configuration of the stack `dev`."""
    configure(project, "dev")
    return project


def configure(project: Path, stack: str, **changes: Any) -> None:
    """Write a stack's configuration as its owner would."""
    config: dict[str, Any] = {}
    for key, value in world.configuration(**changes).items():
        config[f"idstack:{key}"] = json.loads(value) if value[0] in "[{" else value
    document = {"config": {"pulumi:disable-default-providers": ["azuread"], **config}}
    (project / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(document))


def test_the_forecast_is_a_table_with_what_is_met_first(project: Path, idstack: Idstack, engine: FakeEngine) -> None:
    printed = idstack("forecast", "--stack", "dev")
    assert (printed.code, printed.error) == (0, "")
    header, _, first, *_ = printed.output.splitlines()
    assert header.split() == ["limit", "at", "used", "share", "more", "clusters", "source"]
    assert first.startswith("role assignments of a subscription")
    assert "Met first: role assignments of a subscription, after" in printed.output
    assert "Poll interval: 2m keeps below 80% of a vault's reads." in printed.output
    assert engine.calls == [], "nothing but the file is read"


def test_as_json_it_is_one_document(project: Path, idstack: Idstack) -> None:
    printed = idstack("forecast", "--stack", "dev", "--clusters", "40", "--json")
    document = json.loads(printed.output)
    assert (printed.code, printed.error, document["stacks"], document["clusters"]) == (0, "", ["dev"], 40)
    assert document["first"]["limit"] == "roleAssignments"
    assert set(document["advice"]) == {"subscriptions", "vaults", "pollInterval"}
    [reads] = [limit for limit in document["limits"] if limit["limit"] == "vaultReads"]
    assert (reads["holder"], reads["maximum"]) == ("vault kv-idstack-dev", 4000)
    assert reads["source"].startswith("https://learn.microsoft.com/")


def test_a_limit_that_is_exceeded_is_an_error(project: Path, idstack: Idstack) -> None:
    printed = idstack("forecast", "--stack", "dev", "--clusters", "1000")
    assert printed.code == 1
    assert printed.error.startswith("idstack: over a limit of Azure: role assignments of a subscription (subscription ")
    assert "Met first: role assignments of a subscription, after 0 more clusters" in printed.output


def test_stacks_count_together(project: Path, idstack: Idstack) -> None:
    configure(project, "two", hostedClusters=[world.SECOND_CLUSTER])
    alone, both = (
        json.loads(idstack("forecast", *(word for stack in stacks for word in ("-s", stack)), "--json").output)
        for stacks in (["dev"], ["dev", "two", "dev"])
    )
    assert (both["stacks"], both["clusters"]) == (["dev", "two"], 2)
    assert both["limits"][0]["used"] == 2 * alone["limits"][0]["used"]


def test_a_poll_interval_may_be_given(project: Path, idstack: Idstack) -> None:
    used = [
        next(
            limit["used"]
            for limit in json.loads(idstack("forecast", "-s", "dev", "--json", *more).output)["limits"]
            if limit["limit"] == "vaultReads"
        )
        for more in ([], ["--poll-interval", "1m"])
    ]
    assert used[1] == pytest.approx(2 * used[0], abs=0.2)
    assert idstack("forecast", "-s", "dev", "--poll-interval", "soon").code == 2


def test_a_wrong_configuration_is_reported_as_a_whole(project: Path, idstack: Idstack) -> None:
    configure(project, "dev", tenantId="nobody")
    printed = idstack("forecast", "--stack", "dev")
    assert printed.code == 1
    assert printed.error.startswith("idstack: dev: The stack's configuration has 1 problem; ")
    assert "`idstack pulumi --stack dev -- config set tenantId <uuid>`" in printed.error


def test_a_stack_without_a_configuration_is_named(project: Path, idstack: Idstack) -> None:
    printed = idstack("forecast", "--stack", "nosuch")
    assert printed.error == (
        "idstack: there is no stack nosuch: the project has no Pulumi.nosuch.yaml. Stacks with a file: dev. "
        "`idstack init nosuch` creates one\n"
    )


def test_an_encrypted_value_is_named_with_the_way_out(project: Path, idstack: Idstack) -> None:
    file = project / "Pulumi.dev.yaml"
    document = yaml.safe_load(file.read_text())
    document["config"]["idstack:location"] = {"secure": "v1:abc"}
    file.write_text(yaml.safe_dump(document))
    printed = idstack("forecast", "--stack", "dev")
    assert printed.code == 1
    assert "Pulumi.dev.yaml has an encrypted value in idstack:location" in printed.error


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_preview_near_a_limit_warns_beside_the_plan(
    project: Path, idstack: Idstack, engine: FakeEngine, options: list[str]
) -> None:
    clusters = [
        world.hosted_cluster(name=f"c{number}", infraID=f"c{number}", issuerURL=f"https://i{number}.contoso.com")
        for number in range(170)
    ]
    assert "limit" not in idstack("preview", "--stack", "dev", *options).error
    configure(project, "dev", hostedClusters=clusters)
    warned = idstack("preview", "--stack", "dev", *options)
    assert warned.code == 0
    assert warned.error.startswith("Near a limit of Azure (80% or more, as this stack alone counts): role assignments")
    assert "limit" not in warned.output


def test_a_preview_says_nothing_of_a_configuration_that_it_cannot_count(
    project: Path, idstack: Idstack, engine: FakeEngine
) -> None:
    configure(project, "dev", tenantId="nobody")
    printed = idstack("preview", "--stack", "dev")
    assert (printed.code, printed.error) == (0, "")
