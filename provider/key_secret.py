"""`KeySecretResource`: the Kubernetes Secret with a key of a hosted cluster, which its HostedCluster names.

The key goes from the vault into the Secret in one call, and into no input or output.
"""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, ClassVar, Final

import httpx

from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster
from identity.aks.kubeconfig import Kubeconfig
from identity.azure.errors import AccessError
from identity.credentials.signing_key import UnusableKeyError
from plugin import (
    Checked,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    ReadResult,
    Resource,
    Secret,
    diff_properties,
    unwrap,
)
from provider import schema
from provider.inputs import Inputs
from provider.vault_secrets import VaultSecret

_STRINGS: Final = (
    *("kubeconfig", "clusterId", "namespace", "name"),
    *("cloud", "tenantId", "vaultId", "secretName", "keyId"),
)
_MOVED: Final = frozenset({"clusterId", "namespace", "name"})
_KUBECONFIG: Final = "kubeconfig"
# Only the way to the Secret, not what is in it.
_WAY: Final = frozenset({_KUBECONFIG, "context"})
_KEY: Final = "key"
_OWNER: Final = {"app.kubernetes.io/managed-by": "idstack"}
# Only a refresh has it among the inputs, so the next update writes the Secret again.
_CHANGED: Final = "changed"


class KeySecretResource(Resource, ABC):
    """Inputs: `kubeconfig` (secret), `context` in it (absent: its current one), `clusterId` (ARM id), `namespace`,
    `name`; of the key in the vault `cloud`, `tenantId`, `vaultId` (ARM id), `secretName`, `keyId`.

    Outputs are the same; after a refresh `changed`, if the Secret holds something else.
    """

    noun: ClassVar[str]
    # What else tells that it is another key than the one in the vault.
    other_key: ClassVar[str]

    @abstractmethod
    def usable(self, stored: str) -> tuple[bytes, str]:
        """The key as HyperShift reads it, of what vault or Secret hold, and its id; raises UnusableKeyError."""

    @abstractmethod
    def stored(self, held: bytes) -> str:
        """What the vault holds for the key in a Secret; raises UnicodeDecodeError."""

    def beside(self, known: Props) -> dict[str, str | None]:
        """What the Secret holds beside the key; None takes it out of an existing one."""
        return {}

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate, and mark the kubeconfig."""
        inputs = Inputs(unwrap(new))
        for name in _STRINGS:
            inputs.string(name)
        if old is not None:
            schema.require(old)
        return Checked(schema.marked(_marked(new)), inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Another cluster, namespace or name is another Secret; everything else changes in place."""
        changes = diff_properties(old_inputs, new_inputs)
        return Diff({path: PropertyChange(each.kind, replace=path in _MOVED) for path, each in changes.items()})

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Write the Secret; one that an earlier run of a stack has written is taken over."""
        if preview:
            return Created("", dict(inputs))
        known = unwrap(inputs)
        secret = self._body(known)
        with _server(known) as server:
            found = _expect(server.request("GET", _path(known)), HTTPStatus.OK, HTTPStatus.NOT_FOUND)
            if found.status_code == HTTPStatus.NOT_FOUND:
                new = secret | {"data": {name: value for name, value in secret["data"].items() if value is not None}}
                _expect(server.request("POST", _collection(known), new), HTTPStatus.CREATED)
            elif not _is_own(found.json()):
                raise PluginError(
                    f"the Secret {known['namespace']}/{known['name']} exists already, and no stack made it; delete it, "
                    "or give the cluster another name"
                )
            else:
                _expect(server.request("PATCH", _path(known), secret), HTTPStatus.OK)
        return Created(f"{known['namespace']}/{known['name']}", dict(inputs))

    def read(self, urn: str, id: str, inputs: Props, state: Props) -> ReadResult | None:
        """Whether the Secret holds the key. Who may not read Secrets sees it unchanged. An import is refused."""
        if not state:
            raise PluginError(
                f"{urn.rsplit('::', 1)[-1]} cannot be imported: which key a Secret holds is known to its stack alone. "
                "Remove the import, delete the Secret and let the next `up` write it"
            )
        known = unwrap(inputs)
        with _server(known) as server:
            found = server.request("GET", _path(known))
        if found.status_code == HTTPStatus.FORBIDDEN:
            return ReadResult(id, _marked(inputs), _marked(state))
        if _expect(found, HTTPStatus.OK, HTTPStatus.NOT_FOUND).status_code == HTTPStatus.NOT_FOUND:
            return None
        changed = {} if self._holds(found.json(), known) else {_CHANGED: True}
        return ReadResult(id, _marked(inputs | changed), _marked(state | changed))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Write the Secret again, unless only the way to it changed."""
        changed = diff_properties(old_inputs, new_inputs).keys() - _WAY
        if changed and not preview:
            known = unwrap(new_inputs)
            secret = self._body(known)
            with _server(known) as server:
                _expect(server.request("PATCH", _path(known), secret), HTTPStatus.OK)
        return dict(new_inputs)

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Delete the Secret; one that is gone stays so."""
        known = unwrap(inputs)
        with _server(known) as server:
            _expect(server.request("DELETE", _path(known)), HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.NOT_FOUND)

    def _body(self, known: Props) -> dict[str, Any]:
        """The Secret with the key, fresh from the vault."""
        try:
            key, key_id = self.usable(VaultSecret.of(known).value())
        except AccessError as error:
            raise PluginError(
                f"the {self.noun} cannot be read: {error}. Let the deployer read secrets of the vault (role Key Vault "
                "Secrets Officer) and reach it over the network"
            ) from None
        except UnusableKeyError as error:
            raise PluginError(
                f"the secret {known['secretName']} of the vault holds {error}; store the key again"
            ) from None
        if key_id != known["keyId"]:
            raise PluginError(
                f"the secret {known['secretName']} of the vault holds another key, {key_id}, than {self.other_key}, "
                f"{known['keyId']}: bring the stack up with `--refresh`"
            )
        beside = {name: None if text is None else _encoded(text.encode()) for name, text in self.beside(known).items()}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"namespace": known["namespace"], "name": known["name"], "labels": _OWNER},
            "data": {_KEY: _encoded(key), **beside},
        }

    def _holds(self, found: Mapping[str, Any], known: Props) -> bool:
        data = found.get("data") or {}
        try:
            _, key_id = self.usable(self.stored(_decoded(data.get(_KEY))))
            return key_id == known["keyId"] and all(
                _decoded(data.get(name)) == (text or "").encode() for name, text in self.beside(known).items()
            )
        except (UnusableKeyError, binascii.Error, UnicodeDecodeError):
            return False


def _marked(properties: Props) -> Props:
    """The properties with the kubeconfig marked, whatever happened to the mark on the way."""
    if _KUBECONFIG not in properties:
        return properties
    return properties | {_KUBECONFIG: Secret(unwrap(properties[_KUBECONFIG]))}


@contextmanager
def _server(known: Props) -> Iterator[ApiServer]:
    kubeconfig = Kubeconfig.parse(known[_KUBECONFIG], "the kubeconfig of the management cluster")
    try:
        with ApiServer(kubeconfig, AksCluster(known["clusterId"], False), context=known.get("context")) as server:
            yield server
    except AccessError as error:
        raise PluginError(f"the Secret {known['namespace']}/{known['name']} cannot be reached: {error}") from None


def _is_own(found: Mapping[str, Any]) -> bool:
    labels = found["metadata"].get("labels") or {}
    return _OWNER.items() <= labels.items()


def _collection(known: Props) -> str:
    return f"/api/v1/namespaces/{known['namespace']}/secrets"


def _path(known: Props) -> str:
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
        message = "an answer that is no Status"
    raise PluginError(f"the API server refuses the Secret with the key: {answer.status_code} {message}")
