"""The way to the management cluster's API server: a kubeconfig that signs in by itself, in every run, on every machine.

Left out on purpose: a token in the kubeconfig. It would differ in every run, end in the middle of long ones, and lie in
the state; `refresh` and `destroy`, which do not run the program, would find an old one there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi_azure_native import containerservice

from components.lifecycle import ClusterGate
from components.management_cluster import ManagementCluster
from components.providers import Providers, provider_said
from identity.access import permissions
from identity.access.aks import decode
from identity.access.api_server import AccessRequirements, ApiServer
from identity.access.azure_rbac import AksCluster
from identity.access.errors import AccessError
from identity.access.exec_user import Flavour, exec_user
from identity.access.kubeconfig import Kubeconfig
from identity.access.login import Login
from identity.access.login_from_settings import login_of
from identity.settings import ManagementClusterSettings, Settings

# AKS's own word for the public name of a private cluster.
_PUBLIC: Final = "public"
_DENIED: Final = "AuthorizationFailed"  # ARM's code for whoever has no role that allows it
_READY_SECONDS: Final = 300  # how long Azure takes for a new role assignment, at most
_NEW_CLUSTER_SECONDS: Final = 900  # the same once the cluster's own components run, and its name has spread


@dataclass(frozen=True, kw_only=True)
class AksAccessArgs:
    """Inputs of `AksAccess`. `cluster` is the AKS cluster's name: of all its outputs the one that previews know.

    `admin` takes the administrators' static credential instead of a sign-in: for the day on which Entra ID is down.
    """

    resource_group: pulumi.Input[str]
    cluster: pulumi.Input[str]
    login: Login
    flavour: Flavour
    public_fqdn: bool
    admin: bool


class AksAccess(pulumi.ComponentResource):
    """A kubeconfig made of the one that AKS gives out, which has server and authority, and a user of our own.

    Outputs: `kubeconfig` (Output[str], secret, JSON with sorted keys: the same text in every run). Unknown in a preview
    before the cluster exists; the credentials are read again in every run, so a new address arrives by itself.
    """

    def __init__(self, name: str, args: AksAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:AksAccess", name, None, opts)
        options = pulumi.InvokeOptions(parent=self)
        where = {"resource_group_name": args.resource_group, "resource_name": args.cluster}
        fqdn = _PUBLIC if args.public_fqdn else None
        if args.admin:
            pulumi.warn(
                "managementCluster.access.admin: the stack reaches the cluster with the administrators' static "
                "credential, past Entra ID and without a name in the audit log. Switch it off when the need is over, "
                "and rotate the cluster's certificates.",
                resource=self,
            )
            value = containerservice.list_managed_cluster_admin_credentials_output(
                **where, server_fqdn=fqdn, opts=options
            ).apply(lambda answer: answer.kubeconfigs[0].value)
        else:
            value = containerservice.list_managed_cluster_user_credentials_output(
                **where, server_fqdn=fqdn, opts=options
            ).apply(lambda answer: answer.kubeconfigs[0].value)
        login = None if args.admin else args.login
        self.kubeconfig: pulumi.Output[str] = pulumi.Output.secret(
            value.apply(lambda skeleton: signed_in(skeleton, login, args.flavour).to_json())
        )
        self.register_outputs({"kubeconfig": self.kubeconfig})


def signed_in(value: str, login: Login | None, flavour: Flavour) -> Kubeconfig:
    """AKS's kubeconfig (base64) with a user that signs in by itself; as it is without a login. Raises AccessError."""
    skeleton = decode(value)
    context = skeleton.chosen()
    if login is not None:
        return skeleton.only(context, user=exec_user(login, flavour))
    user = skeleton.entries("contexts")[context]["user"]
    return skeleton.only(context, user=skeleton.entries("users")[user])


