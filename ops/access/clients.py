"""Azure, Graph and the management cluster, as a stack's deployer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from azure.core.exceptions import AzureError
from pydantic import ValidationError

from identity.aks.api_server import ApiServer
from identity.aks.azure_rbac import AksCluster, look_at, skeleton
from identity.aks.exec_user import exec_user, login_of
from identity.aks.kubeconfig import Kubeconfig
from identity.aks.legacy_login import LegacyLogin
from identity.aks.login import Login
from identity.azure.client import AzureClient
from identity.azure.connection import SignIn, signed_in
from identity.azure.errors import AccessError
from identity.clouds import DEFAULT_CLOUD, LOCAL_CLOUD
from identity.login_kinds import Flavour, LoginKind
from identity.naming import cluster_id
from identity.settings import ManagementClusterSettings
from ops.stack import local_cloud
from ops.stack.engine import Engine
from ops.stack.environment import variables
from ops.stack.errors import CommandError, NoManagementClusterError, message


@contextmanager
def deployer(engine: Engine) -> Iterator[AzureClient]:
    """A client of the stack's cloud and tenant as its deployer; the clients of an engine share one sign-in.

    Raises CommandError for a stack without a tenant, AccessError without a sign-in, the client AzureRefusedError.
    """
    with AzureClient(*_sign_in(engine)) as client:
        yield client


def sign_in_refusal(engine: Engine) -> str | None:
    """Why the deployer cannot sign in to Azure, in one line, tried once; None if it can.

    Raises CommandError as `deployer` does.
    """
    try:
        cloud, credential, _ = _sign_in(engine)
        credential.get_token(cloud.arm_scope)
    except (AccessError, AzureError) as error:
        return " ".join(str(error).split())
    return None


def _sign_in(engine: Engine) -> SignIn:
    def made() -> SignIn:
        configuration, is_local = engine.configured(), local_cloud.of(engine.stack) is not None
        if not configuration.get("tenantId"):
            raise CommandError(message("clients.no-tenant", stack=engine.stack))
        cloud = LOCAL_CLOUD if is_local else str(configuration.get("cloud") or DEFAULT_CLOUD)
        return signed_in(cloud, configuration["tenantId"], variables(engine.stack))

    return engine.once("sign-in", made)


@dataclass(frozen=True)
class StackAccess:
    """A kubeconfig before the sign-in of its user.

    Attributes:
        kubeconfig: server, authority and a user, from AKS or a file.
        hints: the known ones of tenant, server application and authority.
        cluster: the stack's cluster in ARM; None for a kubeconfig from a file.
        login: the stack's sign-in; None for a file and for the administrators' static credential.
        environment: additional variables of the plugin.
    """

    kubeconfig: Kubeconfig
    hints: LegacyLogin
    cluster: AksCluster | None = None
    login: Login | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def stack_access(engine: Engine, *, admin: bool | None = None, public_fqdn: bool = False) -> StackAccess:
    """The stack's access to its management cluster; `admin` and `public_fqdn` override its configuration.

    Raises CommandError for a stack without a cluster, AccessError for refusals of Azure and an invalid kubeconfig or
    login.
    """
    local = local_cloud.of(engine.stack)
    settings, full_id = _configured(engine, "; give a kubeconfig to convert with --from")
    access = settings.access
    is_admin = access.admin if admin is None else admin
    with deployer(engine) as clients:
        kubeconfig = skeleton(clients, full_id, admin=is_admin, public_fqdn=public_fqdn or access.public_fqdn)
        aks = look_at(clients, full_id) or AksCluster(full_id)
    tenant, authority = engine.configured()["tenantId"], clients.cloud.authority_host
    hints = LegacyLogin(tenant, None, authority)
    if is_admin:
        return StackAccess(kubeconfig, hints, aks)
    if local is None:
        return StackAccess(kubeconfig, hints, aks, login_of(access, tenant, authority))
    # Only the engine has the variables of the deployer. The local certificate authority is not in the system's store.
    # kubelogin (Go) reads SSL_CERT_FILE, idstack REQUESTS_CA_BUNDLE first, which many machines set themselves.
    login = Login(
        kind=LoginKind.CERTIFICATE,
        tenant_id=tenant,
        client_id=local.deployer_client_id,
        certificate=Path(local.deployer_certificate),
        authority_host=authority,
    )
    return StackAccess(
        kubeconfig, hints, aks, login, dict.fromkeys(("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), local.ca_file)
    )


def stack_cluster(engine: Engine) -> AksCluster:
    """The stack's management cluster in ARM; raises CommandError if there is none, AccessError if Azure refuses."""
    _, full_id = _configured(engine)
    with deployer(engine) as clients:
        cluster = look_at(clients, full_id)
    if cluster is None:
        raise CommandError(f"{full_id} does not exist; correct its name, or create it")
    return cluster


