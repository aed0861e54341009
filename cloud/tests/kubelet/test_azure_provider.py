"""The Azure provider against the local vault and metadata service: its calls, its files, its failures."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localcloud.core.clouds import LocalEnvironment, local_cloud
from localcloud.kubelet.atomic_writer import File
from localcloud.kubelet.azure_provider import AzureProvider, MountedObject, ProviderError, VaultObject, parse
from localcloud.testing.arm import VAULT
from localcloud.testing.hosts import Serve
from tests.kubelet_world import Azure, provider_parameters

# What a SecretProviderClass may hold, with the error messages of the real provider.


# As HyperShift's operators write it, to the byte.
OBJECTS: Final = "\narray:\n  - |\n    objectName: cpo-hc1-json\n    objectEncoding: utf-8\n    objectType: secret\n"
PARAMETERS: Final = {
    "usePodIdentity": "false",
    "useVMManagedIdentity": "true",
    "userAssignedIdentityID": "11111111-1111-4111-8111-111111111111",
    "keyvaultName": "kv-idstack-local",
    "tenantId": "10ca1000-0000-4000-8000-000000000001",
    "objects": OBJECTS,
}


def objects(*fields: str) -> str:
    """`objects` with one entry of the given lines."""
    return "array:\n  - |\n" + "".join(f"    {field}\n" for field in fields)


def entry(*fields: str) -> VaultObject:
    """The one object of a class whose entry has these lines beside name and type."""
    text = objects("objectName: s", "objectType: secret", *fields)
    (found,) = parse({**PARAMETERS, "objects": text}).objects
    return found


def refusal(**changed: str) -> str:
    """The error about HyperShift's parameters with some changed; an empty string removes one."""
    with pytest.raises(ProviderError) as refused:
        parse({**PARAMETERS, **changed})
    return str(refused.value)


def test_hypershifts_class_is_read() -> None:
    request = parse(PARAMETERS)

    assert (request.vault, request.client_id) == ("kv-idstack-local", "11111111-1111-4111-8111-111111111111")
    (item,) = request.objects
    assert (item.file_name, item.uid, item.object_version) == ("cpo-hc1-json", "secret/cpo-hc1-json", "")
    assert item.mode(0o644) == 0o644


def test_blanks_around_values_do_not_matter() -> None:
    padded = {name: f"  {value} \n" for name, value in PARAMETERS.items() if name != "objects"}

    assert parse({**padded, "objects": OBJECTS}) == parse(PARAMETERS)


def test_the_older_spelling_of_the_tenant_counts() -> None:
    renamed = {name.replace("tenantId", "tenantID"): value for name, value in PARAMETERS.items()}

    assert parse(renamed) == parse(PARAMETERS)


@pytest.mark.parametrize("true", ["1", "t", "T", "TRUE", "true", "True"])
def test_flags_are_what_go_takes_for_true(true: str) -> None:
    assert parse({**PARAMETERS, "useVMManagedIdentity": true}).vault == "kv-idstack-local"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"usePodIdentity": "no"},
            'failed to parse usePodIdentity flag, error: strconv.ParseBool: parsing "no": invalid syntax',
        ),
        (
            {"useVMManagedIdentity": "yes"},
            'failed to parse useVMManagedIdentity flag, error: strconv.ParseBool: parsing "yes": invalid syntax',
        ),
        (
            {"usePodIdentity": "true"},
            "only one identity mode can be enabled at a time: usePodIdentity, useVMManagedIdentity, "
            "or useAzureTokenProxy",
        ),
        ({"keyvaultName": ""}, "keyvaultName is not provided"),
        ({"tenantId": ""}, "tenantId is not provided"),
        (
            {"cloudName": "AzureMoon"},
            "cloudName AzureMoon is not valid, error: autorest/azure: There is no cloud environment matching the name "
            '"AZUREMOON"',
        ),
        (
            {"useVMManagedIdentity": "false"},
            "failed to build auth config for mode None: failed to get credentials, "
            "nodePublishSecretRef secret is not set",
        ),
        (
            {"useVMManagedIdentity": "false", "clientID": "c"},
            "failed to parse workload identity tokens, error: service account tokens not found",
        ),
        ({"objects": ""}, "objects is not set"),
        ({"keyvaultName": "kv"}, 'failed to get vault: Invalid vault name: "kv", must be between 3 and 24 chars'),
        (
            {"keyvaultName": "kv_idstack"},
            'failed to get vault: Invalid vault name: "kv_idstack", must match [-a-zA-Z0-9]{3,24}',
        ),
    ],
)
def test_an_invalid_parameter_fails_the_mount(changed: dict[str, str], message: str) -> None:
    assert refusal(**changed) == message


