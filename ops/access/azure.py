"""Azure Resource Manager and Microsoft Graph as a stack's deployer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from identity.access.arm_environment import credential
from identity.access.azure_client import AzureClient
from identity.access.errors import AccessError, AzureRefusedError
from identity.clouds import CLOUDS, LocalEnvironment, local_cloud
from ops.stack.environment import variables
from ops.stack.errors import CommandError, MissingRightError


@contextmanager
def deployer(stack: str, configuration: Mapping[str, Any], local: LocalEnvironment | None) -> Iterator[AzureClient]:
    """A client of the configured cloud and tenant as the stack's deployer.

    Raises CommandError for a refusal, MissingRightError for a 403.

    Args:
        stack: its name, which decides about the variables of the sign-in.
        configuration: has `cloud` and `tenantId`.
        local: the endpoints of the local cloud, for a local stack.
    """
    cloud = local_cloud(local) if local else CLOUDS[configuration["cloud"]]
    options: dict[str, Any] = {"authority": cloud.authority_host}
    if local:
        options |= {"connection_verify": local.ca_file, "disable_instance_discovery": True}
    try:
        signed_in = credential(configuration["tenantId"], variables(stack), **options)
    except AccessError as error:
        raise CommandError(str(error)) from None
    with AzureClient(cloud, signed_in, local.ca_file if local else None) as clients:
        try:
            yield clients
        except AzureRefusedError as error:
            raise (MissingRightError if error.is_forbidden else CommandError)(str(error)) from None
