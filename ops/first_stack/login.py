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
    """The ids are in lower case; `cloud` is a name of `identity.clouds.CLOUDS`."""

    tenant_id: str
    subscription_id: str
    cloud: str = DEFAULT_CLOUD


def signed_in(environment: Mapping[str, str]) -> AzureAccount | None:
    """The account of the sign-in; None without one.

    Raises CommandError if a variable and the Azure CLI name different tenants or subscriptions, and for an unknown
    cloud.
    """
    tenant, subscription = environment.get("ARM_TENANT_ID"), environment.get("ARM_SUBSCRIPTION_ID")
    if tenant and subscription:
        return AzureAccount(
            tenant.lower(), subscription.lower(), _cloud(environment.get("ARM_ENVIRONMENT") or "public")
        )
    shown = _account(environment)
    if shown is None:
        return None
    account = AzureAccount(shown["tenantId"].lower(), shown["id"].lower(), _cloud(shown["environmentName"]))
    for name, value, actual in (
        ("ARM_TENANT_ID", tenant, account.tenant_id),
        ("ARM_SUBSCRIPTION_ID", subscription, account.subscription_id),
    ):
        if value and value.lower() != actual:
            raise CommandError(
                f"{name} is {value}, and `az account show` says {actual}. Unset {name}, or set both ARM_TENANT_ID and "
                "ARM_SUBSCRIPTION_ID; nothing was written"
            )
    return account


def _account(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The output of `az account show`; None without the Azure CLI, and without a sign-in there."""
    if shutil.which(_COMMAND[0], path=environment.get("PATH")) is None:
        return None
    try:
        finished = subprocess.run(
            _COMMAND,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWERED_WITHIN,
            check=False,
        )
        account = json.loads(finished.stdout) if finished.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError):
        return None
    is_whole = isinstance(account, dict) and all(
        isinstance(account.get(key), str) for key in ("tenantId", "id", "environmentName")
    )
    return account if is_whole else None


def _cloud(name: str) -> str:
    try:
        return _CLOUDS[name.lower()]
    except KeyError:
        raise CommandError(
            f"the login is to the cloud {name}; this program knows {', '.join(sorted(set(_CLOUDS.values())))}. "
            "`az cloud set --name AzureCloud` selects another one; nothing was written"
        ) from None