@pytest.mark.parametrize("cloud", ["AzurePublicCloud", "azureusgovernmentcloud", "AzureChinaCloud"])
def test_a_known_cloud_is_taken_in_any_letter_case(cloud: str) -> None:
    assert parse({**PARAMETERS, "cloudName": cloud}) == parse(PARAMETERS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("array: [", "failed to yaml unmarshal objects, error: "),
        ("array:\n  - objectName: s", "failed to yaml unmarshal objects, error: yaml: cannot unmarshal"),
        ("- s", "failed to yaml unmarshal objects, error: yaml: cannot unmarshal"),
        ("array:\n  - '['", "unmarshal failed for keyVaultObjects at index 0, error: "),
        (objects("- s"), "unmarshal failed for keyVaultObjects at index 0, error: yaml: cannot unmarshal"),
        (objects("objectName: [s]"), "unmarshal failed for keyVaultObjects at index 0, error: yaml: cannot unmarshal"),
    ],
)
def test_objects_that_are_no_list_of_strings_are_refused(text: str, message: str) -> None:
    assert refusal(objects=text).startswith(message)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("objectEncoding: utf8", "invalid objectEncoding: utf8, should be hex, base64 or utf-8"),
        ("objectFormat: der", "invalid objectFormat: der, should be PEM or PFX"),
        ("objectAlias: /etc/passwd", "file name must be a relative path"),
        ("objectAlias: a/../b", "file name must not contain '..'"),
        ("objectVersionHistory: 3", "objectVersionHistory 3: the local kubelet mounts one version"),
    ],
)
def test_an_invalid_object_fails_the_mount(field: str, message: str) -> None:
    text = objects("objectName: s", "objectType: secret", field)

    assert refusal(objects=text) == f"failed to get objectType:secret, objectName:s, objectVersion:: {message}"


@pytest.mark.parametrize("permission", ["rw", "0o644", "9"])
def test_a_permission_that_is_not_octal_leaves_none(permission: str) -> None:
    assert entry(f"filePermission: {permission}").mode(0o644) == 0


def test_only_secrets_have_an_encoding() -> None:
    other = objects("objectName: s", "objectType: secret#apiVersion")
    encoded = objects("objectName: s", "objectType: key", "objectEncoding: hex")

    assert "Invalid vaultObjectTypes. Should be secret, key, or cert" in refusal(objects=other)
    assert "objectEncoding only supported for objectType: secret" in refusal(objects=encoded)
    assert "file name must not be empty" in refusal(objects=objects("objectType: secret"))


def test_every_scalar_is_text_as_in_gos_structs() -> None:
    item = entry("objectVersion: 0123", "objectAlias: true", "filePermission: 0400")

    assert (item.object_version, item.file_name, item.mode(0o644)) == ("0123", "true", 0o400)


def test_fields_that_the_provider_does_not_know_are_left_alone() -> None:
    assert entry("objectNmae: other") == entry()


@pytest.mark.parametrize(
    ("encoding", "value", "content"),
    [
        ("utf-8", "aGk=", b"aGk="),
        ("base64", "aGk=", b"hi"),
        ("Base64", "aGk=", b"hi"),
        ("base64", "aG\r\nk=\n", b"hi"),
        ("hex", "6869", b"hi"),
        ("utf-8", "é", "é".encode()),
    ],
)
def test_a_value_is_decoded_as_the_class_says(encoding: str, value: str, content: bytes) -> None:
    assert entry(f"objectEncoding: {encoding}").content(value) == content


def test_without_an_encoding_a_value_stays_as_it_is() -> None:
    assert entry().content("6869") == b"6869"


@pytest.mark.parametrize(
    ("encoding", "value"),
    [
        ("base64", "marker!"),
        ("base64", '{"marker"}=='),
        ("base64", "bWFya2Vy===="),
        ("hex", "marker"),
        ("hex", "68 69"),
        ("hex", "6869\n"),
        ("hex", "é"),
    ],
)
def test_a_value_in_another_encoding_is_refused_and_not_shown(encoding: str, value: str) -> None:
    with pytest.raises(ProviderError) as refused:
        entry(f"objectEncoding: {encoding}").content(value)

    assert f"{encoding} decoding of s failed" in str(refused.value)
    assert "marker" not in str(refused.value)


def test_a_key_that_is_defined_twice_is_refused_as_yaml_v3_refuses_it() -> None:
    text = "array:\n  - |\n    objectName: a\narray:\n  - |\n    objectName: b\n"
    twice = objects("objectName: a", "objectName: b", "objectType: secret")

    assert 'line 4: mapping key "array" already defined at line 1' in refusal(objects=text)
    assert 'mapping key "objectName" already defined' in refusal(objects=twice)


