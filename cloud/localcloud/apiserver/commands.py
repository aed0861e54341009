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
_LOOPBACK = "127.0.0.1"
# The endpoint of the Service `kubernetes`, which network policies name. No loopback address is allowed there, so
# it is one of those for documentation (RFC 5737); the kubelet leads the Service's own address to the API server.
_ADVERTISED = "192.0.2.1"
# Where the kubelet listens for Services: pods have their addresses from 127.64.0.1 on.
_SERVICES = IPv4Network("127.32.0.0/11")
_SERVICES_OF_ONE = 22  # the length of the prefix of one local cloud's addresses
_PORTS_OF_ONE = 16  # no two local clouds have ports in one block of so many
# etcd wants a host and a port in the addresses that it announces to peers and clients, and has no peers. It is no TCP
# port: it names a socket in the working directory.
_NOBODY = "unix://peer:1"
# Controllers whose work no kubelet does. The real kubernetes plugin asks for foreground deletion (garbage collector).
_CONTROLLERS = (
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "garbage-collector-controller",
    "statefulset-controller",
    # The claims of a StatefulSet have its finalizer, which else nothing removes.
    "persistentvolumeclaim-protection-controller",
)


def etcd(state: StateDirectory, binaries: Binaries) -> list[str]:
    """etcd on a Unix socket: no port, and no TLS between two processes of one user."""
    return [
        binaries.path(ETCD),
        f"--data-dir={state.root / 'etcd'}",
        f"--listen-client-urls={_socket(state)}",
        f"--advertise-client-urls={_NOBODY}",
        f"--listen-peer-urls={_NOBODY}",
        f"--initial-advertise-peer-urls={_NOBODY}",
        f"--initial-cluster=default={_NOBODY}",
        # Without fsync a killed process loses nothing; after a power failure the stack can be deployed again.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def kube_apiserver(state: StateDirectory, binaries: Binaries, port: int) -> list[str]:
    """kube-apiserver with its default admission plugins."""
    files = state.control_plane
    return [
        binaries.path(API_SERVER),
        f"--etcd-servers={_socket(state)}",
        f"--bind-address={_LOOPBACK}",
        f"--advertise-address={_ADVERTISED}",
        f"--secure-port={port}",
        f"--tls-cert-file={state.server_file}",
        f"--tls-private-key-file={state.server_file}",
        f"--authentication-config={files / 'authentication.yaml'}",
        f"--authentication-token-webhook-config-file={files / 'token-reviews.yaml'}",
        "--authentication-token-webhook-version=v1",
        # No longer than kube-apiserver remembers any token: a token's end is noticed as soon as its own would be.
        "--authentication-token-webhook-cache-ttl=10s",
        f"--token-auth-file={files / 'tokens.csv'}",
        "--authorization-mode=RBAC,Webhook",
        f"--authorization-webhook-config-file={files / 'access-reviews.yaml'}",
        "--authorization-webhook-version=v1",
        # Practically no cache: the local Azure itself decides how late a role assignment begins and ends.
        "--authorization-webhook-cache-authorized-ttl=1ms",
        "--authorization-webhook-cache-unauthorized-ttl=1ms",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files / 'service-account.pem'}",
        f"--service-account-signing-key-file={files / 'service-account.pem'}",
        f"--encryption-provider-config={files / 'encryption.yaml'}",
        f"--service-cluster-ip-range={service_addresses(port)}",
        f"--kubelet-certificate-authority={state.ca_file}",
        f"--kubelet-client-certificate={state.kubelet_client_file}",
        f"--kubelet-client-key={state.kubelet_client_file}",
        # kubectl's WebSocket goes on to the kubelet as it is, and is not translated to SPDY.
        "--feature-gates=TranslateStreamCloseWebsocketRequests=false",
        "--profiling=false",
    ]


def service_addresses(port: int) -> str:
    """The addresses of Services, a part of 127.32.0.0/11 that no other local cloud has; `port` is the API server's."""
    size = 2 ** (_SERVICES.max_prefixlen - _SERVICES_OF_ONE)
    first = _SERVICES[port // _PORTS_OF_ONE * size % _SERVICES.num_addresses]
    return f"{first}/{_SERVICES_OF_ONE}"


def kube_controller_manager(state: StateDirectory, binaries: Binaries) -> list[str]:
    """kube-controller-manager with the few controllers that are needed here."""
    return [
        binaries.path(CONTROLLER_MANAGER),
        f"--kubeconfig={state.controller_manager_kubeconfig}",
        f"--controllers={','.join(_CONTROLLERS)}",
        "--use-service-account-credentials",
        f"--root-ca-file={state.ca_file}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
    ]


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
    documents = {
        "authentication": _authentication(issuer, metadata_url, state.ca_file.read_text()),
        "encryption": _encryption(
            store.kept(_KIND, "encryption-key", lambda: base64.b64encode(os.urandom(32)).decode())
        ),
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


def _encryption(key: str) -> dict[str, Any]:
    """Secrets are encrypted in etcd, which is on the disk; what was there before stays readable (`identity`)."""
    providers = [{"aesgcm": {"keys": [{"name": "local", "secret": key}]}}, {"identity": {}}]
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": providers}],
    }


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
