"""The emulated plugins as the engine would configure them for the local stack."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulated.azure_native.provider import AzureNative
from emulated.azuread.provider import AzureAd
from emulated.kubernetes.provider import Kubernetes
from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment
from localcloud.testing.kubernetes import RunningApi, local_environment
from plugin import Props, Secret
from tests.kubelet_world import NAMESPACE, ClusterApi, cluster_of

Configured = Callable[..., Kubernetes]


def provider_inputs(environment: LocalEnvironment) -> Props:
    """What the program gives an explicit provider."""
    return {
        "tenantId": environment.tenant_id,
        "subscriptionId": environment.subscription_id,
        "clientId": Secret(environment.deployer_client_id),
        "clientCertificatePath": environment.deployer_certificate,
    }


@pytest.fixture(scope="module")
def environment(local_cloud: LocalEnvironment) -> Iterator[LocalEnvironment]:
    """The running local cloud, named to the plugins as the Makefile names it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, str(Path(local_cloud.state_dir) / "environment.json"))
        yield local_cloud


# One for all tests of a module, as the engine has one for all resources of a stack: signing in takes a while.
@pytest.fixture(scope="module")
def azure_native(environment: LocalEnvironment) -> AzureNative:
    """azure-native, configured."""
    provider = AzureNative()
    provider.configure(provider_inputs(environment))
    return provider


@pytest.fixture(scope="module")
def azuread(environment: LocalEnvironment) -> Iterator[AzureAd]:
    """azuread, configured and signed in; it does not pause between the five reads after each change."""
    provider = AzureAd()
    provider.configure(provider_inputs(environment))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("emulated.azuread.graph._READ_INTERVAL", 0.0)
        yield provider


@pytest.fixture
def cluster_environment(api: RunningApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalEnvironment:
    """A local cloud of nothing but the test's own cluster, named to the plugin as the Makefile names it."""
    made = local_environment(api, tmp_path / "state")
    record = tmp_path / "environment.json"
    record.write_text(made.to_json())
    monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, str(record))
    return made


@pytest.fixture
def cluster(cluster_environment: LocalEnvironment) -> Iterator[ClusterApi]:
    """The cluster, behind the plugin's back."""
    with cluster_of(cluster_environment) as made:
        yield made


@pytest.fixture
def configured(cluster: ClusterApi, cluster_environment: LocalEnvironment) -> Configured:
    """kubernetes for the test's namespace, with further provider inputs."""

    def configure(**inputs: str) -> Kubernetes:
        provider = Kubernetes()
        kubeconfig = Path(cluster_environment.kubeconfig).read_text()
        provider.configure({"kubeconfig": Secret(kubeconfig), "namespace": NAMESPACE, **inputs})
        return provider

    return configure


@pytest.fixture
def kubernetes(configured: Configured) -> Kubernetes:
    """kubernetes, configured as the program does."""
    return configured()


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test uses: the local cloud is shared."""
    return lambda stem: f"{stem}-{uuid.uuid4().hex[:8]}"
