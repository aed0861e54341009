"""A stack as the forecast knows it: its settings out of its own file, and what the shared stack decides for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from identity.settings import ConfigurationError, HostedClusterSettings, Settings
from identity.settings.problems import for_stack
from ops.stack.engine import Engine
from ops.stack.errors import CommandError
from ops.stack.settings import load, texts_in_the_file_of

# Of the AKS add-on (learn.microsoft.com/azure/aks/csi-secrets-store-configuration-options).
DEFAULT_POLL: Final = timedelta(minutes=2)
_DURATION: Final = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,4})m)?(?:(\d{1,4})s)?", re.ASCII)


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
        """Holder of what is limited by subscription."""
        return f"subscription {self.settings.subscription_id}"

    @property
    def tenant(self) -> str:
        """Holder of what is limited by tenant."""
        return f"tenant {self.settings.tenant_id}"


def read(names: Sequence[str], poll: timedelta | None = None) -> list[ForecastStack]:
    """The stacks of these names; `poll` is that of management clusters that exist already, AKS's default if None.

    A shared stack among them gives its vault's name and its cluster's poll interval to those that name it. Raises
    CommandError for a stack without a configuration, for an encrypted value and, with the report, for a wrong one.
    """
    return together({name: _settings(Engine(name)) for name in names}, poll)


def _settings(engine: Engine) -> Settings:
    try:
        return load(engine.stack, texts_in_the_file_of(engine), engine.written())
    except ConfigurationError as error:
        raise CommandError(for_stack(f"{engine.stack}: {error}", engine.stack)) from None


def together(found: Mapping[str, Settings], poll: timedelta | None = None) -> list[ForecastStack]:
    """The stacks with these settings, by name; see `read`."""

    def owner(settings: Settings) -> Settings | None:
        if settings.shared_stack is None:
            return settings
        return found.get(settings.shared_stack.rpartition("/")[2])

    def vault(settings: Settings) -> str:
        shared = owner(settings)
        if shared is None:
            return f"vault of {settings.shared_stack}"
        if shared.vault is None:
            return "no vault"
        return f"vault {shared.vault.name}"

    def interval(settings: Settings) -> timedelta:
        for each in (settings, owner(settings)):
            cluster = None if each is None else each.management_cluster
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
        for name, settings in found.items()
    ]


def duration(text: str) -> timedelta:
    """`1h`, `2m`, `1m30s` as a time; raises ValueError for anything else and for no time at all."""
    match = _DURATION.fullmatch(text)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    found = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if not found:
        raise ValueError(f"{text!r} is no time such as 2m or 1m30s")
    return found
