"""azure-native against the running local cloud: what the real provider does with ARM and Key Vault."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import jwt
import pytest

from emulated.azure_native.provider import ArmSession, AzureNative
from emulated.client import AzureProviderSettings
from localcloud.core.clouds import LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID, LocalEnvironment
from localcloud.testing.plugins import changes, checked, create, delete, import_by_id, read, refresh, update, urn
from plugin import UNKNOWN, Created, PluginError, PropertyChange, Props, Secret, contains_secret, unwrap
from tests.emulated.conftest import provider_inputs
from tests.emulated.inputs import (
    ACCOUNT,
    ASSIGNMENT,
    BALANCER,
    CREDENTIAL,
    GROUP,
    IDENTITY,
    LINK,
    NETWORK,
    ROLES,
    SECRET,
    SUBNET,
    VAULT,
    ZONE,
    Unique,
    assignment_inputs,
    identity_inputs,
    least,
    vault_inputs,
)

_CONTRIBUTOR = f"{ROLES}/b24988ac-6180-42a0-ab88-20f7382dd24c"
_VAULT_ID = (
    f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/identity-local"
    "/providers/Microsoft.KeyVault/vaults/kv-etcd-local"
)


def secret_inputs(vault: str, name: str, value: str) -> Props:
    properties = {"value": Secret(value), "contentType": "text/plain", "attributes": {"notBefore": 1, "expires": 9}}
    return {"resourceGroupName": "identity-local", "vaultName": vault, "secretName": name, "properties": properties}


def test_a_secrets_value_stays_in_the_inputs_and_never_comes_back(azure_native: AzureNative, unique: Unique) -> None:
    vault, _ = create(azure_native, VAULT, vault_inputs(unique("kv")))
    inputs, created = create(azure_native, SECRET, secret_inputs(vault["vaultName"], "hello", "marker"))
    assert "value" not in created.state["properties"]
    assert not contains_secret(created.state)
    assert created.state["properties"]["attributes"]["notBefore"] == 1
    refreshed = refresh(azure_native, SECRET, inputs, created)
    assert refreshed.inputs["properties"]["value"] == Secret("marker")
    delete(azure_native, SECRET, inputs, created)
    assert read(azure_native, SECRET, inputs, created) is None


def test_a_secret_is_deleted_at_the_vault_and_needs_a_role_there(
    azure_native: AzureNative, environment: LocalEnvironment, unique: Unique
) -> None:
    vault, _ = create(azure_native, VAULT, vault_inputs(unique("kv")))
    inputs, created = create(azure_native, SECRET, secret_inputs(vault["vaultName"], "hello", "v"))
    session = ArmSession.open(AzureProviderSettings.load("azure-native", provider_inputs(environment)))
    officers = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}"
    granted = session.arm.get(f"{officers}/providers/Microsoft.Authorization/roleAssignments", "2022-04-01")["value"]
    officer = next(assignment for assignment in granted if "b86a8fe4" in assignment["properties"]["roleDefinitionId"])
    session.arm.delete(officer["id"], "2022-04-01")
    try:
        with pytest.raises(
            PluginError, match=r"(?s)RESPONSE 403: 403 Forbidden.ERROR CODE: Forbidden.*ForbiddenByRbac"
        ):
            delete(azure_native, SECRET, inputs, created)
    finally:
        writable = ("principalId", "principalType", "roleDefinitionId")
        body = {"properties": {name: officer["properties"][name] for name in writable}}
        session.arm.put(officer["id"], "2022-04-01", body)
        _await_deletion(azure_native, inputs, created)


def _await_deletion(azure_native: AzureNative, inputs: Props, created: Created) -> None:
    """Delete a secret as soon as the role to do so has effect again: other tests on this local cloud need it, too."""
    refused: PluginError | None = None
    for _ in range(100):
        try:
            delete(azure_native, SECRET, inputs, created)
        except PluginError as error:
            refused = error
            threading.Event().wait(0.1)
        else:
            return
    raise AssertionError from refused


def test_access_policies_that_are_not_given_are_left_alone(azure_native: AzureNative, unique: Unique) -> None:
    policy = {"tenantId": LOCAL_TENANT_ID, "objectId": str(uuid.uuid4()), "permissions": {"secrets": ["get"]}}
    inputs, created = create(azure_native, VAULT, vault_inputs(unique("kv"), accessPolicies=[policy]))
    assert len(created.state["properties"]["accessPolicies"]) == 1
    without = checked(azure_native, VAULT, {**vault_inputs(inputs["vaultName"]), "tags": {"a": "b"}})
    state = update(azure_native, VAULT, inputs, created, without)
    assert len(state["properties"]["accessPolicies"]) == 1


def test_a_token_signs_in_where_no_certificate_is_named(
    environment: LocalEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text(jwt.encode({"iss": "https://issuer.example", "sub": "pod", "aud": "any"}, "k" * 32))
    monkeypatch.setenv("ARM_USE_OIDC", "true")
    monkeypatch.setenv("ARM_OIDC_TOKEN_FILE_PATH", str(token))
    inputs = {name: value for name, value in provider_inputs(environment).items() if name != "clientCertificatePath"}

    with pytest.raises(PluginError, match=r"AADSTS700211.*https://issuer\.example"):
        ArmSession.open(AzureProviderSettings.load("azure-native", inputs)).arm.get("/subscriptions", "2022-12-01")


def test_drift_is_seen_in_the_inputs(azure_native: AzureNative, environment: LocalEnvironment, unique: Unique) -> None:
    inputs, created = create(azure_native, IDENTITY, {**identity_inputs(unique("mi")), "tags": {"a": "b"}})
    session = ArmSession.open(AzureProviderSettings.load("azure-native", provider_inputs(environment)))
    session.arm.put(created.id, "2023-01-31", {"location": "eastus", "tags": {"a": "by hand"}})
    refreshed = refresh(azure_native, IDENTITY, inputs, created)
    assert refreshed.inputs == {**inputs, "tags": {"a": "by hand"}}
    assert changes(azure_native, IDENTITY, refreshed.inputs, refreshed, inputs) == {"tags.a": PropertyChange("update")}


def test_an_import_rebuilds_the_inputs(azure_native: AzureNative, unique: Unique) -> None:
    wanted = least(azure_native, CREDENTIAL, unique)
    inputs, created = create(azure_native, CREDENTIAL, wanted)
    imported = import_by_id(azure_native, CREDENTIAL, created.id)
    assert imported.inputs == wanted
    assert not changes(azure_native, CREDENTIAL, imported.inputs, imported, inputs), (
        "the version that Check adds is no difference"
    )
    assert not changes(azure_native, CREDENTIAL, imported.inputs, imported, imported.inputs), (
        "neither is its absence, when a refresh follows the import"
    )


def test_an_id_of_another_type_is_not_imported(azure_native: AzureNative) -> None:
    with pytest.raises(PluginError, match="failed to parse"):
        azure_native.resource(IDENTITY).read(urn(IDENTITY), _VAULT_ID, {}, {})


def test_only_principal_and_scope_replace_a_role_assignment(
    azure_native: AzureNative,
) -> None:
    old = checked(azure_native, ASSIGNMENT, assignment_inputs("a" * 8))
    resource = azure_native.resource(ASSIGNMENT)
    for name, value, replaces in (
        ("principalId", "b", True),
        ("principalId", UNKNOWN, True),
        ("scope", "/subscriptions/x", True),
        ("roleAssignmentName", str(uuid.uuid4()), True),
        ("roleDefinitionId", _CONTRIBUTOR, False),
    ):
        diff = resource.diff(urn(ASSIGNMENT), "id", old, {}, {**old, name: value})
        assert diff.changes == {name: PropertyChange("update", replace=replaces)}
        assert diff.delete_before_replace == replaces


def test_a_role_assignment_is_imported_and_deleted_its_role_stays(azure_native: AzureNative, unique: Unique) -> None:
    _, identity = create(azure_native, IDENTITY, identity_inputs(unique("mi")))
    inputs, created = create(azure_native, ASSIGNMENT, assignment_inputs(identity.state["principalId"]))
    imported = import_by_id(azure_native, ASSIGNMENT, created.id)
    assert not changes(azure_native, ASSIGNMENT, imported.inputs, imported, inputs), "its scope has the first slash"
    changed = {**inputs, "roleDefinitionId": _CONTRIBUTOR}
    with pytest.raises(PluginError, match='Status=400 Code="RoleAssignmentUpdateNotPermitted" Message="'):
        update(azure_native, ASSIGNMENT, inputs, created, changed)
    delete(azure_native, ASSIGNMENT, inputs, created)
    assert read(azure_native, ASSIGNMENT, inputs, created) is None


def test_location_comes_from_the_resource_group_and_is_compared_loosely(
    azure_native: AzureNative, unique: Unique
) -> None:
    without = {"resourceGroupName": "identity-local", "resourceName": unique("mi")}
    inputs = checked(azure_native, IDENTITY, without)
    assert inputs["location"] == "eastus"
    diff = azure_native.resource(IDENTITY).diff(
        urn(IDENTITY), "id", inputs, {}, {**inputs, "location": "East US", "resourceGroupName": "Identity-Local"}
    )
    assert not diff.changes
    moved = azure_native.resource(IDENTITY).diff(urn(IDENTITY), "id", inputs, {}, {**inputs, "location": "westus"})
    assert moved.changes == {"location": PropertyChange("update", replace=True)}


def test_an_id_in_another_letter_case_is_no_change(azure_native: AzureNative) -> None:
    group = "/subscriptions/s/resourceGroups/g"
    network = f"{group}/providers/Microsoft.Network/virtualNetworks/v"
    for token, before, after, paths in (
        (ASSIGNMENT, {"scope": f"{group}/providers/a/b/c"}, {"scope": f"{group.lower()}/providers/A/b/c"}, set()),
        (LINK, {"virtualNetwork": {"id": network}}, {"virtualNetwork": {"id": network.upper()}}, set()),
        (ASSIGNMENT, {"scope": group}, {"scope": group.lower()}, {"scope"}),
    ):
        assert set(azure_native.resource(token).diff(urn(token), "id", before, {}, after).changes) == paths


@pytest.mark.parametrize(
    ("before", "after", "differing"),
    [
        ({"name": "Basic", "tier": "Paid"}, {"name": "Base", "tier": "Standard"}, set()),
        ({"name": "Base", "tier": "Free"}, {"name": "Base", "tier": "Standard"}, {"sku.tier"}),
        ({"name": "Basic"}, {"name": "Base"}, {"sku.name"}),
        ({"name": "Basic", "tier": "Free"}, {"name": "Base", "tier": "Premium"}, {"sku.name", "sku.tier"}),
    ],
)
def test_both_names_of_a_clusters_sku_are_the_same(
    azure_native: AzureNative, before: Props, after: Props, differing: set[str]
) -> None:
    token = "azure-native:containerservice:ManagedCluster"
    diff = azure_native.resource(token).diff(urn(token), "id", {"sku": before}, {}, {"sku": after})
    assert set(diff.changes) == differing


def test_an_accounts_firewall_that_is_no_longer_given_is_opened_again(
    azure_native: AzureNative, unique: Unique
) -> None:
    given = least(azure_native, ACCOUNT, unique)
    inputs, created = create(azure_native, ACCOUNT, {**given, "networkRuleSet": {"defaultAction": "Deny"}})
    assert created.state["networkRuleSet"]["defaultAction"] == "Deny"
    wanted = checked(azure_native, ACCOUNT, given, old=inputs)
    assert update(azure_native, ACCOUNT, inputs, created, wanted)["networkRuleSet"] == {
        "bypass": "AzureServices",
        "defaultAction": "Allow",
        "ipRules": [],
        "virtualNetworkRules": [],
    }


def test_check_names_every_problem_and_shows_no_value(azure_native: AzureNative) -> None:
    inputs: Props = {
        "resourceGroupName": "g",
        "vaultName": "kv_underscore",
        "properties": {"value": Secret(7), "attribute": {}},
    }
    failures = azure_native.resource(SECRET).check(urn(SECRET), None, inputs).failures
    assert [failure.reason.partition(":")[0].partition(" in the installed")[0] for failure in failures] == [
        "missing required property 'secretName'",
        "'properties.value' should be of type 'string' but got a number",
        "'properties.attribute' is not a property of SecretPropertiesArgs",
        "'vaultName' does not match expression '^[a-zA-Z0-9-]{3,24}$'",
    ]
    assert {failure.property for failure in failures} == {""}


def test_a_preview_of_an_update_keeps_name_and_location(azure_native: AzureNative) -> None:
    inputs = checked(azure_native, IDENTITY, identity_inputs("mi"))
    state = {"name": "mi", "location": "eastus", "clientId": "c", "principalId": "p"}
    preview = azure_native.resource(IDENTITY).update(urn(IDENTITY), "id", inputs, state, inputs, preview=True)
    assert (preview["name"], preview["location"]) == ("mi", "eastus")
    assert preview["clientId"] is preview["principalId"] is UNKNOWN


def test_arms_refusal_is_passed_on_in_its_own_words(azure_native: AzureNative) -> None:
    with pytest.raises(PluginError) as refused:
        azure_native.invoke(
            "azure-native:network:getVirtualNetwork",
            {"resourceGroupName": "hc1-network", "virtualNetworkName": "absent"},
        )
    network = f"/subscriptions/{LOCAL_SUBSCRIPTION_ID}/resourceGroups/hc1-network/providers/Microsoft.Network"
    assert str(refused.value).startswith(
        f'request failed {network}/virtualNetworks/absent: Status=404 Code="ResourceNotFound" Message="The Resource '
    )


def test_a_function_names_a_missing_and_an_unemulated_argument(azure_native: AzureNative) -> None:
    token = "azure-native:network:getSubnet"
    with pytest.raises(PluginError, match="missing required property 'virtualNetworkName'"):
        azure_native.invoke(token, {"resourceGroupName": "g"})
    known = {"resourceGroupName": "g", "virtualNetworkName": "v", "subnetName": "s"}
    with pytest.raises(PluginError, match="the argument 'expand' is not emulated"):
        azure_native.invoke(token, {**known, "expand": "ipConfigurations"})


def test_the_seeded_world_is_readable(azure_native: AzureNative) -> None:
    cluster = azure_native.invoke(
        "azure-native:containerservice:getManagedCluster",
        {"resourceGroupName": "aks-local", "resourceName": "aks-mgmt-local"},
    )
    addon = cluster["addonProfiles"]["azureKeyvaultSecretsProvider"]
    assert set(addon["identity"]) == {"clientId", "objectId", "resourceId"}
    zone = azure_native.invoke(
        "azure-native:dns:getZone", {"resourceGroupName": "dns-local", "zoneName": "local.example.com"}
    )
    assert (zone["name"], zone["azureApiVersion"]) == ("local.example.com", "2023-07-01-preview")


def test_the_client_knows_who_it_is(azure_native: AzureNative, environment: LocalEnvironment) -> None:
    config = azure_native.invoke("azure-native:authorization:getClientConfig", {})
    assert unwrap(config)["clientId"] == environment.deployer_client_id
    assert (config["tenantId"], config["subscriptionId"]) == (LOCAL_TENANT_ID, LOCAL_SUBSCRIPTION_ID)
    token = azure_native.invoke("azure-native:authorization:getClientToken", {"endpoint": "https://vault.azure.net"})
    assert token["token"].count(".") == 2


def test_the_parts_of_a_load_balancer_come_back_as_the_sdk_shows_them(
    azure_native: AzureNative, unique: Unique
) -> None:
    _, created = create(azure_native, BALANCER, least(azure_native, BALANCER, unique))

    [probe], [frontend] = created.state["probes"], created.state["frontendIPConfigurations"]

    assert (probe["port"], probe["requestPath"], probe["id"]) == (30595, "/healthz", f"{created.id}/probes/infra")
    assert "/publicIPAddresses/" in frontend["publicIPAddress"]["id"]


def test_the_subnets_of_a_network_are_left_alone(azure_native: AzureNative, unique: Unique) -> None:
    inputs, created = create(azure_native, NETWORK, least(azure_native, NETWORK, unique))
    name = {"resourceGroupName": "identity-local", "virtualNetworkName": inputs["virtualNetworkName"]}
    subnet = create(azure_native, SUBNET, {**name, "subnetName": "default", "addressPrefix": "10.0.0.0/24"})

    assert refresh(azure_native, NETWORK, inputs, created).inputs == inputs

    tagged = checked(azure_native, NETWORK, {**inputs, "tags": {"a": "b"}})
    updated = update(azure_native, NETWORK, inputs, created, tagged)
    assert [listed["name"] for listed in updated["subnets"]] == ["default"]
    assert read(azure_native, SUBNET, *subnet) is not None


def test_the_deletion_of_a_group_is_awaited_with_all_that_is_in_it(azure_native: AzureNative, unique: Unique) -> None:
    inputs, created = create(azure_native, GROUP, least(azure_native, GROUP, unique))
    within = {**least(azure_native, NETWORK, unique), "resourceGroupName": inputs["resourceGroupName"]}
    network = create(azure_native, NETWORK, within)

    delete(azure_native, GROUP, inputs, created)

    assert read(azure_native, GROUP, inputs, created) is None
    assert read(azure_native, NETWORK, *network) is None
    delete(azure_native, NETWORK, *network)  # gone already is deleted


def test_what_arm_refuses_to_delete_is_an_error_with_arms_words(azure_native: AzureNative, unique: Unique) -> None:
    inputs, created = create(azure_native, LINK, least(azure_native, LINK, unique))
    zone = created.id.rpartition("/virtualNetworkLinks/")[0]

    with pytest.raises(PluginError, match="CannotDeleteResource"):
        azure_native.resource(ZONE).delete(urn(ZONE), zone, inputs, {})
