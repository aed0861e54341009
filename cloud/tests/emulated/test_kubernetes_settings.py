"""The emulated kubernetes plugin serves the local cluster and no other, on every command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulated.kubernetes.provider import Kubernetes
from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE
from localcloud.testing.hosts import Certificates
from localcloud.testing.kubernetes import RunningApi, local_environment, write_kubeconfig
from plugin import UNKNOWN, PluginError, Props, Secret

_LOCAL = "https://127.0.0.1:6443"
_FOREIGN = "https://aks-prod.hcp.eastus.azmk8s.io:443"
_URN = "urn:pulumi:dev::idstack::pulumi:providers:kubernetes::cluster"
_CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


@pytest.fixture
def kubeconfig(certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The local cluster's kubeconfig, and the record that names the same cluster."""
    path = write_kubeconfig(tmp_path / "kubeconfig", _LOCAL, certificates.ca_file)
    record = tmp_path / "environment.json"
    record.write_text(local_environment(RunningApi(_LOCAL, certificates.ca_file, path), tmp_path).to_json())
    monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, str(record))
    return path.read_text()


def refusal(inputs: Props) -> str:
    """Why a provider with these inputs is not served: CheckConfig and Configure give the same reason."""
    failures = Kubernetes().check_config(_URN, None, inputs).failures
    with pytest.raises(PluginError) as configured:
        Kubernetes().configure(inputs)
    assert [failure.reason for failure in failures] == [str(configured.value)]
    assert failures[0].property == "", "the engine would print the kubeconfig beside a named property"
    return failures[0].reason


@pytest.mark.parametrize("mark", [str, Secret])
def test_another_cluster_is_refused_first(kubeconfig: str, mark: type) -> None:
    message = refusal({"kubeconfig": mark(kubeconfig.replace(_LOCAL, _FOREIGN))})

    assert f"this provider is for the cluster at {_FOREIGN}" in message
    assert _LOCAL in message
    assert "Nothing was changed" in message
    assert "a PULUMI_HOME of your own" in message
    assert "token" not in message


def test_another_context_of_the_same_kubeconfig_is_refused(kubeconfig: str) -> None:
    cluster = f"clusters:\n- {{name: prod, cluster: {{server: '{_FOREIGN}'}}}}\n"
    context = "contexts:\n- {name: prod, context: {cluster: prod, user: local}}\n"
    both = kubeconfig.replace("clusters:\n", cluster).replace("contexts:\n", context)

    assert not Kubernetes().check_config(_URN, None, {"kubeconfig": both}).failures
    assert f"this provider is for the cluster at {_FOREIGN}" in refusal({"kubeconfig": both, "context": "prod"})


def test_a_provider_without_a_kubeconfig_ignores_the_environment(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))

    assert "this provider names no kubeconfig" in refusal({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no kubeconfig", "neither a kubeconfig nor the path of an existing file"),
        ("{clusters: [], contexts: [], current-context: none}", 'the kubeconfig has no context "none"'),
    ],
)
def test_a_kubeconfig_without_a_usable_cluster_is_refused(kubeconfig: str, text: str, message: str) -> None:
    assert message in refusal({"kubeconfig": text})


@pytest.mark.parametrize(
    ("record", "named"), [(None, LOCAL_ENVIRONMENT_VARIABLE), ("/nowhere/a.json", "/nowhere/a.json")]
)
def test_without_the_record_of_the_local_cloud_nothing_is_served(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch, record: str | None, named: str
) -> None:
    monkeypatch.delenv(LOCAL_ENVIRONMENT_VARIABLE)
    if record:
        monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, record)

    assert named in refusal({"kubeconfig": kubeconfig})


def test_an_input_that_is_not_emulated_is_named(kubeconfig: str) -> None:
    message = refusal({"kubeconfig": kubeconfig, "renderYamlToDirectory": "out"})

    assert "does not have the provider input renderYamlToDirectory; it has clusterIdentifier, context, " in message


@pytest.mark.parametrize("mark", [str, Secret])
def test_the_local_cluster_is_served_by_text_and_by_path(kubeconfig: str, tmp_path: Path, mark: type) -> None:
    for given in (kubeconfig, str(tmp_path / "kubeconfig")):
        Kubernetes().configure({"kubeconfig": mark(given)})
        assert not Kubernetes().check_config(_URN, None, {"kubeconfig": mark(given)}).failures


def test_an_unknown_kubeconfig_is_left_to_the_update(kubeconfig: str) -> None:
    provider = Kubernetes()

    assert not provider.check_config(_URN, None, {"kubeconfig": UNKNOWN}).failures
    provider.configure({"kubeconfig": UNKNOWN})

    resource = provider.resource(_CONFIG_MAP)
    inputs = resource.check(_URN, None, {"metadata": {"name": "c"}, "data": {"a": "1"}}).inputs
    assert resource.create(_URN, inputs, preview=True).state == inputs
    assert resource.update(_URN, "c", inputs, inputs, {**inputs, "data": {}}, preview=True) == {**inputs, "data": {}}
    with pytest.raises(PluginError, match="its kubeconfig is not known"):
        resource.create(_URN, inputs, preview=False)
    with pytest.raises(PluginError, match="its kubeconfig is not known"):
        resource.read(_URN, "default/c", {}, {})


def _config(*, server: str = _LOCAL, ca: str = "QQ==", token: str = "t", **inputs: str) -> Props:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": ca}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "current-context": "c",
    }
    return {"kubeconfig": json.dumps(document), **inputs}


_IDENTIFIED = {"clusterIdentifier": "/subscriptions/s/aks"}


@pytest.mark.parametrize(
    ("old", "new", "replaced"),
    [
        (_config(), _config(), False),
        (_config(), _config(token="new"), False),
        (_config(), _config(ca="QUE="), True),
        (_config(), _config(server=_FOREIGN), True),
        (_config(**_IDENTIFIED), _config(ca="QUE=", server=_FOREIGN, **_IDENTIFIED), False),
        (_config(**_IDENTIFIED), {"kubeconfig": UNKNOWN, **_IDENTIFIED}, False),
        (_config(), {"kubeconfig": UNKNOWN}, True),
        (_config(), _config(**_IDENTIFIED), False),
        (_config(), _config(ca="QUE=", **_IDENTIFIED), True),
        (_config(**_IDENTIFIED), _config(ca="QUE="), True),
        (_config(**_IDENTIFIED), _config(ca="QUE=", clusterIdentifier="/subscriptions/s/another"), True),
    ],
)
@pytest.mark.parametrize("mark", [str, Secret])
def test_another_cluster_entry_replaces_all_unless_the_identifier_stays(
    old: Props, new: Props, replaced: bool, mark: type
) -> None:
    marked = {**new, "kubeconfig": mark(new["kubeconfig"])} if new["kubeconfig"] != UNKNOWN else new
    assert Kubernetes().replacing(old, marked) == (("kubeconfig",) if replaced else ())


def test_nothing_works_before_configure() -> None:
    with pytest.raises(PluginError, match="is not configured"):
        Kubernetes().resource(_CONFIG_MAP).check(_URN, None, {"metadata": {}})


@pytest.mark.parametrize("token", ["kubernetes:yaml:ConfigFile", "azuread:x:Y"])
def test_an_unknown_resource_type_is_named(token: str) -> None:
    with pytest.raises(PluginError, match=f'does not have the resource type "{token}"'):
        Kubernetes().resource(token)
