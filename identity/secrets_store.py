"""The secrets-store add-on of AKS, as ARM describes it: whether it mounts a renewed certificate in time.

All values of `config` are strings: `enableSecretRotation`, which is off by default, and `rotationPollInterval`, 2m by
default (Microsoft Learn, "csi-secrets-store-configuration-options").
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from identity.credentials.schedule import LONGEST_POLL

# The name in the AKS API; `az` calls the add-on azure-keyvault-secrets-provider.
ADD_ON: Final = "azureKeyvaultSecretsProvider"
ACCEPTED: Final = "secret rotation that is on and polls at least once an hour"
_POLL: Final = "rotationPollInterval"
_DEFAULT_POLL: Final = "2m"
# As the driver reads it: Go's time.ParseDuration, down to milliseconds.
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s)", re.ASCII)
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def rotation_fault(add_on: Mapping[str, Any]) -> str | None:
    """Why a renewed certificate does not reach the pods, or too late; None without a fault.

    `add_on` is the profile in `addonProfiles`. The result is also None without the add-on, because then another driver
    mounts the secrets.
    """
    if not add_on.get("enabled"):
        return None
    config = add_on.get("config")
    if str(_members(config).get("enableSecretRotation")).lower() != "true":
        return "secret rotation is off, so running pods never see a renewed certificate"
    try:
        interval = poll_interval(config)
    except ValueError as error:
        return f'rotationPollInterval is "{error}", which is not a duration'
    if interval > LONGEST_POLL:
        poll = _members(config)[_POLL]
        return f"rotationPollInterval is {poll}, and a renewal relies on a refresh of every mount within an hour"
    return None


def poll_interval(config: object) -> timedelta:
    """How long the driver waits between two polls; raises ValueError for a text that is not a duration."""
    return duration(str(_members(config).get(_POLL) or _DEFAULT_POLL))


def _members(config: object) -> Mapping[str, Any]:
    """The add-on's configuration; anything but an object configures nothing."""
    return config if isinstance(config, Mapping) else {}


def rotation_command(resource_group: str, cluster: str) -> str:
    """The Azure CLI's command that switches the rotation on, with the default interval."""
    where = shlex.join(["--resource-group", resource_group, "--name", cluster])
    return f"az aks update {where} --enable-secret-rotation --rotation-poll-interval {_DEFAULT_POLL}"


def duration(text: str) -> timedelta:
    """Parse a duration of Go (`1h0m0s`, `90s`, `1.5h`); raises ValueError for anything else, and for zero."""
    parts = list(_PART.finditer(text))
    if "".join(part.group() for part in parts) != text:
        raise ValueError(text)
    interval = timedelta(seconds=sum(float(part[1]) * _SECONDS[part[2]] for part in parts))
    if not interval:
        raise ValueError(text)
    return interval
