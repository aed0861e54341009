"""Azure Resource Manager and Microsoft Graph as a stack's deployer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from identity.azure.client import AzureClient
from identity.azure.connection import SignIn, signed_in
from identity.azure.errors import AccessError, AzureRefusedError
from identity.clouds import DEFAULT_CLOUD, LOCAL_CLOUD
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import variables
from ops.stack.errors import CommandError, MissingRightError


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


def _sign_in(engine: Engine) -> SignIn:
    configuration, is_local = engine.configured(), local_cloud.of(engine.stack) is not None
    if not configuration.get("tenantId"):
        raise CommandError(
            f"the stack {engine.stack} has no tenantId, so that Azure cannot be read; `idstack pulumi --stack "
            f"{engine.stack} -- config set tenantId <uuid>`"
        )
    cloud = LOCAL_CLOUD if is_local else str(configuration.get("cloud") or DEFAULT_CLOUD)
    try:
        return signed_in(cloud, configuration["tenantId"], variables(engine.stack))
    except AccessError as error:
        raise CommandError(str(error)) from None
