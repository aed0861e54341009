"""How many clusters still fit, which limit is met first, what is advised."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.forecast import counts, screen
from ops.forecast.forecast import Forecast, LimitUsage, forecast
from ops.forecast.limits import LIMITS, ROLE_ASSIGNMENTS, VAULT_READS
from ops.forecast.stack import ForecastStack, combined
from tests.unit.components import world

SHARED = "organization/idstack/shared"


def of(clusters: int | None = None, poll: timedelta | None = None, **changes: Any) -> Forecast:
    """The forecast of one stack with these changes of its configuration."""
    return forecast(combined({"test": world.settings(**changes)}, poll), clusters)


@pytest.fixture(scope="module")
def stacks() -> list[ForecastStack]:
    """One stack as it is configured."""
    return combined({"test": world.settings()})


def use(found: Forecast, key: str) -> LimitUsage:
    return next(usage for usage in found.usages if usage.limit.key == key)


def test_a_cluster_takes_its_assignments_and_the_reader_one() -> None:
    found = of()
    [taken] = {use(found, "roleAssignments").used}
    for_each = taken - 1
    assert use(of(0), "roleAssignments").used == 1
    assert use(of(7), "roleAssignments").used == 1 + 7 * for_each
    assert use(found, "roleAssignments").more == (4000 - taken) // for_each


@given(st.integers(0, 400))
def test_as_many_more_clusters_fit_as_it_says_and_no_more(stacks: list[ForecastStack], clusters: int) -> None:
    for usage in forecast(stacks, clusters).usages:
        if usage.more:
            assert use(forecast(stacks, clusters + usage.more), usage.limit.key).share <= 1
        if usage.more is not None:
            assert use(forecast(stacks, clusters + usage.more + 1), usage.limit.key).share > 1


def test_the_first_limit_is_the_one_with_the_fewest_more_clusters() -> None:
    found = of(100)
    assert found.first is not None
    assert found.first.more == min(
        usage.more for usage in found.usages if usage.more is not None and usage.limit.condition is None
    )
    assert found.first.limit is ROLE_ASSIGNMENTS


def test_a_limit_of_some_deployers_is_named_but_not_counted_as_first() -> None:
    found = of()
    assert [usage.limit.key for usage in found.conditional] == ["createdObjects", "renewalWrites"]
    assert "For a user without a role in Entra ID who deploys" in screen.summary(found)


def test_a_stack_without_clusters_meets_no_limit() -> None:
    found = of(hostedClusters=[])
    assert found.first is None
    assert screen.summary(found).startswith("No limit is met as clusters are added")
    assert json.loads(json.dumps(found.to_json()))["first"] is None


def test_many_pods_and_a_short_poll_meet_the_vault_first() -> None:
    workload = {"name": "mine", "image": "registry.example.com/mine:1", "identities": ["disk"], "replicas": 100}
    clusters = [world.hosted_cluster(workloads=[{**workload, "name": f"mine-{number}"} for number in range(10)])]
    found = of(clusters=47, poll=timedelta(minutes=2), hostedClusters=clusters)
    reads = use(found, "vaultReads")
    assert reads.used == pytest.approx(47 * 1010 * 10 / 120)
    assert found.first is reads
    assert found.advice() == {
        "subscriptions": "1 subscription is enough",
        "vaults": "2 vaults; a stack of its own for each group of clusters has one",
        "pollInterval": "5m instead of 2m keeps below 80% of a vault's reads",
    }
    assert of(clusters=47, poll=timedelta(minutes=5), hostedClusters=clusters).near == []


def test_a_poll_interval_that_cannot_help_is_not_advised() -> None:
    reads = LimitUsage(limit=VAULT_READS, holder="vault v", used=4000 * 40, more=0)
    found = Forecast(clusters=1, usages=(reads,), longest_poll=timedelta(minutes=2))
    assert found.advice()["pollInterval"].startswith("an hour, the longest, is not enough")


def test_stacks_of_one_subscription_count_combined() -> None:
    one, two = (world.settings(hostedClusters=[cluster]) for cluster in (world.hosted_cluster(), world.SECOND_CLUSTER))
    both = world.settings(hostedClusters=[world.hosted_cluster(), world.SECOND_CLUSTER])
    apart = use(forecast(combined({"one": one, "two": two})), "roleAssignments")
    assert apart.used == use(forecast(combined({"both": both})), "roleAssignments").used + 1


def test_a_cluster_stack_reads_the_vault_of_its_shared_stack() -> None:
    cluster = world.settings(sharedStack=SHARED, vault=None)
    shared = world.settings(hostedClusters=[])
    assert [stack.vault for stack in combined({"cluster": cluster, "shared": shared})] == 2 * ["vault kv-idstack-dev"]
    assert [stack.vault for stack in combined({"cluster": cluster})] == [f"vault of {SHARED}"]


def test_stacks_with_vaults_of_their_own_do_not_share_reads() -> None:
    one = world.settings()
    vault = {"name": "kv-idstack-two", "defaultAction": "Allow"}
    two = world.settings(hostedClusters=[world.SECOND_CLUSTER], vault=vault)
    alone = use(forecast(combined({"one": one})), "vaultReads").used
    found = forecast(combined({"one": one, "two": two}))
    assert use(found, "vaultReads").used == alone
    assert use(found, "subscriptionVaultReads").used == pytest.approx(2 * alone, abs=0.1)


def test_a_created_cluster_has_the_poll_interval_of_its_settings() -> None:
    create = {"nodePool": {"vmSize": "Standard_D4s_v5"}, "azureRBAC": True, "rotationPollInterval": "1m30s"}
    cluster = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "create": create, "access": {"login": "arm"}}
    [stack] = combined({"test": world.settings(managementCluster=cluster)})
    assert stack.poll == timedelta(seconds=90)
    assert (
        sum(
            role_assignment.amount
            for role_assignment in counts.role_assignments(stack)
            if role_assignment.cluster is None
        )
        == 2
    )


def test_every_limit_has_a_source_and_a_key_of_its_own() -> None:
    assert len({limit.key for limit in LIMITS}) == len(LIMITS)
    assert all(limit.source.address.startswith("learn.microsoft.com/") and limit.maximum > 0 for limit in LIMITS)


def test_a_preview_warns_from_80_percent_on_in_one_paragraph() -> None:
    assert screen.warning(of(), "dev") is None
    fits = use(of(), "roleAssignments").more
    assert fits is not None
    warned = screen.warning(of(int(fits * 0.85)), "dev")
    assert warned is not None
    assert "\n" not in warned
    assert "role assignments of a subscription: 3," in warned
    assert "`idstack forecast --stack dev`" in warned
