"""The Kubernetes API as the plugin uses it: any kind that discovery knows, from many threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from localcloud.core.clouds import LOCAL_ENVIRONMENT_VARIABLE, LocalEnvironment
from localcloud.kubernetes import calls
from localcloud.kubernetes.calls import ApiError, Object
from localcloud.kubernetes.kubeconfig import Connection, cluster_entry, connection, servers
from plugin import UNKNOWN, PluginError, Props, unwrap

# enableServerSideApply and enablePatchForce matter for how a patch is sent: the emulated plugin's has no conflicts.
_INPUTS: Final = {
    *("kubeconfig", "context", "namespace", "clusterIdentifier", "version", "pluginDownloadURL"),
    *("enableServerSideApply", "enablePatchForce", "enableSecretMutable", "enableConfigMapMutable"),
}


@dataclass(frozen=True)
class KubernetesProviderSettings:
    """A configured provider: the cluster, the namespace of objects without one, what may change in place."""

    connection: Connection
    namespace: str
    is_secret_mutable: bool
    is_config_map_mutable: bool

    @classmethod
    def load(cls, inputs: Props, environ: Mapping[str, str] = os.environ) -> KubernetesProviderSettings | None:
        """The settings in the inputs, None while a preview does not know the cluster; PluginError for a refusal."""
        plain = unwrap(inputs)
        if UNKNOWN in (plain.get("kubeconfig"), plain.get("context")):
            return None
        if problem := refusal(inputs, environ):
            raise PluginError(problem)
        server = connection(plain["kubeconfig"], plain.get("context"))
        return cls(
            connection=server,
            namespace=plain.get("namespace") or server.namespace,
            is_secret_mutable=_flag(plain.get("enableSecretMutable")),
            is_config_map_mutable=_flag(plain.get("enableConfigMapMutable")),
        )


def refusal(inputs: Props, environ: Mapping[str, str] = os.environ) -> str | None:
    """Why this provider is not served and how to fix it; None if it is the local cluster's."""
    plain = unwrap(inputs)
    if unknown := sorted(name for name in plain if name not in _INPUTS):
        return (
            f"the emulated kubernetes plugin does not have the provider input {', '.join(unknown)}; "
            f"it has {', '.join(sorted(_INPUTS))}"
        )
    kubeconfig = plain.get("kubeconfig")
    if UNKNOWN in (kubeconfig, plain.get("context")):
        return None
    if not environ.get(LOCAL_ENVIRONMENT_VARIABLE):
        return (
            "the emulated kubernetes plugin does not know the local cluster, because the variable "
            f"{LOCAL_ENVIRONMENT_VARIABLE} is not set. Nothing was changed. Run `.venv/bin/idstack up`, or set it "
            "to the path of the local cloud's environment.json."
        )
    if not kubeconfig:
        return (
            "this provider names no kubeconfig, and the emulated kubernetes plugin takes none from the environment: it "
            "could be any cluster's. Nothing was changed. Give the provider the kubeconfig of the local cloud."
        )
    try:
        record = LocalEnvironment.from_file(Path(environ[LOCAL_ENVIRONMENT_VARIABLE]))
        known = servers(Path(record.kubeconfig).read_text(encoding="utf-8"))
        server = connection(kubeconfig, plain.get("context")).server
    except (OSError, ValueError) as error:
        return (
            f"the emulated kubernetes plugin cannot determine which cluster this provider is for: {error}. "
            "Nothing was changed."
        )
    if server in known:
        return None
    return (
        f"this provider is for the cluster at {server}, but the kubernetes plugin in this PULUMI_HOME is emulated and "
        f"serves only the local cloud's ({', '.join(sorted(known))}). Nothing was changed. For a stack on a real "
        "cluster run with a PULUMI_HOME of your own, so that the engine takes the real plugin (`.venv/bin/idstack up "
        "--stack <name>` does); for the local stack use the kubeconfig of `.venv/bin/idstack local env --json`."
    )


def is_the_same_cluster(old: Props, new: Props) -> bool:
    """Whether everything that is there may stay where it is.

    The real provider's rule (pulumi-kubernetes 4.34 `provider/pkg/provider/provider.go`, DiffConfig): while
    `clusterIdentifier` stays it does; without one, or as it comes or goes, the cluster's entry in the kubeconfig
    decides with everything in it (server, authority, proxy), and one that a preview does not know is another one.
    """
    before, after = unwrap(old), unwrap(new)
    identifier = after.get("clusterIdentifier")
    if identifier and identifier == before.get("clusterIdentifier"):
        return True
    if UNKNOWN in (after.get("kubeconfig"), after.get("context")):
        return False
    return _cluster_entry(before) == _cluster_entry(after)


