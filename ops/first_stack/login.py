"""The tenant, subscription and cloud of the current sign-in: the ARM_* variables, else the Azure CLI."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from identity.clouds import DEFAULT_CLOUD
from ops.stack.errors import CommandError

# `az cloud list`, and the values of ARM_ENVIRONMENT.
_CLOUDS: Final = {
    "azurecloud": DEFAULT_CLOUD,
    "azureusgovernment": "AzureUSGovernmentCloud",
    "azurechinacloud": "AzureChinaCloud",
    "public": DEFAULT_CLOUD,
    "usgovernment": "AzureUSGovernmentCloud",
    "china": "AzureChinaCloud",
}
_COMMAND: Final = ("az", "account", "show", "--output", "json")
_ANSWERED_WITHIN: Final = 60.0  # seconds
SIGN_IN: Final = "sign in with `az login`, or set ARM_TENANT_ID and ARM_SUBSCRIPTION_ID"


@dataclass(frozen=True)
class AzureAccount:
    """The ids are as Azure has them, in lower case; `cloud` is a name of `identity.clouds.CLOUDS`."""

    tenant_id: str
    subscription_id: str
    cloud: str = DEFAULT_CLOUD


def signed_in(environment: Mapping[str, str]) -> AzureAccount | None:
    """Who is signed in; None if nobody is.

    Raises CommandError if one of the variables and the Azure CLI name different tenants or subscriptions, and for a
    cloud that this program does not know.
    """
    tenant, subscription = environment.get("ARM_TENANT_ID"), environment.get("ARM_SUBSCRIPTION_ID")
    if tenant and subscription:
        return AzureAccount(
            tenant.lower(), subscription.lower(), _cloud(environment.get("ARM_ENVIRONMENT") or "public")
        )
    account = _account(environment)
    if account is None:
        return None
    found = AzureAccount(account["tenantId"].lower(), account["id"].lower(), _cloud(account["environmentName"]))
    for name, given, known in (
        ("ARM_TENANT_ID", tenant, found.tenant_id),
        ("ARM_SUBSCRIPTION_ID", subscription, found.subscription_id),
    ):
        if given and given.lower() != known:
            raise CommandError(
                f"{name} is {given}, and `az account show` says {known}. Unset {name}, or set both ARM_TENANT_ID and "
                "ARM_SUBSCRIPTION_ID; nothing was written"
            )
    return found


def _account(environment: Mapping[str, str]) -> dict[str, str] | None:
    """What `az account show` prints; None without the Azure CLI, and if nobody is signed in there."""
    if shutil.which(_COMMAND[0], path=environment.get("PATH")) is None:
        return None
    try:
        done = subprocess.run(
            _COMMAND,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWERED_WITHIN,
            check=False,
        )
        found = json.loads(done.stdout) if done.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError):
        return None
    is_whole = isinstance(found, dict) and all(
        isinstance(found.get(key), str) for key in ("tenantId", "id", "environmentName")
    )
    return found if is_whole else None


def _cloud(name: str) -> str:
    try:
        return _CLOUDS[name.lower()]
    except KeyError:
        raise CommandError(
            f"the login is to the cloud {name}; this program knows {', '.join(sorted(set(_CLOUDS.values())))}. "
            "`az cloud set --name AzureCloud` chooses another one; nothing was written"
        ) from None