def access_args(
    settings: Settings, cluster: ManagementClusterSettings, created: ManagementCluster | None = None
) -> AksAccessArgs:
    """The inputs of `AksAccess` for a configured cluster, which the stack may make itself; raises AccessError."""
    return AksAccessArgs(
        resource_group=cluster.resource_group,
        cluster=cluster.name if created is None else created.name,
        login=login_of(cluster.access, settings.tenant_id, settings.cloud.authority_host),
        flavour=Flavour(cluster.access.flavour),
        public_fqdn=cluster.access.public_fqdn,
        admin=cluster.access.admin,
    )


def opened(settings: Settings, access: AksAccess, cluster: ManagementCluster) -> ClusterGate:
    """The gate behind which a new cluster can be used: the deployer's permissions hold, the add-on's kinds are served.

    It says what it waits for, and is asked again only when the cluster is made anew or reached in another way.
    """
    return ClusterGate(
        "cluster-access-gate",
        cluster_id=cluster.cluster_id,
        cluster_uid=cluster.uid,
        has_azure_rbac=cluster.has_azure_rbac,
        kubeconfig=access.kubeconfig,
        kinds=[f"{version}/{plural}" for version, plural in _kinds(settings)],
        timeout_seconds=_NEW_CLUSTER_SECONDS,
        opts=pulumi.ResourceOptions(parent=access, depends_on=cluster.ready),
    )


async def check_access(settings: Settings, providers: Providers, aks: AksCluster | None) -> None:
    """Sign in to the cluster as the stack will, before the first resource; raises RunError with the cause and its fix.

    `aks` is what ARM says of the management cluster, None if there is none, or none yet.
    A preview needs no more than a sign-in, so a read-only identity may run it; an update also waits until the deployer
    has its permissions and the kinds of the stack's objects are served. Of a cluster that the stack makes, both may
    come in this very run: `opened` waits for them then.
    """
    cluster = settings.management_cluster
    if cluster is None or aks is None or not settings.writes_to_management_cluster or cluster.kubeconfig is not None:
        return
    try:
        kubeconfig = await _kubeconfig(settings, cluster, providers)
        wanted = AccessRequirements() if cluster.create is not None else _wanted(settings)
        await asyncio.to_thread(_wait_until_ready, kubeconfig, aks, wanted)
    except AccessError as error:
        raise pulumi.RunError(f"idstack:managementCluster: {error}. Nothing was changed.") from None


def _wanted(settings: Settings) -> AccessRequirements:
    """What must be there before the first object; in a preview nothing."""
    if pulumi.runtime.is_dry_run():
        return AccessRequirements()
    return AccessRequirements(permissions.permissions(), _kinds(settings))


def _kinds(settings: Settings) -> tuple[tuple[str, str], ...]:
    return permissions.KINDS if settings.cluster_side == "stack" else ()


async def _kubeconfig(settings: Settings, cluster: ManagementClusterSettings, providers: Providers) -> Kubeconfig:
    args = access_args(settings, cluster)
    who = "Admin" if args.admin else "User"
    inputs: Mapping[str, Any] = {"resourceGroupName": cluster.resource_group, "resourceName": cluster.name}
    try:
        answer = await pulumi.runtime.invoke_async(
            f"azure-native:containerservice:listManagedCluster{who}Credentials",
            {**inputs, **({"serverFqdn": _PUBLIC} if args.public_fqdn else {})},
            pulumi.InvokeOptions(provider=providers.azure),
        )
    except Exception as error:
        said = provider_said(error)
        fix = f"; give the deployer the role Azure Kubernetes Service Cluster {who} Role on the cluster"
        raise AccessError(
            f'AKS does not hand out the kubeconfig of "{cluster.name}": {said.rstrip(".")}'
            f"{fix if _DENIED in said else ''}"
        ) from None
    return signed_in(answer["kubeconfigs"][0]["value"], None if args.admin else args.login, args.flavour)


def _wait_until_ready(kubeconfig: Kubeconfig, aks: AksCluster, wanted: AccessRequirements) -> None:
    with ApiServer(kubeconfig, aks) as server:
        server.check_sign_in()
        server.wait_for(wanted, _READY_SECONDS, log=pulumi.log.info)
