"""Prepares a state directory: ports, TLS, the deployer, the kubeconfig, and the record of all this for clients.

Everything is created once and kept, so that a restart changes no address and no identity; files on tmpfs are rewritten.
"""

from __future__ import annotations

import base64
import secrets
import socket
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from localcloud.apiserver import commands
from localcloud.azure.aks_webhooks import api as aks_webhooks
from localcloud.azure.authorization import built_in_roles
from localcloud.azure.graph.permissions import WRITE_ALL, WRITE_OWNED
from localcloud.azure.local_azure import LocalAzure, assemble
from localcloud.azure.resource_store import Resources
from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.held import FaultHolder
from localcloud.azure.tenant.directory import Directory
from localcloud.azure.tenant.objects import Application, KeyCredential, ServicePrincipal
from localcloud.core import clock
from localcloud.core.arm_ids import role_definition_id, subscription_id
from localcloud.core.certificates import CLOCK_SKEW, issue
from localcloud.core.clouds import LocalEnvironment
from localcloud.core.cluster import (
    ADMINISTRATOR,
    CONTROLLER_MANAGER,
    DEPLOYER,
    KUBELET,
    ClusterKind,
    Endpoint,
    choose,
    token,
)
from localcloud.core.documents import document
from localcloud.core.files import write_if_changed, write_private
from localcloud.core.state_directory import StateDirectory
from localcloud.core.store import Document, Store
from localcloud.core.tls import ensure_certificate
from localcloud.core.yaml_text import dump
from localcloud.kubernetes.kubeconfig import with_one_context
from localcloud.runtime.seed_file import Seed
from localcloud.runtime.seed_file import choose as choose_seed

ADDRESS = "127.0.0.1"
KUBERNETES = "kubernetes"
AKS_WEBHOOKS = "aks-webhooks"
PROXY = "proxy"
CONTROL = "control"
SERVICES = ("entra", "arm", "graph", "keyvault", "blob", "imds", AKS_WEBHOOKS, KUBERNETES)
# Each kind of Kubernetes API needs all except one of them: the built-in one verifies tokens itself, the other is served
# by kube-apiserver.
_NOT_SERVED = {ClusterKind.BUILT_IN: AKS_WEBHOOKS, ClusterKind.API_SERVER: KUBERNETES}
_PLAIN_TEXT = frozenset({"imds", PROXY, CONTROL})
# Below the ports of outgoing connections (Linux' ip_local_port_range starts at 32768), which could occupy ours.
# A local cloud has neighbouring ports, so it seldom takes a port of another one that restarts.
_BLOCKS = range(20000, 32000, 16)
_BLOCKS_TRIED = 100
# Sockets on the ports that this process has just picked; until they are served, no other local cloud may pick them.
_picked: Final[dict[int, socket.socket]] = {}
_KIND = "environment"


class PortTakenError(OSError):
    """A port of this local cloud is in use by another process."""


@dataclass(frozen=True)
class Prepared:
    """An open local cloud, ready to be served or written to; `close` it."""

    state: StateDirectory
    store: Store
    cloud: LocalAzure
    environment: LocalEnvironment
    ports: dict[str, int]
    cluster: ClusterKind
    kubernetes_token: str
    seed: Seed

    @property
    def services(self) -> tuple[str, ...]:
        """Names of the services that the daemon serves."""
        return tuple(service for service in SERVICES if service != _NOT_SERVED[self.cluster])

    def close(self) -> None:
        """Close the store, and free the ports that were picked and are not served."""
        _let_go(self.ports.values())
        self.store.close()


def prepare(state: StateDirectory, wanted: Seed | None = None) -> Prepared:
    """Open the local cloud of a state directory and create what is missing; `wanted` is `seed_file.choose`'s.

    Raises `PortTakenError`, PermissionError, `seed_file.SeedConflictError`, `StoreError`.
    """
    state.create()
    with state.lock("prepare"):
        return _prepare(state, wanted)


