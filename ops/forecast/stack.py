"""The stacks of a forecast: the settings in each one's own file, and what its shared stack decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from identity.secrets_store import duration
from identity.settings import HostedClusterSettings, Settings
from ops.stack.engine import Engine
from ops.stack.settings import settings_of

# Of the AKS add-on (learn.microsoft.com/azure/aks/csi-secrets-store-configuration-options).
DEFAULT_POLL: Final = timedelta(minutes=2)


@dataclass(frozen=True, kw_only=True)
class ForecastStack:
    """One stack. `vault` names the vault of its credentials; `poll` is how often the CSI driver reads each of them.

    With `reads_by_secret` the key-vault-user has a role on each secret, as the stack of the vault decides.
    """

    name: str
    settings: Settings
    vault: str
    poll: timedelta
    reads_by_secret: bool = False

    @property
    def clusters(self) -> tuple[HostedClusterSettings, ...]:
        """Its hosted clusters."""
        return self.settings.hosted_clusters

    @property
    def subscription(self) -> str:
        """Holder of the limits of a subscription."""
        return f"subscription {self.settings.subscription_id}"

    @property
    def tenant(self) -> str:
        """Holder of the limits of a tenant."""
        return f"tenant {self.settings.tenant_id}"


def read(names: Sequence[str], poll: timedelta | None = None) -> list[ForecastStack]:
    """The stacks of these names; `poll` is that of existing management clusters, AKS's default if None.

    A stack has the vault and the poll interval of its shared stack, if that is among them. Raises CommandError as
    `settings_of`.
    """
    return combined({name: settings_of(Engine(name)) for name in names}, poll)


def combined(settings_by_name: Mapping[str, Settings], poll: timedelta | None = None) -> list[ForecastStack]:
    """The stacks with these settings, by name; see `read`."""

    def owner(settings: Settings) -> Settings | None:
        if settings.shared_stack is None:
            return settings
        return settings_by_name.get(settings.shared_stack.rpartition("/")[2])

    def vault(settings: Settings) -> str:
        shared = owner(settings)
        if shared is None:
            return f"vault of {settings.shared_stack}"
        if shared.vault is None:
            return "no vault"
        return f"vault {shared.vault.name}"

    def interval(settings: Settings) -> timedelta:
        for candidate in (settings, owner(settings)):
            cluster = None if candidate is None else candidate.management_cluster
            if cluster is not None and cluster.create is not None:
                return duration(cluster.create.rotation_poll_interval)
        return poll or DEFAULT_POLL

    return [
        ForecastStack(
            name=name,
            settings=settings,
            vault=vault(settings),
            poll=interval(settings),
            reads_by_secret=(owner(settings) or settings).reader_scope == "secrets",
        )
        for name, settings in settings_by_name.items()
    ]
