"""ARM's request limits: a token bucket for each principal, subscription and kind of operation.

Source of rule and figures: Microsoft Learn, "Understand how Azure Resource Manager throttles requests" (the
architecture of 2024). The message is quoted in azure-docs issue 105248 and in the logs of many users.
"""

from __future__ import annotations

from collections.abc import Mapping

from localcloud.azure.shared.http import ServiceError
from localcloud.azure.shared.token_buckets import TokenBuckets


class Throttle:
    """Counts requests. `limits` has (bucket size, tokens refilled per second) for read, write and delete."""

    def __init__(self, limits: Mapping[str, tuple[float, float]]) -> None:
        self._limits = limits
        self._buckets = TokenBuckets(limits)

    def take(self, actor: str, subscription: str | None, kind: str) -> Mapping[str, str]:
        """Count one request of an object id; returns the headers for its answer. A kind without a limit is not counted.

        Raises:
            ServiceError: 429 with Retry-After, when the bucket is empty. Such a request takes no token.
        """
        if kind not in self._limits:
            return {}
        holder = (actor, subscription)
        if seconds := self._buckets.wait(holder, kind):
            raise _throttled(actor, subscription, kind, seconds)
        level = "tenant" if subscription is None else "subscription"
        return {f"x-ms-ratelimit-remaining-{level}-{kind}s": str(self._buckets.take(holder, kind))}


def _throttled(actor: str, subscription: str | None, kind: str, seconds: int) -> ServiceError:
    level, whose = ("Tenant", "tenant") if subscription is None else ("Subscription", f"subscription '{subscription}'")
    return ServiceError(
        429,
        f"{level}RequestsThrottled",
        f"Number of '{kind}' requests for {whose} actor '{actor}' exceeded. Please try again after '{seconds}' seconds "
        "after additional tokens are available. Refer to https://aka.ms/arm-throttling for additional information.",
        {"Retry-After": str(seconds)},
    )
