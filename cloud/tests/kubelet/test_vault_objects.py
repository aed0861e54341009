"""What a SecretProviderClass may hold, with the error messages of the real provider."""

from __future__ import annotations

from typing import Final

import pytest

from localcloud.kubelet.azure_provider import ProviderError, VaultObject, parse

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
