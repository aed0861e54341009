"""A custom kind whose definition is not there at the preview, comes late, or never comes."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from identity.clouds import LOCAL_ENVIRONMENT_VARIABLE
from localcloud.testing.plugins import Kubernetes, checked, create, urn
from localcloud.testing.plugins import kubernetes_resource as resource
from localcloud.testing.running import StateDirectory
from plugin import PluginError, Props, Secret
from tests.apiserver.installed import DEFINITIONS, PATH, definition
from tests.harness import LocalStack

_SIZE = {"type": "object", "properties": {"size": {"type": "integer"}}}
_DEFINITION = definition("example.com", "v1", "Widget", {"type": "object", "properties": {"spec": _SIZE}})
_WIDGET = "kubernetes:example.com/v1:Widget"
_GADGET = "kubernetes:example.org/v1:Gadget"  # nobody defines it
_INPUTS: Props = {"metadata": {"name": "late", "namespace": "default"}, "spec": {"size": 3}}


@pytest.fixture
def kubernetes(stack: LocalStack, administrator: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kubernetes]:
    """The plugin as the administrator; the definition is gone afterwards."""
    monkeypatch.setenv(LOCAL_ENVIRONMENT_VARIABLE, str(stack.state / "environment.json"))
    plugin = Kubernetes()
    kubeconfig = StateDirectory(stack.state).administrator_kubeconfig.read_text()
    plugin.configure({"kubeconfig": Secret(kubeconfig)})
    yield plugin
    administrator.delete(PATH.format("widgets.example.com"))


def test_a_preview_goes_on_without_the_definition(kubernetes: Kubernetes) -> None:
    known = checked(kubernetes, _WIDGET, _INPUTS)

    assert kubernetes.resource(_WIDGET).create(urn(_WIDGET), known, preview=True).state == known


def test_a_definition_that_comes_late_is_waited_for(
    kubernetes: Kubernetes, administrator: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            administrator.post(DEFINITIONS, json=_DEFINITION).raise_for_status()
            path = "/apis/example.com/v1/namespaces/default/widgets"
            while administrator.get(path).is_error:
                pass

    monkeypatch.setattr(resource, "pause", pause)

    _, created = create(kubernetes, _WIDGET, _INPUTS)

    assert created.id == "default/late"
    assert waited[:2] == [1, 2]


def test_a_definition_that_never_comes_is_named(kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "pause", lambda _: None)

    with pytest.raises(PluginError) as refused:
        create(kubernetes, _GADGET, _INPUTS)

    assert str(refused.value) == (
        f'creation of resource "{urn(_GADGET)}" with kind example.org/v1/Gadget failed because the Kubernetes API '
        "server reported that the apiVersion for this resource does not exist. Verify that any required CRDs have been "
        'created: no matches for kind "Gadget" in version "example.org/v1"'
    )
