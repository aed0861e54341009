"""Connects to a cloud as the identity that the environment signs in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from azure.core.credentials import TokenCredential
from identity.azure.arm_environment import credential
from identity.azure.client import AzureClient
from identity.azure.errors import LoginRefusedError
from identity.clouds import CLOUDS, LOCAL_CLOUD, LOCAL_ENVIRONMENT_VARIABLE, Cloud, LocalEnvironment, local_cloud

SignIn: TypeAlias = tuple[Cloud, TokenCredential, str | None]
"""A cloud, a credential for it, and the file of the authorities to trust if they are not the machine's."""


def connected(name: str, tenant_id: str, environ: Mapping[str, str]) -> AzureClient:
    """A client with the sign-in of `signed_in`; raises as it does."""
    return AzureClient(*signed_in(name, tenant_id, environ))


def signed_in(name: str, tenant_id: str, environ: Mapping[str, str]) -> SignIn:
    """The environment's sign-in to the cloud of that name (`identity/clouds.py`), which begins with the first token.

    Raises LoginRefusedError for an unknown cloud, or the local one while it does not run, and as `credential` does.
    """
    cloud, ca_file = _cloud(name, environ)
    options: dict[str, Any] = {"authority": cloud.authority_host}
    if ca_file is not None:
        options |= {"connection_verify": ca_file, "disable_instance_discovery": True}
    return cloud, credential(tenant_id, environ, **options), ca_file


def _cloud(name: str, environ: Mapping[str, str]) -> tuple[Cloud, str | None]:
    """The cloud's endpoints, and the authorities to trust if they are not the machine's."""
    if name in CLOUDS:
        return CLOUDS[name], None
    record = environ.get(LOCAL_ENVIRONMENT_VARIABLE)
    if name != LOCAL_CLOUD or not record:
        known = ", ".join([*CLOUDS, LOCAL_CLOUD])
        raise LoginRefusedError(f'cloud: found "{name}"; accepted: {known}, the last with the local cloud running')
    local = LocalEnvironment.from_file(Path(record))
    return local_cloud(local), local.ca_file
