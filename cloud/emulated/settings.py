"""Whether the emulated plugins serve a provider, and how it signs in.

An emulated plugin on PATH would serve any stack: `refresh` and `destroy` never run the program, so the plugin
itself is the last place to distinguish a stack on real Azure from the local one. The rule is applied in CheckConfig
(`up`, `preview`) and again in Configure (every command).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE, LOCAL_TENANT_ID, LocalEnvironment
from plugin import UNKNOWN, CheckFailure, PluginError, Props, Value, unwrap

# Provider input, and the variable that the real providers read without it.
_VARIABLES: Final[Mapping[str, str]] = {
    "tenantId": "ARM_TENANT_ID",
    "clientId": "ARM_CLIENT_ID",
    "clientCertificatePath": "ARM_CLIENT_CERTIFICATE_PATH",
    "subscriptionId": "ARM_SUBSCRIPTION_ID",
}


@dataclass(frozen=True)
class AzureProviderSettings:
    """The settings of a configured provider: the local cloud's endpoints and the deployer's credential."""

    environment: LocalEnvironment
    tenant_id: str
    client_id: str
    certificate_path: Path
    subscription_id: str

    @classmethod
    def load(cls, plugin: str, inputs: Props, environ: Mapping[str, str] = os.environ) -> AzureProviderSettings:
        """The settings in inputs and environment; raises PluginError for a stack that is not the local cloud's."""
        if problem := _refusal(plugin, inputs, environ):
            raise PluginError(problem)
        try:
            environment = LocalEnvironment.from_file(Path(environ[LOCAL_ENVIRONMENT_VARIABLE]))
        except (OSError, ValueError) as error:
            raise PluginError(
                f"the emulated {plugin} plugin cannot read the local cloud's record, {error}. Start the local cloud "
                f"(`make up` does) and let {LOCAL_ENVIRONMENT_VARIABLE} name its environment.json."
            ) from None
        return cls(
            environment=environment,
            tenant_id=LOCAL_TENANT_ID,
            client_id=_required(plugin, "clientId", inputs, environ),
            certificate_path=Path(_required(plugin, "clientCertificatePath", inputs, environ)),
            subscription_id=str(_setting("subscriptionId", inputs, environ) or environment.subscription_id),
        )


def check_settings(plugin: str, inputs: Props, environ: Mapping[str, str] = os.environ) -> tuple[CheckFailure, ...]:
    """The refusals of CheckConfig. A tenant that a preview does not know yet is left to Configure."""
    problem = _refusal(plugin, inputs, environ)
    # Without a property name the engine prints the reason alone, not the input's value.
    return (CheckFailure("", problem),) if problem else ()


def not_emulated(plugin: str, kind: str, token: str, known: Iterable[str]) -> PluginError:
    """The refusal of a resource type or function (`kind`) that is not among the `known` ones."""
    names = ", ".join(sorted(known))
    return PluginError(
        f'the emulated {plugin} plugin does not have the {kind} "{token}". The local cloud emulates: {names}'
    )


def _refusal(plugin: str, inputs: Props, environ: Mapping[str, str]) -> str | None:
    """Why this provider is not served and how to fix it; None if it is the local cloud's."""
    tenant = _setting("tenantId", inputs, environ)
    if tenant is not UNKNOWN and tenant != LOCAL_TENANT_ID:
        problem = f"has the tenant {tenant}" if tenant else "names no tenant"
        return (
            f"this provider {problem}, but the {plugin} plugin in this PULUMI_HOME is emulated and serves only the "
            f"local cloud's tenant {LOCAL_TENANT_ID}. Nothing was changed. For a stack on Azure run with a PULUMI_HOME "
            "of your own, so that the engine takes the real plugin (`make up STACK=<name>` does); "
            f"for the local stack set tenantId to {LOCAL_TENANT_ID}."
        )
    if not environ.get(LOCAL_ENVIRONMENT_VARIABLE):
        return (
            f"the emulated {plugin} plugin does not know where the local cloud answers, because the variable "
            f"{LOCAL_ENVIRONMENT_VARIABLE} is not set. Nothing was changed. Run through `make` (`make up`), or set it "
            "to the path of the local cloud's environment.json."
        )
    return None


def _required(plugin: str, name: str, inputs: Props, environ: Mapping[str, str]) -> str:
    value = _setting(name, inputs, environ)
    if not isinstance(value, str) or not value:
        raise PluginError(
            f"the emulated {plugin} plugin signs in with a client certificate and was given no {name}: set it on the "
            f"provider or in {_VARIABLES[name]}."
        )
    return value


def _setting(name: str, inputs: Props, environ: Mapping[str, str]) -> Value:
    return unwrap(inputs.get(name)) or environ.get(_VARIABLES[name], "")
