"""What the program registers in any shape of the configuration, on kube-apiserver with HyperShift's own definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx
import pytest

from localcloud.testing.hosted_clusters import changed
from localcloud.testing.kubernetes import KINDS, ResourceKind
from localcloud.testing.upstream_definitions import FEATURE_SETS, upstream
from tests.apiserver.installed import answered, installed
from tests.broken_objects import BROKEN, BrokenObject
from tests.unit.components.registered_objects import Object, of_the_release, registered_objects

_OPTIONS: Final = {"dryRun": "All", "fieldValidation": "Strict"}
_KINDS: Final[Mapping[str, ResourceKind]] = {kind.kind: kind for kind in KINDS}


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    return registered_objects(tmp_path_factory.mktemp("shapes"))


@pytest.fixture(scope="module", params=FEATURE_SETS)
def server(request: pytest.FixtureRequest, administrator: httpx.Client) -> Iterator[httpx.Client]:
    """The API server as `hypershift install` and the CSI driver leave it; the local definitions are back afterwards."""
    own = [kind.plural for kind in KINDS if kind.custom]
    with installed(administrator, *(upstream(plural, request.param) for plural in own)):
        yield administrator


def tried(server: httpx.Client, document: Object) -> httpx.Response:
    """A dry run of the creation, where no object is in the way: in another namespace, or under another name."""
    kind, metadata = _KINDS[document["kind"]], dict(document["metadata"])
    if kind.namespaced:
        metadata["namespace"] = "default"
    else:
        metadata["name"] += "-tried"
    prefix = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    within = "/namespaces/default" if kind.namespaced else ""
    body: dict[str, Any] = {**document, "metadata": metadata}
    return answered(lambda: server.post(f"{prefix}{within}/{kind.plural}", params=_OPTIONS, json=body))


def test_every_object_is_taken(server: httpx.Client, registered: list[Object]) -> None:
    answers = {
        f"{resource['kind']} {resource['metadata']['name']}": tried(server, of_the_release(resource))
        for resource in registered
    }

    assert {name: answer.text for name, answer in answers.items() if answer.status_code != httpx.codes.CREATED} == {}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_an_object_that_is_broken_is_refused(
    server: httpx.Client, registered: list[Object], broken: BrokenObject
) -> None:
    whole = next(resource for resource in registered if resource["kind"] == broken.kind)

    answer = tried(server, changed(of_the_release(whole), broken.path, broken.value))

    assert answer.is_client_error
    assert broken.refusal in answer.json()["message"]