@pytest.mark.parametrize("text", ["array: null\n", "array: []\n", "array:\n", "other: a\n", "{}"])
def test_an_array_that_is_null_is_empty(text: str) -> None:
    assert parse({**PARAMETERS, "objects": text}).objects == ()


def test_a_member_that_is_null_is_empty() -> None:
    assert entry("objectAlias: null", "objectVersion: ~", "objectFormat:") == entry()
    assert entry("objectAlias: 'null'").file_name == "null"


class RecordedProvider:
    """The provider of one node, and every request it has made."""

    def __init__(self, environment: LocalEnvironment) -> None:
        self._environment = environment
        self.requests: list[httpx.Request] = []

    def mount(self, parameters: Mapping[str, str]) -> list[MountedObject]:
        """The files of a mount."""
        return asyncio.run(self._mount(parameters))

    def refusal(self, parameters: Mapping[str, str]) -> str:
        """Why there is no mount."""
        with pytest.raises(ProviderError) as refused:
            self.mount(parameters)
        return str(refused.value)

    async def _mount(self, parameters: Mapping[str, str]) -> list[MountedObject]:
        async def note(request: httpx.Request) -> None:
            self.requests.append(request)

        trusting = ssl.create_default_context(cafile=self._environment.ca_file)
        async with httpx.AsyncClient(verify=trusting, event_hooks={"request": [note]}) as http:
            provider = AzureProvider(local_cloud(self._environment), self._environment.imds_endpoint, http)
            return await provider.mount(parameters)


@pytest.fixture
def provider(environment: LocalEnvironment) -> RecordedProvider:
    return RecordedProvider(environment)


@pytest.fixture
def user(node_azure: Azure) -> str:
    """Client id of an identity that is attached and may read."""
    return node_azure.identity().app_id


def test_a_secret_becomes_a_file_that_says_where_it_is_from(
    node_azure: Azure, user: str, provider: RecordedProvider
) -> None:
    version = node_azure.secret("cpo-hc1-json", '{"client_id": "é"}')

    found = provider.mount(provider_parameters(user, {"objectName": "cpo-hc1-json", "objectEncoding": "utf-8"}))

    content = File('{"client_id": "é"}'.encode(), 0o644)
    assert found == [MountedObject("cpo-hc1-json", content, "secret/cpo-hc1-json", version)]


def test_a_token_is_asked_for_once_and_only_after_the_vaults_challenge(
    node_azure: Azure, user: str, provider: RecordedProvider
) -> None:
    node_azure.secret("one", "1")
    node_azure.secret("two", "2")

    provider.mount(provider_parameters(user, {"objectName": "one"}, {"objectName": "two"}))

    challenged, token, first, second = provider.requests
    assert [request.url.path for request in provider.requests] == [
        "/secrets/one/",
        "/metadata/identity/oauth2/token",
        "/secrets/one/",
        "/secrets/two/",
    ]
    assert "Authorization" not in challenged.headers
    assert dict(token.url.params) == {
        "api-version": "2018-02-01",
        "resource": "https://vault.azure.net",
        "client_id": user,
    }
    assert first.headers["Authorization"] == second.headers["Authorization"]
    assert challenged.headers["Host"] == "kv-idstack-local.vault.azure.net"


def test_the_only_identity_of_a_node_needs_no_name(node_azure: Azure, user: str, provider: RecordedProvider) -> None:
    node_azure.secret("s", "v")

    assert provider.mount(provider_parameters("", {"objectName": "s"}))[0].file.data == b"v"
    assert "client_id" not in provider.requests[1].url.params


def test_alias_permission_and_encoding_shape_the_file(node_azure: Azure, user: str, provider: RecordedProvider) -> None:
    node_azure.secret("s", "aGk=")
    fields = {"objectName": "s", "objectAlias": "tls/key.pem", "filePermission": "0400", "objectEncoding": "base64"}

    (found,) = provider.mount(provider_parameters(user, fields))

    assert (found.path, found.file, found.uid) == ("tls/key.pem", File(b"hi", 0o400), "secret/s")


def test_a_pinned_version_stays_and_any_other_mount_follows(
    node_azure: Azure, user: str, provider: RecordedProvider
) -> None:
    first, second = node_azure.secret("s", "old"), node_azure.secret("s", "new")

    pinned = provider.mount(provider_parameters(user, {"objectName": "s", "objectVersion": first}))
    newest = provider.mount(provider_parameters(user, {"objectName": "s"}))

    assert [(mounted.file.data, mounted.version) for mounted in (*pinned, *newest)] == [
        (b"old", first),
        (b"new", second),
    ]


