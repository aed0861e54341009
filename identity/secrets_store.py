"""The secrets-store add-on of AKS, as ARM describes it: whether it brings a renewed certificate into the pods in time.

`config` has text alone: `enableSecretRotation`, which is off unless somebody asked for it, and `rotationPollInterval`,
2m by default (Microsoft Learn, "csi-secrets-store-configuration-options").
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
ACCEPTED: Final = "secret rotation that is on, and polls every hour or more often"
_POLL: Final = "rotationPollInterval"
_DEFAULT_POLL: Final = "2m"
# As the driver reads it: Go's time.ParseDuration, of which nobody needs less than milliseconds.
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s)", re.ASCII)
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def rotation_fault(add_on: Mapping[str, Any]) -> str | None:
    """What keeps a renewed certificate from the pods, or keeps it too long; None for nothing.

    `add_on` is the profile in `addonProfiles`. Without the add-on it is None, too: another driver mounts the secrets,
    and nobody asks that one.
    """
    if not add_on.get("enabled"):
        return None
    config = add_on.get("config") or {}
    if str(config.get("enableSecretRotation")).lower() != "true":
        return "secret rotation is off, so that no pod that runs ever sees a renewed certificate"
    poll = str(config.get(_POLL) or _DEFAULT_POLL)
    try:
        interval = poll_interval(config)
    except ValueError:
        return f'rotationPollInterval is "{poll}", which is not a duration'
    if interval > LONGEST_POLL:
        return f"rotationPollInterval is {poll}, and a renewal counts on every pod's mount being new within the hour"
    return None


def poll_interval(config: Mapping[str, Any]) -> timedelta:
    """How long the driver leaves a mounted secret alone; raises ValueError for a text that is not a duration."""
    return duration(str(config.get(_POLL) or _DEFAULT_POLL))


def rotation_command(resource_group: str, cluster: str) -> str:
    """The line of the Azure CLI that switches the rotation on, at its default pace."""
    where = shlex.join(["--resource-group", resource_group, "--name", cluster])
    return f"az aks update {where} --enable-secret-rotation --rotation-poll-interval {_DEFAULT_POLL}"


def duration(text: str) -> timedelta:
    """A time as Go writes it (`1h0m0s`, `90s`, `1.5h`); raises ValueError for anything else, and for none at all."""
    parts = list(_PART.finditer(text))
    if "".join(each.group() for each in parts) != text:
        raise ValueError(text)
    found = timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in (each.groups() for each in parts)))
    if not found:
        raise ValueError(text)
    return found
