"""An emulated plugin serves the local cloud's stack and no other, on every command."""

from __future__ import annotations

import pytest

from emulated.azure_native.provider import AzureNative
from emulated.azuread.provider import AzureAd
from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE, LOCAL_TENANT_ID
from plugin import UNKNOWN, PluginError, Provider, Secret

_FOREIGN = "72f988bf-86f1-41af-91ab-2d7cd011db47"
_URN = "urn:pulumi:dev::idstack::pulumi:providers:any::default"

pytestmark = pytest.mark.parametrize("plugin", [AzureNative, AzureAd])


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARM_TENANT_ID", "ARM_CLIENT_ID", "ARM_CLIENT_CERTIFICATE_PATH", "ARM_SUBSCRIPTION_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, "/nowhere/environment.json")


@pytest.mark.parametrize("inputs", [{"tenantId": _FOREIGN}, {"tenantId": Secret(_FOREIGN)}, {}])
def test_a_foreign_stack_is_refused_first(plugin: type[Provider], inputs: dict[str, object]) -> None:
    found = plugin().check_config(_URN, None, inputs)
    with pytest.raises(PluginError) as configured:
        plugin().configure(inputs)
    reasons = [failure.reason for failure in found.failures]
    assert reasons == [str(configured.value)], "CheckConfig and Configure give the same reason"
    assert "is emulated" in reasons[0]
    assert "a PULUMI_HOME of your own" in reasons[0], "it names the fix"
    assert found.failures[0].property == "", "the engine would print the value of a named property"


def test_a_foreign_tenant_in_the_environment_is_refused(
    plugin: type[Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARM_TENANT_ID", _FOREIGN)
    with pytest.raises(PluginError, match=_FOREIGN):
        plugin().configure({})


def test_without_the_record_of_the_local_cloud_nothing_is_served(
    plugin: type[Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LOCAL_ENVIRONMENT_VARIABLE)
    inputs = {"tenantId": LOCAL_TENANT_ID}
    assert LOCAL_ENVIRONMENT_VARIABLE in plugin().check_config(_URN, None, inputs).failures[0].reason
    with pytest.raises(PluginError, match=LOCAL_ENVIRONMENT_VARIABLE):
        plugin().configure(inputs)


def test_a_missing_environment_record_is_named(plugin: type[Provider]) -> None:
    with pytest.raises(PluginError, match=r"cannot read the local cloud's record.*/nowhere/environment\.json"):
        plugin().configure({"tenantId": LOCAL_TENANT_ID})


def test_an_unknown_tenant_is_left_to_configure(plugin: type[Provider]) -> None:
    assert not plugin().check_config(_URN, None, {"tenantId": UNKNOWN}).failures


def test_nothing_works_before_configure(plugin: type[Provider]) -> None:
    with pytest.raises(PluginError, match="is not configured"):
        plugin().invoke(
            "azure-native:authorization:getClientConfig"
            if plugin is AzureNative
            else "azuread:index/getClientConfig:getClientConfig",
            {},
        )


def test_an_unemulated_type_is_named_with_those_that_are(plugin: type[Provider]) -> None:
    token = f"{plugin.name}:web:Site"
    with pytest.raises(PluginError, match=f'resource type "{token}".*emulates: {plugin.name}:'):
        plugin().resource(token)
    with pytest.raises(PluginError, match=f'function "{token}".*emulates: {plugin.name}:'):
        plugin().invoke(token, {})
