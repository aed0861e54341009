"""`pulumi-resource-azure-native`, emulated: Pulumi's Azure Native provider for the local cloud."""

from __future__ import annotations

from importlib import metadata
from typing import Final

from emulated import sdk_types
from emulated.azure_native import projection
from emulated.azure_native.resource import ArmResource
from emulated.azure_native.rows import FunctionRow
from emulated.azure_native.session import ArmSession
from emulated.azure_native.table import FUNCTIONS, RESOURCES
from emulated.client import RefusalError
from emulated.settings import AzureProviderSettings, check_settings, not_emulated
from plugin import Checked, PluginError, Props, Provider, Resource, unwrap

_CLIENT_CONFIG: Final = "azure-native:authorization:getClientConfig"
_CLIENT_TOKEN: Final = "azure-native:authorization:getClientToken"


class AzureNative(Provider):
    """The provider: the table's resource types and functions, and the two functions about the client itself."""

    name = "azure-native"
    version = metadata.version("pulumi-azure-native")

    def __init__(self) -> None:
        self._session: ArmSession | None = None
        self._resources = {token: ArmResource(row, self._open_session) for token, row in RESOURCES.items()}

    def check_config(self, urn: str, old: Props | None, new: Props) -> Checked:
        return Checked(new, check_settings(self.name, new))

    def configure(self, inputs: Props) -> None:
        self._session = ArmSession.open(AzureProviderSettings.load(self.name, inputs))

    def resource(self, type_token: str) -> Resource:
        if type_token not in self._resources:
            raise not_emulated(self.name, "resource type", type_token, RESOURCES)
        return self._resources[type_token]

    def invoke(self, token: str, args: Props) -> Props:
        plain = unwrap(args)
        if token == _CLIENT_CONFIG:
            return self._open_session().client_config()
        if token == _CLIENT_TOKEN:
            return self._open_session().client_token(plain.get("endpoint") or "")
        if token not in FUNCTIONS:
            raise not_emulated(self.name, "function", token, (*FUNCTIONS, _CLIENT_CONFIG, _CLIENT_TOKEN))
        return self._get(FUNCTIONS[token], plain)

    def _get(self, row: FunctionRow, args: Props) -> Props:
        arguments = {name for name, value in args.items() if value is not None}
        if missing := [name for name in row.parameters if name not in arguments]:
            raise PluginError(f"{row.token}: missing required property '{missing[0]}'")
        if unknown := sorted(arguments - set(row.inputs)):
            raise PluginError(
                f"{row.token}: the argument '{unknown[0]}' is not emulated; it takes {', '.join(row.inputs)}"
            )
        session = self._open_session()
        resource_id = row.resource_id(session.subscription_id, args)
        try:
            if row.action is None:
                response = session.arm.get(resource_id, row.api_version)
            else:
                options = {query: str(args[name]) for name, query in row.options.items() if name in arguments}
                response = session.arm.post(resource_id, row.action, row.api_version, options)
        except RefusalError as refused:
            raise PluginError(f"request failed {resource_id}: {refused}") from None
        outputs = projection.outputs(row.outputs, response)
        has_version = projection.API_VERSION in sdk_types.properties(row.outputs)
        return {**outputs, projection.API_VERSION: row.api_version} if has_version else outputs

    def _open_session(self) -> ArmSession:
        if self._session is None:
            raise PluginError("the azure-native provider is not configured")
        return self._session
