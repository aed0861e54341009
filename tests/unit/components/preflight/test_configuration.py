"""Pulumi's raw configuration, and the record of the local cloud that the environment names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from components.preflight import configuration
from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE, LOCAL_SUBSCRIPTION_ID, LOCAL_TENANT_ID
from identity.settings import ConfigurationError, Settings
from tests.records import write_record
from tests.unit.components import world
from tests.unit.components.recorder import run
from tests.unit.identity.settings.world import LOCAL

LOCAL_STACK = {
    "cloud": "local",
    "tenantId": LOCAL_TENANT_ID,
    "subscriptionId": LOCAL_SUBSCRIPTION_ID,
    "managementCluster": '{"resourceGroup": "aks-local", "name": "aks-mgmt-local"}',
    "hostedClusters": "[]",
}


@pytest.fixture(autouse=True)
def _no_local_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOCAL_ENVIRONMENT_VARIABLE, raising=False)


def configured(
    monkeypatch: pytest.MonkeyPatch, config: Mapping[str, str], *, secret_keys: tuple[str, ...] = ()
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(config))
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps(secret_keys))


def load() -> Settings:
    """The settings as a program loads them."""
    loaded: list[Settings] = []
    run(lambda: loaded.append(configuration.load()))
    return loaded[0]


def local_stack(monkeypatch: pytest.MonkeyPatch, record: Path) -> None:
    config = {**world.configuration(), **LOCAL_STACK}
    configured(monkeypatch, {f"idstack:{key}": value for key, value in config.items()})
    monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, str(record))


def test_the_projects_own_keys_are_read_and_those_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {f"idstack:{key}": value for key, value in world.configuration().items()}
    configured(monkeypatch, {**own, "azure-native:location": "nowhere", "idstack-other:tags": "?"})

    assert load() == world.settings()


def test_which_keys_are_secret_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a report hides only because the key is one of them."""
    own = {f"idstack:{key}": value for key, value in world.configuration(location="?").items()}
    configured(monkeypatch, own, secret_keys=("idstack:location",))

    with pytest.raises(ConfigurationError, match="a string that is not shown because it may be a secret"):
        load()


def test_the_local_cloud_is_the_one_of_the_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_record(tmp_path / "environment.json", LOCAL)
    local_stack(monkeypatch, tmp_path / "environment.json")

    settings = load()

    assert settings.cloud.arm_endpoint == LOCAL.arm_endpoint
    assert settings.management_cluster is not None
    assert settings.management_cluster.kubeconfig is None, "the stack makes one of its own"


def test_an_empty_variable_names_no_local_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(monkeypatch, {f"idstack:{key}": value for key, value in world.configuration().items()})
    monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, "")

    assert load().cloud.name == "AzurePublicCloud"


@pytest.mark.parametrize("content", [None, "not JSON", "[]", '{"armEndpoint": "https://localhost:4002"}'])
def test_an_unreadable_record_of_the_local_cloud_is_an_error_with_a_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    record = tmp_path / "environment.json"
    if content is not None:
        record.write_text(content, encoding="utf-8")
    local_stack(monkeypatch, record)

    failure = run(configuration.load, refused=True).failure

    assert str(failure).startswith("IDSTACK_LOCAL_ENVIRONMENT does not name a record of the local cloud (")
    assert str(failure).endswith(
        "). `.venv/bin/idstack up` starts the local cloud and sets the variable. For a stack on Azure, unset it."
    )


def test_the_stacks_file_tells_a_name_in_quotes_from_a_boolean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    own = {f"idstack:{key}": value for key, value in world.configuration(resourceGroup="true").items()}
    configured(monkeypatch, own)
    file = tmp_path / "Pulumi.test.yaml"

    file.write_text('config:\n  idstack:resourceGroup: "true"\n')
    assert load().resource_group == "true"
    for unquoted in ("true", "2024"):
        file.write_text(f"config:\n  idstack:resourceGroup: {unquoted}\n")
        with pytest.raises(ConfigurationError, match=r"--type string resourceGroup .*or write it in quotes"):
            load()
    file.write_text("config: [broken")
    with pytest.raises(ConfigurationError, match=r"--type string resourceGroup .*or write it in quotes"):
        load()
