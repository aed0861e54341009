"""The command lines of the control plane. All listen on loopback or on a socket of this user only."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localcloud.core import clock, yaml_text
from localcloud.core.certificates import issue
from localcloud.core.clouds import AKS_SERVER_APP_ID
from localcloud.core.cluster import USERS, ClusterKind, token
from localcloud.core.documents import document
from localcloud.core.files import write_if_changed
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import Store
from localcloud.kubernetes.kubeconfig import with_one_context

# Where the control plane's commands are: where LOCALCLOUD_BINARIES says, or where set-up left a record.

_VARIABLE: Final = "LOCALCLOUD_BINARIES"
# Not resolved: a project directory may consist of links to another checkout.
_RECORD: Final = Path(__file__).absolute().parents[3] / ".tools/cluster.json"


class NotBuiltError(RuntimeError):
    """The commands are not on this machine."""


@dataclass(frozen=True)
class Binaries:
    """The directory with `etcd`, `kube-apiserver`, `kube-controller-manager` and `kubectl`."""

    directory: Path

    @classmethod
    def find(cls, record: Path = _RECORD, environ: Mapping[str, str] = os.environ) -> Binaries:
        """Those of the environment, else of this checkout; raises `NotBuiltError`."""
        if named := environ.get(_VARIABLE):
            if not Path(named, "kube-apiserver").exists():
                raise NotBuiltError(f"{_VARIABLE}={named}: no kube-apiserver is in there")
            return cls(Path(named))
        try:
            directory = Path(json.loads(record.read_text(encoding="utf-8"))["bin"])
        except FileNotFoundError:
            raise NotBuiltError(
                "kube-apiserver is not on this machine: let "
                f"{_VARIABLE} name a folder with etcd, kube-apiserver and kube-controller-manager"
            ) from None
        if not (directory / "kube-apiserver").exists():
            raise NotBuiltError(
                f"{directory}, where kube-apiserver was, is gone: build it again, or let {_VARIABLE} name another "
                "folder"
            )
        return cls(directory)

    def path(self, name: str) -> str:
        return str(self.directory / name)


ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
# Where the kubelet listens for Services: pods have their addresses from 127.64.0.1 on.
_SERVICES = IPv4Network("127.32.0.0/11")
_SERVICES_OF_ONE = 22  # the length of the prefix of one local cloud's addresses
_PORTS_OF_ONE = 16  # no two local clouds have ports in one block of so many


def etcd(state: StateDirectory, binaries: Binaries) -> list[str]:
    """etcd on a Unix socket: no port, and no TLS between two processes of one user."""
    return _command(binaries, ETCD, root=state.root, socket=_socket(state))


def kube_apiserver(state: StateDirectory, binaries: Binaries, port: int) -> list[str]:
    """kube-apiserver with its default admission plugins."""
    words = {"port": port, "addresses": service_addresses(port), "socket": _socket(state), "ca": state.ca_file}
    files = {"files": state.control_plane, "server": state.server_file, "kubelet": state.kubelet_client_file}
    return _command(binaries, API_SERVER, **words, **files)


def service_addresses(port: int) -> str:
    """The addresses of Services, a part of 127.32.0.0/11 that no other local cloud has; `port` is the API server's."""
    size = 2 ** (_SERVICES.max_prefixlen - _SERVICES_OF_ONE)
    first = _SERVICES[port // _PORTS_OF_ONE * size % _SERVICES.num_addresses]
    return f"{first}/{_SERVICES_OF_ONE}"


def kube_controller_manager(state: StateDirectory, binaries: Binaries) -> list[str]:
    """kube-controller-manager with the few controllers that are needed here."""
    kubeconfig = state.controller_manager_kubeconfig
    return _command(binaries, CONTROLLER_MANAGER, kubeconfig=kubeconfig, ca=state.ca_file)


def _command(binaries: Binaries, program: str, **words: object) -> list[str]:
    flags = document(__file__, program, **words)
    return [binaries.path(program), *(f"--{name}={value}" for name, value in flags.items())]


def _socket(state: StateDirectory) -> str:
    # Resolved: a socket's path has at most 107 bytes, and the state directory may lie deep.
    return f"unix://{state.control_plane.resolve() / 'etcd.sock'}"


_KIND: Final = "apiserver"
_LIFETIME: Final = timedelta(days=3650)


def write(state: StateDirectory, store: Store, issuer: str, metadata_url: str, webhooks: Mapping[str, str]) -> None:
    """Write every file that is missing or differs; keys and tokens are created once and kept sealed in the store.

    kube-apiserver takes tokens with this `issuer`, whose signing keys the metadata document names, and asks `webhooks`,
    URLs by name of the file.
    """
    key = store.kept(_KIND, "encryption-key", lambda: base64.b64encode(os.urandom(32)).decode())
    documents = {
        "authentication": _authentication(issuer, metadata_url, state.ca_file.read_text()),
        "encryption": document(__file__, "encryption", key=key),
        **{
            name: with_one_context({"server": url, "certificate-authority": str(state.ca_file)}, {})
            for name, url in webhooks.items()
        },
    }
    files = {
        "tokens.csv": _tokens(store),
        "service-account.pem": store.kept(_KIND, "service-account-key", _service_account_key),
        state.kubelet_client_file.name: store.kept(_KIND, "kubelet-client", _kubelet_client),
        **{f"{name}.yaml": yaml.safe_dump(document) for name, document in documents.items()},
    }
    for name, text in files.items():
        write_if_changed(state.control_plane / name, text)


def _authentication(issuer: str, metadata_url: str, authority: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml_text.load(Path(__file__).with_name("authentication.yaml").read_bytes())
    document["jwt"][0]["issuer"] = {
        "url": issuer,
        "discoveryURL": metadata_url,
        "certificateAuthority": authority,
        "audiences": [AKS_SERVER_APP_ID],
    }
    return document


def _tokens(store: Store) -> str:
    """A static token file: token, user, uid, and the groups in quotation marks."""
    return "".join(
        f'{token(store, ClusterKind.API_SERVER, user)},{user.name},{user.name},"{",".join(user.groups)}"\n'
        for user in USERS
    )


def _kubelet_client() -> str:
    return issue("kube-apiserver-kubelet-client", not_before=clock.now(), lifetime=_LIFETIME).pem().decode()


def _service_account_key() -> str:
    return (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        .decode()
    )
