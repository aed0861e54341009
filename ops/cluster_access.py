"""How a stack reaches its management cluster, for the commands that look at it without running the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from identity.access.aks import cluster_id, look_at, skeleton
from identity.access.azure_rbac import AksCluster
from identity.access.configured import login_of
from identity.access.kubeconfig import Hints, Kubeconfig
from identity.access.login import Login, LoginKind
from identity.settings import AccessSettings
from ops import local_cloud
from ops.engine import Engine
from ops.recovery.settle import azure
from ops.trouble import Trouble


@dataclass(frozen=True)
class StackAccess:
    """A kubeconfig whose user has yet to sign in.

    `hints` is what is known of the sign-in, `cluster` what ARM says of the stack's cluster, `login` the configured one,
    `environment` what a plugin needs besides.
    """

    kubeconfig: Kubeconfig
    hints: Hints
    cluster: AksCluster | None = None
    login: Login | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def stack_access(stack: str, admin: bool = False, public_fqdn: bool = False) -> StackAccess:
    """AKS's own kubeconfig of the stack's management cluster, and the stack's login.

    Raises Trouble for a stack without a cluster, or what Azure refuses; AccessError for what can not be used.
    """
    engine = Engine(stack)
    local = local_cloud.record() if engine.is_local else None
    configuration = engine.configured()
    cluster = configuration.get("managementCluster")
    if not isinstance(cluster, dict):
        raise Trouble(f"the stack {stack} names no managementCluster; name a kubeconfig to convert with --from")
    try:
        access = AccessSettings.model_validate(cluster.get("access") or {})
    except ValidationError:
        raise Trouble("idstack:managementCluster.access is not right; `pulumi preview` says what and why") from None
    full_id = cluster_id(configuration["subscriptionId"], cluster["resourceGroup"], cluster["name"])
    with azure(engine, configuration, local) as clients:
        found = skeleton(clients, full_id, admin=admin, public_fqdn=public_fqdn or access.public_fqdn)
        aks = look_at(clients, full_id)
    tenant, authority = configuration["tenantId"], clients.cloud.authority_host
    hints = Hints(tenant, None, authority)
    if local is None:
        return StackAccess(found, hints, aks, login_of(access, tenant, authority))
    # The variables of its deployer are set for the engine alone. Its authority is in no system's store; kubelogin (Go)
    # and idstack read the same variable.
    login = Login(
        kind=LoginKind.CERTIFICATE,
        tenant_id=tenant,
        client_id=local.deployer_client_id,
        certificate=Path(local.deployer_certificate),
        authority_host=authority,
    )
    return StackAccess(found, hints, aks, login, {"SSL_CERT_FILE": local.ca_file})
