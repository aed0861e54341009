"""`pulumi-resource-azure-native`, emulated: Pulumi's Azure Native provider for the local cloud."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, Final

import httpx

from emulated import sdk_types
from emulated.azure_native import projection
from emulated.azure_native.projection import API_VERSION
from emulated.azure_native.table import FUNCTIONS, RESOURCES, SCOPES, FunctionRow, ResourceRow
from emulated.client import (
    AzureProvider,
    AzureProviderSettings,
    DeployerCredential,
    RefusalError,
    RestClient,
    Retry,
    error_of,
)
from emulated.sdk_types import mark_secrets
from localcloud.core.clouds import Cloud, local_cloud
from plugin import (
    UNKNOWN,
    Checked,
    CheckFailure,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    ReadResult,
    Resource,
    Secret,
    Value,
    diff_properties,
    pause,
    unwrap,
)

# Azure Resource Manager as azure-native calls it: its retries, its checks and its error messages.
#
# Sources in pulumi/pulumi-azure-native: `provider/pkg/azure/client_azcore.go` (retries, CanCreate, error format) and
# `provider/pkg/azure/azure.go` (which 404 means gone; the list of codes is quoted in issue 4841).


# azcore backs off by (2^n - 1) times its base delay, which azure-native sets to 20 s, up to 120 s, three times.
RETRY: Final = Retry(
    statuses=frozenset({408, 429, 500, 502, 503, 504}), delay=lambda number: min((2**number - 1) * 20.0, 120.0), limit=3
)
# Conflicts that end by themselves (`shouldRetryConflict`; the second since pull request 4421).
_PASSING_CONFLICTS: Final = frozenset(
    {"AnotherOperationInProgress", "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"}
)
# Seconds; a service on this machine may ask for none.
_SHORTEST_POLL: Final = 0.05
_GONE: Final = frozenset(
    {"NotFound", "ResourceNotFound", "ResourceGroupNotFound", "LockNotFound", "ParentResourceNotFound"}
    | {"EntityNotFound", "SubscriptionNotFound", "RoleAssignmentNotFound"}
)


class ArmClient:
    """ARM's operations on one resource, which raise RefusalError."""

    def __init__(self, rest: RestClient) -> None:
        self._rest = rest

    def get(self, resource_id: str, api_version: str) -> dict[str, Any]:
        return _json(self._send("GET", resource_id, api_version), {200})

    def find(self, resource_id: str, api_version: str) -> dict[str, Any] | None:
        """The resource, None if it does not exist. A 404 with a code that is not ARM's own is an error."""
        try:
            return self.get(resource_id, api_version)
        except RefusalError as refused:
            if refused.status == httpx.codes.NOT_FOUND and refused.code in _GONE:
                return None
            raise

    def refuse_existing(self, resource_id: str, api_version: str) -> None:
        """Raise PluginError unless the resource can be created: azure-native never takes over an existing one."""
        response = self._send("GET", resource_id, api_version)
        if response.status_code == httpx.codes.OK:
            raise PluginError(f"cannot create already existing resource '{resource_id}'")
        if response.status_code != httpx.codes.NOT_FOUND:
            raise PluginError(
                f"cannot check existence of resource '{resource_id}': "
                f"status code {response.status_code}, {response.text}"
            )

    def put(self, resource_id: str, api_version: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _json(self._send("PUT", resource_id, api_version, body), {200, 201})

    def post(self, resource_id: str, verb: str, api_version: str, options: Mapping[str, str]) -> dict[str, Any]:
        return _json(self._send("POST", f"{resource_id}/{verb}", api_version, options=options), {200})

    def delete(self, resource_id: str, api_version: str) -> None:
        """Delete, and wait until it is done; a resource that does not exist counts as deleted."""
        response = self._send("DELETE", resource_id, api_version)
        while response.status_code == httpx.codes.ACCEPTED and "Location" in response.headers:
            pause(max(float(response.headers.get("Retry-After", "0")), _SHORTEST_POLL))
            response = self._rest.request("GET", response.headers["Location"])
        if response.status_code not in {200, 202, 204, 404}:
            raise _refusal(response)

    def _send(
        self,
        method: str,
        resource_id: str,
        api_version: str,
        body: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        params = {"api-version": api_version, **(options or {})}
        return self._rest.request(method, resource_id, params=params, body=body, also_retry=_conflict_passes)


def _conflict_passes(response: httpx.Response) -> bool:
    return response.status_code == httpx.codes.CONFLICT and error_of(response)[0] in _PASSING_CONFLICTS


def _json(response: httpx.Response, expected: set[int]) -> dict[str, Any]:
    if response.status_code not in expected:
        raise _refusal(response)
    body: dict[str, Any] = response.json()
    return body


def _refusal(response: httpx.Response) -> RefusalError:
    code, message = error_of(response)
    coded = f'Code="{code}" ' if code else ""
    text = f'Status={response.status_code} {coded}Message="{message}"'
    return RefusalError(response.status_code, code, message, text)


_GRAPH_SCOPE: Final = "https://graph.microsoft.com/.default"
# azsecrets, the module behind the delete (`security/keyvault/azsecrets` v1.3).
_VAULT_API_VERSION: Final = "7.5"
# azcore's own defaults: azsecrets is used without options.
_VAULT_RETRY: Final = Retry(
    statuses=frozenset({408, 429, 500, 502, 503, 504}), delay=lambda number: min((2**number - 1) * 0.8, 60.0), limit=3
)


@dataclass(frozen=True)
class ArmSession:
    """The clients that every call of a configured provider uses."""

    cloud: Cloud
    subscription_id: str
    sign_in: DeployerCredential
    arm: ArmClient
    vault: RestClient

    @classmethod
    def open(cls, settings: AzureProviderSettings) -> ArmSession:
        """Create the clients for the local ARM and Key Vault; the first request signs in."""
        environment = settings.environment
        cloud = local_cloud(environment)
        sign_in = DeployerCredential(settings)

        def client(base_url: str, scope: str, retry: Retry) -> RestClient:
            return RestClient(base_url, scope, sign_in, ca_file=environment.ca_file, retry=retry)

        return cls(
            cloud=cloud,
            subscription_id=settings.subscription_id,
            sign_in=sign_in,
            arm=ArmClient(client(cloud.arm_endpoint, cloud.arm_scope, RETRY)),
            vault=client(environment.key_vault_endpoint, cloud.vault_scope, _VAULT_RETRY),
        )

    def delete_from_vault(self, vault: str, collection: str, name: str) -> None:
        """Delete a secret or key at the vault's own endpoint, if it exists. Needs a data-plane role."""
        _, headers = self.cloud.vault_request(vault)
        response = self.vault.request(
            "DELETE", f"/{collection}/{name}", params={"api-version": _VAULT_API_VERSION}, headers=headers
        )
        if response.status_code not in {200, 404}:
            raise PluginError(_response_error(response, f"{self.cloud.vault_uri(vault)}/{collection}/{name}"))

    def client_config(self) -> Props:
        """`getClientConfig`: from the claims of a Graph token (`provider/pkg/provider/auth_getclientconfig.go`)."""
        claims = self.sign_in.claims(_GRAPH_SCOPE)
        return {
            "clientId": claims["appid"],
            "objectId": claims["oid"],
            "subscriptionId": self.subscription_id,
            "tenantId": claims["tid"],
        }

    def client_token(self, endpoint: str) -> Props:
        """`getClientToken`: a token for the endpoint, by default ARM's."""
        return {"token": self.sign_in.token(f"{endpoint or 'https://management.azure.com/'}/.default")}


OpenSession = Callable[[], ArmSession]


def _response_error(response: httpx.Response, url: str) -> str:
    """The message of azcore's ResponseError."""
    rule = "-" * 80
    status = f"{response.status_code} {response.reason_phrase}"
    code = error_of(response)[0] or "UNAVAILABLE"
    return (
        f"DELETE {url}\n{rule}\nRESPONSE {response.status_code}: {status}\nERROR CODE: {code}\n{rule}\n{response.text}"
    )


_CLIENT_CONFIG: Final = "azure-native:authorization:getClientConfig"
_CLIENT_TOKEN: Final = "azure-native:authorization:getClientToken"


class AzureNative(AzureProvider[ArmSession]):
    """The provider: the table's resource types and functions, and the two functions about the client itself."""

    name = "azure-native"
    version = metadata.version("pulumi-azure-native")

    def __init__(self) -> None:
        self._resources = {token: ArmResource(row, self._open_session) for token, row in RESOURCES.items()}

    def configure(self, inputs: Props) -> None:
        self._session = ArmSession.open(AzureProviderSettings.load(self.name, inputs))

    def invoke(self, token: str, args: Props) -> Props:
        plain = unwrap(args)
        if token == _CLIENT_CONFIG:
            return self._open_session().client_config()
        if token == _CLIENT_TOKEN:
            return self._open_session().client_token(plain.get("endpoint") or "")
        if token not in FUNCTIONS:
            raise self.not_emulated("function", token, (*FUNCTIONS, _CLIENT_CONFIG, _CLIENT_TOKEN))
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


_GROUP_API_VERSION = "2020-10-01"
# Old and new name of the same SKU of a managed cluster (`sameManagedClusterSku`).
_SKU_NAMES = {"name": {"Basic", "Base"}, "tier": {"Paid", "Standard"}}
# Outputs that an update cannot change, so a preview of one keeps them.
_STABLE_OUTPUTS = ("name", "location")


class ArmResource(Resource):
    """One resource type. `session` raises PluginError while the provider is not configured."""

    def __init__(self, row: ResourceRow, session: OpenSession) -> None:
        self._row = row
        self._session = session

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        inputs = {name: value for name, value in new.items() if value is not None}
        if "location" in sdk_types.properties(self._row.arguments) and "location" not in inputs:
            location = self._default_location(old or {}, inputs)
            inputs.update({"location": location} if location is not None else {})
        inputs.setdefault(API_VERSION, self._row.api_version)
        return Checked(inputs, [CheckFailure("", reason) for reason in self._problems(inputs)])

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        # An imported resource has the version among its outputs only, and a refresh compares without a Check before.
        version = {API_VERSION: old_state[API_VERSION]} if API_VERSION in old_state else {}
        old, new = ({**version, **folded} for folded in map(_folded, (old_inputs, new_inputs)))
        changes = {
            path: self._with_consequence(path, change, old_state, new_inputs)
            for path, change in diff_properties(old, new).items()
            if not _insignificant(path, old, new)
        }
        return Diff(changes, delete_before_replace=any(change.replace for change in changes.values()))

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        if preview:
            return Created("", projection.preview(self._row.outputs, inputs))
        session = self._session()
        resource_id = self._row.resource_id(session.subscription_id, unwrap(inputs))
        session.arm.refuse_existing(resource_id, self._row.api_version)
        body = projection.request_body(self._row, inputs)
        for path in self._row.sub_resources:
            _set_default(body, self._row.wire_path(path), [])
        response = session.arm.put(resource_id, self._row.api_version, body)
        resource_id = str(response.get("id") or resource_id)
        return Created(resource_id, self._written(session, resource_id, response, inputs))

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        response = self._session().arm.find(id, self._row.api_version)
        if response is None:
            return None
        new_state = self._state(response)
        if inputs:
            live = projection.writable(self._row, new_state)
            for path in self._row.sub_resources:
                if _get(unwrap(inputs), path) is None:
                    _drop(live, path)
            refreshed = projection.merge_drift(inputs, projection.writable(self._row, state), live)
        else:
            refreshed = projection.imported_inputs(self._row, self._path_values(id), new_state)
        return ReadResult(id, refreshed, mark_secrets(new_state, refreshed))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        if preview:
            stable = {name: old_state[name] for name in _STABLE_OUTPUTS if name in old_state}
            return {**projection.preview(self._row.outputs, new_inputs), **stable}
        session = self._session()
        resource_id = self._row.resource_id(session.subscription_id, unwrap(new_inputs))
        restored = {name: value for name, value in self._row.defaults.items() if name in old_state}
        body = projection.request_body(self._row, {**restored, **new_inputs})
        for path in map(self._row.wire_path, self._row.sub_resources):
            if _get(body, path) is None:
                _set_default(body, path, _get(session.arm.get(resource_id, self._row.api_version), path) or [])
        response = session.arm.put(resource_id, self._row.api_version, body)
        return self._written(session, resource_id, response, new_inputs)

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        if self._row.vault_collection is None:
            self._session().arm.delete(id, self._row.api_version)
            return
        plain = unwrap(inputs)
        for name in ("vaultName", self._row.name_input):
            if not isinstance(plain.get(name), str):
                raise PluginError(f"{name} not found in resource state")
        self._session().delete_from_vault(plain["vaultName"], self._row.vault_collection, plain[self._row.name_input])

    def _problems(self, inputs: Props) -> Iterator[str]:
        if inputs.get(self._row.name_input) is None:
            yield (
                f"missing required property '{self._row.name_input}': the emulated azure-native does not make up "
                "names, give it one"
            )
        yield from sdk_types.problems(self._row.arguments, inputs, also=(API_VERSION,))
        for name, shape in sdk_types.properties(self._row.arguments).items():
            for path in projection.misplaced(shape, inputs.get(name), name):
                yield f"'{path}' is not emulated: the real azure-native has it elsewhere in its request"
        for name, pattern in self._row.patterns.items():
            value = unwrap(inputs.get(name))
            if isinstance(value, str) and not re.search(pattern, value):
                yield f"'{name}' does not match expression '{pattern}'"

    def _default_location(self, old: Props, inputs: Props) -> Value:
        """Fill in a missing location: the resource's own, or that of its resource group."""
        group = unwrap(inputs.get("resourceGroupName"))
        if "location" in old:
            return old["location"]
        if group is UNKNOWN:
            return UNKNOWN
        if not isinstance(group, str):
            return None
        session = self._session()
        resource_group = session.arm.find(
            f"/subscriptions/{session.subscription_id}/resourceGroups/{group}", _GROUP_API_VERSION
        )
        return resource_group["location"] if resource_group else None

    def _with_consequence(
        self, path: str, change: PropertyChange, old_state: Props, new_inputs: Props
    ) -> PropertyChange:
        """The change with its consequence: replace or update."""
        if not self._row.replaces(path, change.kind):
            return change
        # A new input whose value the state already has replaces nothing.
        is_known = change.kind == "add" and path in old_state and unwrap(old_state[path]) == unwrap(new_inputs[path])
        return change if is_known else replace(change, replace=True)

    def _written(self, session: ArmSession, resource_id: str, response: dict[str, Any], inputs: Props) -> Props:
        """State after a write, from a read: its answer may differ from the write's."""
        with suppress(RefusalError):
            response = session.arm.get(resource_id, self._row.api_version)
        return mark_secrets(self._state(response), inputs)

    def _state(self, response: Mapping[str, Any]) -> Props:
        return {**projection.outputs(self._row.outputs, response), API_VERSION: self._row.api_version}

    def _path_values(self, resource_id: str) -> dict[str, str]:
        """The inputs inside a resource id; raises PluginError for an id of another type."""
        # `re.escape` has put a backslash before each brace.
        pattern = re.sub(r"\\\{(\w+)\\\}", lambda match: _capture(match[1]), re.escape(self._row.path))
        match = re.fullmatch(pattern, resource_id, re.IGNORECASE)
        if match is None:
            raise PluginError(f"failed to parse '{resource_id}' against the path '{self._row.path}'")
        # A parameter at the beginning of the path is a complete id, which includes its first slash.
        return {
            name: f"/{match[name]}" if self._row.path.startswith(f"/{{{name}}}") else match[name]
            for name in self._row.parameters
        }


def _capture(parameter: str) -> str:
    return f"(?P<{parameter}>{'.+' if parameter in SCOPES else '[^/]+'})"


def _folded(value: Any) -> Any:
    """The value with its resource ids in lower case (`TestStringsEqualCaseInsensitiveAzureIds` in diff_test.go)."""
    if isinstance(value, Secret):
        return Secret(_folded(value.value))
    if isinstance(value, dict):
        return {name: _folded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_folded(item) for item in value]
    return value.lower() if isinstance(value, str) and "/providers/" in value.lower() else value


def _insignificant(path: str, old: Props, new: Props) -> bool:
    """Differences that azure-native ignores (`applyAzureSpecificDiff` in diff.go).

    Letter case of the resource group, case and spaces of the location, the two names that AKS has had for each SKU.
    """
    if path.startswith("sku."):
        return _same_sku(unwrap(old.get("sku")), unwrap(new.get("sku")))
    if path not in old or path not in new or path not in {"location", "resourceGroupName"}:
        return False
    before, after = unwrap(old[path]), unwrap(new[path])
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if path == "location":
        before, after = before.replace(" ", ""), after.replace(" ", "")
    return before.lower() == after.lower()


def _same_sku(before: Any, after: Any) -> bool:
    if not all(isinstance(sku, dict) and sku.keys() == {"name", "tier"} for sku in (before, after)):
        return False
    return all({before[name], after[name]} in ({after[name]}, _SKU_NAMES[name]) for name in ("name", "tier"))


def _get(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = values
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _set_default(body: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        body = body.setdefault(name, {})
    body.setdefault(path[-1], value)


def _drop(values: dict[str, Any], path: tuple[str, ...]) -> None:
    parent = _get(values, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)
