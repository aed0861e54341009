"""Refuses an update or a preview that would drop credentials in use, or change how a hosted cluster signs in."""

from __future__ import annotations

from typing import Any

import pulumi

from components.azure.credential_store import CredentialStore, vault_of
from identity.outputs import StackOutputs
from identity.settings import Settings
from identity.settings.rules.authentication import refuse_changed_authentication
from identity.settings.rules.credential_loss import find_losses, refuse_losses, unused_allowances


def check_credential_losses(settings: Settings, shared: CredentialStore | None, last: StackOutputs[Any]) -> None:
    """Compare the configuration with the outputs of the `last` complete run, which name the credentials in use.

    Raises ConfigurationError with every loss that the configuration does not allow, and with every cluster that would
    sign in another way.
    """
    refuse_changed_authentication(settings, last)
    losses = find_losses(settings, vault_of(settings, shared), last)
    refuse_losses(settings, losses)
    for name in unused_allowances(settings, losses):
        pulumi.log.warn(
            f"idstack:allowCredentialLoss names {name}, which loses nothing: remove it before it lets a mistake pass"
        )