def _cluster_entry(inputs: Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        return cluster_entry(str(inputs.get("kubeconfig", "")), inputs.get("context"))
    except ValueError:
        return None


def _flag(value: object) -> bool:
    # Provider inputs arrive as strings.
    return value is True or value == "true"


# The field manager (the real provider's name for creates).
_FIELD_MANAGER: Final = "pulumi-kubernetes"
_TIMEOUT: Final = 60  # seconds
_CRD_GROUP: Final = "apiextensions.k8s.io"


@dataclass(frozen=True)
class Collection:
    """Where the objects of one kind are."""

    root: str
    plural: str
    is_namespaced: bool

    def path(self, namespace: str | None, name: str | None = None) -> str:
        return calls.path(self.root, self.plural, namespace if self.is_namespaced else None, name)


class Api:
    """Calls to one API server. Failures are `ApiError`; a server that does not answer is a `PluginError`."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection.server
        self._http = connection.client(timeout=_TIMEOUT)
        self._lock = threading.Lock()
        self._collections: dict[tuple[str, str], Collection] = {}

    def collection(self, api_version: str, kind: str) -> Collection | None:
        """Where objects of a kind are, None for a kind the server does not have (yet)."""
        with self._lock:
            if (api_version, kind) not in self._collections:
                self._discover(api_version)
            return self._collections.get((api_version, kind))

    def can_learn_kinds(self) -> bool:
        """Whether a missing kind may still come: the server takes custom resource definitions."""
        groups = self._call("GET", "/apis").get("groups", [])
        return any(group["name"] == _CRD_GROUP for group in groups)

    def get(self, collection: Collection, namespace: str | None, name: str) -> Object | None:
        return self._known("GET", collection.path(namespace, name))

    def list(self, collection: Collection, namespace: str, selector: Mapping[str, str]) -> list[Object]:
        """Objects by a labelSelector or fieldSelector."""
        items: list[Object] = self._call("GET", collection.path(namespace), params=selector)["items"]
        return items

    def create(self, collection: Collection, namespace: str | None, document: Object, *, dry_run: bool) -> Object:
        """Create an object; unknown fields are refused."""
        return self._call("POST", collection.path(namespace), params=_options(dry_run), body=document)

    def merge(
        self, collection: Collection, namespace: str | None, name: str, patch: Object, *, dry_run: bool
    ) -> Object:
        """Change an object by a JSON merge patch; unknown fields are refused."""
        headers = {"Content-Type": "application/merge-patch+json"}
        path = collection.path(namespace, name)
        return self._call("PATCH", path, params=_options(dry_run), body=patch, headers=headers)

    def delete(self, collection: Collection, namespace: str | None, name: str) -> bool:
        """Delete an object and, in the background, its dependents; returns whether there was one."""
        # The real provider asks for foreground deletion; without controllers it would never happen.
        path = collection.path(namespace, name)
        return self._known("DELETE", path, body={"propagationPolicy": "Background"}) is not None

    def await_change(self, collection: Collection, document: Object, seconds: float) -> None:
        """Return when the object differs from `document`, or after `seconds`, whichever is first."""
        metadata = document["metadata"]
        query = {
            "watch": "1",
            "fieldSelector": f"metadata.name={metadata['name']}",
            "resourceVersion": metadata["resourceVersion"],
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        path = collection.path(metadata.get("namespace"))
        try:
            with self._http.stream("GET", path, params=query, timeout=httpx.Timeout(60, read=seconds + 10)) as response:
                for _ in response.iter_lines():
                    return
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def _discover(self, api_version: str) -> None:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        for resource in (self._known("GET", root) or {"resources": []})["resources"]:
            if "/" not in resource["name"]:
                collection = Collection(root, resource["name"], resource["namespaced"])
                self._collections[api_version, resource["kind"]] = collection

    def _known(self, method: str, path: str, *, body: Object | None = None) -> Object | None:
        """The answer, None to what the server does not have."""
        try:
            return self._call(method, path, body=body)
        except ApiError as error:
            if error.code == httpx.codes.NOT_FOUND:
                return None
            raise

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Object:
        try:
            response = self._http.request(method, path, params=params, json=body, headers=headers)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        if response.is_error:
            raise ApiError.of(response)
        answer: Object = response.json()
        return answer

    def _unreachable(self, error: httpx.HTTPError) -> PluginError:
        return PluginError(
            f"configured Kubernetes cluster is unreachable: {self._server}: {error or type(error).__name__}. "
            "`.venv/bin/idstack local start` starts the local cloud"
        )


def _options(dry_run: bool) -> dict[str, str]:
    options = {"fieldManager": _FIELD_MANAGER, "fieldValidation": "Strict"}
    return {**options, "dryRun": "All"} if dry_run else options