def api_server(engine: Engine) -> ApiServer:
    """The API server with the stack's sign-in, as a context manager. Raises as `stack_access`.

    The kubeconfig is that of the stack's configuration, or that of AKS.
    """
    written = engine.configured().get("managementCluster")
    if not isinstance(written, dict) or not written.get("kubeconfig"):
        access = stack_access(engine)
        assert access.cluster is not None, "only a kubeconfig to convert belongs to no cluster"
        kubeconfig = access.kubeconfig
        if access.login is not None:
            user = exec_user(access.login, Flavour.IDSTACK, access.environment)
            kubeconfig = kubeconfig.only(kubeconfig.chosen(), user=user)
        return ApiServer(kubeconfig, access.cluster, engine.environment)
    settings, full_id = _configured(engine)
    kubeconfig = Kubeconfig.read(engine.root / Path(settings.kubeconfig or "").expanduser())
    return ApiServer(kubeconfig, AksCluster(full_id), engine.environment, context=settings.context)


def _configured(engine: Engine, advice: str = "") -> tuple[ManagementClusterSettings, str]:
    """The settings of the stack's management cluster, and its id; raises CommandError, with the advice, without one."""
    configuration = engine.configured()
    if configuration.get("managementCluster") is None:
        raise NoManagementClusterError(f"the stack {engine.stack} has no managementCluster{advice}")
    if not configuration.get("subscriptionId"):
        raise CommandError(message("clients.no-subscription", stack=engine.stack))
    try:
        settings = ManagementClusterSettings.model_validate(configuration["managementCluster"])
    except ValidationError:
        raise CommandError(message("clients.invalid", stack=engine.stack)) from None
    return settings, cluster_id(configuration["subscriptionId"], settings.resource_group, settings.name)


class KubernetesObjects:
    """The objects behind an API server; safe for many threads."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._served: dict[str, dict[str, str]] = {}
        self._reading = Lock()

    def read(self, api_version: str, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        """The object, None if there is none; `namespace` is None for a cluster-scoped kind.

        Raises CommandError if the API answers neither yes nor no.
        """
        try:
            plural = self._plurals(api_version).get(kind)
            if plural is None:
                return None
            path = f"{_base(api_version)}{f'/namespaces/{namespace}' if namespace else ''}/{plural}/{name}"
            return self._server.read(path)
        except AccessError as error:
            raise CommandError(f"reading {kind} {name} from the management cluster: {error}") from None

    def _plurals(self, api_version: str) -> dict[str, str]:
        """The plural names of a version's kinds; read once."""
        with self._reading:
            if api_version not in self._served:
                served: dict[str, Any] = self._server.read(_base(api_version)) or {}
                self._served[api_version] = {
                    resource["kind"]: resource["name"]
                    for resource in served.get("resources", ())
                    if "/" not in resource["name"]
                }
            return self._served[api_version]


@contextmanager
def management_cluster(engine: Engine) -> Iterator[KubernetesObjects]:
    """The objects of the management cluster, with the stack's sign-in. Raises as `api_server`, and for a refusal."""
    with api_server(engine) as server:
        server.check_sign_in()
        yield KubernetesObjects(server)


def _base(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
