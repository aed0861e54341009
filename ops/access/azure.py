"""Azure Resource Manager and Microsoft Graph as a stack's deployer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from azure.core.exceptions import AzureError

from identity.azure.client import AzureClient
from identity.azure.connection import SignIn, signed_in
from identity.azure.errors import AccessError
from identity.clouds import DEFAULT_CLOUD, LOCAL_CLOUD
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import variables
from ops.stack.errors import CommandError


@contextmanager
def deployer(engine: Engine) -> Iterator[AzureClient]:
    """A client of the stack's cloud and tenant as its deployer; the clients of an engine share one sign-in.

    Raises CommandError for a stack without a tenant, AccessError without a sign-in, the client AzureRefusedError.
    """
    with AzureClient(*engine.once("sign-in", lambda: _sign_in(engine))) as client:
        yield client


def sign_in_refusal(engine: Engine) -> str | None:
    """Why the deployer cannot sign in to Azure, in one line, tried once; None if it can.

    Raises CommandError as `deployer` does.
    """
    try:
        cloud, credential, _ = engine.once("sign-in", lambda: _sign_in(engine))
        credential.get_token(cloud.arm_scope)
    except (AccessError, AzureError) as error:
        return " ".join(str(error).split())
    return None


def _sign_in(engine: Engine) -> SignIn:
    configuration, is_local = engine.configured(), local_cloud.of(engine.stack) is not None
    if not configuration.get("tenantId"):
        raise CommandError(
            f"the stack {engine.stack} has no tenantId, so that Azure cannot be read; `.venv/bin/idstack pulumi "
            f"--stack {engine.stack} -- config set tenantId <uuid>`"
        )
    cloud = LOCAL_CLOUD if is_local else str(configuration.get("cloud") or DEFAULT_CLOUD)
    return signed_in(cloud, configuration["tenantId"], variables(engine.stack))
