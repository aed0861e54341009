"""Server-side apply of the control plane's objects, as the administrator."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from localcloud.kubernetes.kubeconfig import connection

Object = dict[str, Any]

_HERE: Final = Path(__file__).parent
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_PATHS: Final = {
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}
_MANAGER: Final = "localcloud"
_OPTIONS: Final = {"fieldManager": _MANAGER, "force": "true", "fieldValidation": "Strict"}
_WITHIN: Final = 30.0  # seconds
_PAUSE: Final = 0.05


class NotAppliedError(RuntimeError):
    """The API server refuses an object, does not answer, or is too slow."""


class Administrator:
    """The API server as its administrator; a context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        to = connection(str(kubeconfig))
        self._server = to.server
        self._http = httpx.Client(
            base_url=to.server, headers=to.headers, verify=to.verification(), timeout=_WITHIN, trust_env=False
        )

    def __enter__(self) -> Administrator:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def apply(self, documents: Iterable[Object]) -> int:
        """Create or change the objects; returns how many are new. Raises `NotAppliedError`."""
        new = 0
        for document in documents:
            path = f"{_PATHS[document['kind']]}/{document['metadata']['name']}"
            headers = {"Content-Type": "application/apply-patch+yaml"}
            answer = self._call("PATCH", path, params=_OPTIONS, json=document, headers=headers)
            if answer.is_error:
                raise NotAppliedError(f"{document['kind']} {document['metadata']['name']}: {answer.text}")
            new += answer.status_code == httpx.codes.CREATED
        return new

    def without_other_managers(self, documents: Iterable[Object]) -> list[Object]:
        """Those that no other manager has applied or changed; `hypershift install` applies its own definitions."""
        return [document for document in documents if self._managers(document) <= {_MANAGER}]

    def _managers(self, document: Object) -> set[str]:
        """The managers of the existing object's fields, without its status; none if there is no object."""
        path = f"{_PATHS[document['kind']]}/{document['metadata']['name']}"
        answer = self._call("GET", path)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return set()
        if answer.is_error:
            raise NotAppliedError(f"{document['kind']} {document['metadata']['name']}: {answer.text}")
        fields = answer.json()["metadata"].get("managedFields", ())
        return {field["manager"] for field in fields if not field.get("subresource")}

    def wait_until_served(self, definitions: Iterable[Object]) -> None:
        """Wait until the kinds of these custom resource definitions are served; raises `NotAppliedError` after 30 s."""
        for definition in definitions:
            name, spec = definition["metadata"]["name"], definition["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            deadline = time.monotonic() + _WITHIN
            while self._call("GET", path).is_error:
                if time.monotonic() > deadline:
                    raise NotAppliedError(f"the kind of {name} is not served after {_WITHIN:.0f} s")
                time.sleep(_PAUSE)

    def _call(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise NotAppliedError(
                f"kube-apiserver at {self._server} does not answer ({error}); `python -m localcloud start` starts it"
            ) from None


def roles() -> list[Object]:
    """The RBAC objects of the kubelet."""
    return list(yaml.safe_load_all((_HERE / "rbac.yaml").read_text(encoding="utf-8")))
