"""The login of an older kubeconfig for AKS, in three generations.

They are the `azure` auth-provider, which client-go removed in 0.26, kubelogin's exec block, and our own. Tenant, server
application and cloud are kept; tokens are dropped.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from identity.aks.kubeconfig import MalformedKubeconfigError
from identity.aks.login import AKS_SERVER_APP_ID
from identity.clouds import CLOUDS

# kubelogin and the auth-provider take a shorter name as well.
_ENVIRONMENTS: Final[Mapping[str, str]] = {
    **{cloud.name.upper(): cloud.authority_host for cloud in CLOUDS.values()},
    "AZUREUSGOVERNMENT": CLOUDS["AzureUSGovernmentCloud"].authority_host,
}
_FLAGS: Final = ("--legacy", "--pop-enabled", "--disable-environment-override")
# Go's strconv.ParseBool.
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})


@dataclass(frozen=True)
class LegacyLogin:
    """The login of an older kubeconfig; None for what it does not specify."""

    tenant_id: str | None = None
    server_id: str | None = None
    authority_host: str | None = None


def is_convertible(user: Mapping[str, Any]) -> bool:
    """Whether a user has one of the three logins."""
    if (user.get("auth-provider") or {}).get("name") == "azure":
        return True
    block = user.get("exec") or {}
    program = re.split(r"[/\\]", block.get("command") or "")[-1].lower().removesuffix(".exe")
    # The OIDC tool of the same name has an issuer, and no server application.
    return program == "idstack" or (program == "kubelogin" and _options(block.get("args") or []).server_id is not None)


def legacy_login_of(user: Mapping[str, Any], name: str) -> LegacyLogin:
    """The login of a user's block; raises MalformedKubeconfigError for a cluster that no current token can reach."""
    if (user.get("auth-provider") or {}).get("name") == "azure":
        return _of_auth_provider(user["auth-provider"].get("config") or {}, name)
    return _of_exec(user.get("exec") or {}, name)


def _of_auth_provider(config: Mapping[str, str], name: str) -> LegacyLogin:
    server = config.get("apiserver-id") or None
    if server is not None and server.lower() != AKS_SERVER_APP_ID:
        raise _own_applications(name, server)
    return LegacyLogin(config.get("tenant-id") or None, server, _authority(config.get("environment"), name))


def _own_applications(name: str, application: str) -> MalformedKubeconfigError:
    return MalformedKubeconfigError(
        f'user "{name}" is of a cluster with server and client applications of its own ({application}): the legacy '
        "integration, at which no service principal can sign in. Move the cluster to AKS-managed Entra ID with "
        "`az aks update --enable-aad`, then fetch its kubeconfig again"
    )


def _of_exec(block: Mapping[str, Any], name: str) -> LegacyLogin:
    options = _options(block.get("args") or [])
    if options.legacy in _TRUE:
        raise _own_applications(name, "--legacy")
    if options.pop_enabled in _TRUE:
        raise MalformedKubeconfigError(
            f'user "{name}" signs in with a proof-of-possession token (--pop-enabled), which only kubelogin makes; '
            "nothing was changed. Keep its kubeconfig"
        )
    variables = {variable.get("name"): variable.get("value") for variable in block.get("env") or ()}
    # Unless it reads no variables, kubelogin prefers the block's own tenant (UpdateFromEnv of its options.go).
    tenant = None if options.disable_environment_override in _TRUE else variables.get("AZURE_TENANT_ID")
    host = options.authority_host or _authority(options.environment, name)
    return LegacyLogin(tenant or options.tenant_id, options.server_id, host)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """kubelogin's options, as pflag reads them: `--name value`, `--name=value`, `-n value`, `-n=value`, `-nvalue`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for names in (("--tenant-id", "-t"), ("--server-id",), ("--environment", "-e"), ("--authority-host",)):
        parser.add_argument(*names)
    for flag in _FLAGS:
        parser.add_argument(flag)
    try:
        # A flag never takes the next argument.
        options, _ = parser.parse_known_args(
            [f"{argument}=true" if argument in _FLAGS else argument for argument in arguments]
        )
    except argparse.ArgumentError as error:
        raise MalformedKubeconfigError(f"kubelogin does not take these arguments ({error}); fix the file") from None
    return options


def _authority(environment: str | None, name: str) -> str | None:
    if not environment:
        return None
    if environment.upper() not in _ENVIRONMENTS:
        # kubelogin takes every name it does not know for the public cloud.
        raise MalformedKubeconfigError(
            f'user "{name}" is in the cloud "{environment}"; accepted are {", ".join(CLOUDS)}: correct the name, or '
            "give --authority-host"
        )
    return _ENVIRONMENTS[environment.upper()]