def _prepare(state: StateDirectory, wanted: Seed | None) -> Prepared:
    holder = FaultHolder(state.held_faults_file)
    store = state.open_store()
    store.fail_writes(holder.disk_error)
    seed = choose_seed(store, wanted)
    cluster = choose(store)
    ports = _ports(store)
    # The service that another process serves.
    _let_go([ports[_NOT_SERVED[cluster]]])
    ensure_certificate(state.ca_file, state.server_file)
    cloud = assemble(
        store,
        Faults.from_environment(),
        authority_host=f"{_url(ports, 'entra')}/",
        holder=holder,
        tenant_id=seed.tenant_id,
        subscription_id=seed.subscription_id,
    )
    authority = base64.b64encode(state.ca_file.read_bytes()).decode()
    Endpoint(_url(ports, KUBERNETES), authority, cluster).save(store)
    deployer = ensure_deployer(store, cloud.directory, state.deployer_file)
    users = {
        state.kubeconfig: DEPLOYER,
        state.kubelet_kubeconfig: KUBELET,
        state.administrator_kubeconfig: ADMINISTRATOR,
    }
    if cluster is ClusterKind.API_SERVER:
        users[state.controller_manager_kubeconfig] = CONTROLLER_MANAGER
        metadata = f"{cloud.authority_host}{cloud.tenant_id}/.well-known/openid-configuration"
        paths = {"token-reviews": aks_webhooks.TOKENS, "access-reviews": aks_webhooks.ACCESS}
        webhooks = {name: f"{_url(ports, AKS_WEBHOOKS)}{path}" for name, path in paths.items()}
        commands.write(state, store, cloud.tokens.issuer, metadata, webhooks)
    for file, user in users.items():
        cluster_entry = {"server": _url(ports, KUBERNETES), "certificate-authority-data": authority}
        signed_in = dump(with_one_context(cluster_entry, {"token": token(store, cluster, user)}))
        write_if_changed(file, signed_in)
    environment = LocalEnvironment(
        authority_host=cloud.authority_host,
        arm_endpoint=_url(ports, "arm"),
        graph_endpoint=_url(ports, "graph"),
        key_vault_endpoint=_url(ports, "keyvault"),
        blob_endpoint=_url(ports, "blob"),
        imds_endpoint=_url(ports, "imds"),
        proxy_endpoint=_url(ports, PROXY),
        control_endpoint=_url(ports, CONTROL),
        ca_file=str(state.ca_file),
        cluster=cluster,
        kubernetes_endpoint=_url(ports, KUBERNETES),
        kubeconfig=str(state.kubeconfig),
        state_dir=str(state.root),
        mounts_dir=str(state.mounts),
        tenant_id=cloud.tenant_id,
        subscription_id=cloud.subscription_id,
        deployer_client_id=deployer.app_id,
        deployer_certificate=str(state.deployer_file),
    )
    write_if_changed(state.environment_file, environment.to_json())
    return Prepared(state, store, cloud, environment, ports, cluster, token(store, cluster, DEPLOYER), seed)


def is_plain_text(service: str) -> bool:
    return service in _PLAIN_TEXT


def listen(service: str, port: int) -> socket.socket:
    """A listening socket on loopback; raises `PortTakenError`."""
    return _picked.pop(port, None) or _listener(service, port)


