"""Refuses an update or a preview that would drop credentials in use."""

from __future__ import annotations

import pulumi

from components.azure.credential_store import CredentialStore, vault_of
from components.azure.providers import provider_error
from components.lookups.shared_stack import READ_STACK_OUTPUTS, this_stack
from identity.settings import Settings
from identity.settings.credential_loss import losses, refuse_losses, without_effect


async def check_credential_losses(settings: Settings, shared: CredentialStore | None) -> None:
    """Compare the configuration with this stack's own outputs, which name the credentials in use.

    Raises ConfigurationError with every loss that the configuration does not allow, RunError if the outputs cannot be
    read.
    """
    try:
        last = await pulumi.runtime.invoke_async(READ_STACK_OUTPUTS, {"name": this_stack()})
    except Exception as error:
        raise pulumi.RunError(
            f"this stack's outputs, which name the credentials in use, cannot be read: {provider_error(error)}. "
            "Nothing was changed; try again once the backend answers."
        ) from None
    found = losses(settings, vault_of(settings, shared), last["outputs"])
    refuse_losses(settings, found)
    for name in without_effect(settings, found):
        pulumi.log.warn(
            f"idstack:allowCredentialLoss names {name}, which loses nothing: remove it before it lets a mistake pass"
        )
