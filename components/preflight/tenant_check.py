"""The checks that the stack stays in its tenant, and that the providers sign in to it."""

from __future__ import annotations

from typing import Any, Final

import pulumi

from components.azure.deployer import Deployer
from components.azure.providers import Providers, provider_error
from identity.outputs import StackOutputs
from identity.settings import ConfigurationError, Problem, Settings
from identity.settings.schema.problems import to_set

# Entra ID's code for an assertion that is not valid yet, or no longer, by its own clock.
_OUT_OF_TIME: Final = "AADSTS700024"


def check_tenant_of_last_run(settings: Settings, last: StackOutputs[Any]) -> None:
    """Raise ConfigurationError if the outputs of the `last` complete run are of another tenant.

    Nothing moves between tenants: all that the state names would be lost to this stack.
    """
    before = last.get("tenantId")
    if before is None or before.lower() == settings.tenant_id:
        return
    place = ("tenantId",)
    problem = Problem(
        place=place,
        rule="tenant-of-last-run",
        found=f'"{settings.tenant_id}"',
        accepted=f'"{before}", the tenant of this stack\'s last complete run: nothing moves to another tenant',
        fix=f"{to_set(place, before)}; a stack in another tenant has another name: `idstack init <name>`",
    )
    raise ConfigurationError([problem])


async def check_tenant(settings: Settings, providers: Providers) -> Deployer:
    """Compare the provider's tenant with the configured one. Raises RunError if they differ or the sign-in fails."""
    try:
        client_config = await pulumi.runtime.invoke_async(
            "azure-native:authorization:getClientConfig", {}, pulumi.InvokeOptions(provider=providers.azure)
        )
    except Exception as error:
        reason = provider_error(error).rstrip(".")
        fix = (
            f"Sign in with `az login --tenant {settings.tenant_id}` (in CI: set the ARM_* variables of the providers)."
        )
        if _OUT_OF_TIME in reason:
            fix = "This machine's clock and Entra ID's are more than five minutes apart: set it right."
        raise pulumi.RunError(f"the deployer cannot sign in to Azure: {reason}. Nothing was changed. {fix}") from None
    if client_config["tenantId"].lower() != settings.tenant_id:
        raise pulumi.RunError(
            f"signed in to the tenant {client_config['tenantId']}, but idstack:tenantId is {settings.tenant_id}. "
            f"Nothing was changed. Sign in with `az login --tenant {settings.tenant_id}` (in CI: set ARM_TENANT_ID), "
            f"or correct it with {to_set(('tenantId',), client_config['tenantId'])}."
        )
    return Deployer.of(client_config)
