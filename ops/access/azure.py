"""Azure Resource Manager and Microsoft Graph as a stack's deployer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from azure.core.credentials import TokenCredential

from identity.access.arm_environment import credential
from identity.access.azure_client import AzureClient
from identity.access.errors import AccessError, AzureRefusedError
from identity.clouds import CLOUDS, Cloud, LocalEnvironment, local_cloud
from ops.stack import local_cloud as local_clouds
from ops.stack.engine import Engine
from ops.stack.environment import variables
from ops.stack.errors import CommandError, MissingRightError

# Cloud, credential, and the file of the authorities to trust.
_SignIn: TypeAlias = tuple[Cloud, TokenCredential, str | None]


@contextmanager
def deployer(engine: Engine) -> Iterator[AzureClient]:
    """A client of the stack's cloud and tenant as its deployer; the clients of an engine share one sign-in.

    Raises CommandError for a refusal, MissingRightError for a 403.
    """
    signed_in = engine.once(
        "sign-in", lambda: _sign_in(engine.stack, engine.configured(), local_clouds.of(engine.stack))
    )
    with _client(signed_in) as client:
        yield client


@contextmanager
def deployer_of(stack: str, configuration: Mapping[str, Any], local: LocalEnvironment | None) -> Iterator[AzureClient]:
    """A client as `deployer`'s, for a stack with another configuration than the engine reads.

    Args:
        stack: its name, which decides about the variables of the sign-in.
        configuration: has `cloud` and `tenantId`.
        local: the endpoints of the local cloud, for a local stack.
    """
    with _client(_sign_in(stack, configuration, local)) as client:
        yield client


def _sign_in(stack: str, configuration: Mapping[str, Any], local: LocalEnvironment | None) -> _SignIn:
    cloud = local_cloud(local) if local else CLOUDS[configuration["cloud"]]
    options: dict[str, Any] = {"authority": cloud.authority_host}
    if local:
        options |= {"connection_verify": local.ca_file, "disable_instance_discovery": True}
    try:
        signed_in = credential(configuration["tenantId"], variables(stack), **options)
    except AccessError as error:
        raise CommandError(str(error)) from None
    return cloud, signed_in, local.ca_file if local else None


@contextmanager
def _client(signed_in: _SignIn) -> Iterator[AzureClient]:
    with AzureClient(*signed_in) as client:
        try:
            yield client
        except AzureRefusedError as error:
            raise (MissingRightError if error.is_forbidden else CommandError)(str(error)) from None
