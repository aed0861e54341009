"""Server-side apply from outside: the control plane's objects as the administrator, groups of pods as the deployer.

A group of pods is what one stack asks for. The paths of its objects are recorded for the next call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from localcloud.core.state_directory import StateDirectory
from localcloud.kubernetes.kubeconfig import connection

Object = dict[str, Any]

_HERE: Final = Path(__file__).parent
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_PATHS: Final = {
    "ClusterRole": f"{_RBAC}/clusterroles/{{name}}",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings/{{name}}",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}",
}
_PATHS_OF_PODS: Final = {
    "Namespace": "/api/v1/namespaces/{name}",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
}
_MANAGER: Final = "localcloud"
_WITHIN: Final = 30.0  # seconds
_PAUSE: Final = 0.05


class NotAppliedError(RuntimeError):
    """The API server refuses an object, does not answer, or is too slow."""


class ApiServer:
    """The API server as the user of a kubeconfig; a context manager. Its methods raise `NotAppliedError`."""

    def __init__(self, kubeconfig: Path) -> None:
        to = connection(str(kubeconfig))
        self._server = to.server
        self._http = to.client(timeout=_WITHIN)

    def __enter__(self) -> ApiServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def apply(self, documents: Iterable[Object]) -> None:
        """Create or change the control plane's objects."""
        for document in documents:
            self.apply_at(_path(document), document, manager=_MANAGER, fieldValidation="Strict")

    def apply_at(self, path: str, document: Object, *, manager: str, **options: str) -> None:
        """Create or change the object at `path`."""
        headers = {"Content-Type": "application/apply-patch+yaml"}
        query = {"fieldManager": manager, "force": "true", **options}
        self._call("PATCH", path, params=query, json=document, headers=headers)

    def delete(self, path: str) -> None:
        """Delete the object at `path`, if there is one."""
        self._call("DELETE", path, allowed=httpx.codes.NOT_FOUND)

    def without_other_managers(self, documents: Iterable[Object]) -> list[Object]:
        """Those that no other manager has applied or changed; `hypershift install` applies its own definitions."""
        return [document for document in documents if self._managers(document) <= {_MANAGER}]

    def _managers(self, document: Object) -> set[str]:
        """The managers of the existing object's fields, without its status; none if there is no object."""
        answer = self._call("GET", _path(document), allowed=httpx.codes.NOT_FOUND)
        if answer.is_error:
            return set()
        fields = answer.json()["metadata"].get("managedFields", ())
        return {field["manager"] for field in fields if not field.get("subresource")}

    def wait_until_served(self, definitions: Iterable[Object]) -> None:
        """Wait until the kinds of these custom resource definitions are served, for 30 s at most."""
        for definition in definitions:
            name, spec = definition["metadata"]["name"], definition["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            deadline = time.monotonic() + _WITHIN
            while self._request("GET", path).is_error:
                if time.monotonic() > deadline:
                    raise NotAppliedError(f"the kind of {name} is not served after {_WITHIN:.0f} s")
                time.sleep(_PAUSE)

    def _call(self, method: str, path: str, *, allowed: int | None = None, **request: Any) -> httpx.Response:
        answer = self._request(method, path, **request)
        if answer.is_error and answer.status_code != allowed:
            raise NotAppliedError(f"{method} {path} at {self._server}: {answer.status_code} {answer.text.strip()}")
        return answer

    def _request(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise NotAppliedError(
                f"the Kubernetes API at {self._server} does not answer ({error}); `python -m localcloud start` starts "
                "it"
            ) from None


def _path(document: Object) -> str:
    return _PATHS[document["kind"]].format(**document["metadata"])


def roles() -> list[Object]:
    """The RBAC objects of the kubelet."""
    return list(yaml.safe_load_all((_HERE / "rbac.yaml").read_text(encoding="utf-8")))


def apply_pods(state: StateDirectory, group: str, documents: Sequence[Object]) -> None:
    """Create or change these Namespaces and Deployments as the deployer, and delete the group's others.

    Raises NotAppliedError if the API refuses, and KeyError for another kind.
    """
    paths = [_PATHS_OF_PODS[document["kind"]].format(**document["metadata"]) for document in documents]
    record = state.pods(group)
    before: list[str] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    with ApiServer(state.kubeconfig) as api:
        # Before the first change: a run that fails half-way leaves nothing that no record has.
        record.parent.mkdir(exist_ok=True)
        record.write_text(json.dumps(sorted({*before, *paths})), encoding="utf-8")
        for path in sorted(set(before) - set(paths), reverse=True):
            api.delete(path)
        for path, document in zip(paths, documents, strict=True):
            api.apply_at(path, document, manager="localcloud-pods")
    record.write_text(json.dumps(paths), encoding="utf-8")
