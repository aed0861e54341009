"""ARM's limits per caller, at the figures that Azure publishes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from localcloud.azure.arm.api import Throttle
from localcloud.azure.shared.faults import NO_DELAYS, Faults
from localcloud.azure.shared.refusals import ServiceError
from localcloud.core import clock
from localcloud.testing.arm import GROUP, SUBSCRIPTION, ArmWorld, error
from tests.standing_clock import standing

__all__ = ["standing"]
# Buckets fill while the test runs, so time passes only where it is moved ahead.
pytestmark = pytest.mark.usefixtures("standing")


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[ArmWorld]:
    """An ARM that takes three reads at once and one more every ten seconds."""
    built = ArmWorld(tmp_path, replace(NO_DELAYS, arm_requests={"read": (3, 0.1)}))
    yield built
    built.store.close()


@pytest.mark.parametrize(
    ("kind", "at_once", "each_second"), [("read", 250, 25), ("write", 200, 10), ("delete", 200, 10)]
)
def test_the_limits_are_azures_own_unless_configured(kind: str, at_once: int, each_second: int) -> None:
    throttle = Throttle(Faults().arm_requests)
    remaining = f"x-ms-ratelimit-remaining-subscription-{kind}s"

    counted = [int(throttle.take("me", "s", kind)[remaining]) for _ in range(at_once)]
    assert counted == [*reversed(range(at_once))]
    with clock.moved_ahead(timedelta(seconds=1)):
        assert int(throttle.take("me", "s", kind)[remaining]) == each_second - 1


def test_too_many_requests_are_refused_with_a_retry_after(narrow: ArmWorld) -> None:
    answers = [narrow.call("GET", GROUP) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[0].headers["x-ms-ratelimit-remaining-subscription-reads"] == "2"
    assert "Please try again after '10' seconds" in error(answers[3])[2]
    assert answers[3].headers["Retry-After"] == "10"
    with clock.moved_ahead(timedelta(seconds=10)):
        assert narrow.call("GET", GROUP).status_code == 200


def test_callers_and_kinds_of_operation_are_counted_apart(narrow: ArmWorld) -> None:
    other = narrow.principal(("Reader", SUBSCRIPTION))
    for _ in range(4):
        narrow.call("GET", GROUP)

    assert narrow.call("GET", GROUP, caller=other).status_code == 200
    assert narrow.create_vault()["name"] == "kv-idstack-local", "writes are not reads"


def test_a_throttled_request_takes_no_token() -> None:
    throttle = Throttle({"read": (1, 1)})
    throttle.take("me", None, "read")
    for _ in range(5):
        with pytest.raises(ServiceError, match="429 TenantRequestsThrottled"):
            throttle.take("me", None, "read")
    with clock.moved_ahead(timedelta(seconds=1.1)):
        assert throttle.take("me", None, "read") == {"x-ms-ratelimit-remaining-tenant-reads": "0"}
