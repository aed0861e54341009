"""Azure Resource Manager and Microsoft Graph as a stack's deployer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from azure.core.credentials import TokenCredential

from identity.access.arm_environment import credential
from identity.access.azure_client import AzureClient
from identity.access.errors import AccessError, AzureRefusedError
from identity.clouds import CLOUDS, DEFAULT_CLOUD, Cloud, local_cloud
from ops.stack import local_cloud as local_clouds
from ops.stack.engine import Engine
from ops.stack.environment import variables
from ops.stack.errors import CommandError, MissingRightError

# Cloud, credential, and the file of the authorities to trust.
_SignIn: TypeAlias = tuple[Cloud, TokenCredential, str | None]


@contextmanager
def deployer(engine: Engine) -> Iterator[AzureClient]:
    """A client of the stack's cloud and tenant as its deployer; the clients of an engine share one sign-in.

    Raises CommandError for a refusal and for a stack without a tenant, MissingRightError for a 403.
    """
    with AzureClient(*engine.once("sign-in", lambda: _sign_in(engine))) as client:
        try:
            yield client
        except AzureRefusedError as error:
            raise (MissingRightError if error.is_forbidden else CommandError)(str(error)) from None


def _sign_in(engine: Engine) -> _SignIn:
    configuration, local = engine.configured(), local_clouds.of(engine.stack)
    if not configuration.get("tenantId"):
        raise CommandError(
            f"the stack {engine.stack} has no tenantId, so that Azure cannot be read; `idstack pulumi --stack "
            f"{engine.stack} -- config set tenantId <uuid>`"
        )
    cloud = local_cloud(local) if local else CLOUDS[configuration.get("cloud") or DEFAULT_CLOUD]
    options: dict[str, Any] = {"authority": cloud.authority_host}
    if local:
        options |= {"connection_verify": local.ca_file, "disable_instance_discovery": True}
    try:
        signed_in = credential(configuration["tenantId"], variables(engine.stack), **options)
    except AccessError as error:
        raise CommandError(str(error)) from None
    return cloud, signed_in, local.ca_file if local else None
