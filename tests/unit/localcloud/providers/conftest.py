"""The emulated plugins as the engine would configure them for the local stack."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment
from localcloud.providers.azure_native.provider import AzureNative
from localcloud.providers.azuread.provider import AzureAd
from plugin import Props, Secret


def provider_inputs(environment: LocalEnvironment) -> Props:
    """What the program gives an explicit provider."""
    return {
        "tenantId": environment.tenant_id,
        "subscriptionId": environment.subscription_id,
        "clientId": Secret(environment.deployer_client_id),
        "clientCertificatePath": environment.deployer_certificate,
    }


@pytest.fixture
def environment(local_cloud: LocalEnvironment, monkeypatch: pytest.MonkeyPatch) -> LocalEnvironment:
    """The running local cloud, named to the plugins as the Makefile names it."""
    record = Path(local_cloud.state_dir) / "environment.json"
    monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, str(record))
    return local_cloud


@pytest.fixture
def azure_native(environment: LocalEnvironment) -> AzureNative:
    """azure-native, configured."""
    provider = AzureNative()
    provider.configure(provider_inputs(environment))
    return provider


@pytest.fixture
def azuread(environment: LocalEnvironment) -> AzureAd:
    """azuread, configured and signed in."""
    provider = AzureAd()
    provider.configure(provider_inputs(environment))
    return provider


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test uses: the local cloud is shared."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:8]}"
