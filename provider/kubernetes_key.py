"""The Kubernetes Secrets with the keys of a hosted cluster, which its HostedCluster names.

The key goes from the vault into the Secret in one call, and into no input or output. Sources, openshift/hypershift at
3ee9615: api/hypershift/v1beta1/hostedcluster_types.go (:171-177, and AESCBCKeySecretKey) and
hypershift-operator/controllers/hostedcluster/hostedcluster_controller.go:5311.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, ClassVar, Final

import httpx

from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig
from identity.credentials.service_account_key import UnusableKeyError
from identity.plugin_schema import KeySecretInputs, KeySecretState, SigningKeySecretInputs
from plugin import PluginError
from provider.resource import TypedResource, plugin_errors
from provider.vault_key import ENCRYPTION_KEY, SIGNING_KEY, KeyForm
from provider.vault_secrets import VaultSecret

# How the Secret is reached; they say nothing about its content.
_CONNECTION: Final = frozenset({"kubeconfig", "context"})
_KEY: Final = "key"
_OWNER: Final = {"app.kubernetes.io/managed-by": "idstack"}
_READ_SECRETS: Final = (
    ". Let the deployer read secrets of the vault (role Key Vault Secrets Officer) and reach it over the network"
)


class KubernetesKeyResource(TypedResource[KeySecretState, Mapping[str, Any]]):
    """Another cluster, namespace or name is another Secret; everything else changes in place."""

    inputs: ClassVar[Any] = KeySecretInputs
    replacing = frozenset({"clusterId", "namespace", "name"})
    no_import = (
        "only its stack knows which key the Secret holds. Remove the import, delete the Secret and let the next `up` "
        "write it"
    )
    form: ClassVar[KeyForm]

    def beside(self, known: KeySecretState) -> dict[str, str | None]:
        """What the Secret holds beside the key; None takes it out of an existing one."""
        return {}

    def make(self, urn: str, inputs: KeySecretState) -> tuple[str, Mapping[str, Any]]:
        """Write the Secret, or take over the one that an earlier run of a stack wrote."""
        secret = self._body(inputs)
        with _server(inputs) as server:
            answer = _expect(server.request("GET", _path(inputs)), HTTPStatus.OK, HTTPStatus.NOT_FOUND)
            if answer.status_code == HTTPStatus.NOT_FOUND:
                new = secret | {"data": {name: value for name, value in secret["data"].items() if value is not None}}
                _expect(server.request("POST", _collection(inputs), new), HTTPStatus.CREATED)
            elif not _is_own(answer.json()):
                raise PluginError(
                    f"the Secret {_name(inputs)} exists already, and no stack made it; delete it, "
                    "or give the cluster another name"
                )
            else:
                _expect(server.request("PATCH", _path(inputs), secret), HTTPStatus.OK)
        return _name(inputs), {}

    def live(self, urn: str, inputs: KeySecretState) -> Mapping[str, Any] | None:
        """Whether the Secret holds the key; it counts as unchanged for a caller who may not read Secrets."""
        with _server(inputs) as server:
            answer = server.request("GET", _path(inputs))
        if answer.status_code == HTTPStatus.FORBIDDEN:
            return {}
        if _expect(answer, HTTPStatus.OK, HTTPStatus.NOT_FOUND).status_code == HTTPStatus.NOT_FOUND:
            return None
        return {} if self._holds(answer.json(), inputs) else {"changed": True}

    def amend(
        self, urn: str, old: KeySecretState, outputs: Mapping[str, Any], new: KeySecretState
    ) -> Mapping[str, Any]:
        """Write the Secret again, unless only the connection changed."""
        if {**old, **dict.fromkeys(_CONNECTION)} != {**new, **dict.fromkeys(_CONNECTION)}:
            secret = self._body(new)
            with _server(new) as server:
                _expect(server.request("PATCH", _path(new), secret), HTTPStatus.OK)
        return {}

    def remove(self, urn: str, id: str, inputs: KeySecretState, outputs: Mapping[str, Any]) -> None:
        """Delete the Secret."""
        with _server(inputs) as server:
            _expect(server.request("DELETE", _path(inputs)), HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.NOT_FOUND)

    def _body(self, known: KeySecretState) -> dict[str, Any]:
        """The Secret with the key, fresh from the vault."""
        try:
            with plugin_errors(f"the {self.form.noun} cannot be read", _READ_SECRETS):
                key = self.form.normalized(VaultSecret.of(known).value())
                key_id = self.form.described(key)["keyId"]
        except UnusableKeyError as error:
            raise PluginError(
                f"the secret {known['secretName']} of the vault holds {error}; store the key again"
            ) from None
        if key_id != known["keyId"]:
            raise PluginError(
                f"the secret {known['secretName']} of the vault holds another key, {key_id}, than "
                f"{self.form.other_key}, {known['keyId']}: bring the stack up with `--refresh`"
            )
        beside = {name: None if text is None else _encoded(text.encode()) for name, text in self.beside(known).items()}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"namespace": known["namespace"], "name": known["name"], "labels": _OWNER},
            "data": {_KEY: _encoded(self.form.to_kubernetes(key)), **beside},
        }

    def _holds(self, secret: Mapping[str, Any], known: KeySecretState) -> bool:
        data = secret.get("data") or {}
        try:
            held = self.form.described(self.form.from_kubernetes(_decoded(data.get(_KEY))))
            return held["keyId"] == known["keyId"] and all(
                _decoded(data.get(name)) == (text or "").encode() for name, text in self.beside(known).items()
            )
        except (UnusableKeyError, binascii.Error, UnicodeDecodeError):
            return False


class KubernetesSigningKeyResource(KubernetesKeyResource):
    """A Secret with the key that signs service-account tokens (`key`).

    `old-key.pub` has the public keys of others whose tokens kube-apiserver still has to accept.
    """

    inputs = SigningKeySecretInputs
    form = SIGNING_KEY

    def beside(self, known: KeySecretState) -> dict[str, str | None]:
        """The old public keys."""
        return {"old-key.pub": "".join(known["oldPublicKeys"]) or None}


class KubernetesEtcdKeyResource(KubernetesKeyResource):
    """A Secret with the key with which kube-apiserver encrypts etcd: `key` has the bytes themselves."""

    form = ENCRYPTION_KEY


@contextmanager
def _server(known: KeySecretState) -> Iterator[ApiServer]:
    kubeconfig = Kubeconfig.parse(known["kubeconfig"], "the kubeconfig of the management cluster")
    aks = AksCluster(known["clusterId"], False)
    with (
        plugin_errors(f"the Secret {_name(known)} cannot be reached"),
        ApiServer(kubeconfig, aks, context=known.get("context")) as server,
    ):
        yield server


def _name(known: KeySecretState) -> str:
    return f"{known['namespace']}/{known['name']}"


def _is_own(secret: Mapping[str, Any]) -> bool:
    labels = secret["metadata"].get("labels") or {}
    return _OWNER.items() <= labels.items()


def _collection(known: KeySecretState) -> str:
    return f"/api/v1/namespaces/{known['namespace']}/secrets"


def _path(known: KeySecretState) -> str:
    return f"{_collection(known)}/{known['name']}"


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decoded(text: str | None) -> bytes:
    return base64.b64decode(text or "")


def _expect(answer: httpx.Response, *statuses: HTTPStatus) -> httpx.Response:
    """The answer; raises PluginError for another status, with the API server's own message alone."""
    if answer.status_code in statuses:
        return answer
    try:
        message = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = "an answer that is not a Status"
    raise PluginError(f"the API server refuses the Secret with the key: {answer.status_code} {message}")