def _listener(service: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        # With SO_REUSEADDR two sockets may have one port as long as neither listens.
        listener.listen()
    except OSError as error:
        listener.close()
        raise PortTakenError(
            f"port {port} of the local {service} service is in use by another process ({error.strerror}); end that one "
            "or remove this local cloud with `python -m localcloud stop --remove` and start again on other ports"
        ) from None
    return listener


def _url(ports: dict[str, int], service: str) -> str:
    return f"{'http' if is_plain_text(service) else 'https'}://{ADDRESS}:{ports[service]}"


def _ports(store: Store) -> dict[str, int]:
    """The port of each service, picked among the free ones on the first call."""
    with store.transaction():
        known = store.get(_KIND, "ports") or {}
        for service in (*SERVICES, PROXY, CONTROL):
            if service not in known:
                known[service] = _free_port(service, taken=set(known.values()))
        store.put(_KIND, "ports", known)
    return known


def _free_port(service: str, taken: set[int]) -> int:
    """A port that is held from now on (`_picked`), in a block of those in `taken` if there is one."""
    own = {port - port % _BLOCKS.step for port in taken}
    for block in (*own, *(secrets.choice(_BLOCKS) for _ in range(_BLOCKS_TRIED))):
        for port in range(block, block + _BLOCKS.step):
            if port not in taken:
                with suppress(PortTakenError):
                    _picked[port] = _listener(service, port)
                    return port
    raise PortTakenError(f"no free port for the local {service} service in {_BLOCKS.start}-{_BLOCKS.stop - 1}")


def _let_go(ports: Iterable[int]) -> None:
    for port in ports:
        if listener := _picked.pop(port, None):
            listener.close()


_DEPLOYER, _OWNER = "deployer", "owner"
# The roles of an administrator of a subscription and its vaults.
_OWNERS_ROLES = ("Owner", "Key Vault Administrator")
_LIFETIME = timedelta(days=365)
_RENEWED_BEFORE = timedelta(days=30)
# It and its certificate are backdated by this much, so that every replica knows both from the start.
_SINCE = timedelta(days=1)


def ensure_deployer(store: Store, directory: Directory, credential: Path) -> ServicePrincipal:
    """The deployer's service principal, created on the first call, with Graph's `Application.ReadWrite.OwnedBy`.

    Writes key and certificate to `credential` (PEM, 0600), again when it is lost or about to expire; the certificate
    registered before is then removed.
    """
    return _ensure(_DEPLOYER, WRITE_OWNED, store, directory, credential)


def ensure_owner(store: Store, directory: Directory, subscription: str, credential: Path) -> ServicePrincipal:
    """The owner's service principal, created on the first call, with the roles of an owner on the subscription and
    Graph's `Application.ReadWrite.All`. Its credential is kept as the deployer's is.
    """
    with store.transaction():
        principal = _ensure(_OWNER, WRITE_ALL, store, directory, credential)
        for role in _OWNERS_ROLES:
            Resources(store).put(role_assignment(subscription, principal.object_id, role))
    return principal


def role_assignment(subscription: str, principal: str, role: str, condition: str | None = None) -> Document:
    """A built-in role of a service principal on the subscription, long in effect; raises KeyError for another."""
    guids = {role.role_name: guid for guid, role in built_in_roles().items()}
    return document(
        *(__file__, "role assignment"),
        scope=subscription_id(subscription),
        name=str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{principal}-{role}")),
        principal=principal,
        role=role_definition_id(subscription, guids[role]),
        condition=condition,
        version=None if condition is None else "2.0",
        since=(clock.now() - _SINCE).isoformat(),
    )


def _ensure(name: str, permission: str, store: Store, directory: Directory, credential: Path) -> ServicePrincipal:
    with store.transaction():
        known = store.get(name, name)
        principal = directory.service_principal(known["objectId"]) if known else None
        if principal is None:
            principal = _create(directory, name, permission)
            store.put(name, name, {"objectId": principal.object_id})
        application = directory.application_by_app(principal.app_id)
        if application is None:
            raise LookupError(f"no application {principal.app_id}")
        if not _is_good(credential, application):
            _register(directory, application, credential)
    return principal


def _create(directory: Directory, name: str, permission: str) -> ServicePrincipal:
    application = directory.create_application(name)
    principal = directory.create_service_principal(application.app_id)
    since = clock.now() - _SINCE
    directory.update(replace(application, created_at=since))
    directory.update(replace(principal, created_at=since))
    directory.grant(principal.object_id, permission)
    return principal


def _register(directory: Directory, application: Application, credential: Path) -> None:
    name = application.display_name
    issued = issue(name, not_before=clock.now() - CLOCK_SKEW, lifetime=_LIFETIME)
    key = KeyCredential.of(issued.certificate, display_name=name)
    directory.update(replace(application, keys=(replace(key, added_at=clock.now() - _SINCE),)))
    write_private(credential, issued.pem())


def _is_good(credential: Path, application: Application) -> bool:
    if not credential.exists():
        return False
    key = KeyCredential.of(x509.load_pem_x509_certificate(credential.read_bytes()))
    registered = {key.thumbprint for key in application.key_credentials}
    return key.thumbprint in registered and key.end - _RENEWED_BEFORE > clock.now()
