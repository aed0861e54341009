"""Has the plugin look at the secrets of the renewal schedules, side by side with the other look-ups.

The plugin keeps what it sees for the schedules (`provider/early_looks.py`): nothing comes back, and without this they
decide the same, one after another.
"""

from __future__ import annotations

import pulumi

from identity import resource_types
from identity.catalogue import CONTROL_PLANE
from identity.plugin_schema import SecretAddresses
from identity.settings import Settings


async def look_at_secrets(settings: Settings, vault: str) -> None:
    """Begin a look at each secret that a schedule decides by; `vault` is the vault's ARM id, empty without one."""
    if not vault:
        return
    arguments: SecretAddresses = {
        "cloud": settings.cloud.name,
        "tenantId": settings.tenant_id,
        "vaultId": vault,
        "secretNames": _secret_names(settings),
    }
    await pulumi.runtime.invoke_async(resource_types.LOOK_AT_SECRETS, {**arguments})


def _secret_names(settings: Settings) -> list[str]:
    return [
        identity.secret_name
        for cluster in settings.hosted_clusters
        for row in CONTROL_PLANE
        if (identity := cluster.identity(row)).enabled and identity.source == "entra-application"
    ]
