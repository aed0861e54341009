"""Has the plugin prefetch the secrets of the renewal schedules, in parallel with the other look-ups.

The plugin keeps the results for the schedules (`provider/secret_prefetch.py`); without them the schedules decide the
same, but one after another.
"""

from __future__ import annotations

import pulumi

from identity import resource_types
from identity.plugin_schema import SecretAddresses
from identity.settings import Settings


async def prefetch_secrets(settings: Settings, vault: str) -> None:
    """Prefetch every secret that a schedule decides by; `vault` is the vault's ARM id, empty without one."""
    if not vault:
        return
    arguments: SecretAddresses = {
        "cloud": settings.cloud.name,
        "tenantId": settings.tenant_id,
        "vaultId": vault,
        "secretNames": _secret_names(settings),
    }
    await pulumi.runtime.invoke_async(resource_types.PREFETCH_SECRETS, {**arguments})


def _secret_names(settings: Settings) -> list[str]:
    return [
        identity.secret_name
        for cluster in settings.hosted_clusters
        for row in cluster.enabled_rows
        if (identity := cluster.identity(row)).source == "entra-application"
    ]