def test_an_identity_that_is_not_attached_gets_no_token(node_azure: Azure, provider: RecordedProvider) -> None:
    node_azure.secret("s", "marker")
    stranger = node_azure.identity(attached=False)

    message = provider.refusal(provider_parameters(stranger.app_id, {"objectName": "s"}))

    # As the provider of release 1.8.2 was seen to say it.
    rule = "-" * 80
    assert message == (
        "failed to get objectType:secret, objectName:s, objectVersion:: ManagedIdentityCredential authentication "
        "failed. the requested identity isn't assigned to this resource\n"
        "GET http://169.254.169.254/metadata/identity/oauth2/token\n"
        f"{rule}\nRESPONSE 400: 400 Bad Request\n{rule}\n"
        '{\n  "error": "invalid_request",\n  "error_description": "Identity not found"\n}\n'
        f"{rule}\nTo troubleshoot, visit https://aka.ms/azsdk/go/identity/troubleshoot#managed-id"
    )


def test_an_identity_without_the_role_reads_nothing(node_azure: Azure, provider: RecordedProvider) -> None:
    node_azure.secret("s", "marker")
    stranger = node_azure.identity(role=False)

    message = provider.refusal(provider_parameters(stranger.app_id, {"objectName": "s"}))

    assert "GET https://kv-idstack-local.vault.azure.net/secrets/s/\n" in message
    assert "RESPONSE 403: 403 Forbidden\nERROR CODE: Forbidden" in message
    assert f"oid={stranger.object_id}" in message
    assert "marker" not in message


def test_a_secret_that_is_not_there_is_named(user: str, provider: RecordedProvider) -> None:
    message = provider.refusal(provider_parameters(user, {"objectName": "absent"}))

    assert "objectName:absent" in message
    assert "RESPONSE 404: 404 Not Found\nERROR CODE: SecretNotFound" in message


def test_a_challenge_for_another_resource_gets_no_token(user: str, environment: LocalEnvironment, serve: Serve) -> None:
    async def challenge(_: Request) -> Response:
        header = 'Bearer authorization="https://login.example", resource="https://vault.example"'
        return Response(status_code=401, headers={"WWW-Authenticate": header})

    impostor = serve(Starlette(routes=[Route("/{path:path}", challenge)]))
    provider = RecordedProvider(environment.model_copy(update={"key_vault_endpoint": impostor}))

    message = provider.refusal(provider_parameters(user, {"objectName": "s"}))

    assert 'challenge resource "vault.example" doesn\'t match the requested domain' in message
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("endpoint", "url", "message"),
    [
        ("imds_endpoint", "http://127.0.0.1:1", "ManagedIdentityCredential: failed to request token: "),
        ("key_vault_endpoint", "https://127.0.0.1:1", 'Get "https://kv-idstack-local.vault.azure.net/secrets/s/": '),
    ],
)
def test_a_service_that_does_not_answer_is_named(
    user: str, environment: LocalEnvironment, endpoint: str, url: str, message: str
) -> None:
    without = RecordedProvider(environment.model_copy(update={endpoint: url}))

    assert message in without.refusal(provider_parameters(user, {"objectName": "s"}))


@pytest.mark.parametrize("kind", ["application/x-pkcs12", "application/x-pem-file"])
def test_a_certificate_is_mounted_as_pem_its_key_and_itself_too(
    node_azure: Azure, user: str, provider: RecordedProvider, kind: str
) -> None:
    world = node_azure.world
    officer = world.principal(("Key Vault Administrator", VAULT))
    principal = world.cloud.directory.service_principal_by_app(user)
    assert principal is not None
    world.grant(principal, "Key Vault Administrator", VAULT)
    policy = {"issuer": {"name": "Self"}, "x509_props": {"subject": "CN=web"}, "secret_props": {"contentType": kind}}
    world.vault("POST", "/certificates/web/create", {"policy": policy}, caller=officer).raise_for_status()
    asked = [{"objectName": "web", "objectAlias": name, "objectType": name} for name in ("secret", "cert", "key")]
    as_it_is = {"objectName": "web", "objectAlias": "pfx", "objectType": "secret", "objectFormat": "pfx"}

    found = {mounted.path: mounted for mounted in provider.mount(provider_parameters(user, *asked, as_it_is))}

    certificate = found["cert"].file.data
    key, _, chain = found["secret"].file.data.partition(b"-----BEGIN CERTIFICATE-----")
    assert b"-----BEGIN CERTIFICATE-----" + chain == certificate
    assert key.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert found["key"].file.data.startswith(b"-----BEGIN PUBLIC KEY-----")
    assert len({mounted.version for mounted in found.values()}) == 1
    is_pem = found["pfx"].file.data.startswith(b"-----BEGIN")
    assert is_pem is (kind == "application/x-pem-file")
