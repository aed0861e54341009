"""How many clusters still fit, which limit is met first, what is advised."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.clouds import CLOUDS
from identity.credentials.certificate import KEY_SIZES, issue
from identity.credentials.document import encode
from ops.forecast import counts, screen
from ops.forecast.forecast import Forecast, Use, forecast
from ops.forecast.limits import LIMITS, ROLE_ASSIGNMENTS, VAULT_READS
from ops.forecast.stack import ForecastStack, duration, together
from tests.unit.components import world

SHARED = "organization/idstack/shared"


def of(clusters: int | None = None, poll: timedelta | None = None, **changes: Any) -> Forecast:
    """The forecast of one stack with these changes of its configuration."""
    return forecast(together({"test": world.settings(**changes)}, poll), clusters)


@pytest.fixture(scope="module")
def stacks() -> list[ForecastStack]:
    """One stack as it is configured."""
    return together({"test": world.settings()})


def use(found: Forecast, key: str) -> Use:
    return next(each for each in found.uses if each.limit.key == key)


def test_a_cluster_takes_its_assignments_and_the_reader_one() -> None:
    found = of()
    [taken] = {use(found, "roleAssignments").used}
    for_each = taken - 1
    assert use(of(0), "roleAssignments").used == 1
    assert use(of(7), "roleAssignments").used == 1 + 7 * for_each
    assert use(found, "roleAssignments").more == (4000 - taken) // for_each


@given(st.integers(0, 400))
def test_as_many_more_clusters_fit_as_it_says_and_no_more(stacks: list[ForecastStack], clusters: int) -> None:
    for each in forecast(stacks, clusters).uses:
        if each.more:
            assert use(forecast(stacks, clusters + each.more), each.limit.key).share <= 1
        if each.more is not None:
            assert use(forecast(stacks, clusters + each.more + 1), each.limit.key).share > 1


def test_the_first_limit_is_the_one_with_the_fewest_more_clusters() -> None:
    found = of(100)
    assert found.first is not None
    assert found.first.more == min(
        each.more for each in found.uses if each.more is not None and each.limit.condition is None
    )
    assert found.first.limit is ROLE_ASSIGNMENTS


def test_a_limit_of_some_deployers_is_named_but_not_counted_as_first() -> None:
    found = of()
    assert [each.limit.key for each in found.conditional] == ["createdObjects", "renewalWrites"]
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
    reads = Use(limit=VAULT_READS, holder="vault v", used=4000 * 40, more=0)
    found = Forecast(clusters=1, uses=(reads,), longest_poll=timedelta(minutes=2))
    assert found.advice()["pollInterval"].startswith("an hour, the longest, is not enough")


def test_stacks_of_one_subscription_count_together() -> None:
    one, two = (world.settings(hostedClusters=[each]) for each in (world.hosted_cluster(), world.SECOND_CLUSTER))
    both = world.settings(hostedClusters=[world.hosted_cluster(), world.SECOND_CLUSTER])
    apart = use(forecast(together({"one": one, "two": two})), "roleAssignments")
    assert apart.used == use(forecast(together({"both": both})), "roleAssignments").used + 1


def test_a_cluster_stack_reads_the_vault_of_its_shared_stack() -> None:
    cluster = world.settings(sharedStack=SHARED, vault=None)
    shared = world.settings(hostedClusters=[])
    assert [each.vault for each in together({"cluster": cluster, "shared": shared})] == 2 * ["vault kv-idstack-dev"]
    assert [each.vault for each in together({"cluster": cluster})] == [f"vault of {SHARED}"]


def test_stacks_with_vaults_of_their_own_do_not_share_reads() -> None:
    one = world.settings()
    vault = {"name": "kv-idstack-two", "defaultAction": "Allow"}
    two = world.settings(hostedClusters=[world.SECOND_CLUSTER], vault=vault)
    alone = use(forecast(together({"one": one})), "vaultReads").used
    found = forecast(together({"one": one, "two": two}))
    assert use(found, "vaultReads").used == alone
    assert use(found, "subscriptionVaultReads").used == pytest.approx(2 * alone, abs=0.1)


def test_a_created_cluster_has_the_poll_interval_of_its_settings() -> None:
    create = {"nodePool": {"vmSize": "Standard_D4s_v5"}, "azureRBAC": True, "rotationPollInterval": "1m30s"}
    cluster = {"resourceGroup": "aks-dev", "name": "aks-mgmt-dev", "create": create, "access": {"login": "arm"}}
    [stack] = together({"test": world.settings(managementCluster=cluster)})
    assert stack.poll == timedelta(seconds=90)
    assert sum(each.amount for each in counts.role_assignments(stack) if each.cluster is None) == 2


@pytest.mark.parametrize("key_size", KEY_SIZES)
def test_no_document_is_longer_than_the_forecast_says(key_size: int) -> None:
    now = datetime.now(UTC)
    issued = issue("x" * 64, key_size=key_size, not_before=now, lifetime=timedelta(days=90))
    for encoding, factor in counts.ENCODED.items():
        value = encode(
            authentication_endpoint=max((cloud.authority_host for cloud in CLOUDS.values()), key=len),
            client_id=world.TENANT,
            tenant_id=world.TENANT,
            object_id=world.TENANT,
            certificate_pem=issued.certificate_pem,
            private_key_pem=issued.private_key_pem,
            not_before=now,
            not_after=now,
            renew_after=now,
            cannot_renew_after=now,
            object_encoding=encoding,
        )
        assert 0.95 < len(value) / (counts.DOCUMENT_BYTES[key_size] * factor) <= 1


def test_every_limit_has_a_source_and_a_key_of_its_own() -> None:
    assert len({each.key for each in LIMITS}) == len(LIMITS)
    assert all(each.source.address.startswith("learn.microsoft.com/") and each.most > 0 for each in LIMITS)


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_a_time_is_read_as_go_writes_it(hours: int, minutes: int, seconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s"
    expected = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if expected:
        assert duration(text) == expected
    else:
        with pytest.raises(ValueError, match="is no time"):
            duration(text)


@pytest.mark.parametrize("text", ["", "2", "m", "2m30", "-2m", "2 m", "soon"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        duration(text)


def test_a_preview_warns_from_80_percent_on_in_one_paragraph() -> None:
    assert screen.warning(of(), "dev") is None
    fits = use(of(), "roleAssignments").more
    assert fits is not None
    warned = screen.warning(of(int(fits * 0.85)), "dev")
    assert warned is not None
    assert "\n" not in warned
    assert "role assignments of a subscription: 3," in warned
    assert "`idstack forecast --stack dev`" in warned
