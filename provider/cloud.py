"""The cloud in which a resource lives, and requests to it as the identity that runs the engine."""

from __future__ import annotations

import os
import threading
from datetime import datetime
from typing import Final

from identity.azure.client import AzureClient
from identity.azure.connection import connected
from identity.azure.errors import LoginRefusedError
from identity.azure.obstacles import locks, unregistered
from identity.azure.registered_certificates import certificate_days
from identity.clouds import LOCAL_CLOUD
from identity.credentials import rfc3339
from identity.credentials.certificate_rules import CLOCK_SKEW
from identity.naming import subscription_id
from identity.plugin_schema import ObstacleQuestion
from plugin import PluginError, Props

# A client for each cloud and tenant keeps its connections and tokens as long as the plugin runs.
_CLIENTS: Final[dict[tuple[str, str], AzureClient]] = {}
_LOCK: Final = threading.Lock()


def client(cloud: str, tenant_id: str) -> AzureClient:
    """Requests in the cloud of that name (`identity/clouds.py`); raises `PluginError` for an unknown one."""
    with _LOCK:
        if (cloud, tenant_id) not in _CLIENTS:
            try:
                _CLIENTS[cloud, tenant_id] = connected(cloud, tenant_id, os.environ)
            except LoginRefusedError as error:
                raise PluginError(str(error)) from None
        return _CLIENTS[cloud, tenant_id]


def find_obstacles(args: ObstacleQuestion) -> Props:
    """What would refuse a run, as far as it can be read; raises `PluginError` for an unknown cloud."""
    azure, subscription = client(args["cloud"], args["tenantId"]), subscription_id(args["subscriptionId"])
    return {
        "unregistered": unregistered(azure, subscription, args["namespaces"]),
        "locks": locks(azure, args["scopes"]),
        "certificateDays": certificate_days(azure) if args["makesApplications"] else None,
    }


# RFC 3339; stops the clock of a local stack at that moment, for tests of renewals.
CLOCK_VARIABLE: Final = "IDSTACK_CLOCK"


def azure_time(cloud: str) -> datetime:
    """The time in UTC; raises `PluginError` if `IDSTACK_CLOCK` is malformed, or set outside of the local cloud."""
    fixed = os.environ.get(CLOCK_VARIABLE)
    if not fixed:
        return rfc3339.utc_now()
    if cloud != LOCAL_CLOUD:
        raise PluginError(f"{CLOCK_VARIABLE} is set, which stops the clock of local stacks in tests; unset it")
    try:
        return rfc3339.parse(fixed)
    except ValueError:
        raise PluginError(
            f"{CLOCK_VARIABLE}: found no timestamp; accepted: RFC 3339 such as {rfc3339.EXAMPLE}; correct or unset it"
        ) from None


def require_right(here: datetime, azure: datetime | None, left_out: str = "no certificate was issued") -> None:
    """Raises `PluginError` if this machine's clock and Azure's (the `Date` of an answer) differ by over five minutes.

    A certificate that was issued by a wrong clock would decide about renewals until it ends. The message begins with
    `left_out`, what is not done.
    """
    if azure is None:
        return
    if abs(here - azure) > CLOCK_SKEW:
        raise PluginError(
            f"{left_out}, as this machine's clock is wrong: it shows {rfc3339.render(here)}, Azure "
            f"{rfc3339.render(azure)}; set it right, then run the command again"
        )
